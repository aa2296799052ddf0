//! What a leader sends to a learner that joins while it proposes, and in which order.

use bytes::Bytes;
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId, LogRead, Packet, Settings, WAITING_SYNCS_MAX,
};
use support::builders::{THREE, learner_info, peer};
use support::packets::packets;
use support::peer::PeerOnDisk;

const SETTINGS: Settings = Settings { tick_time_ms: 1000, ..Settings::DEFAULT };
const EPOCH: Epoch = Epoch(1);
const THREE_AND_AN_OBSERVER: &str =
    "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer\n";

/// A leader whose disk takes no time, and what it sent on each learner connection.
struct Leader {
    server: PeerOnDisk,
    sent: Vec<(LearnerConnectionId, Packet)>,
}

impl Leader {
    fn step(&mut self, input: Input) {
        for action in self.server.settle(input) {
            if let Some(answer) = self.server.answer(&action) {
                self.step(answer);
            }
            if let Action::ToLearner { connection, bytes } = action {
                let sent = packets(&bytes).into_iter().map(|packet| (connection, packet));
                self.sent.extend(sent);
            }
        }
    }

    fn hear(&mut self, connection: LearnerConnectionId, packet: Packet) {
        self.step(Input::Learner { connection, packet });
    }

    /// A follower joins. `last`: the last zxid of its log; `None`: it needs the whole tree.
    fn joined_by(&mut self, server: i64, last: Option<Zxid>) -> LearnerConnectionId {
        let connection = LearnerConnectionId(server.unsigned_abs());
        let info = learner_info(server);
        self.hear(connection, Packet::FollowerInfo { accepted: Epoch(0), info });
        self.hear(connection, Packet::AckEpoch { current: Some(Epoch(0)), last });
        connection
    }

    /// An observer that needs the whole tree begins to join.
    fn observed_by(&mut self, server: i64) -> LearnerConnectionId {
        let connection = LearnerConnectionId(server.unsigned_abs());
        let info = learner_info(server);
        self.hear(connection, Packet::ObserverInfo { accepted: Epoch(0), info });
        self.hear(connection, Packet::AckEpoch { current: Some(Epoch(0)), last: None });
        connection
    }

    fn has_newleader(&self, connection: LearnerConnectionId) -> bool {
        self.names(connection).contains(&"NEWLEADER")
    }

    fn names(&self, connection: LearnerConnectionId) -> Vec<&'static str> {
        self.sent.iter().filter(|sent| sent.0 == connection).map(|sent| sent.1.name()).collect()
    }
}

/// A leader with follower 2, with one committed transaction and two that are not.
fn proposing() -> Leader {
    let last = Some(Zxid::ZERO);
    let server = PeerOnDisk::new(peer(1, THREE, SETTINGS, last));
    let mut leader = Leader { server, sent: Vec::new() };
    leader.step(Input::Tick);
    leader.server.votes_for(1).into_iter().for_each(|vote| leader.step(vote));
    let second = leader.joined_by(2, last);
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    for number in 1..=3 {
        leader.step(Input::Propose { zxid: Zxid::new(EPOCH, number), payload: Bytes::new() });
    }
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 1) });
    assert_eq!(leader.server.peer.core.history.committed(), Zxid::new(EPOCH, 1));
    leader
}

/// Java's learners before 3.9 discard at NEWLEADER the proposals that they have received, and fail when the COMMIT of one comes.
// rows: Q-72
#[test]
fn zk_4394_uncommitted_proposals_are_sent_after_newleader() {
    for (last, first) in [
        (Some(Zxid::ZERO), &["DIFF", "PROPOSAL", "COMMIT"][..]),
        (Some(Zxid::new(EPOCH, 1)), &["DIFF"]),
        (None, &[]), // The driver sends SNAP and the tree.
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

#[test]
fn trees_go_to_two_servers_in_no_configuration_at_a_time_and_to_every_member() {
    let mut leader = proposing();
    let strangers = [101, 102, 103, 104].map(|server| leader.observed_by(server));
    leader.step(Input::Tick);
    let served = |leader: &Leader| strangers.map(|stranger| leader.has_newleader(stranger));
    assert_eq!(served(&leader), [true, true, false, false]);
    let member = leader.joined_by(3, None);
    assert!(leader.has_newleader(member), "a member does not wait for servers in no configuration");
    leader.hear(strangers[1], Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    leader.step(Input::LearnerGone { connection: strangers[0] });
    leader.step(Input::Tick);
    assert_eq!(served(&leader), [true; 4]);
}

#[test]
fn member_observer_is_taken_however_many_strangers_wait_for_trees() {
    let last = Some(Zxid::ZERO);
    let settings = Settings { trees_max: 3, ..SETTINGS };
    let server = PeerOnDisk::new(peer(1, THREE_AND_AN_OBSERVER, settings, last));
    let mut leader = Leader { server, sent: Vec::new() };
    leader.step(Input::Tick);
    leader.server.votes_for(1).into_iter().for_each(|vote| leader.step(vote));
    let second = leader.joined_by(2, last);
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    for server in 101..120 {
        leader.observed_by(server);
    }
    let member = leader.observed_by(4);
    assert!(leader.has_newleader(member));
}

/// A zxid of the epoch before the leader's.
const fn old(counter: u32) -> Zxid {
    Zxid::new(Epoch(0), counter)
}

/// A leader with follower 2; its transactions through [`old`] 5 are in its log and not in its window.
fn restarted(settings: Settings) -> Leader {
    let last = Some(old(5));
    let server = PeerOnDisk::new(peer(1, THREE, settings, last));
    let mut leader = Leader { server, sent: Vec::new() };
    leader.step(Input::Tick);
    leader.server.votes_for(1).into_iter().for_each(|vote| leader.step(vote));
    let second = leader.joined_by(2, last);
    leader.hear(second, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    leader
}

/// An observer that has transactions through `last` joins; returns what the leader does for it at once.
fn observed(leader: &mut Leader, server: i64, last: Zxid) -> Option<&'static str> {
    let connection = LearnerConnectionId(server.unsigned_abs());
    let info = learner_info(server);
    leader.hear(connection, Packet::ObserverInfo { accepted: Epoch(0), info });
    let packet = Packet::AckEpoch { current: Some(Epoch(0)), last: Some(last) };
    let actions = leader.server.settle(Input::Learner { connection, packet });
    actions.iter().find_map(|action| match action {
        Action::ReadLog { .. } => Some("reads"),
        Action::SendSnapshot { .. } => Some("sends its tree"),
        Action::ToLearner { .. } => Some("sends"),
        Action::CloseLearner { .. } => Some("closes"),
        _ => None,
    })
}

/// The log was read for a learner that has [`old`] 1.
fn log_read(connection: LearnerConnectionId) -> Input {
    let entries = (2..=5).map(|counter| (old(counter), Bytes::new())).collect();
    Input::LogRead { connection, read: LogRead { before: Some(old(1)), entries } }
}

#[test]
fn log_is_read_for_two_servers_in_no_configuration_at_a_time_and_for_every_member() {
    let mut leader = restarted(SETTINGS);
    let mut joins = |server| observed(&mut leader, server, old(1));
    assert_eq!([101, 102].map(&mut joins), [Some("reads"); 2]);
    assert_eq!([103, 104].map(&mut joins), [Some("sends its tree"); 2]);
    assert_eq!(joins(3), Some("reads"), "a member does not wait for servers in no configuration");
    let first = LearnerConnectionId(101);
    leader.step(log_read(first));
    assert!(leader.has_newleader(first));
    assert_eq!(
        observed(&mut leader, 106, old(1)),
        Some("sends its tree"),
        "two reads of the log are not acknowledged yet"
    );
    leader.hear(first, Packet::Ack { zxid: Zxid::new(EPOCH, 0) });
    assert_eq!(observed(&mut leader, 107, old(1)), Some("reads"));
}

#[test]
fn observer_for_which_the_log_is_read_counts_toward_the_limit_on_diff_syncs() {
    let mut leader = restarted(Settings { differences_max: 1, ..SETTINGS });
    assert_eq!(observed(&mut leader, 101, old(1)), Some("reads"));
    assert_eq!(observed(&mut leader, 102, old(5)), Some("closes"));
    let first = LearnerConnectionId(101);
    leader.step(log_read(first));
    assert!(leader.has_newleader(first), "the observer's own entry counts against its limit");
}

#[test]
fn learner_with_too_many_syncs_that_wait_for_a_commit_is_disconnected() {
    let mut leader = proposing();
    let second = LearnerConnectionId(2);
    let third = leader.joined_by(3, Some(Zxid::ZERO));
    let mut closes = |connection| {
        let actions = leader.server.settle(Input::Sync { connection });
        actions.iter().any(|action| matches!(action, Action::CloseLearner { .. }))
    };
    assert!((0..WAITING_SYNCS_MAX).all(|_| !closes(second)));
    assert!(!closes(third), "other learners' syncs are accepted");
    assert!(closes(second));
}
