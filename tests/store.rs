//! The store on a disk in memory: log files, snapshots and epoch files that are whole, torn or damaged.

mod store {
    mod empty_logs;
    mod epoch;
    mod log_folder;
    mod log_read;
    mod quarantine;
    mod recover;
    mod scan;
    mod truncation_check;
    mod worker;
}

use oxkeeper::model::Zxid;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, record};
use std::path::Path;

fn zxid(raw: i64) -> Zxid {
    Zxid::from_wire(raw).unwrap()
}

fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    let file = disk.create(path).unwrap();
    disk.write_at(&file, 0, bytes).unwrap();
}

/// An entry of `len` bytes, all 0 but its zxid.
fn entry(raw: i64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[12..20].copy_from_slice(&raw.to_be_bytes());
    bytes
}

/// A log file with one entry of `len` bytes per zxid.
fn log_file(zxids: &[i64], len: usize) -> Vec<u8> {
    let mut bytes = record::header().to_vec();
    zxids.iter().for_each(|&raw| record::put_record(&entry(raw, len), &mut bytes));
    bytes
}
