//! Reads of the tree: znodes found by their paths, counted, and known by their owners.

use jute::txn::TxnHeader;
use oxkeeper::model::{CONTAINER, OPEN_ACL, Owner, Zxid, op};
use oxkeeper::tree::txn::{Create, CreateKind, Txn};
use oxkeeper::tree::{Options, Tree};

fn create(tree: &mut Tree, path: &str) {
    let zxid = tree.last_zxid().next().map_or(0, Zxid::to_wire);
    let header = TxnHeader { client_id: 7, cxid: 1, zxid, time: 0, kind: op::CREATE };
    let create = Create {
        path: path.into(),
        data: None,
        acl: OPEN_ACL,
        kind: CreateKind::Persistent,
        parent_cversion: -1,
    };
    let applied = tree.apply(&header, &Txn::Create(create), &mut Vec::new());
    assert!(applied.code.is_ok(), "{path}");
}

fn count(tree: &Tree, path: &str) -> (u32, usize) {
    let (mut so_far, mut holds) = (None, 0);
    loop {
        holds += 1;
        if let Some(found) = tree.count_below(tree.find(path).unwrap(), path, &mut so_far) {
            return (found, holds);
        }
    }
}

// rows: P-60c
#[test]
fn znodes_below_a_path_are_counted_by_a_walk_or_else_by_a_scan() {
    let mut tree = Tree::new(Options::default());
    for path in ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/ab/x"] {
        create(&mut tree, path);
    }
    assert_eq!(["/a", "/a/b", "/a/d", "/ab"].map(|p| count(&tree, p).0), [3, 1, 0, 1]);
    assert_eq!(count(&tree, "/").0 as usize, tree.node_count() - 2);
    for n in 0..5000 {
        create(&mut tree, &format!("/a/d/{n}"));
    }
    assert_eq!((count(&tree, "/a"), count(&tree, "/ab")), ((5003, 2), (1, 1)));
}

// rows: P-73 C-99
#[test]
fn ttl_znodes_of_release_353_are_recognised_if_set() {
    let old = i64::MIN | 1234;
    let new = Owner::encode_ttl(1234);
    let of = |extended_types, emulate_353, raw| {
        Options { extended_types, emulate_353, ..Options::default() }.owner(raw)
    };
    assert_eq!(of(true, true, old), Owner::Ttl(1234));
    assert_eq!(of(true, true, new), Owner::Ttl(1234));
    assert_eq!(of(true, true, CONTAINER), Owner::Container);
    assert_eq!(of(true, true, 77), Owner::Session(77));
    assert_eq!(of(true, false, old), Owner::Session(old));
    assert_eq!(of(false, true, old), Owner::Session(old));
}

#[test]
fn wrong_likely_znode_is_not_returned() {
    let tree = Tree::new(Options::default());
    let other = tree.find("/zookeeper").expect("it is there");
    assert_eq!(tree.find_likely("/", other), tree.find("/"));
    assert_eq!(tree.find_likely("/missing", other), None);
}
