//! Starting from what is on disk, and what a member does when that can't be done.

use super::boot::ServerError;
use super::driver::chain;
use super::restore::{RestoreError, Restorer};
use crate::store::aside::{self, Rescue, Trouble};
use crate::store::decide::Start;
use crate::store::epoch;
use crate::store::{Disk, Folders, RecoverError, RecoverOptions, Recovered, recover};
use std::io;
use std::time::Instant;

/// Restores what the disk holds; a member that can't, and whose promises are known, puts it aside and knows nothing.
///
/// * `is_member`: of an ensemble.
///
/// # Errors
/// [`ServerError::Recover`] where nothing may be put aside ([`aside::rescue`]), [`ServerError::Unsure`] for a server that is alone
/// with data that was put aside.
pub fn restore<D: Disk>(
    disk: &D,
    folders: &Folders,
    is_member: bool,
    wanted: RecoverOptions,
    restorer: &mut Restorer,
) -> Result<Recovered, ServerError> {
    let is_marked = aside::is_marked(disk, folders);
    let is_marked = is_marked.map_err(|source| system("look for the mark of lost data", source))?;
    if is_marked && !is_member {
        return Err(ServerError::Unsure { mark: aside::mark(folders) });
    }
    let began = Instant::now();
    let mut load = |wanted| -> Result<Recovered, RecoverError<RestoreError>> {
        recover(disk, folders, wanted, restorer, move || began.elapsed())
    };
    let (why, trouble, error) = if is_marked {
        ("no leader has sent its tree since".to_owned(), Trouble::Log, None)
    } else if let Err(error) = epoch::check_current(disk, &folders.snapshots)
        && is_member
    {
        let error = system("read the epochs promised to", io::Error::other(error));
        (error.line(), Trouble::CurrentEpoch, Some(error))
    } else {
        match load(wanted) {
            Ok(recovered) => return Ok(recovered),
            Err(error) => {
                let (why, trouble) = (chain(&error), aside::trouble(&error));
                (why, trouble, Some(ServerError::Recover(Box::new(error))))
            }
        }
    };
    let may = aside::rescue(trouble, is_member) == Rescue::PutAside
        && aside::knows_promises(disk, &folders.snapshots);
    if let Some(error) = error
        && !may
    {
        return Err(error);
    }
    let files = aside::put_aside(disk, folders)
        .map_err(|error| system("put damaged data aside", io::Error::other(error)))?;
    tracing::error!(
        why,
        ?files,
        "this server's data can't be used and was put aside: it votes for nobody and counts for nothing until a leader has sent its tree; \
         without a majority of others give the files their names back, mend them, and remove {}; until then a Java server must not be started here",
        aside::mark(folders).display()
    );
    let nothing = RecoverOptions { autocreate: false, ..wanted };
    let recovered = load(nothing).map_err(|error| ServerError::Recover(Box::new(error)))?;
    Ok(Recovered { start: Start::Unsure, last: None, ..recovered })
}

const fn system(what: &'static str, source: io::Error) -> ServerError {
    ServerError::System { what, source }
}
