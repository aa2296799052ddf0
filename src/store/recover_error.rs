//! Why a server can't start from its files, and what to do about it.

use super::scan::ScanError;
use crate::model::{Epoch, Zxid};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a server cannot start on what is on disk.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError<E: Error + 'static> {
    #[error("make or open folder {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{} is a file and must be a folder: move it away", path.display())]
    NotAFolder { path: PathBuf },
    #[error("write to folder {}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{what} {} is in the wrong folder; check dataDir and dataLogDir, or, if dataLogDir was set only now, move log.* there", path.display())]
    Misplaced { what: &'static str, path: PathBuf },
    #[error("list folder {}", path.display())]
    List { path: PathBuf, source: io::Error },
    #[error("remove leftover {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("read {}", path.display())]
    Denied { path: PathBuf, source: io::Error },
    #[error(
        "load snapshot: none of {tried} in {} could be loaded, and the log does not make up for them; the newest, {}: {}",
        dir.display(),
        newest.path.display(),
        newest.why
    )]
    AllSnapshotsBad { dir: PathBuf, tried: usize, newest: Skipped },
    #[error("no snapshot found in {}, but there are log entries; {}; only if the log begins with zxid 0x1 (upgraded from 3.4), start once with snapshot.trust.empty=true", dir.display(), if *is_member { "empty the directories of one member at a time, except for myid, and the leader sends its tree" } else { "restore the snapshots, or a backup" })]
    NoSnapshot { dir: PathBuf, is_member: bool },
    #[error(
        "snapshot {} is damaged, and the log lacks transactions that it held: the log is whole up to {} at most",
        path.display(),
        last.unwrap_or(Zxid::ZERO)
    )]
    SnapshotNotCovered { path: PathBuf, last: Option<Zxid> },
    #[error(
        "the log in {} goes from {before} to {after}: the transactions between them are lost",
        dir.display()
    )]
    Hole { dir: PathBuf, before: Zxid, after: Zxid },
    #[error(
        "the log in {} goes on with {first} after {before}: the transactions between them are lost",
        dir.display()
    )]
    Gap { dir: PathBuf, before: Zxid, first: Zxid },
    #[error("{} has a currentEpoch of {epoch}, and neither a snapshot nor a log entry is there", dir.display(), epoch = epoch.0)]
    OnlyEpochs { dir: PathBuf, epoch: Epoch },
    #[error(
        "there is no folder {}, although {} is the folder of a server with data. If log.* is in {}, make the folder and move log.* there. Else mount its disk. \
         Only if the logs are lost: to go on with what the snapshot has, make the folder; if the other members have a leader, rather empty both folders, and it \
         sends its tree",
        logs.display(),
        snapshots.display(),
        snapshots.display()
    )]
    NoLogFolder { logs: PathBuf, snapshots: PathBuf },
    #[error(
        "{} is not the folder in which the last start had its logs: the file logFolderId is missing there, or lacks the last start. If the disk of dataLogDir is \
         not mounted, mount it. If all log.* of the last start are here, without that file, remove {}. Only if the logs are lost: remove it too, to go on \
         with what the snapshot has; if the other members have a leader, rather empty both folders, and it sends its tree",
        logs.display(),
        note.display()
    )]
    OtherLogFolder { logs: PathBuf, note: PathBuf },
    #[error(
        "the last start's newest log, {}, is not in {}, the log folder now, or the file there lacks some of its transactions. If no server has run with the \
         folder now since, set dataLogDir as it was, or move the log files here. If one has (ZooKeeper, for example), what was acknowledged since is \
         here alone: remove {}",
        newest.display(),
        logs.display(),
        note.display()
    )]
    LogsElsewhere { newest: PathBuf, logs: PathBuf, note: PathBuf },
    #[error(
        "the last start had its logs in {}, which is gone, is another folder now, or has no log any more, and {}, the log folder now, has none: mount the disk with those logs, \
         and set dataLogDir as it was or move the log files here. Only if the logs are lost, or there were none: remove {}, to go on with what the \
         snapshot has; if the other members have a leader, rather empty both folders, and it sends its tree",
        before.display(),
        logs.display(),
        note.display()
    )]
    LogsGone { before: PathBuf, logs: PathBuf, note: PathBuf },
    /// Which of two files that begin with one name is the log, the server can't know.
    #[error(
        "{} is a copy of a log, and has or may have transactions after those of the snapshot: they would be replayed after the log. Move it out of the folder; \
         if it is to take the place of {}, move that file away and give this one its name",
        copy.display(),
        log.display()
    )]
    LogCopy { copy: PathBuf, log: PathBuf },
    #[error(transparent)]
    Log(#[from] ScanError<E>),
    #[error("repair the log in {}", dir.display())]
    Repair { dir: PathBuf, source: io::Error },
}

impl<E: Error + 'static> RecoverError<E> {
    /// What to do on a server that refuses to start, unless the error itself says so. A member that quarantines its data needs
    /// nothing of it.
    pub const fn advice(&self, is_member: bool) -> Option<&'static str> {
        Some(match self {
            Self::Folder { .. }
            | Self::NotAFolder { .. }
            | Self::NotWritable { .. }
            | Self::Misplaced { .. }
            | Self::NoSnapshot { .. }
            | Self::NoLogFolder { .. }
            | Self::OtherLogFolder { .. }
            | Self::LogsElsewhere { .. }
            | Self::LogsGone { .. }
            | Self::LogCopy { .. } => return None,
            Self::Denied { .. }
            | Self::List { .. }
            | Self::Remove { .. }
            | Self::Repair { .. }
            | Self::Log(ScanError::List { .. } | ScanError::Read { .. }) => {
                "check the disk, and the rights of this user in dataDir and dataLogDir"
            }
            Self::Log(ScanError::Taken { .. }) => {
                "start the version of the server that wrote it, or restore a backup"
            }
            _ if is_member => {
                "empty this member's version-2 folders, and the leader sends its tree: docs/operations.md, \"Replace a disk\""
            }
            Self::AllSnapshotsBad { .. } | Self::OnlyEpochs { .. } => {
                "restore a backup: docs/operations.md, \"Damaged data\"; to begin without this data, move version-2 away"
            }
            Self::SnapshotNotCovered { .. } => {
                "restore a backup: docs/operations.md, \"Damaged data\"; to start without what is missing, move away this \
                 snapshot and the log files that begin after that zxid"
            }
            Self::Hole { .. } => {
                "restore the missing log file, or a backup: docs/operations.md, \"Damaged data\"; to start with the transactions \
                 before, move the log files with those after away"
            }
            Self::Gap { .. } => {
                "restore the missing log file, or a backup: docs/operations.md, \"Damaged data\"; to start with the transactions \
                 before, move the log files with those after away; to start with both, set snapshot.trust.empty=true"
            }
            Self::Log(_) => {
                "restore a backup, or, to keep the transactions before the damage, cut this log file and move all later ones \
                 away: docs/operations.md, \"Cut or repair a log\""
            }
        })
    }
}

/// A file that was not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skipped {
    pub path: PathBuf,
    pub why: SkipReason,
}

/// Why a file was not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// A snapshot whose end is missing (D-30).
    NotWhole,
    /// A snapshot that could not be loaded, and the reason.
    Bad(String),
    /// A log file without a header; removed.
    Unwritten,
    /// The end of a log file, from this offset on, was a torn flush; truncated.
    Torn(u64),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWhole => f.write_str("the snapshot has no end"),
            Self::Bad(error) => f.write_str(error),
            Self::Unwritten => f.write_str("the log file has no header; it was removed"),
            Self::Torn(at) => write!(f, "a torn flush from offset {at} on was cut off"),
        }
    }
}
