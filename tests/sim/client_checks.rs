//! The checks of what clients receive find the faults that are planted into observations.

use super::planted::{entry, fails, first_view, history, holds, new_history, zxid};
use jute::data::Stat;
use jute::proto::ReplyHeader;
use oxkeeper::model::{EventKind, View, op};
use oxkeeper::sim::check::answers::Answers;
use oxkeeper::sim::check::sessions::{LivingSessions, RealTime, Sessions, early_expiry};
use oxkeeper::sim::check::watches::Watches;
use oxkeeper::sim::check::{Answered, Seen};
use oxkeeper::sim::history::History;
use oxkeeper::sim::workload::{Body, Op, Request, Required, WatchLists};
use oxkeeper::tree::txn::write;

fn stat(czxid: i64, mzxid: i64, version: i32, owner: i64) -> Stat {
    Stat {
        czxid,
        mzxid,
        ctime: 1,
        mtime: 1,
        version,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: owner,
        data_length: 1,
        num_children: 0,
        pzxid: czxid,
    }
}

#[test]
fn wrong_answers_are_found() {
    let (mut check, history) = (Answers::default(), history());
    for xid in 1..4 {
        let request = &Request::new(Op::Ping, "");
        holds(&mut check, &asks(0, xid, request), &new_history());
    }
    let mut answered = |request: &Request, xid, zxid, err, body: &Body, wrong: Option<&str>| {
        let header = ReplyHeader { xid, zxid, err };
        let seen = Seen::Answered(Answered { client: 0, session: 7, request, header, body });
        match wrong {
            None => holds(&mut check, &seen, &history),
            Some(about) => fails(&mut check, &seen, &history, about),
        }
    };
    let get = Request::new(Op::Get { watch: false }, "/a");
    let data = |data: &[u8], version| {
        Body::Data(Some(data.to_vec()), stat(at(2), at(2 + i64::from(version) as u32), version, 0))
    };
    answered(&get, 9, at(2), 0, &data(b"1", 0), None);
    answered(&get, 9, at(3), 0, &data(b"2", 1), None);
    answered(&get, 9, at(3), 0, &data(b"1", 1), Some("other data"));
    answered(&get, 9, at(3), 0, &data(b"2", 0), Some("where there is"));
    answered(&get, 9, at(9), 0, &data(b"2", 1), Some("not committed"));
    answered(&get, 9, at(3), -101, &Body::Nothing, Some("calls for 0"));
    let set = Request::new(Op::Set { large: false }, "/a");
    let set = Request { data: b"2".to_vec(), version: 0, ..set };
    let done = Body::Stat(stat(at(2), at(3), 1, 0));
    answered(&set, 2, at(3), 0, &done, None);
    answered(&set, 4, at(3), 0, &done, Some("request 2 of 0x7"));
    answered(&set, 2, at(2), 0, &done, Some("request 1 of"));
    answered(&set, 2, at(3), -103, &Body::Nothing, None);
    answered(&set, 2, at(2), -103, &Body::Nothing, Some("calls for 0"));
    let children = Request::new(Op::Children { watch: false }, "");
    let root = Body::Children(vec!["a".into()], stat(0, 0, 0, 0));
    answered(&children, 9, at(4), 0, &root, Some("where there are"));
}

#[test]
fn reconfiguration_whose_named_version_is_not_checked_is_found() {
    let (mut check, mut history) = (Answers::default(), history());
    let view = View { version: at(5), ..first_view() };
    let write = |counter, kind, path, text: &str| {
        entry(zxid(1, counter), (7, 3 + counter as i32), kind, |to| {
            write::set_data(to, path, Some(text.as_bytes()), -1);
        })
    };
    let config = "/zookeeper/config";
    let change = write(5, op::RECONFIG, config, &view.to_string());
    for (counter, bytes) in [(5, change), (6, write(6, op::SET_DATA, "/a", "3"))] {
        history.propose(zxid(1, counter), bytes.into());
        history.commit(&[zxid(1, counter)]).unwrap();
    }
    holds(&mut check, &asks(0, 9, &Request::new(Op::Ping, "")), &new_history());
    let mut answered = |required, (zxid, err), wrong: Option<&str>| {
        let change = Op::Reconfig { required, joining: None, leaving: None, members: None };
        let (request, header) = (&Request::new(change, ""), ReplyHeader { xid: 8, zxid, err });
        let body = &Body::Nothing;
        let seen = Seen::Answered(Answered { client: 0, session: 7, request, header, body });
        match wrong {
            None => holds(&mut check, &seen, &history),
            Some(about) => fails(&mut check, &seen, &history, about),
        }
    };
    let (first, second, none) = (at(0), at(5), 77);
    for version in [second, none, 0] {
        answered(Required::Version(version), (at(5), 0), Some("not in force"));
        answered(Required::Version(version), (at(5), -103), None);
    }
    answered(Required::Version(first), (at(5), 0), None);
    answered(Required::Version(first), (at(5), -103), Some("in force"));
    answered(Required::Version(second), (at(6), -103), Some("in force"));
    answered(Required::Version(second), (at(6), -13), None);
    answered(Required::Version(first), (at(6), -103), None);
    answered(Required::Version(first), (at(6), -13), Some("not in force"));
    answered(Required::Version(first), (at(6), -14), None);
    answered(Required::Any, (at(6), -103), Some("in force"));
}

#[test]
fn writes_that_were_not_sent_or_are_done_twice_are_found() {
    let mut check = Answers::default();
    fails(&mut check, &Seen::Disconnected { client: 0 }, &history(), "never sent");
    let mut history = history();
    let again = entry(zxid(1, 5), (7, 2), op::DELETE, |to| write::delete(to, "/a"));
    history.propose(zxid(1, 5), again.into());
    history.commit(&[zxid(1, 5)]).unwrap();
    let mut check = Answers::default();
    let request = &Request::new(Op::Ping, "");
    holds(&mut check, &asks(0, 9, request), &new_history());
    fails(&mut check, &Seen::Disconnected { client: 0 }, &history, "committed after its request");
}

// A leader that expires a session may get its client's closeSession just after that: Java proposes both.
#[test]
fn write_of_a_closed_session_is_found_and_a_second_close_is_not() {
    let mut history = history();
    let close = |counter, xid| {
        entry(zxid(1, counter), (7, xid), op::CLOSE_SESSION, |to| write::close_session(to, &[]))
    };
    let late = entry(zxid(1, 7), (7, 5), op::DELETE, |to| write::delete(to, "/a"));
    let mut check = Answers::default();
    let request = &Request::new(Op::Ping, "");
    holds(&mut check, &asks(0, 9, request), &new_history());
    for (counter, bytes) in [(5, close(5, 0)), (6, close(6, 4))] {
        history.propose(zxid(1, counter), bytes.into());
        history.commit(&[zxid(1, counter)]).unwrap();
    }
    holds(&mut check, &Seen::Disconnected { client: 0 }, &history);
    history.propose(zxid(1, 7), late.into());
    history.commit(&[zxid(1, 7)]).unwrap();
    fails(&mut check, &Seen::Disconnected { client: 0 }, &history, "which is not open");
}

#[test]
fn zxids_going_back_and_replies_out_of_order_are_found() {
    let (mut check, history) = (Sessions::default(), history());
    let request = &Request::new(Op::GetPair, "");
    let asked = |xid| asks(0, xid, request);
    let answered = |xid, counter| is_answered(0, xid, request, counter);
    (1..7).for_each(|xid| holds(&mut check, &asked(xid), &history));
    holds(&mut check, &answered(1, 2), &history);
    holds(&mut check, &answered(2, 2), &history);
    fails(&mut check, &answered(3, 1), &history, "sees 0x100000001 after 0x100000002");
    fails(&mut check, &answered(5, 3), &history, "awaits Some(4)");
    holds(&mut check, &Seen::Disconnected { client: 0 }, &history);
    fails(&mut check, &answered(6, 3), &history, "awaits None");
}

#[test]
fn zxid_may_go_back_after_a_read_only_server_showed_an_uncommitted_one() {
    let (mut check, history) = (Sessions::default(), history());
    let request = &Request::new(Op::GetPair, "");
    let answered = |xid, counter| is_answered(0, xid, request, counter);
    let read_only = |xid, counter| match answered(xid, counter) {
        Seen::Answered(answered) => Seen::AnsweredReadOnly(answered),
        other => other,
    };
    (1..9).for_each(|xid| holds(&mut check, &asks(0, xid, request), &history));
    holds(&mut check, &read_only(1, 9), &history);
    fails(&mut check, &read_only(2, 8), &history, "sees 0x100000008 after 0x100000009");
    holds(&mut check, &read_only(3, 9), &history);
    holds(&mut check, &answered(4, 2), &history);
    fails(&mut check, &answered(5, 1), &history, "sees 0x100000001 after 0x100000002");
    holds(&mut check, &read_only(6, 2), &history);
    fails(&mut check, &answered(7, 1), &history, "sees 0x100000001 after 0x100000002");
}

#[test]
fn expired_sessions_that_come_back_or_live_on_are_found() {
    let (mut check, history) = (Sessions::default(), history());
    let opened = |session, is_new| Seen::SessionOpened { client: 0, session, is_new };
    holds(&mut check, &opened(7, true), &history);
    holds(&mut check, &opened(7, false), &history);
    fails(&mut check, &opened(8, true), &history, "never created");
    fails(&mut check, &opened(7, true), &history, "again");
    holds(&mut check, &Seen::AllSettled, &history);
    holds(&mut check, &Seen::Expired { client: 0, session: 7 }, &history);
    fails(&mut check, &Seen::AllSettled, &history, "and lives");
    fails(&mut check, &opened(7, false), &history, "is back");
}

#[test]
fn session_expired_answer_for_a_living_session_is_found() {
    let (mut check, history) = (LivingSessions::default(), history());
    let reported = |session| Seen::ExpiryReported { client: 0, session };
    let request = &Request::new(Op::GetPair, "");
    let asks_for = |session| Seen::Connects { client: 0, session };
    holds(&mut check, &asks_for(7), &history);
    holds(&mut check, &reported(7), &history);
    holds(&mut check, &is_answered(0, 1, request, 2), &history);
    holds(&mut check, &reported(8), &history);
    // A session that was local when the client asked for it: session 8 stands for it.
    holds(&mut check, &asks_for(8), &history);
    holds(&mut check, &reported(7), &history);
    holds(&mut check, &asks_for(7), &history);
    fails(&mut check, &reported(7), &history, "session 0x7 is over, and it lives");
    let end = entry(zxid(1, 5), (7, 0), op::CLOSE_SESSION, |to| write::close_session(to, &[]));
    holds(&mut check, &Seen::Logs { server: 1, zxid: zxid(1, 5), entry: &end }, &history);
    holds(&mut check, &reported(7), &history);
}

/// Two clients send a request at the same time, the reply that comes last has an older zxid, and its client sends another request.
fn two_are_answered(check: &mut RealTime, request: &Request, history: &History) {
    holds(check, &asks(0, 1, request), history);
    holds(check, &asks(1, 1, request), history);
    holds(check, &is_answered(0, 1, request, 3), history);
    holds(check, &is_answered(1, 1, request, 2), history);
    holds(check, &asks(1, 1, request), history);
}

#[test]
fn write_with_an_older_zxid_than_one_answered_before_it_is_found() {
    let (mut check, history) = (RealTime::default(), history());
    let request = &Request::new(Op::Delete, "/a");
    let answered = |client, counter| is_answered(client, 1, request, counter);
    two_are_answered(&mut check, request, &history);
    fails(&mut check, &answered(1, 3), &history, "was answered before");
    holds(&mut check, &asks(2, 1, request), &history);
    holds(&mut check, &Seen::Disconnected { client: 2 }, &history);
}

#[test]
fn stale_read_or_sync_is_found_where_servers_confirm_them() {
    let mut history = history();
    let (get, sync) = (Request::new(Op::Get { watch: false }, "/a"), Request::new(Op::Sync, "/a"));
    for (confirms, request, about) in [
        ((false, false), &get, ""),
        ((true, false), &get, ""),
        ((true, true), &get, "was shown before it asked"),
        ((false, false), &sync, ""),
        ((true, false), &sync, "was shown before it asked"),
    ] {
        (history.confirms_syncs, history.confirms_reads) = confirms;
        let mut check = RealTime::default();
        let answered = |client, counter| is_answered(client, 1, request, counter);
        two_are_answered(&mut check, request, &history);
        match about {
            "" => holds(&mut check, &answered(1, 2), &history),
            about => fails(&mut check, &answered(1, 2), &history, about),
        }
    }
}

#[test]
fn session_that_expires_too_early_is_found() {
    let expires = |silent_ms| Seen::Expires { session: 7, silent_ms, timeout_ms: 1000 };
    holds(&mut early_expiry, &expires(1000), &history());
    holds(&mut early_expiry, &expires(995), &history());
    fails(&mut early_expiry, &expires(994), &history(), "of 1000 ms ends after 994 ms");
}

fn at(counter: u32) -> i64 {
    zxid(1, counter).to_wire()
}

fn asks(client: usize, xid: i32, request: &Request) -> Seen<'_> {
    Seen::Asked { client, session: 7, xid, request }
}

fn is_answered(client: usize, xid: i32, request: &Request, counter: u32) -> Seen<'_> {
    let header = ReplyHeader { xid, zxid: at(counter), err: 0 };
    Seen::Answered(Answered { client, session: 7, request, header, body: &Body::Nothing })
}

fn answered<'a>(request: &'a Request, counter: u32, err: i32) -> Seen<'a> {
    let header = ReplyHeader { xid: 1, zxid: at(counter), err };
    Seen::Answered(Answered { client: 0, session: 7, request, header, body: &Body::Nothing })
}

fn event(kind: EventKind, path: &str, zxid: i64) -> Seen<'_> {
    Seen::Event { client: 0, zxid, kind, path }
}

#[test]
fn late_lost_repeated_and_wrong_events_are_found() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged};
    let (mut check, history) = (Watches::default(), history());
    let absent = Request::new(Op::Exists { watch: true }, "/e");
    let get = Request::new(Op::Get { watch: true }, "/a");
    let other = Request::new(Op::GetPair, "");
    holds(&mut check, &answered(&absent, 1, -101), &history);
    holds(&mut check, &answered(&get, 2, 0), &history);
    holds(&mut check, &event(NodeDataChanged, "/a", at(3)), &history);
    fails(&mut check, &event(NodeDataChanged, "/a", at(3)), &history, "no watch waits");
    holds(&mut check, &answered(&other, 3, 0), &history);
    fails(&mut check, &answered(&other, 4, 0), &history, "before NodeCreated /e");
    holds(&mut check, &event(NodeCreated, "/e", at(4)), &history);
    holds(&mut check, &answered(&get, 2, 0), &history);
    fails(&mut check, &event(NodeDataChanged, "/a", at(4)), &history, "should have fired");
    let children = Request::new(Op::Children { watch: true }, "/");
    holds(&mut check, &answered(&children, 2, 0), &history);
    fails(&mut check, &event(NodeChildrenChanged, "/", -1), &history, "not sent setWatches");
}

#[test]
fn events_of_persistent_watches_that_are_lost_or_repeated_are_found() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged};
    let history = history();
    for recursive in [false, true] {
        let mut check = Watches::default();
        let path = if recursive { "/" } else { "/a" };
        let follow = Request::new(Op::AddWatch { recursive }, path);
        holds(&mut check, &answered(&follow, 1, 0), &history);
        let other = Request::new(Op::GetPair, "");
        fails(&mut check, &answered(&other, 2, 0), &history, "before NodeCreated /a");
        holds(&mut check, &event(NodeCreated, "/a", at(2)), &history);
        fails(&mut check, &event(NodeCreated, "/a", at(2)), &history, "has come before");
        holds(&mut check, &answered(&other, 2, 0), &history);
        fails(&mut check, &event(NodeCreated, "/a", at(2)), &history, "no watch waits");
        fails(&mut check, &event(NodeDataChanged, "/a", at(4)), &history, "did not happen");
        holds(&mut check, &event(NodeDataChanged, "/a", at(3)), &history);
        let children = event(NodeChildrenChanged, "/", at(4));
        fails(&mut check, &children, &history, "no watch waits");
        if recursive {
            holds(&mut check, &event(NodeCreated, "/e", at(4)), &history);
        }
        holds(&mut check, &answered(&other, 4, 0), &history);
    }
}

#[test]
fn events_missed_between_connections_are_found() {
    let history = history();
    let get = Request::new(Op::Get { watch: true }, "/a");
    let again = |since| {
        let lists = WatchLists { since, data: vec!["/a".into()], ..WatchLists::default() };
        Request::new(Op::SetWatches(lists), "")
    };
    for (since, fires, about) in [(2, false, "did not fire"), (3, false, ""), (2, true, "")] {
        let mut check = Watches::default();
        let request = again(at(since));
        holds(&mut check, &answered(&get, 2, 0), &history);
        holds(&mut check, &asks(0, -8, &request), &history);
        if fires {
            holds(&mut check, &event(EventKind::NodeDataChanged, "/a", -1), &history);
        }
        match about {
            "" => holds(&mut check, &answered(&request, 4, 0), &history),
            about => fails(&mut check, &answered(&request, 4, 0), &history, about),
        }
    }
}
