//! The commands that client connections send to `replica`.

use super::outbox::ClientHandle;
use super::throttle::Load;
use crate::model::sync::Arc;
use crate::model::{Identity, SessionId};

/// A command of one client connection to `replica`.
pub enum ClientCommand {
    Open(OpenSession),
    Reopen(ReopenSession),
    /// Process writes and syncs, in request order.
    Writes(Batch),
    /// The connection is closed.
    Gone {
        conn: Arc<ClientHandle>,
    },
}

/// Create a session.
#[derive(Clone)]
pub struct OpenSession {
    pub conn: Arc<ClientHandle>,
    pub timeout_ms: i32,
    /// Monotonic microseconds at which the connect request was read.
    pub received_us: u64,
}

/// Move an existing session to this connection; the client sent the session's password.
#[derive(Clone)]
pub struct ReopenSession {
    pub conn: Arc<ClientHandle>,
    pub session: SessionId,
    pub timeout_ms: i32,
}

/// Writes and syncs of one connection that were read in the same turn.
pub struct Batch {
    pub conn: Arc<ClientHandle>,
    pub session: SessionId,
    /// Identities of the client when the requests were read.
    pub identities: std::sync::Arc<[Identity]>,
    /// The request bodies, one after the other.
    pub bytes: Vec<u8>,
    pub requests: Vec<BatchedRequest>,
    /// Sum of the loads of `requests`: needed before each of them.
    pub(super) load: Load,
    /// Monotonic microseconds at which the requests were read.
    pub received_us: u64,
}

impl BatchedRequest {
    /// Its load in [`Throttle`](super::Throttle) until it is answered.
    pub fn load(&self) -> Load {
        Load { requests: 1, bytes: u64::from(self.bytes), large_bytes: u64::from(self.large_bytes) }
    }
}

/// One request of a [`Batch`], with what it shares with the others.
#[derive(Clone, Copy)]
pub struct BatchedWrite<'a> {
    pub batch: &'a Batch,
    pub request: &'a BatchedRequest,
    pub body: &'a [u8],
}

impl Batch {
    /// A batch without requests.
    pub fn new(
        conn: Arc<ClientHandle>,
        session: SessionId,
        identities: std::sync::Arc<[Identity]>,
        received_us: u64,
    ) -> Self {
        let (bytes, requests, load) = (Vec::new(), Vec::new(), Load::default());
        Self { conn, session, identities, bytes, requests, load, received_us }
    }

    /// The load of all its requests until they are answered.
    pub const fn load(&self) -> Load {
        self.load
    }

    /// Adds a request whose body is the last of the bytes.
    pub fn push(&mut self, request: BatchedRequest) {
        self.load += request.load();
        self.requests.push(request);
    }

    /// The requests in their order.
    pub fn writes(&self) -> impl Iterator<Item = BatchedWrite<'_>> {
        let mut start = 0;
        self.requests.iter().map(move |request| {
            let body = &self.bytes[start..request.end];
            start = request.end;
            BatchedWrite { batch: self, request, body }
        })
    }
}

/// One request of a [`Batch`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchedRequest {
    pub xid: i32,
    pub op: i32,
    /// End of the body in the batch's bytes; the body begins at the end of the previous one.
    pub end: usize,
    /// Bytes of its body, of its client's identities, and of what [`expansion`](super::expansion()) counts: its load until it is answered.
    pub bytes: u32,
    /// Size of the frame if it counts as large (`largeRequestThreshold`), else 0.
    pub large_bytes: u32,
    /// A sync that the server added itself: no client gets its reply, but later reads wait for it.
    pub is_silent: bool,
}
