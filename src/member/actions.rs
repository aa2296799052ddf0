//! All that a [`super::Member`] can ask for.

use super::AskId;
use super::dial::HostPort;
use super::failure::FailureCause;
use super::listening::ListenAddress;
use super::{SnapshotJob, election_connections};
use crate::model::{ServerId, View, Zxid};
use crate::replica::{RestorePlan, RestoreRefusal};
use crate::store::{self, Draft};
use crate::tree::freeze::Frozen;
use crate::zab::LearnerConnectionId;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::task::Waker;

/// What must happen. The performer does it in this order; log commands of one turn may be handed over together before
/// anything is sent.
#[derive(Debug)]
pub enum Action {
    /// For the log thread, in order; it reports with [`super::Input::Log`].
    Log(store::Command),
    /// Write the frozen tree while the server goes on working; report [`super::Input::SnapshotWritten`].
    WriteSnapshot(SnapshotJob),
    /// Remove what was written of a snapshot that is not to be used.
    DiscardSnapshot(Draft),
    /// Answer an operator's question.
    Answer {
        ask: AskId,
        answer: Answer,
    },
    /// Load the tree from the files, whose log was truncated; report [`super::Input::TreeLoaded`].
    LoadTree,
    /// Read the log from the last entry at or before `from` through `through`; report [`super::Input::LogRead`].
    ReadLog {
        connection: LearnerConnectionId,
        from: Zxid,
        through: Zxid,
        limit_bytes: u64,
    },
    SendToLearner {
        connection: LearnerConnectionId,
        bytes: Bytes,
    },
    /// SNAP and the frozen tree, in order with [`Action::SendToLearner`]; report [`super::Input::TreeSent`] once, however
    /// it ends. `learner`: its server id, if its hello has come.
    SendTree {
        connection: LearnerConnectionId,
        frozen: Frozen,
        learner: Option<i64>,
    },
    /// Close at once: what was sent before goes out only as far as the socket takes it. Report
    /// [`super::Input::Disconnected`].
    CloseLearner {
        connection: LearnerConnectionId,
    },
    /// Connect to whichever of the addresses answers first; report what comes in, or
    /// [`super::Input::Disconnected`], under this number.
    ///
    /// * `is_needed`: of [`crate::zab::Action::Connect`].
    DialLeader {
        dial: u64,
        addresses: Vec<HostPort>,
        is_needed: bool,
    },
    SendToLeader {
        bytes: Bytes,
    },
    /// Close the connection to the leader as [`Action::CloseLearner`] does, or give up the attempt at one.
    CloseLeader,
    /// An action of the election connections.
    Election(election_connections::Action),
    /// Listen for learners at these addresses and at no other.
    ListenForLearners(BTreeSet<ListenAddress>),
    /// The members of all configurations that count, and their hosts: when learner connections have to be closed for lack of
    /// memory, those of other servers are closed first; and Kerberos lets in no other host.
    SetMembers(BTreeMap<ServerId, BTreeSet<String>>),
    /// Listen for clients here from now on.
    MoveClientPort(ListenAddress),
    /// Change the configuration files before anything that follows is sent.
    ChangeConfigFiles(ConfigChange),
    Wake(Waker),
    /// The process ends.
    End(Ended),
}

/// An answer to an operator's question.
#[derive(Debug)]
pub enum Answer {
    /// To [`super::Input::TakeSnapshot`]: zxid and bytes of the snapshot, which is durable; `None`: there is none.
    Snapshot(Option<(Zxid, u64)>),
    /// To [`super::Input::PlanRestore`].
    Plan(Result<RestorePlan, RestoreRefusal>),
    /// To [`super::Input::Restore`]: the restored tree is what this server, and a quorum of its ensemble, serves.
    Restore(Result<(), RestoreRefusal>),
}

/// A change of the configuration files.
#[derive(Clone, Debug)]
pub enum ConfigChange {
    /// Copy the static file, while it still names the members.
    CopyStaticFile,
    /// Change nothing: find out whether the folder can be written to.
    TestFolder,
    /// At the start: keep a copy of the configuration in force, unless there is one. Java and earlier versions leave none.
    InForce { view: View },
    /// Keep the configurations that were proposed and count, oldest first (`.dynamic.next`).
    ///
    /// * `beside`: the configuration in force, if its operator has written it (version 0).
    Proposed { views: Vec<View>, beside: Option<View> },
    /// Remove `.dynamic.next`: the configurations in it were discarded.
    Forgotten,
    /// Make a committed configuration the one of the next start.
    ///
    /// * `has_client`: whether this server's own line has a client address. `removes_proposed`: no newer configuration
    ///   was proposed, so that `.dynamic.next` goes.
    Committed { view: View, has_client: bool, removes_proposed: bool },
}

impl ConfigChange {
    /// How the server ends because the change has failed. It can't go on: packets after the change tell other servers that
    /// it is done, and the next start reads the files.
    /// * `folder`: the folder of the files.
    pub fn failed(&self, folder: &Path, error: &io::Error) -> Ended {
        let (what, exit) = match self {
            // At the start. As Java, which ends if it can't copy the static file (`QuorumPeerConfig.backupOldConfig`).
            Self::CopyStaticFile => ("copy the static configuration file", 2),
            Self::TestFolder => ("write beside the static configuration file", 2),
            Self::InForce { .. } => {
                ("copy the configuration in force to version-2, beside that", 1)
            }
            Self::Proposed { .. } => ("save the proposed configurations", 1),
            Self::Forgotten => ("remove the discarded configuration", 1),
            Self::Committed { .. } => ("save the committed configuration", 1),
        };
        let folder = folder.display();
        let reason = format!(
            "can't {what} in {folder}: {error}. With reconfigEnabled=true the server needs to write there"
        );
        let cause = match error.kind() {
            io::ErrorKind::StorageFull => FailureCause::DiskFull,
            _ => FailureCause::Other,
        };
        Ended::Failed { reason, exit, cause }
    }
}

/// Why the server ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ended {
    /// It was asked to stop.
    Stopped,
    /// The server ends with this exit code of Java's list (P-87).
    Failed { reason: String, exit: u8, cause: FailureCause },
}
