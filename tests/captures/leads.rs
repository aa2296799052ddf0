//! Our leader in the place of Java's: it receives the captured learner's packets, proposes what the captured leader proposed, and
//! must send exactly the captured leader's bytes. Packets about client sessions (REVALIDATE) are left out.
//!
//! A capture of one connection doesn't show when the leader's own flush ends, when another follower acknowledges and when the leader
//! pings: each happens here when the captured leader sends the packet that follows from it, and not before.

use super::learns::{Before, SETTINGS, settings, view_in};
use super::packets::{self, Captured, Said};
use super::tape;
use bytes::{Bytes, BytesMut};
use oxkeeper::model::{Epoch, Epochs, ServerId, View, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId, LearnerInfo, LogRead, Packet, Peer};
use support::disk::Write;
use support::peer::PeerOnDisk;

/// Captures, each with its leader's id. In the captures left out our leader differs on purpose, or data is missing:
/// * `outstanding`: Java sends uncommitted proposals before NEWLEADER, our leader after it (ZOOKEEPER-4394);
/// * `snap-across-epochs`: our leader sends TRUNC to such a learner, and then the transactions that it lacks;
/// * `reconfig-left`: of two followers with the whole history Java names the one with the smaller id as the next leader, we the other;
/// * `reconfig-diff`, `observer-of-follower`: the older configuration, and the follower's own leader, are in no capture.
pub const CAPTURES: [(&str, i64); 9] = [
    ("first-start", 2),
    ("first-start-3.8", 2),
    ("observer", 2),
    ("snap", 2),
    ("diff", 2),
    ("diff-from-log", 2),
    ("trunc", 3),
    ("reconfig-follower", 3),
    ("reconfig-observer", 3),
];

/// The captured learner's connection, and that of a follower with which the leader is a quorum.
const CAPTURED: LearnerConnectionId = LearnerConnectionId(1);
const OTHER: LearnerConnectionId = LearnerConnectionId(2);
/// A tick is 5 ms; the leader pings every half tickTime.
const TICKS_PER_PING: u64 = SETTINGS.tick_time_ms / 2 / 5;

struct Leader {
    name: &'static str,
    server: PeerOnDisk,
    /// Bytes to the captured learner that are not compared yet.
    said: BytesMut,
}

impl Leader {
    fn step(&mut self, input: Input) {
        for action in self.server.step(input) {
            self.perform(action);
        }
        // Epochs are saved at once; the log is flushed when the captured leader sends COMMIT.
        while let Some(Write::Promise(..)) = self.server.disk.asked.front() {
            let done = self.server.written().expect("a promise was saved");
            self.step(done);
        }
    }

    fn perform(&mut self, action: Action) {
        let answer = self.server.answer(&action);
        match action {
            Action::ToLearner { connection: CAPTURED, bytes } => {
                self.said.extend_from_slice(&bytes)
            }
            Action::SendSnapshot { .. } => {
                let sent = self.server.tree;
                let zxid = sent.unwrap_or_else(|| panic!("{}: no tree was sent", self.name));
                self.said.extend_from_slice(&Packet::Snap { zxid }.to_bytes());
            }
            Action::CloseLearner { connection: CAPTURED, why } => panic!("{}: {why}", self.name),
            _ => {}
        }
        if let Some(answer) = answer {
            self.step(answer);
        }
    }

    fn hear(&mut self, connection: LearnerConnectionId, packet: Packet) {
        self.step(Input::Learner { connection, packet });
    }

    fn propose(&mut self, zxid: Zxid, payload: Bytes) {
        self.step(Input::Propose { zxid, payload });
    }

    /// Flushes every proposal through a zxid, on the leader's disk and on the other follower's.
    fn settle(&mut self, through: Zxid, has_other: bool) {
        while let Some(Write::Append((zxid, _))) = self.server.disk.asked.front().cloned()
            && zxid <= through
        {
            let done = self.server.written().expect("an entry was appended");
            self.step(done);
            if has_other {
                self.hear(OTHER, Packet::Ack { zxid });
            }
        }
    }

    /// Expects the captured leader's next packet; if ours has not sent it yet, does what causes it first.
    fn expect(&mut self, packet: &Packet, bytes: &[u8], has_other: bool) {
        if self.said.is_empty() {
            match packet {
                Packet::Proposal { zxid, entry } => self.propose(*zxid, entry.clone()),
                Packet::Commit { zxid } | Packet::CommitAndActivate { zxid, .. } => {
                    self.settle(*zxid, has_other);
                }
                Packet::Inform { zxid, entry } | Packet::InformAndActivate { zxid, entry, .. } => {
                    self.propose(*zxid, entry.clone());
                    self.settle(*zxid, has_other);
                }
                Packet::Ping { .. } => {
                    for _ in 0..TICKS_PER_PING {
                        self.step(Input::Tick);
                    }
                }
                _ => {}
            }
        }
        let said = self.said.split_to(bytes.len().min(self.said.len()));
        if said != bytes {
            let mut said = BytesMut::from(&[&said[..], &self.said].concat()[..]);
            let said = Packet::decode(&mut said);
            panic!("{}: we sent {said:?}, Java's leader {packet:?}", self.name);
        }
    }
}

/// The transactions that the captured leader had and its learner lacked when it connected.
fn missed(packets: &[Captured]) -> Vec<(Zxid, Bytes)> {
    let mut missed = Vec::new();
    for captured in packets {
        match &captured.said {
            Said::Packet(Packet::Proposal { zxid, entry }) => missed.push((*zxid, entry.clone())),
            Said::Packet(Packet::NewLeader { .. }) => break,
            _ => {}
        }
    }
    missed
}

/// A leader with the captured leader's history, and with a second follower when `has_other`.
fn leader(name: &'static str, me: ServerId, packets: &[Captured], has_other: bool) -> Leader {
    let before = Before::of(packets);
    let tree = packets.iter().find_map(|captured| match captured.said {
        Said::Packet(Packet::Snap { zxid }) => Some(zxid),
        _ => None,
    });
    let cut = packets.iter().find_map(|captured| match captured.said {
        Said::Packet(Packet::Trunc { zxid }) => Some(zxid),
        _ => None,
    });
    let earlier = Epoch(before.epoch.0 - 1);
    let missed = missed(packets);
    // The end of its history when its epoch began: the learner's last zxid, or the last one of an earlier epoch.
    let has = cut.unwrap_or(before.last);
    let earlier_than = missed.iter().take_while(|(zxid, _)| zxid.epoch() < before.epoch);
    let start = earlier_than.last().map_or(has, |(zxid, _)| *zxid);
    let start = if start.epoch() < before.epoch { start } else { Zxid::ZERO };
    // SNAP is sent to a learner whose last zxid is not in the log any more.
    let start = if tree.is_some() { Zxid::new(earlier, 9) } else { start };
    let log = match tree {
        Some(_) => LogRead::default(),
        None => LogRead { before: Some(before.last), entries: missed.clone() },
    };
    let view = View { version: before.info.view_version, ..before.view.clone() };
    let mut peer = Peer::member(me, settings(name), view, Epochs::both(earlier), Some(start));
    peer.core.finds_view = view_in;
    let server = PeerOnDisk { log, tree, ..PeerOnDisk::new(peer) };
    let mut leader = Leader { name, server, said: BytesMut::new() };
    leader.step(Input::Tick);
    leader.server.votes_for(me.0).into_iter().for_each(|vote| leader.step(vote));
    if has_other {
        let taken = [me, before.info.id];
        let id = before.view.voters().find(|id| !taken.contains(id)).expect("a third voter");
        let info = LearnerInfo { id, view_version: 0, ..before.info };
        leader.hear(OTHER, Packet::FollowerInfo { accepted: earlier, info });
        leader.hear(OTHER, Packet::AckEpoch { current: Some(earlier), last: Some(start) });
        leader.hear(OTHER, Packet::Ack { zxid: Zxid::new(before.epoch, 0) });
        // zab needs only the zxids of the transactions of this epoch that the learner has.
        let had = has.max(tree.unwrap_or_default());
        let had = if had.epoch() == before.epoch { had.counter() } else { 0 };
        for zxid in (1..=had).map(|counter| Zxid::new(before.epoch, counter)) {
            leader.propose(zxid, Bytes::new());
            leader.settle(zxid, true);
        }
        for (zxid, entry) in missed.into_iter().filter(|(zxid, _)| start < *zxid) {
            leader.propose(zxid, entry);
            leader.settle(zxid, true);
        }
    }
    leader
}

pub fn replay(name: &'static str, me: i64) {
    let packets = packets::of(&tape::read("quorum", name));
    let has_other = !name.starts_with("first-start"); // There the leader and the captured learner are the quorum.
    let mut leader = leader(name, ServerId(me), &packets, has_other);
    for Captured { is_dialer, said, bytes } in &packets {
        match said {
            Said::Packet(packet) if *is_dialer => leader.hear(CAPTURED, packet.clone()),
            Said::Packet(Packet::Revalidate { .. }) | Said::Tree { .. } => {}
            Said::Packet(packet) => leader.expect(packet, bytes, has_other),
        }
    }
    assert!(leader.said.is_empty(), "{name}: more bytes than Java's leader: {:?}", leader.said);
}
