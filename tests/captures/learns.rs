//! Our learner in the place of Java's: it receives the captured leader's packets, and must answer with exactly the captured
//! learner's bytes. Packets caused by clients (REQUEST, PING, REVALIDATE) are left out.

use super::packets::{self, Captured, Said};
use super::tape;
use bytes::BytesMut;
use oxkeeper::model::{Epoch, Epochs, View, Zxid};
use oxkeeper::tree::txn::config_in;
use oxkeeper::zab::{Action, Input, LearnerInfo, Packet, Peer, Settings};
use support::peer::PeerOnDisk;

pub fn settings(name: &str) -> Settings {
    Settings { reconfigs: name.starts_with("reconfig"), ..SETTINGS }
}

/// The settings of the captured servers.
pub const SETTINGS: Settings = Settings { init_limit: 60, sync_limit: 60, ..Settings::DEFAULT };

/// The state of a captured learner when it connected.
pub struct Before {
    pub info: LearnerInfo,
    pub accepted: Epoch,
    pub current: Epoch,
    pub last: Zxid,
    /// The epoch that it joined, and the configuration in NEWLEADER.
    pub epoch: Epoch,
    pub view: View,
}

impl Before {
    pub fn of(packets: &[Captured]) -> Self {
        let packets = || {
            packets.iter().filter_map(|captured| match &captured.said {
                Said::Packet(packet) => Some(packet),
                Said::Tree { .. } => None,
            })
        };
        let first = packets().find_map(|packet| match packet {
            Packet::FollowerInfo { accepted, info } | Packet::ObserverInfo { accepted, info } => {
                Some((*accepted, *info))
            }
            _ => None,
        });
        let promised = packets().find_map(|packet| match packet {
            Packet::AckEpoch { current, last } => Some((*current, *last)),
            _ => None,
        });
        let adopted = packets().find_map(|packet| match packet {
            Packet::NewLeader { epoch, view } => Some((*epoch, View::from_bytes(view).unwrap())),
            _ => None,
        });
        let (accepted, info) = first.expect("FOLLOWERINFO or OBSERVERINFO");
        let (current, last) = promised.expect("ACKEPOCH");
        let (epoch, view) = adopted.expect("NEWLEADER");
        let current = current.unwrap_or(accepted); // Not sent by a learner that had accepted the epoch before.
        Self { info, accepted, current, last: last.expect("a last zxid"), epoch, view }
    }
}

/// The configuration that an entry proposes.
pub fn view_in(entry: &[u8]) -> Option<View> {
    View::from_bytes(config_in(entry)?).ok()
}

struct Learner {
    name: &'static str,
    /// Its disk completes every request at once.
    server: PeerOnDisk,
    said: BytesMut,
}

impl Learner {
    fn step(&mut self, input: Input) {
        for action in self.server.settle(input) {
            match action {
                Action::ToLeader { bytes } => self.said.extend_from_slice(&bytes),
                // Here a reconfiguration names another leader.
                Action::Disconnect if self.name == "reconfig-left" => {}
                Action::Disconnect => {
                    panic!("{}: it leaves, {:?}", self.name, self.server.peer.core.notes)
                }
                _ => {}
            }
        }
    }
}

/// The id of the captured leader. It is in no packet; it matters only for the leader that a reconfiguration names.
fn leader_of(name: &str) -> i64 {
    match name {
        "trunc" => 3,
        "observer-of-follower" => 1,
        _ if name.starts_with("reconfig") => 3,
        _ => 2,
    }
}

pub fn replay(name: &'static str) {
    let packets = packets::of(&tape::read("quorum", name));
    let before = Before::of(&packets);
    let view = View { version: before.info.view_version, ..before.view };
    let epochs = Epochs { accepted: before.accepted, current: before.current };
    let settings = settings(name);
    let mut peer = Peer::member(before.info.id, settings, view, epochs, Some(before.last));
    peer.core.finds_view = view_in;
    let mut learner = Learner { name, server: PeerOnDisk::new(peer), said: BytesMut::new() };
    learner.step(Input::Tick);
    learner.server.votes_for(leader_of(name)).into_iter().for_each(|vote| learner.step(vote));
    let is_zabs = |packet: &Packet| {
        !matches!(packet, Packet::Request(_) | Packet::Ping { .. } | Packet::Revalidate { .. })
    };
    let (mut javas, mut ours) = (Vec::new(), Vec::new());
    for Captured { is_dialer, said, bytes } in &packets {
        let Said::Packet(packet) = said else { continue };
        if !is_dialer {
            learner.step(Input::Leader { packet: packet.clone() });
            continue;
        }
        if is_zabs(packet) {
            javas.push((packet.clone(), bytes.clone()));
            let heard = Packet::decode(&mut learner.said).unwrap();
            let heard = heard.unwrap_or_else(|| panic!("{name}: {packet:?} is not sent"));
            ours.push((heard.clone(), heard.to_bytes().to_vec()));
        }
    }
    assert!(learner.said.is_empty(), "{name}: more bytes than Java's: {:?}", learner.said);
    if name == "outstanding" {
        // Our learner acknowledges a proposal once it has acknowledged NEWLEADER, Java's only after UPTODATE.
        for packets in [&mut javas, &mut ours] {
            let is_vote =
                |packet: &Packet| matches!(packet, Packet::Ack { zxid } if zxid.counter() != 0);
            packets.sort_by_key(|(packet, _)| is_vote(packet));
        }
    }
    assert_eq!(ours, javas, "{name}: packets of our learner, and of Java's");
}
