//! The decisions around a replica: which connection is current, the order of disk work, which files change.
//!
//! One follower (server 1 of three) whose leader is server 3, or a standalone server; inputs by hand, actions compared.
// long because: one member with its builders, whose tests are read together.

mod member {
    mod config_files;
    mod configured;
    mod dial;
    mod election_connection;
    mod election_connections;
    mod election_hello;
    mod listeners;
    mod phases;
    mod proposals;
    pub mod quorum_connection;
    mod quorum_outbox;
    mod quorum_sasl;
    mod restoring;
    mod serving;
    mod start;
    pub mod strangers;
}
use bytes::Bytes;
use member::strangers::Strangers;
use oxkeeper::member::election_connections::{self, ConnectionId, Input as Election};
use oxkeeper::member::failure::FailureCause;
use oxkeeper::member::{
    Action, ConfigChange, Ended, EnsembleSettings, Input, QuorumPeer, SnapshotJob,
};
use oxkeeper::model::{Epoch, ServerId, View, Zxid, op};
use oxkeeper::replica::{self, Replica};
use oxkeeper::request::{Limits, Shared};
use oxkeeper::store::Command;
use oxkeeper::store::epoch::EpochFile;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{
    self, LearnerConnectionId, LearnerInfo, Notification, Packet, Peer, PeerState, Vote,
};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use support::builders::{self, THREE, election_settings, peer};
use support::member::{MemberOnDisk, notification_bytes};
use support::packets::packets;
use support::trees::tree_at;
use support::txns::set_data;

/// Number of members among strangers, each with its own seed and settings.
const STRANGERS: u64 = 100;

/// A member with a log thread on its own disk; packets that it sends are dropped.
struct Server(MemberOnDisk);

impl Deref for Server {
    type Target = MemberOnDisk;

    fn deref(&self) -> &MemberOnDisk {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut MemberOnDisk {
        &mut self.0
    }
}

const RECONFIGS: zab::Settings = zab::Settings { reconfigs: true, ..zab::Settings::DEFAULT };

fn shared() -> Arc<Shared> {
    builders::shared(Tree::new(Options::default()), Limits::default())
}

impl Server {
    fn standalone() -> Self {
        let replica = Replica::standalone(shared(), replica::Settings::DEFAULT, 0);
        Self(MemberOnDisk::new(replica, None))
    }

    fn member(observer_master_port: Option<u16>) -> Self {
        Self::with_proposed(None, observer_master_port)
    }

    /// * `proposed`: a configuration in its history that may not be committed.
    fn with_proposed(proposed: Option<&str>, observer_master_port: Option<u16>) -> Self {
        let mut peer = peer(1, THREE, RECONFIGS, Some(Zxid::ZERO));
        if let Some(text) = proposed {
            peer.core.see_logged_view(View::parse(text).unwrap());
        }
        Self::with_peer(shared(), peer, observer_master_port)
    }

    /// A member with a tree, a log that ends with it, and a currentEpoch of 0.
    fn with_history(last: Zxid) -> Self {
        let shared = builders::shared(*tree_at(last, 1), Limits::default());
        Self::with_peer(shared, peer(1, THREE, RECONFIGS, Some(last)), None)
    }

    fn with_peer(shared: Arc<Shared>, peer: Peer, observer_master_port: Option<u16>) -> Self {
        let replica = Replica::member(shared, peer, replica::Settings::DEFAULT, 0);
        let ensemble = EnsembleSettings {
            my_id: ServerId(1),
            own: View::parse(THREE).unwrap().members.remove(&ServerId(1)),
            view: View::parse(THREE).unwrap(),
            decided: View::parse(THREE).unwrap(),
            election: election_connections::Settings {
                addresses: vec![("a".to_owned(), 2)],
                ..election_settings(1)
            },
            listen_on_all_addresses: false,
            observer_master_port,
            backs_up_config: true,
            writes_config: true,
            tracked_messages: None,
        };
        Self(MemberOnDisk::new(replica, Some(ensemble)))
    }

    /// A member whose two other voters vote for server 3: it dials server 3.
    fn with_leader() -> Self {
        let mut server = Self::member(None);
        server.elect();
        server
    }

    /// A follower that serves.
    fn following() -> Self {
        let mut server = Self::with_leader();
        server.join(1, Zxid::ZERO, THREE);
        assert_eq!(server.member.replica.mode(), replica::Mode::Following);
        server
    }

    /// Synchronises with a leader that has no more than this server, whose history ends at `last`.
    fn join(&mut self, dial: u64, last: Zxid, view: &'static str) -> Vec<Action> {
        let packets = [
            Packet::LeaderInfo { epoch: Epoch(1) },
            Packet::Diff { zxid: last },
            Packet::NewLeader { epoch: Epoch(1), view: Bytes::from(view) },
            Packet::UpToDate,
        ];
        packets.into_iter().flat_map(|packet| self.hear(dial, vec![packet])).collect()
    }

    fn elect(&mut self) {
        let actions = self.pass(5);
        let dials = actions.iter().filter_map(|action| match action {
            Action::Election(election_connections::Action::Dial { connection, .. }) => {
                Some(*connection)
            }
            _ => None,
        });
        let dials: Vec<ConnectionId> = dials.collect();
        assert_eq!(dials.len(), 2, "{actions:?}");
        // The others dial this server instead.
        for connection in dials {
            let error = "refused".to_owned();
            self.step(Input::Election(Election::DialFailed { connection, error }));
        }
        let mut dialed = Vec::new();
        for (from, state) in [(2, PeerState::Following), (3, PeerState::Leading)] {
            let vote = Vote { epoch: 0, zxid: 0, leader: ServerId(3) };
            let config = Some(Bytes::from(THREE));
            let notification =
                Notification { is_ours: true, ..builders::notification(state, vote, 1, config) };
            dialed = self.hear_vote(from, &notification);
        }
        assert_eq!(dial(&dialed), Some((1, "c:1".to_owned())), "{dialed:?}");
    }

    /// Receives a notification over a connection from the other server, whose id is larger.
    fn hear_vote(&mut self, from: i64, notification: &Notification) -> Vec<Action> {
        let from = ServerId(from);
        let known = self.accepted.get(&from).copied();
        let connection = known.unwrap_or_else(|| {
            let (connection, _) = self.accept().expect("there is room");
            self.accepted.insert(from, connection);
            connection
        });
        let bytes = notification_bytes(from, notification, known.is_none().then_some(&[]));
        self.settle(Input::Election(Election::Received { connection, bytes }))
    }

    /// Where server `to` is dialed once the connection from it has ended.
    fn redialed(&mut self, to: i64) -> Option<Vec<(String, u16)>> {
        let connection = self.accepted.remove(&ServerId(to))?;
        let mut actions = self.step(Input::Election(Election::Ended { connection, error: None }));
        actions.extend(self.step(Input::Election(Election::Dial { to: ServerId(to) })));
        actions.into_iter().find_map(|action| match action {
            Action::Election(election_connections::Action::Dial { addresses, .. }) => {
                Some(addresses)
            }
            _ => None,
        })
    }

    fn hear(&mut self, dial: u64, packets: Vec<Packet>) -> Vec<Action> {
        self.settle(Input::Packets { from: QuorumPeer::Leader { dial }, packets })
    }
}

/// Number and address of a dial.
fn dial(actions: &[Action]) -> Option<(u64, String)> {
    actions.iter().find_map(|action| match action {
        Action::DialLeader { dial, addresses, .. } => {
            let shown: Vec<String> =
                addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            Some((*dial, shown.join(" ")))
        }
        _ => None,
    })
}

/// Names of the packets for the leader.
fn sent(actions: &[Action]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for action in actions {
        if let Action::SendToLeader { bytes } = action {
            names.extend(packets(bytes).iter().map(Packet::name));
        }
    }
    names
}

fn txn(counter: u32, kind: i32, path: &str, data: &[u8]) -> Packet {
    let zxid = Zxid::new(Epoch(1), counter);
    Packet::Proposal { zxid, entry: set_data(zxid, kind, path, data) }
}

/// Server 3 leads, proposes that server 1 becomes an observer, and goes on proposing.
fn reconfiguration() -> Packet {
    let text = "server.1=a:1:2:observer\nserver.2=b:1:2:participant\nserver.3=c:7:8:participant\n\
                version=100000001";
    txn(1, op::RECONFIG, "/zookeeper/config", text.as_bytes())
}

// rows: Q-60
#[test]
fn packets_of_a_leaders_connection_that_was_given_up_are_discarded() {
    let mut server = Server::with_leader();
    let from = QuorumPeer::Leader { dial: 1 };
    server.step(Input::Disconnected { from, why: "reset".to_owned() });
    assert!(!server.member.is_current(from));
    let mut late = server.hear(1, vec![Packet::LeaderInfo { epoch: Epoch(9) }]);
    late.extend(server.step(Input::Progress { from }));
    late.extend(server.step(Input::Disconnected { from, why: "again".to_owned() }));
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(server.member.replica.peer().core.accepted, Epoch(0));
}

/// A Java leader goes on proposing after the reconfiguration that names another leader.
// rows: Q-97
#[test]
fn packets_read_after_the_one_that_names_another_leader_are_discarded() {
    let mut server = Server::following();
    server.hear(1, vec![reconfiguration()]);
    let committed = Packet::CommitAndActivate { zxid: Zxid::new(Epoch(1), 1), leader: ServerId(2) };
    let ping = Packet::Ping { zxid: 0, touched: None };
    let actions = server.hear(1, vec![committed, txn(2, op::SET_DATA, "/zookeeper", b""), ping]);
    assert_eq!(dial(&actions), Some((2, "b:1".to_owned())), "{actions:?}");
    let dials = actions.iter().filter(|action| matches!(action, Action::DialLeader { .. }));
    assert_eq!(dials.count(), 1, "{actions:?}");
    let is_looking = matches!(server.member.replica.peer().role(), zab::Role::Looking(_));
    assert!(!is_looking, "the named leader is followed without an election");
    let after = actions.iter().skip_while(|action| !matches!(action, Action::DialLeader { .. }));
    let after: Vec<&Action> = after.collect();
    assert!(after.iter().all(|action| !matches!(action, Action::Log(_))), "{after:?}");
    assert_eq!(sent(&actions).iter().filter(|name| **name == "PING").count(), 0, "{actions:?}");
    let ended: Vec<bool> = actions.iter().map(|a| matches!(a, Action::CloseLeader)).collect();
    assert_eq!(ended.iter().filter(|is_close| **is_close).count(), 1, "the old connection");
}

#[test]
fn learner_leaves_a_leader_whose_proposal_has_another_zxid_than_its_transaction() {
    let mut server = Server::following();
    let Packet::Proposal { entry, .. } = txn(7, op::SET_DATA, "/zookeeper", b"") else { return };
    let actions = server.hear(1, vec![Packet::Proposal { zxid: Zxid::new(Epoch(1), 1), entry }]);
    assert!(actions.iter().any(|action| matches!(action, Action::CloseLeader)), "{actions:?}");
    assert!(!actions.iter().any(|action| matches!(action, Action::Log(_))), "{actions:?}");
    assert_eq!(server.member.replica.mode(), replica::Mode::Resting);
}

// rows: D-08 D-09 D-11
#[test]
fn configuration_files_change_before_later_packets_are_sent() {
    let mut server = Server::following();
    let proposed = server.hear(1, vec![reconfiguration()]);
    let file = proposed.iter().position(|action| {
        matches!(action, Action::ChangeConfigFiles(ConfigChange::Proposed { views, .. }) if views[0].version == 0x1_0000_0001)
    });
    let ack = proposed.iter().position(|action| matches!(action, Action::SendToLeader { .. }));
    assert!(file.is_some() && file < ack, "{proposed:?}");
    let committed = Packet::CommitAndActivate { zxid: Zxid::new(Epoch(1), 1), leader: ServerId(3) };
    let committed = server.hear(1, vec![committed]);
    let change = committed.iter().find_map(|action| match action {
        Action::ChangeConfigFiles(ConfigChange::Committed { view, removes_proposed, .. }) => {
            Some((view.version, *removes_proposed))
        }
        _ => None,
    });
    assert_eq!(change, Some((0x1_0000_0001, true)), "{committed:?}");
    let members = |action: &Action| matches!(action, Action::SetMembers(_));
    assert!(proposed.iter().any(members) && committed.iter().any(members), "{committed:?}");
    let port = |action: &Action| matches!(action, Action::ListenForLearners(_));
    assert!(!committed.iter().any(port), "this server's own port has not changed");
    assert_eq!(server.redialed(3), Some(vec![("c".to_owned(), 8)]));
}

#[test]
fn member_starts_with_its_ports_and_a_copy_of_its_configuration() {
    let mut server = Server::member(Some(9));
    let out = server.start();
    let [
        Action::ChangeConfigFiles(ConfigChange::TestFolder),
        Action::ChangeConfigFiles(ConfigChange::CopyStaticFile),
        Action::SetMembers(members),
        Action::ListenForLearners(addresses),
        Action::Election(election_connections::Action::Listen { .. }),
    ] = &out[..]
    else {
        panic!("{out:?}")
    };
    let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["a:1", "a:9"]);
    assert_eq!(members.len(), 3);
    let out = Server::standalone().start();
    assert!(out.is_empty(), "{out:?}");
}

// rows: D-46
#[test]
fn truncation_before_the_leaders_tree_is_marked_as_replaced() {
    let mut server = Server::following();
    server.hear(1, vec![txn(1, op::SET_DATA, "/zookeeper", b"")]);
    let from = QuorumPeer::Leader { dial: 1 };
    server.step(Input::Disconnected { from, why: "reset".to_owned() });
    // The next leader has another history: this server's log is truncated, and a tree comes.
    server.elect_again();
    let tree = Box::new(Tree::new(Options::default()));
    let actions = server.step(Input::LeaderTree { dial: 2, zxid: Zxid::ZERO, tree });
    assert_eq!(cut(&actions), Some((Zxid::ZERO, true)), "{actions:?}");
    let job = actions.iter().find_map(|action| match action {
        Action::WriteSnapshot(job) => Some(*job),
        _ => None,
    });
    assert!(job.is_some_and(|job| job.is_leaders), "{actions:?}");
}

/// The end of a truncation, and whether a leader's tree replaces what was there.
fn cut(actions: &[Action]) -> Option<(Zxid, bool)> {
    actions.iter().find_map(|action| match action {
        Action::Log(Command::Truncate { to, replaced }) => Some((*to, *replaced)),
        _ => None,
    })
}

/// A synchronisation had got the log ahead of currentEpoch when the server ended, and the next leader's history ends before that.
// rows: D-46
#[test]
fn truncation_before_a_tree_of_a_later_epoch_than_the_current_one_is_marked_as_replaced() {
    let zxid = |counter| Zxid::new(Epoch(2), counter);
    let mut server = Server::with_history(zxid(2));
    server.elect();
    server.hear(1, vec![Packet::LeaderInfo { epoch: Epoch(3) }]);
    let tree = tree_at(zxid(1), 1);
    let actions = server.step(Input::LeaderTree { dial: 1, zxid: zxid(1), tree });
    let is_noted = |action: &Action| matches!(action, Action::Log(Command::NoteJoining));
    assert!(actions.iter().any(is_noted), "{actions:?}");
    assert_eq!(cut(&actions), Some((zxid(1), true)), "{actions:?}");
}

fn begin_snapshot(server: &mut Server) -> SnapshotJob {
    let out = server.snapshot();
    match &out[..] {
        [Action::WriteSnapshot(job)] => *job,
        _ => panic!("{out:?}"),
    }
}

#[test]
fn members_of_a_configuration_that_was_truncated_are_members_no_more() {
    let hosts_of_3 = |actions: &[Action]| {
        let members = actions.iter().filter_map(|action| match action {
            Action::SetMembers(members) => Some(&members[&ServerId(3)]),
            _ => None,
        });
        members.last().expect("the members are set").iter().cloned().collect::<Vec<_>>()
    };
    let text = "server.1=a:1:2:participant\nserver.2=b:1:2:participant\n\
                server.3=new:7:8:participant\nversion=100000001";
    let mut server = Server::following();
    let proposed = server.hear(1, vec![txn(1, op::RECONFIG, "/zookeeper/config", text.as_bytes())]);
    assert_eq!(hosts_of_3(&proposed), ["c", "new"]);
    let from = QuorumPeer::Leader { dial: 1 };
    server.step(Input::Disconnected { from, why: "reset".to_owned() });
    server.elect_again();
    let joins = [
        Packet::Trunc { zxid: Zxid::ZERO },
        Packet::NewLeader { epoch: Epoch(2), view: Bytes::from(THREE) },
        Packet::UpToDate,
    ];
    let joined = joins.into_iter().flat_map(|packet| server.hear(2, vec![packet]));
    assert_eq!(hosts_of_3(&joined.collect::<Vec<_>>()), ["c"]);
}

// rows: D-33
#[test]
fn a_snapshot_begun_before_a_truncation_gets_no_name_after_it() {
    for truncates in [false, true] {
        let mut server = Server::following();
        server.hear(1, vec![txn(1, op::SET_DATA, "/zookeeper", b"")]);
        let job = begin_snapshot(&mut server);
        if truncates {
            let from = QuorumPeer::Leader { dial: 1 };
            server.step(Input::Disconnected { from, why: "reset".to_owned() });
            server.elect_again();
            let cut = server.hear(2, vec![Packet::Trunc { zxid: Zxid::ZERO }]);
            let is_cut = |action: &Action| matches!(action, Action::Log(Command::Truncate { .. }));
            assert!(cut.iter().any(is_cut), "{cut:?}");
        }
        let written = server.write_snapshot(job);
        assert!(matches!(written, Input::SnapshotWritten { draft: Some(_), .. }));
        let actions = server.step(written);
        let is_placed =
            matches!(actions[..], [Action::Log(Command::Place { replaces: false, .. })]);
        let is_discarded = matches!(actions[..], [Action::DiscardSnapshot(_)]);
        assert_eq!((is_placed, is_discarded), (!truncates, truncates), "{actions:?}");
    }
}

impl Server {
    /// Server 2 leads the next epoch.
    fn elect_again(&mut self) {
        for (from, state) in [(2, PeerState::Leading), (3, PeerState::Following)] {
            let vote = Vote { epoch: 1, zxid: 1 << 32, leader: ServerId(2) };
            let config = Some(Bytes::from(THREE));
            let notification =
                Notification { is_ours: true, ..builders::notification(state, vote, 7, config) };
            self.hear_vote(from, &notification);
        }
        self.hear(2, vec![Packet::LeaderInfo { epoch: Epoch(2) }]);
    }
}

#[test]
fn members_that_only_the_proposed_configuration_has_are_dialed_after_a_restart() {
    let text = format!("{THREE}\nserver.4=d:9:10:participant\nversion=100000001");
    let mut server = Server::with_proposed(Some(&text), None);
    let actions = server.pass(5);
    let dialed = actions.iter().filter_map(|action| match action {
        Action::Election(election_connections::Action::Dial { addresses, .. }) => {
            Some(addresses[0].clone())
        }
        _ => None,
    });
    let dialed: Vec<(String, u16)> = dialed.collect();
    assert_eq!(dialed, [("b".to_owned(), 2), ("c".to_owned(), 2), ("d".to_owned(), 10)]);
}

// Found by a world: seed 95427003482.
/// Operators see why no server leads: `server.N` lines are compared with those in the notifications.
#[test]
fn members_with_other_lines_are_known_while_they_are_connected() {
    let mut server = Server::member(None);
    let others = |server: &Server| server.member.reach().other_lines();
    let vote = Vote { epoch: 0, zxid: 0, leader: ServerId(2) };
    let hear = |server: &mut Server, config: Option<&str>| {
        let config = config.map(|text| Bytes::copy_from_slice(text.as_bytes()));
        server.hear_vote(2, &builders::notification(PeerState::Looking, vote, 1, config));
        others(server)
    };
    let lines = "server.2=b:1:2\nserver.5=c:1:2\nserver.4=d:1:2:observer";
    assert_eq!(hear(&mut server, Some(lines)), Some("2 has voters 2 5".to_owned()));
    assert_eq!(hear(&mut server, Some(THREE)), None);
    assert_eq!(hear(&mut server, None), None, "before 3.5 there is no configuration");
    assert!(hear(&mut server, Some(lines)).is_some());
    server.redialed(2);
    assert_eq!(others(&server), None);
    let in_force = format!("{lines}\nversion=100000000");
    assert_eq!(hear(&mut server, Some(&in_force)), None, "no operator wrote it");
}

#[test]
fn leader_that_only_the_proposed_configuration_has_is_dialed() {
    let mut server = Server::following();
    let text = format!("{THREE}\nserver.4=d:9:10:participant\nversion=100000001");
    server.hear(1, vec![txn(1, op::RECONFIG, "/zookeeper/config", text.as_bytes())]);
    let from = QuorumPeer::Leader { dial: 1 };
    server.step(Input::Disconnected { from, why: "reset".to_owned() });
    let mut dialed = None;
    for (from, state) in
        [(2, PeerState::Following), (3, PeerState::Following), (4, PeerState::Leading)]
    {
        let vote = Vote { epoch: 1, zxid: (1 << 32) + 1, leader: ServerId(4) };
        let config = Some(Bytes::from(THREE));
        let notification =
            Notification { is_ours: true, ..builders::notification(state, vote, 7, config) };
        dialed = dialed.or(dial(&server.hear_vote(from, &notification)));
    }
    assert_eq!(dialed, Some((2, "d:9".to_owned())));
}

#[test]
fn freeze_of_a_tree_for_a_disconnected_learner_ends_at_once() {
    let mut server = Server::standalone();
    let job = begin_snapshot(&mut server);
    let shared = server.member.replica.shared().clone();
    assert!(shared.state.tree.read().holds(job.frozen));
    assert!(server.step(Input::TreeSent(job.frozen)).is_empty());
    assert!(!shared.state.tree.read().holds(job.frozen));
    // Sent to no learner: a standalone server has none.
    let learner = QuorumPeer::Learner(LearnerConnectionId(4));
    assert!(server.step(Input::Packets { from: learner, packets: vec![Packet::Sync] }).is_empty());
}

#[test]
fn a_snapshot_without_a_thread_ends_the_server_only_if_it_is_the_leaders_tree() {
    let mut server = Server::standalone();
    let job = begin_snapshot(&mut server);
    assert!(matches!(Input::snapshot_not_begun(job), Input::SnapshotWritten { draft: None, .. }));
    let mut leaders = job;
    leaders.is_leaders = true;
    assert!(matches!(Input::snapshot_not_begun(leaders), Input::Failed { exit: 10, .. }));
    let actions = server.step(Input::snapshot_not_begun(job));
    assert!(actions.is_empty(), "{actions:?}");
}

// rows: P-87
#[test]
fn a_server_that_stops_ends_once_nothing_is_outstanding() {
    let mut server = Server::standalone();
    let actions = server.step(Input::Stop);
    assert!(matches!(actions[..], [Action::End(Ended::Stopped)]), "{actions:?}");
    let mut server = Server::standalone();
    let cause = FailureCause::Other;
    let failed = Input::Failed { reason: "a test".to_owned(), exit: 7, cause };
    let actions = server.step(failed);
    let end = Ended::Failed { reason: "a test".to_owned(), exit: 7, cause };
    assert!(matches!(&actions[..], [Action::End(ended)] if *ended == end), "{actions:?}");
}

#[test]
fn accepted_epoch_is_saved_in_its_file_before_ackepoch_is_sent() {
    let mut server = Server::with_leader();
    let actions = server.hear(1, vec![Packet::LeaderInfo { epoch: Epoch(1) }]);
    let is_accepted = |action: &Action| {
        matches!(
            action,
            Action::Log(Command::SaveEpoch { file: EpochFile::Accepted, epoch: Epoch(1) })
        )
    };
    let saved = actions.iter().position(is_accepted);
    let sent_at = actions.iter().position(|action| matches!(action, Action::SendToLeader { .. }));
    assert!(saved.is_some() && saved < sent_at, "{actions:?}");
    assert_eq!(sent(&actions), ["ACKEPOCH"]);
}

// rows: Q-60
#[test]
fn oldest_learner_connection_without_a_hello_is_closed_above_the_limit() {
    let mut server = Server::member(None);
    let connect = |server: &mut Server, number: u64| {
        let connection = LearnerConnectionId(number);
        server.step(Input::LearnerConnected { connection, address: format!("a:{number}") })
    };
    for number in 0..256 {
        assert!(connect(&mut server, number).is_empty(), "{number}");
    }
    let info = LearnerInfo { id: ServerId(2), protocol_version: 0x10000, view_version: 0 };
    let hello = Packet::FollowerInfo { accepted: Epoch(0), info };
    let from = QuorumPeer::Learner(LearnerConnectionId(0));
    server.step(Input::Packets { from, packets: vec![hello] });
    assert!(connect(&mut server, 256).is_empty(), "the first has sent its hello");
    let actions = connect(&mut server, 257);
    let oldest = LearnerConnectionId(1);
    assert!(
        matches!(actions[..], [Action::CloseLearner { connection }] if connection == oldest),
        "{actions:?}"
    );
    assert!(!server.member.is_current(QuorumPeer::Learner(oldest)));
}

// Whatever other servers send, and whenever: none of it may break an assertion.
#[test]
fn member_among_strangers_trips_no_assertion_and_stops_when_asked() {
    let mut roles = BTreeMap::<&str, usize>::new();
    for seed in 1..=STRANGERS {
        let mut strangers = match seed % 10 {
            9 => Strangers::standalone(seed),
            _ => Strangers::member(seed),
        };
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            strangers.live(1500);
            strangers.stop();
        }));
        assert!(lived.is_ok(), "member among strangers {seed}");
        for (role, steps) in strangers.member.roles {
            *roles.entry(role).or_default() += steps;
        }
    }
    for role in [
        "not serving",
        "standalone",
        "leading learners",
        "following",
        "following with observers",
        "observing",
    ] {
        assert!(roles.get(role).is_some_and(|steps| *steps > 300), "{role}: {roles:?}");
    }
}
