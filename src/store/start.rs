//! How a server gets its state when it starts: from disk, or, if it is a member whose data is damaged, from its next leader.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::decide::Start;
use super::disk::Disk;
use super::epoch::{self, EpochError};
use super::names::Folders;
use super::quarantine::{self, Remedy, StartFailure};
use super::recover::{RecoverError, RecoverOptions, Recovered, Restore, recover};
use crate::model::chain;

/// The outcome of [`restore`].
#[derive(Debug)]
pub struct Found {
    pub recovered: Recovered,
    /// The data could not be used and is quarantined: this member has no history that counts until a leader has sent its tree.
    pub was_quarantined: bool,
}

/// Why a server can't start from its files.
#[derive(Debug, thiserror::Error)]
pub enum StartError<E: Error + 'static> {
    #[error(transparent)]
    Recover(#[from] Box<RecoverError<E>>),
    #[error("read the epoch files")]
    Epoch(#[source] EpochError),
    /// A standalone server whose data was quarantined while it was a member.
    #[error("the data was quarantined as damaged: restore it, then remove {}", mark.display())]
    Unsure { mark: PathBuf },
    #[error("{what}")]
    Disk { what: &'static str, source: io::Error },
}

/// Loads the state that the disk holds. A member whose data is damaged, and whose promised epochs are known, quarantines
/// the data and starts without any.
///
/// * `clock`: any monotonic time.
///
/// # Errors
/// [`StartError::Recover`] or [`StartError::Epoch`] where nothing may be quarantined ([`quarantine::rescue`]).
pub fn restore<D: Disk, R: Restore>(
    disk: &D,
    folders: &Folders,
    wanted: RecoverOptions,
    state: &mut R,
    clock: impl Fn() -> Duration,
) -> Result<Found, StartError<R::Error>>
where
    R::Error: 'static,
{
    let is_member = wanted.is_member;
    let failed = |what| move |source| StartError::Disk { what, source };
    let is_marked = quarantine::is_marked(disk, folders)
        .map_err(failed("look for the mark of quarantined data"))?;
    if is_marked && !is_member {
        return Err(StartError::Unsure { mark: quarantine::mark(folders) });
    }
    let (trouble, error) = if is_marked {
        (StartFailure::Log, None)
    } else if let Err(error) = epoch::check_current(disk, &folders.snapshots)
        && is_member
    {
        (StartFailure::CurrentEpoch, Some(StartError::Epoch(error)))
    } else {
        match recover(disk, folders, wanted, state, &clock) {
            Ok(recovered) => match recovered.last {
                Some(last)
                    if is_member
                        && let Err(error) =
                            epoch::check_history(disk, &folders.snapshots, last) =>
                {
                    let trouble = match &error {
                        EpochError::Read { .. } => StartFailure::Access,
                        _ => StartFailure::CurrentEpoch,
                    };
                    (trouble, Some(StartError::Epoch(error)))
                }
                _ => return Ok(Found { recovered, was_quarantined: false }),
            },
            Err(error) => (quarantine::trouble(&error), Some(StartError::Recover(Box::new(error)))),
        }
    };
    let may_quarantine = quarantine::rescue(trouble, is_member) == Remedy::Quarantine
        && quarantine::knows_promises(disk, folders)
            .map_err(failed("look for snapshots and logs"))?;
    let why = match error {
        Some(error) if !may_quarantine => return Err(error),
        error => error.map(|error| chain(&error)),
    };
    let files = quarantine::rename_as_damaged(disk, folders)
        .map_err(|error| failed("quarantine damaged data")(io::Error::other(error)))?;
    log_quarantine(&folders.snapshots, why, &files);
    let nothing = RecoverOptions { autocreate: false, ..wanted };
    let recovered = recover(disk, folders, nothing, state, &clock)
        .map_err(|error| StartError::Recover(Box::new(error)))?;
    let recovered = Recovered { start: Start::Unsure, last: None, ..recovered };
    Ok(Found { recovered, was_quarantined: true })
}

/// * `why`: what is wrong with the data; `None`: it was quarantined at an earlier start. `files`: what was renamed now.
fn log_quarantine(path: &Path, why: Option<String>, files: &[PathBuf]) {
    let path = path.display();
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let files = (!files.is_empty()).then(|| files.join(" "));
    match why {
        Some(error) => tracing::error!(
            %path,
            %error,
            paths = files.as_ref().map(display),
            "this member's data can't be used and was quarantined; nothing to do while a majority of the others runs: a leader sends its tree, \
             and until then this server does not vote. Without that majority follow docs/operations.md, \"Damaged data\". Start no Java \
             server on this folder meanwhile"
        ),
        None => tracing::error!(
            %path,
            paths = files.as_ref().map(display),
            "this member's data was quarantined earlier, and no leader has sent its tree since; nothing to do while a majority of the others \
             runs: a leader sends it, and until then this server does not vote. Without that majority follow docs/operations.md, \
             \"Damaged data\". Start no Java server on this folder meanwhile"
        ),
    }
}
