//! Quotas: what is counted below a path, what is refused, and what limits and counts do that can't be read.

use jute::Reader;
use jute::proto::{GetDataRequest, SetDataRequest};
use oxkeeper::client::op;
use oxkeeper::model::Zxid;
use oxkeeper::replica::Settings;
use oxkeeper::request::prep::Rules;
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use support::bodies::{self, Request, bytes, delete};
use support::standalone::{SETTINGS, Standalone, parts, replies};

fn create(path: &str, data: &str) -> Request {
    bodies::create(op::CREATE, path, Some(data.as_bytes()), 0)
}

fn set(path: &str, data: Option<&[u8]>) -> Request {
    bodies::set(path, data, -1)
}

const LIMITS: &str = "/zookeeper/quota/a/zookeeper_limits";
const STATS: &str = "/zookeeper/quota/a/zookeeper_stats";
const ENFORCED: Settings =
    Settings { rules: Rules { enforces_quota: true, ..Rules::DEFAULT }, ..SETTINGS };

/// Sends requests one after the other, and returns the codes.
fn codes(world: &mut Standalone, requests: &[Request]) -> Vec<i32> {
    requests.iter().map(|(kind, body)| world.ask(*kind, body.clone()).0.err).collect()
}

fn done(world: &mut Standalone, requests: &[Request]) {
    assert_eq!(codes(world, requests), vec![0; requests.len()]);
}

fn data(world: &mut Standalone, path: &str) -> String {
    let request = GetDataRequest { path: Some(path.into()), watch: false };
    let (header, body) = world.ask(op::GET_DATA, bytes(request));
    assert_eq!(header.err, 0, "{path}");
    let data: jute::Buffer<'_> = Reader::new(&body).read().expect("data");
    String::from_utf8_lossy(data.unwrap_or_default()).into_owned()
}

/// A world whose `/a` has a quota with these limits.
fn with_quota(settings: Settings, limits: &str) -> Standalone {
    let mut world = Standalone::new(settings, false);
    let made = [
        create("/a", "12"),
        create("/a/b", "3"),
        create("/zookeeper/quota/a", ""),
        create(LIMITS, limits),
        create(STATS, "count=9,bytes=9"),
    ];
    done(&mut world, &made);
    world
}

// rows: P-82 G-14
#[test]
fn quota_counts_every_write_below_its_path() {
    let mut world = with_quota(SETTINGS, "count=-1,bytes=-1");
    assert_eq!(data(&mut world, STATS), "count=2,bytes=3", "counted when the znode is made");
    done(&mut world, &[create("/a/b/c", "xyz"), create("/ab", "not below")]);
    assert_eq!(data(&mut world, STATS), "count=3,bytes=6");
    done(&mut world, &[set("/a/b", Some(b"")), set("/a", None)]);
    assert_eq!(data(&mut world, STATS), "count=3,bytes=3");
    done(&mut world, &[delete("/a/b/c")]);
    assert_eq!(data(&mut world, STATS), "count=2,bytes=0");
    // No setData has changed it: no version, no time, and no digest, which the world compares at its end.
    let tree = world.server.shared.state.tree.read();
    let stat = tree.znode(tree.find(STATS).unwrap()).stat();
    assert_eq!((stat.version, stat.mzxid, stat.data_length), (0, stat.czxid, 15));
    drop(tree);
    // Counting goes on from what an operator writes there.
    done(&mut world, &[set(STATS, Some(b"count=100,bytes=5;x=7")), create("/a/d", "1")]);
    assert_eq!(data(&mut world, STATS), "count=101,bytes=6=;x=7");
    done(&mut world, &[delete(LIMITS), create("/a/e", "")]);
    assert_eq!(data(&mut world, STATS), "count=101,bytes=6=;x=7", "the quota was deleted");
}

// rows: G-14
#[test]
fn writes_below_zookeeper_change_no_digest() {
    let mut world = Standalone::new(SETTINGS, false);
    let digest = |world: &Standalone| world.server.shared.state.tree.read().digest();
    let before = digest(&world);
    done(&mut world, &[create("/zookeeper/x", "data")]);
    let made = digest(&world);
    assert_ne!(before, made, "/zookeeper itself counts, and has changed");
    done(&mut world, &[create("/zookeeper/x/y", "more"), set("/zookeeper/x", None)]);
    assert_eq!(digest(&world), made);
}

#[test]
fn quota_counts_multis_and_ephemerals_of_closed_sessions() {
    let mut world = with_quota(SETTINGS, "");
    let (kind, body) = create("/a/c", "12345");
    let multi = parts(&[(kind, body), delete("/a/b")]);
    done(&mut world, &[(op::MULTI, multi)]);
    assert_eq!(data(&mut world, STATS), "count=2,bytes=7");
    let mut ephemeral = create("/a/e", "1");
    *ephemeral.1.last_mut().unwrap() = 1;
    world.connect(0);
    done(&mut world, &[ephemeral]);
    assert_eq!(data(&mut world, STATS), "count=3,bytes=8");
    done(&mut world, &[(op::CLOSE_SESSION, Vec::new())]);
    world.connect(0);
    assert_eq!(data(&mut world, STATS), "count=2,bytes=7");
}

// rows: C-73 P-69 P-82
#[test]
fn hard_quotas_refuse_writes_when_enforced() {
    let hard = "count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=3";
    let mut world = with_quota(ENFORCED, hard);
    done(&mut world, &[create("/a/c", "45")]);
    let over = [
        create("/a/d", ""),
        set("/a/c", Some(b"456")),
        set("/a/c", Some(b"45")),
        set("/a/c", Some(b"4")),
        create("/b", "without a limit"),
        delete("/a/c"),
        create("/a/c", "4567"),
        create("/a/c/d/e", ""),
    ];
    assert_eq!(codes(&mut world, &over), [-125, -125, 0, 0, 0, 0, -125, -101]);
    assert_eq!(data(&mut world, STATS), "count=2,bytes=3");
    // The version is checked after the quota (P-44).
    let body = SetDataRequest { path: Some("/a/b".into()), data: Some(b"123456789"), version: 7 };
    assert_eq!(codes(&mut world, &[(op::SET_DATA, bytes(body))]), [-125]);
    let mut none = with_quota(ENFORCED, "countHardLimit=0");
    assert_eq!(codes(&mut none, &[create("/a/c", "")]), [-125], "no znode is allowed");
    let mut soft = with_quota(ENFORCED, "count=1,bytes=1");
    done(&mut soft, &[create("/a/c", "12345")]);
    let mut unenforced = with_quota(SETTINGS, hard);
    done(&mut unenforced, &[create("/a/c", "12345"), create("/a/d", "12345")]);
}

// rows: P-44
#[test]
fn quotas_are_checked_against_applied_writes() {
    let mut world = with_quota(ENFORCED, "countHardLimit=3");
    world.disk_hangs = true;
    assert!(world.send(&[create("/a/c", ""), create("/a/d", ""), create("/a/e", "")]).is_empty());
    world.disk_hangs = false;
    world.flush();
    let codes: Vec<i32> = replies(&world.received()).iter().map(|(header, _)| header.err).collect();
    assert_eq!(codes, [0, 0, 0], "as in Java, pending writes do not count");
    assert_eq!(data(&mut world, STATS), "count=5,bytes=3");
}

/// A Java server ends at the next write below such a quota, and again at every start.
#[test]
fn unreadable_quota_text_stops_no_write() {
    let mut world = with_quota(SETTINGS, "count=5");
    for text in [Some(&b"rubbish"[..]), Some(b"count="), Some(b"\xff\xfe=x"), None] {
        done(&mut world, &[set(STATS, text), set("/a", Some(b"12")), create("/a/x", "99")]);
        assert_eq!(data(&mut world, STATS), "count=3,bytes=5", "counted again");
        done(&mut world, &[set(LIMITS, text), delete("/a/x")]);
        assert_eq!(data(&mut world, STATS), "count=2,bytes=3");
    }
    // Paths that Java cannot cut.
    done(
        &mut world,
        &[
            create("/zookeeper/quota/zookeeper_limits", ""),
            create("/zookeeper/x", ""),
            create("/zookeeper/x/zookeeper_limits", ""),
            delete("/zookeeper/x/zookeeper_limits"),
            delete("/zookeeper/quota/zookeeper_limits"),
            create("/zookeeper/zookeeper_limits", ""),
            delete("/zookeeper/zookeeper_limits"),
            create("/b", ""),
        ],
    );
    // The log that all this left is replayed.
    let mut tree = Tree::new(Options::default());
    for (_, entry) in world.log() {
        let entry = Entry::decode(entry).expect("our own entry");
        tree.apply(&entry.header, &entry.txn, &mut Vec::new());
    }
    assert_eq!(tree.digest(), world.server.shared.state.tree.read().digest());
    assert_eq!(tree.znode(tree.find(STATS).unwrap()).data().bytes(), Some(&b"count=2,bytes=3"[..]));
}

/// Java refuses them too, but only here: it refuses a write that it can't check.
#[test]
fn unreadable_quota_limits_refuse_writes_when_enforced() {
    let mut world = with_quota(ENFORCED, "rubbish");
    let multi = parts(&[create("/m", ""), create("/a/c", "")]);
    let asked =
        [create("/a/c", ""), set("/a/b", Some(b"22")), (op::MULTI, multi), create("/b", "")];
    assert_eq!(codes(&mut world, &asked), [-5, -5, -5, 0]);
    assert!(!world.exists("/m"));
}

// rows: D-24
#[test]
fn quota_counts_are_right_after_a_load() {
    let mut world = with_quota(ENFORCED, "countHardLimit=3");
    done(&mut world, &[set(STATS, Some(b"count=77,bytes=77"))]);
    let mut tree = world.server.shared.state.tree.write();
    let frozen = tree.freeze().expect("nothing else is frozen");
    let mut stream = Vec::new();
    while !tree.freeze_piece(frozen, &mut stream) {}
    tree.thaw(frozen);
    drop(tree);
    let mut loader = Loader::new(Options::default());
    assert!(loader.take(&stream).expect("a tree").ended);
    let loaded = loader.finish(Zxid::ZERO).expect("a tree");
    let stats = loaded.znode(loaded.find(STATS).unwrap()).data().bytes().map(<[u8]>::to_vec);
    assert_eq!(stats.as_deref(), Some(&b"count=2,bytes=3"[..]));
    assert_eq!(loaded.check_quota("/a/x", 2, 0).unwrap().len(), 1, "the quota is known");
    assert_eq!(loaded.digest(), world.server.shared.state.tree.read().digest());
}
