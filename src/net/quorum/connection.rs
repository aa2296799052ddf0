//! One learner connection, as long as its handle is kept.

use super::PeerEvent;
use super::receive::receive;
use super::send::send;
use crate::member::awaiting_hello::AwaitingHello;
use crate::member::quorum_connection::{QuorumConnection, QuorumPeer};
use crate::member::quorum_outbox::{OutboxEvent, QuorumOutbox, TreeToSend};
use crate::zab::LinkId;
use bytes::Bytes;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Connections of one listener on which no hello has come, and what closes them.
pub(super) type AwaitingHellos = Mutex<AwaitingHello<(SocketAddr, CancellationToken)>>;

/// Locks what is held only while a machine steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic aborts")
}

/// What the handle and the tasks of a connection share.
pub(super) struct ConnectionState {
    pub peer: QuorumPeer,
    pub outbox: Mutex<QuorumOutbox>,
    /// Something was put into the outbox.
    pub wake: Notify,
    began: Instant,
    events: UnboundedSender<PeerEvent>,
}

impl ConnectionState {
    /// Time of the connection's machines.
    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub fn at(&self, ms: u64) -> Instant {
        self.began + std::time::Duration::from_millis(ms)
    }

    /// `false`: the server stops.
    pub fn report(&self, event: PeerEvent) -> bool {
        self.events.send(event).is_ok()
    }

    pub fn report_sent(&self, events: Vec<OutboxEvent>) {
        for event in events {
            let _stopping = self.report(PeerEvent::Sent { to: self.peer, event });
        }
    }
}

/// A connection to a peer, which is closed when this is dropped.
pub struct PeerHandle {
    state: Arc<ConnectionState>,
    unsent: Vec<Bytes>,
    stop: CancellationToken,
}

impl PeerHandle {
    /// Puts bytes after all that was put before; [`Self::flush`] sends them.
    pub fn put(&mut self, bytes: Bytes) {
        self.unsent.push(bytes);
    }

    /// Sends what was put. `false`: so much is unsent that the connection was given up.
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

    /// Sends a tree after all that was put before. That it has ended is reported once, however the connection ends.
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
        self.stop.cancel();
    }
}

/// Serves a connection until its handle is dropped or it ends, which is reported.
///
/// * `connecting`: gives the connection; what is sent meanwhile waits.
pub fn start(
    connecting: impl Future<Output = io::Result<TcpStream>> + Send + 'static,
    connection: QuorumConnection,
    events: UnboundedSender<PeerEvent>,
) -> PeerHandle {
    serve(connecting, connection, (CancellationToken::new(), None), events)
}

/// * `stop`: closes the connection. `waiting`: told when the peer has sent its hello.
pub(super) fn serve(
    connecting: impl Future<Output = io::Result<TcpStream>> + Send + 'static,
    connection: QuorumConnection,
    (stop, waiting): (CancellationToken, Option<(LinkId, Arc<AwaitingHellos>)>),
    events: UnboundedSender<PeerEvent>,
) -> PeerHandle {
    let state = Arc::new(ConnectionState {
        peer: connection.peer(),
        outbox: Mutex::default(),
        wake: Notify::new(),
        began: Instant::now(),
        events,
    });
    let handle = PeerHandle { state: state.clone(), unsent: Vec::new(), stop: stop.clone() };
    let mut ending = Ending { state, waiting, why: "its task failed".to_owned() };
    tokio::spawn(async move {
        let transfer = transfer(connecting, connection, &ending);
        let ended = tokio::select! {
            biased;
            // What was put before the handle was dropped is sent if the socket takes it.
            ended = transfer => ended,
            () = stop.cancelled() => Err("closed here".to_owned()),
        };
        ending.because(ended);
    });
    handle
}

async fn transfer(
    connecting: impl Future<Output = io::Result<TcpStream>>,
    connection: QuorumConnection,
    ending: &Ending,
) -> Result<(), String> {
    let stream = connecting.await.map_err(|error| error.to_string())?;
    let _best_effort = stream.set_nodelay(true);
    let (reading, writing) = stream.into_split();
    tokio::select! {
        ended = receive(reading, connection, ending) => ended,
        ended = send(writing, &ending.state) => ended,
    }
}

/// Reports the end of a connection, however it comes about.
pub(super) struct Ending {
    pub state: Arc<ConnectionState>,
    waiting: Option<(LinkId, Arc<AwaitingHellos>)>,
    why: String,
}

impl Ending {
    fn because(&mut self, ended: Result<(), String>) {
        self.why = ended.err().unwrap_or_else(|| "closed by the other side".to_owned());
    }

    /// A hello has come, or never will.
    pub fn stop_waiting(&self) {
        if let Some((link, waiting)) = &self.waiting {
            lock(waiting).remove(*link);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.stop_waiting();
        let mut events = Vec::new();
        lock(&self.state.outbox).close(self.state.now_ms(), &mut events);
        self.state.report_sent(events);
        let why = std::mem::take(&mut self.why);
        let _stopping = self.state.report(PeerEvent::Gone { from: self.state.peer, why });
    }
}
