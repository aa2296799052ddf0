//! What can happen to a peer.

use super::{LogRead, Notification, Packet};
use crate::model::{Epoch, ServerId, Zxid};
use bytes::Bytes;

/// A learner's connection to this server, as long as it leads.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LearnerConnectionId(pub u64);

/// Which promise an epoch file holds (D-05).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Promise {
    /// The epoch this server has promised to join.
    Accepted,
    /// The epoch whose leader it last synchronised with.
    Current,
}

/// All that can happen to a peer. Closed on purpose: the simulator and the fuzzer enumerate it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// 5 ms of monotonic time have passed.
    Tick,
    /// Another server says whom it wants, or whom it has, for a leader.
    Notification {
        from: ServerId,
        notification: Notification,
    },
    /// There is a new connection to another server's election port, or none any more.
    ElectionConnected {
        to: ServerId,
    },
    ElectionDisconnected {
        to: ServerId,
    },
    /// This server gives up whatever it is, so that an election follows: the zxids of its epoch are used up.
    StandDown {
        why: String,
    },
    /// The oracle says whether this server may go on without the other of two voters.
    Oracle {
        agrees: bool,
    },
    /// A transaction that `request::prep` has accepted.
    Propose {
        zxid: Zxid,
        payload: Bytes,
    },
    /// The local log is durable through `through`.
    Flushed {
        through: Zxid,
    },
    Promised {
        promise: Promise,
        epoch: Epoch,
    },
    /// The local log ends at `to`.
    Truncated {
        to: Zxid,
    },
    /// The cut that was asked for would go through a tree that came whole. Nothing was changed: log and tree end at `last`.
    CannotTruncate {
        last: Zxid,
    },
    /// The tree that came with SNAP is on disk, and so is all of [`super::Action::Install`].
    Installed {
        zxid: Zxid,
    },
    /// From a learner.
    Learner {
        connection: LearnerConnectionId,
        packet: Packet,
    },
    LearnerGone {
        connection: LearnerConnectionId,
    },
    /// A tree is on its way to a learner (`None`: from the leader) and gets on.
    Progress {
        connection: Option<LearnerConnectionId>,
    },
    /// A learner's client wants to see all that was proposed until now.
    Sync {
        connection: LearnerConnectionId,
    },
    /// The tree at `zxid` is on its way to a learner.
    SnapshotBegun {
        connection: LearnerConnectionId,
        zxid: Zxid,
    },
    /// What [`super::Action::ReadLog`] found.
    LogRead {
        connection: LearnerConnectionId,
        read: LogRead,
    },
    /// From the leader. With SNAP the tree has been read whole.
    Leader {
        packet: Packet,
    },
    LeaderGone,
}
