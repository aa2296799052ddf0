//! The note that the tree, which had fitted its own log, differed from its leader's. The leader's digests are in the log, so that later starts
//! see a tree that does not fit its log; without the note that would be the sign of a lost file (`doubted`).

use super::disk::{self, Disk};
use crate::model::Zxid;
use std::io;
use std::path::{Path, PathBuf};

/// A file beside the snapshots with the first zxid, in hexadecimal. Java does not know it.
const NOTE: &str = "differing";

/// The path of the note.
///
/// * `snapshots`: the folder of the snapshots.
pub fn path(snapshots: &Path) -> PathBuf {
    snapshots.join(NOTE)
}

/// The transaction since which the tree differs, if an earlier run has noted one. A note that can't be understood counts as none.
///
/// # Errors
/// If the folder can't be listed, or the note can't be read.
pub fn since<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<Option<Zxid>> {
    if !is_there(disk, snapshots)? {
        return Ok(None);
    }
    let bytes = disk::read_file(disk, &path(snapshots))?;
    let zxid = std::str::from_utf8(&bytes).ok().map(str::trim);
    let zxid = zxid.and_then(|text| i64::from_str_radix(text, 16).ok());
    Ok(zxid.and_then(Zxid::from_wire))
}

/// Writes the note, for good. An earlier one stays.
///
/// # Errors
/// If it can't be written.
pub fn note<D: Disk>(disk: &D, snapshots: &Path, first: Zxid) -> io::Result<()> {
    if since(disk, snapshots)?.is_some() {
        return Ok(());
    }
    let text = format!("{:x}\n", first.to_wire());
    disk::replace_file(disk, &path(snapshots), text.as_bytes())
}

/// Removes the note, for good: another tree is on disk in place of this one, or the log no longer shows a difference.
///
/// # Errors
/// If it can't be removed.
pub fn forget<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<()> {
    if is_there(disk, snapshots)? {
        disk::remove_for_good(disk, &path(snapshots))?;
    }
    Ok(())
}

/// Removes a note of a transaction after `to`, where the log was truncated.
///
/// # Errors
/// If it can't be read or removed.
pub fn forget_after<D: Disk>(disk: &D, snapshots: &Path, to: Zxid) -> io::Result<()> {
    if since(disk, snapshots)?.is_some_and(|since| to < since) {
        forget(disk, snapshots)?;
    }
    Ok(())
}

fn is_there<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<bool> {
    Ok(disk.list(snapshots)?.iter().any(|name| name == NOTE))
}
