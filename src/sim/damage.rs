//! A disk whose bytes come back wrong.

use super::plan::Micros;
use super::server::folders;
use super::world::World;
use crate::store::record::{HEADER_LEN, Records, Step};
use crate::store::scan::FileSource;
use crate::store::sim_disk::SimDisk;
use crate::store::{Disk as _, names};
use std::path::PathBuf;

impl World {
    /// A byte comes back wrong from now on.
    ///
    /// * `place`: picks it. `kills`: the process ends.
    pub fn damage(&mut self, server: usize, place: u64, kills: bool, down_us: Micros) {
        let Some((path, at)) = some_byte(&self.servers[server].disk, place) else { return };
        if self.servers[server].disk.flip(&path, at) {
            self.note(server, || format!("! byte {at} of {} is wrong", path.display()));
            self.trace.count("sectors damaged");
            self.servers[server].is_damaged = true;
        }
        if kills && self.servers[server].process.is_some() {
            self.end(server, super::faults::Armed::Process { down_us });
        }
    }
}

/// A byte of a snapshot, or of a record of the log with others behind it in its file: that of the last one can't be told
/// from what a power cut leaves.
fn some_byte(disk: &SimDisk, place: u64) -> Option<(PathBuf, u64)> {
    let folders = folders();
    let logs = names::logs(disk, &folders.logs).ok()?;
    let snapshots = names::snapshots(disk, &folders.snapshots).ok()?;
    let mut places = Vec::new();
    for file in logs {
        let path = folders.logs.join(file.name);
        let end = last_record(disk, &path).unwrap_or(0);
        places.push((path, HEADER_LEN, end));
    }
    for file in snapshots {
        let path = folders.snapshots.join(file.name);
        let len = disk.len(&disk.open(&path).ok()?).ok()?;
        places.push((path, 0, len));
    }
    places.retain(|(_, from, end)| from < end);
    let (path, from, end) = places.get(place as usize % places.len().max(1))?;
    Some((path.clone(), from + (place >> 16) % (end - from)))
}

/// Where the last record of a file begins.
fn last_record(disk: &SimDisk, path: &std::path::Path) -> Option<u64> {
    let mut records = Records::new(FileSource::open(disk, path).ok()?);
    let mut last = None;
    while let Step::Record { at, .. } = records.step().ok()? {
        last = Some(at);
    }
    last
}
