//! Quarantine of data that recovery refuses: when a member of an ensemble may rename its files and start without data, and how.
//!
//! Why no committed transaction is lost by that: such a server casts no vote, no epoch is opened by its ACKEPOCH, and its
//! ACKs count only after it has installed a leader's whole tree. So every leader is still elected, and every epoch opened, by
//! a majority whose disks are whole; that majority and the one that committed a transaction have a server in common, and its
//! disk is whole. If the servers with whole disks are no majority, no leader is elected, and an operator has to restore data.
//! For all this the epoch that the server promised has to be known, so a lost acceptedEpoch is never quarantined.
//!
//! Two things look like damage and are none. A log ahead of currentEpoch is left by an interrupted synchronisation, and counts
//! as history of its own epoch, or of that in the file, as [`epoch::promised`] says. A currentEpoch ahead of the log is normal when nothing was written since that epoch
//! began, and is believed: with a smaller one a server could win an election whose history comes from an earlier, failed
//! leader. A Java server without the fix of ZOOKEEPER-4643 can also leave such a currentEpoch with a part of the history
//! missing, if it stops in the middle of a synchronisation; the two cases can't be distinguished.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};
use super::epoch::{self, EpochError, EpochFile, SavedEpochs};
use super::names::{self, Folders};
use super::record;
use super::recover::RecoverError;
use super::scan::{self, ScanError};
use crate::model::Zxid;

/// The mark: as long as this file is in the snapshot folder, what is or is not in the data directory does not count.
const MARK: &str = "unsure";
/// A currentEpoch greater than acceptedEpoch by more than this is damaged: both files are of one server, and epochs count
/// elections.
const LEAP_MAX: u32 = 1 << 20;
/// A log file without a record, there as long as the mark is. Java does not know the mark and would vote with an empty tree;
/// a log without a snapshot makes it refuse to start.
const GUARD: &str = "log.0";
/// Put before the name of a quarantined file, so that no reader takes it for a snapshot or a log.
const QUARANTINED: &str = "damaged";

/// What keeps a server from starting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StartFailure {
    /// A record, a header or a sector of the log can't be read, and it is not a torn end.
    Log,
    /// Between two records of one epoch others are missing.
    Hole,
    /// No snapshot can be loaded, or the newest can't and the log does not hold all that it held.
    Snapshots,
    /// There is neither a snapshot nor a log, but the epoch files say that there was data.
    Emptied,
    /// There is no snapshot, and the log does not begin with the first transaction.
    NoSnapshot,
    /// currentEpoch is no number, was never promised, or is missing.
    CurrentEpoch,
    /// acceptedEpoch is no number.
    AcceptedEpoch,
    /// A record is whole but can't be decoded or applied.
    Meaning,
    /// A folder or file can't be read or written, and that is no damage: a missing right, a limit, a network that does not answer.
    Access,
}

/// What to do about a [`StartFailure`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remedy {
    Refuse,
    /// Rename snapshots and logs, and start without data.
    Quarantine,
}

/// Chooses what to do about a directory that can't be started from.
///
/// ```text
/// trouble          alone    member       why
/// log              refuse   quarantine   the fault of this server's disk alone; Java exits
/// hole             refuse   quarantine   the fault of this server's disk; Java exits (ZOOKEEPER-4925), or made it (4882)
/// snapshots        refuse   quarantine   the fault of this server's disk; Java goes on from an older state
/// emptied          refuse   quarantine   the fault of this server's disk; Java starts as a new server, and votes
/// no snapshot      refuse   refuse       the log may be all there is (ZOOKEEPER-3056): snapshot.trust.empty decides
/// currentEpoch     refuse   quarantine   the epoch of the history is not known; Java exits
/// acceptedEpoch    refuse   refuse       a forgotten promise could be broken: two leaders in one epoch
/// meaning          refuse   refuse       no damage: every member would quarantine it, and a newer version may know it
/// access           refuse   refuse       no damage, and no file could be renamed
/// ```
///
/// A standalone server has no leader to get a tree from. One member can do without its data, a majority cannot: so what is
/// not surely damaged stays in place.
pub const fn rescue(trouble: StartFailure, is_member: bool) -> Remedy {
    match (trouble, is_member) {
        (_, false)
        | (
            StartFailure::NoSnapshot
            | StartFailure::AcceptedEpoch
            | StartFailure::Meaning
            | StartFailure::Access,
            true,
        ) => Remedy::Refuse,
        (
            StartFailure::Log
            | StartFailure::Hole
            | StartFailure::Snapshots
            | StartFailure::Emptied
            | StartFailure::CurrentEpoch,
            true,
        ) => Remedy::Quarantine,
    }
}

/// The trouble that an error of [`super::recover()`] stands for.
pub fn trouble<E: Error>(error: &RecoverError<E>) -> StartFailure {
    match error {
        RecoverError::Log(ScanError::Taken { .. }) => StartFailure::Meaning,
        RecoverError::Log(ScanError::Read { source, .. }) if !disk::is_of_medium(source) => {
            StartFailure::Access
        }
        RecoverError::Log(
            ScanError::Read { .. }
            | ScanError::Header { .. }
            | ScanError::Corrupt { .. }
            | ScanError::NoHeader { .. },
        ) => StartFailure::Log,
        RecoverError::Hole { .. } | RecoverError::Gap { .. } => StartFailure::Hole,
        RecoverError::OnlyEpochs { .. } => StartFailure::Emptied,
        RecoverError::AllSnapshotsBad { .. } | RecoverError::SnapshotNotCovered { .. } => {
            StartFailure::Snapshots
        }
        RecoverError::NoSnapshot { .. } => StartFailure::NoSnapshot,
        RecoverError::Log(ScanError::List { .. })
        | RecoverError::Denied { .. }
        | RecoverError::Folder { .. }
        | RecoverError::NotAFolder { .. }
        | RecoverError::NotWritable { .. }
        | RecoverError::Misplaced { .. }
        | RecoverError::NoLogFolder { .. }
        | RecoverError::OtherLogFolder { .. }
        | RecoverError::LogsElsewhere { .. }
        | RecoverError::LogsGone { .. }
        | RecoverError::LogCopy { .. }
        | RecoverError::List { .. }
        | RecoverError::Remove { .. }
        | RecoverError::Repair { .. } => StartFailure::Access,
    }
}

/// The path of the mark.
pub fn mark(folders: &Folders) -> PathBuf {
    folders.snapshots.join(MARK)
}

/// The path of the log file without a record that stands beside the mark.
pub fn guard(folders: &Folders) -> PathBuf {
    folders.logs.join(GUARD)
}

/// Whether the data in the directory does not count: it was quarantined, and no leader's tree was installed since.
pub fn is_marked<D: Disk>(disk: &D, folders: &Folders) -> io::Result<bool> {
    Ok(disk.list(&folders.snapshots)?.iter().any(|name| name == MARK))
}

/// Whether files are there that were quarantined once, whatever became of the mark.
pub fn has_quarantined<D: Disk>(disk: &D, folders: &Folders) -> bool {
    let is_there = |dir| {
        let names = disk.list(dir).unwrap_or_default();
        names.iter().any(|name| name.starts_with(QUARANTINED))
    };
    is_there(&folders.snapshots) || is_there(&folders.logs)
}

/// Whether the epoch that this server promised is known: from acceptedEpoch, or because it never was a member. An acceptedEpoch before the
/// epochs in the names of snapshots or logs, or in the log's records, is a copy of an earlier time.
///
/// # Errors
/// If a folder can't be listed.
pub fn knows_promises<D: Disk>(disk: &D, folders: &Folders) -> io::Result<bool> {
    let dir = &folders.snapshots;
    let accepted = match epoch::newest(disk, dir, EpochFile::Accepted) {
        Ok(Some(accepted)) => accepted,
        Ok(None) => return Ok(SavedEpochs::read(disk, dir).is_ok_and(SavedEpochs::say_nothing)),
        Err(_) => return Ok(false),
    };
    let mut files = names::snapshots(disk, &folders.snapshots)?;
    files.extend(names::logs(disk, &folders.logs)?);
    let mut newest = files.iter().map(|file| file.zxid.epoch()).max();
    // Damage ends the scan, and what comes before it counts.
    let _damage = scan::scan(disk, &folders.logs, None, |zxid, _, _| {
        newest = newest.max(Zxid::from_wire(zxid).map(Zxid::epoch));
        Ok::<_, Infallible>(ControlFlow::Continue(()))
    });
    Ok(newest <= Some(accepted))
}

/// Renames snapshots and log files so that no reader takes them for such; returns the new paths.
///
/// Both epochs stay. acceptedEpoch is what was promised, and with currentEpoch this server counts again after it has installed a
/// leader's tree, like a server that has lost nothing. Without a currentEpoch that can be read it counts once it has acknowledged a
/// NEWLEADER: with a smaller epoch than it had it could win an election that lacks transactions of this one, and with a greater one it would
/// claim to know what the NEWLEADER of that epoch named. The file says so then ([`epoch::note_joining`]), and that this server was a member.
/// A currentEpoch greater than acceptedEpoch shows that one of the two is wrong: the greater then counts as promised.
/// The mark is written first, so that a start after a crash in between finds neither a part of the history nor an empty
/// directory that it could take for a new one.
///
/// # Errors
/// If a file can't be listed or renamed. Files may be renamed already: the caller ends the start, and the next start goes on.
pub fn rename_as_damaged<D: Disk>(disk: &D, folders: &Folders) -> Result<Vec<PathBuf>, EpochError> {
    let dir = &folders.snapshots;
    // One that can't be read ends the start before anything is renamed.
    for which in [EpochFile::Accepted, EpochFile::Current] {
        if let Err(error @ EpochError::Read { .. }) = epoch::read(disk, dir, which) {
            return Err(error);
        }
    }
    let mut quarantined = move_files(disk, folders)
        .map_err(|source| EpochError::Read { path: dir.clone(), source })?;
    if let Err(EpochError::Unpromised { current, accepted, .. }) = epoch::check_current(disk, dir)
        && current.0.saturating_sub(accepted.0) <= LEAP_MAX
    {
        epoch::save(disk, dir, EpochFile::Accepted, current)?;
    }
    match epoch::check_current(disk, dir) {
        Err(EpochError::Malformed { path, .. } | EpochError::Unpromised { path, .. }) => {
            let name = EpochFile::Current.name();
            let to = free_name(disk, dir, QUARANTINED, name).and_then(|to| {
                disk.rename(&path, &to)?;
                Ok(to)
            });
            quarantined.push(to.map_err(|source| EpochError::Read { path, source })?);
        }
        Err(error) => return Err(error),
        Ok(()) => {}
    }
    // A server without acceptedEpoch never was a member: see [`knows_promises`].
    let was_member = epoch::newest(disk, dir, EpochFile::Accepted)?.is_some();
    if was_member && epoch::read(disk, dir, EpochFile::Current)?.is_none() {
        epoch::note_joining(disk, dir)?;
    }
    Ok(quarantined)
}

fn move_files<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Vec<PathBuf>> {
    if !is_marked(disk, folders)? {
        disk.create(&mark(folders))?;
        disk.sync_dir(&folders.snapshots)?;
    }
    let guard = guard(folders);
    if !disk.list(&folders.logs)?.iter().any(|name| name == GUARD) {
        let file = disk.create(&guard)?;
        disk.write_at(&file, 0, &record::header())?;
        disk.sync_data(&file)?;
    }
    let snapshots = names::snapshots(disk, &folders.snapshots)?;
    // Without a snapshot a start would refuse the copies.
    let logs = names::logs_and_copies(disk, &folders.logs)?;
    let mut quarantined = Vec::new();
    for (dir, files) in [(&folders.snapshots, snapshots), (&folders.logs, logs)] {
        for file in files.into_iter().filter(|file| file.name != GUARD) {
            let to = free_name(disk, dir, QUARANTINED, &file.name)?;
            disk.rename(&dir.join(&file.name), &to)?;
            quarantined.push(to);
        }
        disk.sync_dir(dir)?;
    }
    Ok(quarantined)
}

/// Removes the mark after a leader's whole tree is on disk: the data in the directory counts again.
///
/// * `snapshots`, `logs`: the folders of both.
///
/// # Errors
/// If a mark can't be removed. The caller ends the server: while the mark is there, the next start takes the data for quarantined.
pub fn unmark<D: Disk>(disk: &D, snapshots: &Path, logs: &Path) -> io::Result<()> {
    if disk::remove_for_good(disk, &snapshots.join(MARK))? {
        disk::remove_for_good(disk, &logs.join(GUARD))?;
    }
    Ok(())
}

/// A new name for a file, with `prefix` before its own, that no file renamed earlier has.
pub(super) fn free_name<D: Disk>(
    disk: &D,
    dir: &Path,
    prefix: &str,
    name: &str,
) -> io::Result<PathBuf> {
    let there = disk.list(dir)?;
    let names = (0..).map(|number: u32| match number {
        0 => format!("{prefix}.{name}"),
        number => format!("{prefix}-{number}.{name}"),
    });
    let free = names.into_iter().find(|name| !there.contains(name));
    Ok(dir.join(free.expect("there are fewer files than numbers")))
}
