//! multi and multiRead, byte for byte, and what a failed multi leaves behind: a log entry and nothing else.

use jute::data::Stat;
use jute::proto::{CheckVersionRequest, CreateRequest, MultiHeader};
use jute::proto::{DeleteRequest, GetDataRequest};
use jute::{Reader, Vector};
use oxkeeper::client::op;
use oxkeeper::tree::txn::{Entry, Txn};
use support::bodies::{self, Request, bytes, create_ttl, delete};
use support::standalone::{SETTINGS, Standalone, parts};

fn create(kind: i32, path: &str, flags: i32) -> Request {
    bodies::create(kind, path, Some(b"x"), flags)
}

fn set(path: &str, data: &[u8], version: i32) -> Request {
    bodies::set(path, Some(data), version)
}

fn check(path: &str, version: i32) -> Request {
    (op::CHECK, bytes(CheckVersionRequest { path: Some(path.into()), version }))
}

fn read(kind: i32, path: Option<&str>) -> Request {
    (kind, bytes(GetDataRequest { path: path.map(Into::into), watch: true }))
}

fn multi(these: &[Request]) -> Request {
    (op::MULTI, parts(these))
}

/// The answer's parts as text; no bytes may follow them.
fn parts_of(body: &[u8]) -> Vec<String> {
    let mut from = Reader::new(body);
    let mut parts = Vec::new();
    loop {
        let header: MultiHeader = from.read().expect("a header");
        if header.done {
            assert_eq!((header.kind, header.err, from.rest()), (-1, -1, &[][..]));
            return parts;
        }
        let mut text =
            || from.read::<jute::Ustring<'_>>().expect("text").expect("not null").into_owned();
        let body = match header.kind {
            op::CREATE => text(),
            op::CREATE2 => {
                let path = text();
                let stat: Stat = from.read().expect("a stat");
                format!("{path} v{} {}", stat.version, stat.ephemeral_owner)
            }
            op::SET_DATA => format!("v{}", from.read::<Stat>().expect("a stat").version),
            op::GET_DATA => {
                let data = from.read::<jute::Buffer<'_>>().expect("data").map(<[u8]>::to_vec);
                let stat: Stat = from.read().expect("a stat");
                format!("{data:?} v{}", stat.version)
            }
            op::GET_CHILDREN => {
                let names: Vector<'_, jute::Ustring<'_>> = from.read().expect("names");
                format!("{:?}", names.iter().flatten().collect::<Vec<_>>())
            }
            -1 => from.read::<i32>().expect("a code").to_string(),
            _ => String::new(),
        };
        parts.push(format!("{} {} {body}", header.kind, header.err).trim_end().to_owned());
    }
}

// rows: P-52 P-61 P-62 P-66 P-68
#[test]
fn each_part_of_a_multi_sees_earlier_parts_and_has_its_own_kind_of_result() {
    let mut world = Standalone::new(SETTINGS, true);
    let these = [
        create(op::CREATE, "/a", 0),
        create(op::CREATE2, "/a/n-", 2),
        create(op::CREATE, "/a/n-", 3),
        // The flag decides here, unlike in a create of its own.
        create(op::CREATE, "/a/c", 4),
        create_ttl("/a/t", 5, 1000),
        set("/a/n-0000000000", b"y", 0),
        check("/a/n-0000000000", 1),
        delete("/a/n-0000000000"),
    ];
    let (kind, body) = multi(&these);
    let (header, answer) = world.ask(kind, body);
    assert_eq!((header.err, header.zxid), (0, 2));
    let expected = [
        "1 0 /a",
        "15 0 /a/n-0000000000 v0 0",
        "1 0 /a/n-0000000001",
        "15 0 /a/c v0 0",
        "15 0 /a/t v0 0",
        "5 0 v1",
        "13 0",
        "2 0",
    ];
    assert_eq!(parts_of(&answer), expected);
    assert!(world.exists("/a/n-0000000001") && !world.exists("/a/n-0000000000"));

    let (kind, body) = multi(&[]);
    let (header, answer) = world.ask(kind, body);
    assert_eq!((header.err, header.zxid, parts_of(&answer).len()), (0, 3, 0));
}

// rows: P-63 P-64 P-66 G-03
#[test]
fn a_failed_multi_leaves_an_entry_in_the_log_and_nothing_else() {
    let mut world = Standalone::new(SETTINGS, false);
    // All at once: the multi is prepared while the requests before it are still pending, and so are the requests after it.
    let failing = [
        create(op::CREATE, "/a/n-", 2),
        set("/a", b"y", -1),
        delete("/missing"),
        create(op::CREATE, "/b", 0),
    ];
    let all = [
        create(op::CREATE, "/a", 0),
        set("/a", b"x", -1),
        multi(&failing),
        create(op::CREATE, "/a/n-", 2),
        set("/a", b"z", 1),
    ];
    let answers = world.send(&all);
    let heads: Vec<_> = answers.iter().map(|(header, _)| (header.zxid, header.err)).collect();
    assert_eq!(heads, [(2, 0), (3, 0), (4, 0), (5, 0), (6, 0)]);
    assert_eq!(parts_of(&answers[2].1), ["-1 0 0", "-1 0 0", "-1 -101 -101", "-1 -2 -2"]);
    assert!(world.exists("/a/n-0000000000") && !world.exists("/b"));

    let (_, entry) = &world.log()[3];
    let entry = Entry::decode(entry).expect("an entry");
    assert!(entry.digest.is_some_and(|digest| digest.tree_digest != 0));
    let Txn::Multi(txns) = entry.txn else { panic!("no multi: {entry:?}") };
    let logged: Vec<_> = txns
        .iter()
        .map(|txn| Txn::decode(txn.kind, &mut Reader::new(txn.data.expect("data"))).expect("txn"))
        .collect();
    assert!(matches!(&logged[0], Txn::Create(create) if create.path == "/a/n-0000000000"));
    assert!(matches!(&logged[1], Txn::SetData { version: 2, .. }));
    assert!(matches!(&logged[2..], [Txn::Error(a), Txn::Error(b)] if (a.0, b.0) == (-101, -2)));
}

// rows: P-65
#[test]
fn malformed_multi_is_refused_as_a_whole() {
    let mut world = Standalone::new(SETTINGS, false);
    let a = || create(op::CREATE, "/a", 0);
    let null_path = (op::DELETE, bytes(DeleteRequest { path: None, version: -1 }));
    let bad = [
        multi(&[a(), (op::SYNC, bytes(Some(std::borrow::Cow::Borrowed("/"))))]),
        multi(&[a(), read(op::GET_DATA, Some("/"))]),
        multi(&[read(op::GET_DATA, Some("/"))]),
        multi(&[a(), create(op::CREATE, "/b", 5)]),
        multi(&[a(), create(op::CREATE, "/b", 7)]),
        multi(&[a(), null_path]),
        multi(&[a(), (op::DELETE_CONTAINER, bytes(Some(std::borrow::Cow::Borrowed("/"))))]),
        (op::MULTI, vec![0, 0]),
    ];
    for (number, (kind, body)) in bad.into_iter().enumerate() {
        let (header, answer) = world.ask(kind, body);
        // It takes a zxid, as in Java.
        let zxid = 2 + i64::try_from(number).expect("few");
        assert_eq!((header.zxid, header.err, &*answer), (zxid, -5, &[][..]), "case {number}");
        assert_eq!(world.last_zxid(), zxid);
    }
    // A null access list takes none.
    let path = Some("/b".into());
    let null_acl = CreateRequest { path, data: None, acl: Vector::Null, flags: 0 };
    let (kind, body) = multi(&[(op::CREATE, bytes(null_acl))]);
    let (header, _) = world.ask(kind, body);
    assert_eq!((header.zxid, header.err, world.last_zxid()), (9, -5, 9));
    assert!(!world.exists("/a"));
}

// rows: P-53 P-67
#[test]
fn each_read_of_a_multi_read_answers_for_itself() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create(op::CREATE, "/a", 0), create(op::CREATE, "/a/b", 0)]);
    let these = [
        read(op::GET_DATA, Some("/a")),
        read(op::GET_DATA, Some("/missing")),
        read(op::GET_CHILDREN, Some("/a")),
    ];
    let (header, answer) = world.ask(op::MULTI_READ, parts(&these));
    assert_eq!((header.zxid, header.err), (3, 0));
    assert_eq!(parts_of(&answer), ["4 0 Some([120]) v0", "-1 -101 -101", "8 0 [\"b\"]"]);
    // Their watch flags have set no watches.
    assert_eq!(world.send(&[set("/a", b"y", -1)]).len(), 1);

    let (header, answer) = world.ask(op::MULTI_READ, parts(&[]));
    assert_eq!((header.err, parts_of(&answer).len()), (0, 0));
    let (header, answer) = world.ask(op::MULTI_READ, parts(&[delete("/a")]));
    assert_eq!((header.err, parts_of(&answer).len()), (-5, 0));
    let these = [read(op::GET_CHILDREN, Some("/a")), read(op::GET_DATA, None)];
    let (header, answer) = world.ask(op::MULTI_READ, parts(&these));
    assert_eq!((header.err, parts_of(&answer).len()), (-5, 1));
    let (header, answer) = world.ask(op::MULTI_READ, vec![0]);
    assert_eq!((header.err, &*answer), (-5, &[][..]));
}

#[test]
fn multi_read_with_a_huge_answer_is_refused() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create(op::CREATE, "/a", 0), set("/a", &vec![7; 1_000_000], -1)]);
    let of = |count: usize| parts(&vec![read(op::GET_DATA, Some("/a")); count]);
    let (header, answer) = world.ask(op::MULTI_READ, of(60));
    assert_eq!((header.err, answer.len() > 60_000_000), (0, true));
    let (header, answer) = world.ask(op::MULTI_READ, of(70));
    assert_eq!((header.err, &*answer), (-5, &[][..]));
}

// rows: P-53
#[test]
fn a_multi_read_that_would_hold_the_lock_for_long_is_refused() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create(op::CREATE, "/wide", 0)]);
    for n in 0..2000 {
        world.send(&[create(op::CREATE, &format!("/wide/{n}"), 0)]);
    }
    let of = |count: usize| parts(&vec![read(op::GET_CHILDREN, Some("/wide")); count]);
    assert_eq!(world.ask(op::MULTI_READ, of(390)).0.err, 0);
    let (header, answer) = world.ask(op::MULTI_READ, of(410));
    assert_eq!((header.err, &*answer), (-5, &[][..]));
    // As many parts as a frame of the default length holds are answered.
    let many = parts(&vec![read(op::GET_DATA, Some("/wide")); 45_000]);
    assert_eq!(world.ask(op::MULTI_READ, many).0.err, 0);
}

// rows: P-51
#[test]
fn check_outside_of_a_multi_is_refused() {
    let mut world = Standalone::new(SETTINGS, false);
    let (kind, body) = check("/", -1);
    let (header, _) = world.ask(kind, body);
    assert_eq!((header.zxid, header.err, world.closed.is_some()), (-1, -6, true));
    let mut world = Standalone::new(SETTINGS, false);
    let these = [check("/", 0), check("/", 1), check("/", 0)];
    let (kind, body) = multi(&these);
    let (_, answer) = world.ask(kind, body);
    assert_eq!(parts_of(&answer), ["-1 0 0", "-1 -103 -103", "-1 -2 -2"]);
}

// rows: P-52
#[test]
fn create_with_the_container_flag_in_a_multi_makes_a_container() {
    let mut world = Standalone::new(SETTINGS, false);
    let (kind, body) = multi(&[create(op::CREATE, "/c", 4), create(op::CREATE2, "/d", 4)]);
    let (header, _) = world.ask(kind, body);
    assert_eq!(header.err, 0);
    let tree = world.server.shared.state.tree.read();
    let owner = |path: &str| tree.znode(tree.find(path).expect(path)).stat_part().ephemeral_owner;
    assert_eq!((owner("/c"), owner("/d")), (i64::MIN, i64::MIN));
    drop(tree);
}

#[test]
fn parent_can_be_deleted_after_its_last_child_in_one_multi() {
    let mut world = Standalone::new(SETTINGS, true);
    let made = [create(op::CREATE, "/p", 0), create(op::CREATE, "/p/c", 0)];
    let gone = [delete("/p/c"), delete("/p")];
    for these in [vec![multi(&made), multi(&gone)], vec![multi(&[&made[..], &gone[..]].concat())]] {
        for (kind, body) in these {
            assert_eq!(world.ask(kind, body).0.err, 0);
        }
        assert!(!world.exists("/p"));
    }
}

// As Java's checkAndIncVersion.
#[test]
fn check_is_logged_with_the_version_after_the_one_it_found() {
    let mut world = Standalone::new(SETTINGS, false);
    world.send(&[create(op::CREATE, "/v", 0), set("/v", b"y", -1), multi(&[check("/v", 1)])]);
    let (_, entry) = world.log().last().expect("an entry");
    let Txn::Multi(parts) = Entry::decode(entry).expect("an entry").txn else { panic!("no multi") };
    let parts: Vec<_> = parts.iter().map(|part| part.data.expect("data").to_vec()).collect();
    assert_eq!(parts, [b"\0\0\0\x02/v\0\0\0\x02"]);
}

#[test]
fn version_of_delete_is_that_of_the_data_and_not_of_the_children() {
    let mut world = Standalone::new(SETTINGS, false);
    let made = [create(op::CREATE, "/p", 0), create(op::CREATE, "/p/c", 0), delete("/p/c")];
    world.send(&made);
    for (version, expected) in [(1, -103), (0, 0)] {
        let request = DeleteRequest { path: Some("/p".into()), version };
        assert_eq!(world.ask(op::DELETE, bytes(request)).0.err, expected);
    }
}
