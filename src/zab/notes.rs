//! What a `Peer` has done, for operators: numbers, and events that are worth a line in the log.

use super::PeerState;
use crate::model::{Epoch, ServerId, Zxid};

/// Plain counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// As leader: transactions proposed and committed.
    pub proposals: u64,
    pub commits: u64,
    /// As learner that serves: transactions proposed and committed.
    pub proposals_heard: u64,
    pub commits_heard: u64,
    /// Elections begun.
    pub elections: u64,
    /// Times a leader gave up because its voters had changed their votes.
    pub disloyal: u64,
}

/// How a learner is synchronised with its leader's history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SyncType {
    /// The learner is sent the transactions that it lacks.
    Diff,
    /// The learner is sent the transactions that it lacks, after it truncated transactions that were never committed.
    Trunc { to: Zxid },
    /// The learner is sent the whole tree.
    Snap { zxid: Zxid },
}

impl SyncType {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Diff => "DIFF",
            Self::Trunc { .. } => "TRUNC",
            Self::Snap { .. } => "SNAP",
        }
    }

    pub const fn is_tree(self) -> bool {
        matches!(self, Self::Snap { .. })
    }
}

/// The synchronisation of a learner, as its leader sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sync {
    pub learner: ServerId,
    pub is_observer: bool,
    pub sync_type: SyncType,
    /// Transactions that it was sent in addition to the tree.
    pub txns: u64,
}

/// What has just happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    /// An election begins.
    Looking { why: String },
    /// The election is over; this server's role is `state`.
    Elected { leader: ServerId, state: PeerState },
    /// The tree does not fit the digests in the log. It counts nevertheless, because no server has led for initLimit.
    Believed,
    /// The same, because a quorum of the others would elect a server without any history.
    BelievedBesideEmpty,
    /// The configuration in force has changed.
    Reconfigured { version: i64 },
    /// A learner is being synchronised. `under_way`: number of learners in this kind of synchronisation.
    SyncBegun { sync: Sync, under_way: u64 },
    /// The learner has acknowledged NEWLEADER. `under_way`: number of learners that are still in this kind of synchronisation.
    SyncEnded { sync: Sync, under_way: u64 },
    /// The leader's epoch is known, and the synchronisation begins.
    Synchronising { leader: ServerId, epoch: Epoch },
    /// Clients are served, as leader of `epoch`, with `voters`, which have its history.
    Leads { epoch: Epoch, voters: Vec<ServerId> },
    /// Whether the leader commits without the other of two voters has changed, as its oracle allows it or no longer does.
    Alone { is_alone: bool },
    /// Clients are served: `leader` has sent UPTODATE. `txns`: received before that, in addition to the tree.
    Learns { leader: ServerId, epoch: Epoch, sync_type: SyncType, txns: u64 },
}

/// What another server lacks of what this leader has committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerLag {
    pub id: ServerId,
    pub is_connected: bool,
    /// Committed bytes that it has not acknowledged; `None`: it is not connected.
    pub lag_bytes: Option<u64>,
}

/// A leader's learners, counted as Java does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Learners {
    /// All that are connected.
    pub connected: u64,
    /// Learners that are sent proposals, whether they vote or not.
    pub followers: u64,
    /// Followers that do not vote.
    pub non_voting: u64,
    pub observers: u64,
}
