//! What a client may ask, when it may be answered, and with what bytes.
//!
//! A connection is one pure machine ([`Connection`]): frames, handshake, gate, outbox. It answers reads itself under the
//! shared lock of the tree; writes become [`Command`]s to `replica`, which has them judged by [`prep`], and answers
//! through the connection's [`Conn`]. `net` moves the bytes.
//!
//! # Invariants
//! 1. Replies leave in request order: a read waits until every earlier write and sync of its connection is answered,
//!    and everything behind a waiting read waits with it. Writes follow writes without waiting (P-83).
//! 2. An event caused by a transaction stands in a connection's bytes before any reply that shows the change (P-33).
//! 3. No lock is held while another of an earlier kind is taken: tree, watch shard, outbox.

pub mod access;
mod ahead;
mod blue;
mod conn_stats;
mod connection;
mod conns;
mod create;
mod expiry;
pub mod foreign;
mod greet;
mod identify;
#[cfg(test)]
mod identify_tests;
pub mod multi;
mod namespaces;
mod outbox;
mod password;
mod pending;
pub mod prep;
mod quota;
mod read;
mod reconfig;
pub mod reply;
mod tally;
mod throttle;
mod watches;
mod writes;

pub use blue::Connects;
pub use conn_stats::{Answered, ConnFigures, ConnStats};
pub use connection::{Connection, Counts, EnsembleCounts, Need};
pub use conns::Conns;
pub use expiry::{Owner, Session, Sessions};
pub use namespaces::{Namespace, Namespaces};
pub use outbox::{Conn, Outgoing};
pub use password::password;
pub use reconfig::Ensemble;
pub use tally::{FrameSizes, Tally};
pub use throttle::{Done, Throttle};

use crate::model::sync::{Arc, AtomicBool, AtomicU64};
use crate::model::{Identity, SessionId};
use crate::tree::State;

/// What every connection is told.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest frame in bytes: `jute.maxbuffer`.
    pub frame_max: usize,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    /// Writes that may be under way before those who wait for one are read no further: `globalOutstandingLimit`.
    pub outstanding_max: u64,
    /// Writes under way above which every other one waits: `request_throttle_max_requests`; `None`: no limit.
    pub requests_max: Option<u64>,
    /// A write that has waited longer is refused with -127: `throttled_op_wait_time`; `None`: never.
    pub op_wait_max_us: Option<u64>,
    /// One that has waited longer than its session's timeout closes its connection: `request_throttle_drop_stale` with
    /// `request_stale_latency_check`.
    pub drops_late: bool,
    /// Frames above this many bytes are large: `largeRequestThreshold`.
    pub large_from: Option<usize>,
    /// Bytes of large writes that may be under way: `largeRequestMaxBytes`.
    pub large_bytes_max: u64,
    /// `connection_throttle_*`; `None`: clients may connect as fast as they like.
    pub connects: Option<Connects>,
    /// `skipACL`.
    pub skip_acl: bool,
    /// Reads wait until the leader has said what was committed before them: `oxkeeper.linearizableReads`.
    pub linearizable_reads: bool,
    /// How clients can show who they are.
    pub schemes: crate::auth::Schemes,
    /// Four-letter words this server knows: looked for in the first four bytes of a connection.
    pub words: Vec<[u8; 4]>,
}

impl Default for Limits {
    /// What Java has unless it is told otherwise; no words.
    fn default() -> Self {
        Self {
            frame_max: 0xf_ffff,
            min_session_timeout_ms: 6000,
            max_session_timeout_ms: 60_000,
            outstanding_max: 1000,
            requests_max: None,
            op_wait_max_us: None,
            drops_late: false,
            large_from: None,
            large_bytes_max: 100 << 20,
            connects: None,
            skip_acl: false,
            linearizable_reads: false,
            schemes: crate::auth::Schemes::default(),
            words: Vec::new(),
        }
    }
}

impl Limits {
    /// Whether a frame that is `len` bytes long counts against [`Limits::large_bytes_max`].
    pub(crate) fn is_large(&self, len: usize) -> bool {
        self.large_from.is_some_and(|from| len > from)
    }
}

/// What the connections share with each other and with `replica`.
pub struct Shared {
    pub state: State,
    pub conns: Conns,
    pub throttle: Throttle,
    pub limits: Limits,
    /// Monotonic milliseconds, moved on by `replica`'s tick.
    pub clock_ms: AtomicU64,
    /// No leader is known: clients are turned away. Set by `replica`.
    pub at_rest: AtomicBool,
    /// Only those who asked for no more than reading are served.
    pub is_read_only: AtomicBool,
}

impl Shared {
    /// Whether one of `who` has a permission of `wanted` on what `acl` guards.
    pub fn permits(&self, acl: &[crate::model::Acl], wanted: i32, who: &[Identity]) -> bool {
        self.limits.skip_acl || crate::auth::permits(&self.limits.schemes, acl, wanted, who)
    }
}

/// What a connection asks of `replica`.
pub enum Command {
    /// A new session.
    ///
    /// * `received_us`: monotonic microseconds at which it was read.
    Open { conn: Arc<Conn>, timeout_ms: i32, received_us: u64 },
    /// An existing session, whose password was right.
    Reopen { conn: Arc<Conn>, session: SessionId, timeout_ms: i32 },
    /// Writes and syncs in request order.
    Writes(Batch),
    /// The connection is no more.
    Gone { conn: Arc<Conn> },
}

/// Writes of one connection that arrived together.
pub struct Batch {
    pub conn: Arc<Conn>,
    pub session: SessionId,
    /// Who the connection had shown to be when they arrived.
    pub who: std::sync::Arc<[Identity]>,
    /// The bodies, one behind the other.
    pub bytes: Vec<u8>,
    pub requests: Vec<Asked>,
    /// Monotonic microseconds at which they were read.
    pub received_us: u64,
}

/// One request of a [`Batch`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Asked {
    pub xid: i32,
    pub op: i32,
    /// Where the body ends in the batch's bytes; it begins where the one before ends.
    pub end: usize,
    /// The size of its frame if that is large, or 0.
    pub large_bytes: u32,
    /// A sync that no client asked for, and none is told of: reads behind it wait.
    pub is_silent: bool,
}
