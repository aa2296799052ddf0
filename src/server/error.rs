//! Why a server did not start, or stopped.

use super::data_dir_lock::DataDirLockError;
use super::load_tree::RestoreError;
use crate::member::failure::{FailureCause, is_caused_by};
use crate::member::start::AssembleError;
use crate::model::chain;
use crate::net::ListenError;
use crate::net::tls::EngineError;
use crate::store::SnapshotError;
use crate::store::epoch::EpochError;
use crate::store::recover::RecoverError;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;

/// Why a server did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The secure client port.
    #[error(transparent)]
    ListenSecure(ListenError),
    /// AdminServer of a standalone server.
    #[error(transparent)]
    ListenAdmin(ListenError),
    /// The port of metrics.
    #[error(transparent)]
    ListenMetrics(ListenError),
    /// Settings or stores of TLS.
    #[error(transparent)]
    Tls(#[from] EngineError),
    /// The same of AdminServer.
    #[error("TLS of AdminServer")]
    AdminTls(#[source] EngineError),
    /// The same of the port of metrics.
    #[error("TLS of metrics")]
    MetricsTls(#[source] EngineError),
    #[error("can't prepare the data directories")]
    Folders(#[source] Box<RecoverError<Infallible>>),
    #[error(transparent)]
    DataDirLock(#[from] DataDirLockError),
    #[error("can't load the data")]
    Recover { source: Box<RecoverError<RestoreError>>, is_member: bool },
    #[error("can't use the epoch files")]
    Epoch(#[source] EpochError),
    /// A member that starts without it may lead beside the members of that configuration.
    #[error("can't use the last configuration {}", path.display())]
    LastConfiguration { path: PathBuf, source: io::Error },
    #[error("can't read or write the mark {} of a doubted tree", path.display())]
    Doubted { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Alone(AssembleError),
    #[error(
        "the data was quarantined as damaged, and no leader has sent its tree since: restore a \
         backup, then remove {}",
        mark.display()
    )]
    Unsure { mark: PathBuf },
    #[error("can't write the first snapshot")]
    Snapshot(#[from] SnapshotError),
    #[error("can't open the audit log {}", path.display())]
    Audit { path: PathBuf, source: io::Error },
    #[error("can't {what}")]
    System { what: &'static str, source: io::Error },
    #[error("can't start {what}")]
    Thread { what: &'static str, source: io::Error },
    #[error("{reason}")]
    Failed { reason: String, exit: u8, cause: FailureCause },
}

impl From<AssembleError> for ServerError {
    fn from(error: AssembleError) -> Self {
        match error {
            AssembleError::Epoch(error) => Self::Epoch(error),
            AssembleError::LastInForce { path, source } => Self::LastConfiguration { path, source },
            AssembleError::Doubt { path, source } => Self::Doubted { path, source },
            AssembleError::Alone { .. } => Self::Alone(error),
        }
    }
}

impl ServerError {
    /// The process's exit code, from Java's list (P-87).
    pub fn exit_code(&self) -> u8 {
        match self {
            // Java only checks that it exists and is writable, and fails later.
            Self::Folders(error) if matches!(**error, RecoverError::NotAFolder { .. }) => 1,
            // Java resolves the host while it reads the configuration.
            Self::Listen(ListenError::Resolve { .. })
            | Self::ListenSecure(ListenError::Resolve { .. })
            | Self::Tls(_) => 2,
            Self::Folders(_) | Self::DataDirLock(_) => 3,
            Self::ListenAdmin(_) | Self::AdminTls(_) => 4,
            Self::Snapshot(_) => 10,
            Self::Failed { exit, .. } => *exit,
            // 14 is for quorum and election ports; a client port in use gives 1 in Java too.
            Self::Listen(ListenError::Bind { .. })
            | Self::ListenMetrics(_)
            | Self::MetricsTls(_)
            | Self::ListenSecure(ListenError::Bind { .. })
            | Self::Recover { .. }
            | Self::Epoch(_)
            | Self::LastConfiguration { .. }
            | Self::Doubted { .. }
            | Self::Alone(_)
            | Self::Unsure { .. }
            | Self::Audit { .. }
            | Self::Thread { .. }
            | Self::System { .. } => 1,
        }
    }

    /// The setting that is most likely to blame.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Tls(error) => error.key(),
            Self::Listen(ListenError::Bind { source, .. })
                if source.kind() != io::ErrorKind::AddrNotAvailable =>
            {
                Some("clientPort")
            }
            Self::ListenSecure(ListenError::Bind { source, .. })
                if source.kind() != io::ErrorKind::AddrNotAvailable =>
            {
                Some("secureClientPort")
            }
            Self::ListenMetrics(ListenError::Bind { .. }) => Some("metricsProvider.httpPort"),
            Self::ListenMetrics(ListenError::Resolve { .. }) => Some("metricsProvider.httpHost"),
            Self::ListenAdmin(ListenError::Bind { .. }) => Some("admin.serverPort"),
            Self::ListenAdmin(ListenError::Resolve { .. }) => Some("admin.serverAddress"),
            Self::Listen(_) => Some("clientPortAddress"),
            Self::ListenSecure(_) => Some("secureClientPortAddress"),
            Self::Folders(_)
            | Self::DataDirLock(_)
            | Self::Recover { .. }
            | Self::Epoch(_)
            | Self::LastConfiguration { .. }
            | Self::Doubted { .. }
            | Self::Alone(_)
            | Self::Unsure { .. }
            | Self::Snapshot(_) => Some("dataDir"),
            Self::Audit { .. } => Some("audit.enable"),
            Self::AdminTls(error) | Self::MetricsTls(error) => error.key(),
            Self::System { .. } | Self::Thread { .. } | Self::Failed { .. } => None,
        }
    }

    /// What to do about it, unless the error itself says so.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Failed { cause, .. } => of_failure(*cause),
            _ if is_caused_by(self, io::ErrorKind::StorageFull) => {
                of_failure(FailureCause::DiskFull)
            }
            Self::ListenAdmin(ListenError::Bind { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                Some(
                    "stop what listens there, choose another port by admin.serverPort, \
                     or turn AdminServer off by admin.enableServer=false",
                )
            }
            Self::Listen(ListenError::Bind { source, .. })
            | Self::ListenAdmin(ListenError::Bind { source, .. })
            | Self::ListenMetrics(ListenError::Bind { source, .. })
            | Self::ListenSecure(ListenError::Bind { source, .. }) => match source.kind() {
                io::ErrorKind::AddrInUse => Some("stop what listens there or choose another port"),
                io::ErrorKind::PermissionDenied => Some("choose a port above 1023"),
                io::ErrorKind::AddrNotAvailable => Some("name an address of this machine"),
                _ => None,
            },
            Self::Listen(_)
            | Self::ListenSecure(_)
            | Self::ListenAdmin(_)
            | Self::ListenMetrics(_) => Some("name a host or address of this machine"),
            Self::Audit { .. } => {
                Some("name a directory that this user may write to by -Dzookeeper.log.dir")
            }
            Self::Snapshot(_) => Some("check the disk, and the rights of dataDir"),
            Self::Thread { .. } => of_failure(FailureCause::Thread),
            Self::Recover { .. } | Self::Epoch(_) | Self::LastConfiguration { .. }
                if is_caused_by(self, io::ErrorKind::PermissionDenied) =>
            {
                Some("give this user all files of dataDir and dataLogDir (chown -R)")
            }
            Self::Recover { source, is_member } => source.advice(*is_member),
            Self::Epoch(EpochError::Read { .. } | EpochError::Save { .. }) => {
                Some("check the disk, and the rights of dataDir")
            }
            Self::Epoch(EpochError::OldPromise { .. }) => Some(
                "keep both folders, and follow docs/operations.md, \"Files of different times\"",
            ),
            Self::Epoch(EpochError::Neither { .. }) => Some(
                "empty this member's version-2 folders, and the leader sends its tree: docs/operations.md, \"Replace a disk\"; \
                 if all members go back to one backup, remove lastConfiguration from all of them, too",
            ),
            Self::Epoch(_) | Self::LastConfiguration { .. } => Some(
                "empty this member's version-2 folders, and the leader sends its tree: docs/operations.md, \"Replace a disk\"",
            ),
            Self::Alone(_) => Some(
                "add the ensemble's server.N lines to zoo.cfg; if this server is to be alone from now on, remove version-2/lastConfiguration",
            ),
            Self::DataDirLock(DataDirLockError::Taken(_)) => {
                Some("stop the other server or name another directory")
            }
            Self::Folders(error) => advice_on_folders(error),
            _ => None,
        }
    }

    /// The error and its causes on one line.
    pub fn line(&self) -> String {
        chain(self)
    }
}

/// What to do about a failure of the running server.
const fn of_failure(cause: FailureCause) -> Option<&'static str> {
    match cause {
        FailureCause::Disk => Some(
            "check the disk and the rights of its folders, then start again: what is on disk is replayed",
        ),
        FailureCause::DiskFull => Some("make room: docs/operations.md, \"The disk is full\""),
        FailureCause::Thread => Some("raise ulimit -u"),
        FailureCause::Other => None,
    }
}

const fn advice_on_folders(error: &RecoverError<Infallible>) -> Option<&'static str> {
    match error {
        // These errors say what to do themselves.
        RecoverError::Misplaced { .. }
        | RecoverError::NotAFolder { .. }
        | RecoverError::NoLogFolder { .. }
        | RecoverError::OtherLogFolder { .. }
        | RecoverError::LogsElsewhere { .. }
        | RecoverError::LogsGone { .. } => None,
        RecoverError::NotWritable { .. } => {
            Some("give this user the right to write there (chown -R)")
        }
        _ => Some(
            "name a directory that this user may write to; with datadir.autocreate=false it has to exist",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: P-87
    #[test]
    fn exit_codes_are_javas() {
        let io = || io::Error::other("x");
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let folder = RecoverError::Folder { path: "/d".into(), source: io() };
        let file = RecoverError::NotAFolder { path: "/d".into() };
        let host = "h".to_owned();
        for (error, code) in [
            (ServerError::Listen(ListenError::Bind { address, source: io() }), 1),
            (ServerError::Listen(ListenError::Resolve { host, source: io() }), 2),
            (ServerError::Folders(Box::new(folder)), 3),
            (ServerError::Folders(Box::new(file)), 1),
            (ServerError::System { what: "x", source: io() }, 1),
            (failed(FailureCause::Other, 7), 7),
        ] {
            assert_eq!(error.exit_code(), code);
        }
    }

    fn failed(cause: FailureCause, exit: u8) -> ServerError {
        ServerError::Failed { reason: String::new(), exit, cause }
    }

    #[test]
    fn advice_follows_the_cause_whatever_the_text_says() {
        let full =
            || EpochError::Read { path: "/d".into(), source: io::Error::from_raw_os_error(28) };
        let denied =
            EpochError::Read { path: "/d".into(), source: io::Error::from_raw_os_error(13) };
        let failure = |error: &EpochError| failed(FailureCause::of_disk(error), 1);
        for (error, begins) in [
            (failure(&full()), "make room"),
            (failure(&denied), "check the disk"),
            (failed(FailureCause::Thread, 10), "raise ulimit"),
            (ServerError::Epoch(full()), "make room"),
            (ServerError::Epoch(denied), "give this user"),
            (ServerError::Thread { what: "x", source: io::Error::other("x") }, "raise ulimit"),
        ] {
            let advice = error.advice();
            assert!(
                advice.is_some_and(|advice| advice.starts_with(begins)),
                "{begins}: {advice:?}"
            );
        }
        assert_eq!(failed(FailureCause::Other, 10).advice(), None);
    }
}
