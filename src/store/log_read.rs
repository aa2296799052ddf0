//! The end of the log for a learner that missed more than is kept in memory.

use super::disk::Disk;
use super::names::{self, Folders};
use super::scan;
use crate::model::Zxid;
use bytes::Bytes;
use std::convert::Infallible;
use std::ops::ControlFlow;

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
/// What can't be read, is more than `limit_bytes`, does not reach back to `from`, or is not all there was gives nothing: the
/// learner gets the tree instead. A log goes on behind a tree that came from a leader without what that tree brought; where
/// its snapshot lies between two entries, something is missing between them (ZOOKEEPER-2846).
pub fn read<D: Disk>(
    disk: &D,
    folders: &Folders,
    (from, through): (Zxid, Zxid),
    limit_bytes: u64,
) -> Tail {
    let mut read = Tail::default();
    let (mut bytes, mut is_whole, dir) = (0, true, &folders.logs);
    let Ok(snapshots) = names::snapshots(disk, &folders.snapshots) else { return read };
    // From the beginning of the file that would hold `from`: the entry before it says where the histories part.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;
    use crate::store::sim_disk::SimDisk;
    use crate::store::{Log, LogOptions, Packing, SnapshotWriter, Trailers};
    use std::path::Path;

    fn zxid(epoch: u32, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), counter)
    }

    #[test]
    fn a_tree_that_came_between_is_not_read_over() {
        let (disk, folders) = (SimDisk::new(), Folders::new(Path::new("/d"), Path::new("/l")));
        let options = LogOptions { prealloc: 0, ..LogOptions::default() };
        let mut log = Log::new(disk.clone(), &folders.logs, options, None);
        let mut append = |zxid: Zxid| {
            let mut entry = vec![0; 36];
            entry[12..20].copy_from_slice(&zxid.to_wire().to_be_bytes());
            log.append(zxid, &entry);
            log.roll().unwrap();
        };
        (1..=3).for_each(|counter| append(zxid(1, counter)));
        (1..=2).for_each(|counter| append(zxid(2, counter)));
        let told = |from| {
            let tail = read(&disk, &folders, (from, zxid(2, 2)), 1 << 20);
            (tail.before, tail.entries.len())
        };
        let place = |zxid| {
            let dir = &folders.snapshots;
            let writer = SnapshotWriter::create(&disk, dir, zxid, Packing::Plain).unwrap();
            writer.finish(Trailers::default()).unwrap();
        };
        assert_eq!(told(zxid(1, 9)), (Some(zxid(1, 3)), 2));
        // Those of our own are taken behind what is logged.
        place(zxid(1, 3));
        place(zxid(2, 1));
        assert_eq!(told(zxid(1, 9)), (Some(zxid(1, 3)), 2));
        // With this one came 1:4 to 1:7.
        place(zxid(1, 7));
        assert_eq!(told(zxid(1, 2)), (None, 0));
        assert_eq!(told(zxid(1, 9)), (None, 0));
        assert_eq!(told(zxid(2, 1)), (Some(zxid(2, 1)), 1), "behind it nothing is missing");
    }
}
