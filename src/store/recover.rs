//! Starting from what is on disk: newest whole snapshot, then the log behind it.
//!
//! What to do is chosen by the tables in [`super::decide`]; this file finds the facts and does what they say.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decide::{self, LogFact, SnapshotFact, Start, StartFacts};
use super::disk::{self, Disk, Reading};
use super::epoch::{self, EpochFile};
use super::names::{self, Folders, Named, Packing};
use super::packing::Unpacker;
use super::scan::{self, ScanError, Scanned};
use super::snapshot::{self, Trailers};
use super::snapshot_read::{Progress, ReadError, SnapshotReader};
use crate::model::{Epoch, Zxid, chain};

/// Snapshots tried before giving up (D-31).
const TRIES_MAX: usize = 100;

/// The state that is restored; the tree implements it.
pub trait Restore {
    type Error: Error + Send + Sync + 'static;

    /// Back to the state of an empty database. Called first, and after a snapshot that could not be loaded.
    fn reset(&mut self);
    /// Bytes of the snapshot's file that were read so far, and its length: for those who wait.
    fn snapshot_read(&mut self, _done_bytes: u64, _all_bytes: u64) {}
    /// Bytes of the log's files that were read so far, and the length of those to be read: likewise.
    fn log_read(&mut self, _done_bytes: u64, _all_bytes: u64) {}
    /// Takes whole items off the front of a snapshot's body: see [`Progress`].
    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, Self::Error>;
    /// The body is complete and its seal right. `zxid`: from the file's name, where replay goes on from (D-31).
    fn snapshot_done(&mut self, zxid: Zxid, trailers: Trailers) -> Result<(), Self::Error>;
    /// Applies one logged txn. `zxid`: as it stands in the entry; it may repeat or go back (D-48).
    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), Self::Error>;
}

/// Settings of a start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecoverOptions {
    /// `zookeeper.snapshot.trust.empty`, default false.
    pub trust_empty: bool,
    /// `zookeeper.db.autocreate`, default true.
    pub autocreate: bool,
    /// The server runs: what looks like a left-over may be a snapshot that it is writing. Default false.
    pub running: bool,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        Self { trust_empty: false, autocreate: true, running: false }
    }
}

/// Why a server cannot start on what is on disk.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError<E: Error + 'static> {
    #[error("make or open folder {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{} is a file, and is to be a folder: move it away", path.display())]
    NotAFolder { path: PathBuf },
    #[error("write to folder {}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{what} {} lies in the folder of the other kind; check dataDir and dataLogDir", path.display())]
    Misplaced { what: &'static str, path: PathBuf },
    #[error("list snapshot folder {}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("remove leftover {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("read snapshot {}", path.display())]
    Denied { path: PathBuf, source: io::Error },
    #[error("load snapshot: none of {tried} in {} could be loaded", dir.display())]
    AllSnapshotsBad { dir: PathBuf, tried: usize },
    #[error("no snapshot found in {}, but there are log entries; if the log is whole from its beginning (upgraded from 3.4) start once with snapshot.trust.empty=true; a member's directory may also be emptied but for myid, one at a time", dir.display())]
    NoSnapshot { dir: PathBuf },
    #[error(
        "snapshot {} is damaged, and the log does not hold all that it held: it is whole up to {} at most; \
         remove the file to start without it",
        path.display(),
        last.unwrap_or(Zxid::ZERO)
    )]
    Behind { path: PathBuf, last: Option<Zxid> },
    #[error(
        "the log in {} goes from {before} to {behind}: what was between them is lost; bring back the missing file, or \
         remove the files from {behind} on to start with what is before them",
        dir.display()
    )]
    Hole { dir: PathBuf, before: Zxid, behind: Zxid },
    #[error(transparent)]
    Log(#[from] ScanError<E>),
    #[error("mend log in {}", dir.display())]
    Repair { dir: PathBuf, source: io::Error },
}

/// A file that was not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skipped {
    pub path: PathBuf,
    pub why: SkipReason,
}

/// Why a file was not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// A snapshot whose end is missing (D-30).
    NotWhole,
    /// A snapshot that could not be loaded; the reason in words.
    Bad(String),
    /// A log file without a header; removed.
    Unwritten,
    /// The end of a log file, from this offset on, was a torn flush; cut off.
    Torn(u64),
}

/// What a start found and did.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub start: Start,
    /// Zxid in the name and bytes of the snapshot that was loaded.
    pub snapshot: Option<(Zxid, u64)>,
    pub trailers: Trailers,
    pub txns: u64,
    /// Bytes of records in the log files read.
    pub log_bytes: u64,
    /// Zxid of the restored state; `None` stands for -1: [`Start::Unsure`].
    pub last: Option<Zxid>,
    pub skipped: Vec<Skipped>,
    pub snapshot_took: Duration,
    pub replay_took: Duration,
    /// The file `initialize` is still there: with [`Start::Empty`] it stays until the caller has written
    /// `snapshot.0`, then [`consume_initialize`].
    pub initialize: bool,
}

/// Makes the folders, sees that they can be written to, and that neither kind of file lies in the other's (D-13).
///
/// * `create`: `zookeeper.datadir.autocreate`; without it they must be there.
///
/// # Errors
/// [`RecoverError::Folder`], [`RecoverError::NotAFolder`], [`RecoverError::NotWritable`], [`RecoverError::Misplaced`].
pub fn prepare_folders<D: Disk>(
    disk: &D,
    folders: &Folders,
    create: bool,
) -> Result<(), RecoverError<Infallible>> {
    for path in [&folders.snapshots, &folders.logs] {
        let there = if create { disk.create_dir(path) } else { disk.list(path).map(drop) };
        // A file can be opened for writing, a folder can't.
        if there.is_err() && disk.open(path).is_ok() {
            return Err(RecoverError::NotAFolder { path: path.clone() });
        }
        there.map_err(|source| RecoverError::Folder { path: path.clone(), source })?;
        disk.may_write(path)
            .map_err(|source| RecoverError::NotWritable { path: path.clone(), source })?;
    }
    if folders.snapshots == folders.logs {
        return Ok(());
    }
    for (dir, prefix, what) in
        [(&folders.logs, "snapshot.", "snapshot"), (&folders.snapshots, "log.", "log file")]
    {
        let names =
            disk.list(dir).map_err(|source| RecoverError::List { path: dir.clone(), source })?;
        if let Some(name) = names.iter().find(|name| name.starts_with(prefix)) {
            return Err(RecoverError::Misplaced { what, path: dir.join(name) });
        }
    }
    Ok(())
}

/// Removes the file `initialize` (D-02); true when there was one.
///
/// # Errors
/// Those of the disk.
pub fn consume_initialize<D: Disk>(disk: &D, folders: &Folders) -> io::Result<bool> {
    disk::remove_if_there(disk, &initialize_path(folders))
}

fn initialize_path(folders: &Folders) -> PathBuf {
    folders.logs.with_file_name("initialize")
}

/// Restores the newest state that the disk holds, and mends what a crash left.
///
/// * `clock`: any monotonic time; only differences are used, for [`Recovered`]'s two durations.
///
/// Streams: memory is a few MiB beside the state itself. Every acknowledged txn is restored or this fails.
///
/// # Errors
/// [`RecoverError`]; the state is to be thrown away then. Nothing on disk has been changed but leftovers of an
/// unfinished snapshot.
///
/// Source: `FileTxnSnapLog.restore`, `FileSnap.deserialize`, ZooKeeper 3.9.
pub fn recover<D: Disk, R: Restore>(
    disk: &D,
    folders: &Folders,
    options: RecoverOptions,
    state: &mut R,
    mut clock: impl FnMut() -> Duration,
) -> Result<Recovered, RecoverError<R::Error>> {
    remove_leftovers(disk, &folders.snapshots, options)?;
    state.reset();
    let mut skipped = Vec::new();
    let begun = clock();
    let Newest { fact, loaded, tried, damaged } =
        load_newest(disk, &folders.snapshots, state, &mut skipped)?;
    let loaded_at = clock();
    let initialize = disk.open(&initialize_path(folders)).is_ok();
    let facts = StartFacts {
        snapshot: fact,
        // What a loaded snapshot makes the log needn't be looked at for.
        log: if loaded.is_none() { log_fact(disk, &folders.logs)? } else { LogFact::Rest },
        trust_empty: options.trust_empty,
        autocreate: options.autocreate,
        initialize,
    };
    let start = decide::start(facts);
    if let Some(error) = refusal(start, &folders.snapshots, tried, skipped.len()) {
        return Err(error);
    }
    let after = loaded.as_ref().map(|loaded| loaded.zxid);
    let mut ends_met = Vec::new();
    let scanned = scan::scan(disk, &folders.logs, after, |zxid, entry, so_far| {
        if damaged.iter().any(|file| file.zxid.to_wire() == zxid) {
            ends_met.push(zxid);
        }
        state.log_read(so_far.done, so_far.of);
        state.replay(zxid, entry).map(ControlFlow::Continue)
    })?;
    let floor = if start == Start::Unsure { None } else { Some(Zxid::ZERO) };
    let last = after.max(scanned.highest).max(floor);
    look_for_holes(&scanned, after, &folders.logs)?;
    let gap = scanned.gap.map(|gap| gap.0);
    look_for_missed(damaged, &ends_met, (last, gap), &folders.snapshots)?;
    let repair = |source| RecoverError::Repair { dir: folders.logs.clone(), source };
    mend(disk, folders, &scanned).map_err(repair)?;
    if initialize && start != Start::Empty {
        consume_initialize(disk, folders).map_err(repair)?;
    }
    let unwritten =
        scanned.unwritten.into_iter().map(|path| Skipped { path, why: SkipReason::Unwritten });
    skipped.extend(unwritten);
    let torn = scanned.torn.map(|torn| Skipped { path: torn.path, why: SkipReason::Torn(torn.at) });
    skipped.extend(torn);
    Ok(Recovered {
        start,
        snapshot: loaded.as_ref().map(|loaded| (loaded.zxid, loaded.bytes)),
        trailers: loaded.as_ref().map(|loaded| loaded.trailers).unwrap_or_default(),
        txns: scanned.records,
        log_bytes: scanned.bytes,
        last,
        skipped,
        snapshot_took: loaded_at.saturating_sub(begun),
        replay_took: clock().saturating_sub(loaded_at),
        initialize: initialize && start == Start::Empty,
    })
}

/// What was read is durable from here on: this server answers for it.
fn mend<D: Disk>(disk: &D, folders: &Folders, scanned: &Scanned) -> io::Result<()> {
    scan::repair(disk, &folders.logs, scanned)?;
    // The names of a snapshot and of epochs may be with the operating system alone, too.
    disk.sync_dir(&folders.snapshots)
}

/// Txns that are missing between two others are lost (D-48); those behind the snapshot may have been taken away on purpose.
fn look_for_holes<E: Error>(
    scanned: &Scanned,
    after: Option<Zxid>,
    dir: &Path,
) -> Result<(), RecoverError<E>> {
    if let Some((before, behind)) = scanned.hole {
        return Err(RecoverError::Hole { dir: dir.to_owned(), before, behind });
    }
    if let (Some(at), Some((before, first))) = (after, scanned.gap)
        && before == after
    {
        tracing::error!(
            "the log goes on with {first:#x} behind the snapshot of {at}: what was between them is lost"
        );
    }
    Ok(())
}

/// What a damaged snapshot held and nothing else does is lost.
///
/// * `ends_met`: of the damaged ones, where they end, as far as the log has that. `state`: where it ends, and its gap.
fn look_for_missed<E: Error>(
    damaged: Vec<Named>,
    ends_met: &[i64],
    (last, gap): (Option<Zxid>, Option<Option<Zxid>>),
    dir: &Path,
) -> Result<(), RecoverError<E>> {
    let missed = damaged.into_iter().find(|file| {
        let ends_in_log = ends_met.contains(&file.zxid.to_wire());
        !decide::makes_up_for(last, gap, file.zxid, ends_in_log)
    });
    let Some(damaged) = missed else { return Ok(()) };
    Err(RecoverError::Behind { path: dir.join(damaged.name), last: gap.unwrap_or(last) })
}

/// Removes snapshots that were never finished.
fn remove_leftovers<D: Disk, E: Error>(
    disk: &D,
    dir: &Path,
    options: RecoverOptions,
) -> Result<(), RecoverError<E>> {
    if options.running {
        return Ok(());
    }
    let names =
        disk.list(dir).map_err(|source| RecoverError::List { path: dir.to_owned(), source })?;
    for name in names.into_iter().filter(|name| names::is_snapshot_temporary(name)) {
        let path = dir.join(name);
        tracing::info!(path = %path.display(), "remove unfinished snapshot");
        disk.remove(&path).map_err(|source| RecoverError::Remove { path, source })?;
    }
    Ok(())
}

struct Loaded {
    zxid: Zxid,
    bytes: u64,
    trailers: Trailers,
}

/// What trying the snapshots came to.
struct Newest {
    fact: SnapshotFact,
    loaded: Option<Loaded>,
    tried: usize,
    /// Those that may have been whole and could not be loaded, newest first.
    damaged: Vec<Named>,
}

/// * `tried`: snapshots that passed the quick check; `skipped`: those that did not, or could not be loaded.
fn refusal<E: std::error::Error>(
    start: Start,
    dir: &Path,
    tried: usize,
    skipped: usize,
) -> Option<RecoverError<E>> {
    let dir = dir.to_owned();
    match start {
        Start::Replay | Start::ReplayOntoEmpty | Start::Empty | Start::Unsure => None,
        Start::RefuseNoSnapshot if skipped == 0 => Some(RecoverError::NoSnapshot { dir }),
        // What is there was a snapshot once, or was to become one.
        Start::RefuseNoSnapshot => Some(RecoverError::AllSnapshotsBad { dir, tried: skipped }),
        Start::RefuseBadSnapshots => Some(RecoverError::AllSnapshotsBad { dir, tried }),
    }
}

/// Loads the newest snapshot that can be loaded.
fn load_newest<D: Disk, R: Restore>(
    disk: &D,
    dir: &Path,
    state: &mut R,
    skipped: &mut Vec<Skipped>,
) -> Result<Newest, RecoverError<R::Error>> {
    // One without an end may never have been finished: Java writes it under its name. A member may also have told its
    // leader that it has it, so then it is a damaged one, which the log has to make up for.
    let was_led =
        epoch::read(disk, dir, EpochFile::Current).is_ok_and(|epoch| epoch > Some(Epoch(0)));
    let files = names::snapshots(disk, dir)
        .map_err(|source| RecoverError::List { path: dir.to_owned(), source })?;
    let (mut tried, mut damaged) = (0, Vec::new());
    for file in files.iter().rev() {
        if tried == TRIES_MAX {
            break;
        }
        let path = dir.join(&file.name);
        let packing = Packing::of(&file.name);
        match snapshot::looks_whole(disk, &path, packing) {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(path = %path.display(), "pass over snapshot without an end");
                skipped.push(Skipped { path, why: SkipReason::NotWhole });
                damaged.extend(was_led.then(|| file.clone()));
                continue;
            }
            // No damage: whoever runs this has to be told, not served an older state.
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                return Err(RecoverError::Denied { path, source });
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "pass over unreadable snapshot");
                skipped.push(Skipped { path, why: SkipReason::Bad(error.to_string()) });
                // It may have been whole.
                tried += 1;
                damaged.push(file.clone());
                continue;
            }
        }
        tried += 1;
        match load(disk, &path, file, state) {
            Ok(loaded) => {
                return Ok(Newest {
                    fact: SnapshotFact::Loaded,
                    loaded: Some(loaded),
                    tried,
                    damaged,
                });
            }
            // The end of a packed file can't be looked at from outside; it is a plain one's missing end all the same.
            Err(ReadError::Short { .. }) if packing != Packing::Plain => {
                tracing::warn!(path = %path.display(), "pass over snapshot without an end");
                skipped.push(Skipped { path, why: SkipReason::NotWhole });
                damaged.extend(was_led.then(|| file.clone()));
                state.reset();
            }
            Err(error) => {
                let why = chain(&error);
                tracing::warn!(path = %path.display(), why, "pass over damaged snapshot, an older one is tried");
                skipped.push(Skipped { path, why: SkipReason::Bad(why) });
                state.reset();
                damaged.push(file.clone());
            }
        }
    }
    let fact = if tried == 0 { SnapshotFact::None } else { SnapshotFact::AllBad };
    Ok(Newest { fact, loaded: None, tried, damaged })
}

fn load<D: Disk, R: Restore>(
    disk: &D,
    path: &Path,
    file: &Named,
    state: &mut R,
) -> Result<Loaded, ReadError<R::Error>> {
    let io = |source| ReadError::Io { at: 0, source };
    let reading = Reading::open(disk, path).map_err(io)?;
    let bytes = reading.len().map_err(io)?;
    let done = Cell::new(0);
    let unpacked = Unpacker::new(Packing::of(&file.name), Counting { reading, done: &done });
    let trailers = SnapshotReader::new(unpacked).read(|body| {
        state.snapshot_read(done.get(), bytes);
        state.snapshot_bytes(body)
    })?;
    let done = state.snapshot_done(file.zxid, trailers);
    done.map_err(|source| ReadError::Body { at: bytes, source })?;
    Ok(Loaded { zxid: file.zxid, bytes, trailers })
}

/// Tells how much was read, however the bytes are packed.
struct Counting<'c, R> {
    reading: R,
    done: &'c Cell<u64>,
}

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.reading.read(into)?;
        self.done.set(self.done.get() + read as u64);
        Ok(read)
    }
}

/// Reads the log through to tell whether it holds everything from the beginning on.
fn log_fact<D: Disk, E: Error>(disk: &D, dir: &Path) -> Result<LogFact, RecoverError<E>> {
    let scanned = scan::scan(disk, dir, None, |_, _, _| Ok(ControlFlow::Continue(())))?;
    Ok(match scanned.highest {
        _ if scanned.records == 0 => LogFact::Empty,
        Some(last) if scanned.gap.is_none() && last.epoch() == Epoch(0) => LogFact::Whole,
        _ => LogFact::Rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record;
    use crate::store::sim_disk::SimDisk;
    use crate::store::snapshot::SnapshotWriter;

    /// A state that is the zxids it was given; its snapshot is one of them per 8 bytes, ended by -1.
    #[derive(Debug, Default, PartialEq)]
    struct State(Vec<i64>);

    #[derive(Debug, thiserror::Error)]
    #[error("zxid 666")]
    struct Refused;

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

    fn folders() -> Folders {
        Folders::new(Path::new("/data"), Path::new("/log"))
    }

    fn put_snapshot(disk: &SimDisk, zxid: i64, zxids: &[i64]) {
        put_packed(disk, zxid, zxids, Packing::Plain);
    }

    fn put_packed(disk: &SimDisk, zxid: i64, zxids: &[i64], packing: Packing) {
        let dir = folders().snapshots;
        let named = Zxid::from_wire(zxid).unwrap();
        let mut writer = SnapshotWriter::create(disk, &dir, named, packing).unwrap();
        zxids.iter().chain([&-1]).for_each(|zxid| writer.body(&zxid.to_be_bytes()).unwrap());
        writer.finish(Trailers { digest: None, zxid: Some(zxid) }).unwrap();
    }

    fn put_log(disk: &SimDisk, name: &str, zxids: &[i64]) {
        let mut bytes = record::header().to_vec();
        for zxid in zxids {
            let mut entry = vec![0; 40];
            entry[12..20].copy_from_slice(&zxid.to_be_bytes());
            record::put_record(&entry, &mut bytes);
        }
        put(disk, folders().logs.join(name), &bytes);
    }

    fn put(disk: &SimDisk, path: PathBuf, bytes: &[u8]) {
        let file = disk.create(&path).unwrap();
        disk.write_at(&file, 0, bytes).unwrap();
    }

    fn run(
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

    fn default(disk: &SimDisk) -> (Vec<i64>, Recovered) {
        run(disk, RecoverOptions::default()).unwrap()
    }

    // rows: D-31 D-48
    #[test]
    fn newest_snapshot_then_the_log_behind_it() {
        let disk = SimDisk::new();
        put_snapshot(&disk, 3, &[1, 2, 3]);
        put_snapshot(&disk, 5, &[1, 2, 3, 4, 5]);
        put_log(&disk, "log.1", &[1, 2, 3, 4]);
        put_log(&disk, "log.5", &[5, 6, 7]);
        let (zxids, recovered) = default(&disk);
        assert_eq!(zxids, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((recovered.start, recovered.txns), (Start::Replay, 2));
        assert_eq!((recovered.last, recovered.trailers.zxid), (Zxid::from_wire(7), Some(5)));
        assert_eq!(
            (recovered.snapshot_took.as_millis(), recovered.replay_took.as_millis()),
            (3, 5)
        );
    }

    #[test]
    fn what_was_read_once_outlives_a_power_cut() {
        let disk = SimDisk::new();
        put_snapshot(&disk, 3, &[1, 2, 3]);
        put_log(&disk, "log.1", &[1, 2, 3, 4]);
        disk.sync_data(&disk.open(&folders().logs.join("log.1")).unwrap()).unwrap();
        // A process was killed before it had flushed this.
        put_log(&disk, "log.5", &[5, 6]);
        disk.sync_dir(&folders().logs).unwrap();
        let (zxids, _) = default(&disk);
        assert_eq!(zxids, [1, 2, 3, 4, 5, 6], "and is answered for from now on");
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
        put(&disk, folders().snapshots.join("snapshot.6"), b"ZKSN");
        put(&disk, folders().snapshots.join(".snapshot.7.tmp"), b"ZKSN");
        // As a Java server leaves it that was killed while it wrote what its leader had sent.
        put(&disk, folders().snapshots.join("snapshot.99.tmp"), b"ZKSN");
        put(&disk, folders().snapshots.join("snapshot.99.gz.tmp"), b"\x1f\x8b");
        let file = disk.open(&folders().snapshots.join("snapshot.4")).unwrap();
        disk.write_at(&file, 23, &[7]).unwrap();
        put_log(&disk, "log.1", &[1, 2, 3, 4, 5, 6]);
        let (zxids, recovered) = default(&disk);
        assert_eq!(zxids, [1, 2, 3, 4, 5, 6]);
        let why: Vec<&SkipReason> = recovered.skipped.iter().map(|skipped| &skipped.why).collect();
        assert_eq!(
            why[..2],
            [&SkipReason::NotWhole, &SkipReason::Bad("decode snapshot behind 16: zxid 666".into())]
        );
        assert!(matches!(why[2], SkipReason::Bad(why) if why.starts_with("seal at 56")), "{why:?}");
        assert!(!disk.list(&folders().snapshots).unwrap().contains(&".snapshot.7.tmp".to_owned()));
        disk.remove(&folders().snapshots.join("snapshot.2")).unwrap();
        disk.remove(&folders().logs.join("log.1")).unwrap();
        put_log(&disk, "log.2", &[2, 3, 4, 5, 6]);
        let error = run(&disk, RecoverOptions::default()).unwrap_err();
        assert!(matches!(error, RecoverError::AllSnapshotsBad { tried: 2, .. }), "{error}");
    }

    #[test]
    fn a_damaged_snapshot_that_the_log_does_not_make_up_for_is_fatal() {
        let disk = SimDisk::new();
        put_snapshot(&disk, 2, &[1, 2]);
        put_snapshot(&disk, 5, &[1, 2, 3, 4, 666]);
        put_log(&disk, "log.1", &[1, 2, 3]);
        let error = run(&disk, RecoverOptions::default()).unwrap_err();
        assert!(error.to_string().contains("snapshot.5 is damaged"), "{error}");
        put_log(&disk, "log.4", &[4, 5]);
        assert_eq!(default(&disk).0, [1, 2, 3, 4, 5]);
        // A new leader's snapshot may be named by an epoch that has no txn yet.
        put_snapshot(&disk, 1 << 32, &[666]);
        assert_eq!(default(&disk).0, [1, 2, 3, 4, 5]);
        // The log goes on behind it, but nothing has what it alone held.
        let disk = SimDisk::new();
        put_snapshot(&disk, 2, &[1, 2]);
        put_snapshot(&disk, 5, &[1, 2, 3, 4, 666]);
        put_log(&disk, "log.6", &[6, 7]);
        let error = run(&disk, RecoverOptions::default()).unwrap_err();
        assert!(error.to_string().contains("whole up to 0x2 at most;"), "{error}");
        // A leader sent it, in place of all of an epoch that the log knows nothing of: no gap shows that.
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
    fn a_member_may_have_answered_for_a_snapshot_without_an_end() {
        let disk = SimDisk::new();
        put(&disk, folders().snapshots.join("snapshot.5"), b"ZKSN");
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
        // A newer snapshot makes up for it.
        put_snapshot(&disk, 6, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(default(&disk).0, [1, 2, 3, 4, 5, 6, 7, 8]);
        // Between the snapshot and the first record Java sees no hole either; another epoch may begin anywhere.
        let disk = SimDisk::new();
        put_snapshot(&disk, 2, &[1, 2]);
        put_log(&disk, "log.4", &[4, (1 << 32) + 3]);
        assert_eq!(default(&disk).0, [1, 2, 4, (1 << 32) + 3]);
    }

    /// As a power cut leaves it when Java's first snapshot was not on disk yet.
    // rows: D-31 D-61
    #[test]
    fn a_log_from_the_first_txn_on_needs_no_snapshot() {
        let started = |zxids: &[i64], snapshot: Option<&[u8]>| {
            let disk = SimDisk::new();
            put_log(&disk, "log.1", zxids);
            if let Some(bytes) = snapshot {
                put(&disk, folders().snapshots.join("snapshot.0"), bytes);
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
    fn without_a_snapshot() {
        let disk = SimDisk::new();
        let initialize = || put(&disk, PathBuf::from("/log/initialize"), b"");
        let strict = RecoverOptions { autocreate: false, ..RecoverOptions::default() };
        let (zxids, recovered) = default(&disk);
        assert_eq!(
            (zxids.len(), recovered.start, recovered.last),
            (0, Start::Empty, Some(Zxid::ZERO))
        );
        let recovered = run(&disk, strict).unwrap().1;
        assert_eq!((recovered.start, recovered.last), (Start::Unsure, None));
        initialize();
        let recovered = run(&disk, strict).unwrap().1;
        assert_eq!((recovered.start, recovered.initialize), (Start::Empty, true));
        assert!(consume_initialize(&disk, &folders()).unwrap());
        put_log(&disk, "log.1", &[]);
        assert_eq!(default(&disk).1.start, Start::Empty);
        put_log(&disk, "log.2", &[2, 3]);
        assert!(matches!(
            run(&disk, RecoverOptions::default()),
            Err(RecoverError::NoSnapshot { .. })
        ));
        initialize();
        let (zxids, recovered) =
            run(&disk, RecoverOptions { trust_empty: true, ..strict }).unwrap();
        assert_eq!((zxids, recovered.start), (vec![2, 3], Start::ReplayOntoEmpty));
        assert!(!consume_initialize(&disk, &folders()).unwrap());
    }

    // rows: D-13
    #[test]
    fn files_in_the_other_folder() {
        let disk = SimDisk::new();
        prepare_folders(&disk, &folders(), true).unwrap();
        put(&disk, folders().logs.join("snapshot.1"), b"");
        let error = prepare_folders(&disk, &folders(), true).unwrap_err();
        assert!(
            error.to_string().starts_with("snapshot /log/version-2/snapshot.1 lies in"),
            "{error}"
        );
        let one = Folders::new(Path::new("/log"), Path::new("/log"));
        prepare_folders(&disk, &one, false).unwrap();
    }

    // rows: D-03 D-29 D-31
    #[test]
    fn packed_snapshots_are_read_whatever_the_setting() {
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

    /// Cut anywhere, it is a snapshot that was never finished; damaged, it is one that was.
    // rows: D-29 D-30 D-31
    #[test]
    fn torn_packed_snapshots_are_passed_over() {
        for packing in [Packing::Gzip, Packing::Snappy] {
            let disk = SimDisk::new();
            let many: Vec<i64> =
                (1..30_000i64).map(|n| n.wrapping_mul(0x1e37_79b9_7f4a_7c15)).collect();
            put_snapshot(&disk, 2, &[1, 2]);
            put_packed(&disk, 5, &many, packing);
            let path = folders()
                .snapshots
                .join(names::snapshot_name(Zxid::from_wire(5).unwrap(), packing));
            let file = disk.open(&path).unwrap();
            let len = disk.len(&file).unwrap();
            assert_eq!(default(&disk).0.len(), many.len());
            // Only the checksum of the packing is gone, if it has one: what Java loads as well.
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
            assert!(matches!(error, RecoverError::Behind { .. }), "{error}");
        }
    }

    #[test]
    fn a_txn_the_state_refuses_is_named() {
        let disk = SimDisk::new();
        put_snapshot(&disk, 0, &[]);
        put_log(&disk, "log.1", &[1, 666]);
        let error = run(&disk, RecoverOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "take transaction 0x29a at /log/version-2/log.1 offset 69");
    }
}
