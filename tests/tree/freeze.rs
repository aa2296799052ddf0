//! Checks that the tree's digest equals one computed from all znodes, and that a frozen stream is the tree of the freeze.

use jute::txn::TxnHeader;
use oxkeeper::model::{Code, OPEN_ACL, Zxid, op};
use oxkeeper::tree::load::{LoadError, Loader};
use oxkeeper::tree::txn::{Create, CreateKind, Entry, Txn};
use oxkeeper::tree::{Applied, Options, Tree, digest};
use proptest::prelude::*;
use std::collections::BTreeMap;

const READ_ACL: &[u8] = b"\0\0\0\x01\0\0\0\x01\0\0\0\x05world\0\0\0\x06anyone";

/// Everything a client or a file could see of a tree.
fn dump(tree: &Tree) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![tree.find("/").unwrap()];
    let mut digest = 0u64;
    while let Some(id) = open.pop() {
        let (znode, path) = (tree.znode(id), tree.path(id));
        let mut names: Vec<_> = znode.child_names().collect();
        names.sort_unstable();
        assert_eq!(names.len(), znode.children() as usize);
        open.extend(names.iter().map(|name| tree.find(&format!("{path}/{name}")).unwrap()));
        if digest::counts(path.as_bytes()) {
            digest = digest.wrapping_add(znode.fresh_digest(path));
        }
        let acl = tree.acl(znode.acl());
        let seen = format!(
            "{:?} {:?} {:?} {names:?} {acl:?}",
            znode.data().bytes(),
            znode.stat(),
            znode.stat_part()
        );
        all.insert(path.to_owned(), seen);
    }
    assert_eq!(digest, tree.digest(), "the kept digest must equal one computed from all znodes");
    assert_eq!(all.len(), tree.node_count() - 1);
    all.insert("sessions".into(), format!("{:?}", tree.sessions()));
    all
}

fn thawed(stream: &[u8], zxid: Zxid, piece: usize) -> Tree {
    let mut loader = Loader::new(Options::default());
    let (mut at, mut have) = (0, 0);
    loop {
        have = (have + piece).min(stream.len());
        let taken = loader.take(&stream[at..have]).unwrap();
        at += taken.bytes;
        if taken.ended {
            assert_eq!(at, stream.len());
            return loader.finish(zxid).unwrap();
        }
        assert!(have < stream.len(), "the stream must contain its own end");
    }
}

fn header(zxid: i64, kind: i32) -> TxnHeader {
    TxnHeader { client_id: 7, cxid: 1, zxid, time: 1_000 + zxid, kind }
}

#[derive(Clone, Debug)]
enum Act {
    Create(u8, u8, Option<usize>, bool, bool),
    Delete(u8),
    Set(u8, Option<usize>),
    SetAcl(u8, bool),
    Close,
    Freeze,
    Piece,
}

fn act() -> impl Strategy<Value = Act> {
    let size = || prop::option::of(prop_oneof![0usize..40, 4000usize..4200, 9000usize..9100]);
    prop_oneof![
        6 => (any::<u8>(), any::<u8>(), size(), any::<bool>(), any::<bool>())
            .prop_map(|(p, n, d, e, a)| Act::Create(p, n, d, e, a)),
        3 => any::<u8>().prop_map(Act::Delete),
        4 => (any::<u8>(), size()).prop_map(|(p, d)| Act::Set(p, d)),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(p, a)| Act::SetAcl(p, a)),
        1 => Just(Act::Close),
        1 => Just(Act::Freeze),
        2 => Just(Act::Piece),
    ]
}

fn run(tree: &mut Tree, zxid: i64, act: &Act) -> Option<Code> {
    // Paths of leaves and of inner znodes, because deletes of inner znodes alone would rarely succeed.
    let mut paths: Vec<String> =
        dump(tree).into_keys().filter(|p| p.starts_with("/n") || p.is_empty()).collect();
    paths.sort_unstable();
    let pick = |at: u8| paths[at as usize % paths.len()].clone();
    let bytes = |len: Option<usize>| len.map(|len| vec![len as u8; len]);
    let acl = |readable: bool| if readable { READ_ACL } else { OPEN_ACL };
    let (kind, data, txn);
    match *act {
        Act::Create(parent, name, len, ephemeral, readable) => {
            data = bytes(len);
            kind = op::CREATE2;
            txn = Txn::Create(Create {
                path: format!("{}/n{}", pick(parent), name % 8).into(),
                data: data.as_deref(),
                acl: acl(readable),
                kind: if ephemeral { CreateKind::Ephemeral } else { CreateKind::Persistent },
                parent_cversion: -1,
            });
        }
        Act::Delete(at) => {
            kind = op::DELETE;
            let path = pick(at);
            if tree.find(&path).is_some_and(|id| tree.znode(id).children() > 0) {
                return None; // Never proposed.
            }
            txn = Txn::Delete { path: path.into() };
        }
        Act::Set(at, len) => {
            data = bytes(len);
            kind = op::SET_DATA;
            txn =
                Txn::SetData { path: pick(at).into(), data: data.as_deref(), version: zxid as i32 };
        }
        Act::SetAcl(at, readable) => {
            kind = op::SET_ACL;
            txn = Txn::SetAcl { path: pick(at).into(), acl: acl(readable), version: zxid as i32 };
        }
        Act::Close => {
            kind = op::CLOSE_SESSION;
            txn = Txn::CloseSession { paths: None };
        }
        Act::Freeze | Act::Piece => return None,
    }
    let applied: Applied<'_> = tree.apply(&header(zxid, kind), &txn, &mut Vec::new());
    Some(applied.code)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A snapshot taken in pieces while transactions go on is exactly the tree it began with.
    // rows: D-21 D-22 D-23 D-68
    #[test]
    fn frozen_stream_is_the_tree_of_one_zxid(acts in prop::collection::vec(act(), 1..120), piece in 1usize..3000) {
        let mut tree = Tree::new(Options::default());
        tree.apply(&header(1, op::CREATE_SESSION), &Txn::CreateSession { timeout_ms: 4000 }, &mut Vec::new());
        let mut frozen = None;
        let mut stream = Vec::new();
        for (at, act) in acts.iter().enumerate() {
            run(&mut tree, at as i64 + 2, act);
            match act {
                Act::Freeze if frozen.is_none() => {
                    stream.clear();
                    frozen = tree.freeze().map(|frozen| (frozen, dump(&tree), tree.digest()));
                }
                Act::Piece if frozen.as_ref().is_some_and(|(frozen, ..)| tree.freeze_piece(*frozen, &mut stream)) => {
                    let (frozen, expected, digest) = frozen.take().unwrap();
                    tree.thaw(frozen);
                    let back = thawed(&stream, frozen.zxid, piece);
                    prop_assert_eq!(dump(&back), expected);
                    prop_assert_eq!(back.digest(), digest);
                    prop_assert_eq!(frozen.digest, Some(digest));
                }
                _ => {}
            }
        }
        dump(&tree);
    }
}

// rows: P-81
#[test]
fn fresh_tree_has_the_znodes_and_stats_of_javas() {
    let tree = Tree::new(Options::default());
    assert_eq!(tree.node_count(), 5);
    let stat = |path| tree.znode(tree.find(path).unwrap()).stat();
    assert_eq!((stat("/").cversion, stat("/").num_children), (-1, 1));
    assert_eq!((stat("/zookeeper").cversion, stat("/zookeeper").num_children), (-2, 2));
    assert_eq!((stat("/zookeeper/config").version, stat("/zookeeper/config").aversion), (0, -1));
    assert_eq!(tree.find(""), tree.find("/"));
}

// rows: D-62 D-63 D-64 G-05
#[test]
fn replay_over_newer_znodes_only_raises_their_parents_stat() {
    let mut tree = Tree::new(Options::default());
    let create_with = |path: &'static str, acl, parent_cversion| {
        let kind = CreateKind::Persistent;
        Txn::Create(Create { path: path.into(), data: None, acl, kind, parent_cversion })
    };
    let create = |cversion| create_with("/a", READ_ACL, cversion);
    let apply = |tree: &mut Tree, zxid, kind, txn: &Txn<'_>| {
        tree.apply(&header(zxid, kind), txn, &mut vec![]).code
    };
    assert_eq!(apply(&mut tree, 5, op::CREATE, &create(9)), Code::OK);
    let root = |tree: &Tree| tree.znode(tree.find("/").unwrap()).stat_part();
    assert_eq!((root(&tree).cversion, root(&tree).pzxid), (9, 5));
    assert_eq!(apply(&mut tree, 6, op::CREATE, &create(4)), Code::NODE_EXISTS);
    assert_eq!((root(&tree).cversion, root(&tree).pzxid), (9, 5));
    assert_eq!(apply(&mut tree, 7, op::CREATE, &create(12)), Code::NODE_EXISTS);
    assert_eq!((root(&tree).cversion, root(&tree).pzxid), (12, 7));
    let gone = Txn::Delete { path: "/gone".into() };
    assert_eq!(apply(&mut tree, 8, op::DELETE, &gone), Code::NO_NODE);
    assert_eq!(root(&tree).pzxid, 8, "raised although the child is gone");
    let set = Txn::SetData { path: "/gone".into(), data: None, version: 1 };
    assert_eq!(apply(&mut tree, 9, op::SET_DATA, &set), Code::NO_NODE);
    // A replayed create sets its access list on the existing znode; a later transaction in the log sets the final one.
    let acl = |tree: &Tree, path| tree.znode(tree.find(path).unwrap()).acl();
    assert_eq!(apply(&mut tree, 10, op::CREATE, &create_with("/b", OPEN_ACL, 13)), Code::OK);
    assert_ne!(acl(&tree, "/a"), acl(&tree, "/b"));
    let again = create_with("/a", OPEN_ACL, 14);
    assert_eq!(apply(&mut tree, 11, op::CREATE, &again), Code::NODE_EXISTS);
    assert_eq!(acl(&tree, "/a"), acl(&tree, "/b"));
    dump(&tree);
}

proptest! {
    /// `apply` never panics: a transaction's bytes come from another server or a file.
    // rows: G-01
    #[test]
    fn applying_any_entry_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in -12i32..25) {
        let mut tree = Tree::new(Options::default());
        let mut entry = Vec::new();
        jute::Encode::encode(&header(1, kind), &mut entry);
        entry.extend(bytes);
        if let Ok(entry) = Entry::decode(&entry) {
            tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        }
        dump(&tree);
    }
}

// rows: D-66
#[test]
fn null_access_list_in_a_snapshot_is_an_error() {
    let mut stream = vec![0; 4];
    stream.extend_from_slice(&1i32.to_be_bytes());
    stream.extend_from_slice(&5i64.to_be_bytes());
    stream.extend_from_slice(&(-1i32).to_be_bytes());
    let error = Loader::new(Options::default()).take(&stream).unwrap_err();
    assert_eq!(error, LoadError::NullAcl { index: 5 });
    // An empty one is a list.
    stream.splice(16.., 0i32.to_be_bytes());
    assert!(!Loader::new(Options::default()).take(&stream).unwrap().ended);
}

/// A tree with `count` znodes of a megabyte below `/large`.
fn large_tree(count: i64) -> Tree {
    let mut tree = Tree::new(Options::default());
    let data = vec![7; MEGABYTE];
    for number in 0..count {
        let kind = CreateKind::Persistent;
        let path = if number == 0 { "/large".to_owned() } else { format!("/large/{number}") };
        let create = Create {
            path: path.into(),
            data: Some(&data),
            acl: OPEN_ACL,
            kind,
            parent_cversion: -1,
        };
        let applied =
            tree.apply(&header(1 + number, op::CREATE), &Txn::Create(create), &mut vec![]);
        assert_eq!(applied.code, Code::OK);
    }
    tree
}

fn set_large(tree: &mut Tree, zxid: i64, number: i64) {
    let path = format!("/large/{number}").into();
    let set = Txn::SetData { path, data: Some(&[9; MEGABYTE]), version: 1 };
    let applied = tree.apply(&header(zxid, op::SET_DATA), &set, &mut vec![]);
    assert_eq!(applied.code, Code::OK);
}

const MEGABYTE: usize = 1_000_000;
/// A mebibyte, and one znode.
const PIECE_MAX: usize = (1 << 20) + MEGABYTE + 1000;

#[test]
fn piece_of_large_znodes_is_at_most_one_znode_over_a_mebibyte() {
    let mut tree = large_tree(40);
    let (before, digest) = (dump(&tree), tree.digest());
    let frozen = tree.freeze().unwrap();
    for number in 10..30 {
        set_large(&mut tree, 100 + number, number);
    }
    let (mut stream, mut piece) = (Vec::new(), Vec::new());
    let mut longest = 0;
    loop {
        piece.clear();
        let is_last = tree.freeze_piece(frozen, &mut piece);
        longest = longest.max(piece.len());
        stream.extend_from_slice(&piece);
        if is_last {
            break;
        }
    }
    assert!(longest <= PIECE_MAX, "a piece of {longest} bytes");
    let back = thawed(&stream, frozen.zxid, 1 << 20);
    assert_eq!((dump(&back), back.digest()), (before, digest));
}

#[test]
fn bytes_saved_for_a_snapshot_are_counted_until_they_are_taken() {
    let mut tree = large_tree(40);
    let learners = tree.freeze_for_learner(true).unwrap();
    for number in 1..10 {
        set_large(&mut tree, 50 + number, number);
    }
    assert_eq!(tree.snapshot_saved_bytes(), 0, "no snapshot is under way");
    let frozen = tree.freeze().unwrap();
    assert!(tree.freeze().is_none(), "one snapshot at a time");
    let begun = tree.snapshot_saved_bytes();
    for number in 1..30 {
        set_large(&mut tree, 100 + number, number);
        set_large(&mut tree, 200 + number, number);
    }
    // `/large` is saved before the first of its children.
    let saved = tree.snapshot_saved_bytes() - begun;
    assert!((30 * MEGABYTE as u64..31 * MEGABYTE as u64).contains(&saved), "{saved}");
    let mut piece = Vec::new();
    assert!(!tree.freeze_piece(frozen, &mut piece));
    assert_eq!(tree.snapshot_saved_bytes(), saved + begun - piece.len() as u64);
    while !tree.freeze_piece(frozen, &mut piece) {}
    assert_eq!(tree.snapshot_saved_bytes(), 0);
    tree.thaw(frozen);
    assert!(tree.holds(learners) && !tree.holds(frozen));
}

#[test]
fn concurrent_freezes_each_show_the_tree_of_their_own_zxid() {
    let mut tree = large_tree(12);
    let mut streams = Vec::new();
    for round in 0..3 {
        let frozen = if round == 1 { tree.freeze() } else { tree.freeze_for_learner(round == 0) };
        streams.push((frozen.unwrap(), dump(&tree), Vec::new()));
        for (frozen, _, stream) in &mut streams {
            assert!(!tree.freeze_piece(*frozen, stream));
        }
        for number in 1..6 {
            set_large(&mut tree, 100 * (round + 1) + number, number + round);
        }
    }
    for (frozen, expected, mut stream) in streams {
        while !tree.freeze_piece(frozen, &mut stream) {}
        tree.thaw(frozen);
        assert_eq!(dump(&thawed(&stream, frozen.zxid, 1 << 20)), expected);
    }
}

#[test]
fn large_freeze_is_given_up_only_for_a_learner_in_no_configuration() {
    let mut tree = large_tree(70);
    let strangers = tree.freeze_for_learner(false).unwrap();
    let kept = [tree.freeze_for_learner(true).unwrap(), tree.freeze().unwrap()];
    for number in 1..60 {
        set_large(&mut tree, 100 + number, number);
    }
    assert!(tree.holds(strangers));
    for number in 60..70 {
        set_large(&mut tree, 100 + number, number);
    }
    assert!(!tree.holds(strangers) && kept.iter().all(|frozen| tree.holds(*frozen)));
}

#[test]
fn snapshot_starts_however_many_learners_take_trees() {
    let mut tree = large_tree(1);
    let begun = std::iter::from_fn(|| tree.freeze_for_learner(false)).count();
    assert_eq!(begun, 31);
    assert!(tree.freeze().is_some());
}
