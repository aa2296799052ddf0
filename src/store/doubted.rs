//! The mark of a tree that did not fit the digests in the log. A snapshot of such a tree hides the difference from later starts, so the mark stays
//! until a leader's tree, or a restored one, is on disk, or the tree has a digest of its leader's.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};

/// A file beside the snapshots. Java does not know it.
const MARK: &str = "doubted";

/// The path of the mark.
///
/// * `snapshots`: the folder of the snapshots.
pub fn path(snapshots: &Path) -> PathBuf {
    snapshots.join(MARK)
}

/// Whether the tree of an earlier start did not fit, and nothing has ended the doubt since.
///
/// # Errors
/// If the folder can't be listed.
pub fn is_noted<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<bool> {
    Ok(disk.list(snapshots)?.iter().any(|name| name == MARK))
}

/// Writes the mark, for good.
///
/// # Errors
/// If the folder can't be listed, or the mark can't be written.
pub fn note<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<()> {
    if !is_noted(disk, snapshots)? {
        disk.create(&path(snapshots))?;
        disk.sync_dir(snapshots)?;
    }
    Ok(())
}

/// Removes the mark, for good. A tree that replaces the doubted one has to be on disk.
///
/// # Errors
/// If it can't be removed: the next start doubts a tree without a reason.
pub fn forget<D: Disk>(disk: &D, snapshots: &Path) -> io::Result<()> {
    if is_noted(disk, snapshots)? {
        disk::remove_for_good(disk, &path(snapshots))?;
    }
    Ok(())
}
