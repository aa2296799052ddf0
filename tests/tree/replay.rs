//! Replay of transactions that the tree already holds, or that another server logged differently.

use jute::Vector;
use jute::txn::TxnHeader;
use oxkeeper::model::{Code, OPEN_ACL, Zxid, op};
use oxkeeper::tree::digest::StatPart;
use oxkeeper::tree::txn::{Create, CreateKind, Txn, write};
use oxkeeper::tree::{Options, Tree};
use support::trees::reloaded;

const OWNER: i64 = 7;

fn apply(tree: &mut Tree, zxid: i64, kind: i32, txn: &Txn<'_>) -> Code {
    let header = TxnHeader { client_id: OWNER, cxid: 1, zxid, time: 1000 + zxid, kind };
    tree.apply(&header, txn, &mut Vec::new()).code
}

fn create(path: &str, kind: CreateKind, parent_cversion: i32) -> Txn<'_> {
    let (path, data) = (path.into(), None);
    Txn::Create(Create { path, data, acl: OPEN_ACL, kind, parent_cversion })
}

fn stat(tree: &Tree, path: &str) -> StatPart {
    tree.znode(tree.find(path).expect(path)).stat_part()
}

/// A tree with /a, made at zxid 5.
fn tree() -> Tree {
    let mut tree = Tree::new(Options::default());
    let a = create("/a", CreateKind::Persistent, 1);
    assert_eq!(apply(&mut tree, 5, op::CREATE, &a), Code::OK);
    tree
}

// rows: D-48
#[test]
fn lower_zxids_do_not_change_the_last_zxid() {
    let mut tree = tree();
    let b = create("/b", CreateKind::Persistent, 2);
    assert_eq!(apply(&mut tree, 3, op::CREATE, &b), Code::OK);
    assert_eq!(tree.last_zxid(), Zxid::from_wire(5).unwrap());
}

#[test]
fn newest_zxid_of_a_tree_with_another_stamp_is_that_of_a_znode_or_the_stamp() {
    let mut tree = tree();
    for (stamp, newest) in [(3, 5), (9, 9)] {
        tree.restamp(Zxid::from_wire(stamp).unwrap());
        assert_eq!(tree.newest_zxid(), Zxid::from_wire(newest).unwrap());
    }
}

#[test]
fn older_transactions_do_not_lower_their_parents_stat() {
    let mut tree = tree();
    for (zxid, name) in [(6, "/a/b"), (7, "/a/c"), (8, "/a/d")] {
        let child = create(name, CreateKind::Persistent, zxid as i32);
        assert_eq!(apply(&mut tree, zxid, op::CREATE, &child), Code::OK);
    }
    let before = stat(&tree, "/a");
    assert_eq!((before.cversion, before.pzxid), (8, 8));
    let delete = |path: &'static str| Txn::Delete { path: path.into() };
    assert_eq!(apply(&mut tree, 4, op::DELETE, &delete("/a/d")), Code::OK);
    assert_eq!(stat(&tree, "/a").pzxid, 8, "an older deletion");
    let older = create("/a/e", CreateKind::Persistent, 2);
    assert_eq!(apply(&mut tree, 4, op::CREATE, &older), Code::OK);
    assert_eq!((stat(&tree, "/a").cversion, stat(&tree, "/a").pzxid), (8, 8));
    assert_eq!(apply(&mut tree, 9, op::DELETE, &delete("/a/e")), Code::OK);
    assert_eq!(stat(&tree, "/a").pzxid, 9);
}

#[test]
fn repeated_create_raises_the_parents_stat_and_other_creates_do_not() {
    for (kind, cversion) in [(op::CREATE, 9), (op::CREATE2, 1), (op::CREATE_CONTAINER, 1)] {
        let mut tree = tree();
        let again = create("/a", CreateKind::Persistent, 9);
        assert_eq!(apply(&mut tree, 6, kind, &again), Code::NODE_EXISTS);
        assert_eq!(stat(&tree, "/").cversion, cversion, "{kind}");
    }
}

#[test]
fn close_session_deletes_ephemerals_that_it_does_not_list() {
    let mut tree = tree();
    for (zxid, path) in [(6, "/listed"), (7, "/other")] {
        assert_eq!(
            apply(&mut tree, zxid, op::CREATE, &create(path, CreateKind::Ephemeral, -1)),
            Code::OK
        );
    }
    let paths = Some(Vector::Owned(vec![Some("/listed".into())]));
    assert_eq!(apply(&mut tree, 8, op::CLOSE_SESSION, &Txn::CloseSession { paths }), Code::OK);
    assert!(tree.find("/listed").is_none() && tree.find("/other").is_none());
    assert!(tree.find("/a").is_some());
}

/// Access lists that a snapshot of the tree has.
fn lists(tree: &mut Tree) -> i32 {
    let frozen = tree.freeze().expect("nothing is frozen");
    let mut stream = Vec::new();
    while !tree.freeze_piece(frozen, &mut stream) {}
    tree.thaw(frozen);
    // After the number of sessions, none.
    assert_eq!(stream[..4], [0; 4]);
    i32::from_be_bytes(stream[4..8].try_into().expect("four bytes"))
}

#[test]
fn replaced_access_lists_are_removed() {
    let mut tree = tree();
    let before = lists(&mut tree);
    for version in 0..5 {
        let mut acl = OPEN_ACL.to_vec();
        acl[7] = version as u8; // Its bits.
        let set = Txn::SetAcl { path: "/a".into(), acl: &acl, version };
        assert_eq!(apply(&mut tree, 6 + i64::from(version), op::SET_ACL, &set), Code::OK);
    }
    let next = create("/b", CreateKind::Persistent, -1);
    assert_eq!(apply(&mut tree, 20, op::CREATE, &next), Code::OK);
    assert_eq!(lists(&mut tree), before + 1, "that of /a");
    let delete = Txn::Delete { path: "/a".into() };
    assert_eq!(apply(&mut tree, 21, op::DELETE, &delete), Code::OK);
    let next = create("/c", CreateKind::Persistent, -1);
    assert_eq!(apply(&mut tree, 22, op::CREATE, &next), Code::OK);
    assert_eq!(lists(&mut tree), before);
}

#[test]
fn data_size_shrinks_by_the_paths_of_deleted_znodes() {
    let mut tree = tree();
    let before = tree.data_size();
    let child = create("/a/child", CreateKind::Persistent, -1);
    assert_eq!(apply(&mut tree, 6, op::CREATE, &child), Code::OK);
    assert_eq!(tree.data_size(), before + "/a/child".len() as u64);
    let delete = Txn::Delete { path: "/a/child".into() };
    assert_eq!(apply(&mut tree, 7, op::DELETE, &delete), Code::OK);
    assert_eq!(tree.data_size(), before);
}

#[test]
fn create_with_the_cversion_that_its_parent_has_leaves_the_parents_pzxid() {
    let mut tree = tree();
    for (zxid, name) in [(6, "/a/b"), (4, "/a/c")] {
        let child = create(name, CreateKind::Persistent, 3);
        assert_eq!(apply(&mut tree, zxid, op::CREATE, &child), Code::OK);
        assert_eq!((stat(&tree, "/a").cversion, stat(&tree, "/a").pzxid), (3, 6));
    }
    let shown = tree.znode(tree.find("/a").expect("the znode is there")).stat();
    assert_eq!((shown.czxid, shown.mzxid, shown.pzxid), (5, 5, 6));
}

// rows: P-39 P-74
#[test]
fn ttl_znode_needs_a_ttl_and_lives_for_the_whole_of_it() {
    let mut tree = Tree::new(Options { extended_types: true, ..Options::default() });
    let ttl = |path, ttl_ms| create(path, CreateKind::Ttl(ttl_ms), -1);
    assert_eq!(apply(&mut tree, 5, op::CREATE_TTL, &ttl("/none", 0)), Code::BAD_ARGUMENTS);
    assert_eq!(apply(&mut tree, 6, op::CREATE_TTL, &ttl("/t", 10)), Code::OK);
    assert!(tree.find("/none").is_none());
    let id = tree.find("/t").expect("the znode is there");
    // It was made at 1006 ms.
    assert!(!tree.has_outlived(id, 1016, 0) && tree.has_outlived(id, 1017, 0));
}

#[test]
fn parts_after_the_failed_one_of_a_multi_have_a_code_of_their_own() {
    let mut tree = tree();
    let part = |path: &str| {
        let mut bytes = Vec::new();
        write::create(&mut bytes, path, None, OPEN_ACL, CreateKind::Persistent, -1);
        bytes
    };
    let (before, after, failed) = (part("/m1"), part("/m2"), Code::NO_NODE.0.to_be_bytes());
    let parts = [(op::CREATE, &before[..]), (op::ERROR, &failed[..]), (op::CREATE, &after[..])];
    let parts = parts.map(|(kind, data)| jute::txn::Txn { kind, data: Some(data) });
    let multi = Txn::Multi(Vector::Owned(parts.to_vec()));
    let header = TxnHeader { client_id: OWNER, cxid: 1, zxid: 6, time: 1006, kind: op::MULTI };
    let applied = tree.apply(&header, &multi, &mut Vec::new());
    let codes: Vec<Code> = applied.parts.iter().map(|part| part.code).collect();
    assert_eq!(codes, [Code::OK, Code::NO_NODE, Code::RUNTIME_INCONSISTENCY]);
    assert!(tree.find("/m1").is_none() && tree.find("/m2").is_none());
}

// Java had applied the reconfiguration when it wrote the znode, and names the snapshot by an earlier transaction.
#[test]
fn configuration_before_that_of_a_snapshot_that_runs_ahead_is_unknown() {
    let set = |data| Txn::SetData { path: "/zookeeper/config".into(), data, version: 0 };
    for (snapshot, before) in [(6, None), (7, Some(&b"seven"[..]))] {
        let mut tree = tree();
        assert_eq!(apply(&mut tree, 7, op::RECONFIG, &set(Some(b"seven"))), Code::OK);
        let mut tree = reloaded(&mut tree, Zxid::from_wire(snapshot).unwrap());
        assert_eq!(tree.config_in_history(), Some(&b"seven"[..]), "{snapshot}");
        let (zxid, data) = if snapshot < 7 { (7, b"seven") } else { (8, b"eight") };
        assert_eq!(apply(&mut tree, zxid, op::RECONFIG, &set(Some(data))), Code::OK);
        assert_eq!(tree.config_in_history(), Some(&data[..]), "{snapshot}");
        assert_eq!(tree.config_before(), before, "{snapshot}");
    }
}
