//! Files that a restored snapshot has replaced: they are renamed, so that no start reads them, and stay for the operator.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::names;
use super::quarantine::free_name;

/// Put before the name of a file that a restored snapshot replaces.
const PREFIX: &str = "restored-over";

/// Renames all snapshots but `placed`, and all logs; returns the new paths.
///
/// `placed` has its name already, durably, and a zxid beyond all that the logs hold. So a start after a crash in the middle of this
/// loads `placed` and replays nothing, whichever of the others are renamed.
///
/// The other snapshots are renamed one after another, the oldest first, and before any log. A leader may ask a server that crashed in the
/// middle of this to go back to a transaction before the restored ones. An older snapshot would be its base then, and the logs do not show
/// what is missing after it: a whole epoch whose logs are renamed already, or what only a newer snapshot had, as a leader had sent it, or an
/// operator had restored it.
///
/// # Errors
/// If a folder can't be listed or a file can't be renamed: the caller ends the log thread. The next start loads `placed` nevertheless, as said above.
pub fn rename_all_but<D: Disk>(disk: &D, placed: &Path, logs: &Path) -> io::Result<Vec<PathBuf>> {
    let snapshots = placed.parent().unwrap_or(Path::new(""));
    let mut renamed = Vec::new();
    let logs_and_copies = names::logs_and_copies(disk, logs)?;
    for (dir, files) in [(snapshots, names::snapshots(disk, snapshots)?), (logs, logs_and_copies)] {
        for file in files {
            let from = dir.join(&file.name);
            if from != placed {
                let to = free_name(disk, dir, PREFIX, &file.name)?;
                disk.rename(&from, &to)?;
                renamed.push(to);
                if file.name.starts_with("snapshot") {
                    disk.sync_dir(dir)?;
                }
            }
        }
        disk.sync_dir(dir)?;
    }
    Ok(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sim_disk::SimDisk;

    #[test]
    fn all_but_the_restored_snapshot_is_renamed_also_twice() {
        let (disk, dir) = (SimDisk::new(), Path::new("/data"));
        let make = |name: &str| disk.create(&dir.join(name)).map(drop).unwrap();
        for round in ["restored-over", "restored-over-1"] {
            for name in ["snapshot.5", "snapshot.7.gz", "log.1", "snapshot.9", "currentEpoch"] {
                if !disk.list(dir).unwrap().contains(&name.to_owned()) {
                    make(name);
                }
            }
            let renamed = rename_all_but(&disk, &dir.join("snapshot.9"), dir).unwrap();
            let names = ["snapshot.5", "snapshot.7.gz", "log.1"];
            assert_eq!(renamed, names.map(|name| dir.join(format!("{round}.{name}"))));
        }
        let mut left = disk.list(dir).unwrap();
        left.retain(|name| !name.starts_with(PREFIX));
        left.sort();
        assert_eq!(left, ["currentEpoch", "snapshot.9"]);
    }
}
