//! Inputs: what can happen to a `Peer`.

use super::{LogRead, Notification, Packet};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;

/// Milliseconds of an [`Input::Tick`].
pub(super) const TICK_MS: u64 = 5;

/// A connection from a learner to this server, while it leads or is an observer master.
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

/// All that can happen to a `Peer`. Closed on purpose: the simulator and the fuzzer enumerate the inputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// 5 ms of monotonic time have passed.
    Tick,
    /// A notification from an election connection: another server's vote, or the leader that it follows.
    Notification {
        from: ServerId,
        notification: Notification,
    },
    /// An election connection to another server was opened, or [has ended](Self::ElectionDisconnected).
    ElectionConnected {
        to: ServerId,
    },
    ElectionDisconnected {
        to: ServerId,
    },
    /// A dial has not reached another server's election port, and there is no election connection to that server.
    ElectionUnreached {
        to: ServerId,
    },
    /// The zxids of this epoch are used up: this server gives up its role, so that an election follows.
    StandDown {
        why: String,
    },
    /// A snapshot is restored over this leader's history, which ends at `zxid` from now on: the leader gives up its role, and stands
    /// for election once that is on disk. Any other role ignores it.
    ///
    /// * `past`: the next epoch is to be later than this one.
    Restore {
        zxid: Zxid,
        past: Option<Epoch>,
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
    /// The log can't be truncated there, because the tree begins later. Nothing was changed: log and tree end at `last`.
    CannotTruncate {
        last: Zxid,
    },
    /// The tree that came with SNAP is on disk, and so is all of [`super::Action::Install`].
    Installed {
        zxid: Zxid,
    },
    /// The configurations in the tree that came with SNAP, oldest first.
    TreeViews {
        views: Vec<View>,
    },
    /// A packet from a learner.
    Learner {
        connection: LearnerConnectionId,
        packet: Packet,
    },
    LearnerGone {
        connection: LearnerConnectionId,
    },
    /// Some more bytes of a tree were sent to a learner, or received from the leader (`None`).
    Progress {
        connection: Option<LearnerConnectionId>,
    },
    /// A client of a learner asks for SYNC: it is to see all that was proposed until now.
    Sync {
        connection: LearnerConnectionId,
    },
    /// The tree at `zxid` is on its way to a learner.
    SnapshotBegun {
        connection: LearnerConnectionId,
        zxid: Zxid,
    },
    /// The result of [`super::Action::ReadLog`].
    LogRead {
        connection: LearnerConnectionId,
        read: LogRead,
    },
    /// A packet from the leader. With SNAP, the whole tree has been read.
    Leader {
        packet: Packet,
    },
    LeaderGone,
}
