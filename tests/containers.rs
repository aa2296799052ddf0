//! Containers and TTL znodes: how they are created, and when they are deleted.

use jute::Reader;
use jute::data::Stat;
use jute::proto::GetDataRequest;
use oxkeeper::client::op;
use oxkeeper::model::Code;
use oxkeeper::replica::Settings;
use oxkeeper::tree::txn::{Entry, Txn};
use support::bodies::{self, Request, bytes, create_ttl, delete};
use support::configured::parts;
use support::standalone::{SETTINGS, Standalone, replies};

fn create(kind: i32, path: &str, flags: i32) -> Request {
    bodies::create(kind, path, None, flags)
}

fn touch(path: &str) -> Request {
    bodies::set(path, None, -1)
}

/// A server that checks containers each second.
///
/// * `flag`: another flag, without `-Dznode.container.`
fn by_flags(flag: &str) -> Settings {
    let flags = format!("-Dznode.container.checkIntervalMs=1000 -Dznode.container.{flag}");
    let parts = parts("tickTime=2000\nsnapSizeLimitInKb=0", &flags);
    Settings { sessionless_timeout_ms: 60_000, first_session: 77, ..parts.replica }
}

/// Requests that create a container, and a child that is deleted again.
fn used(path: &str) -> [Request; 3] {
    let child = format!("{path}/child");
    [create(op::CREATE_CONTAINER, path, 4), create(op::CREATE, &child, 0), delete(&child)]
}

// rows: P-38 P-39 P-73
#[test]
fn create_of_containers_and_ttl_znodes_is_answered_with_ephemeral_owner_0() {
    let mut world = Standalone::new(SETTINGS, true);
    let all = [
        create(op::CREATE_CONTAINER, "/c", 4),
        create(op::CREATE_CONTAINER, "/c/n-", 2),
        create_ttl("/t", 5, 1000),
        create_ttl("/t/n-", 6, 0xFF_FFFF_FFFF),
    ];
    let answers = world.send(&all);
    for ((header, body), path) in
        answers.iter().zip(["/c", "/c/n-0000000000", "/t", "/t/n-0000000000"])
    {
        let mut from = Reader::new(body);
        let found: jute::Ustring<'_> = from.read().expect("a path");
        let stat: Stat = from.read().expect("a stat");
        assert_eq!((header.err, found.as_deref()), (0, Some(path)));
        assert_eq!((stat.ephemeral_owner, from.rest()), (0, &[][..]));
    }
    let tree = world.server.shared.state.tree.read();
    let owner = |path: &str| tree.znode(tree.find(path).expect(path)).stat_part().ephemeral_owner;
    assert_eq!((owner("/c"), owner("/c/n-0000000000")), (i64::MIN, i64::MIN));
    assert_eq!(owner("/t") as u64, 0xFF00_0000_0000_03E8);
    assert_eq!(owner("/t/n-0000000000") as u64, 0xFF00_00FF_FFFF_FFFF);
    drop(tree);

    let mut world = Standalone::new(SETTINGS, false);
    let (kind, body) = create_ttl("/t", 5, 1000);
    assert_eq!(world.ask(kind, body).0.err, -6);
}

#[test]
fn create_ttl_that_java_cannot_apply_is_refused() {
    let mut world = Standalone::new(SETTINGS, true);
    for flags in 0..=4 {
        let (kind, body) = create_ttl("/t", flags, -1);
        assert_eq!(world.ask(kind, body).0.err, -8);
    }
    assert!(!world.exists("/t"));
}

// rows: P-41
#[test]
fn delete_container_of_a_client_is_refused_and_closes_the_connection() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create(op::CREATE_CONTAINER, "/c", 4)]);
    let (header, _) =
        world.ask(op::DELETE_CONTAINER, bytes(Some(std::borrow::Cow::Borrowed("/c"))));
    assert_eq!((header.zxid, header.err, world.closed.is_some()), (-1, -6, true));
    assert!(world.exists("/c"));
}

// rows: P-74 C-263b
#[test]
fn containers_and_ttl_znodes_are_deleted_once_empty_and_old_enough() {
    let mut world = Standalone::new(SETTINGS, true);
    let [c, child, gone] = used("/used");
    let all = [
        c,
        child,
        gone,
        create(op::CREATE_CONTAINER, "/unused", 4),
        create(op::CREATE_CONTAINER, "/full", 4),
        create(op::CREATE, "/full/child", 0),
        create_ttl("/short", 5, 400),
        create_ttl("/long", 5, 2500),
        create_ttl("/parent", 5, 400),
        create(op::CREATE, "/parent/child", 0),
    ];
    world.send(&all);
    let there = |world: &Standalone| {
        ["/used", "/unused", "/full", "/short", "/long", "/parent"]
            .into_iter()
            .filter(|path| world.exists(path))
            .collect::<Vec<_>>()
    };
    world.pass(900);
    assert_eq!(there(&world).len(), 6);
    world.pass(600);
    assert_eq!(there(&world), ["/unused", "/full", "/long", "/parent"]);
    // A change starts the time of a TTL znode again.
    world.send(&[touch("/long"), delete("/parent/child"), delete("/full/child")]);
    world.pass(2000);
    assert_eq!(there(&world), ["/unused", "/long"]);
    world.pass(3000);
    assert_eq!(there(&world), ["/unused"]);

    let mut world = Standalone::new(by_flags("maxNeverUsedIntervalMs=3000"), true);
    world.send(&[create(op::CREATE_CONTAINER, "/unused", 4)]);
    world.pass(2500);
    assert!(world.exists("/unused"));
    world.pass(2500);
    assert!(!world.exists("/unused"));
}

// rows: P-74 C-263 C-263a
#[test]
fn containers_are_deleted_at_the_pace_of_max_per_minute() {
    let mut world = Standalone::new(by_flags("maxPerMinute=60"), false);
    for number in 0..5 {
        world.send(&used(&format!("/c{number}")));
    }
    let left = |world: &Standalone| (0..5).filter(|n| world.exists(&format!("/c{n}"))).count();
    let mut seen = Vec::new();
    for _ in 0..7 {
        world.pass(1000);
        seen.push(left(&world));
    }
    assert_eq!(seen, [4, 3, 2, 1, 0, 0, 0]);
}

/// The codes of the server's own deletions that were refused.
fn refused_deletions(world: &Standalone) -> Vec<Code> {
    let own = world.log().iter().filter_map(|(_, entry)| {
        let entry = Entry::decode(entry).expect("our own entry");
        let is_own = entry.header.client_id == 0;
        if let Txn::Error(code) = entry.txn { Some(code).filter(|_| is_own) } else { None }
    });
    own.collect()
}

// rows: P-74
#[test]
fn delete_container_is_checked_against_pending_changes() {
    let child = create(op::CREATE, "/c/new", 0);
    let again = |kind, flags| vec![delete("/c"), create(kind, "/c", flags)];
    let ttl = || vec![create_ttl("/c", 5, 400)];
    for (name, before, pending, code, stays) in [
        ("a child", used("/c").to_vec(), vec![child.clone()], Code::NOT_EMPTY, true),
        ("a child of a TTL znode", ttl(), vec![child], Code::NOT_EMPTY, true),
        ("data of a TTL znode", ttl(), vec![touch("/c")], Code::BAD_VERSION, true),
        ("gone", used("/c").to_vec(), vec![delete("/c")], Code::NO_NODE, false),
        (
            "another container",
            used("/c").to_vec(),
            again(op::CREATE_CONTAINER, 4),
            Code::BAD_VERSION,
            true,
        ),
        ("a persistent znode", used("/c").to_vec(), again(op::CREATE, 0), Code::BAD_VERSION, true),
        ("an ephemeral znode", used("/c").to_vec(), again(op::CREATE, 1), Code::BAD_VERSION, true),
    ] {
        let mut world = Standalone::new(SETTINGS, true);
        world.send(&before);
        world.pass(900);
        world.disk_hangs = true;
        world.send(&pending);
        world.pass(200);
        world.disk_hangs = false;
        world.flush();
        // The container was found in the tree, where nothing had changed yet.
        assert_eq!(refused_deletions(&world), [code], "{name}");
        assert_eq!(world.exists("/c"), stays, "{name}");
    }
}

#[test]
fn container_that_is_used_again_before_its_turn_is_not_deleted() {
    // One in two seconds: the second one waits, and has a child by then.
    let mut world = Standalone::new(by_flags("maxPerMinute=30"), false);
    world.send(&used("/c0"));
    world.send(&used("/c1"));
    world.pass(1100);
    let left: Vec<_> = ["/c0", "/c1"].into_iter().filter(|path| world.exists(path)).collect();
    let [left] = left[..] else { panic!("{left:?} are left") };
    world.send(&[create(op::CREATE, &format!("{left}/child"), 0)]);
    world.pass(3000);
    assert!(world.exists(left));
    assert_eq!(refused_deletions(&world), []);
}

#[test]
fn watches_of_a_moved_session_end_before_its_old_connection_has_a_turn() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[(op::GET_DATA, bytes(GetDataRequest { path: Some("/".into()), watch: true }))]);
    let count = |world: &Standalone| world.server.shared.state.watches.count();
    assert_eq!(count(&world), 1);
    let _old = world.connect(world.session);
    assert_eq!(count(&world), 0);
}

#[test]
fn moved_session_removes_no_watches_of_other_connections() {
    let mut world = Standalone::new(SETTINGS, false);
    let first = world.session;
    world.hang_up();
    // The next connection sets a watch under the id that the first one had.
    drop(world.connect(0));
    world.send(&[(op::GET_DATA, bytes(GetDataRequest { path: Some("/".into()), watch: true }))]);
    let watcher = world.connect(first);
    world.send(&[touch("/")]);
    drop(world.speak(watcher));
    let events = replies(&world.received());
    assert_eq!(events.iter().map(|(header, _)| header.xid).collect::<Vec<_>>(), [-1]);
}
