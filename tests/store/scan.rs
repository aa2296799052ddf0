//! A whole log, file after file: repeats, damage and torn ends.

use crate::{entry, log_file, put as put_file};
use oxkeeper::model::Zxid;
use oxkeeper::store::decide::FLUSH_MAX;
use oxkeeper::store::scan::{ReadSoFar, ScanError, Scanned, TORN_FLUSH, repair, scan};
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
    let mut last = ReadSoFar::default();
    let scanned = scan(disk, Path::new("/logs"), Zxid::from_wire(after), |zxid, _, so_far| {
        seen.push(zxid);
        assert!(last.done < so_far.done && so_far.done <= so_far.of);
        assert!(last.of == 0 || last.of == so_far.of);
        last = so_far;
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
    put(&disk, "log.7", &[7], b"");
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
fn newest_file_without_a_header_is_removed_and_foreign_files_kept() {
    for unwritten in [vec![], vec![0; 15], vec![0; 5000]] {
        let disk = SimDisk::new();
        put(&disk, "log.1", &[1, 2], b"");
        put_bytes(&disk, "log.3", &unwritten);
        let (seen, scanned) = zxids(&disk, -1).unwrap();
        let empty = scanned.empty.as_ref().map(|empty| (empty.first, empty.has_header));
        assert_eq!((seen, empty), (vec![1, 2], Zxid::from_wire(3).map(|first| (first, false))));
        repair(&disk, Path::new("/logs"), &scanned).unwrap();
        assert_eq!(disk.list(Path::new("/logs")).unwrap(), ["log.1"]);
        // Files that are no logs, although their names begin like those of logs.
        let foreign = ["log.4.tmp", "log.bak", "log.dead.gz"];
        foreign.iter().for_each(|name| put_bytes(&disk, name, b"mine"));
        let (seen, scanned) = zxids(&disk, -1).unwrap();
        assert_eq!((seen, &scanned.empty), (vec![1, 2], &None));
        repair(&disk, Path::new("/logs"), &scanned).unwrap();
        let left = disk.list(Path::new("/logs")).unwrap();
        assert_eq!(left, ["log.1", "log.4.tmp", "log.bak", "log.dead.gz"]);
    }
}

// A file has a header and records before the next one is made, and its header before the zeros after it.
// rows: D-47
#[test]
fn files_without_a_header_that_no_crash_leaves_are_damage() {
    for (older, later) in [(&b"ZKLG"[..], None), (b"", Some(&b""[..])), (&[0; 90], Some(&[0; 90]))]
    {
        let disk = SimDisk::new();
        put(&disk, "log.1", &[1, 2], b"");
        put_bytes(&disk, "log.3", older);
        match later {
            Some(later) => put_bytes(&disk, "log.5", later),
            None => put(&disk, "log.5", &[5], b""),
        }
        assert!(matches!(zxids(&disk, -1), Err(ScanError::Header { .. })));
    }
    // Nor are a file's writes lost while the machine keeps its power.
    for (head, is_damage) in [(&[0; 15][..], false), (&[0; 90], true)] {
        let disk = SimDisk::new();
        put(&disk, "log.1", &[1, 2], b"");
        put_bytes(&disk, "log.3", head);
        disk.keep_power();
        assert_eq!(zxids(&disk, -1).is_err(), is_damage);
    }
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

/// A log file of many records, 49 bytes each, with `damage` over it: what of it is read, and where a torn flush begins.
///
/// * `span_ms`: between the times of the first record and of the last one.
fn read_damaged_on(
    disk: &SimDisk,
    damage: &[(u64, &[u8])],
    span_ms: i64,
    newest: bool,
) -> Result<(usize, Option<u64>), ScanError<Infallible>> {
    let mut bytes = record::header().to_vec();
    for zxid in 1..=RECORDS {
        let mut entry = entry(zxid, ENTRY_LEN);
        entry[..12].fill(0xb7);
        entry[28..].fill(0xb7);
        entry[20..28].copy_from_slice(&((1 << 40) + span_ms * zxid / RECORDS).to_be_bytes());
        record::put_record(&entry, &mut bytes);
    }
    let end = bytes.len() as u64;
    bytes.resize(bytes.len() + 5000, 0);
    for (at, with) in damage {
        bytes[*at as usize..][..with.len()].copy_from_slice(with);
    }
    put_bytes(disk, "log.1", &bytes);
    if !newest {
        let next = [(1 << 32) + 1];
        put(disk, "log.100000001", &next, b"");
    }
    let (seen, scanned) = zxids(disk, -1)?;
    let seen = seen.len() - usize::from(!newest);
    let Some(torn) = scanned.torn.clone() else { return Ok((seen, None)) };
    assert_eq!(torn.end, end);
    // Repaired, the file is as if the flush had never begun; what it left is kept.
    let dir = Path::new("/logs");
    repair(disk, dir, &scanned).unwrap();
    let read = |name: &str| {
        let file = disk.open(&dir.join(name)).unwrap();
        let mut into = vec![0; disk.len(&file).unwrap() as usize];
        disk.read_at(&file, 0, &mut into).unwrap();
        into
    };
    assert!(read("log.1") == bytes[..torn.from.at as usize]);
    assert!(read(TORN_FLUSH) == bytes[torn.from.at as usize..end as usize]);
    let again = zxids(disk, -1)?;
    assert_eq!((again.0.len(), again.1.torn), (seen, None));
    repair(disk, dir, &scanned).unwrap();
    Ok((seen, Some(torn.from.at)))
}

fn read_damaged(
    damage: &[(u64, &[u8])],
    span_ms: i64,
    newest: bool,
) -> Result<(usize, Option<u64>), ScanError<Infallible>> {
    read_damaged_on(&SimDisk::new(), damage, span_ms, newest)
}

const RECORDS: i64 = 200;
const ENTRY_LEN: usize = 36;
/// Offset of the record after `before` others.
const fn offset(before: u64) -> u64 {
    record::HEADER_LEN + before * record::record_len(ENTRY_LEN)
}

/// What looks like an end in the middle of a file is one only where a flush that the power cut short can have left it: it left whole
/// sectors of zeros, and the transactions after them came at nearly one time.
// rows: D-45 D-46
#[test]
fn records_after_a_damaged_one_are_given_up_only_if_one_flush_can_leave_both() {
    let (zeros, short) = ([0; 8 * 512], 900);
    let sector = |number: u64| number * 512;
    let torn = |damage: &[(u64, &[u8])], seen: u64, why: &str| {
        let at = offset(seen);
        let seen = seen as usize;
        assert_eq!(read_damaged(damage, short, true).unwrap(), (seen, Some(at)), "{why}");
        let older = read_damaged(damage, short, false);
        let is_end = matches!(older, Ok((read, None)) if read == seen);
        assert!(is_end || matches!(older, Err(ScanError::Corrupt { .. })), "{why}: {older:?}");
        let late = read_damaged(damage, 30_000, true);
        assert!(matches!(late, Err(ScanError::Corrupt { .. })), "{why}: {late:?}");
        let disk = SimDisk::new();
        disk.keep_power();
        let kept = read_damaged_on(&disk, damage, short, true);
        assert!(
            matches!(kept, Err(ScanError::Corrupt { .. })),
            "{why}, without a power cut: {kept:?}"
        );
    };
    torn(&[(sector(5), &zeros[..512])], (sector(5) - 16) / 49, "a sector is missing");
    torn(&[(sector(3), &zeros[..])], (sector(3) - 16) / 49, "a page is missing");
    // A flush that begins in the middle of a sector leaves what was there before.
    for before in 11..40 {
        let rest = sector(offset(before) / 512 + 1) - offset(before);
        if rest > 12 {
            torn(
                &[(offset(before), &zeros[..rest as usize])],
                before,
                "the first sector is missing",
            );
        }
    }

    let corrupt = |damage: &[(u64, &[u8])], why: &str| {
        for newest in [true, false] {
            let read = read_damaged(damage, short, newest);
            assert!(matches!(read, Err(ScanError::Corrupt { .. })), "{why}: {read:?}");
        }
    };
    for before in [0, 1, 17, 87, 150, 190] {
        let at = offset(before);
        corrupt(&[(at + 8, &[0; 4])], "no length");
        corrupt(&[(at + 9, &[b'X'; 13])], "a length above that of the rest");
        corrupt(&[(at + 10, &[0x20])], "a length that covers the records after it");
        corrupt(&[(at + 20, &[0xa7; 16])], "other bytes in one record");
        corrupt(&[(at + 48, &[0x43])], "no end mark");
        corrupt(&[(at + 48, &[0])], "zero in place of an end mark");
        corrupt(&[(at, &[0; 49])], "one record of zeros");
        corrupt(&[(at + 4, &[0; 20])], "zeros in place of a record's begin");
    }
    for from in [1003, 1050, 1500, 2047] {
        corrupt(&[(from, &zeros[..512])], "as many zeros as a sector has, at another place");
        corrupt(&[(from, &zeros[..500])], "the part of a sector");
    }
    // Zeros that no flush is long enough to leave.
    let far = FLUSH_MAX as usize + 100;
    let disk = SimDisk::new();
    let mut bytes = log_file(&[1], ENTRY_LEN);
    bytes.resize(far, 0);
    record::put_record(&entry(9, ENTRY_LEN), &mut bytes);
    put_bytes(&disk, "log.1", &bytes);
    assert!(matches!(zxids(&disk, -1), Err(ScanError::Corrupt { .. })));
}
