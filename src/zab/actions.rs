//! What a peer asks for.

use super::{LearnerConnectionId, Notification, Packet, Promise};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;

/// All a peer can ask for. The driver performs actions in the order they were pushed.
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
    /// Cut everything greater off the log, and off what is not committed; answer with [`super::Input::Truncated`] once the log
    /// is cut and the tree holds nothing of it, or with [`super::Input::CannotTruncate`]. Nothing is to be appended before that.
    Truncate {
        to: Zxid,
    },
    /// The tree that came with SNAP takes the place of the old one, in memory and durably on disk; answer with
    /// [`super::Input::Installed`]. A [`Action::Truncate`] before it is done first, and never [`super::Input::CannotTruncate`]: what cannot be
    /// cut is replaced. Nothing is to be appended before that.
    Install {
        zxid: Zxid,
    },
    /// Bytes for a learner, in order.
    ToLearner {
        connection: LearnerConnectionId,
        bytes: Bytes,
    },
    /// SNAP and the tree as it is now, in order with [`Action::ToLearner`]; answer with [`super::Input::SnapshotBegun`]. Nothing
    /// while another one is under way: it is asked for again.
    SendSnapshot {
        connection: LearnerConnectionId,
    },
    /// Read the log from the last entry at or before `from` through `through`.
    ReadLog {
        connection: LearnerConnectionId,
        from: Zxid,
        through: Zxid,
    },
    CloseLearner {
        connection: LearnerConnectionId,
        why: String,
    },
    /// What a learner's clients want: REQUEST, REVALIDATE, PING.
    FromLearner {
        connection: LearnerConnectionId,
        packet: Packet,
    },
    /// Reach the leader and say [`super::Input::LeaderGone`] when that fails.
    Connect {
        leader: ServerId,
    },
    ToLeader {
        bytes: Bytes,
    },
    /// What the leader says to this server's clients: SYNC, REVALIDATE, PING.
    FromLeader {
        packet: Packet,
    },
    Disconnect,
    /// Clients are served from here on: as leader of `epoch`, all history applied.
    Lead {
        epoch: Epoch,
    },
    /// Clients are served from here on, by the leader's word.
    Follow {
        leader: ServerId,
        epoch: Epoch,
    },
    /// No client is served any more.
    StopServing,
    /// For another server's election port, in the place of whatever is unsent to it.
    SendNotification {
        to: ServerId,
        notification: Notification,
    },
    /// Dial the election port of everyone without a connection.
    DialAll,
    /// A configuration was proposed: keep it for the next start, and reach its members.
    ViewProposed {
        view: View,
    },
    /// A configuration is in force: make it the one of the next start, before anything that follows is sent.
    /// `is_last`: none that was proposed is newer.
    ViewCommitted {
        view: View,
        is_last: bool,
    },
    /// An election begins. All that was appended is durable.
    Look {
        why: String,
    },
}
