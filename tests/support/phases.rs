//! A member in each phase of each role, which it reaches with peers that send valid packets.

use super::builders::learner_info;
use super::ensemble_member::{EnsembleMember, ensemble_settings};
use super::learner_streams::LearnerStreams;
use super::trees::{tree_at, tree_stream};
use super::txns::set_data;
use super::views::view_of;
use bytes::Bytes;
use oxkeeper::member::{EnsembleSettings, QuorumPeer};
use oxkeeper::model::{Epoch, Epochs, ServerId, SessionId, View, Zxid, op};
use oxkeeper::replica::{self, Mode};
use oxkeeper::zab::{self, Packet, Request, Role};
use std::sync::Arc;

pub use oxkeeper::member::sasl_exchange::{NoSasl, SaslExchanges};

const ME: ServerId = ServerId(1);
const LEADER: ServerId = ServerId(2);
/// The last zxid of the log before the first election: the zxid at which the captures of Java's members begin.
const LAST: Zxid = Zxid::new(Epoch(1), 0xf);
/// The last zxid that the leader has committed in the phases in which the member serves.
const COMMITTED: Zxid = Zxid::new(EPOCH, 1);
/// The leader's epoch.
const EPOCH: Epoch = Epoch(2);
const SESSION: SessionId = SessionId(0x0300_0000_0000_0001);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// In an election.
    Looking,
    /// Elected; an observer has sent its acceptedEpoch, no voter has, and one more learner has connected.
    LeaderAwaitsEpochs,
    /// LEADERINFO is sent to a follower and an observer.
    LeaderAwaitsAckEpochs,
    /// NEWLEADER is sent to a follower and an observer.
    LeaderAwaitsAcks,
    /// A follower and an observer are synchronised, and a proposal is not acknowledged.
    LeaderBroadcasts,
    /// The leader is dialed.
    FollowerAwaitsLeaderInfo,
    /// ACKEPOCH is sent.
    FollowerAwaitsSync,
    /// DIFF and one of its proposals have come.
    FollowerInDiff,
    /// The log was truncated, and proposals follow.
    FollowerAfterTrunc,
    /// SNAP and the first half of its tree have come.
    FollowerInSnap,
    /// NEWLEADER has come.
    FollowerAwaitsUpToDate,
    /// Synchronised; a proposal is not committed.
    FollowerServes,
    /// DIFF and a committed proposal have come.
    ObserverInDiff,
    /// SNAP and the first half of its tree have come.
    ObserverInSnap,
    ObserverServes,
    /// A follower with a synchronised observer.
    ObserverMaster,
}

impl Phase {
    pub const ALL: [Self; 16] = [
        Self::Looking,
        Self::LeaderAwaitsEpochs,
        Self::LeaderAwaitsAckEpochs,
        Self::LeaderAwaitsAcks,
        Self::LeaderBroadcasts,
        Self::FollowerAwaitsLeaderInfo,
        Self::FollowerAwaitsSync,
        Self::FollowerInDiff,
        Self::FollowerAfterTrunc,
        Self::FollowerInSnap,
        Self::FollowerAwaitsUpToDate,
        Self::FollowerServes,
        Self::ObserverInDiff,
        Self::ObserverInSnap,
        Self::ObserverServes,
        Self::ObserverMaster,
    ];

    /// Starts a member and brings it into this phase.
    ///
    /// * `settings`: a bit for each setting of the member that changes which packets it accepts.
    /// * `entry_max`: `jute.maxbuffer` and its `extrasize` together.
    pub fn enter(
        self,
        settings: u8,
        exchanges: Arc<dyn SaslExchanges>,
        entry_max: usize,
    ) -> LearnerStreams {
        let mut streams = self.start(settings, exchanges, entry_max);
        match self {
            Self::Looking => {}
            Self::LeaderAwaitsEpochs
            | Self::LeaderAwaitsAckEpochs
            | Self::LeaderAwaitsAcks
            | Self::LeaderBroadcasts => self.lead(&mut streams),
            Self::FollowerAfterTrunc => {
                Self::FollowerServes.learn(&mut streams);
                let leader = leader(&streams);
                streams.end(leader);
                self.learn(&mut streams);
            }
            _ => self.learn(&mut streams),
        }
        streams.report_all();
        let (member, peers) = (&streams.member, streams.peers());
        let (is_leading, is_learning) = match member.role() {
            Role::Looking(_) => (false, false),
            Role::Leading(_) => (true, false),
            Role::Learning(_) => (false, true),
        };
        assert!(
            self.is_reached(member),
            "{self:?} is not reached: {}, leading {is_leading}, learning {is_learning}, connections {peers:?}, sent {:?}",
            member.role_name(),
            member.sockets.packets_sent
        );
        streams
    }

    const fn observes(self) -> bool {
        matches!(self, Self::ObserverInDiff | Self::ObserverInSnap | Self::ObserverServes)
    }

    fn start(
        self,
        settings: u8,
        exchanges: Arc<dyn SaslExchanges>,
        entry_max: usize,
    ) -> LearnerStreams {
        let has = |bit: u8| settings & (1 << bit) != 0;
        let is_master = self == Self::ObserverMaster;
        let zab = zab::Settings {
            tick_time_ms: 100,
            sync_limit: 5,
            reconfigs: has(0),
            relays: is_master || has(1),
            ..zab::Settings::DEFAULT
        };
        let replica = replica::Settings {
            tick_time_ms: 100,
            snap_count: 10,
            local_sessions: has(2),
            local_upgrades: has(3),
            read_only: has(4),
            seed: 7,
            ..replica::Settings::DEFAULT
        };
        let view = if self.observes() { view_of(0, 2..=4, [1]) } else { view_of(0, 1..=3, [4]) };
        let mut ensemble = EnsembleSettings {
            observer_master_port: (is_master || has(1)).then_some(2889),
            tracked_messages: has(5).then_some(5),
            ..ensemble_settings(ME, view)
        };
        ensemble.election.exchanges = exchanges.clone();
        let epochs = Epochs::both(Epoch(1));
        let member = EnsembleMember::start(*tree_at(LAST, 3), zab, replica, epochs, ensemble);
        LearnerStreams::new(member, exchanges, entry_max)
    }

    /// Whether the member is in this phase.
    pub fn is_reached(self, member: &EnsembleMember) -> bool {
        let mode = member.host.member.replica.mode();
        let sent = |name| member.sockets.sent(name);
        match (self, member.role()) {
            (Self::Looking, Role::Looking(_)) => true,
            (Self::LeaderAwaitsEpochs, Role::Leading(_)) => sent("LEADERINFO") == 0,
            (Self::LeaderAwaitsAckEpochs, Role::Leading(_)) => {
                sent("LEADERINFO") == 2 && sent("NEWLEADER") == 0
            }
            (Self::LeaderAwaitsAcks, Role::Leading(leader)) => {
                sent("NEWLEADER") == 2 && !leader.is_broadcasting()
            }
            (Self::LeaderBroadcasts, Role::Leading(leader)) => {
                mode == Mode::Leading
                    && leader.connections().count() == 2
                    && sent("UPTODATE") == 2
                    && member.core().history.committed() < member.core().history.last()
            }
            (Self::FollowerAwaitsLeaderInfo, Role::Learning(_)) => sent("ACKEPOCH") == 0,
            (
                Self::FollowerAwaitsSync
                | Self::FollowerInDiff
                | Self::FollowerInSnap
                | Self::ObserverInDiff
                | Self::ObserverInSnap,
                Role::Learning(by),
            ) => sent("ACKEPOCH") == 1 && sent("ACK") == 0 && !by.is_serving(),
            (Self::FollowerAfterTrunc, Role::Learning(by)) => {
                sent("ACKEPOCH") == 2
                    && !by.is_serving()
                    && member.core().history.last() == COMMITTED
            }
            (Self::FollowerAwaitsUpToDate, Role::Learning(by)) => {
                sent("ACK") > 0 && !by.is_serving()
            }
            (Self::FollowerServes, Role::Learning(_)) => {
                mode == Mode::Following
                    && member.core().history.committed() < member.core().history.last()
            }
            (Self::ObserverServes, Role::Learning(_)) => mode == Mode::Observing,
            (Self::ObserverMaster, Role::Learning(by)) => {
                mode == Mode::Following && by.connections().count() == 1 && sent("UPTODATE") == 1
            }
            _ => false,
        }
    }

    fn lead(self, streams: &mut LearnerStreams) {
        elect(streams, ME);
        let [follower, observer] = [(); 2].map(|()| connect(streams));
        let accepted = Epoch(1);
        streams.send(observer, &[Packet::ObserverInfo { accepted, info: learner_info(4) }]);
        if self == Self::LeaderAwaitsEpochs {
            return;
        }
        let info = learner_info(2);
        streams.send(follower, &[Packet::FollowerInfo { accepted, info }]);
        if self == Self::LeaderAwaitsAckEpochs {
            return;
        }
        for peer in [follower, observer] {
            let current = Some(Epoch(1));
            streams.send(peer, &[Packet::AckEpoch { current, last: Some(LAST) }]);
        }
        if self == Self::LeaderAwaitsAcks {
            return;
        }
        let ack = Packet::Ack { zxid: Zxid::new(EPOCH, 0) };
        for peer in [follower, observer] {
            streams.send(peer, &[ack.clone(), ack.clone()]);
        }
        let asked = |xid, op, body: &'static [u8]| {
            let body = Bytes::from_static(body);
            Packet::Request(Request { session: SESSION, xid, op, body, identities: vec![] })
        };
        streams.send(follower, &[asked(0, op::CREATE_SESSION, b"\0\0\x75\x30")]);
        streams.send(follower, &[Packet::Ack { zxid: Zxid::new(EPOCH, 1) }]);
        streams
            .send(follower, &[asked(1, op::SET_DATA, b"\0\0\0\x02/0\0\0\0\x01y\xff\xff\xff\xff")]);
    }

    fn learn(self, streams: &mut LearnerStreams) {
        elect(streams, LEADER);
        let epoch = streams.member.core().accepted.next().expect("an epoch that is not the last");
        let peer = leader(streams);
        streams.open(peer);
        if self == Self::FollowerAwaitsLeaderInfo {
            return;
        }
        streams.send(peer, &[Packet::LeaderInfo { epoch }]);
        let [first, second] = [1, 2].map(|counter| Zxid::new(epoch, counter));
        let proposal = |zxid| Packet::Proposal { zxid, entry: write(zxid) };
        match self {
            Self::FollowerAwaitsSync => return,
            Self::FollowerInDiff => {
                let zxid = LAST.next().unwrap_or(LAST);
                return streams.send(peer, &[Packet::Diff { zxid }, proposal(zxid)]);
            }
            Self::ObserverInDiff => {
                let zxid = LAST.next().unwrap_or(LAST);
                let said = [Packet::Diff { zxid }, proposal(zxid), Packet::Commit { zxid }];
                return streams.send(peer, &said);
            }
            Self::FollowerAfterTrunc => {
                return streams.send(peer, &[Packet::Trunc { zxid: COMMITTED }]);
            }
            Self::FollowerInSnap | Self::ObserverInSnap => {
                streams.send(peer, &[Packet::Snap { zxid: LAST.next().unwrap_or(LAST) }]);
                let tree = tree_stream(4);
                return streams.receive(peer, &tree[..tree.len() / 2]);
            }
            _ => {}
        }
        let view: View = streams.member.core().view.clone();
        let new_leader = Packet::NewLeader { epoch, view: view.to_string().into() };
        streams.send(peer, &[Packet::Diff { zxid: LAST }, new_leader]);
        if self == Self::FollowerAwaitsUpToDate {
            return;
        }
        streams.send(peer, &[Packet::UpToDate]);
        if self.observes() {
            return streams.send(peer, &[Packet::Inform { zxid: first, entry: write(first) }]);
        }
        streams.send(peer, &[proposal(first), Packet::Commit { zxid: first }, proposal(second)]);
        if self == Self::ObserverMaster {
            let observer = connect(streams);
            let (accepted, current) = (Epoch(1), Some(Epoch(1)));
            let said = [
                Packet::ObserverInfo { accepted, info: learner_info(4) },
                Packet::AckEpoch { current, last: Some(LAST) },
                Packet::Ack { zxid: Zxid::new(epoch, 0) },
                Packet::Ack { zxid: Zxid::new(epoch, 0) },
            ];
            streams.send(observer, &said);
        }
    }
}

/// A write of znode `/0`.
pub fn write(zxid: Zxid) -> Bytes {
    set_data(zxid, op::SET_DATA, "/0", b"x")
}

fn elect(streams: &mut LearnerStreams, leader: ServerId) {
    while !matches!(streams.member.role(), Role::Looking(Some(_))) {
        streams.report_all();
        streams.pass(5);
    }
    streams.report_all();
    streams.member.elect(leader);
    streams.report_all();
}

fn connect(streams: &mut LearnerStreams) -> QuorumPeer {
    let peer = streams.connect();
    streams.open(peer);
    peer
}

fn leader(streams: &LearnerStreams) -> QuorumPeer {
    QuorumPeer::Leader { dial: streams.member.sockets.dial }
}
