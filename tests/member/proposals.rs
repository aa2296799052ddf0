//! Proposals that are no transactions: a learner leaves the leader that sends them, and its log stays readable.

use crate::{Server, sent};
use bytes::Bytes;
use oxkeeper::member::QuorumPeer;
use oxkeeper::model::{Epoch, ServerId, Zxid, op};
use oxkeeper::store::Command;
use oxkeeper::zab::Packet;
use support::txns::set_data;

const AT: Zxid = Zxid::new(Epoch(1), 1);

/// Entries that no leader logs as its transaction at [`AT`].
fn unreadable() -> Vec<(&'static str, Bytes)> {
    let good = set_data(AT, op::SET_DATA, "/a", b"x");
    vec![
        ("empty", Bytes::new()),
        ("one byte", good.slice(..1)),
        ("header cut before its zxid", good.slice(..12)),
        ("header cut after its zxid", good.slice(..20)),
        ("header cut before its last byte", good.slice(..31)),
        ("header alone", good.slice(..32)),
        ("record cut", good.slice(..40)),
        ("zxid of another transaction", set_data(Zxid::new(Epoch(1), 2), op::SET_DATA, "/a", b"x")),
        ("unknown type", set_data(AT, 99, "/a", b"x")),
    ]
}

/// Gives the packet to a server and asserts that it leaves its leader, and neither logs the packet nor ends.
#[track_caller]
fn assert_refused(mut server: Server, packet: Packet, what: &str) {
    let name = packet.name();
    let leader = QuorumPeer::Leader { dial: 1 };
    assert!(server.member.is_current(leader), "{what} {name}");
    server.step(oxkeeper::member::Input::Packets { from: leader, packets: vec![packet] });
    let appends = |command: &Command| matches!(command, Command::Append { .. });
    assert!(!server.asked.log.iter().any(appends), "{what} {name} is logged");
    assert!(!server.member.is_current(leader), "{what} {name}");
    assert!(server.ended.is_none(), "{what} {name}");
}

// Java's learner ends its connection too: SerializeUtils.deserializeTxn throws.
#[test]
fn learner_leaves_a_leader_whose_proposal_is_no_transaction() {
    for (what, entry) in unreadable() {
        let leader = ServerId(3);
        for packet in [
            Packet::Proposal { zxid: AT, entry: entry.clone() },
            Packet::Inform { zxid: AT, entry: entry.clone() },
            Packet::InformAndActivate { zxid: AT, leader, entry },
        ] {
            assert_refused(Server::following(), packet, what);
        }
    }
}

#[test]
fn learner_leaves_a_leader_whose_history_has_an_entry_that_is_no_transaction() {
    for (what, entry) in unreadable() {
        let mut server = Server::with_leader();
        server.hear(1, vec![Packet::LeaderInfo { epoch: Epoch(1) }]);
        server.hear(1, vec![Packet::Diff { zxid: AT }]);
        assert_refused(server, Packet::Proposal { zxid: AT, entry }, what);
    }
}

/// A refused write takes a zxid too: its entry has a header and an error code.
#[test]
fn learner_logs_the_entry_of_a_refused_write() {
    use jute::Encode;
    let mut entry = Vec::new();
    let header = jute::txn::TxnHeader {
        client_id: 1,
        cxid: 1,
        zxid: AT.to_wire(),
        time: 1,
        kind: op::ERROR,
    };
    header.encode(&mut entry);
    entry.extend_from_slice(&(-101_i32).to_be_bytes());
    let mut server = Server::following();
    let done = server.hear(1, vec![Packet::Proposal { zxid: AT, entry: entry.into() }]);
    assert_eq!(sent(&done), ["ACK"]);
}
