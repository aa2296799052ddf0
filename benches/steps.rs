//! What single steps of a request cost: decoding it, reading, applying, and appending to the log.
//!
//! `cargo bench --bench steps [part of a name]`. Times are of one batch; items a second are requests.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[allow(dead_code, reason = "shared with tests that use all of it")]
#[path = "../tests/world/mod.rs"]
mod world;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use jute::proto::{RequestHeader, SetDataRequest};
use jute::{Encode, Reader};
use oxkeeper::auth::Schemes;
use oxkeeper::client::put_request;
use oxkeeper::model::{OPEN_ACL, SessionId, Zxid, op};
use oxkeeper::request::Connection;
use oxkeeper::request::prep::{Asker, Prep, Prepared};
use oxkeeper::store::{Log, LogOptions, RealDisk};
use oxkeeper::tree::txn::{Create, CreateKind, Entry, Txn};
use oxkeeper::tree::{Options, Tree};
use world::{SETTINGS, World};

/// Requests that come together: a full window of the load used for docs/performance.md.
const BATCH: usize = 16;
/// A tree that fits the caches, and one that does not.
const ZNODES: [usize; 2] = [10_000, 1_000_000];
const VALUE: [u8; 100] = [b'x'; 100];
/// Batches prepared beforehand, so that what is asked next is not known to any cache.
const BATCHES: usize = 8192;

fn main() {
    divan::main();
}

/// splitmix64: the same znodes in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }
}

fn path(number: usize) -> String {
    format!("/bench/n{number}")
}

fn zxid(raw: usize) -> Zxid {
    Zxid::from_wire(raw as i64).expect("small enough")
}

fn create(tree: &mut Tree, number: usize, path: &str) {
    let txn = Txn::Create(Create {
        path: path.into(),
        data: Some(&VALUE),
        acl: OPEN_ACL,
        kind: CreateKind::Persistent,
        parent_cversion: -1,
    });
    let zxid = number as i64 + 1;
    let header = jute::txn::TxnHeader { client_id: 1, cxid: 1, zxid, time: 1, kind: op::CREATE };
    tree.apply(&header, &txn, &mut Vec::new());
}

/// `/bench` with so many children.
fn fill(tree: &mut Tree, znodes: usize) {
    create(tree, 0, "/bench");
    (0..znodes).for_each(|number| create(tree, number + 1, &path(number)));
}

fn tree(znodes: usize) -> Tree {
    let mut tree = Tree::new(Options { seed: 1, digest: true, extended_types: false });
    fill(&mut tree, znodes);
    tree
}

/// Batches of requests on znodes drawn at random, as they come off a socket.
fn frames(znodes: usize, kind: i32) -> Vec<Vec<u8>> {
    let mut random = Random(7);
    let mut batch = || {
        let mut bytes = Vec::new();
        for xid in 1..=BATCH {
            let path = path(random.below(znodes));
            put_request(&mut bytes, xid as i32, kind, |to| {
                jute::put_string(to, &path);
                if kind == op::SET_DATA {
                    jute::put_buffer(to, &VALUE);
                    jute::put_i32(to, -1);
                } else {
                    to.push(0);
                }
            });
        }
        bytes
    };
    (0..BATCHES).map(|_| batch()).collect()
}

/// A connection with a session, on a server without sockets or a disk.
fn connection(znodes: usize) -> Connection {
    let mut world = World::new(SETTINGS, false);
    let connection = world.connect(0);
    // Straight into the tree: nothing is written through this server later on.
    fill(&mut world.shared.state.tree.write(), znodes);
    connection
}

/// Header and body of a setData.
#[divan::bench]
fn decode_request(bencher: Bencher<'_, '_>) {
    let frames = frames(10_000, op::SET_DATA);
    let frame = &frames[0][4..];
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| {
        let mut from = Reader::new(black_box(frame));
        let header: RequestHeader = from.read().expect("a header");
        let body: SetDataRequest<'_> = from.read().expect("a body");
        black_box((header.xid, body.version, body.path.map(|path| path.len())))
    });
}

/// An entry of the log, as apply and recovery read it.
#[divan::bench]
fn decode_entry(bencher: Bencher<'_, '_>) {
    let (entries, ends) = entries(&tree(100), 100, 1);
    let entry = &entries[..ends[0]];
    bencher
        .counter(BytesCount::of_slice(entry))
        .bench_local(|| black_box(Entry::decode(black_box(entry)).expect("our own")).header.zxid);
}

/// A batch of getData from the bytes that came to the bytes that go.
#[divan::bench(args = ZNODES)]
fn read(bencher: Bencher<'_, '_>, znodes: usize) {
    let mut connection = connection(znodes);
    let frames = frames(znodes, op::GET_DATA);
    let mut next = frames.iter().cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        connection.unsent.clear();
        connection.advance(next.next().expect("a cycle has no end"), 1).0
    });
}

/// Entries for setData on znodes drawn at random, one behind the other, and where each ends.
fn entries(tree: &Tree, znodes: usize, count: usize) -> (Vec<u8>, Vec<usize>) {
    let mut prep = Prep::new(tree, 1, false);
    let (mut entries, mut ends) = (Vec::new(), Vec::new());
    let mut random = Random(9);
    let schemes = Schemes::default();
    let asker = Asker {
        session: SessionId(1),
        xid: 1,
        who: &[],
        standing: Ok(()),
        wall_ms: 1,
        skip_acl: true,
        schemes: &schemes,
    };
    for _ in 0..count {
        let mut body = Vec::new();
        let path = path(random.below(znodes));
        let request = SetDataRequest { path: Some(path.into()), data: Some(&VALUE), version: -1 };
        request.encode(&mut body);
        let prepared = prep.prepare(tree, &asker, op::SET_DATA, &body, &mut entries);
        assert!(matches!(prepared, Some(Prepared::Proposal(_))));
        ends.push(entries.len());
    }
    (entries, ends)
}

/// A batch of committed setData.
#[divan::bench(args = ZNODES)]
fn apply(bencher: Bencher<'_, '_>, znodes: usize) {
    let mut tree = tree(znodes);
    let (entries, ends) = entries(&tree, znodes, BATCH * 1024);
    let mut at = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            let begin = if at == 0 { 0 } else { ends[at - 1] };
            let entry = Entry::decode(&entries[begin..ends[at]]).expect("our own");
            let mut effects = Vec::new();
            black_box(tree.apply(&entry.header, &entry.txn, &mut effects).code);
            at = (at + 1) % ends.len();
        }
    });
}

/// A batch into the log's buffer, checksum included; it is written to a file now and then, never flushed.
#[divan::bench]
fn append(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a folder");
    let options = LogOptions { force_sync: false, ..LogOptions::default() };
    let mut log = Log::new(RealDisk, dir.path(), options, None);
    let entry = [7; 150];
    let mut last = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            last += 1;
            log.append(zxid(last), &entry);
        }
        if last.is_multiple_of(BATCH * 256) {
            log.flush().expect("the disk works");
        }
    });
}
