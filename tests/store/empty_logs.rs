//! Newest log files without a record: what a crash leaves, and what says that records are lost.

use super::recover::{MEMBER, default, folders, put_log, put_snapshot, run};
use crate::{entry, log_file, put, zxid};
use oxkeeper::model::Zxid;
use oxkeeper::store::purge::{purge, read_whole};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::{Disk as _, Log, LogOptions, RecoverOptions};

/// A failed write leaves a file without records, and the transactions before it are lost with an older file.
#[test]
fn empty_log_file_of_before_a_loss_hides_no_later_transaction() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 3, &[1, 2, 3]);
    put_log(&disk, "log.1", &[1, 2, 3, 4]);
    put_log(&disk, "log.9", &[]);
    let trusts = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    let (_, recovered) = run(&disk, trusts).unwrap();
    assert_eq!(recovered.last, Zxid::from_wire(4));
    // What was lost comes again, and more.
    let mut log = Log::new(disk.clone(), &folders().logs, LogOptions::default(), recovered.last);
    (5..=12).for_each(|raw| log.append(zxid(raw), &entry(raw, 40)));
    log.flush().unwrap();
    put_snapshot(&disk, 10, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let (found, _) = default(&disk);
    assert_eq!(found, (1..=12).collect::<Vec<_>>());
    // A Java server that takes this directory over would read from that file.
    assert!(!disk.list(&folders().logs).unwrap().contains(&"log.9".to_owned()));
}

/// As the test before this one, in a directory that a Java server has written, which leaves the empty file.
#[test]
fn empty_log_file_that_java_left_hides_no_later_transaction() {
    let disk = SimDisk::new();
    let held: Vec<i64> = (1..=10).collect();
    [7, 8, 10].into_iter().for_each(|last| put_snapshot(&disk, last, &held[..last as usize]));
    put_log(&disk, "log.1", &[1, 2, 3, 4]);
    put_log(&disk, "log.5", &[5, 6, 7, 8, 9, 10, 11, 12]);
    ["log.6", "log.7"].into_iter().for_each(|name| put_log(&disk, name, &[]));
    let all: Vec<i64> = (1..=12).collect();
    assert_eq!(default(&disk).0, all);
    let removed = purge(&disk, &folders(), 3, read_whole(&disk)).unwrap();
    assert_eq!(removed, [folders().logs.join("log.1")]);
    assert_eq!(default(&disk).0, all);
}

// What was acknowledged was in such a file, or in one before it.
// rows: D-47 D-48
#[test]
fn newest_log_without_records_is_refused_unless_it_follows_the_history() {
    let (all, without_records) = (RecoverOptions::default(), log_file(&[], 0));
    let (short, zeros) = (Vec::new(), vec![0; 90]);
    for (snapshot, name, content, refusal) in [
        (4, "log.5", &short, None),
        (4, "log.5", &zeros, None),
        (4, "log.5", &without_records, None),
        (4, "log.100000001", &zeros, None),
        (4, "log.7", &short, Some("goes on with 0x7 after 0x4")),
        (4, "log.7", &zeros, Some("goes on with 0x7 after 0x4")),
        (4, "log.7", &without_records, Some("goes on with 0x7 after 0x4")),
        (6, "log.5", &zeros, Some("log.5: no header (magic 0x0)")),
        (6, "log.5", &short, Some("log.5: no header (magic 0x0)")),
        (6, "log.5", &without_records, None),
    ] {
        for options in [all, MEMBER] {
            let disk = SimDisk::new();
            put_snapshot(&disk, snapshot, &[1, 2, 3, 4, 5, 6][..snapshot as usize]);
            put_log(&disk, "log.1", &[1, 2, 3, 4]);
            put(&disk, &folders().logs.join(name), content);
            match (refusal, run(&disk, options)) {
                (None, Ok((_, recovered))) => assert_eq!(recovered.last, Some(zxid(snapshot))),
                (Some(text), Err(error)) if error.to_string().contains(text) => {}
                (_, found) => panic!("{snapshot} {name} {content:?}: {found:?}"),
            }
        }
    }
    for (name, starts) in [("log.1", true), ("log.100000001", true), ("log.2", false)] {
        let disk = SimDisk::new();
        put(&disk, &folders().logs.join(name), b"");
        assert_eq!(run(&disk, all).is_ok(), starts, "{name}");
    }
}

// The operator has chosen that a power cut may take what was acknowledged.
// rows: D-47
#[test]
fn files_without_a_header_prove_nothing_without_forced_syncs() {
    for forces_sync in [true, false] {
        let disk = SimDisk::new();
        put_snapshot(&disk, 4, &[1, 2, 3, 4]);
        put_log(&disk, "log.1", &[1, 2, 3, 4]);
        put(&disk, &folders().logs.join("log.3"), &[0; 90]);
        put(&disk, &folders().logs.join("log.7"), b"");
        let found = run(&disk, RecoverOptions { forces_sync, ..MEMBER });
        assert_eq!(found.is_ok(), !forces_sync);
        let left = disk.list(&folders().logs).unwrap();
        assert_eq!(left.len(), if forces_sync { 3 } else { 1 });
    }
}
