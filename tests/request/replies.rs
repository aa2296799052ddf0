//! Replies that would be too long: refused with -5 before they are built, while the connection goes on.

use super::harness::{Client, World, limits};
use jute::Vector;
use jute::proto::{CreateRequest, GetAclRequest, GetEphemeralsRequest};
use oxkeeper::model::{Acl, Identity, op, perms};
use oxkeeper::request::Limits;
use support::requests::{create, create_ephemeral, get, look, request};

/// A server whose replies have at most 100 bytes of names, and /a with as many children, each with a name of 16 bytes.
fn world(children: usize) -> (World, Client) {
    let mut world = World::limited(Limits { reply_max: 100, ..limits() });
    let client = world.client();
    world.say(client, [create(1, "/a", "")]);
    for n in 0..children {
        world.say(client, [create(2, &format!("/a/{n:016}"), "")]);
    }
    world.heard(client);
    (world, client)
}

#[test]
fn children_above_the_limit_are_refused_and_set_no_watch() {
    for kind in [op::GET_CHILDREN, op::GET_CHILDREN2] {
        let (mut world, client) = world(5);
        world.say(client, [look(3, kind, "/a", false)]);
        assert!(world.heard(client)[0].contains(" ok"), "5 of 20 bytes are 100");
        let (mut world, client) = self::world(6);
        world.say(client, [look(3, kind, "/a", true), look(4, op::EXISTS, "/a", false)]);
        let heard = world.heard(client);
        assert!(heard[0].ends_with("error -5") && heard[1].contains(" ok"), "{heard:?}");
        world.say(client, [create(5, "/a/b", "")]);
        let heard = world.heard(client);
        assert!(heard.len() == 1 && heard[0].contains(" ok"), "no event: {heard:?}");
    }
}

#[test]
fn ephemerals_above_the_limit_are_refused() {
    let ephemerals = |count: usize| {
        let (mut world, client) = world(0);
        for n in 0..count {
            world.say(client, [create_ephemeral(2, &format!("/{n:015}"))]);
        }
        world.heard(client);
        let of = |prefix: &str| {
            let asked = GetEphemeralsRequest { prefix_path: Some(prefix.into()) };
            request(3, op::GET_EPHEMERALS, &asked)
        };
        world.say(client, [of("/"), of("/000000000000000")]);
        world.heard(client)
    };
    assert!(ephemerals(5).iter().all(|line| line.contains(" ok")));
    let heard = ephemerals(6);
    assert!(heard[0].ends_with("error -5") && heard[1].contains(" ok"), "{heard:?}");
}

/// Creates a znode whose access list has `entries`, one of which permits the client to read.
fn create_with_list(path: &str, entries: usize) -> Vec<u8> {
    let ids = (0..entries).map(|n| format!("10.0.0.{}", n + 1));
    let acl = |id: String| Acl { perms: perms::ALL, who: Identity::new("ip", &id) };
    let list: Vec<Acl> = ids.map(acl).collect();
    let acl = Vector::Owned(list.iter().map(Acl::to_record).collect());
    request(4, op::CREATE, &CreateRequest { path: Some(path.into()), data: None, acl, flags: 0 })
}

#[test]
fn access_list_above_the_limit_is_refused_and_data_is_not() {
    let (mut world, client) = world(0);
    let get_acl = |path: &str| request(3, op::GET_ACL, &GetAclRequest { path: Some(path.into()) });
    world.say(client, [create_with_list("/s", 3), create_with_list("/l", 6)]);
    assert!(world.heard(client).iter().all(|line| line.contains(" ok")));
    world.say(client, [get_acl("/s"), get_acl("/l")]);
    let heard = world.heard(client);
    assert!(heard[0].contains(" ok") && heard[1].ends_with("error -5"), "{heard:?}");
    world.say(client, [create(5, "/d", &"x".repeat(200)), get(6, "/d")]);
    let heard = world.heard(client);
    assert!(heard.iter().all(|line| line.contains(" ok")), "{heard:?}");
}
