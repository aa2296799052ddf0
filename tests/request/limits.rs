//! Clients that do not take what they are sent, and all of them asking for too much.

use super::harness::{World, limits};
use crate::support::builders::FRAME_MAX;
use crate::support::requests::{create, create_for, get, set, watch_exists};
use oxkeeper::request::{Connects, Limits, Need};

/// What a machine may hold unsent before it stops to read (design section 4).
const UNSENT_MAX: usize = 1024 * 1024;

#[test]
fn a_client_that_does_not_fetch_is_not_read_from() {
    let mut world = World::new();
    let a = world.client();
    let data = "x".repeat(60_000); // Large: shared with the tree instead of copied.
    world.say(a, [create(1, "/a", &data)]);
    world.heard(a);
    world.set_fetches(a, false);
    let many: Vec<u8> = (1..=100).flat_map(|xid| get(xid, "/a")).collect();
    world.say(a, [many]);
    assert_eq!(world[a].need, Need::Room);
    let unsent = world[a].unsent();
    assert!((UNSENT_MAX..UNSENT_MAX + 400_000).contains(&unsent), "{unsent} bytes");
    assert!(!world[a].input.is_empty());
    world.set_fetches(a, true);
    assert_eq!(world.heard(a).len(), 100, "all of it comes once there is room");
}

#[test]
fn a_client_that_does_not_fetch_its_events_is_closed() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    // Names are long, so that a few thousand events pass the limit of four frames.
    let path = |at: usize| format!("/{at:04}{}", "x".repeat(500));
    let count = (4 * FRAME_MAX + UNSENT_MAX) / 500 + 100;
    for at in 0..count {
        world.say(a, [watch_exists(at as i32, &path(at))]);
    }
    world.heard(a);
    world.set_fetches(a, false);
    let mut most = 0;
    for at in 0..count {
        world.say(b, [create(at as i32, &path(at), "")]);
        most = most.max(world[a].unsent());
    }
    assert_eq!(world[a].need, Need::Close(String::new()));
    assert_eq!(world[a].unsent(), 0, "and what it did not take is dropped");
    assert!(most < UNSENT_MAX + 2000, "{most} bytes lay in the machine");
    // Nobody else notices.
    world.say(b, [set(0, &path(0), "still here")]);
    assert!(world.heard(b).last().is_some_and(|line| line.contains("ok")));
}

#[test]
fn a_client_that_fetches_may_have_any_number_of_events() {
    let mut world = World::new();
    let (a, b) = (world.client(), world.client());
    let name = "x".repeat(500);
    for at in 0..2000 {
        let path = format!("/{at:04}{name}");
        world.say(a, [watch_exists(at, &path)]);
        world.say(b, [create(at, &path, "")]);
    }
    assert_eq!(world.heard(a).iter().filter(|line| line.starts_with("event")).count(), 2000);
}

// rows: C-70
#[test]
fn above_the_global_limit_only_who_waits_for_nothing_may_ask() {
    let mut world = World::limited(Limits { outstanding_max: 2, ..limits() });
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), create(2, "/b", ""), create(3, "/c", "")]);
    assert_eq!((world.server.replica.outstanding(), world[a].need.clone()), (2, Need::Answer));
    world.say(b, [create(1, "/d", ""), create(2, "/e", "")]);
    assert_eq!((world.server.replica.outstanding(), world[b].need.clone()), (3, Need::Answer));
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world.heard(b).len()), (3, 2));
    assert_eq!(world.server.shared.throttle.in_process(), 0);
}

// rows: C-92
#[test]
fn above_the_throttle_all_writes_wait_and_none_is_lost() {
    let mut world = World::limited(Limits { requests_max: Some(1), ..limits() });
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", ""), create(2, "/b", "")]);
    world.say(b, [get(1, "/x"), create(2, "/c", ""), get(3, "/c")]);
    assert_eq!((world.server.replica.outstanding(), world[b].need.clone()), (1, Need::Relief));
    assert_eq!(world.heard(b).len(), 1, "what is only read is answered where it is read");
    world.hold_log(false);
    let told: Vec<_> = world.heard(b).iter().map(|line| line[..2].to_owned()).collect();
    assert_eq!((told, world.heard(a).len()), (vec!["2 ".to_owned(), "3 ".into()], 2));
    let (a, b) = (world[a].machine().counts, world[b].machine().counts);
    assert_eq!((a.stalls, b.stalls, a.throttled + b.throttled), (1, 1, 0));
}

// rows: C-91 C-92 P-79 M-14
#[test]
fn a_write_that_waited_for_too_long_is_refused_in_its_place() {
    let mut world =
        World::limited(Limits { requests_max: Some(1), op_wait_max_us: Some(50_000), ..limits() });
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", "")]);
    world.say(b, [create(1, "/b", ""), create(2, "/c", "")]);
    world.pass(100);
    world.hold_log(false);
    // The second had not waited yet.
    assert_eq!(world.heard(b), ["1 @3 error -127", "2 @4 ok /c"]);
    assert_eq!((world[b].machine().counts.stalls, world[b].machine().counts.throttled), (1, 1));
}

// rows: C-94 C-97
#[test]
fn a_write_that_outlived_its_session_is_dropped_with_its_connection() {
    let mut world = World::limited(Limits { requests_max: Some(1), drops_late: true, ..limits() });
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", "")]);
    world.say(b, [create(1, "/b", "")]);
    world.pass(11_000); // Past the session's 10 s, but it is looked at in steps of 2 s.
    world.hold_log(false);
    assert_eq!(world.heard(b), ["closed: a request outlived its session"]);
    assert!(world.server.shared.state.tree.read().find("/b").is_none());
    assert_eq!(world[b].machine().counts.outlived, 1);
}

// rows: C-83 C-84
#[test]
fn large_writes_share_their_room() {
    let mut world =
        World::limited(Limits { large_from: Some(1000), large_bytes_max: 2000, ..limits() });
    let (a, b, c) = (world.client(), world.client(), world.client());
    let large = "x".repeat(1100);
    world.hold_log(true);
    world.say(a, [create(1, "/a", &large), create(2, "/b", "small")]);
    world.say(b, [create(1, "/c", &large)]);
    assert!(matches!(world[b].need, Need::Close(_)));
    assert_eq!(world[b].machine().take_large_refused(), 1);
    world.say(c, [create(1, "/d", &"x".repeat(900))]);
    world.hold_log(false);
    assert_eq!((world.heard(a).len(), world.heard(c).len()), (2, 1));
    world.say(c, [create(2, "/e", &large)]);
    assert_eq!(world.heard(c).len(), 1, "there is room again");
}

// rows: C-123 P-13
#[test]
fn clients_that_connect_too_fast_are_turned_away() {
    let connects = Connects {
        tokens_max: 2,
        fill_time_ms: 1000,
        fill_count: 1,
        freeze_time_ms: None,
        drop_increase: 0.02,
        drop_decrease: 0.002,
        decrease_ratio: 0.0,
        new_weight: 1,
        renew_weight: 1,
        seed: 7,
    };
    let mut world = World::limited(Limits { connects: Some(connects), ..limits() });
    world.client();
    world.client();
    let third = world.connect();
    world.greet(third, &crate::support::requests::hello());
    assert_eq!(world.heard(third), ["closed: clients connect too fast"]);
    let counts = world[third].machine().counts;
    assert_eq!((counts.connects, counts.refused), (0, 1));
    assert_eq!(
        world.server.shared.throttle.connects(&world.server.shared.limits).0,
        2,
        "both tokens are taken"
    );
    world.pass(2000);
    world.client();
}

// rows: C-72 U-16
#[test]
fn without_lists_everybody_may_do_everything() {
    for (skip_acl, codes) in [(false, ["error -102", "error -102"]), (true, ["ok", "ok"])] {
        let mut world = World::limited(Limits { skip_acl, ..limits() });
        let (a, b) = (world.client_from("10.0.0.1"), world.client_from("10.0.0.2"));
        world.say(a, [create_for(1, "/a", "10.0.0.1")]);
        world.say(b, [get(1, "/a"), set(2, "/a", "x")]);
        let heard = world.heard(b);
        for (line, code) in heard.iter().zip(codes) {
            assert!(line.contains(code), "{heard:?}");
        }
        assert_eq!(heard.len(), 2);
    }
}
