//! A disk whose bytes come back wrong, and a server that starts from it: as `server::rescue`.

use super::plan::Micros;
use super::restore::{Restorer, restore_as};
use super::server::{Disk, folders};
use super::world::World;
use crate::store::decide::Start;
use crate::store::quarantine::{self, Rescue, Trouble};
use crate::store::record::{HEADER_LEN, Records, Step};
use crate::store::scan::FileSource;
use crate::store::sim_disk::SimDisk;
use crate::store::{Disk as _, Folders, RecoverOptions, Recovered, names};
use std::path::PathBuf;

/// What a start made of a disk.
pub struct Found {
    pub recovered: Recovered,
    /// It could not be used. The server knows nothing, and says so.
    pub was_put_aside: bool,
}

/// Fills `restorer` from a disk; what can't be used is put aside, as a member does.
///
/// * `is_damaged`: otherwise there is no reason for anything to be put aside.
///
/// # Errors
/// In words, why it can't start.
pub fn restore(
    disk: &Disk,
    folders: &Folders,
    is_damaged: bool,
    restorer: &mut Restorer,
) -> Result<Found, String> {
    let is_marked = quarantine::is_marked(disk, folders).map_err(|error| error.to_string())?;
    if !is_marked {
        let trouble = match restore_as(disk, folders, RecoverOptions::default(), restorer) {
            Ok(recovered) => return Ok(Found { recovered, was_put_aside: false }),
            Err((_, trouble)) if is_damaged && may_put_aside(disk, folders, trouble) => trouble,
            Err((why, _)) => return Err(why),
        };
        debug_assert_ne!(trouble, Trouble::Access);
    }
    quarantine::put_aside(disk, folders).map_err(|error| error.to_string())?;
    let nothing = RecoverOptions { autocreate: false, ..RecoverOptions::default() };
    let recovered = restore_as(disk, folders, nothing, restorer).map_err(|(why, _)| why)?;
    let recovered = Recovered { start: Start::Unsure, last: None, ..recovered };
    Ok(Found { recovered, was_put_aside: true })
}

fn may_put_aside(disk: &Disk, folders: &Folders, trouble: Trouble) -> bool {
    quarantine::rescue(trouble, true) == Rescue::PutAside
        && quarantine::knows_promises(disk, &folders.snapshots)
}

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
