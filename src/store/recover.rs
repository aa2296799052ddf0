//! Recovery from disk: loads the newest whole snapshot, then replays the log after it.
//!
//! What to do is chosen by the tables in [`super::decide`]; this file finds the facts and does what they say.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decide::{self, BadSnapshot, EmptyLog, LogFact, SnapshotFact, Start, StartFacts};
use super::disk::{self, Disk, Reading};
use super::epoch::{self, EpochError, EpochFile, SavedEpochs};
use super::log_copies;
use super::log_folder::{self, Lacking, NotedFolder};
use super::names::{self, Folders, Named, Packing};
use super::packing::Unpacker;
pub use super::recover_error::{RecoverError, SkipReason, Skipped};
use super::scan::{self, EmptyFile, RecordAt, ScanError, Scanned};
use super::snapshot::{self, Trailers};
use super::snapshot_read::{Progress, ReadError, SnapshotReader};
use crate::model::{Epoch, Zxid, chain};

/// Snapshots tried before giving up (D-31).
const TRIES_MAX: usize = 100;

/// The state that is loaded; the tree implements it.
pub trait Restore {
    type Error: Error + Send + Sync + 'static;

    /// Resets the state to an empty database. Called first, and after a snapshot that could not be loaded.
    fn reset(&mut self);
    /// Progress: bytes of the snapshot's file that were read so far, and its length.
    fn snapshot_read(&mut self, _done_bytes: u64, _all_bytes: u64) {}
    /// Progress: bytes of the log's files that were read so far, and the length of all that are read.
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
    /// The server is a member of an ensemble: it must notice when it has lost data. Default false.
    pub is_member: bool,
    /// `forceSync`, default true. Without it a power cut may leave any log files without a header, and nothing follows from that.
    pub forces_sync: bool,
}

impl RecoverOptions {
    /// The options with which a running server loads its tree again, after its log was truncated to before the tree's last zxid.
    pub const fn while_running(self) -> Self {
        Self { autocreate: true, running: true, is_member: false, ..self }
    }
}

impl Default for RecoverOptions {
    fn default() -> Self {
        Self {
            trust_empty: false,
            autocreate: true,
            running: false,
            is_member: false,
            forces_sync: true,
        }
    }
}

/// What recovery found and did.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub start: Start,
    /// Zxid in the name and bytes of the snapshot that was loaded.
    pub snapshot: Option<(Zxid, u64)>,
    pub trailers: Trailers,
    pub txns: u64,
    /// Bytes of records in the log files read.
    pub log_bytes: u64,
    /// Zxid of the loaded state; `None` stands for -1: [`Start::Unsure`].
    pub last: Option<Zxid>,
    pub skipped: Vec<Skipped>,
    pub snapshot_took: Duration,
    pub replay_took: Duration,
    /// The file `initialize` is still there: with [`Start::Empty`] it stays until the caller has written
    /// `snapshot.0`, then [`consume_initialize`].
    pub initialize: bool,
}

/// Makes the folders, and checks that they can be written to and that no file of one kind is in the folder of the other (D-13).
///
/// * `create`: `zookeeper.datadir.autocreate`; without it they must be there.
///
/// # Errors
/// [`RecoverError::Folder`], [`RecoverError::NotAFolder`], [`RecoverError::NotWritable`], [`RecoverError::Misplaced`],
/// [`RecoverError::NoLogFolder`], [`RecoverError::OtherLogFolder`], [`RecoverError::LogsElsewhere`], [`RecoverError::LogsGone`].
pub fn prepare_folders<D: Disk>(
    disk: &D,
    folders: &Folders,
    create: bool,
) -> Result<(), RecoverError<Infallible>> {
    let is_missing =
        disk.list(&folders.logs).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let list = |source| RecoverError::List { path: folders.snapshots.clone(), source };
    let noted = log_folder::noted_here(disk, folders).map_err(list)?;
    let may_be_member = || {
        let files = SavedEpochs::read(disk, &folders.snapshots);
        files.map_or(true, SavedEpochs::show_member)
    };
    if is_missing && (may_be_member() || noted.is_some()) {
        let (logs, snapshots) = (folders.logs.clone(), folders.snapshots.clone());
        return Err(RecoverError::NoLogFolder { logs, snapshots });
    }
    if noted.is_some_and(|noted| noted == NotedFolder::Other) {
        let (logs, note) = (folders.logs.clone(), log_folder::path_of_note(folders));
        return Err(RecoverError::OtherLogFolder { logs, note });
    }
    match log_folder::lacking(disk, folders).map_err(list)? {
        None => {}
        Some(Lacking::Newest(newest)) => {
            let (logs, note) = (folders.logs.clone(), log_folder::path_of_note(folders));
            return Err(RecoverError::LogsElsewhere { newest, logs, note });
        }
        Some(Lacking::All(before)) => {
            let (logs, note) = (folders.logs.clone(), log_folder::path_of_note(folders));
            return Err(RecoverError::LogsGone { before, logs, note });
        }
    }
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
/// If the file is there and can't be removed: the caller ends the start, or the next start would take the data for new.
pub fn consume_initialize<D: Disk>(disk: &D, folders: &Folders) -> io::Result<bool> {
    disk::remove_for_good(disk, &initialize_path(folders))
}

/// Where the marker of a new ensemble is looked for (D-02).
pub fn initialize_path(folders: &Folders) -> PathBuf {
    folders.logs.with_file_name("initialize")
}

/// Loads the newest state that the disk holds, and repairs what a crash left.
///
/// * `clock`: any monotonic time; only differences are used, for [`Recovered`]'s two durations.
///
/// Streams: memory is a few MiB besides the state itself. Every acknowledged transaction is loaded, or this fails.
///
/// # Errors
/// [`RecoverError`]; the state must be discarded then. Nothing on disk has been changed, except that unfinished
/// snapshots were removed.
///
/// Source: `FileTxnSnapLog.restore`, `FileSnap.deserialize`, ZooKeeper 3.9.
pub fn recover<D: Disk, R: Restore>(
    disk: &D,
    folders: &Folders,
    options: RecoverOptions,
    state: &mut R,
    mut clock: impl FnMut() -> Duration,
) -> Result<Recovered, RecoverError<R::Error>> {
    remove_leftovers(disk, folders, options)?;
    state.reset();
    let mut skipped = Vec::new();
    let begun = clock();
    let Newest { fact, loaded, tried, mut bad } =
        load_newest(disk, &folders.snapshots, state, &mut skipped)?;
    let loaded_at = clock();
    let initialize = disk.open(&initialize_path(folders)).is_ok();
    let facts = StartFacts {
        snapshot: fact,
        // With a loaded snapshot the decision does not depend on the log.
        log: if loaded.is_none() { log_fact(disk, &folders.logs)? } else { LogFact::Rest },
        trust_empty: options.trust_empty,
        autocreate: options.autocreate,
        initialize,
    };
    let start = decide::start(facts);
    if let Some(error) = refusal(start, folders, options.is_member, tried, &skipped) {
        return Err(error);
    }
    if options.is_member && start == Start::Empty && !initialize {
        look_for_epochs(disk, folders)?;
    }
    let repair = |source| RecoverError::Repair { dir: folders.logs.clone(), source };
    let after = loaded.as_ref().map(|loaded| loaded.zxid);
    if !options.running {
        look_for_copies(disk, &folders.logs, after)?;
        scan::settle(disk, &folders.logs, after).map_err(repair)?;
    }
    let mut ends_met = Vec::new();
    let scanned = scan::scan(disk, &folders.logs, after, |zxid, entry, so_far| {
        if bad.iter().any(|bad| bad.file.zxid.to_wire() == zxid) {
            ends_met.push(zxid);
        }
        state.log_read(so_far.done, so_far.of);
        state.replay(zxid, entry).map(ControlFlow::Continue)
    })?;
    let floor = if start == Start::Unsure { None } else { Some(Zxid::ZERO) };
    let last = after.max(scanned.highest).max(floor);
    let gap = look_for_holes(&scanned, after, options, &folders.logs)?;
    look_for_gap(gap, !options.is_member, &folders.logs)?;
    // A snapshot with the zxid of the loaded one held the same. With snapshot.trust.empty one without an end does not count.
    bad.retain(|bad| after < Some(bad.file.zxid) && (bad.may_count || !options.trust_empty));
    look_for_missed(bad, &ends_met, last, scanned.gap.map(|gap| gap.0), &folders.snapshots)?;
    go_on_after_gap(gap, options, &folders.logs)?;
    mend(disk, folders, &scanned, loaded.as_ref()).map_err(repair)?;
    if initialize && start != Start::Empty {
        consume_initialize(disk, folders).map_err(repair)?;
    }
    skipped.extend(unused(&scanned));
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

/// Log files, and the end of one, that were not used.
fn unused(scanned: &Scanned) -> impl Iterator<Item = Skipped> {
    let unwritten = scanned.empty.iter().filter(|empty| !empty.has_header);
    let unwritten =
        unwritten.map(|empty| Skipped { path: empty.path.clone(), why: SkipReason::Unwritten });
    let torn = scanned.torn.iter().map(|torn| {
        let RecordAt { path, at } = torn.from.clone();
        Skipped { path, why: SkipReason::Torn(at) }
    });
    unwritten.chain(torn)
}

/// Repairs the log, and makes everything that was read durable, since this server will acknowledge it.
fn mend<D: Disk>(
    disk: &D,
    folders: &Folders,
    scanned: &Scanned,
    loaded: Option<&Loaded>,
) -> io::Result<()> {
    scan::repair(disk, &folders.logs, scanned)?;
    // A snapshot may be in the operating system's cache only, too: Java does not flush its own, and an operator may have copied one.
    if let Some(Loaded { name, .. }) = loaded {
        disk.sync_data(&disk.open(&folders.snapshots.join(name))?)?;
    }
    disk.sync_dir(&folders.snapshots)
}

/// Refuses an empty directory with a currentEpoch: a member that was in an epoch had data.
fn look_for_epochs<D: Disk, E: Error>(disk: &D, folders: &Folders) -> Result<(), RecoverError<E>> {
    match epoch::read(disk, &folders.snapshots, EpochFile::Current) {
        Ok(Some(epoch)) if Epoch(0) < epoch => {
            Err(RecoverError::OnlyEpochs { dir: folders.snapshots.clone(), epoch })
        }
        Err(EpochError::Read { path, source }) => Err(RecoverError::Denied { path, source }),
        _ => Ok(()),
    }
}

/// Refuses a copy of a log that may have what is wanted.
fn look_for_copies<D: Disk, E: Error>(
    disk: &D,
    dir: &Path,
    after: Option<Zxid>,
) -> Result<(), RecoverError<E>> {
    let copy = log_copies::newer(disk, dir, after);
    let copy = copy.map_err(|source| RecoverError::List { path: dir.to_owned(), source })?;
    let Some(Named { zxid, name }) = copy else { return Ok(()) };
    Err(RecoverError::LogCopy { copy: dir.join(name), log: dir.join(names::log_name(zxid)) })
}

/// Refuses a log that lacks transactions between two others of one epoch: they are lost (D-48). Returns its gap: the transactions before
/// and after it, if those after the snapshot are missing, or the first ones of an epoch, or the last ones.
fn look_for_holes<E: Error>(
    scanned: &Scanned,
    after: Option<Zxid>,
    options: RecoverOptions,
    dir: &Path,
) -> Result<Option<(Zxid, i64)>, RecoverError<E>> {
    if let Some((before, after)) = scanned.hole {
        return Err(RecoverError::Hole { dir: dir.to_owned(), before, after });
    }
    Ok(match (after, scanned.gap) {
        (Some(_), Some((Some(before), first))) => Some((before, first)),
        // The log thread may be making the newest file now.
        _ if options.running || !options.forces_sync => None,
        _ => look_for_lost_records(scanned, after.max(scanned.highest))?,
    })
}

/// Refuses a newest file whose records are lost. Returns the gap before it: the last transaction, and the first that was to be written to it.
fn look_for_lost_records<E: Error>(
    scanned: &Scanned,
    last: Option<Zxid>,
) -> Result<Option<(Zxid, i64)>, RecoverError<E>> {
    let Some(EmptyFile { path, first, has_header }) = &scanned.empty else { return Ok(None) };
    match decide::empty_log(last, *first, *has_header) {
        EmptyLog::Next => Ok(None),
        EmptyLog::AfterGap => Ok(Some((last.unwrap_or(Zxid::ZERO), first.to_wire()))),
        EmptyLog::Lost => Err(ScanError::Header { path: path.clone(), magic: 0 }.into()),
    }
}

/// Refuses a gap, unless this server may go on after it. No member may: an epoch begins with counter 1, and a member logs all of it, or
/// has a snapshot from which the log continues; it has acknowledged what is missing.
fn look_for_gap<E: Error>(
    gap: Option<(Zxid, i64)>,
    may_go_on: bool,
    dir: &Path,
) -> Result<(), RecoverError<E>> {
    let Some((before, first)) = gap.filter(|_| !may_go_on) else { return Ok(()) };
    match Zxid::from_wire(first) {
        Some(first) => Err(RecoverError::Gap { dir: dir.to_owned(), before, first }),
        None => Ok(()),
    }
}

/// A standalone server goes on without the missing transactions if the operator asks for that.
fn go_on_after_gap<E: Error>(
    gap: Option<(Zxid, i64)>,
    options: RecoverOptions,
    dir: &Path,
) -> Result<(), RecoverError<E>> {
    look_for_gap(gap, options.running || options.trust_empty, dir)?;
    if let Some((before, first)) = gap {
        tracing::error!(
            zxid = %format_args!("{first:#x}"),
            last_zxid = %before,
            "the log goes on with {first:#x} after {before}: the transactions between them are lost; to have them, restore the missing file"
        );
    }
    Ok(())
}

/// Refuses to start if a snapshot that could not be loaded held transactions that nothing else holds.
///
/// * `bad`: see [`Newest::bad`]. `ends_met`: their zxids, as far as the log has them.
/// * `last`: where the history ends. `gap`: where it ended before its first gap, if it has one.
fn look_for_missed<E: Error>(
    bad: Vec<NotLoaded>,
    ends_met: &[i64],
    last: Option<Zxid>,
    gap: Option<Option<Zxid>>,
    dir: &Path,
) -> Result<(), RecoverError<E>> {
    let missed = bad.into_iter().find(|NotLoaded { file, may_count }| {
        let ends_in_log = ends_met.contains(&file.zxid.to_wire());
        let snapshot = BadSnapshot { zxid: file.zxid, may_count: *may_count, ends_in_log };
        !decide::makes_up_for(last, gap, snapshot)
    });
    let Some(NotLoaded { file, .. }) = missed else { return Ok(()) };
    Err(RecoverError::SnapshotNotCovered { path: dir.join(file.name), last: gap.unwrap_or(last) })
}

/// Removes snapshots that were never finished, and logs where they prove nothing.
fn remove_leftovers<D: Disk, E: Error>(
    disk: &D,
    folders: &Folders,
    options: RecoverOptions,
) -> Result<(), RecoverError<E>> {
    if options.running {
        return Ok(());
    }
    if !options.forces_sync {
        scan::remove_unwritten(disk, &folders.logs)
            .map_err(|source| RecoverError::Repair { dir: folders.logs.clone(), source })?;
    }
    let dir = &folders.snapshots;
    let names =
        disk.list(dir).map_err(|source| RecoverError::List { path: dir.to_owned(), source })?;
    for name in names.into_iter().filter(|name| names::is_snapshot_temporary(name)) {
        let path = dir.join(name);
        tracing::info!(path = %path.display(), "unfinished snapshot found, and removed");
        disk.remove(&path).map_err(|source| RecoverError::Remove { path, source })?;
    }
    Ok(())
}

struct Loaded {
    zxid: Zxid,
    name: String,
    bytes: u64,
    trailers: Trailers,
}

/// A snapshot that could not be loaded.
struct NotLoaded {
    file: Named,
    /// See [`BadSnapshot::may_count`].
    may_count: bool,
}

/// The outcome of trying the snapshots.
struct Newest {
    fact: SnapshotFact,
    loaded: Option<Loaded>,
    tried: usize,
    /// Newest first.
    bad: Vec<NotLoaded>,
}

/// * `tried`: snapshots that passed the quick check; `skipped`: those that did not, or could not be loaded.
fn refusal<E: std::error::Error>(
    start: Start,
    folders: &Folders,
    is_member: bool,
    tried: usize,
    skipped: &[Skipped],
) -> Option<RecoverError<E>> {
    let dir = folders.snapshots.clone();
    // The files that were skipped were snapshots once, or unfinished ones.
    let tried = match start {
        Start::Replay | Start::ReplayOntoEmpty | Start::Empty | Start::Unsure => return None,
        Start::RefuseNoSnapshot => skipped.len(),
        Start::RefuseBadSnapshots => tried,
    };
    Some(match skipped.first() {
        Some(newest) => RecoverError::AllSnapshotsBad { dir, tried, newest: newest.clone() },
        None => RecoverError::NoSnapshot { dir, is_member },
    })
}

/// Whether currentEpoch is above 0; if it can't be read it may be.
fn may_have_been_led<D: Disk>(disk: &D, dir: &Path) -> bool {
    epoch::read(disk, dir, EpochFile::Current).map_or(true, |epoch| epoch > Some(Epoch(0)))
}

/// Loads the newest snapshot that can be loaded.
fn load_newest<D: Disk, R: Restore>(
    disk: &D,
    dir: &Path,
    state: &mut R,
    skipped: &mut Vec<Skipped>,
) -> Result<Newest, RecoverError<R::Error>> {
    // A snapshot without an end may never have been finished: Java writes it under its final name. But a member may have
    // acknowledged it to its leader; then it is a damaged one, and the log has to hold what it held.
    let was_led = may_have_been_led(disk, dir);
    let files = names::snapshots(disk, dir)
        .map_err(|source| RecoverError::List { path: dir.to_owned(), source })?;
    let (mut tried, mut bad) = (0, Vec::new());
    for file in files.iter().rev() {
        if tried == TRIES_MAX {
            break;
        }
        let path = dir.join(&file.name);
        let packing = Packing::of(&file.name);
        match snapshot::looks_whole(disk, &path, packing) {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(path = %path.display(), "snapshot has no end, trying an older one: check the disk unless a crash came before");
                skipped.push(Skipped { path, why: SkipReason::NotWhole });
                bad.push(NotLoaded { file: file.clone(), may_count: was_led });
                continue;
            }
            // A missing right, or too many open files, is no damage: the start fails with the error, and no older state is served.
            Err(source) if !disk::is_of_medium(&source) => {
                return Err(RecoverError::Denied { path, source });
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "can't read snapshot, trying an older one: check the disk");
                skipped.push(Skipped { path, why: SkipReason::Bad(error.to_string()) });
                // It may have been whole.
                tried += 1;
                bad.push(NotLoaded { file: file.clone(), may_count: true });
                continue;
            }
        }
        tried += 1;
        match load(disk, &path, file, state) {
            Ok(loaded) => {
                return Ok(Newest { fact: SnapshotFact::Loaded, loaded: Some(loaded), tried, bad });
            }
            Err(ReadError::Io { source, .. }) if !disk::is_of_medium(&source) => {
                return Err(RecoverError::Denied { path, source });
            }
            // The quick check can't see the end of a compressed file; if it is missing that is the same case as above.
            Err(ReadError::Short { .. }) if packing != Packing::Plain => {
                tracing::warn!(path = %path.display(), "snapshot has no end, trying an older one: check the disk unless a crash came before");
                skipped.push(Skipped { path, why: SkipReason::NotWhole });
                bad.push(NotLoaded { file: file.clone(), may_count: was_led });
                state.reset();
            }
            Err(error) => {
                let why = chain(&error);
                tracing::warn!(
                    path = %path.display(),
                    error = %why,
                    "snapshot is damaged, trying an older one: check the disk"
                );
                skipped.push(Skipped { path, why: SkipReason::Bad(why) });
                state.reset();
                bad.push(NotLoaded { file: file.clone(), may_count: true });
            }
        }
    }
    let fact = if tried == 0 { SnapshotFact::None } else { SnapshotFact::AllBad };
    Ok(Newest { fact, loaded: None, tried, bad })
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
    let trailers = SnapshotReader::new(unpacked).of_file(path).read(|body| {
        state.snapshot_read(done.get(), bytes);
        state.snapshot_bytes(body)
    })?;
    let done = state.snapshot_done(file.zxid, trailers);
    done.map_err(|source| ReadError::Body { at: bytes, source })?;
    Ok(Loaded { zxid: file.zxid, name: file.name.clone(), bytes, trailers })
}

/// Counts the bytes read from a file, before they are decompressed.
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

/// Reads the whole log to find out whether it holds everything from the first transaction on.
fn log_fact<D: Disk, E: Error>(disk: &D, dir: &Path) -> Result<LogFact, RecoverError<E>> {
    let scanned = scan::scan(disk, dir, None, |_, _, _| Ok(ControlFlow::Continue(())))?;
    Ok(match scanned.highest {
        _ if scanned.records == 0 => LogFact::Empty,
        Some(last) if scanned.gap.is_none() && last.epoch() == Epoch(0) => LogFact::Whole,
        _ => LogFact::Rest,
    })
}
