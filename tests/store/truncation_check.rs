//! Whether snapshots and the log lead to a zxid to which they are to be truncated.

use crate::log_file;
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::store::replaced_files::rename_all_but;
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::truncation_check::reaches;
use oxkeeper::store::{Disk as _, Packing, names, record};
use std::path::Path;

fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    crate::put(disk, &Path::new("/d").join(name), bytes);
}

/// A disk with whole snapshots at `snapshots`, and one log file with the zxids `log`.
fn disk(snapshots: &[Zxid], log: &[Zxid]) -> SimDisk {
    let disk = SimDisk::new();
    for at in snapshots {
        put(&disk, &names::snapshot_name(*at, Packing::Plain), b"ZKSN......\0\0\0\x01/");
    }
    if let Some(first) = log.first() {
        let zxids: Vec<i64> = log.iter().map(|at| at.to_wire()).collect();
        put(&disk, &names::log_name(*first), &log_file(&zxids, 36));
    }
    disk
}

fn can(disk: &SimDisk, to: Zxid) -> bool {
    reaches(disk, Path::new("/d"), Path::new("/d"), to)
}

// rows: D-52 Q-66
#[test]
fn truncation_is_possible_only_if_the_remaining_files_lead_to_its_zxid() {
    let log: Vec<Zxid> = (3..=9).map(|n| zxid(1, n)).collect();
    let both = disk(&[zxid(1, 2), zxid(1, 7)], &log);
    // Below the newer snapshot too, and at a snapshot itself.
    for n in 2..=9 {
        assert!(can(&both, zxid(1, n)), "{n}");
    }
    // No snapshot is before 1:2, and the log ends at 1:9.
    assert!(!can(&both, zxid(1, 1)) && !can(&both, zxid(1, 10)) && !can(&both, zxid(1, 0)));
    let newer = disk(&[zxid(1, 7)], &log);
    assert!(!can(&newer, zxid(1, 6)) && can(&newer, zxid(1, 8)));
    // Records are missing right after the snapshot, or later.
    assert!(!can(&disk(&[zxid(1, 1)], &log), zxid(1, 5)));
    let holed = [zxid(1, 3), zxid(1, 4), zxid(1, 6)];
    let holed = disk(&[zxid(1, 2)], &holed);
    assert!(can(&holed, zxid(1, 4)) && !can(&holed, zxid(1, 5)) && !can(&holed, zxid(1, 6)));
}

// rows: D-52
#[test]
fn beginning_of_an_epoch_is_reached_before_its_first_record() {
    let log = [zxid(1, 8), zxid(3, 1), zxid(3, 2)];
    let disk = disk(&[zxid(1, 7)], &log);
    assert!(can(&disk, zxid(3, 0)) && can(&disk, zxid(3, 1)) && can(&disk, zxid(1, 8)));
    assert!(!can(&disk, zxid(2, 0)) && !can(&disk, zxid(4, 0)) && !can(&disk, zxid(2, 1)));
}

#[test]
fn a_log_from_the_first_transaction_on_needs_no_snapshot() {
    let log = [zxid(0, 1), zxid(0, 2), zxid(0, 3)];
    assert!(can(&disk(&[], &log), zxid(0, 2)) && !can(&disk(&[], &log[1..]), zxid(0, 2)));
    assert!(!can(&disk(&[], &[]), zxid(0, 2)));
}

#[test]
fn truncation_does_not_rely_on_an_unfinished_snapshot() {
    let log: Vec<Zxid> = (3..=9).map(|n| zxid(1, n)).collect();
    let disk = disk(&[], &log);
    put(&disk, &names::snapshot_name(zxid(1, 2), Packing::Plain), b"ZKSN......\0\0\0");
    assert!(!can(&disk, zxid(1, 5)));
    put(&disk, &names::snapshot_name(zxid(1, 4), Packing::Plain), b"ZKSN......\0\0\0\x01/");
    assert!(can(&disk, zxid(1, 5)) && !can(&disk, zxid(1, 3)));
}

#[test]
fn truncation_to_a_zxid_after_damage_is_refused() {
    let log = [zxid(0, 1), zxid(0, 2), zxid(0, 3)];
    let disk = disk(&[zxid(0, 0)], &log);
    let file = disk.open(Path::new("/d/log.1")).unwrap();
    let second = record::HEADER_LEN + record::record_len(36);
    disk.write_at(&file, second + 20, b"\x55").unwrap();
    assert!(!can(&disk, zxid(0, 2)) && !can(&disk, zxid(0, 3)));
}

/// A member with snapshots `snapshots`, the log 1:1 to 1:5 and that of a second epoch, is cut off by a power cut while a restore renames these
/// files; then a leader asks it to go back to the end of that log, before the restored snapshot. The files that are left, each time that is
/// possible, and the cut.
fn left_by_cuts_of_a_restore(snapshots: &[Zxid]) -> Vec<(Vec<String>, String)> {
    let first: Vec<Zxid> = (1..=5).map(|n| zxid(1, n)).collect();
    let second: Vec<Zxid> = (1..=3).map(|n| zxid(2, n)).collect();
    let disk = disk(snapshots, &first);
    let zxids: Vec<i64> = second.iter().map(|at| at.to_wire()).collect();
    put(&disk, &names::log_name(second[0]), &log_file(&zxids, 36));
    let placed = names::snapshot_name(zxid(2, 9), Packing::Plain);
    put(&disk, &placed, b"ZKSN......\0\0\0\x01/");
    assert!(can(&disk, second[2]));
    for name in disk.list(Path::new("/d")).unwrap() {
        disk.sync_data(&disk.open(&Path::new("/d").join(name)).unwrap()).unwrap();
    }
    disk.sync_dir(Path::new("/d")).unwrap();
    disk.keep_images();
    rename_all_but(&disk, &Path::new("/d").join(placed), Path::new("/d")).unwrap();
    let mut possible = Vec::new();
    for image in disk.take_images() {
        for seed in 0..64 {
            let after = image.crash(seed);
            if can(&after, second[2]) {
                let cut = format!("change {}, seed {seed}", image.counts.changes);
                possible.push((after.list(Path::new("/d")).unwrap(), cut));
            }
        }
    }
    assert!(!possible.is_empty());
    possible
}

// rows: D-70
#[test]
fn crash_during_a_restore_leaves_no_truncation_to_a_history_without_an_epoch() {
    let log = names::log_name(zxid(1, 1));
    for (left, cut) in left_by_cuts_of_a_restore(&[Zxid::ZERO]) {
        assert!(left.contains(&log), "{cut}: {left:?}");
    }
}

// It has transactions that no log has.
// rows: D-70
#[test]
fn crash_during_a_restore_leaves_no_older_snapshot_without_the_newer_one() {
    let newer = names::snapshot_name(zxid(1, 7), Packing::Plain);
    for (left, cut) in left_by_cuts_of_a_restore(&[Zxid::ZERO, zxid(1, 7)]) {
        assert!(left.contains(&newer), "{cut}: {left:?}");
    }
}
