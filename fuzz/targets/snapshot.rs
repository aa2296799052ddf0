//! Any bytes as a snapshot: it is refused with a reason or loaded, and what was loaded, written again, loads as the same.
//!
//! The first byte chooses how the file is compressed, and whether the other bytes are the file, or its body between a valid header and
//! a valid checksum.

use crate::starts::{DIR, put, restore, tree};
use oxkeeper::model::Zxid;
use oxkeeper::store::names::{Packing, snapshot_name};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{SnapshotWriter, Trailers};

const PACKINGS: [Packing; 3] = [Packing::Plain, Packing::Gzip, Packing::Snappy];

pub fn target(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let disk = SimDisk::new();
    let zxid = Zxid::from_wire(0x1f).expect("a zxid");
    let packing = PACKINGS[usize::from(choice / 2) % PACKINGS.len()];
    if choice % 2 == 0 {
        put(&disk, &DIR.join(snapshot_name(zxid, packing)), bytes);
    } else {
        let mut writer = SnapshotWriter::create(&disk, &DIR, zxid, packing).expect("a file");
        writer.body(bytes).expect("room");
        writer.finish(Trailers::default()).expect("room");
    }
    let Ok(mut loaded) = tree(&disk) else { return };
    let frozen = loaded.freeze().expect("the tree is not frozen yet");
    let mut body = Vec::new();
    while !loaded.freeze_piece(frozen, &mut body) {}
    loaded.thaw(frozen);
    let again = SimDisk::new();
    let mut writer = SnapshotWriter::create(&again, &DIR, frozen.zxid, packing).expect("a file");
    writer.body(&body).expect("room");
    writer.finish(Trailers::default()).expect("room");
    let second = restore(&again).expect("what we write can be read");
    assert_eq!(
        second,
        (loaded.digest(), loaded.last_zxid(), loaded.node_count()),
        "written and read again"
    );
}
