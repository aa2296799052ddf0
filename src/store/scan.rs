//! Reading a whole log back, file after file.

use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use super::decide::{self, EndFacts, FileEnd, Opening, RecordsAfter};
use super::disk::{Disk, Reading, remove_if_there};
use super::names::{self, Named};
use super::record::{self, HEADER_LEN, Head, Records, Source, Step, Stop, StopKind};
use crate::model::Zxid;

/// The file in the log folder that keeps what was last cut off. Its bytes are those of the log file from the place on that the WARN names.
/// No server takes the name for that of a log.
pub const TORN_FLUSH: &str = "torn-flush";
/// How much of a torn flush is copied at once, in bytes.
const CHUNK: u64 = 1 << 20;

/// Place of a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordAt {
    pub path: PathBuf,
    /// Offset in the file, in bytes.
    pub at: u64,
}

impl fmt::Display for RecordAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} offset {}", self.path.display(), self.at)
    }
}

/// What a flush that the power cut short has left in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TornFlush {
    /// Its first record that isn't whole.
    pub from: RecordAt,
    /// Offset after its last whole record.
    pub end: u64,
}

/// How much of the log's files was read, in bytes; padding counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReadSoFar {
    pub done: u64,
    pub of: u64,
}

/// Why a log could not be read. `E` is the error of the receiver of the records.
#[derive(Debug, thiserror::Error)]
pub enum ScanError<E> {
    #[error("list log folder {}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("read log file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("open log file {}: no header (magic {magic:#x}), and it is not the next file after the last transaction, or holds data, or the machine has not restarted since; acknowledged transactions may be lost here", path.display())]
    Header { path: PathBuf, magic: i32 },
    #[error("read record at {at}: {kind}; acknowledged transactions may be lost here")]
    Corrupt { at: RecordAt, kind: StopKind },
    #[error("read record at {at}: {len} bytes hold no transaction header")]
    NoHeader { at: RecordAt, len: usize },
    #[error("apply transaction {zxid:#x} at {at}")]
    Taken { at: RecordAt, zxid: i64, source: E },
}

/// A newest log file without a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EmptyFile {
    pub path: PathBuf,
    /// The zxid in its name.
    pub first: Zxid,
    /// Without one it is removed by [`repair`].
    pub has_header: bool,
}

/// What reading a log found besides its records.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Scanned {
    /// Records given to the receiver.
    pub records: u64,
    /// Records skipped because they were not after the zxid asked for.
    pub passed: u64,
    /// Highest zxid given to the receiver.
    pub highest: Option<Zxid>,
    /// The first place where transactions are missing: the highest zxid before it, and the zxid that came next.
    pub gap: Option<(Option<Zxid>, i64)>,
    /// The first place between two records of one epoch where records are missing.
    pub hole: Option<(Zxid, Zxid)>,
    /// Bytes of records in the files read.
    pub bytes: u64,
    /// The newest file, if it has no record.
    pub empty: Option<EmptyFile>,
    /// The newest file's torn flush, which is to be cut off.
    pub torn: Option<TornFlush>,
    /// True when the receiver asked to stop.
    pub stopped: bool,
}

/// Gives the records after `after` to `take`, in the order of the files.
///
/// * `after`: records are skipped until the first with a greater zxid; from there on all are given, those that
///   repeat or go back too (D-48). `None`: all.
/// * `take`: given the zxid as it stands in the entry, the entry (D-42), and how far reading has come.
///
/// Changes nothing on disk; see [`repair`]. May run while the log is written, if the caller stops at what is flushed.
///
/// # Errors
/// [`ScanError`]: what may mean that acknowledged transactions are lost is fatal; see [`decide::end`].
///
/// Source: `FileTxnIterator`, ZooKeeper 3.9.
pub fn scan<D: Disk, E>(
    disk: &D,
    dir: &Path,
    after: Option<Zxid>,
    mut take: impl FnMut(i64, &[u8], ReadSoFar) -> Result<ControlFlow<()>, E>,
) -> Result<Scanned, ScanError<E>> {
    let list = |source| ScanError::List { path: dir.to_owned(), source };
    let files = names::logs(disk, dir).map_err(list)?;
    let mut scanned = Scanned::default();
    let has_records = |file: &Named| {
        let path = dir.join(&file.name);
        has_records(disk, &path).map_err(|source| ScanError::Read { path, source })
    };
    let files = names::logs_after(&files, after, has_records)?;
    let files = written(disk, dir, files, &mut scanned)?;
    let mut reached = false;
    let mut so_far = ReadSoFar { done: 0, of: bytes_of(disk, dir, files)? };
    for (index, file) in files.iter().enumerate() {
        let path = dir.join(&file.name);
        let read = |source| ScanError::Read { path: path.clone(), source };
        let mut records = open(disk, &path)?;
        let (before_it, len_bytes) = (so_far.done, records.source().len());
        let stop = loop {
            let (at, entry) = match records.step().map_err(read)? {
                Step::Record { at, entry } => (RecordAt { path: path.clone(), at }, entry),
                Step::Stop(stop) => break stop,
            };
            let len = entry.len();
            let zxid =
                record::entry_zxid(entry).ok_or(ScanError::NoHeader { at: at.clone(), len })?;
            reached |= after.is_none_or(|after| after.to_wire() < zxid);
            if !reached {
                scanned.passed += 1;
                continue;
            }
            let before = scanned.highest.or(after);
            if scanned.gap.is_none() && !decide::follows(before, zxid) {
                scanned.gap = Some((before, zxid));
            }
            if scanned.hole.is_none() {
                scanned.hole = decide::hole(scanned.highest, zxid);
            }
            scanned.highest = scanned.highest.max(Zxid::from_wire(zxid));
            scanned.records += 1;
            so_far.done = before_it + at.at + record::record_len(len);
            let taken = take(zxid, entry, so_far).map_err(|source| ScanError::Taken {
                at,
                zxid,
                source,
            })?;
            if taken.is_break() {
                scanned.stopped = true;
                return Ok(scanned);
            }
        };
        scanned.bytes += stop.at;
        so_far.done = before_it + len_bytes;
        let newest = index + 1 == files.len();
        if newest && stop.at == HEADER_LEN && scanned.empty.is_none() {
            scanned.empty =
                Some(EmptyFile { path: path.clone(), first: file.zxid, has_header: true });
        }
        judge(disk, records, stop, newest, path, &mut scanned)?;
    }
    Ok(scanned)
}

/// Sees to it that [`scan`] reads what a power cut would leave, since this server will acknowledge what it reads:
/// 1. A killed process may have left records in the operating system's cache only; Java flushes a file after it has begun the next. They are
///    flushed.
/// 2. A flush that failed may have left records there that count as flushed, and that the disk does not have. Each flush after it succeeds.
///    The cache is dropped.
///
/// * `after`: as for [`scan`].
///
/// # Errors
/// If a file can't be flushed. The scan reports those that can't be opened or read.
pub fn settle<D: Disk>(disk: &D, dir: &Path, after: Option<Zxid>) -> io::Result<()> {
    let Ok(files) = names::logs(disk, dir) else { return Ok(()) };
    let read = names::logs_after(&files, after, |file| has_records(disk, &dir.join(&file.name)));
    for file in read.unwrap_or_default() {
        let Ok(file) = disk.open(&dir.join(&file.name)) else { continue };
        disk.sync_data(&file)?;
        disk.forget_cached(&file);
    }
    Ok(())
}

/// Removes the newest files without a header, as a power cut leaves them where `forceSync=no`.
///
/// # Errors
/// If a file can't be read or removed.
pub fn remove_unwritten<D: Disk>(disk: &D, dir: &Path) -> io::Result<()> {
    let Ok(files) = names::logs(disk, dir) else { return Ok(()) };
    for file in files.iter().rev() {
        let path = dir.join(&file.name);
        let head = Records::new(FileSource::open(disk, &path)?).head()?;
        if !matches!(head, Head::Short | Head::Zeros) {
            break;
        }
        remove_without_header(disk, &path)?;
    }
    disk.sync_dir(dir)
}

fn remove_without_header<D: Disk>(disk: &D, path: &Path) -> io::Result<()> {
    disk.remove(path)?;
    tracing::warn!(
        path = %path.display(),
        "removed a log file without a header, as a crash leaves it: it held no transaction, nothing to do"
    );
    Ok(())
}

/// Repairs what [`scan`] found: removes files without a header, truncates a torn flush, and makes what is left durable.
///
/// Must run before a new log file is made, after which the torn one would no longer be the newest.
///
/// # Errors
/// If the end can't be kept, cut off or flushed: the caller ends the start, before anything is appended after it.
pub fn repair<D: Disk>(disk: &D, dir: &Path, scanned: &Scanned) -> io::Result<()> {
    if let Some(TornFlush { from: RecordAt { path, at }, end }) = &scanned.torn {
        let file = disk.open(path)?;
        keep_torn(disk, dir, &file, *at..*end)?;
        disk.set_len(&file, *at)?;
        disk.sync_data(&file)?;
    }
    if let Some(EmptyFile { path, has_header: false, .. }) = &scanned.empty {
        remove_without_header(disk, path)?;
    }
    disk.sync_dir(dir)
}

/// Copies what is about to be cut off to a file [`TORN_FLUSH`], in place of what another torn flush has left there.
fn keep_torn<D: Disk>(disk: &D, dir: &Path, file: &D::File, bytes: Range<u64>) -> io::Result<()> {
    let path = dir.join(TORN_FLUSH);
    remove_if_there(disk, &path)?;
    let copy = disk.create(&path)?;
    let mut chunk = vec![0; CHUNK.min(bytes.end - bytes.start) as usize];
    let mut at = bytes.start;
    while at < bytes.end {
        let wanted = (bytes.end - at).min(chunk.len() as u64) as usize;
        let read = disk.read_at(file, at, &mut chunk[..wanted])?;
        if read == 0 {
            break; // The file ends within the last record.
        }
        disk.write_at(&copy, at - bytes.start, &chunk[..read])?;
        at += read as u64;
    }
    disk.sync_data(&copy)?;
    disk.sync_dir(dir)
}

fn bytes_of<D: Disk, E>(disk: &D, dir: &Path, files: &[Named]) -> Result<u64, ScanError<E>> {
    let mut bytes = 0;
    for file in files {
        let path = dir.join(&file.name);
        let source = FileSource::open(disk, &path);
        bytes += source.map_err(|source| ScanError::Read { path, source })?.len;
    }
    Ok(bytes)
}

/// The files without the newest one, if that was made and its header never became durable. It goes to `scanned.empty`.
fn written<'f, D: Disk, E>(
    disk: &D,
    dir: &Path,
    files: &'f [Named],
    scanned: &mut Scanned,
) -> Result<&'f [Named], ScanError<E>> {
    let Some((last, older)) = files.split_last() else { return Ok(files) };
    let path = dir.join(&last.name);
    let read = |source| ScanError::Read { path: path.clone(), source };
    let head = Records::new(FileSource::open(disk, &path).map_err(read)?).head().map_err(read)?;
    let may_have_lost_writes =
        head == Head::Zeros && disk.may_have_lost_writes(&path).map_err(read)?;
    if decide::opening(head, true, may_have_lost_writes) != Opening::Remove {
        return Ok(files); // Good, or refused when it is opened.
    }
    scanned.empty = Some(EmptyFile { path, first: last.zxid, has_header: false });
    Ok(older)
}

/// Whether a log file has records, or what may have been records. A file is without if nothing follows its header, or if it has none.
///
/// # Errors
/// If the file can't be read.
pub fn has_records<D: Disk>(disk: &D, path: &Path) -> io::Result<bool> {
    let mut records = Records::new(FileSource::open(disk, path)?);
    Ok(match records.head()? {
        Head::Good => !matches!(records.step()?, Step::Stop(stop) if stop.kind == StopKind::Clean),
        Head::Short | Head::Zeros => false,
        Head::Bad { .. } => true,
    })
}

/// Opens a file for its records, the header read.
fn open<'d, D: Disk, E>(
    disk: &'d D,
    path: &Path,
) -> Result<Records<FileSource<'d, D>>, ScanError<E>> {
    let read = |source| ScanError::Read { path: path.to_owned(), source };
    let mut records = Records::new(FileSource::open(disk, path).map_err(read)?);
    let head = records.head().map_err(read)?;
    if decide::opening(head, false, false) == Opening::Read {
        return Ok(records);
    }
    let magic = if let Head::Bad { magic } = head { magic } else { 0 };
    Err(ScanError::Header { path: path.to_owned(), magic })
}

/// Decides what the end of a file means, and notes it or refuses the file.
fn judge<D: Disk, S: Source, E>(
    disk: &D,
    mut records: Records<S>,
    stop: Stop,
    newest: bool,
    path: PathBuf,
    scanned: &mut Scanned,
) -> Result<(), ScanError<E>> {
    let kind = stop.kind;
    let read = |source| ScanError::Read { path: path.clone(), source };
    if kind == StopKind::Clean && records.rest_is_zero().map_err(read)? {
        return Ok(()); // Spares the search for later records, which is slower.
    }
    let len = match kind {
        StopKind::Checksum { len, .. } | StopKind::NoEndMark { len } => len,
        StopKind::Clean | StopKind::Truncated { .. } | StopKind::Length { .. } => 0,
    };
    let claimed_end = stop.at + record::record_len(usize::try_from(len).unwrap_or(0));
    let zero_sector = records.has_zero_sector(len).map_err(read)?;
    let may_have_lost_writes = disk.may_have_lost_writes(&path).map_err(read)?;
    let whole = match kind {
        StopKind::Checksum { .. } | StopKind::Length { .. } => false,
        _ => records.is_whole_otherwise().map_err(read)?,
    };
    let after = records.whole_records_after();
    let after = after.map_err(|source| ScanError::Read { path: path.clone(), source })?;
    let whole = whole || len != 0 && after.is_some_and(|after| after.first_at < claimed_end);
    let records_after = RecordsAfter::of(after, stop.at);
    let at = RecordAt { path, at: stop.at };
    let facts = EndFacts { kind, newest, records_after, zero_sector, may_have_lost_writes, whole };
    match decide::end(facts) {
        FileEnd::Quiet if kind == StopKind::Clean && records_after == RecordsAfter::Nothing => {}
        FileEnd::Quiet => tracing::warn!(
            path = %at.path.display(),
            offset = at.at,
            reason = %kind,
            %records_after,
            "log file ends in a partial record, as a crash or a full disk leaves it: it was not acknowledged, so nothing is lost; if neither happened, check the disk"
        ),
        FileEnd::Torn => {
            tracing::warn!(
                path = %at.path.display(),
                offset = at.at,
                reason = %kind,
                %records_after,
                "log file ends in a torn flush, which is cut off and kept in a file torn-flush: none of it was acknowledged if the power failed then; if it did not, keep that file and check the disk"
            );
            let end = after.map_or(claimed_end, |after| after.end);
            scanned.torn = Some(TornFlush { from: at, end });
        }
        FileEnd::Corrupt => return Err(ScanError::Corrupt { at, kind }),
    }
    Ok(())
}

/// A log file as a [`Source`].
pub struct FileSource<'d, D: Disk> {
    file: Reading<'d, D>,
    len: u64,
}

impl<'d, D: Disk> FileSource<'d, D> {
    pub fn open(disk: &'d D, path: &Path) -> io::Result<Self> {
        let file = Reading::open(disk, path)?;
        let len = file.len()?;
        Ok(Self { file, len })
    }
}

impl<D: Disk> Source for FileSource<'_, D> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(at, into)
    }

    fn written_from(&mut self, at: u64) -> io::Result<u64> {
        self.file.written_from(at)
    }
}
