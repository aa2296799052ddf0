//! What goes into the replica and what comes out of it: inputs, actions, settings, mode.

use crate::model::Zxid;
use crate::request::ClientCommand;
use crate::request::prep::Rules;
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::zab::{self, LearnerConnectionId};
use bytes::Bytes;
use std::task::Waker;

/// Milliseconds of one [`Input::Tick`].
pub const TICK_MS: u64 = 5;

/// All that can happen to the replica; [`super::Replica::set_now`] says when.
pub enum Input {
    /// 5 ms of monotonic time have passed.
    Tick { wall_ms: i64 },
    /// A command of a client's connection.
    Command { command: ClientCommand, wall_ms: i64 },
    /// The log is durable through `through`.
    Flushed { through: Zxid },
    /// A snapshot was written or sent, or was given up.
    SnapshotEnded(Frozen),
    /// An input of `zab`: from another server, or the disk's answer to an action of `zab`.
    Peer(zab::Input),
    /// SNAP came from the leader, and this is its tree.
    LeaderTree { zxid: Zxid, tree: Box<Tree> },
    /// The tree as the log on disk has it, after [`Action::Rebuild`].
    ///
    /// * `differs_since`: see [`crate::tree::rebuild::Comparison`].
    Rebuilt { tree: Box<Tree>, differs_since: Option<Zxid> },
}

/// All the replica can ask for, to be done in the order it was pushed.
#[derive(Debug)]
pub enum Action {
    Append {
        zxid: Zxid,
        entry: Bytes,
    },
    /// The next entry starts a new log file.
    Roll,
    /// Write the frozen tree; report [`Input::SnapshotEnded`].
    Snapshot(Frozen),
    /// The next snapshot is of a tree that does not fit the digests in the log, which later starts can't see any more: note it.
    NoteDoubt,
    /// The tree has a digest of the leader's: remove that note, if there is one.
    ForgetDoubt,
    /// The tree has another digest than the leader's since this transaction: note it, so that a later start takes its own data for whole.
    NoteDifference {
        since: Zxid,
    },
    /// Write the frozen tree, start a new log file; report [`Input::SnapshotEnded`], then [`zab::Input::Installed`].
    Install(Frozen),
    /// The tree that is restored was written: its snapshot takes the place of all others, and of the log. Report it with
    /// [`super::Replica::restored`].
    PlaceRestored,
    /// Send the frozen tree to a learner, in order with what else it is sent; report [`Input::SnapshotEnded`].
    SendTree {
        connection: LearnerConnectionId,
        frozen: Frozen,
    },
    /// Load the tree again from the disk, whose log was truncated; report [`Input::Rebuilt`].
    Rebuild,
    /// An action of `zab` for the connections to other servers or for the disk. Never `Append` or `Commit`.
    Peer(zab::Action),
    Wake(Waker),
    /// This server can go no further; the process ends with this reason.
    Stop(&'static str),
}

/// What becomes of a snapshot that an operator asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskedSnapshot {
    Begun(Frozen),
    /// Another one is still being written.
    Later,
    /// This server serves no leader's history.
    Refused,
}

/// The settings of a replica.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Width of session buckets: tickTime.
    pub tick_time_ms: u64,
    /// First session id to try; later ones count up from it (P-15).
    pub first_session: i64,
    /// Transactions and log bytes after which a snapshot is due, at the most; half of each is random.
    pub snap_count: u64,
    pub snap_size_bytes: u64,
    /// Connections without a session are closed after this long.
    pub sessionless_timeout_ms: u64,
    /// `znode.container.checkIntervalMs`: containers and TTL znodes are checked this often.
    pub container_check_interval_ms: u64,
    /// `znode.container.maxPerMinute`: at most this many of them are deleted, evenly over the minute.
    pub container_max_per_minute: u64,
    /// `znode.container.maxNeverUsedIntervalMs`; 0: a container that never had children stays.
    pub container_max_never_used_ms: u64,
    /// `leaderServes`: whether a leader has clients of its own.
    pub leader_serves: bool,
    /// `localSessionsEnabled`, of a member: new sessions are known to their server only.
    pub local_sessions: bool,
    /// `localSessionsUpgradingEnabled`: a local session becomes a global one when it creates an ephemeral znode.
    pub local_upgrades: bool,
    /// `enableEagerACLCheck`, of a member: a write that the tree as it is forbids is refused without the leader.
    pub eager_acl_check: bool,
    /// `oxkeeper.quorumSync`: a sync is answered after a transaction of its own, which a quorum has acknowledged.
    pub quorum_sync: bool,
    /// `oxkeeper.connectHold`: a connect request that comes within this time after an election began waits for its end.
    pub connect_hold_ms: u64,
    /// `readonlymode.enabled`: read-only clients are served without a leader.
    pub read_only: bool,
    /// `audit.enable`: events are left in `Figures::audit`.
    pub audits: bool,
    /// Counter of the last zxid that a leader gives out in its epoch. A server always has [`Zxid::COUNTER_MAX`]; only tests and the
    /// simulator set less, so that epochs end after few transactions.
    pub counter_max: u32,
    pub rules: Rules,
    pub seed: u64,
}

impl Settings {
    /// Java's defaults.
    pub const DEFAULT: Self = Self {
        tick_time_ms: 3000,
        first_session: 1,
        snap_count: 100_000,
        snap_size_bytes: 4 << 30,
        sessionless_timeout_ms: 10_000,
        container_check_interval_ms: 60_000,
        container_max_per_minute: 10_000,
        container_max_never_used_ms: 0,
        leader_serves: true,
        local_sessions: false,
        local_upgrades: false,
        eager_acl_check: false,
        quorum_sync: false,
        connect_hold_ms: 500,
        read_only: false,
        audits: false,
        counter_max: Zxid::COUNTER_MAX,
        rules: Rules::DEFAULT,
        seed: 1,
    };
}

/// What this server is to its clients: the name of its role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// No client is served.
    Resting,
    /// There is no leader, and read-only clients are served.
    ReadOnly,
    Standalone,
    Leading,
    Following,
    Observing,
}
