//! What single steps of a request cost: decoding it, reading, applying, and appending to the log.
//!
//! `cargo bench --bench steps [part of a name]`. Times are of one batch; items a second are requests.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use jute::proto::{RequestHeader, SetDataRequest};
use jute::{Encode, Reader};
use oxkeeper::client::put_request;
use oxkeeper::model::{OPEN_ACL, Rng, Zxid, op};
use oxkeeper::store::{Log, LogOptions, RealDisk};
use oxkeeper::tree::Tree;
use oxkeeper::tree::txn::{Create, CreateKind, Entry, Txn};
use support::disk::Disk;
use support::standalone::{SETTINGS, Standalone};

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

/// `/bench` with this many children.
fn fill(tree: &mut Tree, znodes: usize) {
    create(tree, 0, "/bench");
    (0..znodes).for_each(|number| create(tree, number + 1, &path(number)));
}

/// A server without sockets or a disk, with a client that has a session.
fn world(znodes: usize) -> Standalone {
    let world = Standalone::new(SETTINGS, false);
    // Straight into the tree: faster than by requests.
    fill(&mut world.server.shared.state.tree.write(), znodes);
    world
}

/// Batches of requests on znodes drawn at random, as they come off a socket.
fn frames(znodes: usize, kind: i32) -> Vec<Vec<u8>> {
    let mut random = Rng::seeded(7);
    let mut batch = || {
        let mut bytes = Vec::new();
        for xid in 1..=BATCH {
            let path = path(random.pick(znodes));
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
    let entries = entries(&mut world(100), 100, 1);
    let entry = &entries[0][..];
    bencher
        .counter(BytesCount::of_slice(entry))
        .bench_local(|| black_box(Entry::decode(black_box(entry)).expect("our own")).header.zxid);
}

/// A batch of getData from the bytes that came to the bytes that go.
#[divan::bench(args = ZNODES)]
fn read(bencher: Bencher<'_, '_>, znodes: usize) {
    let mut connection = world(znodes).connect(0);
    let frames = frames(znodes, op::GET_DATA);
    let mut next = frames.iter().cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        connection.unsent.clear();
        connection.advance(next.next().expect("a cycle has no end"), 1).0
    });
}

/// A batch of setData from the bytes that came to the bytes that go, on a disk that takes no time.
#[divan::bench(args = ZNODES)]
fn write(bencher: Bencher<'_, '_>, znodes: usize) {
    let mut world = world(znodes);
    let mut client = world.connect(0);
    let frames = frames(znodes, op::SET_DATA);
    let mut next = frames.iter().cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        client.advance(next.next().expect("a cycle has no end"), 1);
        for command in client.commands.drain(..) {
            world.server.command(command);
        }
        assert!(world.server.flush(), "writes are logged");
        world.server.disk = Disk::default();
        world.server.replica.samples.writes.clear();
        client.advance(&[], 3);
        assert!(client.outstanding() == 0 && !client.unsent.is_empty());
        client.unsent.clear();
    });
}

/// Entries for setData on znodes drawn at random.
fn entries(world: &mut Standalone, znodes: usize, count: usize) -> Vec<Vec<u8>> {
    let mut random = Rng::seeded(9);
    world.take_log();
    for _ in 0..count {
        let mut body = Vec::new();
        let path = path(random.pick(znodes));
        let request = SetDataRequest { path: Some(path.into()), data: Some(&VALUE), version: -1 };
        request.encode(&mut body);
        world.send(&[(op::SET_DATA, body)]);
    }
    assert_eq!(world.log().len(), count);
    world.take_log().into_iter().map(|(_, entry)| entry.to_vec()).collect()
}

/// A batch of committed setData.
#[divan::bench(args = ZNODES)]
fn apply(bencher: Bencher<'_, '_>, znodes: usize) {
    let mut world = world(znodes);
    let entries = entries(&mut world, znodes, BATCH * 1024);
    let mut tree = world.server.shared.state.tree.write();
    let mut next = entries.iter().cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            let entry = next.next().expect("a cycle has no end");
            let entry = Entry::decode(entry).expect("our own");
            let mut effects = Vec::new();
            black_box(tree.apply(&entry.header, &entry.txn, &mut effects).code);
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
