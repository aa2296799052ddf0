//! Power cuts at every write and every sync of a long run, with any subset of what was not synced lost.
//!
//! A script of appends in random batches, with snapshots, rolls, purges and zero-filling in it, runs on a disk in
//! memory that keeps an image after every change. From each image several disks are made that a power cut may leave.
//! Each must recover to a state that holds every acknowledged txn, in order, each whole, none twice, nothing between
//! left out; must then go on; and must survive a second power cut.
//!
//! `OXKEEPER_LONG=1` runs more seeds.

mod store_crash {
    pub mod cuts;
}

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use oxkeeper::model::Rng;
use oxkeeper::model::Zxid;
use oxkeeper::store::log::LogOptions;
use oxkeeper::store::record::{self, Records, Step};
use oxkeeper::store::recover::Skipped;
use oxkeeper::store::scan::FileSource;
use oxkeeper::store::sim_disk::{Fault, Image, SimDisk};
use oxkeeper::store::{
    Command, Disk, Draft, Event, FailStop, Folders, Log, Packing, Progress, RecoverOptions,
    Restore, SnapshotError, SnapshotWriter, Trailers, Worker, names, purge, recover,
};

/// The replicated state: all entries in the order they were applied.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    entries: Vec<(i64, Bytes)>,
}

impl Model {
    fn last(&self) -> i64 {
        self.entries.last().map_or(0, |entry| entry.0)
    }

    /// A snapshot of this state without its final name.
    fn draft(&self, disk: &FailStop<SimDisk>) -> Result<Draft, SnapshotError> {
        let dir = folders().snapshots;
        let zxid = Zxid::from_wire(self.last()).unwrap();
        let mut writer = SnapshotWriter::create(disk, &dir, zxid, Packing::Plain)?;
        for (_, entry) in &self.entries {
            writer.body(&(entry.len() as u32).to_be_bytes())?;
            writer.body(entry)?;
        }
        writer.body(&[0; 4])?;
        writer.draft(Trailers { digest: None, zxid: Some(zxid.to_wire()) })
    }
}

impl Restore for Model {
    type Error = Infallible;

    fn reset(&mut self) {
        self.entries.clear();
    }

    /// Items: length, entry; an empty one ends the body.
    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, Infallible> {
        let mut consumed = 0;
        while let Some(head) = bytes[consumed..].first_chunk::<4>() {
            let len = u32::from_be_bytes(*head) as usize;
            let Some(entry) = bytes.get(consumed + 4..consumed + 4 + len) else { break };
            consumed += 4 + len;
            if len == 0 {
                return Ok(Progress { consumed, finished: true });
            }
            self.entries.push((zxid_of(entry), Bytes::copy_from_slice(entry)));
        }
        Ok(Progress { consumed, finished: false })
    }

    fn snapshot_done(&mut self, zxid: Zxid, _: Trailers) -> Result<(), Infallible> {
        assert_eq!(self.last(), zxid.to_wire());
        Ok(())
    }

    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), Infallible> {
        assert_eq!(zxid, zxid_of(entry));
        self.entries.push((zxid, Bytes::copy_from_slice(entry)));
        Ok(())
    }
}

fn zxid_of(entry: &[u8]) -> i64 {
    i64::from_be_bytes(entry[12..20].try_into().unwrap())
}

/// A TxnHeader's zxid in its place, then bytes that depend on the zxid.
fn entry(zxid: i64, len: usize) -> Bytes {
    let mut rng = Rng::seeded(zxid as u64);
    let mut bytes = vec![0; 36 + len];
    bytes[12..20].copy_from_slice(&zxid.to_be_bytes());
    bytes[36..].iter_mut().for_each(|byte| *byte = rng.next() as u8);
    bytes.into()
}

fn folders() -> Folders {
    Folders::new(Path::new("/data"), Path::new("/log"))
}

type Clock = fn() -> Duration;

/// The disk part of a server: a worker on a disk, and what was sent to it.
struct Server {
    disk: SimDisk,
    /// The same disk as the server sees it: it refuses every change after its first error.
    stop: FailStop<SimDisk>,
    worker: Worker<FailStop<SimDisk>, Clock>,
    /// Sent to the log, acknowledged or not.
    sent: Model,
    /// How many of them are acknowledged.
    acked: usize,
    failed: bool,
    /// The outcome of the last truncation; the end of the log if it was refused.
    cut: Option<Result<Zxid, Zxid>>,
}

impl Server {
    /// Recovers from a disk and opens its log.
    #[track_caller]
    fn start(disk: SimDisk, options: LogOptions, what: &str) -> (Self, Vec<Skipped>) {
        let mut state = Model::default();
        let recovered =
            recover(&disk, &folders(), RecoverOptions::default(), &mut state, || Duration::ZERO);
        let recovered =
            recovered.unwrap_or_else(|error| panic!("{what}: recovery refused: {error}"));
        assert_eq!(recovered.last.map(Zxid::to_wire), Some(state.last()));
        let stop = FailStop::new(disk.clone());
        let log = Log::new(stop.clone(), &folders().logs, options, recovered.last);
        let clock: Clock = || Duration::ZERO;
        let (dir, slow_after) = (folders().snapshots, Duration::from_secs(1));
        let worker = Worker::new(stop.clone(), log, &dir, slow_after, clock);
        let acked = state.entries.len();
        (
            Self { disk, stop, worker, sent: state, acked, failed: false, cut: None },
            recovered.skipped,
        )
    }

    /// A new server, its first snapshot written (D-60).
    fn fresh(options: LogOptions) -> Self {
        let mut server = Self::start(SimDisk::new(), options, "fresh").0;
        server.snapshot();
        server
    }

    fn append(&mut self, records: usize, len_max: usize, rng: &mut Rng) {
        let mut batch = Vec::new();
        for _ in 0..records {
            let raw = self.sent.last() + 1;
            let entry = entry(raw, rng.pick(len_max));
            self.sent.entries.push((raw, entry.clone()));
            batch.push(Command::Append { zxid: Zxid::from_wire(raw).unwrap(), entry });
        }
        self.run(batch);
    }

    fn run(&mut self, mut batch: Vec<Command>) {
        let (acked, failed, cut) = (&mut self.acked, &mut self.failed, &mut self.cut);
        let entries = &self.sent.entries;
        self.worker.run(&mut batch, &mut |event| match event {
            Event::Flushed(report) => {
                let through = report.through.to_wire();
                *acked = entries.partition_point(|entry| entry.0 <= through);
            }
            Event::Failed(_) => *failed = true,
            Event::Truncated { to } => *cut = Some(Ok(to)),
            Event::CannotTruncate { last } => *cut = Some(Err(last)),
            Event::Placed { .. } | Event::Restored { .. } | Event::EpochSaved { .. } => {}
        });
    }

    /// Where the newest log file's records end.
    fn worker_end(&self) -> u64 {
        let newest = names::logs(&self.disk, &folders().logs).unwrap().pop().unwrap();
        let path = folders().logs.join(newest.name);
        let mut records = Records::new(FileSource::open(&self.disk, &path).unwrap());
        records.head().unwrap();
        while let Step::Record { .. } = records.step().unwrap() {}
        records.at()
    }

    fn snapshot(&mut self) {
        self.try_snapshot().unwrap();
    }

    fn try_snapshot(&mut self) -> Result<(), SnapshotError> {
        self.sent.draft(&self.stop)?.place(&self.stop)?;
        Ok(())
    }
}

/// Asserts that `found` is a prefix of what was sent and holds all that was acknowledged.
#[track_caller]
fn check(found: &Model, sent: &Model, acked: usize, what: &str) {
    let count = found.entries.len();
    assert!(acked <= count, "{what}: {count} entries found, {acked} were acknowledged");
    assert!(count <= sent.entries.len(), "{what}: more found than was ever sent");
    assert!(found.entries[..] == sent.entries[..count], "{what}: other entries than were sent");
}

fn seeds() -> Vec<u64> {
    let more = if std::env::var_os("OXKEEPER_LONG").is_some() { 100 } else { 6 };
    (0..2 + more).collect()
}

/// How a script runs.
#[derive(Clone, Copy)]
struct Script {
    steps: u64,
    options: LogOptions,
    batch_max: usize,
    len_max: usize,
    /// Crash after a recovery and some more appends, too.
    twice: bool,
}

const fn options(prealloc: u64, size_limit: u64) -> LogOptions {
    LogOptions { prealloc, size_limit, force_sync: true }
}

/// Runs a script and crashes it everywhere; returns the number of crashes, and how many files had to be repaired or
/// skipped.
fn crash_everywhere(script: Script, seed: u64) -> (u64, u64) {
    let mut rng = Rng::seeded(seed);
    let mut server = Server::fresh(script.options);
    server.disk.keep_images();
    let (mut crashes, mut mended) = (0, 0);
    for step in 0..script.steps {
        // What earlier steps reported is acknowledged; what this one reports may have left after the image was taken.
        let acked = server.acked;
        match step {
            _ if step % (script.steps / 3) == script.steps / 4 => {
                server.snapshot();
                server.run(vec![Command::Roll]);
            }
            _ if step % 17 == 16 => server.worker.prepare_ahead(&mut |_| {}),
            _ if step % 41 == 40 => drop(
                purge::purge(&server.disk, &folders(), 3, purge::read_whole(&server.disk)).unwrap(),
            ),
            _ => server.append(1 + rng.pick(script.batch_max), script.len_max, &mut rng),
        }
        assert!(!server.failed);
        for image in server.disk.take_images() {
            for seed in seeds() {
                // Other subsets at other places; seeds 0 and 1 are none and all.
                let seed = if seed < 2 { seed } else { seed + 1000 * image.counts.changes };
                let what = format!("step {step}, change {}, seed {seed}", image.counts.changes);
                let (found, skipped) = Server::start(image.crash(seed), script.options, &what);
                check(&found.sent, &server.sent, acked, &what);
                crashes += 1;
                mended += skipped.len() as u64;
                if script.twice && seed % 7 == 2 {
                    crash_again(found, script.options, &mut rng, &what);
                }
            }
        }
    }
    assert_eq!(server.acked, server.sent.entries.len());
    (crashes, mended)
}

/// Goes on after a crash, crashes again at each change of that, and recovers again.
fn crash_again(mut server: Server, options: LogOptions, rng: &mut Rng, what: &str) {
    server.disk.keep_images();
    for _ in 0..2 {
        let acked = server.acked;
        server.append(3, 6000, rng);
        for image in server.disk.take_images() {
            for seed in [0, 1, rng.next()] {
                let what = format!("{what}, then {seed}");
                let (found, _) = Server::start(image.crash(seed), options, &what);
                check(&found.sent, &server.sent, acked, &what);
            }
        }
    }
    assert!(!server.failed);
}

// rows: D-45 D-47 D-49 D-51a
#[test]
fn power_cut_loses_no_acknowledged_small_record() {
    let options = options(1 << 16, 0);
    let (crashes, _) = crash_everywhere(
        Script { steps: 90, options, batch_max: 80, len_max: 120, twice: true },
        1,
    );
    assert!(500 < crashes, "{crashes} crashes");
}

// rows: D-44 D-45 D-51
#[test]
fn power_cut_loses_no_acknowledged_record_that_spans_pages() {
    let options = options(1 << 15, 200_000);
    let script = Script { steps: 60, options, batch_max: 8, len_max: 14_000, twice: true };
    let (_, mended) = crash_everywhere(script, 2);
    assert!(20 < mended, "{mended} files repaired: the script tears too little");
}

#[test]
fn power_cut_loses_no_acknowledged_record_without_preallocation() {
    let options = options(0, 30_000);
    crash_everywhere(Script { steps: 60, options, batch_max: 8, len_max: 9_000, twice: false }, 3);
}

#[test]
fn power_cut_loses_no_acknowledged_record_with_zeros_ahead() {
    let options = options(2 << 20, 0);
    crash_everywhere(Script { steps: 40, options, batch_max: 6, len_max: 9_000, twice: false }, 4);
}

/// An interrupted truncation leaves a log without a gap, and all that was to stay.
// rows: D-52
#[test]
fn crash_during_a_truncation_leaves_no_gap_and_all_that_was_to_stay() {
    let options = options(1 << 16, 2_000);
    for to in [0, 1, 37, 60, 100] {
        let mut rng = Rng::seeded(5);
        let mut server = Server::fresh(options);
        (0..20).for_each(|_| server.append(5, 300, &mut rng));
        server.disk.keep_images();
        let cut = Command::Truncate { to: Zxid::from_wire(to).unwrap(), replaced: false };
        server.run(vec![cut]);
        assert!(!server.failed);
        let done = server.disk.image();
        let images = server.disk.take_images();
        for (image, last) in images.iter().map(|image| (image, 100)).chain([(&done, to)]) {
            for seed in seeds() {
                let what =
                    format!("truncate to {to}, change {}, seed {seed}", image.counts.changes);
                let (found, _) = Server::start(image.crash(seed), options, &what);
                check(&found.sent, &server.sent, to as usize, &what);
                assert!(found.sent.last() <= last, "{what}: {} is left", found.sent.last());
            }
        }
    }
}

/// After a disk error at any place nothing more is acknowledged, and all that was is found again.
#[test]
fn disk_errors_stop_the_log_and_lose_nothing_acknowledged() {
    let options = options(1 << 16, 20_000);
    for fault in [Fault::Sync, Fault::NoSpace, Fault::ShortWrite(1), Fault::ShortWrite(5000)] {
        for healthy in 0..30 {
            let mut rng = Rng::seeded(6 + healthy);
            let mut server = Server::fresh(options);
            (0..healthy).for_each(|_| server.append(4, 3000, &mut rng));
            server.disk.fail_next(fault);
            server.append(4, 3000, &mut rng);
            assert!(server.failed, "{fault:?} after {healthy} batches");
            let acked = server.acked;
            server.append(4, 3000, &mut rng);
            assert_eq!(server.acked, acked, "acknowledged after {fault:?}");
            for seed in seeds() {
                let what = format!("{fault:?} after {healthy}, seed {seed}");
                let (found, _) = Server::start(server.disk.image().crash(seed), options, &what);
                check(&found.sent, &server.sent, acked, &what);
            }
        }
    }
}

/// A failed sync leaves records in the operating system's cache that the disk has not. A server that starts on that cache acknowledges what it
/// reads, so a power cut after its start must not take any of it.
// rows: D-49
#[test]
fn records_read_at_a_start_after_a_failed_sync_survive_a_power_cut() {
    let options = options(1 << 16, 20_000);
    for healthy in 0..30 {
        let mut rng = Rng::seeded(6 + healthy);
        let mut server = Server::fresh(options);
        (0..healthy).for_each(|_| server.append(4, 3000, &mut rng));
        server.disk.fail_next(Fault::Sync);
        server.append(4, 3000, &mut rng);
        assert!(server.failed, "after {healthy} batches");
        let what = format!("a failed sync after {healthy}");
        let (next, _) = Server::start(server.disk.clone(), options, &what);
        check(&next.sent, &server.sent, server.acked, &what);
        for seed in seeds() {
            let what = format!("{what}, seed {seed}");
            let (found, _) = Server::start(next.disk.image().crash(seed), options, &what);
            check(&found.sent, &next.sent, next.acked, &what);
        }
    }
}

/// Every change to the disk fails once: a file made, extended, written, synced, renamed, removed, a folder synced. Nothing
/// is acknowledged after it, and all that was is found again, whether the machine goes on or its power is cut.
// rows: D-34 D-49
#[test]
fn failed_disk_change_is_the_last_and_loses_nothing_acknowledged() {
    for options in [options(1 << 15, 12_000), options(2 << 20, 0)] {
        let mut failed = 0;
        for n in 0.. {
            let mut rng = Rng::seeded(9);
            let mut server = Server::fresh(options);
            server.disk.fail_change(n);
            for round in 0..12 {
                server.append(4, 3000, &mut rng);
                server.worker.prepare_ahead(&mut |_| {});
                if round % 4 == 3 && !server.failed {
                    // A server exits on an error of either.
                    server.failed |= server.try_snapshot().is_err();
                    server.run(vec![Command::Roll]);
                }
                if server.stop.stopped() {
                    break;
                }
            }
            if server.disk.is_to_fail() {
                break; // It never came to that change.
            }
            failed += 1;
            let acked = server.acked;
            server.append(4, 3000, &mut rng);
            assert!(server.stop.stopped() && server.acked == acked, "change {n}");
            for seed in seeds() {
                let what = format!("change {n} failed, seed {seed}");
                let (found, _) = Server::start(server.disk.image().crash(seed), options, &what);
                check(&found.sent, &server.sent, acked, &what);
            }
        }
        assert!(50 < failed, "{failed} changes");
    }
}

/// A disk as a crash leaves it: a torn log, a log file without a header, an unfinished snapshot.
fn to_be_mended() -> (SimDisk, Model) {
    let mut rng = Rng::seeded(11);
    let options = options(1 << 15, 0);
    let mut server = Server::fresh(options);
    for _ in 0..3 {
        server.append(6, 2000, &mut rng);
        server.snapshot();
        server.run(vec![Command::Roll]);
    }
    server.append(3, 2000, &mut rng);
    let put = |path: &str, at: u64, bytes: &[u8]| {
        let path = Path::new(path);
        let file = server.disk.create(path).or_else(|_| server.disk.open(path)).unwrap();
        server.disk.write_at(&file, at, bytes).unwrap();
    };
    let mut torn = Vec::new();
    record::put_record(&entry(99, 1400), &mut torn);
    let newest = folders().logs.join("log.13");
    let end = server.worker_end();
    let sector = (end / 512 + 1) * 512 - end;
    torn[sector as usize..][..512].fill(0);
    put(newest.to_str().unwrap(), end, &torn);
    put("/log/version-2/log.16", 0, &[0; 700]);
    put("/data/version-2/.snapshot.15.tmp", 0, b"ZKSN");
    (server.disk.image().crash(1), server.sent)
}

// rows: D-46 D-47
#[test]
fn disk_errors_at_a_start_are_reported_and_the_next_start_works() {
    let (disk, sent) = to_be_mended();
    let image = disk.image();
    let recovered = |disk: &SimDisk| {
        let mut state = Model::default();
        recover(disk, &folders(), RecoverOptions::default(), &mut state, || Duration::ZERO)
            .map(|found| (state == sent, found.skipped.len()))
            .map_err(|error| error.to_string())
    };
    assert_eq!(recovered(&disk), Ok((true, 2)));
    let mut errors = Vec::new();
    for n in 0.. {
        let disk = image.crash(1);
        disk.fail_change(n);
        let first = recovered(&disk);
        if disk.is_to_fail() {
            assert_eq!(first, Ok((true, 2)));
            break;
        }
        errors.push(first.unwrap_err());
        assert!(recovered(&disk).unwrap().0, "after change {n} failed");
    }
    assert_eq!(errors[0], "remove leftover /data/version-2/.snapshot.15.tmp");
    assert!(
        errors[1..].iter().all(|error| error == "repair the log in /log/version-2"),
        "{errors:?}"
    );
    assert_eq!(errors.len(), 15);
}

/// In place of a snapshot with an unreadable sector the one before it and the log are read; nothing takes the place of the log.
// rows: D-31
#[test]
fn unreadable_snapshots_are_skipped_and_an_unreadable_log_is_fatal() {
    let (disk, sent) = to_be_mended();
    let start = |disk: &SimDisk| {
        let mut state = Model::default();
        recover(disk, &folders(), RecoverOptions::default(), &mut state, || Duration::ZERO)
            .map(|found| (state == sent, found.snapshot.map(|found| found.0.to_wire())))
    };
    disk.spoil(Path::new("/data/version-2/snapshot.12"));
    assert_eq!(start(&disk).unwrap(), (true, Some(12)));
    for name in ["snapshot.c", "snapshot.6", "snapshot.0"] {
        disk.spoil(&folders().snapshots.join(name));
    }
    // The log goes back to the first txn.
    assert_eq!(start(&disk).unwrap(), (true, None));
    disk.spoil(Path::new("/log/version-2/log.7"));
    let error = start(&disk).unwrap_err();
    assert_eq!(error.to_string(), "read log file /log/version-2/log.7");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "input/output error");
}
