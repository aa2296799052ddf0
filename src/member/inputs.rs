//! All that can happen to a [`super::Member`].

use super::failure::FailureCause;
use super::quorum_connection::QuorumEvent;
use super::quorum_outbox::OutboxEvent;
use super::{AskId, QuorumPeer, SnapshotJob, election_connections};
use crate::model::{Zxid, chain};
use crate::replica::{RestorePlan, RestoreQuestion};
use crate::request::ClientCommand;
use crate::store::disk::is_echo;
use crate::store::{Draft, SnapshotError, worker};
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::tree::rebuild::Comparison;
use crate::zab::{LearnerConnectionId, LogRead, Packet};

/// When an input happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Now {
    /// Monotonic microseconds since the server began.
    pub us: u64,
    /// Wall-clock milliseconds since 1970.
    pub wall_ms: i64,
}

/// All that can happen to a server.
pub enum Input {
    /// Time has passed. To be given after the other inputs that wait, so that a process that stood still hears its peers and
    /// clients before it counts them as silent.
    Timer,
    Client(ClientCommand),
    /// The log thread reports.
    Log(worker::Event),
    /// The snapshot thread is done.
    ///
    /// * `draft`: all of the snapshot, on disk under a temporary name; `None` unless it was written whole.
    SnapshotWritten {
        job: SnapshotJob,
        draft: Option<Draft>,
    },
    /// An operator wants a snapshot of the tree as it is now, or later.
    TakeSnapshot {
        ask: AskId,
    },
    /// An operator wants to restore a snapshot.
    PlanRestore {
        ask: AskId,
        question: RestoreQuestion,
    },
    /// Restore this tree.
    ///
    /// * `draft`: all of it, on disk under a temporary name.
    Restore {
        ask: AskId,
        plan: RestorePlan,
        tree: Box<Tree>,
        draft: Draft,
    },
    /// A tree was sent to a learner, or will not be.
    TreeSent(Frozen),
    /// The tree as the log on disk has it, after [`super::Action::LoadTree`].
    /// * `differs_since`: see [`Comparison`].
    TreeLoaded {
        tree: Box<Tree>,
        differs_since: Option<Zxid>,
    },
    /// What [`super::Action::ReadLog`] found.
    LogRead {
        connection: LearnerConnectionId,
        read: LogRead,
    },
    /// The oracle's answer has changed.
    Oracle {
        agrees: bool,
    },
    /// A learner has connected to the quorum port. * `address`: where it comes from.
    LearnerConnected {
        connection: LearnerConnectionId,
        address: String,
    },
    /// Packets came in, in order, at least one.
    Packets {
        from: QuorumPeer,
        packets: Vec<Packet>,
    },
    /// SNAP came from the leader, and this is its tree.
    LeaderTree {
        dial: u64,
        zxid: Zxid,
        tree: Box<Tree>,
    },
    /// A tree that is sent or received over this connection makes progress.
    Progress {
        from: QuorumPeer,
    },
    /// The connection has ended, or could not be made.
    Disconnected {
        from: QuorumPeer,
        why: String,
    },
    /// Something happened to an election connection.
    Election(election_connections::Input),
    /// Finish the requests of clients, then end.
    Stop,
    /// Something that the server cannot do without has failed.
    ///
    /// * `exit`: exit code, from Java's list (P-87).
    Failed {
        reason: String,
        exit: u8,
        cause: FailureCause,
    },
}

impl Input {
    /// The input for an event of the receiving half of a learner connection; `None`: there is none.
    pub fn received(from: QuorumPeer, event: QuorumEvent) -> Option<Self> {
        Some(match (from, event) {
            (_, QuorumEvent::Packets(packets)) => Self::Packets { from, packets },
            (_, QuorumEvent::Progress) => Self::Progress { from },
            (QuorumPeer::Leader { dial }, QuorumEvent::Tree { zxid, tree }) => {
                Self::LeaderTree { dial, zxid, tree }
            }
            // A learner sends no tree.
            (QuorumPeer::Learner(_), QuorumEvent::Tree { .. }) => return None,
        })
    }

    /// The input for an event of the sending half.
    pub const fn sent(to: QuorumPeer, event: OutboxEvent) -> Self {
        match event {
            OutboxEvent::Progress => Self::Progress { from: to },
            OutboxEvent::TreeEnded(frozen) => Self::TreeSent(frozen),
        }
    }

    /// The input when a snapshot could not be written; `None`: the log thread met the disk's error first, and reports it.
    /// As Java: a server that can't write snapshots must not go on (D-34).
    pub fn snapshot_failed(error: &SnapshotError) -> Option<Self> {
        let reason = format!("write snapshot: {}", chain(error));
        let cause = FailureCause::of_disk(error);
        (!is_echo(error)).then_some(Self::Failed { reason, exit: 10, cause })
    }

    /// The input for the result of [`super::Action::LoadTree`].
    ///
    /// * `loaded`: with how the tree compared with the digests in the log.
    pub fn tree_loaded(loaded: Result<(Tree, Comparison), String>) -> Self {
        match loaded {
            Ok((tree, Comparison { differs_since, .. })) => {
                Self::TreeLoaded { tree: Box::new(tree), differs_since }
            }
            Err(reason) => Self::Failed { reason, exit: 1, cause: FailureCause::Other },
        }
    }

    /// The input when no thread could be started for a snapshot. Other servers wait for a leader's tree to be on disk:
    /// without it this server can't go on.
    pub fn snapshot_not_begun(job: SnapshotJob) -> Self {
        match job.is_leaders {
            true => Self::Failed {
                reason: "can't start the snapshot thread".to_owned(),
                exit: 10,
                cause: FailureCause::Thread,
            },
            false => Self::SnapshotWritten { job, draft: None },
        }
    }
}
