//! One request on its way through the order of transactions.

use crate::model::sync::Arc;
use crate::model::{Code, SessionId, Zxid, op};
use crate::request::{AuditedWrite, Batch, BatchedRequest, ClientHandle, Load};
use bytes::Bytes;

/// A write or sync on its way: proposed, or waiting for what was proposed before it.
pub struct Inflight {
    /// `None`: the request takes no zxid and is answered once all requests before it are.
    pub zxid: Option<Zxid>,
    pub entry: Bytes,
    /// The result of a request without a zxid. Its `entry` is the request's body, which the answer to a sync repeats.
    pub code: Code,
    /// The connection that waits for the answer; `None` for requests of the server itself or of another server's client.
    pub conn: Option<Arc<ClientHandle>>,
    pub session: SessionId,
    pub xid: i32,
    pub op: i32,
    pub received_us: u64,
    /// A sync that the connection sends for itself: its client gets no answer.
    pub is_silent: bool,
    /// Its load in [`crate::request::Throttle`].
    pub load: Load,
    /// `None`: the audit log will not record it.
    pub audited: Option<Box<AuditedWrite>>,
}

impl Inflight {
    /// A request of this server's client, before it is processed.
    pub fn asked(batch: &Batch, asked: &BatchedRequest) -> Self {
        Self {
            conn: Some(batch.conn.clone()),
            xid: asked.xid,
            received_us: batch.received_us,
            is_silent: asked.is_silent,
            load: asked.load(),
            ..Self::of_server(batch.session, asked.op)
        }
    }

    /// A request of the server itself, or of a connection before it has a session.
    pub fn of_server(session: SessionId, op: i32) -> Self {
        Self {
            zxid: None,
            entry: Bytes::new(),
            code: Code::OK,
            conn: None,
            session,
            xid: 0,
            op,
            received_us: 0,
            is_silent: false,
            load: Load::default(),
            audited: None,
        }
    }

    /// A transaction that no client of this server waits for.
    pub fn of_others() -> Self {
        Self::of_server(SessionId(0), 0)
    }

    /// The same request, whose connection is not answered.
    pub fn unanswered(self) -> Self {
        Self { conn: None, ..self }
    }

    /// Whether it is a sync: it takes no zxid.
    pub fn is_sync(&self) -> bool {
        self.zxid.is_none() && self.op == op::SYNC
    }
}
