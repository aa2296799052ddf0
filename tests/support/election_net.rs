//! Election connections on real sockets without the rest of a member, for tests.

use bytes::Bytes;
use oxkeeper::member::dial::HostPort;
use oxkeeper::member::election_connections::{
    Action, ElectionConnections, Event, Input, ServerAddresses, Settings,
};
use oxkeeper::model::ServerId;
use oxkeeper::net::election::{ElectionSockets, Report};
use oxkeeper::net::{PeerSecurity, Sink};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Gives inputs to a task that owns the machine and its sockets.
pub struct ElectionNet {
    inputs: UnboundedSender<Input>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// The events that the connections have reported.
#[derive(Clone)]
pub struct Inbox(Arc<Mutex<UnboundedReceiver<Event>>>);

impl Inbox {
    pub async fn take(&self) -> Event {
        self.0.lock().await.recv().await.expect("the connections are there")
    }
}

impl ElectionNet {
    /// Binds the election port. Has to be called within a runtime.
    pub fn start(settings: Settings, peers: ServerAddresses) -> (Self, Inbox) {
        let (inputs, receiver) = unbounded_channel();
        let (events, reported) = unbounded_channel();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let machine = ElectionConnections::new(settings, peers);
        tasks.spawn(run(machine, receiver, events, stop.clone()));
        (Self { inputs, stop, tasks }, Inbox(Arc::new(Mutex::new(reported))))
    }

    pub fn input(&self, input: Input) {
        let _closed = self.inputs.send(input);
    }

    pub fn send(&self, to: ServerId, message: Bytes) {
        self.input(Input::Send { to, message });
    }

    pub fn dial(&self, to: ServerId) {
        self.input(Input::Dial { to });
    }

    pub fn dial_all(&self) {
        self.input(Input::DialAll);
    }

    pub fn move_to(&self, addresses: Vec<HostPort>) {
        self.input(Input::MoveTo(addresses));
    }

    pub fn set_peers(&self, peers: ServerAddresses) {
        self.input(Input::SetPeers(peers));
    }

    /// Ends all connections and gives the port back.
    pub async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for ElectionNet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run(
    mut machine: ElectionConnections,
    mut inputs: UnboundedReceiver<Input>,
    events: UnboundedSender<Event>,
    stop: CancellationToken,
) {
    let (sender, mut reports) = unbounded_channel::<Report>();
    let mut sockets = ElectionSockets::new(false, PeerSecurity::default(), Sink::from(sender));
    let began = Instant::now();
    let mut next = Some(Input::Start);
    loop {
        if let Some(input) = next.take() {
            let mut actions = Vec::new();
            machine.step(input, began.elapsed().as_millis() as u64, &mut actions);
            for action in actions {
                match action {
                    Action::Report(event) => drop(events.send(event)),
                    action => sockets.perform(action),
                }
            }
        }
        let deadline_ms = machine.next_deadline_ms();
        let due = began + Duration::from_millis(deadline_ms.unwrap_or(0));
        next = tokio::select! {
            () = stop.cancelled() => break,
            Some(input) = inputs.recv() => Some(input),
            Some(report) = reports.recv() => sockets.take(report, || machine.next_connection()),
            () = sleep_until(due), if deadline_ms.is_some() => Some(Input::Tick),
        };
    }
    sockets.close().await;
}
