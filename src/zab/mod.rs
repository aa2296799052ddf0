//! Agreement: who leads, and in which order transactions are committed.
//!
//! [`Peer`] is the machine of one server. It looks for a leader (`election`), leads ([`Leader`]) or learns
//! ([`Learner`]); what all three share is its [`Core`]: the view, the epochs it promised, and the [`History`]. Payloads are opaque
//! bytes. A server that is alone is a leader too: its own disk is the quorum, and a proposal takes the same way as among
//! several: append, flush, count, commit.
//!
//! # Invariants
//! 1. `committed <= acked by a quorum <= proposed`.
//! 2. An epoch is on disk before anybody is told of it, and a history before the epoch that stands for it.
//! 3. What a synchronisation brought counts as committed at UPTODATE only, a leader's own history at its quorum of
//!    NEWLEADER acknowledgements.
//! 4. Election begins once all that was appended is durable.
//!
//! After each step every machine asserts what holds of it (`assert_invariants`), in release builds too: each of these takes the same
//! time in an ensemble of any size. Those that look at every learner are for tests and the simulator. No packet or notification
//! breaks one: what another server says is judged before it is taken in.
//!
//! # Not here
//! What a payload means (`tree`), what it answers (`request`), how it is stored (`store`).

mod bring_up;
mod broadcast;
mod core;
pub mod election;
mod history;
mod invariants;
mod leader;
mod learner;
mod learner_handler;
mod notes;
mod oracle;
mod packet;
mod peer;
mod reconfig;
mod sync;

pub use core::{Core, Settings};
pub use election::{Notification, PeerState, Views, Vote};
pub use history::History;
pub use leader::Leader;
pub use learner::Learner;
pub use notes::{How, Learners, Note, Stats, Sync};
pub use packet::{LearnerInfo, Packet, PacketError, Request, SIGNATURE};
pub use peer::{Peer, Role};
pub use sync::LogRead;

use crate::model::{Epoch, ServerId, View, Zxid};
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
    Heard {
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
    Uncuttable {
        last: Zxid,
    },
    /// The tree that came with SNAP is on disk, and so is all of [`Action::Install`].
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
    /// What [`Action::ReadLog`] found.
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
    /// Answer with [`Input::Promised`] once it is durable.
    Promise {
        promise: Promise,
        epoch: Epoch,
    },
    /// Cut everything greater off the log, and off what is not committed; answer with [`Input::Truncated`] once the log
    /// is cut and the tree holds nothing of it, or with [`Input::Uncuttable`]. Nothing is to be appended before that.
    Truncate {
        to: Zxid,
    },
    /// The tree that came with SNAP takes the place of the old one, in memory and durably on disk; answer with
    /// [`Input::Installed`]. A [`Action::Truncate`] before it is done first, and never [`Input::Uncuttable`]: what cannot be
    /// cut is replaced. Nothing is to be appended before that.
    Install {
        zxid: Zxid,
    },
    /// Bytes for a learner, in order.
    ToLearner {
        connection: LearnerConnectionId,
        bytes: Bytes,
    },
    /// SNAP and the tree as it is now, in order with [`Action::ToLearner`]; answer with [`Input::SnapshotBegun`]. Nothing
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
    /// Reach the leader and say [`Input::LeaderGone`] when that fails.
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
    HangUp,
    /// Clients are served from here on: as leader of `epoch`, all history applied.
    Lead {
        epoch: Epoch,
    },
    /// Clients are served from here on, by the leader's word.
    Follow {
        leader: ServerId,
        epoch: Epoch,
    },
    /// Nobody is served any more.
    Rest,
    /// For another server's election port, in the place of whatever is unsent to it.
    Tell {
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
    ViewDecided {
        view: View,
        is_last: bool,
    },
    /// An election begins. All that was appended is durable.
    Look {
        why: String,
    },
}
