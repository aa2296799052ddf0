//! Any bytes as a transaction log: a start either refuses with a reason or restores a tree, and the next start on what
//! the first one left restores the same.
//!
//! The first byte chooses: the other bytes are the file, or they are entries, which become records with valid checksums so that the
//! fuzzer reaches the code after the check.

use crate::starts::{DIR, put, restore};
use oxkeeper::model::Zxid;
use oxkeeper::store::names::log_name;
use oxkeeper::store::record;
use oxkeeper::store::sim_disk::SimDisk;

/// A log of the entries in `input`: each is a length byte and that many bytes.
pub fn sealed(mut input: &[u8]) -> Vec<u8> {
    let mut file = record::header().to_vec();
    while let Some((&len, rest)) = input.split_first() {
        let (entry, rest) = rest.split_at(usize::from(len).min(rest.len()));
        if !entry.is_empty() {
            record::put_record(entry, &mut file);
        }
        input = rest;
    }
    file
}

pub fn target(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let disk = SimDisk::new();
    let name = log_name(Zxid::from_wire(1).expect("a zxid"));
    let file = if choice % 2 == 0 { bytes.to_vec() } else { sealed(bytes) };
    put(&disk, &DIR.join(name), &file);
    let Ok(first) = restore(&disk) else { return };
    let second = restore(&disk).expect("a log that one start has restored");
    assert_eq!(first, second, "two starts on one log");
}
