//! Which client gets which events, when, and what setWatches does after a reconnect.

use super::harness::{World, limits};
use oxkeeper::model::op;
use oxkeeper::request::Limits;
use support::requests::{
    create, create_for, delete, get, look, set, set_watches, sync, watch, watch_children,
    watch_exists,
};

// rows: P-29 P-30 P-31 P-42 P-43 P-47
#[test]
fn each_kind_of_watch_fires_once_with_the_zxid_of_its_cause() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [watch_exists(1, "/a"), watch_children(2, "/"), watch(3, "/a")]);
    assert_eq!(world.heard(a), ["1 @2 error -101", "2 @2 ok [\"zookeeper\"]", "3 @2 error -101"]);
    world.say(b, [create(1, "/a", ""), set(2, "/a", ""), create(3, "/b", "")]);
    // getData of a missing znode leaves no watch, exists does; nothing fires twice.
    assert_eq!(world.heard(a), ["event @3 NodeCreated /a", "event @3 NodeChildrenChanged /"]);
    world.say(a, [watch(4, "/a"), watch_exists(5, "/b")]);
    world.heard(a);
    world.say(b, [set(4, "/a", "x"), set(5, "/a", "y"), delete(6, "/b")]);
    assert_eq!(world.heard(a), ["event @6 NodeDataChanged /a", "event @8 NodeDeleted /b"]);
}

// rows: P-34
#[test]
fn only_a_deletion_merges_watches() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(b, [create(1, "/a", ""), create(2, "/a/b", "")]);
    world.say(a, [watch(1, "/a/b"), watch_children(2, "/a/b"), watch_children(3, "/a")]);
    world.heard(a);
    world.say(b, [delete(3, "/a/b")]);
    assert_eq!(world.heard(a), ["event @5 NodeDeleted /a/b", "event @5 NodeChildrenChanged /a"]);
    world.say(a, [watch_exists(4, "/a/b"), watch_children(5, "/a")]);
    world.heard(a);
    world.say(b, [create(4, "/a/b", "")]);
    assert_eq!(world.heard(a), ["event @6 NodeCreated /a/b", "event @6 NodeChildrenChanged /a"]);
}

// rows: P-32
#[test]
fn event_is_not_sent_to_a_client_that_may_not_read_the_znode() {
    let mut world = World::new();
    let (a, b) = (world.client_from("10.0.0.1"), world.client_from("10.0.0.2"));
    for client in [a, b] {
        world.say(client, [watch_exists(1, "/a")]);
        assert_eq!(world.heard(client), ["1 @2 error -101"]);
    }
    world.say(b, [create_for(2, "/a", "10.0.0.2")]);
    assert_eq!(world.heard(b), ["event @3 NodeCreated /a", "2 @3 ok /a"]);
    assert!(world.heard(a).is_empty());
    // A child event is checked with the parent's access list, a deletion with the list as it was.
    world.say(a, [watch_children(2, "/"), get(3, "/a")]);
    world.say(b, [watch(3, "/a")]);
    assert_eq!(world.heard(a)[1], "3 @3 error -102");
    world.heard(b);
    world.say(b, [delete(4, "/a")]);
    assert_eq!(world.heard(b), ["event @4 NodeDeleted /a", "4 @4 ok"]);
    assert_eq!(world.heard(a), ["event @4 NodeChildrenChanged /"]);
}

// rows: P-32 P-58
#[test]
fn set_watches_sends_no_event_of_znodes_that_the_client_may_not_read() {
    let mut world = World::new();
    let (a, b) = (world.client_from("10.0.0.1"), world.client_from("10.0.0.2"));
    world.say(b, [create_for(1, "/a", "10.0.0.2"), create(2, "/b", "")]);
    assert_eq!(world.heard(b), ["1 @3 ok /a", "2 @4 ok /b"]);
    world.say(a, [set_watches(2, &["/a", "/b", "/c"], &["/a"], &["/a"])]);
    let events = ["event @-1 NodeDataChanged /b", "event @-1 NodeDeleted /c", "-8 @4 ok"];
    assert_eq!(world.heard(a), events);
    // The client that may read the znode gets the events; the other one keeps its watches, since it may be permitted later.
    world.say(b, [set_watches(2, &["/a"], &["/a"], &["/a"])]);
    let events = ["NodeDataChanged", "NodeCreated", "NodeChildrenChanged"];
    let events = events.map(|kind| format!("event @-1 {kind} /a"));
    assert_eq!(world.heard(b), [&events[..], &["-8 @4 ok".to_owned()]].concat());
    assert_eq!(world.server.shared.state.watches.count(), 2, "data and child");
}

// rows: P-58 P-75 P-29
#[test]
fn set_watches_sends_missed_events_and_sets_the_other_watches() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    let made = ["/same", "/set", "/gone", "/parent", "/childless"];
    for (xid, path) in (1..).zip(made) {
        world.say(b, [create(xid, path, "")]); // @3 to @7: all that the client has seen.
    }
    world.say(b, [set(6, "/set", "x"), delete(7, "/gone"), create(8, "/parent/child", "")]);
    world.say(b, [create(9, "/new", "")]);
    let data = ["/same", "/set", "/gone"];
    let exist = ["/new", "/never"];
    let child = ["/parent", "/gone", "/childless"];
    world.say(a, [set_watches(7, &data, &exist, &child)]);
    assert_eq!(
        world.heard(a),
        [
            "event @-1 NodeDataChanged /set",
            "event @-1 NodeDeleted /gone",
            "event @-1 NodeCreated /new",
            "event @-1 NodeChildrenChanged /parent",
            "event @-1 NodeDeleted /gone",
            "-8 @11 ok",
        ]
    );
    // Paths with an event are not watched any more; the others are.
    world.say(b, [set(10, "/set", ""), set(11, "/new", ""), create(12, "/parent/two", "")]);
    assert!(world.heard(a).is_empty());
    world.say(b, [set(13, "/same", ""), create(14, "/never", ""), create(15, "/childless/x", "")]);
    assert_eq!(
        world.heard(a),
        [
            "event @15 NodeDataChanged /same",
            "event @16 NodeCreated /never",
            "event @17 NodeChildrenChanged /childless",
        ]
    );
}

// rows: G-22
#[test]
fn znode_created_and_deleted_while_its_watcher_is_away_causes_no_event() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(b, [create(1, "/a", ""), delete(2, "/a")]);
    world.say(a, [set_watches(2, &[], &["/a"], &[])]);
    assert_eq!(world.heard(a), ["-8 @4 ok"]);
    world.say(b, [create(3, "/a", "")]);
    assert_eq!(world.heard(a), ["event @5 NodeCreated /a"]);
}

// rows: P-77
#[test]
fn watches_are_removed_when_their_connection_ends() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [watch_exists(1, "/a"), watch_children(2, "/"), look(3, op::EXISTS, "/b", true)]);
    assert_eq!(world.server.shared.state.watches.count(), 3);
    let number = world[a].machine().conn().id.0;
    world.leave(a);
    assert_eq!(world.server.shared.state.watches.count(), 0);
    // The next connection has its id and gets no events of its watches.
    let c = world.client();
    assert_eq!(world[c].machine().conn().id.0, number);
    world.say(b, [create(1, "/a", ""), sync(2, "/")]);
    assert!(world.heard(c).is_empty());
}

// rows: P-58 P-59
#[test]
fn set_watches_of_many_paths_takes_several_holds_and_loses_no_change() {
    let mut world = World::limited(Limits { frame_max: 1 << 20, ..limits() });
    let (a, b) = (world.client(), world.client());
    world.say(b, [create(1, "/first", ""), create(2, "/last", "")]);
    let _answers = world.heard(b);
    let many: Vec<String> = (0..10_000).map(|n| format!("/none/{n}")).collect();
    let many: Vec<&str> = many.iter().map(|path| &**path).collect();
    world.push(a, &set_watches(4, &["/first"], &many, &["/last"]));
    let now_us = world.server.now_us();
    world[a].turn(now_us);
    let watches = world.server.shared.state.watches.count();
    assert!((2..=4096).contains(&watches), "{watches} watches are brought back under one hold");
    assert!(world.heard(a).is_empty());
    // Both change while the rest of the paths waits for its turn.
    world.push(b, &[set(3, "/first", "x"), create(4, "/last/x", "")].concat());
    world[b].turn(now_us);
    for command in world[b].take_commands() {
        world.server.command(command);
    }
    while world.server.flush() {}
    world.run();
    let events =
        ["event @5 NodeDataChanged /first", "event @-1 NodeChildrenChanged /last", "-8 @6 ok"];
    assert_eq!(world.heard(a), events);
    assert_eq!(world.server.shared.state.watches.count(), 10_000);
}

// rows: P-58
#[test]
fn set_watches_waits_for_a_client_that_does_not_read_its_events() {
    let mut world = World::limited(Limits { frame_max: 1 << 20, ..limits() });
    let a = world.client();
    let gone = vec!["/gone"; 60_000];
    world[a].fetches = false;
    world.say(a, [set_watches(2, &gone, &[], &[])]);
    let unsent = world[a].unsent();
    assert!((1 << 20..5 << 18).contains(&unsent), "{unsent} bytes of events are made at once");
    world.set_fetches(a, true);
    let heard = world.heard(a);
    assert_eq!(heard.len(), 60_001);
    assert_eq!(heard[60_000], "-8 @1 ok");
}
