//! The order of replies and events, and what waits for what.

use super::harness::{World, limits};
use oxkeeper::model::op;
use oxkeeper::model::sync::Ordering;
use oxkeeper::request::Limits;
use support::builders::FIRST_SESSION;
use support::requests::{
    close, create, get, look, ping, raw, set, set_acl_for, set_watches, sync, watch,
};

// rows: P-83 P-26
#[test]
fn a_read_waits_for_the_writes_before_it_and_sees_no_later_one() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create(1, "/a", "0")]);
    assert_eq!(world.heard(a), ["1 @3 ok /a"]);
    world.hold_log(true);
    world.say(a, [set(2, "/a", "1"), get(3, "/a"), set(4, "/a", "2"), get(5, "/a")]);
    assert!(world.heard(a).is_empty(), "neither the read nor the requests after it are answered");
    world.say(b, [get(1, "/a")]);
    assert_eq!(world.heard(b), ["1 @3 ok \"0\" v0"], "reads of other clients do not wait");
    world.hold_log(false);
    assert_eq!(
        world.heard(a),
        ["2 @4 ok v1", "3 @4 ok \"1\" v1", "4 @5 ok v2", "5 @5 ok \"2\" v2"]
    );
}

// rows: P-83
#[test]
fn writes_follow_writes_without_waiting() {
    let mut world = World::new();
    let a = world.client();
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), create(2, "/a", ""), set(3, "/a", "x")]);
    assert_eq!(world.server.replica.outstanding(), 3);
    world.hold_log(false);
    assert_eq!(world.heard(a), ["1 @2 ok /a", "2 @3 error -110", "3 @4 ok v1"]);
}

// rows: P-49
#[test]
fn sync_is_answered_after_every_write_before_it() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", "")]);
    world.say(b, [sync(1, "any path"), get(2, "/a")]);
    assert!(world.heard(b).is_empty(), "a write of another client was proposed before");
    world.say(a, [set(2, "/a", "late")]);
    world.hold_log(false);
    let heard = world.heard(b);
    assert_eq!(heard[0], "1 @3 ok any path", "at the zxid of the write before it");
    assert!(heard[1].starts_with("2 @"));
    // With nothing before it there is nothing to wait for, and a flush is not needed.
    world.hold_log(true);
    world.say(b, [sync(3, "/")]);
    assert_eq!(world.heard(b), ["3 @4 ok /"]);
}

/// A world where reads wait for a sync of their own.
fn linearizable() -> World {
    World::limited(Limits { linearizable_reads: true, ..limits() })
}

#[test]
fn linearizable_read_waits_for_a_sync_whose_answer_no_client_gets() {
    let mut world = linearizable();
    let (a, b) = (world.client(), world.client());
    world.hold_commands(true);
    world.say(b, [ping(), get(1, "/a"), ping()]);
    assert_eq!(
        world.heard(b),
        ["-2 @2 ok"],
        "a ping needs no sync; after the read it waits as every request does"
    );
    world.say(a, [create(1, "/a", "0")]);
    world.last_command_first();
    world.hold_commands(false);
    assert_eq!(world.heard(a), ["1 @3 ok /a"]);
    assert_eq!(
        world.heard(b),
        ["1 @3 ok \"0\" v0", "-2 @3 ok"],
        "written after the read came, before its sync"
    );
    // One sync for all reads that had come by then, and not for later ones.
    world.hold_commands(true);
    world.say(b, [get(2, "/a"), get(3, "/a")]);
    world.push(b, &get(4, "/a"));
    assert_eq!(world.commands_held(), 1);
    world.one_command();
    assert_eq!(world.heard(b), ["2 @3 ok \"0\" v0", "3 @3 ok \"0\" v0"]);
    assert_eq!(world.commands_held(), 1, "the later read has sent a sync of its own");
    world.hold_commands(false);
    assert_eq!(world.heard(b), ["4 @3 ok \"0\" v0"]);
}

#[test]
fn linearizable_read_after_writes_sends_its_sync_in_their_batch() {
    let mut world = linearizable();
    let a = world.client();
    world.hold_commands(true);
    world.say(a, [create(1, "/a", "0"), get(2, "/a"), set(3, "/a", "1"), get(4, "/a")]);
    assert_eq!(world.commands_held(), 1);
    world.hold_commands(false);
    assert_eq!(
        world.heard(a),
        ["1 @2 ok /a", "2 @2 ok \"0\" v0", "3 @3 ok v1", "4 @3 ok \"1\" v1"]
    );
    // Reads of a session that has moved meanwhile are not answered: its connection is closed.
    world.hold_commands(true);
    world.say(a, [get(5, "/a")]);
    let again = world.client_again(FIRST_SESSION);
    world.last_command_first();
    world.hold_commands(false);
    assert!(world.heard(again)[0].starts_with("session"));
    assert_eq!(world.heard(a), ["closed"]);
}

#[test]
fn read_only_server_answers_linearizable_reads_without_a_sync() {
    let mut world = linearizable();
    let a = world.client();
    world.server.shared.is_read_only.store(true, Ordering::Relaxed);
    world.hold_commands(true);
    world.say(a, [get(1, "/zookeeper")]);
    assert_eq!(world.heard(a), ["1 @1 ok \"\" v0"]);
}

// rows: P-27 P-50
#[test]
fn reply_has_the_reserved_xid_of_its_request() {
    let mut world = World::new();
    let a = world.client();
    world.say(a, [ping(), set_watches(0, &[], &[], &[]), look(0, op::EXISTS, "/", false)]);
    world.say(a, [create(-5, "/a", "")]);
    assert_eq!(world.heard(a), ["-2 @1 ok", "-8 @1 ok", "0 @1 ok v0", "-5 @2 ok /a"]);
}

// rows: P-77a P-60f
#[test]
fn requests_after_close_session_are_not_executed() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create(1, "/a", ""), close(2), create(3, "/b", ""), get(4, "/a"), ping()]);
    assert_eq!(world.heard(a), ["1 @3 ok /a", "2 @4 ok", "closed"]);
    world.say(b, [look(1, op::EXISTS, "/b", false)]);
    assert_eq!(world.heard(b), ["1 @4 error -101"]);
}

// rows: P-33
#[test]
fn event_comes_before_the_reply_that_shows_its_change() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create(1, "/a", ""), watch(2, "/a"), set(3, "/a", "own"), get(4, "/a")]);
    let own = world.heard(a);
    assert_eq!(own[2..], ["event @4 NodeDataChanged /a", "3 @4 ok v1", "4 @4 ok \"own\" v1"]);
    world.say(a, [watch(5, "/a")]);
    assert_eq!(world.heard(a).len(), 1);
    // The change and the read that shows it meet before the connection has had a turn.
    world.push(a, &get(6, "/a"));
    world.say(b, [set(1, "/a", "other")]);
    let heard = world.heard(a);
    let event = heard.iter().position(|line| line == "event @5 NodeDataChanged /a");
    let shown = heard.iter().position(|line| line.contains("other"));
    assert!(event.is_some() && (shown.is_none() || event < shown), "{heard:?}");
}

#[test]
fn one_hold_serves_64_requests() {
    let mut world = World::new();
    let a = world.client();
    let before = world[a].turns;
    let many: Vec<u8> = (1..=200).flat_map(|xid| raw(xid, op::PING, &[])).collect();
    world.say(a, [many]);
    assert_eq!(world.heard(a).len(), 200);
    let turns = world[a].turns - before;
    assert!((4..=5).contains(&turns), "200 requests took {turns} turns");
}

// rows: G-17
#[test]
fn writes_after_set_acl_are_checked_with_the_new_list() {
    let mut world = World::new();
    let a = world.client_from("10.0.0.1");
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), set_acl_for(2, "/a", "10.0.0.2"), set(3, "/a", "x")]);
    world.hold_log(false);
    assert_eq!(world.heard(a), ["1 @2 ok /a", "2 @3 ok v0", "3 @4 error -102"]);
}
