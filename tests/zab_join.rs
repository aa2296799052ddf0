//! What a leader sends to one who joins while it proposes, in which order.

#[path = "zab/votes.rs"]
mod votes;

use bytes::{Bytes, BytesMut};
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId, LearnerInfo, Packet, Peer, Settings};
use votes::votes_for;

const SETTINGS: Settings = Settings { tick_time_ms: 1000, ..Settings::DEFAULT };
const EPOCH: Epoch = Epoch(1);

/// A leader with a disk that has everything at once, and what it sent to each connection.
struct Leader {
    peer: Peer,
    sent: Vec<(LearnerConnectionId, Packet)>,
}

impl Leader {
    fn step(&mut self, input: Input) {
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let mut out = Vec::new();
            self.peer.step(inputs.remove(0), &mut out);
            for action in out {
                match action {
                    Action::Append { zxid, .. } => inputs.push(Input::Flushed { through: zxid }),
                    Action::Promise { promise, epoch } => {
                        inputs.push(Input::Promised { promise, epoch });
                    }
                    Action::SendSnapshot { connection } => {
                        let zxid = self.peer.core.history.committed();
                        inputs.push(Input::SnapshotBegun { connection, zxid });
                    }
                    Action::ToLearner { connection, bytes } => {
                        let mut bytes = BytesMut::from(&bytes[..]);
                        while let Some(packet) = Packet::decode(&mut bytes).unwrap() {
                            self.sent.push((connection, packet));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn hear(&mut self, connection: LearnerConnectionId, packet: Packet) {
        self.step(Input::Learner { connection, packet });
    }

    /// `last`: of the learner's log; `None`: it needs the whole tree.
    fn joined_by(&mut self, server: i64, last: Option<Zxid>) -> LearnerConnectionId {
        let connection = LearnerConnectionId(server.unsigned_abs());
        let info =
            LearnerInfo { id: ServerId(server), protocol_version: 0x1_0000, view_version: 0 };
        self.hear(connection, Packet::FollowerInfo { accepted: Epoch(0), info });
        self.hear(connection, Packet::AckEpoch { current: Some(Epoch(0)), last });
        connection
    }

    fn names(&self, connection: LearnerConnectionId) -> Vec<&'static str> {
        self.sent.iter().filter(|sent| sent.0 == connection).map(|sent| sent.1.name()).collect()
    }
}

/// It leads with server 2, has one transaction committed and two that are not.
fn proposing() -> Leader {
    let view = View::parse("server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n").unwrap();
    let last = Some(Zxid::ZERO);
    let peer = Peer::member(ServerId(1), SETTINGS, view, (Epoch(0), Epoch(0)), last);
    let mut leader = Leader { peer, sent: Vec::new() };
    leader.step(Input::Tick);
    votes_for(&leader.peer, ServerId(1)).into_iter().for_each(|vote| leader.step(vote));
    let second = leader.joined_by(2, last);
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    for number in 1..=3 {
        leader.step(Input::Propose { zxid: Zxid::new(EPOCH, number), payload: Bytes::new() });
    }
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 1) });
    assert_eq!(leader.peer.core.history.committed(), Zxid::new(EPOCH, 1));
    leader
}

/// Java's learners before 3.9 clear at NEWLEADER what they were proposed, and die of its COMMIT.
// rows: Q-72
#[test]
fn zk_4394_what_is_not_committed_goes_behind_newleader() {
    for (last, first) in [
        (Some(Zxid::ZERO), &["DIFF", "PROPOSAL", "COMMIT"][..]),
        (Some(Zxid::new(EPOCH, 1)), &["DIFF"]),
        (None, &[]), // SNAP and its tree are sent by others.
    ] {
        let mut leader = proposing();
        let third = leader.joined_by(3, last);
        let wanted = [&["LEADERINFO"], first, &["NEWLEADER", "PROPOSAL", "PROPOSAL"]].concat();
        assert_eq!(leader.names(third), wanted, "{last:?}");
        leader.hear(third, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
        leader.hear(LearnerConnectionId(2), Packet::Ack { zxid: Zxid::new(EPOCH, 3) });
        let rest = leader.names(third).split_off(wanted.len());
        assert_eq!(rest[0], "UPTODATE", "{last:?}");
        assert!(rest[1..].iter().all(|name| *name == "COMMIT") && rest.len() > 1, "{rest:?}");
    }
}
