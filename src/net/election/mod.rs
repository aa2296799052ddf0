//! The sockets of port 3888: performs what `member::election_connections` decides.
//!
//! # Not here
//! Any decision about a connection or a message; and what a message means (`zab`).

mod inbox;
mod listen;
mod performer;
mod settings;
mod socket;

pub use crate::member::election_connections::{Event, Peers};
pub use crate::member::election_hello::Address;
pub use inbox::Inbox;
pub use settings::Settings;

use crate::member::election_connections::{ElectionConnections, Input};
use crate::model::ServerId;
use bytes::Bytes;
use performer::Performer;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Sends and dials. Never waits.
#[derive(Debug)]
pub struct ElectionNet {
    inputs: UnboundedSender<Input>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ElectionNet {
    /// Listens, and connects as it is told to. Needs a runtime around it.
    pub fn start(settings: Settings, peers: Peers) -> (Self, Inbox) {
        let (inputs, receiver) = unbounded_channel();
        let (stop, tasks, inbox) = (CancellationToken::new(), TaskTracker::new(), Inbox::default());
        let machine = ElectionConnections::new(settings.of_machine(), peers);
        let performer = Performer::new(
            machine,
            settings.keep_alive,
            inbox.clone(),
            stop.clone(),
            tasks.clone(),
        );
        tasks.spawn(performer.run(receiver));
        (Self { inputs, stop, tasks }, inbox)
    }

    /// Listens at other addresses from now on, and tells others so. Connections stay as they are.
    pub fn move_to(&mut self, addresses: Vec<Address>) {
        self.tell(Input::MoveTo(addresses));
    }

    /// Puts `message` in the place of whatever is unsent to `to`, and dials if there is no connection.
    pub fn send(&self, to: ServerId, message: Bytes) {
        self.tell(Input::Send { to, message });
    }

    /// Dials `to` unless there is a connection or an attempt at one.
    pub fn dial(&self, to: ServerId) {
        self.tell(Input::Dial { to });
    }

    /// Dials everyone without a connection.
    pub fn dial_all(&self) {
        self.tell(Input::DialAll);
    }

    /// Connections to those who are left out stay until they break.
    pub fn set_peers(&self, peers: Peers) {
        self.tell(Input::SetPeers(peers));
    }

    /// Ends all connections and gives the port back.
    pub async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn tell(&self, input: Input) {
        // The performer is gone only after `stop`, and then nobody waits for anything.
        let _ = self.inputs.send(input);
    }
}

impl Drop for ElectionNet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
