//! The sockets of all election connections, each with a task that moves its bytes.

use super::listen;
use super::socket::{self, Order, Report, Reports};
use crate::member::election_connections::{Action, ConnectionId, Input};
use crate::member::election_listeners::ListenerId;
use crate::net::listening_socket::plain_address;
use crate::net::peer_stream::PeerStream;
use crate::net::{PeerSecurity, Sink};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A connection, or an attempt at one.
struct Socket {
    /// Ends its task.
    stop: CancellationToken,
    /// `None` while the connection is dialed.
    orders: Option<UnboundedSender<Order>>,
}

/// Performs the actions of `ElectionConnections`; closes all sockets when dropped. Must be used within a tokio runtime.
pub struct ElectionSockets {
    keep_alive: bool,
    security: PeerSecurity,
    sockets: BTreeMap<ConnectionId, Socket>,
    listeners: BTreeMap<ListenerId, CancellationToken>,
    reports: Reports,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ElectionSockets {
    /// * `keep_alive`: `tcpKeepAlive`. `reports`: takes the reports, which the caller gives to [`Self::take`].
    pub fn new(keep_alive: bool, security: PeerSecurity, reports: Sink<Report>) -> Self {
        Self {
            keep_alive,
            security,
            sockets: BTreeMap::new(),
            listeners: BTreeMap::new(),
            reports: Reports::new(reports),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Turns a report into the machine's input, if it is meant for the machine.
    ///
    /// * `next_connection`: gives an id for an accepted connection.
    pub fn take(
        &mut self,
        report: Report,
        next_connection: impl FnOnce() -> ConnectionId,
    ) -> Option<Input> {
        match report {
            Report::Input(input, _permit) => {
                match &input {
                    Input::Ended { connection, .. } => drop(self.sockets.remove(connection)),
                    Input::ListenFailed { listener, .. } => drop(self.listeners.remove(listener)),
                    _ => {}
                }
                Some(input)
            }
            Report::Accepted { stream, peer, permit: _permit } => {
                let connection = next_connection();
                match self.start_accepted(connection, stream) {
                    Ok(()) => Some(Input::Accepted { connection, peer }),
                    Err(error) => {
                        tracing::warn!(target: crate::model::STRANGERS, %peer, %error, "election connection closed: the socket's options can't be set; report it if it repeats");
                        None
                    }
                }
            }
            Report::Dialed { connection, result } => {
                // The dial may have been given up meanwhile.
                self.sockets.remove(&connection)?;
                Some(match result.and_then(|stream| self.start_dialed(connection, stream)) {
                    Ok(peer) => Input::Connected { connection, peer },
                    Err(error) => Input::DialFailed { connection, error: error.to_string() },
                })
            }
        }
    }

    /// Performs an action of the machine.
    pub fn perform(&mut self, action: Action) {
        match action {
            Action::Dial { connection, addresses, grace_ms, to: _ } => {
                let (stop, reports) = (self.stop.child_token(), self.reports.clone());
                let security = self.security.clone();
                self.sockets.insert(connection, Socket { stop: stop.clone(), orders: None });
                self.spawn(stop, async move {
                    let grace = grace_ms.map(Duration::from_millis);
                    let result = socket::dial(addresses, grace, security).await;
                    reports.put(Report::Dialed { connection, result });
                });
            }
            Action::Write { connection, bytes } => self.order(connection, Order::Write(bytes)),
            Action::LimitSilence { connection, to, timeout_ms } => {
                self.order(connection, Order::LimitSilence { to, timeout_ms });
            }
            Action::Work { connection, work } => {
                let reports = self.reports.clone();
                tokio::task::spawn_blocking(move || {
                    work.run();
                    reports.put_input(Input::WorkDone { connection });
                });
            }
            Action::Close { connection } => {
                if let Some(socket) = self.sockets.remove(&connection) {
                    socket.stop.cancel();
                }
            }
            Action::Listen { listener, place } => {
                let stop = self.stop.child_token();
                self.listeners.insert(listener, stop.clone());
                self.spawn(stop, listen::listen(listener, place, self.reports.clone()));
            }
            Action::StopListening { listener } => {
                if let Some(stop) = self.listeners.remove(&listener) {
                    stop.cancel();
                }
            }
            Action::Report(_) => unreachable!("reports are for agreement"),
        }
    }

    /// Ends all connections and closes the ports.
    pub async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn order(&self, connection: ConnectionId, order: Order) {
        if let Some(orders) =
            self.sockets.get(&connection).and_then(|socket| socket.orders.as_ref())
        {
            // The task has ended when the connection has ended, and has reported that.
            let _ = orders.send(order);
        }
    }

    fn start_dialed(&mut self, connection: ConnectionId, stream: PeerStream) -> io::Result<String> {
        let peer = stream
            .socket()
            .peer_addr()
            .map_or_else(|error| error.to_string(), |address| plain_address(address).to_string());
        socket::prepare(stream.socket(), self.keep_alive)?;
        self.start(connection, std::future::ready(Ok(stream)));
        Ok(peer)
    }

    fn start_accepted(&mut self, connection: ConnectionId, stream: TcpStream) -> io::Result<()> {
        socket::prepare(&stream, self.keep_alive)?;
        let security = self.security.clone();
        self.start(connection, async move { security.accepted(stream).await });
        Ok(())
    }

    /// Begins to move a connection's bytes, after its handshake.
    fn start(
        &mut self,
        connection: ConnectionId,
        securing: impl Future<Output = io::Result<PeerStream>> + Send + 'static,
    ) {
        let stop = self.stop.child_token();
        let (orders, receiver) = unbounded_channel();
        self.sockets.insert(connection, Socket { stop: stop.clone(), orders: Some(orders) });
        self.spawn(stop, socket::carry(securing, connection, receiver, self.reports.clone()));
    }

    fn spawn(&self, stop: CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }
}

impl Drop for ElectionSockets {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
