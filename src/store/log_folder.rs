//! The log folder of the last start. With a dataLogDir that was changed in zoo.cfg, or is gone from it, the server would start from an older
//! snapshot, without what it has acknowledged since, and vote with that.

use super::disk::{Disk, read_file, remove_if_there, replace_file};
use super::names::{self, Folders};
use super::record::{Head, Records, Step};
use super::scan::FileSource;
use std::io;
use std::path::{Path, PathBuf};

/// A file beside the snapshots with three lines: the folder that it is in, the log folder, and what [`ID`] there has. In a copy of the folder the
/// first line is another one, and the file says nothing. Older versions wrote no third line.
const NOTE: &str = "lastLogFolder";
/// A file in the log folder with a number that no other log folder has. The folder below a mount point has no such file, or another one.
const ID: &str = "logFolderId";

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
    /// There is no log here, and that folder is gone, or another one is at its path.
    All(PathBuf),
}

/// `None`: the last start noted nothing or had the same log folder, or nothing is lacking.
///
/// # Errors
/// If the note or a log here can't be read. What can't be read in the folder of the last start shows nothing.
pub fn lacking<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<Lacking>> {
    let Some(Noted { logs: before, id }) = noted(disk, folders)? else { return Ok(None) };
    if before == folders.logs {
        return Ok(None);
    }
    let here = names::logs(disk, &folders.logs).unwrap_or_default();
    let Some(newest) = names::logs(disk, &before).unwrap_or_default().pop() else {
        let is_there = id.is_some() && id_in(disk, &before).is_ok_and(|there| there == id);
        return Ok((here.is_empty() && !is_there).then_some(Lacking::All(before)));
    };
    let path = before.join(&newest.name);
    let lacks = match here.iter().any(|file| file.name == newest.name) {
        true => lacks_some_of(disk, &path, &folders.logs.join(&newest.name))?,
        false => true,
    };
    Ok(lacks.then_some(Lacking::Newest(path)))
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
/// If the note or the log folder's id is there and can't be read.
pub fn noted_here<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<NotedFolder>> {
    let Some(noted) = noted(disk, folders)?.filter(|noted| noted.logs == folders.logs) else {
        return Ok(None);
    };
    let id = id_in(disk, &folders.logs)?;
    // A server that noted no id has written a log since.
    let is_same = match &noted.id {
        Some(_) => noted.id == id,
        None => {
            id.is_some() || names::logs(disk, &folders.logs).map_or(true, |logs| !logs.is_empty())
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
    id: Option<String>,
}

/// The note, if it is of this folder.
fn noted<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Option<Noted>> {
    let Some(text) = text_of(disk, &path_of_note(folders))? else { return Ok(None) };
    let mut lines = text.lines();
    let is_of_here =
        lines.next().is_some_and(|snapshots| Path::new(snapshots) == folders.snapshots);
    let Some(logs) = lines.next().filter(|_| is_of_here) else { return Ok(None) };
    Ok(Some(Noted { logs: logs.into(), id: lines.next().map(str::to_owned) }))
}

fn id_in<D: Disk>(disk: &D, logs: &Path) -> io::Result<Option<String>> {
    let text = text_of(disk, &logs.join(ID))?;
    Ok(text.map(|text| text.trim().to_owned()).filter(|id| !id.is_empty()))
}

fn text_of<D: Disk>(disk: &D, path: &Path) -> io::Result<Option<String>> {
    match read_file(disk, path) {
        Err(error) if is_no_file(&error) => Ok(None),
        read => Ok(Some(String::from_utf8_lossy(&read?).into_owned())),
    }
}

/// Whether there is no such file, or not even its folder.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Notes the log folder of this start. Logs beside the snapshots need no note: a start with another log folder finds them there
/// ([`super::RecoverError::Misplaced`]).
///
/// * `new_id`: a random number, for a log folder without an id.
///
/// # Errors
/// If the note or the id can't be read, written or removed.
pub fn note<D: Disk>(disk: &D, folders: &Folders, new_id: u64) -> io::Result<()> {
    let path = path_of_note(folders);
    if folders.snapshots == folders.logs {
        return remove_if_there(disk, &path).map(drop);
    }
    let id = match id_in(disk, &folders.logs)? {
        Some(id) => id,
        None => {
            let id = format!("{new_id:016x}");
            replace_file(disk, &folders.logs.join(ID), format!("{id}\n").as_bytes())?;
            id
        }
    };
    let text = format!("{}\n{}\n{id}\n", folders.snapshots.display(), folders.logs.display());
    if read_file(disk, &path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    replace_file(disk, &path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record;
    use crate::store::sim_disk::SimDisk;

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
    fn note_in_a_copy_of_the_folder_says_nothing() {
        let (disk, copied) = (SimDisk::new(), Folders::new(Path::new("/copy"), Path::new("/copy")));
        put(&disk, "/logs/version-2/log.1");
        note(&disk, &folders("/logs"), 7).unwrap();
        let text = read_file(&disk, &folders("/logs").snapshots.join(NOTE)).unwrap();
        replace_file(&disk, &copied.snapshots.join(NOTE), &text).unwrap();
        assert_eq!(lacking(&disk, &copied).unwrap(), None);
    }

    #[test]
    fn note_is_written_once() {
        let (disk, folders) = (SimDisk::new(), folders("/logs"));
        note(&disk, &folders, 7).unwrap();
        let changes = disk.counts().changes;
        note(&disk, &folders, 7).unwrap();
        assert_eq!(disk.counts().changes, changes);
    }

    #[test]
    fn other_folder_at_the_noted_path_is_noticed() {
        let (disk, folders) = (SimDisk::new(), folders("/logs"));
        assert_eq!(noted_here(&disk, &folders).unwrap(), None);
        note(&disk, &folders, 7).unwrap();
        note(&disk, &folders, 8).unwrap();
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Same));
        let id = folders.logs.join(ID);
        assert_eq!(read_file(&disk, &id).unwrap(), b"0000000000000007\n", "it stays");
        disk.remove(&id).unwrap();
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Other));
        put(&disk, "/logs/version-2/logFolderId");
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Other));
        // As an older version wrote it.
        let text = b"/data/version-2\n/logs/version-2\n";
        replace_file(&disk, &path_of_note(&folders), text).unwrap();
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Same));
        disk.remove(&id).unwrap();
        assert_eq!(
            noted_here(&disk, &folders).unwrap(),
            Some(NotedFolder::Other),
            "no log is there"
        );
        put(&disk, "/logs/version-2/log.1");
        assert_eq!(noted_here(&disk, &folders).unwrap(), Some(NotedFolder::Same));
    }
}
