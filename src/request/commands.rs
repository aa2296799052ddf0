//! What connections ask of `replica`.

use super::outbox::Conn;
use crate::model::sync::Arc;
use crate::model::{Identity, SessionId};

/// What a connection asks of `replica`.
pub enum ClientCommand {
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
    pub requests: Vec<BatchedRequest>,
    /// Monotonic microseconds at which they were read.
    pub received_us: u64,
}

/// One request of a [`Batch`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchedRequest {
    pub xid: i32,
    pub op: i32,
    /// Where the body ends in the batch's bytes; it begins where the one before ends.
    pub end: usize,
    /// The size of its frame if that is large, or 0.
    pub large_bytes: u32,
    /// A sync that no client asked for, and none is told of: reads behind it wait.
    pub is_silent: bool,
}
