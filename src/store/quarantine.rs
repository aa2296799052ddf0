//! A directory that can't be started from: when a member of an ensemble may quarantine it and start without data, and how.
//!
//! Why no committed transaction is lost by that: such a server casts no vote, no epoch is opened by its ACKEPOCH, and its
//! ACKs count only after it has installed a leader's whole tree. So every leader is still chosen, and every epoch opened, by a
//! majority whose disks are whole; that majority and the one that committed a transaction have a server in common, and it
//! is one of the whole ones. If whole ones are no majority, no leader is chosen, and somebody has to bring data back.
//! What it promised has to be known for that, so a lost acceptedEpoch is no such case.
//!
//! Two things that look like damage are none. A log ahead of currentEpoch is what an interrupted synchronisation leaves;
//! its end counts for what currentEpoch says. A currentEpoch ahead of the log is as it should be when nothing was written
//! since, and is believed: claiming less would let a server win that an earlier, failed leader had led astray. A Java
//! server without the mend of ZOOKEEPER-4643 could also leave it there with a part of the history missing, on its way down
//! in the middle of a synchronisation; that can't be told apart.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, Disk};
use super::epoch::{self, EpochError, EpochFile};
use super::names::{self, Folders};
use super::record;
use super::recover::RecoverError;
use super::scan::ScanError;

/// As long as this file lies beside the snapshots, what is or is not in the directory does not count.
const MARK: &str = "unsure";
/// A currentEpoch beyond acceptedEpoch by more than this is damaged: the two are of one server, which counts elections.
const LEAP_MAX: u32 = 1 << 20;
/// A log without a record, there as long as the mark is. Java does not know the mark and would vote with an empty tree; a log
/// without a snapshot it refuses.
const GUARD: &str = "log.0";
/// Before the name of a quarantined file: no reader takes it for a snapshot or a log.
const QUARANTINED: &str = "damaged";

/// What keeps a server from starting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// A record, a header or a sector of the log can't be read, and is no torn end.
    Log,
    /// Between two records of one epoch others are missing.
    Hole,
    /// No snapshot can be loaded, or the newest can't and the log does not make up for it.
    Snapshots,
    /// There is neither a snapshot nor a log, and there has been.
    Emptied,
    /// There is none, and the log begins in the middle.
    NoSnapshot,
    /// currentEpoch is no number, was never promised, or is gone.
    CurrentEpoch,
    /// acceptedEpoch is no number.
    AcceptedEpoch,
    /// A record is whole, and nobody knows what it means.
    Meaning,
    /// A folder or file is kept from this user, or can't be written to.
    Access,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rescue {
    Refuse,
    /// Rename snapshots and logs, and start without data.
    Quarantine,
}

/// Chooses what to do about a directory that can't be started from.
///
/// ```text
/// trouble          alone    member       why
/// log              refuse   quarantine   the fault of this server's disk alone; Java ends
/// hole             refuse   quarantine   the fault of this server's disk; Java ends (ZOOKEEPER-4925), or made it (4882)
/// snapshots        refuse   quarantine   the fault of this server's disk; Java goes on from an older state
/// emptied          refuse   quarantine   the fault of this server's disk; Java starts as a new server, and votes
/// no snapshot      refuse   refuse       the log may be all there is (ZOOKEEPER-3056): snapshot.trust.empty decides
/// currentEpoch     refuse   quarantine   how much the history is worth can't be told; Java ends
/// acceptedEpoch    refuse   refuse       a promise that was forgotten would be broken: two leaders of one epoch
/// meaning          refuse   refuse       no damage: every member would lose it, and a newer version knows it
/// access           refuse   refuse       no damage, and no file could be renamed
/// ```
///
/// A server that is alone has nobody to ask. What one member can do without, a majority cannot: what is not damaged for sure
/// is kept in its place.
pub const fn rescue(trouble: Trouble, is_member: bool) -> Rescue {
    match (trouble, is_member) {
        (_, false)
        | (
            Trouble::NoSnapshot | Trouble::AcceptedEpoch | Trouble::Meaning | Trouble::Access,
            true,
        ) => Rescue::Refuse,
        (
            Trouble::Log
            | Trouble::Hole
            | Trouble::Snapshots
            | Trouble::Emptied
            | Trouble::CurrentEpoch,
            true,
        ) => Rescue::Quarantine,
    }
}

/// Which trouble an error of [`super::recover()`] tells of.
pub fn trouble<E: Error>(error: &RecoverError<E>) -> Trouble {
    match error {
        RecoverError::Log(ScanError::Taken { .. }) => Trouble::Meaning,
        RecoverError::Log(ScanError::Read { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Trouble::Access
        }
        RecoverError::Log(
            ScanError::Read { .. }
            | ScanError::Header { .. }
            | ScanError::Corrupt { .. }
            | ScanError::NoHeader { .. },
        ) => Trouble::Log,
        RecoverError::Hole { .. } | RecoverError::Gap { .. } => Trouble::Hole,
        RecoverError::OnlyEpochs { .. } => Trouble::Emptied,
        RecoverError::AllSnapshotsBad { .. } | RecoverError::Behind { .. } => Trouble::Snapshots,
        RecoverError::NoSnapshot { .. } => Trouble::NoSnapshot,
        RecoverError::Log(ScanError::List { .. })
        | RecoverError::Denied { .. }
        | RecoverError::Folder { .. }
        | RecoverError::NotAFolder { .. }
        | RecoverError::NotWritable { .. }
        | RecoverError::Misplaced { .. }
        | RecoverError::NoLogFolder { .. }
        | RecoverError::List { .. }
        | RecoverError::Remove { .. }
        | RecoverError::Repair { .. } => Trouble::Access,
    }
}

/// Where the mark is.
pub fn mark(folders: &Folders) -> PathBuf {
    folders.snapshots.join(MARK)
}

/// Whether what is in the directory does not count: its data was quarantined, and no leader's tree has come since.
pub fn is_marked<D: Disk>(disk: &D, folders: &Folders) -> io::Result<bool> {
    Ok(disk.list(&folders.snapshots)?.iter().any(|name| name == MARK))
}

/// Whether it can be told what this server promised: by its acceptedEpoch, or since it never was a member.
pub fn knows_promises<D: Disk>(disk: &D, dir: &Path) -> bool {
    let read = |which| epoch::read(disk, dir, which);
    match read(EpochFile::Accepted) {
        Ok(Some(_)) => true,
        Ok(None) => matches!(read(EpochFile::Current), Ok(None)),
        Err(_) => false,
    }
}

/// Gives snapshots and log files names under which nobody takes them for such; returns the new ones.
///
/// Both epochs stay. acceptedEpoch is what was promised, and with currentEpoch this server counts again after it has installed a
/// leader's tree, like a server that has lost nothing. A currentEpoch that can't be read becomes the accepted one: a
/// smaller epoch could let a server win that lacks transactions of this one, and a greater epoch is never before that of the tree.
/// A currentEpoch beyond acceptedEpoch tells that one of the two is wrong: the greater then counts as promised.
/// The mark comes first, so that a start after a crash in between finds neither a part of the history nor an empty
/// directory that it could take for a new one.
///
/// # Errors
/// Those of the disk.
pub fn rename_as_damaged<D: Disk>(disk: &D, folders: &Folders) -> Result<Vec<PathBuf>, EpochError> {
    let dir = &folders.snapshots;
    let mut quarantined = move_files(disk, folders)
        .map_err(|source| EpochError::Read { path: dir.clone(), source })?;
    if let Err(EpochError::Unpromised { current, accepted, .. }) = epoch::check_current(disk, dir)
        && current.0.saturating_sub(accepted.0) <= LEAP_MAX
    {
        epoch::save(disk, dir, EpochFile::Accepted, current)?;
    }
    let current = match epoch::check_current(disk, dir) {
        Err(EpochError::Malformed { path, .. } | EpochError::Unpromised { path, .. }) => {
            let name = EpochFile::Current.name();
            let to = free_name(disk, dir, name).and_then(|to| {
                disk.rename(&path, &to)?;
                Ok(to)
            });
            quarantined.push(to.map_err(|source| EpochError::Read { path, source })?);
            None
        }
        Err(error) => return Err(error),
        Ok(()) => epoch::read(disk, dir, EpochFile::Current)?,
    };
    if let (None, Some(accepted)) = (current, epoch::read(disk, dir, EpochFile::Accepted)?) {
        epoch::save(disk, dir, EpochFile::Current, accepted)?;
    }
    Ok(quarantined)
}

fn move_files<D: Disk>(disk: &D, folders: &Folders) -> io::Result<Vec<PathBuf>> {
    if !is_marked(disk, folders)? {
        disk.create(&mark(folders))?;
        disk.sync_dir(&folders.snapshots)?;
    }
    let guard = folders.logs.join(GUARD);
    if !disk.list(&folders.logs)?.iter().any(|name| name == GUARD) {
        let file = disk.create(&guard)?;
        disk.write_at(&file, 0, &record::header())?;
        disk.sync_data(&file)?;
    }
    let snapshots = names::snapshots(disk, &folders.snapshots)?;
    let logs = names::logs(disk, &folders.logs)?;
    let mut quarantined = Vec::new();
    for (dir, files) in [(&folders.snapshots, snapshots), (&folders.logs, logs)] {
        for file in files.into_iter().filter(|file| file.name != GUARD) {
            let to = free_name(disk, dir, &file.name)?;
            disk.rename(&dir.join(&file.name), &to)?;
            quarantined.push(to);
        }
        disk.sync_dir(dir)?;
    }
    Ok(quarantined)
}

/// A leader's whole tree is on disk: what is in the directory counts again.
///
/// * `snapshots`, `logs`: the folders of both.
///
/// # Errors
/// Those of the disk.
pub fn unmark<D: Disk>(disk: &D, snapshots: &Path, logs: &Path) -> io::Result<()> {
    if disk::remove_for_good(disk, &snapshots.join(MARK))? {
        disk::remove_for_good(disk, &logs.join(GUARD))?;
    }
    Ok(())
}

/// It may have happened before.
fn free_name<D: Disk>(disk: &D, dir: &Path, name: &str) -> io::Result<PathBuf> {
    let there = disk.list(dir)?;
    let names = (0..).map(|number: u32| match number {
        0 => format!("{QUARANTINED}.{name}"),
        number => format!("{QUARANTINED}-{number}.{name}"),
    });
    let free = names.into_iter().find(|name| !there.contains(name));
    Ok(dir.join(free.expect("there are fewer files than numbers")))
}
