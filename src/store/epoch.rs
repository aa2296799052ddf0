//! The two epoch files of a quorum server; a standalone one has none.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::disk::{self, Disk, Reading};
use crate::model::{Epoch, Epochs, Zxid};

/// Which promise a file holds (D-05).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EpochFile {
    /// The epoch whose leader this server last synced with.
    Current,
    /// The epoch this server has promised to join.
    Accepted,
}

impl EpochFile {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "currentEpoch",
            Self::Accepted => "acceptedEpoch",
        }
    }
}

/// Why an epoch could not be read or saved.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    #[error("read epoch file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("read epoch file {}: {text:?} is no epoch", path.display())]
    Malformed { path: PathBuf, text: String },
    /// No server ends up with these: a promise is saved before what follows from it.
    #[error(
        "epoch file {}: epoch {current} was never promised, acceptedEpoch is {accepted}",
        path.display(),
        current = current.0,
        accepted = accepted.0
    )]
    Unpromised { path: PathBuf, current: Epoch, accepted: Epoch },
    /// A promise that was forgotten would be broken: two leaders of one epoch.
    #[error(
        "epoch file {} is gone, and currentEpoch is {current}: what this server promised is not known; empty its version-2 \
         folders, and the leader sends its tree",
        path.display(),
        current = current.0
    )]
    NoPromise { path: PathBuf, current: Epoch },
    /// The history may count for less than it did: a leader with an older epoch could truncate what it has.
    #[error(
        "epoch file {} is gone, acceptedEpoch is {accepted}, and the history ends with {last}: which epoch it stands for is not known",
        path.display(),
        accepted = accepted.0
    )]
    NoCurrent { path: PathBuf, accepted: Epoch, last: Zxid },
    #[error("save epoch {epoch} to {}", path.display(), epoch = epoch.0)]
    Save { path: PathBuf, epoch: Epoch, source: io::Error },
}

/// Reads an epoch; `None` when there is no such file.
///
/// * `dir`: `version-2` under dataDir.
///
/// # Errors
/// [`EpochError::Malformed`] unless the first line is a decimal number that another epoch can follow.
pub fn read<D: Disk>(disk: &D, dir: &Path, which: EpochFile) -> Result<Option<Epoch>, EpochError> {
    read_epoch(disk, dir.join(which.name()))
}

/// The value a crash left in the temporary file, `<name>.tmp` here and in Java, if there is one and it is whole (D-06).
///
/// # Errors
/// Those of the disk.
pub fn read_left_over<D: Disk>(
    disk: &D,
    dir: &Path,
    which: EpochFile,
) -> Result<Option<Epoch>, EpochError> {
    match read_epoch(disk, disk::temporary(&dir.join(which.name()))) {
        Err(EpochError::Malformed { .. }) => Ok(None),
        other => other,
    }
}

fn read_epoch<D: Disk>(disk: &D, path: PathBuf) -> Result<Option<Epoch>, EpochError> {
    let mut bytes = Vec::new();
    let read = Reading::open(disk, &path).and_then(|file| file.take(64).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(EpochError::Read { path, source }),
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(&bytes);
    let epoch = text.lines().next().and_then(|line| line.parse().ok()).map(Epoch);
    match epoch.filter(|epoch| *epoch <= Epoch::LAST) {
        Some(epoch) => Ok(Some(epoch)),
        None => Err(EpochError::Malformed { path, text: text.into_owned() }),
    }
}

/// The epochs accepted and current: what this server has promised.
///
/// * `last`: of its log; `None`: nothing there counts.
///
/// A file that a crash left half replaced counts as replaced, and one that is missing says what the log says, and is written
/// with it as Java does (D-05, D-06). Where nothing counts currentEpoch stays missing: which epoch the history was of is not
/// known, and after a crash that leaves a leader's tree without its epoch [`check_history`] must see that. A log that is ahead of its current epoch is what an interrupted synchronisation leaves: its end was not
/// acknowledged under the new epoch, and the next leader decides about it. Java does not start on such a directory.
///
/// # Errors
/// As [`read`] and [`save`], and [`EpochError::NoPromise`].
pub fn promised<D: Disk>(disk: &D, dir: &Path, last: Option<Zxid>) -> Result<Epochs, EpochError> {
    let counts = last.is_some();
    let last = last.unwrap_or(Zxid::ZERO);
    let newest = |which| -> Result<Option<Epoch>, EpochError> {
        let (there, left) = newest(disk, dir, which)?;
        if let Some(epoch) = left.filter(|_| there < left) {
            // The operating system may have it and the disk not.
            save(disk, dir, which, epoch)?;
        }
        Ok(there.max(left))
    };
    let found = newest(EpochFile::Current)?;
    let current = found.unwrap_or(last.epoch());
    if current < last.epoch() {
        tracing::warn!(
            current = current.0,
            %last,
            "the log is ahead of the current epoch: a synchronisation was cut short; the next leader says what counts"
        );
    }
    let promised = newest(EpochFile::Accepted)?;
    if promised.is_none() && found.is_some_and(|epoch| Epoch(0) < epoch) {
        return Err(EpochError::NoPromise { path: dir.join(EpochFile::Accepted.name()), current });
    }
    let accepted = promised.unwrap_or(last.epoch()).max(current);
    // The log may grow by a synchronisation that is cut short, or lose its end: it must not be asked again.
    for (which, epoch, there) in
        [(EpochFile::Accepted, accepted, promised), (EpochFile::Current, current, found)]
    {
        if there.is_none() && (counts || which == EpochFile::Accepted) {
            save(disk, dir, which, epoch)?;
        }
    }
    Ok(Epochs { accepted, current })
}

/// The epoch in a file, and the one that a crash left beside it.
fn newest<D: Disk>(
    disk: &D,
    dir: &Path,
    which: EpochFile,
) -> Result<(Option<Epoch>, Option<Epoch>), EpochError> {
    Ok((read(disk, dir, which)?, read_left_over(disk, dir, which)?))
}

/// Looks for a currentEpoch that is gone, where the log does not say what it was. A first start makes both files from the log's
/// epoch, so that acceptedEpoch is later only after this server has been a member.
///
/// * `last`: of the log.
///
/// # Errors
/// As [`read`], and [`EpochError::NoCurrent`].
pub fn check_history<D: Disk>(disk: &D, dir: &Path, last: Zxid) -> Result<(), EpochError> {
    let accepted = newest(disk, dir, EpochFile::Accepted)?;
    match (newest(disk, dir, EpochFile::Current)?, accepted.0.max(accepted.1)) {
        ((None, None), Some(accepted)) if last.epoch() < accepted => {
            let path = dir.join(EpochFile::Current.name());
            Err(EpochError::NoCurrent { path, accepted, last })
        }
        _ => Ok(()),
    }
}

/// What is wrong with currentEpoch, if it can be read and still be no epoch that this server was in.
///
/// # Errors
/// [`EpochError::Malformed`] and [`EpochError::Unpromised`], of currentEpoch alone.
pub fn check_current<D: Disk>(disk: &D, dir: &Path) -> Result<(), EpochError> {
    let current = match read(disk, dir, EpochFile::Current) {
        Err(error @ EpochError::Malformed { .. }) => return Err(error),
        Ok(Some(current)) => current,
        _ => return Ok(()),
    };
    match read(disk, dir, EpochFile::Accepted) {
        Ok(Some(accepted)) if accepted < current => {
            let path = dir.join(EpochFile::Current.name());
            Err(EpochError::Unpromised { path, current, accepted })
        }
        _ => Ok(()),
    }
}

/// Saves an epoch; durable when it returns.
///
/// # Errors
/// [`EpochError::Save`] with the disk's reason. The old value or the new is there then, never a part.
pub fn save<D: Disk>(
    disk: &D,
    dir: &Path,
    which: EpochFile,
    epoch: Epoch,
) -> Result<(), EpochError> {
    let path = dir.join(which.name());
    disk::replace_file(disk, &path, epoch.0.to_string().as_bytes())
        .map_err(|source| EpochError::Save { path, epoch, source })
}
