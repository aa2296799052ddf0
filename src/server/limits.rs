//! What the system allows this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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
