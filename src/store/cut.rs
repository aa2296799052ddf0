//! Taking back the end of what a server has: before that, whether what is left can be started from.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

use super::disk::Disk;
use super::names::{self, Packing};
use super::{decide, scan, snapshot};
use crate::model::{Epoch, Zxid};

/// True when a start, with everything greater than `to` gone from the disk, would end at `to` and miss nothing on the way.
///
/// It would not if the newest snapshot left were too old for the log, if the log had a hole or were damaged before
/// `to`, or did not hold `to`: another server's history passes there, and what ours lacks of it would never be sent.
/// The begin of an epoch, which no record bears, is right before the first record of that epoch.
pub fn reaches<D: Disk>(disk: &D, snapshots: &Path, logs: &Path, to: Zxid) -> bool {
    let base = newest_until(disk, snapshots, to);
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
    // Without a snapshot a start takes a log from the first transaction on.
    let has_base = base.is_some() || highest.is_some_and(|highest| highest.epoch() == Epoch(0));
    let is_begin = to.counter() == 0 && next.is_some() && next == to.next();
    scanned.is_ok() && is_whole && has_base && (highest == Some(to) || is_begin)
}

/// Zxid of the newest snapshot not later than `to` that looks whole.
fn newest_until<D: Disk>(disk: &D, dir: &Path, to: Zxid) -> Option<Zxid> {
    let files = names::snapshots(disk, dir).unwrap_or_default();
    let is_whole = |name: &str| {
        snapshot::looks_whole(disk, &dir.join(name), Packing::of(name)).unwrap_or(false)
    };
    let mut until = files.iter().rev().filter(|file| file.zxid <= to);
    until.find(|file| is_whole(&file.name)).map(|file| file.zxid)
}
