//! A whole log, file after file: repeats, damage and torn ends.

use crate::{entry, log_file, put as put_file};
use oxkeeper::model::Zxid;
use oxkeeper::store::decide::FLUSH_MAX;
use oxkeeper::store::scan::{ReadSoFar, ScanError, Scanned, repair, scan};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, record};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

fn put(disk: &SimDisk, name: &str, zxids: &[i64], tail: &[u8]) {
    let mut bytes = log_file(zxids, 36);
    bytes.extend_from_slice(tail);
    put_bytes(disk, name, &bytes);
}

fn put_bytes(disk: &SimDisk, name: &str, bytes: &[u8]) {
    put_file(disk, &Path::new("/logs").join(name), bytes);
}

fn zxids(disk: &SimDisk, after: i64) -> Result<(Vec<i64>, Scanned), ScanError<Infallible>> {
    let mut seen = Vec::new();
    let mut told = ReadSoFar::default();
    let scanned = scan(disk, Path::new("/logs"), Zxid::from_wire(after), |zxid, _, so_far| {
        seen.push(zxid);
        assert!(told.done < so_far.done && so_far.done <= so_far.of);
        assert!(told.of == 0 || told.of == so_far.of);
        told = so_far;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((seen, scanned))
}

// rows: D-48 D-45
#[test]
fn zxids_that_repeat_or_go_back_are_read() {
    let disk = SimDisk::new();
    put(&disk, "log.1", &[1, 2, 3], b"\0\0\0\0\x01\x02\x03\x04\0\0\0\x09torn");
    put(&disk, "log.4", &[4, 6, 5, 6], &[0; 300]);
    put(&disk, "log.7.old", &[7], b"");
    assert_eq!(zxids(&disk, -1).unwrap().0, [1, 2, 3, 4, 6, 5, 6, 7]);
    assert_eq!(zxids(&disk, 2).unwrap().0, [3, 4, 6, 5, 6, 7]);
    let last = scan(&disk, Path::new("/logs"), None, |zxid, _, so_far| {
        let there = so_far.done == so_far.of;
        if there { Err(zxid) } else { Ok(ControlFlow::Continue(())) }
    });
    assert!(matches!(last, Err(ScanError::Taken { zxid: 7, source: 7, .. })), "{last:?}");
    assert_eq!(zxids(&disk, 2).unwrap().1.gap, Some((Zxid::from_wire(4), 6)));
    assert_eq!(zxids(&disk, 5).unwrap().1.gap, None);
    assert_eq!(zxids(&disk, 5).unwrap().0, [6, 5, 6, 7]);
    let (none, scanned) = zxids(&disk, 7).unwrap();
    assert_eq!((none.len(), scanned.passed, scanned.highest), (0, 1, None));
}

// rows: D-47
#[test]
fn newest_files_without_a_header_are_removed_and_foreign_files_kept() {
    let disk = SimDisk::new();
    put(&disk, "log.1", &[1, 2], b"");
    put_bytes(&disk, "log.3", &[0; 5000]);
    put_bytes(&disk, "log.4", b"");
    let (seen, scanned) = zxids(&disk, -1).unwrap();
    assert_eq!((seen, scanned.unwritten.len()), (vec![1, 2], 2));
    repair(&disk, Path::new("/logs"), &scanned).unwrap();
    assert_eq!(disk.list(Path::new("/logs")).unwrap(), ["log.1"]);
    // Files that are no logs, although their names begin like those of logs.
    let foreign = ["log.4.tmp", "log.bak", "log.dead.gz"];
    foreign.iter().for_each(|name| put_bytes(&disk, name, b"mine"));
    let (seen, scanned) = zxids(&disk, -1).unwrap();
    assert_eq!((seen, scanned.unwritten.len()), (vec![1, 2], 0));
    repair(&disk, Path::new("/logs"), &scanned).unwrap();
    let left = disk.list(Path::new("/logs")).unwrap();
    assert_eq!(left, ["log.1", "log.4.tmp", "log.bak", "log.dead.gz"]);
    foreign.iter().for_each(|name| disk.remove(&Path::new("/logs").join(name)).unwrap());
    put_bytes(&disk, "log.3", b"ZKLG");
    put(&disk, "log.5", &[5], b"");
    assert!(matches!(zxids(&disk, -1), Err(ScanError::Header { .. })));
}

// rows: D-46
#[test]
fn damage_is_fatal_except_in_a_torn_end_of_the_newest_file() {
    let second = record::HEADER_LEN + record::record_len(36);
    let damaged_at = |disk: &SimDisk, at: u64, with: &[u8]| {
        let file = disk.open(Path::new("/logs/log.3")).unwrap();
        disk.write_at(&file, second + at, with).unwrap();
    };
    let damaged = |disk: &SimDisk| damaged_at(disk, 20, b"\x55");
    // Its length, its bytes, its mark: the last record was acknowledged, whether another file follows or none.
    for (at, with) in [(8, b"\x7f"), (11, b"\0"), (11, b"\x23"), (20, b"\x55"), (48, b"\x43")] {
        for newest in [true, false] {
            let disk = SimDisk::new();
            put(&disk, "log.3", &[3, 4], &[0; 90]);
            if !newest {
                put(&disk, "log.100000001", &[0x1_0000_0001], b"");
            }
            damaged_at(&disk, at, with);
            assert!(matches!(zxids(&disk, -1), Err(ScanError::Corrupt { .. })), "{at} {newest}");
        }
    }
    // A sector that never reached the disk.
    let disk = SimDisk::new();
    put(&disk, "log.3", &[3], b"");
    let (mut large, mut torn) = (vec![7; 2000], Vec::new());
    large[..36].copy_from_slice(&entry(4, 36));
    record::put_record(&large, &mut torn);
    torn[1024 - second as usize..][..512].fill(0);
    damaged_at(&disk, 0, &torn);
    let (seen, scanned) = zxids(&disk, -1).unwrap();
    assert_eq!(seen, [3]);
    repair(&disk, Path::new("/logs"), &scanned).unwrap();
    put(&disk, "log.4", &[4], b"");
    assert_eq!(zxids(&disk, -1).unwrap().0, [3, 4]);

    let disk = SimDisk::new();
    put(&disk, "log.3", &[3, 4, 5], &[0; 90]);
    damaged(&disk);
    let error = zxids(&disk, -1).unwrap_err();
    assert!(error.to_string().starts_with("read record at /logs/log.3 offset 65"), "{error}");

    let disk = SimDisk::new();
    put(&disk, "log.3", &[3, 4], b"");
    put(&disk, "log.5", &[5], b"");
    damaged(&disk);
    assert!(matches!(zxids(&disk, -1), Err(ScanError::Corrupt { .. })));
}

/// What looks like an end in the middle of a file is one only where a torn flush can have left it.
// rows: D-45 D-46
#[test]
fn torn_record_with_records_after_it_is_damage_unless_one_flush_can_leave_both() {
    let record = record::record_len(36);
    let second = record::HEADER_LEN + record;
    let check = |zeros: u64, mark: bool, newest: bool, padding: usize| {
        let disk = SimDisk::new();
        put(&disk, "log.1", &[1, 2, 3, 4], &[]);
        let file = disk.open(Path::new("/logs/log.1")).unwrap();
        disk.write_at(&file, second, &vec![0; zeros as usize]).unwrap();
        if mark {
            disk.write_at(&file, second + record - 1, b"\x43").unwrap();
        }
        // A record that can't have been in one flush with the others.
        let mut far = vec![0; padding];
        record::put_record(&entry(9, 36), &mut far);
        if padding > 0 {
            disk.write_at(&file, second + 3 * record, &far).unwrap();
        }
        if !newest {
            put(&disk, "log.2", &[2, 3], b"");
        }
        zxids(&disk, -1).map(|(seen, scanned)| (seen, scanned.torn.is_some())).ok()
    };
    assert_eq!(check(0, false, true, 0), Some((vec![1, 2, 3, 4], false)));
    assert_eq!(check(record, false, true, 0), Some((vec![1], true)), "torn");
    assert_eq!(check(record, false, false, 0), Some((vec![1, 2, 3], false)), "torn before");
    assert_eq!(check(0, true, true, 0), None, "rot");
    assert_eq!(check(0, true, false, 0), None, "rot");
    let far = FLUSH_MAX as usize + 1;
    assert_eq!(check(record, false, true, far), None, "no flush is so long");
    assert_eq!(check(record, false, false, far), None, "no flush is so long");
}
