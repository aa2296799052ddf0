//! The check before a truncation: whether recovery works with what the truncation leaves.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

use super::disk::Disk;
use super::{decide, scan, snapshot};
use crate::model::{Epoch, Zxid};

/// Whether recovery would load the whole history through `to` after everything greater than `to` is removed from the disk.
///
/// It would not if the newest remaining snapshot were too old for the log, if the log had a gap or damage before `to`, or if
/// `to` were not in the log. The leader sends only what follows `to`, so a transaction missing before it would never come.
/// The zxid with which an epoch begins (counter 0) has no record: it counts as logged if the next record is the first of that
/// epoch.
pub fn reaches<D: Disk>(disk: &D, snapshots: &Path, logs: &Path, to: Zxid) -> bool {
    let base = snapshot::newest_whole(disk, snapshots, Some(to));
    let (mut highest, mut next, mut is_whole) = (base, None, true);
    let scanned = scan::scan(disk, logs, base, |raw, _, _| {
        let zxid = Zxid::from_wire(raw);
        if Some(to) < zxid {
            next = zxid;
            return Ok::<_, Infallible>(ControlFlow::Break(()));
        }
        is_whole &= decide::follows(highest, raw);
        highest = highest.max(zxid);
        Ok(ControlFlow::Continue(()))
    });
    // Without a snapshot, recovery needs a log that begins with the first transaction.
    let has_base = base.is_some() || highest.is_some_and(|highest| highest.epoch() == Epoch(0));
    let is_begin = to.counter() == 0 && next.is_some() && next == to.next();
    scanned.is_ok() && is_whole && has_base && (highest == Some(to) || is_begin)
}
