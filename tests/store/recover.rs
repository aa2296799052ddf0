//! Recovery from snapshots and logs.

use crate::{log_file, put, zxid};
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::store::decide::Start;
use oxkeeper::store::epoch::{self, EpochFile};
use oxkeeper::store::recover::{SkipReason, consume_initialize, prepare_folders};
use oxkeeper::store::sim_disk::SimDisk;
use oxkeeper::store::start;
use oxkeeper::store::{
    Disk as _, Folders, Packing, Progress, RecoverError, RecoverOptions, Recovered, Restore,
    SnapshotWriter, Trailers, names, recover,
};
use std::path::Path;
use std::time::Duration;

/// A state that is a list of zxids; its snapshot has 8 bytes for each of them, and ends with -1.
#[derive(Debug, Default, PartialEq)]
struct State(Vec<i64>);

#[derive(Debug, thiserror::Error)]
#[error("zxid 666")]
pub(super) struct Refused;

impl Restore for State {
    type Error = Refused;
    fn reset(&mut self) {
        self.0.clear();
    }
    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, Refused> {
        let (mut consumed, mut finished) = (0, false);
        for chunk in bytes.chunks_exact(8) {
            consumed += 8;
            match i64::from_be_bytes(chunk.try_into().unwrap()) {
                -1 => {
                    finished = true;
                    break;
                }
                666 => return Err(Refused),
                zxid => self.0.push(zxid),
            }
        }
        Ok(Progress { consumed, finished })
    }
    fn snapshot_done(&mut self, _: Zxid, _: Trailers) -> Result<(), Refused> {
        Ok(())
    }
    fn replay(&mut self, zxid: i64, _: &[u8]) -> Result<(), Refused> {
        if zxid == 666 {
            return Err(Refused);
        }
        self.0.push(zxid);
        Ok(())
    }
}

pub(super) fn folders() -> Folders {
    Folders::new(Path::new("/data"), Path::new("/log"))
}

pub(super) fn put_snapshot(disk: &SimDisk, zxid: i64, zxids: &[i64]) {
    put_packed(disk, zxid, zxids, Packing::Plain);
}

fn put_packed(disk: &SimDisk, raw: i64, zxids: &[i64], packing: Packing) {
    let dir = folders().snapshots;
    let mut writer = SnapshotWriter::create(disk, &dir, zxid(raw), packing).unwrap();
    zxids.iter().chain([&-1]).for_each(|zxid| writer.body(&zxid.to_be_bytes()).unwrap());
    writer.finish(Trailers { digest: None, zxid: Some(raw) }).unwrap();
}

pub(super) fn put_log(disk: &SimDisk, name: &str, zxids: &[i64]) {
    put(disk, &folders().logs.join(name), &log_file(zxids, 40));
}

pub(super) fn run(
    disk: &SimDisk,
    options: RecoverOptions,
) -> Result<(Vec<i64>, Recovered), RecoverError<Refused>> {
    let mut state = State(vec![99]);
    let mut now = 0;
    let recovered = recover(disk, &folders(), options, &mut state, || {
        now += 1;
        Duration::from_millis(now * now)
    })?;
    Ok((state.0, recovered))
}

pub(super) const MEMBER: RecoverOptions = RecoverOptions {
    trust_empty: false,
    autocreate: true,
    running: false,
    is_member: true,
    forces_sync: true,
};
/// A member has others to get lost transactions from, so `snapshot.trust.empty` does not let it go on without them.
const TRUSTING_MEMBER: RecoverOptions = RecoverOptions { trust_empty: true, ..MEMBER };

pub(super) fn default(disk: &SimDisk) -> (Vec<i64>, Recovered) {
    run(disk, RecoverOptions::default()).unwrap()
}

// rows: D-31 D-48
#[test]
fn newest_snapshot_is_loaded_and_the_log_after_it_replayed() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 3, &[1, 2, 3]);
    put_snapshot(&disk, 5, &[1, 2, 3, 4, 5]);
    put_log(&disk, "log.1", &[1, 2, 3, 4]);
    put_log(&disk, "log.5", &[5, 6, 7]);
    let (zxids, recovered) = default(&disk);
    assert_eq!(zxids, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((recovered.start, recovered.txns), (Start::Replay, 2));
    assert_eq!((recovered.last, recovered.trailers.zxid), (Zxid::from_wire(7), Some(5)));
    assert_eq!((recovered.snapshot_took.as_millis(), recovered.replay_took.as_millis()), (3, 5));
}

#[test]
fn log_read_by_a_start_survives_a_power_cut() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 3, &[1, 2, 3]);
    put_log(&disk, "log.1", &[1, 2, 3, 4]);
    disk.sync_data(&disk.open(&folders().logs.join("log.1")).unwrap()).unwrap();
    // A process was killed before it had flushed this.
    put_log(&disk, "log.5", &[5, 6]);
    disk.sync_dir(&folders().logs).unwrap();
    let (zxids, _) = default(&disk);
    assert_eq!(zxids, [1, 2, 3, 4, 5, 6], "all that was read must stay from now on");
    let (found, _) = default(&disk.image().crash(0));
    assert_eq!(found, zxids);
}

// rows: D-30 D-31
#[test]
fn damaged_snapshots_fall_back_to_older_ones() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_snapshot(&disk, 4, &[1, 2, 3, 4]);
    put_snapshot(&disk, 5, &[1, 2, 3, 4, 666]);
    put(&disk, &folders().snapshots.join("snapshot.6"), b"ZKSN");
    put(&disk, &folders().snapshots.join(".snapshot.7.tmp"), b"ZKSN");
    // As left by a Java server that was killed while it wrote its leader's tree.
    put(&disk, &folders().snapshots.join("snapshot.99.tmp"), b"ZKSN");
    put(&disk, &folders().snapshots.join("snapshot.99.gz.tmp"), b"\x1f\x8b");
    let file = disk.open(&folders().snapshots.join("snapshot.4")).unwrap();
    disk.write_at(&file, 23, &[7]).unwrap();
    put_log(&disk, "log.1", &[1, 2, 3, 4, 5, 6]);
    let (zxids, recovered) = default(&disk);
    assert_eq!(zxids, [1, 2, 3, 4, 5, 6]);
    let why: Vec<&SkipReason> = recovered.skipped.iter().map(|skipped| &skipped.why).collect();
    assert_eq!(
        why[..2],
        [&SkipReason::NotWhole, &SkipReason::Bad("decode snapshot after 16: zxid 666".into())]
    );
    assert!(matches!(why[2], SkipReason::Bad(why) if why.starts_with("seal at 56")), "{why:?}");
    assert!(!disk.list(&folders().snapshots).unwrap().contains(&".snapshot.7.tmp".to_owned()));
    disk.remove(&folders().snapshots.join("snapshot.2")).unwrap();
    disk.remove(&folders().logs.join("log.1")).unwrap();
    put_log(&disk, "log.2", &[2, 3, 4, 5, 6]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(matches!(error, RecoverError::AllSnapshotsBad { tried: 2, .. }), "{error}");
    let (text, newest) = (error.to_string(), folders().snapshots.join("snapshot.6"));
    assert!(text.contains(&format!("the newest, {}: ", newest.display())), "{text}");
    assert!(error.advice(false).is_some_and(|act| act.starts_with("restore a backup")));
    assert!(error.advice(true).is_some_and(|act| act.contains("the leader sends its tree")));
}

#[test]
fn damaged_snapshot_is_fatal_if_the_log_lacks_what_it_held() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_snapshot(&disk, 5, &[1, 2, 3, 4, 666]);
    put_log(&disk, "log.1", &[1, 2, 3]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("snapshot.5 is damaged"), "{error}");
    put_log(&disk, "log.4", &[4, 5]);
    assert_eq!(default(&disk).0, [1, 2, 3, 4, 5]);
    // A new leader's snapshot is named by an epoch that has no transaction yet, and may hold more of the epoch before.
    put_snapshot(&disk, 1 << 32, &[666]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("snapshot.100000000 is damaged"), "{error}");
    // The log goes on after the damaged snapshot, but no other file has what the snapshot alone held.
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_snapshot(&disk, 5, &[1, 2, 3, 4, 666]);
    put_log(&disk, "log.6", &[6, 7]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("whole up to 0x2 at most"), "{error}");
    // A leader sent the snapshot, and the log has nothing of its epoch: no gap shows that.
    let (sent, later) = ((2 << 32) + 9, (3 << 32) + 1);
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_snapshot(&disk, sent, &[666]);
    put_log(&disk, "log.3", &[3, 4]);
    put_log(&disk, "log.300000001", &[later]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("snapshot.200000009 is damaged"), "{error}");
    put_log(&disk, "log.200000001", &((2 << 32) + 1..=sent).collect::<Vec<i64>>());
    assert_eq!(default(&disk).0.last(), Some(&later), "its own log has all of it");
}

// rows: D-30
#[test]
fn unfinished_snapshot_counts_as_damaged_after_its_server_was_led() {
    let disk = SimDisk::new();
    put(&disk, &folders().snapshots.join("snapshot.5"), b"ZKSN");
    assert!(default(&disk).0.is_empty(), "never finished, and nothing was before it");
    epoch::save(&disk, &folders().snapshots, EpochFile::Current, Epoch(1)).unwrap();
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("snapshot.5 is damaged"), "{error}");
    put_snapshot(&disk, 2, &[1, 2]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("whole up to 0x2 at most"), "{error}");
    put_log(&disk, "log.3", &[3, 4, 5]);
    assert_eq!(default(&disk).0, [1, 2, 3, 4, 5], "as Java leaves it when it is killed");
}

// rows: D-48
#[test]
fn a_hole_in_the_log_is_fatal_as_in_java() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_log(&disk, "log.1", &[1, 2, 3, 4]);
    put_log(&disk, "log.7", &[7, 8]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(error.to_string().contains("goes from 0x4 to 0x7"), "{error}");
    // A newer snapshot holds the missing transactions.
    put_snapshot(&disk, 6, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(default(&disk).0, [1, 2, 3, 4, 5, 6, 7, 8]);
    // Between the snapshot and the first record Java sees no hole either; another epoch may begin anywhere.
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_log(&disk, "log.4", &[4, (1 << 32) + 3]);
    // What is missing may have been acknowledged.
    for options in [RecoverOptions::default(), MEMBER, TRUSTING_MEMBER] {
        let error = run(&disk, options).unwrap_err();
        assert!(error.to_string().contains("goes on with 0x4 after 0x2"), "{error}");
    }
    let trusts = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    assert_eq!(run(&disk, trusts).unwrap().0, [1, 2, 4, (1 << 32) + 3], "as in Java");
}

// rows: D-48
#[test]
fn member_whose_log_lacks_the_beginning_of_an_epoch_refuses_it() {
    let disk = SimDisk::new();
    let second = 1 << 32;
    put_snapshot(&disk, 2, &[1, 2]);
    put_log(&disk, "log.1", &[1, 2, 3]);
    put_log(&disk, "log.100000003", &[second + 3, second + 4]);
    // The snapshot 1:2 that its leader sent is lost, and the one before does not hold what it held.
    for options in [MEMBER, TRUSTING_MEMBER] {
        let error = run(&disk, options).unwrap_err();
        assert!(error.to_string().contains("goes on with 0x100000003 after 0x3"), "{error}");
    }
    let trusts = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    let found = run(&disk, trusts).unwrap().0;
    assert_eq!(found, [1, 2, 3, second + 3, second + 4], "standalone, as in Java");
    put_snapshot(&disk, second + 2, &[1, 2, 3, second + 1, second + 2]);
    let (found, _) = run(&disk, MEMBER).unwrap();
    assert_eq!(found, [1, 2, 3, second + 1, second + 2, second + 3, second + 4]);
    // An epoch in which nothing was committed leaves no records.
    let disk = SimDisk::new();
    put_snapshot(&disk, 2, &[1, 2]);
    put_log(&disk, "log.3", &[3, 3 * second + 1]);
    assert_eq!(run(&disk, MEMBER).unwrap().0, [1, 2, 3, 3 * second + 1]);
}

// rows: D-02 D-60
#[test]
fn member_with_a_current_epoch_and_no_data_does_not_start_as_new() {
    let disk = SimDisk::new();
    assert_eq!(run(&disk, MEMBER).unwrap().1.start, Start::Empty, "a new member");
    epoch::save(&disk, &folders().snapshots, EpochFile::Current, Epoch(0)).unwrap();
    assert_eq!(run(&disk, MEMBER).unwrap().1.start, Start::Empty, "Java's first start");
    epoch::save(&disk, &folders().snapshots, EpochFile::Current, Epoch(5)).unwrap();
    let error = run(&disk, MEMBER).unwrap_err();
    assert!(error.to_string().contains("has a currentEpoch of 5, and neither"), "{error}");
    put(&disk, &folders().logs.with_file_name("initialize"), b"");
    assert_eq!(run(&disk, MEMBER).unwrap().1.start, Start::Empty, "its operator says so");
}

// rows: D-14
#[test]
fn damaged_copy_of_a_log_is_refused_unless_a_later_log_began_before_the_snapshot() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 7, &[1, 2, 3, 4, 5, 6, 7]);
    put_log(&disk, "log.1", &[1, 2, 3]);
    put_log(&disk, "log.4", &[4, 5, 6, 7]);
    for (name, is_refused) in [("log.1.cut", false), ("log.4.cut", true)] {
        put_log(&disk, name, &[4]);
        assert!(disk.flip(&folders().logs.join(name), 40));
        let found = run(&disk, MEMBER);
        assert_eq!(matches!(found, Err(RecoverError::LogCopy { .. })), is_refused, "{name}");
        disk.remove(&folders().logs.join(name)).unwrap();
    }
    // The log itself is gone: the copy may have what is wanted.
    disk.remove(&folders().logs.join("log.1")).unwrap();
    disk.remove(&folders().snapshots.join("snapshot.7")).unwrap();
    put_snapshot(&disk, 0, &[]);
    put_log(&disk, "log.1.cut", &[1, 2, 3]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert!(matches!(error, RecoverError::LogCopy { .. }), "{error}");
}

// rows: D-14
#[test]
fn copy_of_a_log_with_transactions_after_the_snapshot_is_refused_and_never_replayed() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 3, &[1, 2, 3]);
    put_log(&disk, "log.1", &[1, 2, 3]);
    put_log(&disk, "log.4", &[4, 5, 6, 7]);
    put_log(&disk, "log.1.bak", &[1, 2, 3]);
    put(&disk, &folders().logs.join("log.4.gz"), b"not a log");
    assert_eq!(default(&disk).0, [1, 2, 3, 4, 5, 6, 7], "the snapshot has what the copy has");
    for (name, zxids) in [("log.4.fixed", vec![4, 5]), ("log.1.chopped4", vec![1, 2, 3, 4])] {
        put_log(&disk, name, &zxids);
        for options in [RecoverOptions::default(), MEMBER] {
            let error = run(&disk, options).unwrap_err();
            assert!(matches!(error, RecoverError::LogCopy { .. }), "{error}");
            let log = folders().logs.join(name.rsplit_once('.').unwrap().0);
            let says = [name, "to take the place of", log.to_str().unwrap()];
            assert!(says.iter().all(|part| error.to_string().contains(part)), "{error}");
        }
        disk.remove(&folders().logs.join(name)).unwrap();
    }
    // The copy is all that is left of a log.
    disk.remove(&folders().logs.join("log.4")).unwrap();
    put_log(&disk, "log.4.fixed", &[4, 5, 6, 7]);
    assert!(matches!(run(&disk, MEMBER), Err(RecoverError::LogCopy { .. })));
}

// rows: D-31
#[test]
fn damaged_snapshot_with_counter_0_is_fatal() {
    let at = |epoch, counter| Zxid::new(Epoch(epoch), counter).to_wire();
    let disk = SimDisk::new();
    put_snapshot(&disk, at(5, 1), &[at(5, 1)]);
    put_log(&disk, "log.500000002", &[at(5, 2)]);
    // A Java leader's snapshot 6:0 also contains the transactions 5:3 to 5:7.
    let newest = format!("snapshot.{:x}", at(6, 0));
    put_snapshot(&disk, at(6, 0), &[at(5, 1), at(5, 2), at(5, 7)]);
    put_log(&disk, "log.600000001", &[at(6, 1)]);
    assert!(disk.flip(&folders().snapshots.join(newest), 40));
    let error = run(&disk, MEMBER).unwrap_err();
    assert!(error.to_string().contains("snapshot.600000000 is damaged"), "{error}");
}

/// As a power cut leaves it when Java's first snapshot was not on disk yet.
// rows: D-31 D-61
#[test]
fn a_log_from_the_first_txn_on_needs_no_snapshot() {
    let started = |zxids: &[i64], snapshot: Option<&[u8]>| {
        let disk = SimDisk::new();
        put_log(&disk, "log.1", zxids);
        if let Some(bytes) = snapshot {
            put(&disk, &folders().snapshots.join("snapshot.0"), bytes);
        }
        run(&disk, RecoverOptions::default()).map(|(zxids, found)| (zxids, found.start)).ok()
    };
    let damaged = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff........\0\0\0\x01/";
    for snapshot in [None, Some(&b""[..]), Some(b"ZKSN"), Some(damaged)] {
        let all = Some((vec![1, 2, 2, 3], Start::ReplayOntoEmpty));
        assert_eq!(started(&[1, 2, 2, 3], snapshot), all);
        assert_eq!(started(&[2, 3], snapshot), None);
        assert_eq!(started(&[1, 2, 4], snapshot), None);
        assert_eq!(started(&[1, 2, (1 << 32) + 1], snapshot), None);
    }
}

// rows: D-60 D-61 D-02
#[test]
fn log_without_its_snapshot_is_refused_unless_it_is_trusted() {
    let disk = SimDisk::new();
    let initialize = || put(&disk, Path::new("/log/initialize"), b"");
    let strict = RecoverOptions { autocreate: false, ..RecoverOptions::default() };
    let (zxids, recovered) = default(&disk);
    assert_eq!((zxids.len(), recovered.start, recovered.last), (0, Start::Empty, Some(Zxid::ZERO)));
    let recovered = run(&disk, strict).unwrap().1;
    assert_eq!((recovered.start, recovered.last), (Start::Unsure, None));
    initialize();
    let recovered = run(&disk, strict).unwrap().1;
    assert_eq!((recovered.start, recovered.initialize), (Start::Empty, true));
    assert!(consume_initialize(&disk, &folders()).unwrap());
    put_log(&disk, "log.1", &[]);
    assert_eq!(default(&disk).1.start, Start::Empty);
    put_log(&disk, "log.2", &[2, 3]);
    assert!(matches!(run(&disk, RecoverOptions::default()), Err(RecoverError::NoSnapshot { .. })));
    initialize();
    let (zxids, recovered) = run(&disk, RecoverOptions { trust_empty: true, ..strict }).unwrap();
    assert_eq!((zxids, recovered.start), (vec![2, 3], Start::ReplayOntoEmpty));
    assert!(!recovered.initialize, "there is data");
    assert!(!consume_initialize(&disk, &folders()).unwrap());
}

// rows: D-13
#[test]
fn snapshot_in_the_log_folder_is_refused() {
    let disk = SimDisk::new();
    prepare_folders(&disk, &folders(), true).unwrap();
    put(&disk, &folders().logs.join("snapshot.1"), b"");
    let error = prepare_folders(&disk, &folders(), true).unwrap_err();
    assert!(error.to_string().starts_with("snapshot /log/version-2/snapshot.1 is in"), "{error}");
    let one = Folders::new(Path::new("/log"), Path::new("/log"));
    prepare_folders(&disk, &one, false).unwrap();
}

// rows: D-03 D-29 D-31
#[test]
fn compressed_snapshots_are_read_whatever_the_setting() {
    for packing in [Packing::Gzip, Packing::Snappy] {
        let disk = SimDisk::new();
        put_snapshot(&disk, 2, &[1, 2]);
        put_packed(&disk, 5, &[1, 2, 3, 4, 5], packing);
        put_log(&disk, "log.3", &[3, 4, 5, 6]);
        let (zxids, recovered) = default(&disk);
        assert_eq!((zxids, recovered.txns), (vec![1, 2, 3, 4, 5, 6], 1));
        assert_eq!(recovered.trailers.zxid, Some(5));
    }
}

/// A truncated file is taken for a snapshot that was never finished, a damaged one for a snapshot that was.
// rows: D-29 D-30 D-31
#[test]
fn torn_compressed_snapshots_are_skipped() {
    for packing in [Packing::Gzip, Packing::Snappy] {
        let disk = SimDisk::new();
        let many: Vec<i64> =
            (1..30_000i64).map(|n| n.wrapping_mul(0x1e37_79b9_7f4a_7c15)).collect();
        put_snapshot(&disk, 2, &[1, 2]);
        put_packed(&disk, 5, &many, packing);
        let path = folders().snapshots.join(names::snapshot_name(zxid(5), packing));
        let file = disk.open(&path).unwrap();
        let len = disk.len(&file).unwrap();
        assert_eq!(default(&disk).0.len(), many.len());
        // Only the checksum of the compression is missing, if there is one: Java loads such a file too.
        disk.set_len(&file, len - 1).unwrap();
        let loaded = default(&disk).0.len();
        assert_eq!(loaded, if packing == Packing::Gzip { many.len() } else { 2 });
        for left in [len - 60, len / 2, 40_000, 20, 9, 2, 0] {
            disk.set_len(&file, left).unwrap();
            let (zxids, recovered) = default(&disk);
            assert_eq!((zxids, &recovered.skipped[0].why), (vec![1, 2], &SkipReason::NotWhole));
        }
        disk.remove(&path).unwrap();
        put_packed(&disk, 5, &many, packing);
        let file = disk.open(&path).unwrap();
        disk.write_at(&file, len / 2, &[0; 8]).unwrap();
        let error = run(&disk, RecoverOptions::default()).unwrap_err();
        assert!(matches!(error, RecoverError::SnapshotNotCovered { .. }), "{error}");
    }
}

// A member was sent a tree and logged what followed; currentEpoch is not saved yet. Then the end of that tree's file is lost, so
// it looks unfinished. The zxids don't show that the log does not continue from the older snapshot.
// rows: D-30 D-31
#[test]
fn unfinished_snapshot_is_fatal_if_the_log_continues_from_it() {
    for packing in [Packing::Plain, Packing::Gzip, Packing::Snappy] {
        let run = |entries: &[i64]| {
            let disk = SimDisk::new();
            put_snapshot(&disk, 0, &[]);
            put_packed(&disk, 0x1_0000_0007, &[7], packing);
            let name = names::snapshot_name(zxid(0x1_0000_0007), packing);
            let file = disk.open(&folders().snapshots.join(name)).unwrap();
            disk.set_len(&file, 5).unwrap();
            put_log(&disk, "log.200000001", entries);
            run(&disk, RecoverOptions::default())
        };
        let error = run(&[0x2_0000_0001, 0x2_0000_0002]).unwrap_err();
        assert!(matches!(error, RecoverError::SnapshotNotCovered { .. }), "{error}");
        assert!(run(&[]).is_ok(), "it may never have been finished");
    }
}

// As in Java: with this setting the operator trusts the log alone.
// rows: C-148
#[test]
fn unfinished_snapshot_is_ignored_with_snapshot_trust_empty() {
    let disk = SimDisk::new();
    put_packed(&disk, 5, &[1, 5], Packing::Gzip);
    let name = names::snapshot_name(zxid(5), Packing::Gzip);
    disk.set_len(&disk.open(&folders().snapshots.join(name)).unwrap(), 0).unwrap();
    put_log(&disk, "log.6", &[6, 7]);
    assert!(run(&disk, RecoverOptions::default()).is_err());
    let trusting = RecoverOptions { trust_empty: true, ..RecoverOptions::default() };
    assert_eq!(run(&disk, trusting).unwrap().0, [6, 7]);
}

// Java leaves two snapshots of one zxid if the compression was changed in between.
#[test]
fn bad_snapshot_is_skipped_if_a_whole_one_has_the_same_zxid() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 5, &[1, 5]);
    put_packed(&disk, 5, &[1, 5], Packing::Gzip);
    let name = names::snapshot_name(zxid(5), Packing::Gzip);
    disk.set_len(&disk.open(&folders().snapshots.join(name)).unwrap(), 20).unwrap();
    put_log(&disk, "log.6", &[6, 7]);
    assert_eq!(default(&disk).0, [1, 5, 6, 7]);
}

#[test]
fn error_names_the_transaction_that_can_not_be_applied() {
    let disk = SimDisk::new();
    put_snapshot(&disk, 0, &[]);
    put_log(&disk, "log.1", &[1, 666]);
    let error = run(&disk, RecoverOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "apply transaction 0x29a at /log/version-2/log.1 offset 69");
}

// rows: D-05
#[test]
fn member_without_its_current_epoch_quarantines_its_data() {
    let start = |accepted: u32, is_member| {
        let (disk, last) = (SimDisk::new(), zxid(0x5_0000_0001).to_wire());
        put_snapshot(&disk, 0x4_0000_0000, &[]);
        put_log(&disk, "log.500000001", &[last]);
        let dir = folders().snapshots;
        epoch::save(&disk, &dir, EpochFile::Accepted, Epoch(accepted)).unwrap();
        let wanted = RecoverOptions { is_member, ..RecoverOptions::default() };
        let mut state = State::default();
        let found = start::restore(&disk, &folders(), wanted, &mut state, || Duration::ZERO);
        let found = found.unwrap();
        assert_eq!(found.recovered.last.is_none(), found.was_quarantined);
        (found.was_quarantined, state.0.len())
    };
    assert_eq!(start(5, true), (false, 1), "it can only have been the epoch of the log");
    assert_eq!(start(6, true), (true, 0));
    assert_eq!(start(6, false), (false, 1));
}
