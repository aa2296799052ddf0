//! Copies data directories, and restores them in this process without a server.

use oxkeeper::model::Zxid;
use oxkeeper::server::Restorer;
use oxkeeper::store::recover::recover;
use oxkeeper::store::{Folders, RealDisk, RecoverOptions};
use oxkeeper::tree::Options;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The state restored from a data directory.
#[derive(Debug, Eq, PartialEq)]
pub struct Restored {
    pub zxid: i64,
    pub digest: i64,
    pub nodes: usize,
    pub sessions: usize,
    /// Transactions whose logged digest differs from the tree's digest after them.
    pub mismatches: u64,
    pub txns: u64,
    /// The digest stored in the snapshot, and its zxid.
    pub sealed_digest: Option<i64>,
    pub sealed_zxid: Option<i64>,
}

/// Copies the files of `data/version-2` in a server's home.
///
/// # Errors
/// Those of the file system.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_some(from, to, |_| true)
}

fn copy_some(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let (from, to) = (from.join("data/version-2"), to.join("data/version-2"));
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if wanted(&entry.file_name().to_string_lossy()) {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Restores a copy of `home`, because recovery may change the files.
///
/// # Errors
/// A refusal to start, or those of the file system.
pub fn restore(home: &Path) -> io::Result<Restored> {
    let scratch = tempfile::tempdir()?;
    copy(home, scratch.path())?;
    restore_here(scratch.path())
}

/// The state in the snapshot of `zxid` alone, without the log; `None`: no such file is complete yet.
///
/// # Errors
/// As [`restore`].
pub fn restore_snapshot(home: &Path, zxid: i64) -> io::Result<Option<Restored>> {
    let scratch = tempfile::tempdir()?;
    let name = format!("snapshot.{zxid:x}");
    let named = |file: &str| {
        file == name || file.strip_prefix(&name).is_some_and(|end| end.starts_with('.'))
    };
    copy_some(home, scratch.path(), named)?;
    if fs::read_dir(scratch.path().join("data/version-2"))?.next().is_none() {
        return Ok(None);
    }
    let found = restore_here(scratch.path())?;
    // Java's file has its name before it is complete, and the digest is near its end.
    Ok(found.sealed_digest.is_some().then_some(found))
}

fn restore_here(home: &Path) -> io::Result<Restored> {
    let data = home.join("data");
    let mut restorer =
        Restorer::new(Options { seed: 1, digest: true, extended_types: true, emulate_353: false });
    let folders = Folders::new(&data, &data);
    let found =
        recover(&RealDisk, &folders, RecoverOptions::default(), &mut restorer, || Duration::ZERO);
    let found =
        found.map_err(|error| io::Error::other(format!("restore {}: {error}", home.display())))?;
    let restored = restorer.finish();
    let (tree, mismatches) = (restored.tree, restored.comparison.mismatches);
    Ok(Restored {
        zxid: found.last.map_or(-1, Zxid::to_wire),
        digest: tree.digest() as i64,
        nodes: tree.node_count(),
        sessions: tree.sessions().len(),
        mismatches,
        txns: found.txns,
        sealed_digest: found.trailers.digest.map(|digest| digest.digest),
        sealed_zxid: found.trailers.digest.map(|digest| digest.zxid),
    })
}
