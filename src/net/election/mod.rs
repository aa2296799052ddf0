//! The connections of port 3888: one to each other server, made by the one with the larger id.
//!
//! Messages are opaque. Only the newest one to each server is kept: a vote that was overtaken is of no use to anyone. What was sent last is sent again
//! over a new connection, since nobody knows whether it arrived.
//!
//! # Not here
//! What a message means and when to dial again (`zab`): a server is dialed when it is sent something or when that is asked for.

mod hello;
mod hub;
mod inbox;
mod link;
mod listen;

pub use hello::{Address, Hello, HelloError};
pub use inbox::Inbox;
pub use link::{LinkError, next_message};

use crate::model::ServerId;
use bytes::Bytes;
use hub::{Command, Hub};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where each server's election port is; at least one address each.
pub type Peers = BTreeMap<ServerId, Vec<Address>>;

/// How to take part.
#[derive(Clone, Debug)]
pub struct Settings {
    pub me: ServerId,
    /// Own addresses, as others are told them.
    pub addresses: Vec<Address>,
    /// Listen on every address of the machine, at the ports of `addresses` (`quorumListenOnAllIPs`).
    pub on_all_addresses: bool,
    /// All addresses are told, which servers before 3.6 do not understand (`multiAddress.enabled`).
    pub multi_address: bool,
    /// For a connection to be made (`cnxTimeout`).
    pub timeout: Duration,
    /// A server with several addresses: how long it is called at the others once it has refused at one, and how long it may
    /// leave what it was sent unacknowledged before a connection is given up for one to another address
    /// (`multiAddress.reachabilityCheckTimeoutMs`). `None`: addresses are not looked after.
    pub reach_timeout: Option<Duration>,
    /// For a caller to say who it is (`quorumCnxnTimeoutMs`).
    pub greet_timeout: Duration,
    pub keep_alive: bool,
    /// After so many failures to listen [`Event::Deaf`] is told; 0 is never (`electionPortBindRetry`).
    pub bind_tries_max: u32,
}

/// What comes in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// There is a connection to `to`, new or in place of another.
    LinkUp {
        to: ServerId,
    },
    Heard {
        from: ServerId,
        message: Bytes,
    },
    /// A connection that there was is gone, and none has taken its place.
    LinkDown {
        to: ServerId,
    },
    /// Nobody can call at `place`; it goes on being tried.
    Deaf {
        place: String,
    },
}

/// Sends and dials. Never waits.
#[derive(Debug)]
pub struct ElectionNet {
    settings: Settings,
    inbox: Inbox,
    /// Ends the listening at the present addresses.
    deaf: CancellationToken,
    commands: UnboundedSender<Command>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ElectionNet {
    /// Listens, and connects as it is told to. Needs a runtime around it.
    pub fn start(settings: Settings, peers: Peers) -> (Self, Inbox) {
        let (commands, receiver) = unbounded_channel();
        let (stop, tasks, inbox) = (CancellationToken::new(), TaskTracker::new(), Inbox::default());
        let hub = Hub::new(
            settings.clone(),
            peers,
            commands.clone(),
            inbox.clone(),
            stop.clone(),
            tasks.clone(),
        );
        tasks.spawn(hub.run(receiver));
        let deaf = stop.child_token();
        let net = Self { settings, inbox: inbox.clone(), deaf, commands, stop, tasks };
        net.listen();
        (net, inbox)
    }

    fn listen(&self) {
        let place = |(host, port): &Address| {
            ((!self.settings.on_all_addresses).then(|| host.clone()), *port)
        };
        // At every address a port can be had only once.
        let places: BTreeSet<_> = self.settings.addresses.iter().map(place).collect();
        for (host, port) in places {
            let place = listen::Place { host, port };
            let (settings, commands) = (self.settings.clone(), self.commands.clone());
            let listening = listen::listen(place, settings, self.inbox.clone(), commands);
            let deaf = self.deaf.clone();
            self.tasks.spawn(async move { deaf.run_until_cancelled(listening).await });
        }
    }

    /// Listens at other addresses from now on, and tells others so. Connections stay as they are.
    pub fn move_to(&mut self, addresses: Vec<Address>) {
        if self.settings.addresses == addresses {
            return;
        }
        self.deaf.cancel();
        self.deaf = self.stop.child_token();
        self.settings.addresses.clone_from(&addresses);
        self.tell(Command::MoveTo(addresses));
        self.listen();
    }

    /// Puts `message` in the place of whatever is unsent to `to`, and dials if there is no connection.
    pub fn send(&self, to: ServerId, message: Bytes) {
        self.tell(Command::Send { to, message });
    }

    /// Dials `to` unless there is a connection or an attempt at one.
    pub fn dial(&self, to: ServerId) {
        self.tell(Command::Dial { to });
    }

    /// Dials everyone without a connection.
    pub fn dial_all(&self) {
        self.tell(Command::DialAll);
    }

    /// Connections to those who are left out stay until they break.
    pub fn set_peers(&self, peers: Peers) {
        self.tell(Command::SetPeers(peers));
    }

    /// Ends all connections and gives the port back.
    pub async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn tell(&self, command: Command) {
        // The hub is gone only after `stop`, and then nobody waits for anything.
        let _ = self.commands.send(command);
    }
}

impl Drop for ElectionNet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
