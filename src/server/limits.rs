//! The process's resource limits.

use super::error::ServerError;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

/// Raises the soft limit on open files to the hard limit, as a JVM does: each client connection is a file. If the system
/// refuses, the limit stays as it was.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(
            limit = limit.maximum,
            limit_before = limit.current,
            "raised the limit on open files"
        ),
        Err(error) => {
            let limit = limit.current;
            tracing::warn!(limit, %error, "can't raise the limit on open files: set ulimit -n");
        }
    }
}

/// Makes a write above the file size limit (`ulimit -f`) fail like any other write. Without this the signal XFSZ would end
/// the process without a log line. A JVM ignores the signal as well.
///
/// # Errors
/// When the signal can't be caught.
pub fn survive_file_limit() -> Result<(), ServerError> {
    let caught = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    // The signal stays caught after its listener is dropped.
    caught.map(drop).map_err(|source| ServerError::System { what: "catch the signal XFSZ", source })
}

/// The same before there is a runtime, for the files of the log. [`survive_file_limit`] says so if it fails again.
pub fn survive_file_limit_early() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _later = runtime.block_on(async { survive_file_limit() });
    }
}
