//! Actions: what a `Peer` asks its driver to do.

use super::{LearnerConnectionId, Notification, Packet, Promise};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;

/// All that a `Peer` can ask for. The driver performs actions in the order in which they were pushed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Append {
        zxid: Zxid,
        payload: Bytes,
    },
    Commit {
        through: Zxid,
    },
    /// Answer with [`super::Input::Promised`] once it is durable.
    Promise {
        promise: Promise,
        epoch: Epoch,
    },
    /// Truncate the log, and the transactions that are not committed, after `to`. Answer with [`super::Input::Truncated`] once
    /// the log is truncated and the tree holds nothing of it, or with [`super::Input::CannotTruncate`]. Append nothing before.
    ///
    /// * `before_tree`: an [`Action::Install`] follows. The truncation is made in any case, because the tree replaces everything.
    Truncate {
        to: Zxid,
        before_tree: bool,
    },
    /// The tree that came with SNAP takes the place of the old one, in memory and durably on disk; answer with
    /// [`super::Input::Installed`]. Append nothing before that.
    Install {
        zxid: Zxid,
    },
    /// Bytes for a learner, in order.
    ToLearner {
        connection: LearnerConnectionId,
        bytes: Bytes,
    },
    /// SNAP and the tree as it is now, in order with [`Action::ToLearner`]; answer with
    /// [`super::Input::SnapshotBegun`]. Do nothing while too many trees are under way: this one is asked for again.
    ///
    /// * `is_member`: the learner is in a configuration.
    SendSnapshot {
        connection: LearnerConnectionId,
        is_member: bool,
    },
    /// Read the log, from the last entry at or before `from` through `through`.
    ReadLog {
        connection: LearnerConnectionId,
        from: Zxid,
        through: Zxid,
    },
    CloseLearner {
        connection: LearnerConnectionId,
        why: String,
    },
    /// A packet about clients of a learner: REQUEST, REVALIDATE, PING.
    FromLearner {
        connection: LearnerConnectionId,
        packet: Packet,
    },
    /// Connect to the leader; answer with [`super::Input::LeaderGone`] when that fails.
    ///
    /// * `is_needed`: its election connection is up, and no other server can be elected now. So nothing is lost by waiting
    ///   while its port refuses, and this server will notice if the leader ends or votes for another one.
    Connect {
        leader: ServerId,
        is_needed: bool,
    },
    ToLeader {
        bytes: Bytes,
    },
    /// A packet of the leader about clients of this server: SYNC, REVALIDATE, PING.
    FromLeader {
        packet: Packet,
    },
    Disconnect,
    /// Clients are served from here on: as leader of `epoch`, all history applied.
    Lead {
        epoch: Epoch,
    },
    /// Clients are served from here on: the leader has sent UPTODATE.
    Follow {
        leader: ServerId,
        epoch: Epoch,
    },
    /// Serve no client any more.
    StopServing,
    /// Send to another server's election port, in place of an unsent notification.
    SendNotification {
        to: ServerId,
        notification: Notification,
    },
    /// Dial the election port of every voter without an election connection.
    DialAll,
    /// Dial the election port of one server, unless there is an election connection.
    Dial {
        to: ServerId,
    },
    /// Note in currentEpoch, before anything that follows is on disk, that a synchronisation gets the history ahead of it.
    NoteJoining,
    /// A configuration was proposed and is in the log, or NEWLEADER alone names it: keep all that were proposed and count for
    /// the next start, before anything that follows is sent, and reach their members. `views`: oldest first, at least one.
    ViewsProposed {
        views: Vec<View>,
    },
    /// The configurations that were kept for the next start were never committed: remove them.
    ViewForgotten,
    /// A configuration is in force: make it the one of the next start, before anything that follows is sent.
    /// `is_last`: no newer configuration is proposed.
    ViewCommitted {
        view: View,
        is_last: bool,
    },
    /// An election begins. All that was appended is durable.
    Look {
        why: String,
    },
}
