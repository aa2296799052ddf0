//! Clients that do not take what they are sent.

use super::harness::{FRAME_MAX, World};
use super::wire::{create, get, set, watch_exists};
use oxkeeper::request::Need;

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
    assert_eq!(world.need(a), Need::Room);
    let unsent = world.unsent(a);
    assert!((UNSENT_MAX..UNSENT_MAX + 400_000).contains(&unsent), "{unsent} bytes");
    assert!(world.unread(a) > 0);
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
        most = most.max(world.unsent(a));
    }
    assert_eq!(world.need(a), Need::Close(String::new()));
    assert_eq!(world.unsent(a), 0, "and what it did not take is dropped");
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
