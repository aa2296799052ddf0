//! What has failed when a server can't go on, as far as an operator can do something about it.

use std::error::Error;
use std::io;

/// Decides what the operator is advised to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureCause {
    /// The disk of the log or of the snapshots.
    Disk,
    DiskFull,
    /// The system has no thread.
    Thread,
    /// The reason itself says what to do, or nothing is known.
    Other,
}

impl FailureCause {
    /// * `error`: of the disk.
    pub fn of_disk(error: &(dyn Error + 'static)) -> Self {
        if is_caused_by(error, io::ErrorKind::StorageFull) { Self::DiskFull } else { Self::Disk }
    }
}

/// Whether an error, or one of its causes, is the system's error of this kind.
pub fn is_caused_by(error: &(dyn Error + 'static), kind: io::ErrorKind) -> bool {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let mut systems = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    systems.any(|error| error.kind() == kind)
}
