//! The log folder of the last start. With a dataLogDir that was changed in zoo.cfg, or is gone from it, the server would start from an older
//! snapshot, without what it has acknowledged since, and vote with that.

use super::disk::{Disk, is_full, read_file, remove_if_there, replace_file};
use super::names::{self, Folders, Named};
use super::record::{Head, Records, Step, Stop, StopKind, entry_zxid};
use super::scan::FileSource;
use super::snapshot;
use crate::model::Zxid;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file beside the snapshots with three lines: the folder that it is in, the log folder, and the number of the start ([`STARTS`]). In a copy of the
/// folder it says nothing, as long as the folder in the first line is there. Older versions wrote no third line.
const NOTE: &str = "lastLogFolder";
/// A file in the log folder with a random number for each of the last starts, a line each, newest last. The folder below a mount point has no such file,
/// or lacks the last start, even if it was copied to the disk that is mounted there. A folder that was used after the note was written has it.
const STARTS: &str = "logFolderId";
/// The number of starts that are remembered.
const STARTS_MAX: usize = 64;

/// What the note of the last start says of the log folder, if it had the same path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotedFolder {
    Same,
    /// Another folder is at that path now.
    Other,
}

/// What the log folder lacks, if the last start had another one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lacking {
    /// The newest log of the last start: the file is not here, or the one here lacks some of its transactions.
    Newest(PathBuf),
    /// There is no log here, and that folder is gone, another one is at its path, or it lost its logs.
    All(PathBuf),
}

/// `None`: the last start noted nothing or had the same log folder, or nothing is lacking.
///
/// # Errors
/// If the note or a log here can't be read.
pub fn lacking<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<Lacking>> {
    let Some(Noted { logs: before, start, is_moved }) = noted(disk, folders)? else {
        return Ok(None);
    };
    if before == folders.logs {
        return Ok(None);
    }
    let here = names::logs(disk, &folders.logs).unwrap_or_default();
    let starts = starts_in(disk, &before).unwrap_or_default();
    let has_start = |starts: &[String]| start.as_ref().is_some_and(|start| starts.contains(start));
    // A data folder that was moved may have come to a machine where another server has its logs at that path.
    let may_be_other = !starts.is_empty() || is_moved;
    let found = match start.is_some() && !has_start(&starts) && may_be_other {
        true => Vec::new(),
        false => names::logs(disk, &before).unwrap_or_default(),
    };
    let Some(newest) = found.last() else {
        // If there were never transactions, there was no log.
        let had_none =
            || snapshot::newest_whole(disk, &folders.snapshots, None) <= Some(Zxid::ZERO);
        let is_known =
            has_start(&starts_in(disk, &folders.logs)?) || has_start(&starts) && had_none();
        return Ok((here.is_empty() && !is_known).then_some(Lacking::All(before)));
    };
    let path = before.join(&newest.name);
    let lacks = match here.iter().any(|file| file.name == newest.name) {
        true => lacks_some_of(disk, &path, &folders.logs.join(&newest.name))?,
        false => true,
    };
    let lacks = lacks && !are_covered(disk, &before, &found, &folders.snapshots);
    Ok(lacks.then_some(Lacking::Newest(path)))
}

/// Whether a snapshot has all transactions of a folder's logs: another server has gone on since, and its log folder was this one. Logs that are
/// damaged or can't be read may have more.
///
/// * `logs`: oldest first, in `dir`.
fn are_covered<D: Disk>(disk: &D, dir: &Path, logs: &[Named], snapshots: &Path) -> bool {
    // A log that was begun and has no record yet says nothing.
    let mut ends = logs.iter().rev().map(|log| last_zxid(disk, &dir.join(&log.name)));
    let last = ends.find(|end| !matches!(end, LogEnd::NoRecord));
    let Some(LogEnd::Last(last)) = last else { return false };
    Some(last) <= snapshot::newest_whole(disk, snapshots, None)
}

/// How a log ends.
enum LogEnd {
    NoRecord,
    Last(Zxid),
    Unknown,
}

fn last_zxid<D: Disk>(disk: &D, log: &Path) -> LogEnd {
    let Ok(source) = FileSource::open(disk, log) else { return LogEnd::Unknown };
    let mut records = Records::new(source);
    match records.head() {
        Ok(Head::Good) => {}
        Ok(Head::Short | Head::Zeros) => return LogEnd::NoRecord,
        _ => return LogEnd::Unknown,
    }
    let mut end = LogEnd::NoRecord;
    loop {
        match records.step() {
            Ok(Step::Record { entry, .. }) => match entry_zxid(entry).and_then(Zxid::from_wire) {
                Some(zxid) => end = LogEnd::Last(zxid),
                None => return LogEnd::Unknown,
            },
            Ok(Step::Stop(Stop { kind: StopKind::Clean, .. })) => return end,
            _ => return LogEnd::Unknown,
        }
    }
}

/// Whether a log lacks some of the transactions of another one. A copy that was made while the server went on, or a file that another server
/// began after the same snapshot, has the same name.
fn lacks_some_of<D: Disk>(disk: &D, of: &Path, copy: &Path) -> io::Result<bool> {
    let Ok(source) = FileSource::open(disk, of) else { return Ok(false) };
    let (mut of, mut copy) = (Records::new(source), Records::new(FileSource::open(disk, copy)?));
    if of.head().is_ok_and(|head| head == Head::Good) && copy.head()? != Head::Good {
        return Ok(of.step().is_ok_and(|step| matches!(step, Step::Record { .. })));
    }
    while let Ok(Step::Record { entry, .. }) = of.step() {
        match copy.step()? {
            Step::Record { entry: copied, .. } if copied == entry => {}
            Step::Record { .. } | Step::Stop(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// `None`: the last start noted nothing, had its logs beside the snapshots, or had another log folder.
///
/// # Errors
/// If the note or the starts in the log folder are there and can't be read.
pub fn noted_here<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<NotedFolder>> {
    let Some(noted) = noted(disk, folders)?.filter(|noted| noted.logs == folders.logs) else {
        return Ok(None);
    };
    let starts = starts_in(disk, &folders.logs)?;
    // A server that noted no start has written a log since.
    let is_same = match &noted.start {
        Some(start) => starts.contains(start),
        None => {
            !starts.is_empty()
                || names::logs(disk, &folders.logs).map_or(true, |logs| !logs.is_empty())
        }
    };
    Ok(Some(if is_same { NotedFolder::Same } else { NotedFolder::Other }))
}

/// The path of the note.
pub fn path_of_note(folders: &Folders) -> PathBuf {
    folders.snapshots.join(NOTE)
}

struct Noted {
    logs: PathBuf,
    start: Option<String>,
    /// This folder had another path when the note was written.
    is_moved: bool,
}

/// The note, unless it may be in a copy: the folder in it is another one, and has a note, too, or can't be read. If there is none, the folder was moved.
fn noted<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<Noted>> {
    let Some(text) = text_of(disk, &path_of_note(folders))? else { return Ok(None) };
    let mut lines = text.lines();
    let (Some(snapshots), Some(logs)) = (lines.next(), lines.next()) else { return Ok(None) };
    let snapshots = Path::new(snapshots);
    let is_moved = !disk.is_same_folder(snapshots, &folders.snapshots);
    let is_gone = || matches!(text_of(disk, &snapshots.join(NOTE)), Ok(None));
    if is_moved && !is_gone() {
        return Ok(None);
    }
    Ok(Some(Noted { logs: logs.into(), start: lines.next().map(str::to_owned), is_moved }))
}

fn starts_in<D: Disk>(disk: &D, logs: &Path) -> io::Result<Vec<String>> {
    let text = text_of(disk, &logs.join(STARTS))?.unwrap_or_default();
    let lines = text.lines().map(|line| line.trim().to_owned());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}

fn text_of<D: Disk>(disk: &D, path: &Path) -> io::Result<Option<String>> {
    match read_file(disk, path) {
        Err(error) if is_no_file(&error) => Ok(None),
        read => Ok(Some(String::from_utf8_lossy(&read?).into_owned())),
    }
}

/// Whether there is no such file, or not even its folder.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Notes the log folder of this start. Logs beside the snapshots need no note: a start with another log folder finds them there
/// ([`super::RecoverError::Misplaced`]).
///
/// * `start`: a random number. The folder has it before the note does: a crash between the two leaves a note of the start before, which the folder has,
///   too.
///
/// # Errors
/// If the note or the starts can't be read, written or removed; not if the disk is full and the note of an earlier start is of this folder.
pub fn note<D: Disk>(disk: &D, folders: &Folders, start: u64) -> io::Result<()> {
    if folders.snapshots == folders.logs {
        return remove_if_there(disk, &path_of_note(folders)).map(drop);
    }
    match note_start(disk, folders, start) {
        Err(error) if is_full(&error) && noted_here(disk, folders)? == Some(NotedFolder::Same) => {
            Ok(())
        }
        noted => noted,
    }
}

fn note_start<D: Disk>(disk: &D, folders: &Folders, start: u64) -> io::Result<()> {
    let mut starts = starts_in(disk, &folders.logs)?;
    // The number in the note stays, however often a full disk has kept the note from being written.
    let noted = noted(disk, folders)?.and_then(|noted| noted.start);
    let noted = noted.filter(|start| starts.contains(start));
    starts.push(format!("{start:016x}"));
    starts.drain(..starts.len().saturating_sub(STARTS_MAX));
    if let Some(start) = noted.filter(|start| !starts.contains(start)) {
        starts[0] = start;
    }
    let lines: String = starts.iter().map(|start| format!("{start}\n")).collect();
    replace_file(disk, &folders.logs.join(STARTS), lines.as_bytes())?;
    let (snapshots, logs) = (folders.snapshots.display(), folders.logs.display());
    let text = format!("{snapshots}\n{logs}\n{start:016x}\n");
    replace_file(disk, &path_of_note(folders), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sim_disk::{Fault, SimDisk};
    use crate::store::{RealDisk, record};

    fn folders(logs: &str) -> Folders {
        Folders::new(Path::new("/data"), Path::new(logs))
    }

    fn put(disk: &SimDisk, path: &str) {
        replace_file(disk, Path::new(path), b"x").unwrap();
    }

    #[test]
    fn newest_log_of_the_last_start_has_to_be_in_the_log_folder() {
        let disk = SimDisk::new();
        let left = |logs: &str| lacking(&disk, &folders(logs)).unwrap();
        put(&disk, "/logs/version-2/log.1");
        put(&disk, "/logs/version-2/log.a00000001");
        put(&disk, "/data/version-2/snapshot.0");
        assert_eq!(left("/data"), None, "there is no note");
        note(&disk, &folders("/logs"), 7).unwrap();
        assert_eq!(left("/logs"), None);
        let newest = Some(Lacking::Newest("/logs/version-2/log.a00000001".into()));
        assert_eq!((left("/data"), left("/other")), (newest.clone(), newest));
        put(&disk, "/other/version-2/log.a00000001");
        assert_eq!(left("/other"), None, "the logs were moved");
        note(&disk, &folders("/nowhere"), 7).unwrap();
        disk.remove(Path::new("/nowhere/version-2/logFolderId")).unwrap();
        let all = Some(Lacking::All("/nowhere/version-2".into()));
        assert_eq!(left("/data"), all, "the folder is gone, or its disk is not mounted");
        assert_eq!(left("/other"), None, "the logs were moved, and the folder was removed");
        note(&disk, &folders("/data"), 7).unwrap();
        assert_eq!(disk.list(Path::new("/data/version-2")).unwrap(), ["snapshot.0"]);
    }

    // A copy that was made while the server went on; and two servers that went on from one snapshot.
    #[test]
    fn log_of_the_same_name_has_to_have_all_transactions_of_the_last_start() {
        let disk = SimDisk::new();
        let log = |folder: &str, entries: &[&[u8]]| {
            let mut bytes = record::header().to_vec();
            entries.iter().for_each(|entry| record::put_record(entry, &mut bytes));
            let path = Path::new(folder).join("version-2/log.1");
            replace_file(&disk, &path, &[&bytes[..], &[0; 100]].concat()).unwrap();
        };
        put(&disk, "/data/version-2/snapshot.0");
        log("/logs", &[b"one", b"two"]);
        note(&disk, &folders("/logs"), 7).unwrap();
        let left = || lacking(&disk, &folders("/other")).unwrap();
        for (lacks, entries) in [
            (true, &[&b"one"[..]][..]),
            (true, &[b"one", b"six", b"two"]),
            (true, &[]),
            (false, &[b"one", b"two"]),
            (false, &[b"one", b"two", b"three"]),
        ] {
            log("/other", entries);
            let newest = Lacking::Newest("/logs/version-2/log.1".into());
            assert_eq!(left(), lacks.then_some(newest), "{entries:?}");
        }
    }

    #[test]
    fn empty_folder_of_the_last_start_is_known_by_its_id() {
        let disk = SimDisk::new();
        put(&disk, "/data/version-2/snapshot.0");
        note(&disk, &folders("/logs"), 7).unwrap();
        let left = || lacking(&disk, &folders("/data")).unwrap();
        assert_eq!(left(), None, "nothing was logged");
        disk.remove(Path::new("/logs/version-2/logFolderId")).unwrap();
        assert_eq!(left(), Some(Lacking::All("/logs/version-2".into())), "its disk is not mounted");
    }

    #[test]
    fn note_says_nothing_in_a_copy_and_counts_in_a_folder_that_was_moved() {
        let (disk, other) = (SimDisk::new(), Folders::new(Path::new("/copy"), Path::new("/copy")));
        put(&disk, "/logs/version-2/log.1");
        let before = folders("/logs");
        note(&disk, &before, 7).unwrap();
        let text = read_file(&disk, &path_of_note(&before)).unwrap();
        replace_file(&disk, &path_of_note(&other), &text).unwrap();
        assert_eq!(lacking(&disk, &other).unwrap(), None);
        disk.remove(&path_of_note(&before)).unwrap();
        let newest = Lacking::Newest("/logs/version-2/log.1".into());
        assert_eq!(lacking(&disk, &other).unwrap(), Some(newest), "it was moved");
        let moved = Folders::new(Path::new("/copy"), Path::new("/logs"));
        assert_eq!(noted_here(&disk, &moved).unwrap(), Some(NotedFolder::Same));
        // The logs are moved, too, or their folder was another server's all the time.
        disk.remove(Path::new("/logs/version-2/log.1")).unwrap();
        let starts = read_file(&disk, &before.logs.join(STARTS)).unwrap();
        disk.remove(&before.logs.join(STARTS)).unwrap();
        let all = Lacking::All("/logs/version-2".into());
        assert_eq!(lacking(&disk, &other).unwrap(), Some(all.clone()));
        put(&disk, "/logs/version-2/log.5");
        assert_eq!(lacking(&disk, &other).unwrap(), Some(all.clone()), "another server's");
        put(&disk, "/logs/version-2/logFolderId");
        assert_eq!(lacking(&disk, &other).unwrap(), Some(all));
        replace_file(&disk, &other.logs.join(STARTS), &starts).unwrap();
        assert_eq!(lacking(&disk, &other).unwrap(), None, "the folder had no log yet");
    }

    #[test]
    fn data_folder_by_another_path_is_no_copy() {
        let root = tempfile::tempdir().unwrap();
        let (data, logs, link) =
            (root.path().join("data"), root.path().join("logs"), root.path().join("link"));
        let before = Folders::new(&data, &logs);
        for dir in [&before.snapshots, &before.logs] {
            RealDisk.create_dir(dir).unwrap();
        }
        note(&RealDisk, &before, 7).unwrap();
        replace_file(&RealDisk, &before.logs.join("log.1"), b"x").unwrap();
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let newest = Lacking::Newest(before.logs.join("log.1"));
        assert_eq!(lacking(&RealDisk, &Folders::new(&link, &link)).unwrap(), Some(newest));
        let same = Folders::new(&link, &logs);
        assert_eq!(noted_here(&RealDisk, &same).unwrap(), Some(NotedFolder::Same));
    }

    // mv logs/version-2/log.* other/, instead of other/version-2/.
    #[test]
    fn logs_that_were_moved_to_another_folder_than_the_new_one_are_missed() {
        let (disk, now) = (SimDisk::new(), folders("/other"));
        note(&disk, &folders("/logs"), 7).unwrap();
        let snapshot = now.snapshots.join("snapshot.6");
        replace_file(&disk, &snapshot, &[&[0; 8][..], &[0, 0, 0, 1, b'/']].concat()).unwrap();
        let all = Some(Lacking::All("/logs/version-2".into()));
        assert_eq!(lacking(&disk, &now).unwrap(), all);
        disk.rename(&snapshot, &now.snapshots.join("snapshot.0")).unwrap();
        assert_eq!(lacking(&disk, &now).unwrap(), None, "there were no transactions");
    }

    // Java has gone on with a copy of the logs, and has purged the one with which this server had ended.
    #[test]
    fn log_of_the_last_start_is_not_missed_if_a_snapshot_has_all_of_it() {
        let (disk, before, now) = (SimDisk::new(), folders("/logs"), folders("/other"));
        let log = |name: &str, zxids: &[u64]| {
            let mut log = record::header().to_vec();
            for zxid in zxids {
                let mut entry = [0; 40];
                entry[12..20].copy_from_slice(&zxid.to_be_bytes());
                record::put_record(&entry, &mut log);
            }
            replace_file(&disk, &before.logs.join(name), &log).unwrap();
            log
        };
        let bytes = log("log.5", &[5, 6]);
        note(&disk, &before, 7).unwrap();
        put(&disk, "/other/version-2/log.9");
        let lacks = || lacking(&disk, &now).unwrap().is_some();
        let snapshot = |name: &str, bytes: &[u8]| {
            replace_file(&disk, &now.snapshots.join(name), bytes).unwrap();
        };
        let whole = [&[0; 8][..], &[0, 0, 0, 1, b'/']].concat();
        assert!(lacks());
        snapshot("snapshot.5", &whole);
        snapshot("snapshot.6", b"torn");
        log("log.7", &[]);
        assert!(lacks(), "the log was rolled, and its disk was full then");
        snapshot("snapshot.6", &whole);
        assert!(!lacks());
        log("log.7", &[7]);
        assert!(lacks());
        snapshot("snapshot.7", &whole);
        assert!(!lacks());
        let cut = &bytes[..bytes.len() - 20];
        for damaged in [&b"the damaged header of a log"[..], cut] {
            replace_file(&disk, &before.logs.join("log.7"), damaged).unwrap();
            assert!(lacks(), "it may have more");
        }
    }

    // The disk of the logs was a copy of what lies below its mount point.
    #[test]
    fn other_folder_at_the_noted_path_is_noticed() {
        let (disk, folders) = (SimDisk::new(), folders("/logs"));
        let found = || noted_here(&disk, &folders).unwrap();
        assert_eq!(found(), None);
        note(&disk, &folders, 7).unwrap();
        let starts = folders.logs.join(STARTS);
        let copied = read_file(&disk, &starts).unwrap();
        note(&disk, &folders, 8).unwrap();
        assert_eq!(found(), Some(NotedFolder::Same));
        let newest = read_file(&disk, &starts).unwrap();
        replace_file(&disk, &starts, &copied).unwrap();
        assert_eq!(found(), Some(NotedFolder::Other));
        // A note of an earlier time beside newer logs; and a crash before the note was written.
        replace_file(&disk, &starts, &[&newest[..], b"0000000000000009\n"].concat()).unwrap();
        assert_eq!(found(), Some(NotedFolder::Same));
        disk.remove(&starts).unwrap();
        assert_eq!(found(), Some(NotedFolder::Other));
        put(&disk, "/logs/version-2/logFolderId");
        assert_eq!(found(), Some(NotedFolder::Other));
        // As an older version wrote it.
        let text = b"/data/version-2\n/logs/version-2\n";
        replace_file(&disk, &path_of_note(&folders), text).unwrap();
        assert_eq!(found(), Some(NotedFolder::Same));
        disk.remove(&starts).unwrap();
        assert_eq!(found(), Some(NotedFolder::Other), "no log is there");
        put(&disk, "/logs/version-2/log.1");
        assert_eq!(found(), Some(NotedFolder::Same));
    }

    #[test]
    fn start_on_a_full_disk_keeps_the_note_of_the_one_before() {
        let folders = folders("/logs");
        let disk = SimDisk::new();
        disk.fail_next(Fault::NoSpace);
        assert!(note(&disk, &folders, 7).is_err(), "the log folder is not known by anything yet");
        note(&disk, &folders, 7).unwrap();
        disk.fail_next(Fault::NoSpace);
        note(&disk, &folders, 8).unwrap();
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Same));
    }

    #[test]
    fn last_starts_are_remembered() {
        let (disk, folders) = (SimDisk::new(), folders("/logs"));
        (1..=100).for_each(|start| note(&disk, &folders, start).unwrap());
        let starts = starts_in(&disk, &folders.logs).unwrap();
        assert_eq!(starts.len(), STARTS_MAX);
        assert_eq!(starts.last().unwrap(), "0000000000000064");
        // The disk of the note is full.
        let noted = read_file(&disk, &path_of_note(&folders)).unwrap();
        for start in 101..=300 {
            note(&disk, &folders, start).unwrap();
            replace_file(&disk, &path_of_note(&folders), &noted).unwrap();
        }
        assert_eq!(starts_in(&disk, &folders.logs).unwrap().len(), STARTS_MAX);
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Same));
    }
}
