//! Every permission bit against every operation: for writes, in the eager ACL check, and for reads.

use super::harness::{Client, World, limits};
use jute::proto::{CheckVersionRequest, CreateRequest, GetAclRequest};
use jute::{Encode, Vector};
use oxkeeper::auth::{Schemes, permits};
use oxkeeper::model::{AccessList, Acl, Code, Identity, op, perms};
use oxkeeper::request::Limits;
use oxkeeper::request::access::refusal;
use support::requests::{create, delete, get, look, raw, request, set, set_acl, sync};
use support::standalone::parts;

const BITS: [i32; 5] = [perms::READ, perms::WRITE, perms::CREATE, perms::DELETE, perms::ADMIN];

fn set_bits(xid: i32, path: &str, bits: i32) -> Vec<u8> {
    set_acl(xid, path, &Acl { perms: bits, who: Identity::new("world", "anyone") })
}

/// A multi of one `check`, of any version.
fn check(xid: i32, path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    CheckVersionRequest { path: Some(path.into()), version: -1 }.encode(&mut body);
    raw(xid, op::MULTI, &parts(&[(op::CHECK, body)]))
}

fn get_acl(xid: i32, path: &str) -> Vec<u8> {
    request(xid, op::GET_ACL, &GetAclRequest { path: Some(path.into()) })
}

/// A server with /a, whose access list gives these bits to everyone, and /a/b, which is open.
fn guarded(bits: i32) -> (World, Client) {
    let mut world = World::new();
    let client = world.client();
    world.say(client, [create(1, "/a", ""), create(2, "/a/b", ""), set_bits(3, "/a", bits)]);
    assert_eq!(world.heard(client).len(), 3);
    (world, client)
}

/// Operations, each with the bits one of which /a's access list must have.
fn operations() -> [(&'static str, Vec<u8>, i32); 9] {
    [
        ("create", create(4, "/a/c", ""), perms::CREATE),
        ("delete", delete(4, "/a/b"), perms::DELETE),
        ("setData", set(4, "/a", "x"), perms::WRITE),
        ("setACL", set_bits(4, "/a", perms::ALL), perms::ADMIN),
        ("getData", look(4, op::GET_DATA, "/a", false), perms::READ),
        ("exists", look(4, op::EXISTS, "/a", false), perms::READ),
        ("getChildren", look(4, op::GET_CHILDREN, "/a", false), perms::READ),
        ("getChildren2", look(4, op::GET_CHILDREN2, "/a", false), perms::READ),
        ("getACL", get_acl(4, "/a"), perms::READ | perms::ADMIN),
    ]
}

// rows: P-80 U-13 U-23
#[test]
fn each_operation_needs_its_permission_bit_and_no_other() {
    for bits in BITS.into_iter().flat_map(|bit| [bit, perms::ALL & !bit]) {
        for (name, asked, wanted) in operations() {
            let (mut world, client) = guarded(bits);
            let is_allowed = bits & wanted != 0;
            // What a learner refuses before it forwards the request to its leader: only writes.
            let (kind, body) = (i32::from_be_bytes(asked[8..12].try_into().unwrap()), &asked[12..]);
            let is_write = wanted & perms::READ == 0;
            let tree = world.server.shared.state.tree.read();
            let refused = refusal(&tree, &Schemes::default(), &[], kind, body).is_some();
            drop(tree);
            assert_eq!(refused, is_write && !is_allowed, "{name} before it is prepared, {bits:#b}");
            world.say(client, [asked]);
            let heard = world.heard(client);
            let is_done = heard[0].contains(" ok");
            assert!(is_done || heard[0].ends_with("error -102"), "{name}: {heard:?}");
            assert_eq!(is_done, is_allowed, "{name} with {bits:#b}: {heard:?}");
        }
    }
}

// rows: P-52 P-80
#[test]
fn check_in_a_multi_asks_for_read_and_no_other_bit() {
    for bits in BITS.into_iter().flat_map(|bit| [bit, perms::ALL & !bit]) {
        let (mut world, client) = guarded(bits);
        world.say(client, [check(4, "/a")]);
        let heard = world.heard(client);
        let expected = if bits & perms::READ != 0 { "4 @5 ok [13]" } else { "4 @5 ok [-102]" };
        assert_eq!(heard, [expected], "{bits:#b}");
    }
}

#[test]
fn sync_and_other_znodes_need_no_permission_bit() {
    let (mut world, client) = guarded(0);
    world.say(client, [look(4, op::GET_DATA, "/a/b", false), set(5, "/a/b", "x"), sync(6, "/a")]);
    assert_eq!(world.heard(client), ["4 @4 ok \"\" v0", "5 @5 ok v1", "6 @5 ok /a"]);
}

/// A znode whose list has 35,000 addresses, and the client's own.
fn create_under_addresses(xid: i32, path: &str, salt: usize) -> Vec<u8> {
    let acl = |perms, id: &str| Acl { perms, who: Identity::new("ip", id) };
    let address = |n: usize| format!("{}.{}.{}.{}", 11 + salt, n >> 16, n >> 8 & 255, n & 255);
    let mut list: Vec<Acl> = (0..35_000).map(|n| acl(perms::READ, &address(n))).collect();
    list.push(acl(perms::ALL, "10.0.0.1"));
    let acl = Vector::Owned(list.iter().map(Acl::to_record).collect());
    let path = Some(path.into());
    request(xid, op::CREATE, &CreateRequest { path, data: None, acl, flags: 0 })
}

/// Many reads under one long list check it once; checks of many long lists take several turns.
#[test]
fn reads_under_long_lists_leave_turns_to_other_connections() {
    let mut world = World::limited(Limits { frame_max: 1 << 20, ..limits() });
    let client = world.client();
    for n in 0..12 {
        world.say(client, [create_under_addresses(1, &format!("/{n}"), n)]);
        assert!(world.heard(client)[0].contains(" ok"));
    }
    let mut turns = |paths: &dyn Fn(i32) -> i32| {
        let before = world[client].turns;
        let reads = (0..48).map(|n| get(n + 2, &format!("/{}", paths(n))));
        world.push(client, &reads.collect::<Vec<_>>().concat());
        world.run();
        let heard = world.heard(client);
        assert!(heard.len() == 48 && heard.iter().all(|line| line.contains(" ok")), "{heard:?}");
        world[client].turns - before
    };
    let of_one = turns(&|_| 0);
    let of_many = turns(&|n| n % 12);
    assert!(of_one + 2 <= of_many, "{of_one} turns, {of_many} turns");
}

/// A multi of 1 MiB has about 50,000 checks, and each needs the access list.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures time")]
fn list_of_40_000_addresses_is_checked_50_000_times_within_seconds() {
    let address =
        |n: u32| Identity::new("ip", &format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255));
    let nets = (0..40_000).map(|n| Acl { perms: perms::ALL, who: address(n) });
    let one = Identity::new("digest", "bob:hash");
    let same = (0..40_000).map(|n| Acl { perms: n << 8, who: one.clone() });
    let lists = [
        (AccessList::new(nets.collect()), address(1 << 23)),
        (AccessList::new(same.collect()), one),
    ];
    let began = std::time::Instant::now();
    for (list, who) in &lists {
        for _ in 0..50_000 {
            assert!(!permits(&Schemes::default(), list, perms::READ, std::slice::from_ref(who)));
        }
    }
    let took = began.elapsed();
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
}

#[test]
fn write_of_the_root_is_refused_before_it_is_prepared() {
    let mut world = World::new();
    let client = world.client();
    world.say(client, [set_bits(1, "/", perms::READ)]);
    assert_eq!(world.heard(client), ["1 @2 ok v0"]);
    let tree = world.server.shared.state.tree.read();
    for asked in [set(2, "/", "x"), set_bits(2, "/", perms::ALL), create(2, "/a", "")] {
        let (kind, body) = (i32::from_be_bytes(asked[8..12].try_into().unwrap()), &asked[12..]);
        let refused = refusal(&tree, &Schemes::default(), &[], kind, body);
        assert_eq!(refused, Some(Code::NO_AUTH), "{kind}");
    }
}
