//! The handle of a learner connection, the state that its tasks share with it, and the events that they report.

use crate::member::CLOSED_BY_PEER;
use crate::member::quorum_connection::{QuorumEvent, QuorumPeer};
use crate::member::quorum_outbox::{Next, OutboxEvent, QuorumOutbox, TreeToSend};
use crate::net::Sink;
use crate::zab::LearnerConnectionId;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Events of one connection's received bytes that may wait for the driver; while there are this many, the connection is not read.
pub const REPORTS_MAX: usize = 8;

/// An event of a learner connection.
pub enum PeerEvent {
    Accepted {
        connection: LearnerConnectionId,
        handle: PeerHandle,
        peer: SocketAddr,
    },
    /// * `permit`: one of the connection's `REPORTS_MAX`, until the driver takes the event.
    Received {
        from: QuorumPeer,
        event: QuorumEvent,
        permit: Option<OwnedSemaphorePermit>,
    },
    Sent {
        to: QuorumPeer,
        event: OutboxEvent,
    },
    Gone {
        from: QuorumPeer,
        why: String,
    },
}

/// Locks a mutex that is held only while a machine steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic aborts")
}

/// The state that the handle and the tasks of a connection share.
pub(super) struct ConnectionState {
    pub peer: QuorumPeer,
    pub outbox: Mutex<QuorumOutbox>,
    /// Notified when something was put into the outbox.
    pub wake: Notify,
    /// Notified when answers were sent and reading may go on.
    pub answers_sent: Notify,
    /// Permits of events of received bytes; see [`Self::report_received`].
    pub permits: Arc<Semaphore>,
    pub began: Instant,
    pub events: Sink<PeerEvent>,
}

impl ConnectionState {
    /// The time that the connection's machines are given.
    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub fn at(&self, ms: u64) -> Instant {
        self.began + std::time::Duration::from_millis(ms)
    }

    pub fn report(&self, event: PeerEvent) {
        self.events.put(event);
    }

    /// Waits while too many events of this connection wait for the driver. This ends, because the driver takes events without
    /// waiting for any socket, and drops those that come after its own end.
    pub async fn report_received(&self, event: QuorumEvent) {
        let permit = self.permits.clone().acquire_owned().await.ok(); // It is never closed.
        self.report(PeerEvent::Received { from: self.peer, event, permit });
    }

    /// Waits while many answers to a learner are unsent: the learner asks and does not read, so it is not read either. Its
    /// connection is closed when it was silent for too long, so this wait ends too. A leader is always read, so two oxkeeper
    /// servers never wait for each other.
    pub async fn may_read(&self) {
        let is_learner = matches!(self.peer, QuorumPeer::Learner(_));
        while is_learner && lock(&self.outbox).has_many_answers() {
            self.answers_sent.notified().await;
        }
    }

    /// Takes the next bytes to send out of the outbox.
    pub fn next_to_send(&self) -> Next {
        let mut outbox = lock(&self.outbox);
        let had_many = outbox.has_many_answers();
        let next = outbox.next(self.now_ms());
        if had_many && !outbox.has_many_answers() {
            self.answers_sent.notify_one();
        }
        next
    }

    pub fn report_sent(&self, events: Vec<OutboxEvent>) {
        for event in events {
            self.report(PeerEvent::Sent { to: self.peer, event });
        }
    }
}

/// A connection to a peer. When this is dropped, bytes that were put are sent as far as the socket takes them at once, and the
/// connection is closed.
pub struct PeerHandle {
    pub(super) state: Arc<ConnectionState>,
    pub(super) unsent: Vec<Bytes>,
    pub(super) stop: CancellationToken,
}

impl PeerHandle {
    /// Puts bytes after all that was put before; [`Self::flush`] sends them.
    pub fn put(&mut self, bytes: Bytes) {
        self.unsent.push(bytes);
    }

    /// Packets that wait for the socket, and their bytes.
    pub fn unsent(&self) -> (u64, u64) {
        let (packets, bytes) = lock(&self.state.outbox).waiting();
        (packets + self.unsent.len() as u64, bytes)
    }

    /// Sends the bytes that were put. `false`: too much is unsent, and the connection was given up.
    pub fn flush(&mut self) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        let is_kept = lock(&self.state.outbox).put(std::mem::take(&mut self.unsent));
        self.state.wake.notify_one();
        if !is_kept {
            self.stop.cancel();
        }
        is_kept
    }

    /// Sends a tree after all that was put before. The end of the tree is reported once, however the connection ends.
    pub fn send_tree(&mut self, tree: TreeToSend) {
        self.flush();
        let mut events = Vec::new();
        lock(&self.state.outbox).put_tree(tree, self.state.now_ms(), &mut events);
        self.state.wake.notify_one();
        self.state.report_sent(events);
    }
}

impl Drop for PeerHandle {
    fn drop(&mut self) {
        self.flush();
        self.stop.cancel();
    }
}

/// Reports the end of a connection, however it comes about.
pub(super) struct Ending {
    pub state: Arc<ConnectionState>,
    pub why: String,
}

impl Ending {
    pub fn because(&mut self, ended: Result<(), String>) {
        self.why = ended.err().unwrap_or_else(|| CLOSED_BY_PEER.to_owned());
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut events = Vec::new();
        lock(&self.state.outbox).close(self.state.now_ms(), &mut events);
        self.state.report_sent(events);
        let why = std::mem::take(&mut self.why);
        self.state.report(PeerEvent::Gone { from: self.state.peer, why });
    }
}
