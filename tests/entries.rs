//! Log entries with a length limit, and closeSession entries without the list of ephemerals.

use jute::proto::SetAclRequest;
use oxkeeper::client::op;
use oxkeeper::replica::Settings;
use oxkeeper::request::prep::Rules;
use oxkeeper::tree::txn::{Entry, Txn};
use oxkeeper::tree::{Options, Tree};
use support::bodies::{self, Request};
use support::standalone::{SETTINGS, Standalone, parts};

fn create(path: &str, data: &[u8], flags: i32) -> Request {
    bodies::create(op::CREATE, path, Some(data), flags)
}

const SHORT: Settings = Settings { rules: Rules { entry_max: 400, ..Rules::DEFAULT }, ..SETTINGS };

fn code(world: &mut Standalone, (kind, body): Request) -> i32 {
    world.ask(kind, body).0.err
}

/// The tree after a replay of the log, the last entry, and whether that has a digest.
fn replayed(world: &Standalone) -> (Tree, Txn<'_>, bool) {
    let mut tree = Tree::new(Options::default());
    let mut last = None;
    for (_, entry) in world.log() {
        let entry = Entry::decode(entry).expect("our own entry");
        tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        last = Some((entry.txn, entry.digest.is_some()));
    }
    let (txn, has_digest) = last.expect("an entry");
    (tree, txn, has_digest)
}

// rows: C-154
#[test]
fn write_with_a_log_entry_above_the_limit_is_refused() {
    let mut world = Standalone::new(SHORT, false);
    assert_eq!(code(&mut world, create("/long", &[7; 400], 0)), -5);
    let both = parts(&[create("/a", &[7; 180], 0), create("/b", &[7; 180], 0)]);
    assert_eq!(code(&mut world, (op::MULTI, both)), -5);
    assert!(!world.exists("/a") && !world.exists("/long"));
    assert_eq!(code(&mut world, create("/a", &[7; 180], 0)), 0);
    assert!(world.log().iter().all(|(_, entry)| entry.len() <= 400));
}

#[test]
fn session_with_too_many_ephemerals_to_list_is_closed_without_the_list() {
    let mut world = Standalone::new(SHORT, false);
    for at in 0..20 {
        assert_eq!(code(&mut world, create(&format!("/ephemeral-{at:010}"), b"", 1)), 0);
    }
    assert_eq!(code(&mut world, (op::CLOSE_SESSION, Vec::new())), 0);
    assert!(!world.exists("/ephemeral-0000000000"));
    let (tree, txn, has_digest) = replayed(&world);
    // The entry of old releases: the only form without a list that Java reads.
    assert_eq!((txn, has_digest), (Txn::CloseSession { paths: None }, false));
    assert_eq!(tree.digest(), world.server.shared.state.tree.read().digest());
    assert!(tree.find("/ephemeral-0000000000").is_none());
}

// rows: C-81
#[test]
fn close_session_entry_has_no_list_if_so_configured() {
    let rules = Rules { lists_closed: false, ..Rules::DEFAULT };
    let mut world = Standalone::new(Settings { rules, ..SETTINGS }, false);
    assert_eq!(code(&mut world, create("/e", b"", 1)), 0);
    assert_eq!(code(&mut world, (op::CLOSE_SESSION, Vec::new())), 0);
    let (tree, txn, has_digest) = replayed(&world);
    assert_eq!((txn, has_digest), (Txn::CloseSession { paths: None }, true));
    assert!(tree.find("/e").is_none() && !world.exists("/e"));
}

#[test]
fn longest_entry_has_room_for_its_digest() {
    let codes = (0..60).map(|len| {
        let mut world = Standalone::new(SHORT, false);
        let code = code(&mut world, create("/a", &vec![7; 290 + len], 0));
        assert!(world.log().iter().all(|(_, entry)| entry.len() <= 400), "{len}");
        code
    });
    let codes: Vec<i32> = codes.collect();
    assert!(codes.contains(&0) && codes.contains(&-5), "the limit is among these: {codes:?}");
}

#[test]
fn close_session_entry_lists_an_ephemeral_whose_create_is_pending() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create("/e", b"", 1), (op::CLOSE_SESSION, Vec::new())]);
    let (_, txn, _) = replayed(&world);
    let Txn::CloseSession { paths: Some(paths) } = txn else { panic!("{txn:?}") };
    let paths: Vec<_> = paths.iter().flatten().collect();
    assert_eq!(paths, ["/e"]);
}

#[test]
fn version_of_set_acl_is_that_of_the_list_and_not_of_the_data() {
    let mut world = Standalone::new(SETTINGS, false);
    assert_eq!(code(&mut world, create("/a", b"", 0)), 0);
    assert_eq!(code(&mut world, bodies::set("/a", Some(b"x"), 0)), 0);
    for (version, expected) in [(1, -103), (0, 0), (0, -103), (1, 0)] {
        let acl = bodies::open_acl();
        let request = SetAclRequest { path: Some("/a".into()), acl, version };
        let request = (op::SET_ACL, bodies::bytes(request));
        assert_eq!(code(&mut world, request), expected, "{version}");
    }
}

#[test]
fn access_list_with_an_entry_without_an_id_is_refused_as_unreadable() {
    let mut world = Standalone::new(SETTINGS, false);
    for (scheme, expected) in [("world", -5), ("digest", -5), ("ip", -5), ("none", -114)] {
        let id = jute::data::Id { scheme: Some(scheme.into()), id: None };
        let acl = jute::Vector::Owned(vec![jute::data::Acl { perms: 31, id }]);
        let request = SetAclRequest { path: Some("/".into()), acl, version: -1 };
        assert_eq!(code(&mut world, (op::SET_ACL, bodies::bytes(request))), expected, "{scheme}");
    }
}
