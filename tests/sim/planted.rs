//! For the tests of the checks: a short history, and assertions on what a check says about an observation.

use jute::Encode;
use jute::txn::{TxnDigest, TxnHeader};
use oxkeeper::model::{Epoch, View, Zxid, op};
use oxkeeper::sim::check::{Check, Seen};
use oxkeeper::sim::history::History;
use oxkeeper::tree::txn::{CreateKind, write};

pub fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

pub fn entry(
    zxid: Zxid,
    (session, xid): (i64, i32),
    kind: i32,
    body: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = TxnHeader { client_id: session, cxid: xid, zxid: zxid.to_wire(), time: 1, kind };
    header.encode(&mut bytes);
    body(&mut bytes);
    TxnDigest { version: 2, tree_digest: zxid.to_wire() }.encode(&mut bytes);
    bytes
}

/// The history of three voters without a transaction.
pub fn new_history() -> History {
    History::new(0, false, first_view())
}

/// Servers 0, 1 and 2 vote.
pub fn first_view() -> View {
    let line = |id| format!("server.{id}=host{id}:2888:3888:participant;2181");
    View::parse(&[0, 1, 2].map(line).join("\n")).expect("three servers")
}

/// Epoch 1, led by server 0: session 7 opens, creates /a, sets its data (version 1), creates the ephemeral /e.
pub fn history() -> History {
    let mut history = new_history();
    history.leaders.insert(Epoch(1), (0, Zxid::ZERO));
    let open = oxkeeper::model::OPEN_ACL;
    let entries = [
        entry(zxid(1, 1), (7, 0), op::CREATE_SESSION, |to| jute::put_i32(to, 1000)),
        entry(zxid(1, 2), (7, 1), op::CREATE, |to| {
            write::create(to, "/a", Some(b"1"), open, CreateKind::Persistent, 1);
        }),
        entry(zxid(1, 3), (7, 2), op::SET_DATA, |to| {
            write::set_data(to, "/a", Some(b"2"), 1);
        }),
        entry(zxid(1, 4), (7, 3), op::CREATE, |to| {
            write::create(to, "/e", Some(b"3"), open, CreateKind::Ephemeral, 2);
        }),
    ];
    for (at, bytes) in entries.into_iter().enumerate() {
        history.propose(zxid(1, at as u32 + 1), bytes.into());
    }
    let zxids = history.between(Zxid::ZERO, zxid(1, 4)).expect("one epoch");
    history.commit(&zxids).expect("well formed");
    history
}

#[track_caller]
pub fn fails(check: &mut dyn Check, seen: &Seen<'_>, history: &History, about: &str) {
    let error = check.see(seen, history).expect_err("it finds the planted fault");
    assert!(error.contains(about), "{error}");
}

#[track_caller]
pub fn holds(check: &mut dyn Check, seen: &Seen<'_>, history: &History) {
    check.see(seen, history).expect("nothing is wrong with this");
}
