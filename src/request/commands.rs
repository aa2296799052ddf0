//! The commands that client connections send to `replica`.

use super::outbox::Conn;
use crate::model::sync::Arc;
use crate::model::{Identity, SessionId};

/// A command of one client connection to `replica`.
pub enum ClientCommand {
    /// Create a session.
    ///
    /// * `received_us`: monotonic microseconds at which the connect request was read.
    Open { conn: Arc<Conn>, timeout_ms: i32, received_us: u64 },
    /// Move an existing session to this connection; the client sent the session's password.
    Reopen { conn: Arc<Conn>, session: SessionId, timeout_ms: i32 },
    /// Process writes and syncs, in request order.
    Writes(Batch),
    /// The connection is closed.
    Gone { conn: Arc<Conn> },
}

/// Writes and syncs of one connection that were read in the same turn.
pub struct Batch {
    pub conn: Arc<Conn>,
    pub session: SessionId,
    /// Identities of the client when the requests were read.
    pub who: std::sync::Arc<[Identity]>,
    /// The request bodies, one after the other.
    pub bytes: Vec<u8>,
    pub requests: Vec<BatchedRequest>,
    /// Monotonic microseconds at which the requests were read.
    pub received_us: u64,
}

/// One request of a [`Batch`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchedRequest {
    pub xid: i32,
    pub op: i32,
    /// End of the body in the batch's bytes; the body begins at the end of the previous one.
    pub end: usize,
    /// Size of the frame if it counts as large (`largeRequestThreshold`), else 0.
    pub large_bytes: u32,
    /// A sync that the server added itself: no client gets its reply, but later reads wait for it.
    pub is_silent: bool,
}
