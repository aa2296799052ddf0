//! Writes and reads whose answer depends on one rule each.

use super::harness::World;
use jute::Ustring;
use jute::proto::GetChildrenRequest;
use oxkeeper::model::op;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use support::bodies;
use support::requests::{close, create, create_ephemeral, raw, request, watch};

fn sequential(xid: i32, path: &str) -> Vec<u8> {
    let (kind, body) = bodies::create(op::CREATE, path, Some(b""), 2);
    raw(xid, kind, &body)
}

fn delete(xid: i32, path: &str) -> Vec<u8> {
    let (kind, body) = bodies::delete(path);
    raw(xid, kind, &body)
}

// rows: P-40
#[test]
fn znodes_of_the_system_are_not_deleted() {
    let mut world = World::new();
    let client = world.client();
    for path in ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
        world.say(client, [delete(1, path)]);
        let heard = world.heard(client);
        assert!(heard.len() == 1 && heard[0].ends_with("error -8"), "{path}: {heard:?}");
        assert!(world.server.shared.state.tree.read().find(path).is_some());
    }
}

#[test]
fn path_of_a_sequential_znode_is_valid_with_its_number() {
    let mut world = World::new();
    let client = world.client();
    world.say(client, [create(1, "/a", ""), sequential(2, "/a/"), sequential(3, "/a/n-")]);
    assert_eq!(
        world.heard(client),
        ["1 @2 ok /a", "2 @3 ok /a/0000000000", "3 @4 ok /a/n-0000000001"]
    );
}

// rows: P-60b
#[test]
fn get_ephemerals_filters_by_the_prefix_of_paths() {
    let mut world = World::new();
    let client = world.client();
    world.say(client, [create(1, "/a", ""), create(2, "/b", "")]);
    world.say(client, [create_ephemeral(3, "/a/b"), create_ephemeral(4, "/b/a")]);
    let _answers = world.heard(client);
    let path: Ustring<'_> = Some("/a".into());
    world.say(client, [request(5, op::GET_EPHEMERALS, &path)]);
    assert_eq!(world.heard(client), ["5 @5 ok [\"/a/b\"]"]);
}

// rows: P-60b
#[test]
fn a_long_list_of_ephemerals_takes_several_holds() {
    let mut world = World::new();
    let (client, other) = (world.client(), world.client());
    for n in 0..20_000 {
        world.push(client, &create_ephemeral(1, &format!("/e{n:05}")));
    }
    world.run();
    assert_eq!(world.heard(client).len(), 20_000);
    let path: Ustring<'_> = Some("/e".into());
    world.push(client, &request(5, op::GET_EPHEMERALS, &path));
    let (now_us, before) = (world.server.now_us(), world[client].turns);
    world[client].turn(now_us);
    assert!(world.heard(client).is_empty(), "one hold is not enough");
    // A znode deleted before its turn is not in the answer, and no other is missing from it.
    world.push(other, &[delete(1, "/e00007"), delete(2, "/e19999")].concat());
    world[other].turn(now_us);
    for command in world[other].take_commands() {
        world.server.command(command);
    }
    while world.server.flush() {}
    world.run();
    let (heard, turns) = (world.heard(client), world[client].turns - before);
    assert!(heard.len() == 1 && heard[0].starts_with("5 @20004 ok [\"/e"), "{:.80}", heard[0]);
    let found = heard[0].matches("\"/e").count();
    assert!((19_998..=20_000).contains(&found) && turns >= 3, "{found} found in {turns} turns");
}

// rows: P-43
#[test]
fn a_long_list_of_children_takes_several_holds_and_is_that_of_the_last() {
    let mut world = World::new();
    let (client, other) = (world.client(), world.client());
    world.push(client, &create(1, "/a", ""));
    for n in 0..20_000 {
        world.push(client, &create(1, &format!("/a/{n:05}"), ""));
    }
    world.run();
    assert_eq!(world.heard(client).len(), 20_001);
    // With a watch.
    world.push(
        client,
        &request(5, op::GET_CHILDREN, &GetChildrenRequest { path: Some("/a".into()), watch: true }),
    );
    let (now_us, before) = (world.server.now_us(), world[client].turns);
    world[client].turn(now_us);
    assert!(world.heard(client).is_empty(), "one hold is not enough");
    // What another client changes between two holds is in the answer, and fires no watch; later changes do.
    let changes = [delete(1, "/a/00007"), delete(2, "/a/19999"), create(3, "/a/n", "")];
    world.push(other, &changes.concat());
    world[other].turn(now_us);
    for command in world[other].take_commands() {
        world.server.command(command);
    }
    while world.server.flush() {}
    world.run();
    let (heard, turns) = (world.heard(client), world[client].turns - before);
    assert!(heard.len() == 1 && heard[0].starts_with("5 @20006 ok ["), "{:.80}", heard[0]);
    let has = |name| heard[0].contains(&format!("\"{name}\""));
    assert_eq!(
        ["00007", "19999", "n", "00008", "00000"].map(has),
        [false, false, true, true, true]
    );
    assert_eq!((heard[0].matches('"').count() / 2, turns >= 3), (19_999, true), "{turns} turns");
    world.say(other, [delete(4, "/a/n")]);
    assert_eq!(world.heard(client), ["event @20007 NodeChildrenChanged /a"]);
}

// rows: P-18
#[test]
fn closing_session_is_refused_to_a_client_that_reconnects() {
    let mut world = World::new();
    let owner = world.client();
    world.hold_log(true);
    world.say(owner, [close(1)]);
    let again = world.client_again(support::builders::FIRST_SESSION);
    world.hold_log(false);
    assert_eq!(world.heard(again), ["refused flag", "closed"]);
    assert_eq!(world.heard(owner), ["1 @2 ok", "closed"]);
}

#[test]
fn watches_of_an_ended_connection_are_removed_and_no_others() {
    let mut world = World::new();
    let (mover, leaver) = (world.client(), world.client());
    world.say(mover, [watch(1, "/zookeeper")]);
    world.say(leaver, [watch(1, "/zookeeper")]);
    assert_eq!(world.server.shared.state.watches.count(), 2);
    world.leave(leaver);
    assert_eq!(world.server.shared.state.watches.count(), 1);
}

struct ThreadWaker(AtomicU32);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// rows: C-92
#[test]
fn connection_that_waits_for_outstanding_writes_is_woken_when_they_end() {
    let mut world = World::configured("request_throttle_max_requests=1", "");
    let (a, b) = (world.client(), world.client());
    world.hold_log(true);
    world.say(a, [create(1, "/a", "")]);
    world.say(b, [create(1, "/b", "")]);
    let bell = Arc::new(ThreadWaker(AtomicU32::new(0)));
    assert!(world[b].machine().wait(&Waker::from(bell.clone())), "there is no room");
    assert_eq!(bell.0.load(Ordering::Relaxed), 0);
    world.hold_log(false);
    assert!(0 < bell.0.load(Ordering::Relaxed), "it was woken");
    assert_eq!((world.heard(a).len(), world.heard(b).len()), (1, 1));
}
