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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record;
    use crate::store::sim_disk::SimDisk;

    fn zxid(epoch: u32, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), counter)
    }

    fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
        let file = disk.create(&Path::new("/d").join(name)).unwrap();
        disk.write_at(&file, 0, bytes).unwrap();
    }

    /// Snapshots at these, and one log file with these.
    fn disk(snapshots: &[Zxid], log: &[Zxid]) -> SimDisk {
        let disk = SimDisk::new();
        for at in snapshots {
            put(&disk, &names::snapshot_name(*at, Packing::Plain), b"ZKSN......\0\0\0\x01/");
        }
        let mut bytes = record::header().to_vec();
        for at in log {
            let mut entry = [0; 36];
            entry[12..20].copy_from_slice(&at.to_wire().to_be_bytes());
            record::put_record(&entry, &mut bytes);
        }
        if let Some(first) = log.first() {
            put(&disk, &names::log_name(*first), &bytes);
        }
        disk
    }

    fn can(disk: &SimDisk, to: Zxid) -> bool {
        reaches(disk, Path::new("/d"), Path::new("/d"), to)
    }

    // rows: D-52 Q-66
    #[test]
    fn what_is_left_must_lead_there() {
        let log: Vec<Zxid> = (3..=9).map(|n| zxid(1, n)).collect();
        let both = disk(&[zxid(1, 2), zxid(1, 7)], &log);
        // Below the newer snapshot too, and at a snapshot itself.
        for n in 2..=9 {
            assert!(can(&both, zxid(1, n)), "{n}");
        }
        // Before the older one there is nothing; behind the end it is another's history.
        assert!(!can(&both, zxid(1, 1)) && !can(&both, zxid(1, 10)) && !can(&both, zxid(1, 0)));
        let newer = disk(&[zxid(1, 7)], &log);
        assert!(!can(&newer, zxid(1, 6)) && can(&newer, zxid(1, 8)));
        // Records are missing behind the snapshot, or on the way.
        assert!(!can(&disk(&[zxid(1, 1)], &log), zxid(1, 5)));
        let holed = [zxid(1, 3), zxid(1, 4), zxid(1, 6)];
        let holed = disk(&[zxid(1, 2)], &holed);
        assert!(can(&holed, zxid(1, 4)) && !can(&holed, zxid(1, 5)) && !can(&holed, zxid(1, 6)));
    }

    // rows: D-52
    #[test]
    fn the_begin_of_an_epoch_is_before_its_first_record() {
        let log = [zxid(1, 8), zxid(3, 1), zxid(3, 2)];
        let disk = disk(&[zxid(1, 7)], &log);
        assert!(can(&disk, zxid(3, 0)) && can(&disk, zxid(3, 1)) && can(&disk, zxid(1, 8)));
        assert!(!can(&disk, zxid(2, 0)) && !can(&disk, zxid(4, 0)) && !can(&disk, zxid(2, 1)));
    }

    #[test]
    fn a_log_from_the_first_transaction_on_needs_no_snapshot() {
        let log = [zxid(0, 1), zxid(0, 2), zxid(0, 3)];
        assert!(can(&disk(&[], &log), zxid(0, 2)) && !can(&disk(&[], &log[1..]), zxid(0, 2)));
        assert!(!can(&disk(&[], &[]), zxid(0, 2)));
    }

    #[test]
    fn a_log_that_is_damaged_before_leads_nowhere() {
        let log = [zxid(0, 1), zxid(0, 2), zxid(0, 3)];
        let disk = disk(&[zxid(0, 0)], &log);
        let file = disk.open(Path::new("/d/log.1")).unwrap();
        let second = record::HEADER_LEN + record::record_len(36);
        disk.write_at(&file, second + 20, b"\x55").unwrap();
        assert!(!can(&disk, zxid(0, 2)) && !can(&disk, zxid(0, 3)));
    }
}
