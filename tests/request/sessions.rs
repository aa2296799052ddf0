//! Sessions that move, expire and end.

use super::harness::World;
use oxkeeper::model::op;
use support::builders::{FIRST_SESSION, TICK_TIME_MS};
use support::requests::{
    close, create, create_ephemeral, delete, get, hello_again, hello_bytes, look, ping, set, watch,
    watch_children, watch_exists,
};

// rows: P-18 P-22
#[test]
fn a_session_moves_to_its_new_connection() {
    let mut world = World::new();
    let (a, writer) = (world.client(), world.client());
    world.say(a, [create(1, "/a", ""), watch(2, "/a"), create_ephemeral(3, "/e")]);
    world.heard(a);
    let b = world.client_again(FIRST_SESSION);
    assert_eq!(world.heard(b), ["session 0x10 10000 ms flag"]);
    assert_eq!(world.heard(a), ["closed"]);
    assert_eq!(world.server.shared.state.watches.count(), 0);
    world.say(writer, [set(1, "/a", "x")]);
    world.say(a, [get(4, "/a"), set(5, "/a", "never")]);
    world.say(b, [get(1, "/a"), look(2, op::EXISTS, "/e", false)]);
    assert!(world.heard(a).is_empty());
    assert_eq!(world.heard(b), ["1 @5 ok \"x\" v1", "2 @5 ok v0"]);
}

// rows: P-22 P-18 G-15
#[test]
fn write_of_a_moved_session_closes_its_connection_without_a_reply() {
    let mut world = World::new();
    let a = world.client();
    world.hold_commands(true);
    world.say(a, [create(1, "/late", "")]);
    let b = world.connect();
    world.push(b, &hello_bytes(&hello_again(FIRST_SESSION)));
    world.run();
    // The takeover comes to the replica before the old connection's write.
    world.last_command_first();
    world.hold_commands(false);
    assert_eq!(world.heard(a), ["closed"]);
    assert_eq!(world.heard(b), ["session 0x10 10000 ms flag"]);
    // The refused write took a zxid, as every prepared write does.
    world.say(b, [look(1, op::EXISTS, "/late", false), create(2, "/b", "")]);
    assert_eq!(world.heard(b), ["1 @2 error -101", "2 @3 ok /b"]);
}

// rows: G-06
#[test]
fn persistent_znode_that_replaces_an_ephemeral_outlives_its_session() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create_ephemeral(1, "/a"), create_ephemeral(2, "/b"), create_ephemeral(3, "/c")]);
    world.heard(a);
    // All of these are pending when the closeSession is prepared.
    let again =
        [delete(4, "/a"), create(5, "/a", "kept"), delete(6, "/b"), create_ephemeral(7, "/b")];
    world.hold_log(true);
    world.say(a, again);
    world.say(a, [close(8)]);
    world.hold_log(false);
    world.say(b, [get(1, "/a"), get(2, "/b"), get(3, "/c")]);
    assert_eq!(world.heard(b), ["1 @10 ok \"kept\" v0", "2 @10 error -101", "3 @10 error -101"]);
}

#[test]
fn session_takeover_keeps_the_watches_of_other_connections() {
    let mut world = World::new();
    let a = world.client();
    let number = world[a].machine().conn().id.0;
    world.leave(a);
    let other = world.client();
    assert_eq!(world[other].machine().conn().id.0, number, "the id is used again");
    world.say(other, [watch_exists(1, "/a")]);
    // The session's last connection has ended long ago; its id is another connection's now.
    let again = world.client_again(FIRST_SESSION);
    assert_eq!(world.heard(again), ["session 0x10 10000 ms flag"]);
    world.say(again, [create(1, "/a", "")]);
    assert_eq!(world.heard(other), ["1 @2 error -101", "event @3 NodeCreated /a"]);
}

#[test]
fn late_close_session_closes_the_new_connection_too() {
    let mut world = World::new();
    let a = world.client();
    world.hold_commands(true);
    world.say(a, [close(1)]);
    let b = world.connect();
    world.push(b, &hello_bytes(&hello_again(FIRST_SESSION)));
    world.run();
    world.last_command_first();
    world.hold_commands(false);
    // As in Java, any of its connections may close the session; then no connection keeps it.
    let heard = world.heard(b);
    assert_eq!(heard.last().map(String::as_str), Some("closed"), "{heard:?}");
    assert_eq!(world.heard(a), ["closed"]);
    assert_eq!(world.server.replica.session_count(), 0);
}

// rows: P-21
#[test]
fn a_silent_session_expires_with_its_ephemerals() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    world.say(a, [create_ephemeral(1, "/e2"), create_ephemeral(2, "/e1")]);
    world.say(b, [watch(1, "/e1"), watch_exists(2, "/e2"), watch_children(3, "/")]);
    world.heard(a);
    world.heard(b);
    // 10 s of silence, rounded up to the next multiple of the tick time.
    let bucket_ms = 10_000 + TICK_TIME_MS;
    for _ in 0..5 {
        world.pass(2000);
        world.say(b, [ping()]);
    }
    world.pass(bucket_ms - 10_000 - 5);
    assert_eq!(world.heard(b), ["-2 @4 ok"; 5]);
    assert!(world.heard(a).is_empty());
    world.pass(5);
    // One transaction deletes them all, in the order of their paths; the session's own connection gets no event.
    assert_eq!(
        world.heard(b),
        ["event @5 NodeDeleted /e1", "event @5 NodeChildrenChanged /", "event @5 NodeDeleted /e2",]
    );
    assert_eq!(world.heard(a), ["closed"]);
    assert_eq!(world.server.replica.stats.sessions_expired, 1);
    let again = world.client_again(FIRST_SESSION);
    assert_eq!(world.heard(again), ["refused flag", "closed"]);
}

/// An answered ping means another whole timeout: a client that holds a lock by its session may count on that.
// rows: P-21
#[test]
fn a_ping_that_comes_too_late_is_not_answered() {
    let mut world = World::new();
    let a = world.client();
    world.hold_log(true);
    world.pass(10_000 + TICK_TIME_MS);
    world.say(a, [ping()]);
    assert!(world.heard(a).is_empty(), "its end is decided, and not on the disk yet");
    world.hold_log(false);
    world.run();
    assert_eq!(world.heard(a), ["closed"]);
}

// rows: M-06
#[test]
fn age_of_session_expiry_is_recorded_when_no_client_was_connected() {
    for leaves in [false, true] {
        let mut world = World::new();
        let a = world.client();
        if leaves {
            world.leave(a);
        }
        world.pass(10_000 + TICK_TIME_MS);
        let ends: Vec<bool> = world
            .server
            .replica
            .samples
            .writes
            .iter()
            .map(|write| write.born_ms.is_some())
            .collect();
        assert_eq!(ends, [true, leaves], "the session's beginning and its end");
    }
}

// rows: P-21
#[test]
fn any_request_keeps_a_session_alive_and_so_does_a_takeover() {
    let mut world = World::new();
    let a = world.client();
    world.pass(9000);
    world.say(a, [ping()]);
    world.pass(9000);
    world.say(a, [create(1, "/a", "")]);
    world.pass(9000);
    world.leave(a);
    let b = world.client_again(FIRST_SESSION);
    world.pass(9000);
    assert_eq!(world.heard(b), ["session 0x10 10000 ms flag"]);
    world.pass(4000);
    assert_eq!(world.heard(b), ["closed"]);
}

#[test]
fn a_connection_that_never_gets_a_session_is_closed() {
    let mut world = World::new();
    let (silent, slow, served) = (world.connect(), world.connect(), world.client());
    world[slow].input.extend_from_slice(&[0, 0, 0]); // The beginning of a frame that never comes.
    for _ in 0..15 {
        world.pass(2000);
        world.say(served, [ping()]);
    }
    assert!(world.heard(silent).is_empty() && world.heard(slow).is_empty(), "30 s have not passed");
    // They are checked once a second.
    world.pass(1005);
    assert_eq!(world.heard(silent), ["closed"]);
    assert_eq!(world.heard(slow), ["closed"]);
    assert_eq!(world.server.replica.stats.sessionless_expired, 2);
    assert_eq!(world.heard(served), ["-2 @1 ok"; 15]);
}

// rows: P-15
#[test]
fn session_ids_count_up() {
    let mut world = World::new();
    for id in ["0x10", "0x11", "0x12"] {
        let a = world.connect();
        world.greet(a, &support::requests::hello());
        assert_eq!(world.heard(a), [format!("session {id} 10000 ms flag")]);
    }
}
