//! Reads of the tree: znodes found by their paths, counted, and known by their owners.

use jute::txn::TxnHeader;
use jute::{Reader, Ustring};
use oxkeeper::model::{CONTAINER, OPEN_ACL, Owner, Rng, Zxid, op};
use oxkeeper::tree::txn::{Create, CreateKind, Txn};
use oxkeeper::tree::{ChildNames, Listing, Options, Tree};

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

fn delete(tree: &mut Tree, path: &str) {
    let zxid = tree.last_zxid().next().map_or(0, Zxid::to_wire);
    let header = TxnHeader { client_id: 7, cxid: 1, zxid, time: 0, kind: op::DELETE };
    let applied = tree.apply(&header, &Txn::Delete { path: path.into() }, &mut Vec::new());
    assert!(applied.code.is_ok(), "{path}");
}

/// Names in the pieces of a list, and their length as Java counts it.
fn names(list: Listing) -> (Vec<String>, usize) {
    let ChildNames { count, len, chars, pieces } = list.finish();
    let bytes = pieces.concat();
    assert_eq!(bytes.len(), len);
    let mut reader = Reader::new(&bytes);
    let mut next = || reader.read::<Ustring<'_>>().unwrap().unwrap().into_owned();
    ((0..count).map(|_| next()).collect(), chars)
}

fn children(tree: &Tree, path: &str) -> Vec<String> {
    let znode = tree.znode(tree.find(path).unwrap());
    let mut names: Vec<_> = znode.child_names().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

// rows: P-43
#[test]
fn children_are_listed_in_holds_as_they_are_at_the_last_one() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed);
        let mut tree = Tree::new(Options::default());
        ["/a", "/b"].into_iter().for_each(|path| create(&mut tree, path));
        let count = rng.pick(300) + 1;
        (0..count).for_each(|n| create(&mut tree, &format!("/a/{n}")));
        let (id, mut next) = (tree.find("/a").unwrap(), count);
        let mut list = tree.begin_list(id);
        let (changes, hold) = (rng.below(6), rng.pick(40) + 1);
        loop {
            assert!(tree.continues(&list, id));
            let mut left = hold;
            let goes_on = |_| {
                left -= 1;
                left > 0
            };
            if tree.list_more(&mut list, goes_on) {
                break;
            }
            for _ in 0..changes.min(hold as u64 / 3) {
                let there = children(&tree, "/a");
                match rng.below(5) {
                    0 | 1 if !there.is_empty() => {
                        let at = rng.pick(there.len());
                        delete(&mut tree, &format!("/a/{}", there[at]));
                    }
                    // A name that was there before, in the place of another znode.
                    2 if tree.find("/a/0").is_none() => create(&mut tree, "/a/0"),
                    3 => create(&mut tree, &format!("/b/{next}")),
                    _ => create(&mut tree, &format!("/a/{next}é")),
                }
                next += 1;
            }
        }
        let (mut found, chars) = names(list);
        found.sort_unstable();
        assert_eq!(found, children(&tree, "/a"), "seed {seed}");
        let wanted: usize = found.iter().map(|name| name.encode_utf16().count()).sum();
        assert_eq!(chars, wanted, "seed {seed}");
    }
}

#[test]
fn lists_that_began_at_different_times_end_with_the_same_children() {
    let mut tree = Tree::new(Options::default());
    ["/a", "/b"].into_iter().for_each(|path| create(&mut tree, path));
    (0..100).for_each(|n| create(&mut tree, &format!("/a/{n}")));
    let (id, mut lists) = (tree.find("/a").unwrap(), Vec::new());
    for n in 0..80 {
        if n % 8 == 0 {
            lists.push(tree.begin_list(id));
        }
        delete(&mut tree, &format!("/a/{}", 99 - n));
        create(&mut tree, &format!("/b/{n}")); // In the place of the one that was deleted.
        create(&mut tree, &format!("/a/new{n}"));
        for list in &mut lists {
            let mut left = 3;
            tree.list_more(list, |_| {
                left -= 1;
                left > 0
            });
        }
    }
    for mut list in lists {
        assert!(tree.continues(&list, id));
        assert!(tree.list_more(&mut list, |_| true));
        let mut found = names(list).0;
        found.sort_unstable();
        assert_eq!(found, children(&tree, "/a"));
    }
}

#[test]
fn list_that_missed_too_many_changes_does_not_go_on() {
    let mut tree = Tree::new(Options::default());
    create(&mut tree, "/a");
    let id = tree.find("/a").unwrap();
    let (early, late) = (tree.begin_list(id), tree.begin_list(id));
    drop(late);
    for _ in 0..1 << 15 {
        assert!(tree.continues(&early, id));
        create(&mut tree, "/a/b");
        delete(&mut tree, "/a/b");
    }
    let late = tree.begin_list(id);
    create(&mut tree, "/a/b");
    assert!(!tree.continues(&early, id) && tree.continues(&late, id));
}

#[test]
fn long_names_are_more_work_than_short_ones() {
    let mut tree = Tree::new(Options::default());
    create(&mut tree, "/a");
    (0..10).for_each(|n| create(&mut tree, &format!("/a/{n}{}", "x".repeat(5000))));
    let mut list = tree.begin_list(tree.find("/a").unwrap());
    let mut done = 0;
    assert!(tree.list_more(&mut list, |work| {
        done += work;
        true
    }));
    assert!(done > 50_000, "{done}");
}

#[test]
fn list_of_children_of_another_tree_or_znode_does_not_go_on() {
    let mut tree = Tree::new(Options::default());
    create(&mut tree, "/a");
    let list = tree.begin_list(tree.find("/a").unwrap());
    assert!(tree.continues(&list, tree.find("/a").unwrap()));
    assert!(!tree.continues(&list, tree.find("/zookeeper").unwrap()));
    let mut other = Tree::new(Options::default());
    create(&mut other, "/a");
    assert!(!other.continues(&list, other.find("/a").unwrap()));
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
    let other = tree.find("/zookeeper").expect("the znode is there");
    assert_eq!(tree.find_likely("/", other), tree.find("/"));
    assert_eq!(tree.find_likely("/missing", other), None);
}
