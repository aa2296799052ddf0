//! The end of the log that a leader sends to a learner.

use crate::{entry, log_file, put};
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::store::log_read::{limit_bytes, read};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Folders, Log, LogOptions, Packing, SnapshotWriter, Trailers};
use std::path::Path;

/// The most bytes of log that a leader sends to a learner.
const MAX_BYTES: u64 = 256 << 20;

fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

#[test]
fn log_is_not_read_across_an_installed_tree() {
    let (disk, folders) = (SimDisk::new(), Folders::new(Path::new("/d"), Path::new("/l")));
    let options = LogOptions { prealloc: 0, ..LogOptions::default() };
    let mut log = Log::new(disk.clone(), &folders.logs, options, None);
    let mut append = |zxid: Zxid| {
        log.append(zxid, &entry(zxid.to_wire(), 36));
        log.roll().unwrap();
    };
    (1..=3).for_each(|counter| append(zxid(1, counter)));
    (1..=2).for_each(|counter| append(zxid(2, counter)));
    let read_from = |from| {
        let tail = read(&disk, &folders, from, zxid(2, 2), 1 << 20);
        (tail.before, tail.entries.len())
    };
    let place = |zxid| {
        let dir = &folders.snapshots;
        let writer = SnapshotWriter::create(&disk, dir, zxid, Packing::Plain).unwrap();
        writer.finish(Trailers::default()).unwrap();
    };
    assert_eq!(read_from(zxid(1, 9)), (Some(zxid(1, 3)), 2));
    // This server takes snapshots of its own at transactions that are logged.
    place(zxid(1, 3));
    place(zxid(2, 1));
    assert_eq!(read_from(zxid(1, 9)), (Some(zxid(1, 3)), 2));
    // This one came from a leader, with 1:4 to 1:7.
    place(zxid(1, 7));
    assert_eq!(read_from(zxid(1, 2)), (None, 0));
    assert_eq!(read_from(zxid(1, 9)), (None, 0));
    assert_eq!(read_from(zxid(2, 1)), (Some(zxid(2, 1)), 1), "after it nothing is missing");
}

// rows: C-147 Q-68
#[test]
fn log_that_is_sent_is_limited_by_the_size_of_the_tree() {
    let limit = |factor| limit_bytes(factor, 920_000, 1000);
    assert_eq!((limit(Some(0.33)), limit(Some(1.0))), (330_000, 1_000_000));
    assert_eq!((limit(Some(0.0)), limit(None)), (0, 0));
    assert_eq!(limit_bytes(Some(1.0), u64::MAX, u64::MAX), MAX_BYTES);
}

// rows: Q-68 Q-69
#[test]
fn log_beyond_the_limit_or_without_the_entry_before_is_not_read() {
    let (disk, folders) = (SimDisk::new(), Folders::new(Path::new("/d"), Path::new("/l")));
    let zxids: Vec<i64> = (1..=9).collect();
    put(&disk, &folders.logs.join("log.1"), &log_file(&zxids, 36));
    let zxid = crate::zxid;
    let found = |from, limit_bytes| {
        let read = read(&disk, &folders, zxid(from), zxid(8), limit_bytes);
        (read.before, read.entries.len())
    };
    assert_eq!(found(3, 5 * 36), (Some(zxid(3)), 5));
    assert_eq!(found(3, 5 * 36 - 1), (None, 0));
    assert_eq!(found(3, 0), (None, 0));
    assert_eq!(found(0, 1000), (None, 0), "what was before the log is not known");
}
