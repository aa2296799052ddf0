//! What the system allows this process.

use super::error::ServerError;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// Raises the limit of open files as far as the process itself may, as a JVM does: each client is a file. What the
/// system refuses leaves it as it was.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!("open files: up to {:?}, was {:?}", limit.maximum, limit.current),
        Err(error) => tracing::warn!("open files: {:?} stays the limit: {error}", limit.current),
    }
}

/// A file that grows above the limit of the process (`ulimit -f`) is an error of its write, told as any other of the
/// disk; without this the system would end the process, which could say nothing. A JVM ignores the signal as well.
///
/// # Errors
/// When the signal can't be caught.
pub fn survive_file_limit() -> Result<(), ServerError> {
    let caught = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    // It stays caught, whether somebody listens or not.
    caught.map(drop).map_err(|source| ServerError::System { what: "catch the signal XFSZ", source })
}
