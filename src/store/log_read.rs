//! Reads the end of the log for a learner that missed more transactions than the leader keeps in memory.

use super::disk::Disk;
use super::names::{self, Folders};
use super::scan;
use crate::model::Zxid;
use bytes::Bytes;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The most bytes of log that are read for one learner.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes that a snapshot holds for a znode besides its path and data.
const ZNODE_BYTES: u64 = 80;

/// The most bytes of log that are sent to a learner instead of the tree: `factor` (`snapshotSizeFactor`) times the size of
/// the tree.
///
/// * `factor`: `None`: the tree is sent in any case.
/// * `data_bytes`, `znodes`: of the tree as it is now. Java takes the size of its newest snapshot, which may be much older or
///   newer than the tree that it would send.
pub fn limit_bytes(factor: Option<f64>, data_bytes: u64, znodes: u64) -> u64 {
    let tree_bytes = data_bytes.saturating_add(znodes.saturating_mul(ZNODE_BYTES));
    factor.map_or(0, |factor| (tree_bytes as f64 * factor) as u64).min(MAX_BYTES)
}

/// The entries that [`read`] found.
#[derive(Debug, Default)]
pub struct Tail {
    /// The last entry at or before the zxid asked for.
    pub before: Option<Zxid>,
    /// The entries after it.
    pub entries: Vec<(Zxid, Bytes)>,
    /// Why the log can't be read.
    pub error: Option<String>,
}

/// Reads the log from the last entry at or before `from` through `through`.
///
/// Returns nothing if the log can't be read, has more than `limit_bytes` there, does not reach back to `from`, or lacks
/// entries: the learner gets the tree instead. After a leader's tree was installed, the log continues without the
/// transactions that this tree brought; so a snapshot whose zxid is between those of two entries shows that transactions between them are missing (ZOOKEEPER-2846).
pub fn read<D: Disk>(
    disk: &D,
    folders: &Folders,
    from: Zxid,
    through: Zxid,
    limit_bytes: u64,
) -> Tail {
    let mut read = Tail::default();
    let (mut bytes, mut is_whole, dir) = (0, true, &folders.logs);
    let Ok(snapshots) = names::snapshots(disk, &folders.snapshots) else { return read };
    // From the beginning of the file that would hold `from`, as the entry before `from` shows where the histories diverge.
    let files = names::logs(disk, dir).unwrap_or_default();
    let Some(file) = files.iter().rev().find(|file| file.zxid <= from) else { return read };
    let scanned = scan::scan(disk, dir, before(file.zxid), |raw, entry, _| {
        let Some(zxid) = Zxid::from_wire(raw) else {
            return Ok::<_, Infallible>(ControlFlow::Break(()));
        };
        let last = read.entries.last().map(|(last, _)| *last).or(read.before);
        let lies_between = |at: Zxid| last < Some(at) && at < zxid;
        if zxid <= from {
            read.before = Some(zxid);
        } else if zxid <= through {
            is_whole &= !snapshots.iter().any(|snapshot| lies_between(snapshot.zxid));
            bytes += entry.len() as u64;
            read.entries.push((zxid, Bytes::copy_from_slice(entry)));
        }
        let is_over = through <= zxid || limit_bytes < bytes;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    match scanned {
        Ok(scanned) if is_whole && scanned.gap.is_none() && bytes <= limit_bytes => read,
        Ok(_) => Tail::default(),
        Err(error) => Tail { error: Some(error.to_string()), ..Tail::default() },
    }
}

/// The zxid before `zxid`: `scan` gives what comes after its argument.
fn before(zxid: Zxid) -> Option<Zxid> {
    Zxid::from_wire(zxid.to_wire() - 1)
}
