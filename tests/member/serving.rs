//! Where a member starts or stops serving: its stop, and ports that a configuration moves, binds or closes.

use crate::{Server, reconfiguration, sent, txn};
use oxkeeper::member::{Action, Ended, Input, ListenAddress};
use oxkeeper::model::{Epoch, ServerId, Zxid, op};
use oxkeeper::request::{ClientCommand, ClientHandle, OpenSession};
use oxkeeper::zab::Packet;
use support::builders::THREE;

/// A member that stops waits for its leader's answers for three seconds at most.
// rows: P-87
#[test]
fn stopping_member_waits_for_its_clients_requests() {
    let mut server = Server::following();
    let conn = server
        .member
        .replica
        .shared()
        .conns
        .add(|id| ClientHandle::new(id, "10.0.0.1:1".parse().unwrap(), 0));
    let open = OpenSession { conn, timeout_ms: 4000, received_us: 0 };
    let asked = server.step(Input::Client(ClientCommand::Open(open)));
    assert_eq!(sent(&asked), ["REQUEST"], "{asked:?}");
    let is_end = |action: &Action| matches!(action, Action::End(Ended::Stopped));
    assert!(!server.step(Input::Stop).iter().any(is_end), "the session is not created yet");
    assert!(!server.pass(1000).iter().any(is_end));
    assert!(server.pass(2500).iter().any(is_end), "its leader does not answer in time");
}

#[test]
fn client_port_moves_with_a_configuration_that_changes_it() {
    let move_of = |line: &str| {
        let mut server = Server::following();
        let text = format!(
            "{line}\nserver.2=b:1:2:participant\nserver.3=c:1:2:participant\nversion=100000001"
        );
        server.hear(1, vec![txn(1, op::RECONFIG, "/zookeeper/config", text.as_bytes())]);
        let (zxid, leader) = (Zxid::new(Epoch(1), 1), ServerId(3));
        let committed = server.hear(1, vec![Packet::CommitAndActivate { zxid, leader }]);
        committed.into_iter().find_map(|action| match action {
            Action::MoveClientPort(place) => Some(place),
            _ => None,
        })
    };
    assert_eq!(move_of("server.1=a:1:2:participant"), None);
    let moved = Some(ListenAddress { host: Some("a".to_owned()), port: 7 });
    assert_eq!(move_of("server.1=a:1:2:participant;a:7"), moved);
}

/// A Java follower listens at observerMasterPort from the time it follows until its process ends.
// rows: C-18 Q-92
#[test]
fn member_listens_for_observers_while_it_is_a_voter() {
    const OBSERVER: &str =
        "server.1=a:1:2:observer\nserver.2=b:1:2\nserver.3=c:7:8\nversion=100000001";
    let ports = |actions: &[Action]| -> Vec<Vec<String>> {
        let ports = actions.iter().filter_map(|action| match action {
            Action::ListenForLearners(addresses) => {
                Some(addresses.iter().map(ToString::to_string).collect())
            }
            _ => None,
        });
        ports.collect()
    };
    let mut server = Server::member(Some(9));
    server.elect();
    assert_eq!(ports(&server.join(1, Zxid::ZERO, THREE)), [[""; 0]; 0]);
    let (zxid, leader) = (Zxid::new(Epoch(1), 1), ServerId(3));
    server.hear(1, vec![reconfiguration()]);
    let committed = server.hear(1, vec![Packet::CommitAndActivate { zxid, leader }]);
    assert_eq!(ports(&committed), [["a:1"]], "it observes");
    assert_eq!(ports(&server.join(2, zxid, OBSERVER)), [[""; 0]; 0]);
    let text = format!("{THREE}version=100000002");
    let Packet::Proposal { zxid, entry } =
        txn(2, op::RECONFIG, "/zookeeper/config", text.as_bytes())
    else {
        panic!("a proposal")
    };
    let committed = server.hear(2, vec![Packet::InformAndActivate { zxid, leader, entry }]);
    assert_eq!(ports(&committed), [["a:1", "a:9"]], "it votes again");
}
