//! One server per data directory.
//!
//! Two servers that write one log destroy it. Java does not notice, so long as their ports differ. The lock is the
//! kernel's, on the folder itself: there is no lock file that could confuse Java or a backup, and nothing to clean up after a crash.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How long the lock is waited for: a server that was killed may take a moment to end.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Why a data folder can't be locked.
#[derive(Debug, thiserror::Error)]
pub enum DataDirLockError {
    #[error("another server uses {}", .0.display())]
    Taken(PathBuf),
    #[error("can't open {}", .0.display())]
    Open(PathBuf, #[source] io::Error),
}

/// The locks on the data folders, released when this is dropped.
#[derive(Debug)]
pub struct DataDirLock {
    _held: Vec<File>,
}

impl DataDirLock {
    /// Locks the folders of snapshots and logs, which may be one.
    ///
    /// # Errors
    /// [`DataDirLockError::Taken`] when another process has one of them and keeps it.
    pub fn acquire(snapshots: &Path, logs: &Path) -> Result<Self, DataDirLockError> {
        Self::within(snapshots, logs, PATIENCE)
    }

    fn within(snapshots: &Path, logs: &Path, patience: Duration) -> Result<Self, DataDirLockError> {
        let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let mut dirs = vec![real(snapshots), real(logs)];
        dirs.dedup(); // A second lock on the same folder would wait for the first.
        let held = dirs.into_iter().map(|dir| lock(&dir, patience));
        Ok(Self { _held: held.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect() })
    }
}

/// Locks one folder; `None`: the file system has no locks, so the server runs without one.
fn lock(dir: &Path, patience: Duration) -> Result<Option<File>, DataDirLockError> {
    let file = File::open(dir).map_err(|error| DataDirLockError::Open(dir.to_owned(), error))?;
    let began = Instant::now();
    let mut is_logged = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) if began.elapsed() < patience => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::warn!(path = %dir.display(), "another server uses the folder, and this one waits for 5 s: stop the other one, or name another folder");
                }
                thread::sleep(PAUSE);
            }
            Err(Errno::WOULDBLOCK) => return Err(DataDirLockError::Taken(dir.to_owned())),
            Err(error) => {
                let path = dir.display();
                tracing::warn!(%path, %error, "folder not locked: start no second server on it");
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (data, logs) = (dir.path().join("data"), dir.path().join("logs"));
        std::fs::create_dir(&data).unwrap();
        std::fs::create_dir(&logs).unwrap();
        let lock = |a: &Path, b: &Path| DataDirLock::within(a, b, Duration::ZERO);
        let first = lock(&data, &logs).unwrap();
        for (a, b) in [(&data, &data), (&logs, &logs)] {
            assert!(matches!(lock(a, b), Err(DataDirLockError::Taken(_))), "{a:?}");
        }
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "nothing is left in the folder");
        drop(first);
        let both = lock(&data, &data).unwrap();
        assert!(lock(&logs, &data).is_err());
        drop(both);
        lock(&logs, &data).unwrap();
    }
}
