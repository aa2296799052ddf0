//! Names of files and folders.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use crate::model::Zxid;

/// Where a server keeps its files: `version-2` under dataDir and under dataLogDir, which may be the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Folders {
    /// Snapshots and epochs.
    pub snapshots: PathBuf,
    /// Transaction logs. The file `initialize` is looked for beside this folder (D-02).
    pub logs: PathBuf,
}

impl Folders {
    pub fn new(data_dir: &Path, data_log_dir: &Path) -> Self {
        Self { snapshots: data_dir.join("version-2"), logs: data_log_dir.join("version-2") }
    }
}

/// A file whose name carries a zxid.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Named {
    /// First zxid of a log, or the last one applied when a snapshot was begun.
    pub zxid: Zxid,
    pub name: String,
}

/// How a snapshot is compressed; the file's name alone says it (D-29).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Packing {
    #[default]
    Plain,
    Gzip,
    Snappy,
}

impl Packing {
    /// By the end of a file's name, in any case.
    pub fn of(name: &str) -> Self {
        let end = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
        match end {
            end if end.eq_ignore_ascii_case("gz") => Self::Gzip,
            end if end.eq_ignore_ascii_case("snappy") => Self::Snappy,
            _ => Self::Plain,
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gzip => ".gz",
            Self::Snappy => ".snappy",
        }
    }
}

pub fn log_name(first: Zxid) -> String {
    format!("log.{:x}", first.to_wire())
}

pub fn snapshot_name(zxid: Zxid, packing: Packing) -> String {
    format!("snapshot.{:x}{}", zxid.to_wire(), packing.ending())
}

/// Name of a snapshot while it is written. Java would take `snapshot.5.tmp` for a snapshot, so the name has a dot in front.
///
/// * `number`: from 0 on, since there may be others of the same zxid.
pub fn snapshot_temporary(zxid: Zxid, number: u32) -> String {
    match number {
        0 => format!(".snapshot.{:x}.tmp", zxid.to_wire()),
        number => format!(".snapshot.{:x}.{number}.tmp", zxid.to_wire()),
    }
}

/// True for the name of a snapshot that a crash left unfinished.
pub fn is_snapshot_temporary(name: &str) -> bool {
    name.starts_with(".snapshot.") && name.ends_with(".tmp")
}

/// Log files of a folder, oldest first: those with a name that a server gives, and so no two of one zxid.
///
/// # Errors
/// Those of [`Disk::list`].
pub fn logs<D: Disk>(disk: &D, dir: &Path) -> io::Result<Vec<Named>> {
    let mut found = logs_and_copies(disk, dir)?;
    found.retain(is_log);
    Ok(found)
}

/// The other files that Java would take for logs, such as `log.5.fixed`, oldest first.
///
/// # Errors
/// Those of [`Disk::list`].
pub fn log_copies<D: Disk>(disk: &D, dir: &Path) -> io::Result<Vec<Named>> {
    let mut found = logs_and_copies(disk, dir)?;
    found.retain(|file| !is_log(file));
    Ok(found)
}

/// All files that Java would take for logs, oldest first.
///
/// # Errors
/// Those of [`Disk::list`].
pub fn logs_and_copies<D: Disk>(disk: &D, dir: &Path) -> io::Result<Vec<Named>> {
    named(disk, dir, "log")
}

fn is_log(file: &Named) -> bool {
    file.name == log_name(file.zxid)
}

/// Snapshot files of a folder, whole or not, oldest first. Java's `snapshot.5.tmp` is left out: it was never finished, so no
/// server has acknowledged it.
///
/// # Errors
/// Those of [`Disk::list`].
pub fn snapshots<D: Disk>(disk: &D, dir: &Path) -> io::Result<Vec<Named>> {
    let mut found = named(disk, dir, "snapshot")?;
    found.retain(|file| !file.name.ends_with(".tmp"));
    Ok(found)
}

fn named<D: Disk>(disk: &D, dir: &Path, prefix: &str) -> io::Result<Vec<Named>> {
    let names = disk.list(dir)?.into_iter();
    let mut found: Vec<Named> =
        names.filter_map(|name| Some(Named { zxid: zxid_of(&name, prefix)?, name })).collect();
    found.sort();
    Ok(found)
}

/// The zxid in a name `prefix.<hex>`, whatever follows after a second dot (D-14). `None`: not such a name.
///
/// Source: `Util.getZxidFromName`, ZooKeeper 3.9.
fn zxid_of(name: &str, prefix: &str) -> Option<Zxid> {
    let mut parts = name.split('.');
    if parts.next() != Some(prefix) {
        return None;
    }
    Zxid::from_wire(i64::from_str_radix(parts.next()?, 16).ok()?)
}

/// The files that may hold transactions after `after`: all named later, and of the others the last one with records and those after it.
///
/// A file without records is left if its first write failed. If an older file was lost then, what came after is in files with earlier names.
///
/// * `logs`: oldest first. `after`: `None` for all of them. `has_records`: asked newest first, for as few as are needed.
///
/// # Errors
/// The error of `has_records`.
///
/// Source: `FileTxnIterator.init`, ZooKeeper 3.9. It takes the earlier file even when one is named exactly the zxid
/// wanted next, since Java's logs may repeat a zxid (D-48). It stops at a file without records.
pub fn logs_after<E>(
    logs: &[Named],
    after: Option<Zxid>,
    mut has_records: impl FnMut(&Named) -> Result<bool, E>,
) -> Result<&[Named], E> {
    let mut from = logs.partition_point(|log| Some(log.zxid) <= after);
    while let Some(before) = from.checked_sub(1) {
        from = before;
        if has_records(&logs[before])? {
            break;
        }
    }
    Ok(&logs[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(zxids: &[i64]) -> Vec<Named> {
        let zxids = zxids.iter().map(|&raw| Zxid::from_wire(raw).unwrap());
        zxids.map(|zxid| Named { zxid, name: log_name(zxid) }).collect()
    }

    // rows: D-03 D-14
    #[test]
    fn file_names_are_parsed_as_java_does() {
        let zxid = |raw| Zxid::from_wire(raw);
        assert_eq!(zxid_of("log.1f", "log"), zxid(0x1f));
        assert_eq!(zxid_of("snapshot.a00000001.gz", "snapshot"), zxid(0xa_0000_0001));
        assert_eq!(zxid_of("snapshot.5.snappy", "snapshot"), zxid(5));
        for name in [
            "log",
            "log.",
            "log.xyz",
            "logs.1",
            "log.ffffffffffffffff",
            "log.-1",
            ".snapshot.5.tmp",
        ] {
            assert_eq!(zxid_of(name, "log"), None, "{name}");
            assert_eq!(zxid_of(name, "snapshot"), None, "{name}");
        }
        assert!(is_snapshot_temporary(&snapshot_temporary(Zxid::ZERO, 0)));
        for packing in [Packing::Plain, Packing::Gzip, Packing::Snappy] {
            let name = snapshot_name(Zxid::ZERO, packing);
            assert_eq!((Packing::of(&name), zxid_of(&name, "snapshot")), (packing, zxid(0)));
        }
        assert_eq!(Packing::of("snapshot.5.GZ"), Packing::Gzip);
        assert_eq!(Packing::of("snapshot.5.bz2"), Packing::Plain);
    }

    // rows: D-48
    #[test]
    fn reading_starts_in_the_file_before_the_wanted_zxid() {
        let logs = named(&[1, 10, 20]);
        let after = |raw, without: &[i64]| {
            let has_records = |file: &Named| Ok::<_, ()>(!without.contains(&file.zxid.to_wire()));
            logs_after(&logs, Zxid::from_wire(raw), has_records).map(<[_]>::len)
        };
        let all = [-1, 0, 4, 9, 10, 20].map(|raw| after(raw, &[]).unwrap());
        assert_eq!(all, [3, 3, 3, 3, 2, 1]);
        let lens = [vec![1], vec![10], vec![20], vec![10, 20]];
        assert_eq!(lens.map(|without| after(20, &without).unwrap()), [1, 1, 2, 3]);
        assert!(logs_after(&[], Some(Zxid::ZERO), |_| Ok::<_, ()>(true)).unwrap().is_empty());
    }
}
