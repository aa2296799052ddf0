//! Removal of snapshots and log files that recovery no longer needs.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};
use super::names::{self, Folders, Named, Packing};
use super::{scan, snapshot};
use crate::model::Zxid;

/// The fewest snapshots that may be kept (D-53).
pub const KEEP_MIN: usize = 3;

/// Why files could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    #[error("keep {keep} snapshots: at least {KEEP_MIN}")]
    TooFew { keep: usize },
    #[error("list folder {}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
}

/// Names of the files to remove, in the order of removal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    pub snapshots: Vec<String>,
    pub logs: Vec<String>,
    /// The oldest snapshot that is kept. Nothing is removed without it.
    pub kept: Option<String>,
}

impl Plan {
    /// Whether the oldest kept snapshot is still there. A server removes it for an older tree of its leader, or to truncate its log, and may
    /// be left with no other snapshots than those that were to be removed.
    ///
    /// # Errors
    /// If the disk does not say.
    pub fn holds<D: Disk>(&self, disk: &D, folders: &Folders) -> io::Result<bool> {
        let Some(kept) = &self.kept else { return Ok(false) };
        match disk.open(&folders.snapshots.join(kept)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Chooses the files to remove: snapshots older than the oldest one kept, and logs that end before it.
///
/// * `snapshots`: oldest first, whole or not. `logs`: oldest first.
/// * `whole`: whether a snapshot is whole; called newest first, for as few as are needed.
/// * `keep`: number of whole snapshots to keep. `has_records`: whether a log has any; called newest first, for as few as are needed.
///
/// The newest of the logs with records that are named at or before the oldest kept snapshot stays: it may hold transactions after that
/// snapshot.
/// With fewer whole snapshots than `keep` the oldest of them is the oldest kept, and with none nothing is removed.
///
/// Source: `PurgeTxnLog.purgeOlderSnapshots`, ZooKeeper 3.9.
pub fn plan(
    snapshots: &[Named],
    logs: &[Named],
    keep: usize,
    whole: impl FnMut(&&Named) -> bool,
    has_records: impl FnMut(&&Named) -> bool,
) -> Plan {
    let kept = snapshots.iter().rev().filter(whole).take(keep).last();
    let Some(kept) = kept else { return Plan::default() };
    let names = |files: &[Named]| files.iter().map(|file| file.name.clone()).collect();
    let older = snapshots.partition_point(|file| file.zxid < kept.zxid);
    let started = logs.partition_point(|log| log.zxid <= kept.zxid);
    // Java compares zxids, so files of one zxid stay together.
    let newest = logs[..started].iter().rev().find(has_records).map(|log| log.zxid);
    let ended = logs.partition_point(|log| Some(log.zxid) < newest);
    let kept = Some(kept.name.clone());
    Plan { snapshots: names(&snapshots[..older]), logs: names(&logs[..ended]), kept }
}

/// Looks for the end of a snapshot, as deep as need be: [`snapshot::is_whole`].
pub fn read_whole<D: Disk>(disk: &D) -> impl FnMut(&Path, Packing) -> bool {
    |path, packing| snapshot::is_whole(disk, path, packing).unwrap_or(false)
}

/// The files that [`plan`] chooses among those on the disk.
///
/// * `is_whole`: whether a snapshot may be one of those that are kept.
///
/// # Errors
/// [`PurgeError`].
pub fn obsolete<D: Disk>(
    disk: &D,
    folders: &Folders,
    keep: usize,
    mut is_whole: impl FnMut(&Path, Packing) -> bool,
) -> Result<Plan, PurgeError> {
    let list = |path: &Path| {
        let path = path.to_owned();
        move |source| PurgeError::List { path, source }
    };
    let snapshots = names::snapshots(disk, &folders.snapshots).map_err(list(&folders.snapshots))?;
    let logs = names::logs(disk, &folders.logs).map_err(list(&folders.logs))?;
    let whole =
        |file: &&Named| is_whole(&folders.snapshots.join(&file.name), Packing::of(&file.name));
    let has_records =
        |file: &&Named| scan::has_records(disk, &folders.logs.join(&file.name)).unwrap_or(false);
    Ok(plan(&snapshots, &logs, keep, whole, has_records))
}

/// Removes the files that [`plan`] chooses; returns their paths.
///
/// Not for a disk that stops after an error ([`disk::FailStop`]): a file that cannot be removed is no reason to stop a server.
///
/// * `is_whole`: as for [`obsolete`].
///
/// Ends as soon as the plan no longer [holds](Plan::holds).
///
/// # Errors
/// [`PurgeError`]. Snapshots go before logs, and oldest first, so what is left is whole after any error or crash.
pub fn purge<D: Disk>(
    disk: &D,
    folders: &Folders,
    keep: usize,
    is_whole: impl FnMut(&Path, Packing) -> bool,
) -> Result<Vec<PathBuf>, PurgeError> {
    if keep < KEEP_MIN {
        return Err(PurgeError::TooFew { keep });
    }
    let plan = obsolete(disk, folders, keep, is_whole)?;
    let mut removed = Vec::new();
    for (dir, names) in [(&folders.snapshots, &plan.snapshots), (&folders.logs, &plan.logs)] {
        for name in names {
            let error = |source| PurgeError::Remove { path: dir.join(name), source };
            if !plan.holds(disk, folders).map_err(error)? {
                return Ok(removed);
            }
            removed.extend(remove(disk, dir, vec![name.clone()])?);
        }
    }
    Ok(removed)
}

/// Removes snapshots named later than `zxid`, durably.
///
/// A server that truncates its log must do this too: a snapshot with transactions that the ensemble discarded would
/// bring them back at the next start (ZOOKEEPER-1549). Oldest first, so that a start in between finds the newest
/// snapshot until that is removed too.
///
/// # Errors
/// [`PurgeError`].
pub fn remove_snapshots_after<D: Disk>(
    disk: &D,
    dir: &Path,
    zxid: Zxid,
) -> Result<Vec<PathBuf>, PurgeError> {
    let files = names::snapshots(disk, dir)
        .map_err(|source| PurgeError::List { path: dir.to_owned(), source })?;
    let later = files.partition_point(|file| file.zxid <= zxid);
    remove(disk, dir, files[later..].iter().map(|file| file.name.clone()).collect())
}

/// Removes, durably, all snapshots that a start would prefer to `placed`: those named later, and others of its zxid.
///
/// # Errors
/// [`PurgeError`].
pub fn remove_snapshots_for<D: Disk>(
    disk: &D,
    placed: &Path,
    zxid: Zxid,
) -> Result<(), PurgeError> {
    let dir = placed.parent().unwrap_or(Path::new(""));
    remove_snapshots_after(disk, dir, zxid)?;
    let files = names::snapshots(disk, dir)
        .map_err(|source| PurgeError::List { path: dir.to_owned(), source })?;
    let rivals = files.into_iter().filter(|file| file.zxid == zxid).map(|file| file.name);
    let rivals = rivals.filter(|name| dir.join(name) != placed).collect();
    remove(disk, dir, rivals)?;
    Ok(())
}

fn remove<D: Disk>(disk: &D, dir: &Path, names: Vec<String>) -> Result<Vec<PathBuf>, PurgeError> {
    let paths: Vec<PathBuf> = names.into_iter().map(|name| dir.join(name)).collect();
    for path in &paths {
        let error = |source| PurgeError::Remove { path: path.clone(), source };
        // An operator may have purged the file first.
        if disk::remove_if_there(disk, path).map_err(error)? {
            disk.sync_dir(dir).map_err(error)?;
            tracing::info!(path = %path.display(), "removed an obsolete file");
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sim_disk::SimDisk;
    use crate::store::{SnapshotWriter, Trailers};

    fn named(zxids: &[i64], prefix: &str) -> Vec<Named> {
        let name =
            |&raw| Named { zxid: Zxid::from_wire(raw).unwrap(), name: format!("{prefix}{raw}") };
        zxids.iter().map(name).collect()
    }

    // rows: D-53
    #[test]
    fn older_snapshots_and_logs_that_end_before_them_are_purged() {
        // `broken`: snapshots that aren't whole, and logs without records.
        let check = |snapshots: &[i64], broken: &[i64], logs: &[i64], gone: (&[&str], &[&str])| {
            let whole = |file: &&Named| !broken.contains(&file.zxid.to_wire());
            let plan = plan(&named(snapshots, "s"), &named(logs, "l"), 3, whole, whole);
            assert!(plan.snapshots == gone.0 && plan.logs == gone.1, "{plan:?}, not {gone:?}");
        };
        check(&[0, 10, 20, 30, 40], &[], &[1, 11, 21, 31], (&["s0", "s10"], &["l1"]));
        check(&[0, 10, 20, 30, 40], &[30], &[1, 11, 21, 31], (&["s0"], &[]));
        check(&[0, 10, 20, 30], &[], &[1, 10, 11], (&["s0"], &["l1"]));
        check(&[0, 10, 20, 30], &[], &[11, 12], (&["s0"], &[]));
        check(&[0, 10, 20, 30], &[9], &[1, 5, 9, 11], (&["s0"], &["l1"]));
        check(&[0, 10, 20, 30], &[1, 5], &[1, 5, 11], (&["s0"], &[]));
        check(&[10, 20], &[], &[1, 5, 11], (&[], &["l1"]));
        check(&[10, 20], &[10, 20], &[1, 5], (&[], &[]));
        check(&[], &[], &[1, 5], (&[], &[]));
    }

    // rows: D-53
    #[test]
    fn purged_files_stay_removed_after_a_crash() {
        let disk = SimDisk::new();
        let folders = Folders::new(Path::new("/data"), Path::new("/data"));
        let put = |name: &str, bytes: &[u8]| {
            let file = disk.create(&folders.logs.join(name)).unwrap();
            disk.write_at(&file, 0, bytes).unwrap();
        };
        for name in ["snapshot.0", "snapshot.5", "snapshot.8", "snapshot.9"] {
            put(name, b"ZKSN......\0\0\0\x01/");
        }
        ["log.1", "log.4", "log.6"].into_iter().for_each(|name| put(name, b"as long as a header"));
        ["currentEpoch", "snapshot.bak"].into_iter().for_each(|name| put(name, b"."));
        assert!(matches!(
            purge(&disk, &folders, 2, read_whole(&disk)),
            Err(PurgeError::TooFew { keep: 2 })
        ));
        assert_eq!(purge(&disk, &folders, 3, read_whole(&disk)).unwrap().len(), 2);
        let left = [
            "currentEpoch",
            "log.4",
            "log.6",
            "snapshot.5",
            "snapshot.8",
            "snapshot.9",
            "snapshot.bak",
        ];
        assert_eq!(disk.image().crash(0).list(&folders.logs).unwrap(), left);
        remove_snapshots_after(&disk, &folders.snapshots, Zxid::from_wire(5).unwrap()).unwrap();
        assert!(!disk.list(&folders.logs).unwrap().contains(&"snapshot.8".to_owned()));
    }

    // Java leaves three torn snapshots on a full disk. If they counted, the one that a start can load would be removed.
    #[test]
    fn torn_compressed_snapshots_do_not_count_as_kept() {
        let disk = SimDisk::new();
        let folders = Folders::new(Path::new("/data"), Path::new("/data"));
        for (zxid, cut) in [(2, false), (3, false), (4, false), (6, true), (7, true), (8, true)] {
            let at = Zxid::from_wire(zxid).unwrap();
            let writer = SnapshotWriter::create(&disk, &folders.snapshots, at, Packing::Gzip);
            let mut writer = writer.unwrap();
            writer.body(b"\0\0\0\0\0\0\0\0\0\0\0\x01/").unwrap();
            let path = writer.finish(Trailers { digest: None, zxid: Some(zxid) }).unwrap().path;
            if cut {
                let file = disk.open(&path).unwrap();
                let len = disk.len(&file).unwrap();
                disk.set_len(&file, len - 3 * (zxid as u64 - 5)).unwrap();
            }
        }
        assert!(purge(&disk, &folders, 3, read_whole(&disk)).unwrap().is_empty());
        let looks_whole =
            |path: &Path, packing| snapshot::looks_whole(&disk, path, packing).unwrap();
        assert_eq!(purge(&disk, &folders, 3, looks_whole).unwrap().len(), 3);
    }

    // The last snapshot that a member has left may be among those that its purge was about to remove.
    #[test]
    fn purge_ends_if_a_kept_snapshot_is_removed_meanwhile() {
        let (disk, folders) =
            (SimDisk::new(), Folders::new(Path::new("/data"), Path::new("/data")));
        for name in ["snapshot.5", "snapshot.7", "snapshot.8", "snapshot.9", "log.1", "log.6"] {
            disk.create(&folders.logs.join(name)).unwrap();
        }
        let placed = folders.snapshots.join("snapshot.5");
        let mut seen = 0;
        let is_whole = |_: &Path, _| {
            seen += 1;
            if seen == 3 {
                remove_snapshots_for(&disk, &placed, Zxid::from_wire(5).unwrap()).unwrap();
            }
            true
        };
        assert!(purge(&disk, &folders, 3, is_whole).unwrap().is_empty());
        assert!(disk.open(&placed).is_ok());
    }

    // A start prefers one of two snapshots with one zxid, and that may be this server's own.
    #[test]
    fn placing_a_leaders_tree_removes_other_snapshots_of_its_zxid() {
        let (disk, dir) = (SimDisk::new(), Path::new("/data"));
        for name in ["snapshot.5", "snapshot.7", "snapshot.7.gz", "snapshot.7.snappy", "snapshot.8"]
        {
            disk.create(&dir.join(name)).unwrap();
        }
        let placed = dir.join("snapshot.7.gz");
        remove_snapshots_for(&disk, &placed, Zxid::from_wire(7).unwrap()).unwrap();
        let left = disk.image().crash(0).list(dir).unwrap();
        assert_eq!(left, ["snapshot.5", "snapshot.7.gz"]);
    }
}
