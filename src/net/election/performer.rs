//! The task that owns the machine of the election connections and their sockets, and does what the machine says.

use super::inbox::Inbox;
use super::listen;
use super::socket::{self, Order, Report};
use crate::member::election_connections::{Action, ConnectionId, ElectionConnections, Input};
use crate::member::election_listeners::ListenerId;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Reports of tasks that wait to be taken up; while there are so many, sockets are not read from.
const REPORTS_MAX: usize = 64;

/// A connection, or an attempt at one.
struct Socket {
    /// Ends its task.
    stop: CancellationToken,
    /// `None` while it is dialed.
    orders: Option<UnboundedSender<Order>>,
}

pub struct Performer {
    machine: ElectionConnections,
    keep_alive: bool,
    began: Instant,
    sockets: BTreeMap<ConnectionId, Socket>,
    listeners: BTreeMap<ListenerId, CancellationToken>,
    sender: Sender<Report>,
    reports: Receiver<Report>,
    inbox: Inbox,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Performer {
    pub fn new(
        machine: ElectionConnections,
        keep_alive: bool,
        inbox: Inbox,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let (sender, reports) = channel(REPORTS_MAX);
        let (sockets, listeners) = (BTreeMap::new(), BTreeMap::new());
        let began = Instant::now();
        Self { machine, keep_alive, began, sockets, listeners, sender, reports, inbox, stop, tasks }
    }

    /// Until `stop`.
    pub async fn run(mut self, mut inputs: UnboundedReceiver<Input>) {
        let stop = self.stop.clone();
        self.step(Input::Start);
        loop {
            let deadline_ms = self.machine.next_deadline_ms();
            let due = self.began + Duration::from_millis(deadline_ms.unwrap_or(0));
            tokio::select! {
                () = stop.cancelled() => return,
                Some(input) = inputs.recv() => self.step(input),
                Some(report) = self.reports.recv() => self.on_report(report),
                () = sleep_until(due), if deadline_ms.is_some() => self.step(Input::Tick),
            }
        }
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Input(input) => self.step(input),
            Report::Accepted { stream, peer } => {
                let connection = self.machine.next_connection();
                match self.start(connection, stream) {
                    Ok(()) => self.step(Input::Accepted { connection, peer }),
                    Err(error) => tracing::warn!(%peer, %error, "election connection closed"),
                }
            }
            Report::Dialed { connection, result } => {
                // It may have been given up meanwhile.
                if self.sockets.remove(&connection).is_none() {
                    return;
                }
                let started = result.and_then(|stream| {
                    let peer = stream
                        .peer_addr()
                        .map_or_else(|error| error.to_string(), |at| at.to_string());
                    self.start(connection, stream).map(|()| peer)
                });
                self.step(match started {
                    Ok(peer) => Input::Connected { connection, peer },
                    Err(error) => Input::DialFailed { connection, error: error.to_string() },
                });
            }
        }
    }

    fn step(&mut self, input: Input) {
        match &input {
            Input::Ended { connection, .. } => drop(self.sockets.remove(connection)),
            Input::ListenFailed { listener, .. } => drop(self.listeners.remove(listener)),
            _ => {}
        }
        let now_ms = self.began.elapsed().as_millis() as u64;
        let mut actions = Vec::new();
        self.machine.step(input, now_ms, &mut actions);
        actions.into_iter().for_each(|action| self.perform(action));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Dial { connection, addresses, grace_ms, to: _ } => {
                let (stop, sender) = (self.stop.child_token(), self.sender.clone());
                self.sockets.insert(connection, Socket { stop: stop.clone(), orders: None });
                self.spawn(stop, async move {
                    let grace = grace_ms.map(Duration::from_millis);
                    let result = socket::dial(addresses, grace).await;
                    // The performer is gone when all is being closed.
                    let _ = sender.send(Report::Dialed { connection, result }).await;
                });
            }
            Action::Write { connection, bytes } => self.order(connection, Order::Write(bytes)),
            Action::LimitSilence { connection, to, timeout_ms } => {
                self.order(connection, Order::LimitSilence { to, timeout_ms });
            }
            Action::Close { connection } => {
                if let Some(socket) = self.sockets.remove(&connection) {
                    socket.stop.cancel();
                }
            }
            Action::Listen { listener, place } => {
                let stop = self.stop.child_token();
                self.listeners.insert(listener, stop.clone());
                self.spawn(stop, listen::listen(listener, place, self.sender.clone()));
            }
            Action::StopListening { listener } => {
                if let Some(stop) = self.listeners.remove(&listener) {
                    stop.cancel();
                }
            }
            Action::Report(event) => self.inbox.put(event),
        }
    }

    fn order(&self, connection: ConnectionId, order: Order) {
        if let Some(orders) =
            self.sockets.get(&connection).and_then(|socket| socket.orders.as_ref())
        {
            // The task is gone when the connection has ended, which it has reported.
            let _ = orders.send(order);
        }
    }

    /// Begins to move a connection's bytes.
    fn start(&mut self, connection: ConnectionId, stream: TcpStream) -> io::Result<()> {
        socket::prepare(&stream, self.keep_alive)?;
        let stop = self.stop.child_token();
        let (orders, receiver) = unbounded_channel();
        self.sockets.insert(connection, Socket { stop: stop.clone(), orders: Some(orders) });
        self.spawn(stop, socket::carry(stream, connection, receiver, self.sender.clone()));
        Ok(())
    }

    fn spawn(&self, stop: CancellationToken, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }
}
