//! Every bit of an access list against every operation: judged, pre-checked, and where a read looks.

use super::harness::{Client, World};
use crate::support::requests::{create, delete, look, request, set, set_acl, sync};
use jute::proto::GetAclRequest;
use oxkeeper::auth::Schemes;
use oxkeeper::model::{Acl, Identity, op, perms};
use oxkeeper::request::access::refusal;

const BITS: [i32; 5] = [perms::READ, perms::WRITE, perms::CREATE, perms::DELETE, perms::ADMIN];

fn set_bits(xid: i32, path: &str, bits: i32) -> Vec<u8> {
    set_acl(xid, path, &Acl { perms: bits, who: Identity::new("world", "anyone") })
}

fn get_acl(xid: i32, path: &str) -> Vec<u8> {
    request(xid, op::GET_ACL, &GetAclRequest { path: Some(path.into()) })
}

/// A server with /a, whose list allows these bits to all, and /a/b, which is open.
fn guarded(bits: i32) -> (World, Client) {
    let mut world = World::new();
    let client = world.client();
    world.say(client, [create(1, "/a", ""), create(2, "/a/b", ""), set_bits(3, "/a", bits)]);
    assert_eq!(world.heard(client).len(), 3);
    (world, client)
}

/// Operations, and the bits of which /a's list has to have one.
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
fn each_operation_asks_for_its_bit_and_no_other() {
    for bits in BITS.into_iter().flat_map(|bit| [bit, perms::ALL & !bit]) {
        for (name, asked, wanted) in operations() {
            let (mut world, client) = guarded(bits);
            let is_allowed = bits & wanted != 0;
            // What a learner refuses before it asks its leader: writes alone.
            let (kind, body) = (i32::from_be_bytes(asked[8..12].try_into().unwrap()), &asked[12..]);
            let is_write = wanted & perms::READ == 0;
            let tree = world.server.shared.state.tree.read();
            let refused = refusal(&tree, &Schemes::default(), &[], kind, body).is_some();
            drop(tree);
            assert_eq!(refused, is_write && !is_allowed, "{name} before it is judged, {bits:#b}");
            world.say(client, [asked]);
            let heard = world.heard(client);
            let is_done = heard[0].contains(" ok");
            assert!(is_done || heard[0].ends_with("error -102"), "{name}: {heard:?}");
            assert_eq!(is_done, is_allowed, "{name} with {bits:#b}: {heard:?}");
        }
    }
}

#[test]
fn sync_and_other_znodes_ask_for_no_bit() {
    let (mut world, client) = guarded(0);
    world.say(client, [look(4, op::GET_DATA, "/a/b", false), set(5, "/a/b", "x"), sync(6, "/a")]);
    assert_eq!(world.heard(client), ["4 @4 ok \"\" v0", "5 @5 ok v1", "6 @5 ok /a"]);
}
