//! The two epoch files of a quorum server; a standalone one has none.
//!
//! While a synchronisation gets the log ahead of currentEpoch, that file has a second line, which Java does not read. So a start can
//! distinguish an interrupted synchronisation from a file that is a copy of an earlier time. If the epoch is not known, the first
//! line is empty: the server has been a member, and its data counts once it has acknowledged a NEWLEADER.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::disk::{self, Disk, Reading};
use crate::model::{Epoch, Epochs, Zxid};

/// What follows the number in currentEpoch while a synchronisation is under way.
const JOINING: &str = "\nsynchronising\n";

/// Which of the two epoch files (D-05).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EpochFile {
    /// The epoch whose leader this server last synchronised with.
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
    #[error("read epoch file {}: \"{}\" is not an epoch", path.display(), text.escape_debug())]
    Malformed { path: PathBuf, text: String },
    /// No server writes such files: acceptedEpoch is saved before currentEpoch.
    #[error(
        "epoch file {}: currentEpoch {current} is later than acceptedEpoch {accepted}, which no server writes",
        path.display(),
        current = current.0,
        accepted = accepted.0
    )]
    Unpromised { path: PathBuf, current: Epoch, accepted: Epoch },
    /// A server that does not know its promise may break it: two leaders in one epoch.
    #[error(
        "epoch file {} is missing, currentEpoch is {current}, and the last transaction is {last}: the epoch that this server has accepted is not known",
        path.display(),
        current = current.0
    )]
    NoPromise { path: PathBuf, current: Epoch, last: Zxid },
    /// A member has both files from its first start on.
    #[error(
        "acceptedEpoch and currentEpoch are missing in {}, and lastConfiguration there says that this server has been a member: the epoch that it has accepted is not known",
        folder.display()
    )]
    Neither { folder: PathBuf },
    /// A server saves acceptedEpoch before it logs anything of that epoch, so the file is an older copy.
    #[error(
        "epoch file {}: acceptedEpoch is {accepted}, and the last transaction is {last}, of a later epoch: the epoch that this server has accepted is not known",
        path.display(),
        accepted = accepted.0
    )]
    OldPromise { path: PathBuf, accepted: Epoch, last: Zxid },
    /// If the epoch were guessed too low, a leader with an older epoch could truncate the history.
    #[error(
        "epoch file {} is missing, acceptedEpoch is {accepted}, and the log ends with {last}: the epoch of the history is not known",
        path.display(),
        accepted = accepted.0
    )]
    NoCurrent { path: PathBuf, accepted: Epoch, last: Zxid },
    #[error("save epoch {epoch} to {}", path.display(), epoch = epoch.0)]
    Save { path: PathBuf, epoch: Epoch, source: io::Error },
}

/// What the two epoch files say, or what a crash left of the files that were to replace them (D-06).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SavedEpochs {
    pub accepted: Option<Epoch>,
    pub current: Option<Epoch>,
    /// A synchronisation was under way: see [`note_joining`].
    pub is_joining: bool,
}

impl SavedEpochs {
    /// * `dir`: `version-2` under dataDir.
    ///
    /// # Errors
    /// As [`read`] and [`newest`].
    pub fn read<D: Disk>(disk: &D, dir: &Path) -> Result<Self, EpochError> {
        let path = dir.join(EpochFile::Current.name());
        let text = match read_text(disk, &path)? {
            None => read_text(disk, &disk::temporary(&path))?,
            text => text,
        };
        Ok(Self {
            accepted: newest(disk, dir, EpochFile::Accepted)?,
            current: newest(disk, dir, EpochFile::Current)?,
            is_joining: text.is_some_and(|text| text.ends_with(JOINING)),
        })
    }

    /// The files are those of a standalone server, which has none, or of a new one.
    pub const fn say_nothing(self) -> bool {
        self.accepted.is_none() && self.current.is_none() && !self.is_joining
    }

    /// The server has promised an epoch, or may have. A first start writes both files, with the epoch of the log: 0 without one.
    pub fn show_member(self) -> bool {
        self.is_joining || Some(Epoch(0)) < self.accepted.max(self.current)
    }
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

/// The epoch in the temporary file that a crash left, `<name>.tmp` here and in Java, if there is one and it is whole (D-06).
///
/// # Errors
/// If the file is there and can't be read: its epoch may have been promised, so the caller does not go on without it.
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
    let Some(text) = read_text(disk, &path)?.filter(|text| text != JOINING) else {
        return Ok(None);
    };
    let epoch = text.lines().next().and_then(|line| line.parse().ok()).map(Epoch);
    match epoch.filter(|epoch| *epoch <= Epoch::LAST) {
        Some(epoch) => Ok(Some(epoch)),
        None => Err(EpochError::Malformed { path, text }),
    }
}

fn read_text<D: Disk>(disk: &D, path: &Path) -> Result<Option<String>, EpochError> {
    let mut bytes = Vec::new();
    match Reading::open(disk, path).and_then(|file| file.take(64).read_to_end(&mut bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(EpochError::Read { path: path.to_path_buf(), source }),
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

/// Whether currentEpoch says that a synchronisation was under way: see [`note_joining`].
///
/// # Errors
/// If the file can't be read.
pub fn is_joining<D: Disk>(disk: &D, dir: &Path) -> Result<bool, EpochError> {
    let text = read_text(disk, &dir.join(EpochFile::Current.name()))?;
    Ok(text.is_some_and(|text| text.ends_with(JOINING)))
}

/// Notes in currentEpoch that a synchronisation is under way, durably: what is logged from now on may be of a later epoch. [`save`] ends
/// that.
///
/// # Errors
/// As [`read`] and [`save`].
pub fn note_joining<D: Disk>(disk: &D, dir: &Path) -> Result<(), EpochError> {
    if is_joining(disk, dir)? {
        return Ok(());
    }
    let epoch = read(disk, dir, EpochFile::Current)?;
    let text = epoch.map_or(String::new(), |epoch| epoch.0.to_string()) + JOINING;
    let path = dir.join(EpochFile::Current.name());
    disk::replace_file(disk, &path, text.as_bytes()).map_err(|source| {
        let epoch = epoch.unwrap_or_default();
        EpochError::Save { path, epoch, source }
    })
}

/// The acceptedEpoch and the currentEpoch of this server.
///
/// * `last`: the end of its log; `None`: it has no data that counts.
///
/// A file that a crash left half replaced counts as replaced, and a missing file is written with the epoch of the log's end, as
/// in Java (D-05, D-06). Without data that counts, currentEpoch stays missing:
/// 1. The epoch of the history that this server will have is not known.
/// 2. A leader sends its tree, and a crash leaves the tree here, before its epoch is saved.
/// 3. At the next start [`check_history`] notices that: acceptedEpoch is later than the log's epoch, and currentEpoch is missing.
///
/// A log ahead of currentEpoch is left by a synchronisation that was interrupted before this server acknowledged the NEWLEADER of the log's
/// epoch. If the file says so, the server stands for the epoch in it until it acknowledges one: it may not know the configuration that
/// NEWLEADER names. Otherwise the file is a copy of an earlier time or a Java server's, which knows the configuration, or configurations do
/// not change, and the log's epoch counts. A log ahead of acceptedEpoch is left by no server: that file is a copy of an
/// earlier time. Java starts on neither.
///
/// # Errors
/// As [`read`] and [`save`], and [`EpochError::NoPromise`] and [`EpochError::OldPromise`].
pub fn promised<D: Disk>(disk: &D, dir: &Path, last: Option<Zxid>) -> Result<Epochs, EpochError> {
    let counts = last.is_some();
    let last = last.unwrap_or(Zxid::ZERO);
    let files = SavedEpochs::read(disk, dir)?;
    let found = |which| -> Result<Option<Epoch>, EpochError> {
        let newest = newest(disk, dir, which)?;
        if let Some(epoch) = newest
            && read(disk, dir, which)? < newest
        {
            // The temporary file may be in the operating system's cache only.
            save(disk, dir, which, epoch)?;
        }
        Ok(newest)
    };
    let promised = found(EpochFile::Accepted)?;
    if let Some(accepted) = promised.filter(|promised| *promised < last.epoch()) {
        let path = dir.join(EpochFile::Accepted.name());
        return Err(EpochError::OldPromise { path, accepted, last });
    }
    let found = found(EpochFile::Current)?;
    let current = match found {
        Some(found) if files.is_joining => found,
        found => found.unwrap_or(last.epoch()).max(last.epoch()),
    };
    let is_past_first = found.is_some() && Epoch(0) < last.epoch();
    if promised.is_none() && (files.show_member() || is_past_first) {
        let path = dir.join(EpochFile::Accepted.name());
        return Err(EpochError::NoPromise { path, current, last });
    }
    if let Some(found) = found.filter(|found| *found < last.epoch()) {
        let (current_epoch, last_zxid) = (found.0, last);
        if files.is_joining {
            tracing::warn!(
                current_epoch, %last_zxid,
                "the log is ahead of currentEpoch: a synchronisation was interrupted; nothing to do, this server stands for currentEpoch until it has followed a leader"
            );
        } else {
            tracing::warn!(
                current_epoch, %last_zxid,
                "the log is ahead of currentEpoch: a synchronisation was interrupted, or the file is an older copy; nothing to do, the log's epoch counts"
            );
            save(disk, dir, EpochFile::Current, current)?;
        }
    }
    let accepted = promised.unwrap_or(last.epoch()).max(current);
    // An interrupted synchronisation may extend or truncate the log, so a later start must not take a missing epoch from it again.
    for (which, epoch, there) in
        [(EpochFile::Accepted, accepted, promised), (EpochFile::Current, current, found)]
    {
        if there.is_none() && (counts || which == EpochFile::Accepted) {
            save(disk, dir, which, epoch)?;
        }
    }
    Ok(Epochs { accepted, current })
}

/// Refuses a folder without either file, if other files show that it is that of a member: it looks like that of a standalone server, and
/// the member would promise an epoch twice.
///
/// # Errors
/// As [`SavedEpochs::read`], and [`EpochError::Neither`].
pub fn check_member<D: Disk>(disk: &D, dir: &Path) -> Result<(), EpochError> {
    if SavedEpochs::read(disk, dir)?.say_nothing() {
        return Err(EpochError::Neither { folder: dir.to_path_buf() });
    }
    Ok(())
}

/// The epoch in a file, or the later one in the temporary file that a crash left.
///
/// # Errors
/// As [`read`] and [`read_left_over`].
pub fn newest<D: Disk>(
    disk: &D,
    dir: &Path,
    which: EpochFile,
) -> Result<Option<Epoch>, EpochError> {
    Ok(read(disk, dir, which)?.max(read_left_over(disk, dir, which)?))
}

/// Refuses an unknown currentEpoch if the log does not show what it was. A first start writes both files with the log's epoch, so
/// acceptedEpoch is later than that only after this server has been a member. In a synchronisation of a server that did not know its
/// epoch the log may have reached acceptedEpoch, and not the configuration that NEWLEADER names.
///
/// * `last`: the end of the log.
///
/// # Errors
/// As [`SavedEpochs::read`], and [`EpochError::NoCurrent`].
pub fn check_history<D: Disk>(disk: &D, dir: &Path, last: Zxid) -> Result<(), EpochError> {
    match SavedEpochs::read(disk, dir)? {
        SavedEpochs { accepted: Some(accepted), current: None, is_joining }
            if last.epoch() < accepted || is_joining =>
        {
            let path = dir.join(EpochFile::Current.name());
            Err(EpochError::NoCurrent { path, accepted, last })
        }
        _ => Ok(()),
    }
}

/// Refuses a currentEpoch that can be read but is no epoch that this server was in.
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
/// [`EpochError::Save`] with the disk's reason. The file holds the old value or the new then, never a part.
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
