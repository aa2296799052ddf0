//! `PurgeTxnLog`: removes snapshots and logs that recovery no longer needs.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::json;

use super::dates::Dates;
use super::{Failed, Outcome, Streams, UNEXPECTED_ERROR};
use crate::store::names::{self, Folders};
use crate::store::purge::{self, KEEP_MIN};
use crate::store::{Disk as _, RealDisk};

const USAGE: &str = "\
Usage:
PurgeTxnLog dataLogDir [snapDir] -n count
\tdataLogDir -- path to the txn log directory
\tsnapDir -- path to the snapshot directory
\tcount -- the number of old snaps/logs you want to keep, value should be greater than or equal to 3
";

/// Runs the tool. Snapshots go before logs, and oldest first, so that the files that are left can be recovered from wherever the tool stops.
///
/// # Errors
/// [`Failed`]: folders that can't be read, snapshots in the folder of logs.
///
/// Source: `PurgeTxnLog`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let (dirs, option, count) = match arguments.as_slice() {
        [logs, option, count] => ([logs, logs], option, count),
        [logs, snapshots, option, count] => ([logs, snapshots], option, count),
        _ => return usage(None, streams),
    };
    if let Some(missing) = dirs.iter().find(|dir| !Path::new(dir).exists()) {
        return usage(
            Some(format!("Path '{}' does not exist. ", super::absolute(missing))),
            streams,
        );
    }
    let keep = match count.parse::<i32>() {
        Err(_) => return usage(Some(format!("'{count}' can not be parsed to integer.")), streams),
        Ok(keep) => usize::try_from(keep).unwrap_or(0),
    };
    if keep < KEEP_MIN {
        let refusal = format!("count should be greater than or equal to {KEEP_MIN}");
        return usage(Some(refusal), streams);
    }
    if option != "-n" {
        return usage(None, streams);
    }
    remove(&Folders::new(Path::new(dirs[1]), Path::new(dirs[0])), keep, is_json, streams)
}

fn usage(refusal: Option<String>, streams: &mut Streams<'_>) -> Outcome {
    if let Some(refusal) = refusal {
        writeln!(streams.err, "{refusal}")?;
    }
    streams.out.write_all(USAGE.as_bytes())?;
    Ok(UNEXPECTED_ERROR)
}

fn remove(folders: &Folders, keep: usize, is_json: bool, streams: &mut Streams<'_>) -> Outcome {
    let misplaced = folders.snapshots != folders.logs
        && (names::snapshots(&RealDisk, &folders.logs).is_ok_and(|found| !found.is_empty())
            || names::logs(&RealDisk, &folders.snapshots).is_ok_and(|found| !found.is_empty()));
    if misplaced {
        return Err(Failed::Argument(format!(
            "{} and {}: logs and snapshots lie in each other's folder; check dataDir and dataLogDir",
            folders.logs.display(),
            folders.snapshots.display()
        )));
    }
    // Java makes the folder here, and says nothing.
    let snapshots = match names::snapshots(&RealDisk, &folders.snapshots) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => {
            found.map_err(|source| Failed::File { path: folders.snapshots.clone(), source })?
        }
    };
    if snapshots.is_empty() {
        let folder = folders.snapshots.display();
        writeln!(
            streams.err,
            "nothing to remove: no snapshots in {folder}; name dataDir of zoo.cfg"
        )?;
        return Ok(0);
    }
    // As Java does.
    fs::create_dir_all(&folders.logs)
        .map_err(|source| Failed::File { path: folders.logs.clone(), source })?;
    let plan = purge::obsolete(&RealDisk, folders, keep, purge::read_whole(&RealDisk));
    let plan = plan.map_err(|error| Failed::Argument(crate::model::chain(&error)))?;
    if plan.snapshots.is_empty() && plan.logs.is_empty() {
        let (count, folder) = (snapshots.len(), folders.snapshots.display());
        writeln!(streams.err, "nothing to remove: {folder} has {count} of {keep} snapshots")?;
    }
    let dates = Dates::of_machine();
    for (dir, names) in [(&folders.snapshots, &plan.snapshots), (&folders.logs, &plan.logs)] {
        for path in names.iter().map(|name| dir.join(name)) {
            if !plan.holds(&RealDisk, folders).unwrap_or(false) {
                let kept = plan.kept.as_deref().unwrap_or_default();
                writeln!(streams.err, "stopped: the server has removed {kept}; run this again")?;
                return Ok(0);
            }
            let changed = fs::metadata(&path).and_then(|found| found.modified()).ok();
            let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let changed_ms = changed.map_or(0, |since| since.as_millis() as i64);
            if is_json {
                let object =
                    json!({ "removing": path.display().to_string(), "modified_ms": changed_ms });
                writeln!(streams.out, "{object}")?;
            } else {
                writeln!(
                    streams.out,
                    "Removing file: {}\t{}",
                    dates.medium(changed_ms),
                    path.display()
                )?;
            }
            if RealDisk.remove(&path).and_then(|()| RealDisk.sync_dir(dir)).is_err() {
                writeln!(streams.err, "Failed to remove {}", path.display())?;
            }
        }
    }
    Ok(0)
}
