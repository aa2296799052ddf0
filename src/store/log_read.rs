//! The end of the log for a learner that missed more than is kept in memory.

use super::disk::Disk;
use super::{names, scan};
use crate::model::Zxid;
use bytes::Bytes;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

/// What was found.
#[derive(Debug, Default)]
pub struct Tail {
    /// The last entry at or before the zxid asked for.
    pub before: Option<Zxid>,
    /// Those behind it.
    pub entries: Vec<(Zxid, Bytes)>,
}

/// Reads from the last entry at or before `from` through `through`.
///
/// What can't be read, is more than `limit_bytes`, or does not reach back to `from` gives nothing: the learner gets the
/// tree instead.
pub fn read<D: Disk>(
    disk: &D,
    dir: &Path,
    (from, through): (Zxid, Zxid),
    limit_bytes: u64,
) -> Tail {
    let mut read = Tail::default();
    let mut bytes = 0;
    // From the beginning of the file that would hold `from`: the entry before it says where the histories part.
    let files = names::logs(disk, dir).unwrap_or_default();
    let Some(file) = files.iter().rev().find(|file| file.zxid <= from) else { return read };
    let scanned = scan::scan(disk, dir, before(file.zxid), |raw, entry, _| {
        let Some(zxid) = Zxid::from_wire(raw) else {
            return Ok::<_, Infallible>(ControlFlow::Break(()));
        };
        if zxid <= from {
            read.before = Some(zxid);
        } else if zxid <= through {
            bytes += entry.len() as u64;
            read.entries.push((zxid, Bytes::copy_from_slice(entry)));
        }
        let is_over = through <= zxid || limit_bytes < bytes;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    match scanned {
        Ok(scanned) if scanned.gap.is_none() && bytes <= limit_bytes => read,
        Ok(_) => Tail::default(),
        Err(error) => {
            tracing::warn!(%error, "read the log for a learner; it gets the tree instead");
            Tail::default()
        }
    }
}

/// One less: `scan` gives what comes after.
fn before(zxid: Zxid) -> Option<Zxid> {
    Zxid::from_wire(zxid.to_wire() - 1)
}
