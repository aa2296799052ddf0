//! Reads a snapshot znode by znode, without a tree: in constant memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::Failed;
use crate::store::snapshot_read::{self, ReadError};
use crate::store::{Progress, RealDisk, SnapshotReader};
use crate::tree::Options;
use crate::tree::load::{Batch, LoadError, Parser, Seen};

/// What a first pass over a snapshot found. Nothing is printed before it: Java's tools load the whole file first.
#[derive(Debug, Default)]
pub struct Overview {
    pub znodes: u64,
    /// Id, timeout in milliseconds, number of ephemerals; in file order.
    pub sessions: Vec<(i64, i32, u64)>,
    /// The greatest zxid of a znode.
    pub zxid: i64,
    /// Each znode follows its parent or a descendant of a sibling, as Java writes them.
    pub is_depth_first: bool,
    /// What is wrong with the file after its znodes; Java's tools don't look there.
    pub damage: Option<String>,
}

/// Why a pass ended.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Taken(#[from] Failed),
}

/// What a snapshot consists of, in this order.
pub enum Part<'b> {
    Sessions(&'b [(i64, i32)]),
    Znode(Seen<'b>),
}

/// Gives all of a snapshot to `take`, in file order. Returns what is wrong with the file after its znodes.
///
/// # Errors
/// [`Failed`]: a file that can't be read or holds no whole body, and what `take` returns.
pub fn each(
    path: &Path,
    mut take: impl FnMut(Part<'_>) -> Result<(), Failed>,
) -> Result<Option<String>, Failed> {
    let from = snapshot_read::open(&RealDisk, path);
    let from = from.map_err(|source| Failed::File { path: path.to_owned(), source })?;
    let mut parser = Parser::new(Options { digest: false, ..Options::default() });
    let (mut batch, mut ended) = (Batch::default(), false);
    let read = SnapshotReader::new(from).of_file(path).read(|bytes| -> Result<Progress, Stopped> {
        batch.clear();
        let taken = parser.take(bytes, &mut batch)?;
        take(Part::Sessions(batch.sessions()))?;
        batch.znodes().try_for_each(|seen| take(Part::Znode(seen)))?;
        ended = taken.ended;
        Ok(Progress { consumed: taken.bytes, finished: taken.ended })
    });
    match read {
        Ok(_) => Ok(None),
        Err(ReadError::Body { source: Stopped::Taken(failed), .. }) => Err(failed),
        Err(error) if ended => Ok(Some(crate::model::chain(&error))),
        Err(error) => Err(content(path, crate::model::chain(&error))),
    }
}

/// Reads all of a snapshot and counts.
///
/// # Errors
/// As [`each`]; also a snapshot without a root.
pub fn overview(path: &Path) -> Result<Overview, Failed> {
    let mut found = Overview { is_depth_first: true, zxid: -1, ..Overview::default() };
    let mut sessions = BTreeMap::new();
    let mut last = String::new();
    found.damage = each(path, |part| {
        let seen = match part {
            Part::Znode(seen) => seen,
            Part::Sessions(some) => {
                for &(id, timeout_ms) in some {
                    sessions.insert(id, found.sessions.len());
                    found.sessions.push((id, timeout_ms, 0));
                }
                return Ok(());
            }
        };
        found.is_depth_first &= match seen.path.rfind('/').map(|at| &seen.path[..at]) {
            None => found.znodes == 0,
            Some(parent) => {
                let rest = last.strip_prefix(parent);
                0 < found.znodes
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        };
        found.znodes += 1;
        found.zxid = found.zxid.max(seen.stat.mzxid).max(seen.stat.pzxid);
        if let Some(&at) = sessions.get(&seen.stat.ephemeral_owner) {
            found.sessions[at].2 += 1;
        }
        last.clear();
        last.push_str(&seen.path);
        Ok(())
    })?;
    if found.znodes == 0 {
        return Err(content(path, "the snapshot has no root".to_owned()));
    }
    Ok(found)
}

/// Bytes of a file that are no snapshot.
pub fn content(path: &Path, why: String) -> Failed {
    Failed::Content { path: path.to_owned(), why }
}

/// Reports on standard error damage that Java's tools do not see.
pub fn warn(path: &Path, damage: Option<&String>, err: &mut dyn io::Write) -> io::Result<()> {
    match damage {
        None => Ok(()),
        Some(why) => {
            writeln!(err, "Warning: {}: {why}: a server would refuse this snapshot", path.display())
        }
    }
}
