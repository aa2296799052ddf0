//! The transaction log: append, flush, truncate. Reading it back is [`super::scan`].
//!
//! A log is a folder of files `log.<hex zxid of its first record>`: header, records, zero padding.
//! Byte layout: [`super::record`]. Media assumptions: [`super::disk::Disk`].
//!
//! # Invariants
//! 1. A file's header and its folder entry are durable before the first record is written to it. So a file without
//!    a header never held one.
//! 2. A file's records are durable before the next file is made. So only the newest can end in a torn flush.
//! 3. One flush writes at most [`FLUSH_MAX`] bytes, unless a single record is larger. So a torn flush ends within that.
//! 4. Ahead of its head (where the next record goes) a file holds zeros, so what a lost write leaves are zeros.
//! 5. What was flushed changes only through [`Log::truncate`], itself durable on return.
//! 6. Only files this process made are appended to (D-51a).
//!
//! # Not here
//! Which role may append (`zab`), when to snapshot (`replica`), how records are read by meaning (`tree`).

use std::io;
use std::path::{Path, PathBuf};

use super::decide::FLUSH_MAX;
use super::disk::Disk;
use super::names;
use super::record::{self, HEADER_LEN, Head, Records, Step, StopKind};
use super::scan::{self, FileSource};
use crate::model::Zxid;

/// How far ahead of the head a file is filled with real zeros; topped up at half.
///
/// fdatasync of blocks that were written before changes no block map. Measured (`benches/log.rs`): 65 KiB flushed in
/// 140 us instead of 270. Filling costs what it saves, so it is worth it only while no request waits: a log under
/// saturation goes on into new blocks. One MiB takes 1 to 2 ms, for which a flush requested meanwhile has to wait; the
/// wait for four would be noticed.
const AHEAD: u64 = 1 << 20;
/// Java grows a file when its head comes this near to the end (D-44).
const NEAR_END: u64 = 4096;

/// Why the transaction log could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("list log folder {}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("make log file {}", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("make log file {}: it exists and holds transactions", path.display())]
    Exists { path: PathBuf },
    #[error("write {len} bytes at {at} of log file {}", path.display())]
    Write { path: PathBuf, at: u64, len: usize, source: io::Error },
    #[error("flush log file {} through {through}", path.display())]
    Flush { path: PathBuf, through: Zxid, source: io::Error },
    #[error("fill log file {} with zeros from {at} on", path.display())]
    Fill { path: PathBuf, at: u64, source: io::Error },
    #[error("truncate log to {to}: log file {}", path.display())]
    Truncate { to: Zxid, path: PathBuf, source: io::Error },
}

/// Settings of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogOptions {
    /// Bytes by which a file's length grows ahead of its head; 0: not at all. `zookeeper.preAllocSize`, in KiB there.
    pub prealloc: u64,
    /// A file with more bytes than this is closed; 0: no limit. `zookeeper.txnLogSizeLimitInKb`. Java counts the
    /// padding too, so that a limit below preAllocSize starts a new file at every flush; here only records count.
    pub size_limit: u64,
    /// `zookeeper.forceSync`: false gives up durability for speed.
    pub force_sync: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { prealloc: 64 << 20, size_limit: 0, force_sync: true }
    }
}

/// What one flush made durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flushed {
    /// Highest zxid appended so far.
    pub through: Zxid,
    pub records: u32,
    pub bytes: u64,
}

/// The writer at the end of the log. Its invariants are those of the module.
pub struct Log<D: Disk> {
    disk: D,
    dir: PathBuf,
    options: LogOptions,
    file: Option<OpenFile<D::File>>,
    pending: Vec<u8>,
    /// Zxid of the first pending record, which names the file if none is open.
    pending_first: Zxid,
    pending_records: u32,
    /// The records that are written and not yet synced.
    unsynced: Option<Flushed>,
    /// The end of the history: the highest zxid appended by this process or an earlier one, or that of a leader's tree.
    last: Option<Zxid>,
}

struct OpenFile<F> {
    file: F,
    path: PathBuf,
    /// Offset of the next record. `head <= zeroed` or the zeros are used up; `zeroed <= allocated`, or no padding.
    head: u64,
    /// Length of the file.
    allocated: u64,
    /// Up to here bytes were written, be they records or zeros.
    zeroed: u64,
}

impl<D: Disk> Log<D> {
    /// A log whose next record opens a new file.
    ///
    /// * `last`: the end of the history that recovery found.
    pub fn new(disk: D, dir: &Path, options: LogOptions, last: Option<Zxid>) -> Self {
        Self {
            disk,
            dir: dir.to_owned(),
            options,
            file: None,
            pending: Vec::new(),
            pending_first: Zxid::ZERO,
            pending_records: 0,
            unsynced: None,
            last,
        }
    }

    /// Queues one record. `entry`: TxnHeader, txn, digest, as they are logged (D-42).
    ///
    /// A zxid that does not increase is logged too, with a warning: a Java leader may send one (D-50, G-01), and no server
    /// may refuse what the ensemble agreed on.
    pub fn append(&mut self, zxid: Zxid, entry: &[u8]) {
        if Some(zxid) <= self.last {
            tracing::warn!(
                %zxid,
                last_zxid = %self.last.unwrap_or(zxid),
                "logged a zxid that does not increase, as a Java leader may send it; nothing to do"
            );
        }
        self.last = self.last.max(Some(zxid));
        if self.pending.is_empty() {
            self.pending_first = zxid;
        }
        record::put_record(entry, &mut self.pending);
        self.pending_records += 1;
    }

    /// True when a flush is due before an entry of `len` bytes is appended, to keep invariant 3.
    pub fn is_full_for(&self, len: usize) -> bool {
        !self.pending.is_empty() && FLUSH_MAX < self.pending.len() as u64 + record::record_len(len)
    }

    /// The folder of its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file being written; `None`: the next record opens one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|open| open.path.as_path())
    }

    /// The end of the history, whether appended or installed with a leader's tree.
    pub const fn last(&self) -> Option<Zxid> {
        self.last
    }

    /// Bytes of header and records in the file being written.
    pub fn file_len(&self) -> u64 {
        self.file.as_ref().map_or(0, |open| open.head)
    }

    /// Writes and syncs all queued records; `None` when there were none.
    ///
    /// # Errors
    /// [`LogError`]; the log may not be used any more then.
    pub fn flush(&mut self) -> Result<Option<Flushed>, LogError> {
        self.write()?;
        self.sync()
    }

    /// First half of [`Log::flush`]: hands all queued records to the operating system in one write.
    ///
    /// # Errors
    /// As `flush`.
    pub fn write(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(self.create(self.pending_first)?);
        }
        let open = self.file.as_mut().expect("made above");
        let (at, len) = (open.head, self.pending.len());
        let error = |source| LogError::Write { path: open.path.clone(), at, len, source };
        let end = at + len as u64;
        let allocated = grown(end, open.allocated, self.options.prealloc);
        if allocated != open.allocated {
            self.disk.set_len(&open.file, allocated).map_err(error)?;
            open.allocated = allocated;
        }
        self.disk.write_at(&open.file, at, &self.pending).map_err(error)?;
        open.head = end;
        open.zeroed = open.zeroed.max(end);
        let through = self.last.expect("something was appended");
        self.unsynced = Some(Flushed { through, records: self.pending_records, bytes: len as u64 });
        self.pending.clear();
        // A rare large record must not keep its memory forever.
        self.pending.shrink_to(2 * FLUSH_MAX as usize);
        self.pending_records = 0;
        Ok(())
    }

    /// Second half of [`Log::flush`]: makes what was written durable.
    ///
    /// # Errors
    /// As `flush`.
    pub fn sync(&mut self) -> Result<Option<Flushed>, LogError> {
        let Some(flushed) = self.unsynced.take() else { return Ok(None) };
        let open = self.file.as_ref().expect("something was written to it");
        if self.options.force_sync {
            let error = |source| LogError::Flush {
                path: open.path.clone(),
                through: flushed.through,
                source,
            };
            let synced = self.disk.sync_data(&open.file);
            if synced.is_err() {
                // A part of it may be on the disk, and none of it was acknowledged.
                self.disk.give_up_after(&open.file, open.head - flushed.bytes);
            }
            synced.map_err(error)?;
        }
        if self.options.size_limit != 0 && self.options.size_limit < open.head {
            self.file = None;
        }
        Ok(Some(flushed))
    }

    /// Whether flushes are forced to the disk: `forceSync`.
    pub const fn forces(&self) -> bool {
        self.options.force_sync
    }

    /// Closes the file being written; the next record opens a new one (D-51). Flushes first: invariant 2.
    ///
    /// # Errors
    /// As [`Log::flush`].
    pub fn roll(&mut self) -> Result<Option<Flushed>, LogError> {
        let flushed = self.flush()?;
        self.file = None;
        Ok(flushed)
    }

    /// True when [`Log::prepare_ahead`] would do something.
    pub fn wants_zeros_ahead(&self) -> bool {
        let due = |open: &OpenFile<_>| open.zeroed < open.head + AHEAD / 2;
        self.options.force_sync
            && AHEAD <= self.options.prealloc
            && self.file.as_ref().is_some_and(due)
    }

    /// Fills the file with zeros ahead of its head, durably; to be called when no request waits for a flush.
    ///
    /// # Errors
    /// [`LogError::Fill`]; the log may not be used any more then.
    pub fn prepare_ahead(&mut self) -> Result<(), LogError> {
        if !self.wants_zeros_ahead() {
            return Ok(());
        }
        let Some(open) = &mut self.file else { return Ok(()) };
        let at = open.zeroed;
        let error = |source| LogError::Fill { path: open.path.clone(), at, source };
        let to = open.head + AHEAD;
        let allocated = grown(to, open.allocated, self.options.prealloc);
        if allocated != open.allocated {
            self.disk.set_len(&open.file, allocated).map_err(error)?;
            open.allocated = allocated;
        }
        // Not a constant: the program would be larger by its size.
        let zeros = vec![0; (to - at) as usize];
        self.disk.write_at(&open.file, at, &zeros).map_err(error)?;
        self.disk.sync_data(&open.file).map_err(error)?;
        open.zeroed = to;
        Ok(())
    }

    /// Makes the file whose first record is `first`, durably: invariant 1.
    fn create(&self, first: Zxid) -> Result<OpenFile<D::File>, LogError> {
        let path = self.dir.join(names::log_name(first));
        let error = |source| LogError::Create { path: path.clone(), source };
        self.remove_empty_after(first).map_err(error)?;
        let file = match self.disk.create(&path) {
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                // A file of this name whose records were all torn or truncated may be replaced. Java overwrites any file.
                if self.holds_records(&path).map_err(error)? {
                    return Err(LogError::Exists { path });
                }
                self.disk.remove(&path).map_err(error)?;
                self.disk.create(&path)
            }
            other => other,
        };
        let file = file.map_err(error)?;
        self.disk.write_at(&file, 0, &record::header()).map_err(error)?;
        if self.options.force_sync {
            self.disk.sync_data(&file).map_err(error)?;
        }
        // After the header is durable: a file that is longer and all zeros is damaged then.
        let allocated = grown(HEADER_LEN, HEADER_LEN, self.options.prealloc);
        if allocated != HEADER_LEN {
            self.disk.set_len(&file, allocated).map_err(error)?;
        }
        if self.options.force_sync {
            self.disk.sync_dir(&self.dir).map_err(error)?;
        }
        tracing::info!(path = %path.display(), "new log file");
        Ok(OpenFile { file, path, head: HEADER_LEN, allocated, zeroed: HEADER_LEN })
    }

    /// Removes files without records that are named later than a new file.
    ///
    /// Such a file is left if its first write failed, or was torn, and the transactions before it were lost with an older file. Java leaves
    /// it, and a start of Java's misses what the new file has ([`names::logs_after`]).
    fn remove_empty_after(&self, first: Zxid) -> io::Result<()> {
        let files = names::logs(&self.disk, &self.dir)?;
        for file in files.iter().filter(|file| first < file.zxid) {
            let path = self.dir.join(&file.name);
            if !scan::has_records(&self.disk, &path)? {
                self.disk.remove(&path)?;
            }
        }
        Ok(())
    }

    fn holds_records(&self, path: &Path) -> io::Result<bool> {
        let mut records = Records::new(FileSource::open(&self.disk, path)?);
        Ok(records.head()? == Head::Good && matches!(records.step()?, Step::Record { .. }))
    }

    /// Truncates the log, durably, before its first record greater than `to`. The next record opens a new file.
    ///
    /// Files are removed newest first, each durably, so that a crash in between leaves a log without a gap. Snapshots are not
    /// touched: [`super::purge::remove_snapshots_after`] removes them after the log is truncated. Until then a start finds the
    /// newest of them, which holds the history as it was, and needs none of the records that are gone.
    ///
    /// A record that can't be read stays, so that the next start still notices the damage.
    ///
    /// # Errors
    /// If a file can't be read, cut or removed. How long the log on disk is is not known then: the caller ends the log thread.
    ///
    /// Source: D-52. Java keeps the first record at or after `to`, greater or not, and does not sync; without any log
    /// file it exits.
    pub fn truncate(&mut self, to: Zxid) -> Result<(), LogError> {
        self.roll()?;
        let list = |source| LogError::List { path: self.dir.clone(), source };
        let mut files = names::logs(&self.disk, &self.dir).map_err(list)?;
        while let Some(file) = files.pop() {
            let path = self.dir.join(&file.name);
            let error = |source| LogError::Truncate { to, path: path.clone(), source };
            if file.zxid <= to {
                self.cut(&path, Some(to)).map_err(error)?;
                break; // Names are first zxids: older files end before this one begins.
            }
            self.disk.remove(&path).map_err(error)?;
            self.disk.sync_dir(&self.dir).map_err(error)?;
        }
        self.last = self.last.min(Some(to));
        Ok(())
    }

    /// Notes that a leader's tree replaced the history through `zxid`; the log may hold nothing of it.
    pub fn passed(&mut self, zxid: Zxid) {
        self.last = self.last.max(Some(zxid));
    }

    /// Truncates the newest file before its first unreadable record, after a snapshot has all that it held.
    ///
    /// # Errors
    /// If a file can't be listed or removed: the caller ends the log thread.
    pub fn drop_unreadable(&mut self) -> Result<(), LogError> {
        self.roll()?;
        let list = |source| LogError::List { path: self.dir.clone(), source };
        let Some(file) = names::logs(&self.disk, &self.dir).map_err(list)?.pop() else {
            return Ok(());
        };
        let path = self.dir.join(&file.name);
        let to = file.zxid;
        self.cut(&path, None).map_err(|source| LogError::Truncate { to, path, source })
    }

    /// Truncates a file before its first record greater than `to`; without `to`, before the first that can't be read.
    fn cut(&self, path: &Path, to: Option<Zxid>) -> io::Result<()> {
        let mut records = Records::new(FileSource::open(&self.disk, path)?);
        if records.head()? != Head::Good {
            return Ok(());
        }
        let end = loop {
            match records.step()? {
                Step::Record { at, entry } => {
                    let zxid = record::entry_zxid(entry);
                    if to.is_some_and(|to| zxid.is_some_and(|zxid| to.to_wire() < zxid)) {
                        break at;
                    }
                }
                Step::Stop(stop) if to.is_some() || stop.kind == StopKind::Clean => return Ok(()),
                Step::Stop(stop) => break stop.at,
            }
        };
        let file = self.disk.open(path)?;
        self.disk.set_len(&file, end)?;
        self.disk.sync_data(&file)
    }
}

/// The length that a file should have when its records end at `end`.
///
/// Source: `FilePadding.calculateFileSizeWithPadding`, ZooKeeper 3.9 (D-44).
fn grown(end: u64, allocated: u64, prealloc: u64) -> u64 {
    if prealloc == 0 || end + NEAR_END < allocated {
        allocated
    } else if allocated < end {
        (end + prealloc) / prealloc * prealloc
    } else {
        allocated + prealloc
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::ops::ControlFlow;

    use super::*;
    use crate::store::scan::{ScanError, scan};
    use crate::store::sim_disk::SimDisk;

    const DIR: &str = "/logs";

    fn zxid(raw: i64) -> Zxid {
        Zxid::from_wire(raw).unwrap()
    }

    fn append(log: &mut Log<SimDisk>, raw: i64) {
        let mut entry = vec![raw as u8; 100];
        entry[12..20].copy_from_slice(&raw.to_be_bytes());
        log.append(zxid(raw), &entry);
    }

    fn log(disk: &SimDisk, prealloc: u64) -> Log<SimDisk> {
        let options = LogOptions { prealloc, ..LogOptions::default() };
        Log::new(disk.clone(), Path::new(DIR), options, None)
    }

    fn zxids(disk: &SimDisk) -> Vec<i64> {
        let mut seen = Vec::new();
        let result: Result<_, ScanError<Infallible>> =
            scan(disk, Path::new(DIR), None, |zxid, _, _| {
                seen.push(zxid);
                Ok(ControlFlow::Continue(()))
            });
        result.unwrap();
        seen
    }

    fn names(disk: &SimDisk) -> Vec<String> {
        disk.list(Path::new(DIR)).unwrap()
    }

    #[test]
    fn queued_records_are_flushed_with_one_sync() {
        let disk = SimDisk::new();
        let mut log = log(&disk, 1 << 16);
        append(&mut log, 1);
        log.flush().unwrap();
        let before = disk.counts();
        (2..100).for_each(|raw| append(&mut log, raw));
        let flushed = log.flush().unwrap().unwrap();
        assert_eq!((flushed.through, flushed.records, flushed.bytes), (zxid(99), 98, 98 * 113));
        let after = disk.counts();
        assert_eq!((after.syncs - before.syncs, after.writes - before.writes), (1, 1));
        assert_eq!(log.flush().unwrap(), None);
        assert_eq!(zxids(&disk.image().crash(0)), (1..100).collect::<Vec<_>>());
    }

    // rows: D-04 D-44 D-51
    #[test]
    fn rolled_log_files_are_named_by_zxid_and_padded_as_in_java() {
        let disk = SimDisk::new();
        let mut log = log(&disk, 1 << 16);
        append(&mut log, 0x1f);
        log.roll().unwrap();
        append(&mut log, 0x2_0000_0001);
        log.flush().unwrap();
        assert_eq!(names(&disk), ["log.1f", "log.200000001"]);
        let file = disk.open(Path::new("/logs/log.1f")).unwrap();
        assert_eq!(disk.len(&file).unwrap(), 16 + (1 << 16));
        assert_eq!(grown(100, 1 << 16, 1 << 16), 1 << 16);
        assert_eq!(grown((1 << 16) - 4096, 1 << 16, 1 << 16), 2 << 16);
        assert_eq!(grown(3 << 16, 1 << 16, 1 << 16), 4 << 16);
        assert_eq!(grown(50, 10, 0), 10);
    }

    #[test]
    fn size_limit_counts_records_only() {
        let disk = SimDisk::new();
        let options = LogOptions { prealloc: 1 << 16, size_limit: 1000, force_sync: true };
        let mut log = Log::new(disk.clone(), Path::new(DIR), options, None);
        for raw in 1..=20 {
            append(&mut log, raw);
            log.flush().unwrap();
        }
        assert_eq!(names(&disk), ["log.1", "log.13", "log.a"]);
    }

    #[test]
    fn zeros_ahead_are_overwritten_and_topped_up() {
        let disk = SimDisk::new();
        let mut log = log(&disk, 2 << 20);
        assert!(!log.wants_zeros_ahead());
        append(&mut log, 1);
        log.flush().unwrap();
        assert!(log.wants_zeros_ahead());
        log.prepare_ahead().unwrap();
        assert!(!log.wants_zeros_ahead());
        for raw in 2..20_000 {
            append(&mut log, raw);
            if raw % 3000 == 0 {
                log.flush().unwrap();
                log.prepare_ahead().unwrap();
            }
        }
        log.flush().unwrap();
        assert_eq!(zxids(&disk.image().crash(0)), (1..20_000).collect::<Vec<_>>());
    }

    // rows: D-52
    #[test]
    fn truncation_leaves_no_greater_zxid() {
        for (to, left, files) in [
            (25, 25, vec!["log.1", "log.b", "log.15"]),
            (20, 20, vec!["log.1", "log.b"]),
            (13, 13, vec!["log.1", "log.b"]),
            (10, 10, vec!["log.1"]),
            (0, 0, vec![]),
            (99, 30, vec!["log.1", "log.b", "log.15"]),
        ] {
            let disk = SimDisk::new();
            let mut log = log(&disk, 1 << 16);
            for raw in 1..=30 {
                append(&mut log, raw);
                if raw % 10 == 0 {
                    log.roll().unwrap();
                }
            }
            log.truncate(zxid(to)).unwrap();
            let found = disk.image().crash(0);
            assert_eq!(zxids(&found), (1..=left).collect::<Vec<_>>());
            let mut names = names(&found);
            names.sort_by_key(|name| i64::from_str_radix(&name[4..], 16).unwrap());
            assert_eq!(names, files);
            // The next record goes to a new file, even under the name of one that was truncated.
            append(&mut log, left + 1);
            log.flush().unwrap();
            assert_eq!(zxids(&disk.image().crash(0)), (1..=left + 1).collect::<Vec<_>>());
        }
        log(&SimDisk::new(), 0).truncate(zxid(5)).unwrap(); // Nothing there, nothing greater.
    }

    // rows: D-51a
    #[test]
    fn a_file_of_an_earlier_process_is_never_overwritten() {
        let disk = SimDisk::new();
        let mut first = log(&disk, 0);
        append(&mut first, 7);
        first.flush().unwrap();
        let mut second = log(&disk, 0);
        append(&mut second, 7);
        assert!(matches!(second.flush(), Err(LogError::Exists { .. })));
    }

    // rows: D-50
    #[test]
    fn zxids_that_do_not_increase_are_written() {
        let disk = SimDisk::new();
        let mut log = log(&disk, 0);
        [5, 5, 4, 6].into_iter().for_each(|raw| append(&mut log, raw));
        assert_eq!(log.flush().unwrap().unwrap().through, zxid(6));
        assert_eq!(zxids(&disk), [5, 5, 4, 6]);
    }
}
