//! How long a start takes: a snapshot of many znodes, plain and compressed, and a log of as many transactions.
//!
//! `cargo bench --bench start [znodes, default 1000000]`; files lie in the folder for temporary ones.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout)] // A bench's numbers are its output.

use std::path::Path;
use std::time::{Duration, Instant};

use jute::Encode;
use jute::txn::TxnHeader;
use oxkeeper::model::{OPEN_ACL, Zxid, op};
use oxkeeper::server::Restorer;
use oxkeeper::store::recover::recover;
use oxkeeper::store::{
    DigestTrailer, Folders, Log, LogOptions, Packing, RealDisk, RecoverOptions, SnapshotWriter,
    Trailers,
};
use oxkeeper::tree::txn::{CreateKind, Entry, write};
use oxkeeper::tree::{Options, Tree};

const OPTIONS: Options =
    Options { seed: 1, digest: true, extended_types: false, emulate_353: false };
const PARENTS: i64 = 1000;
const ROUNDS: usize = 5;

fn main() {
    let count = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::tempdir().expect("a folder for the bench");
    let folders = Folders::new(dir.path(), dir.path());
    std::fs::create_dir_all(&folders.logs).expect("a folder");
    let log = LogOptions { force_sync: false, ..LogOptions::default() };
    let mut log = Log::new(RealDisk, &folders.logs, log, None);
    let mut tree = Tree::new(OPTIONS);
    for raw in 1..=count {
        let entry = create(raw);
        log.append(zxid(raw), &entry);
        if raw % 20_000 == 0 {
            log.flush().expect("a flush");
        }
        let entry = Entry::decode(&entry).expect("of our own making");
        tree.apply(&entry.header, &entry.txn, &mut Vec::new());
    }
    log.flush().expect("a flush");
    time(&format!("log of {count} creates"), dir.path(), true);
    let logs = dir.path().join("version-2");
    for entry in std::fs::read_dir(&logs).expect("a folder").flatten() {
        std::fs::remove_file(entry.path()).expect("a file of this bench");
    }
    for packing in [Packing::Plain, Packing::Gzip, Packing::Snappy] {
        let begun = Instant::now();
        let bytes = snapshot(&mut tree, &folders.snapshots, packing);
        let took = begun.elapsed().as_millis();
        println!("write {packing:?} snapshot of {count} znodes: {took} ms, {} MB", bytes >> 20);
        time(&format!("{packing:?} snapshot of {count} znodes"), dir.path(), false);
        for entry in std::fs::read_dir(&folders.snapshots).expect("a folder").flatten() {
            std::fs::remove_file(entry.path()).expect("a file of this bench");
        }
    }
}

fn time(what: &str, dir: &Path, trust_empty: bool) {
    let folders = Folders::new(dir, dir);
    let options = RecoverOptions { trust_empty, ..RecoverOptions::default() };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut restorer = Restorer::new(OPTIONS);
        recover(&RealDisk, &folders, options, &mut restorer, || Duration::ZERO).expect("a start");
        let tree = restorer.finish().tree;
        times.push(begun.elapsed().as_millis());
        drop(tree);
    }
    println!("load {what}: {times:?} ms");
}

fn create(raw: i64) -> Vec<u8> {
    let mut entry = Vec::new();
    let header = TxnHeader { client_id: 1, cxid: 1, zxid: raw, time: raw, kind: op::CREATE };
    header.encode(&mut entry);
    let path = match raw {
        ..=PARENTS => format!("/parent{:04}", raw - 1),
        _ => format!("/parent{:04}/znode-{raw:010}", raw % PARENTS),
    };
    write::create(&mut entry, &path, Some(&[7; 100]), OPEN_ACL, CreateKind::Persistent, -1);
    entry
}

fn snapshot(tree: &mut Tree, dir: &Path, packing: Packing) -> u64 {
    let frozen = tree.freeze().expect("no other is under way");
    let mut writer =
        SnapshotWriter::create(&RealDisk, dir, frozen.zxid, packing).expect("a new file");
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let ended = tree.freeze_piece(frozen, &mut piece);
        writer.body(&piece).expect("room on the disk");
        if ended {
            break;
        }
    }
    tree.thaw(frozen);
    let (zxid, digest) = (frozen.zxid.to_wire(), tree.digest() as i64);
    let digest = Some(DigestTrailer { zxid, version: 2, digest });
    writer.finish(Trailers { digest, zxid: Some(zxid) }).expect("room on the disk").bytes
}

fn zxid(raw: i64) -> Zxid {
    Zxid::from_wire(raw).expect("a small number")
}
