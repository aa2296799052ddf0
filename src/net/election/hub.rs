//! Who is connected. One task that owns the table of servers; everything that takes time is another task.

use super::hello::{Address, Fate, Hello, OldObservers, fate_of_accepted, fate_of_dialed};
use super::inbox::Inbox;
use super::link::{self, Slot};
use super::listen;
use super::{Event, Peers, Settings};
use crate::model::ServerId;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::io;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Servers that are in no configuration known here, each with a connection: those that join, and whoever finds the port.
const UNKNOWN_MAX: usize = 64;

/// What the hub is told by its owner and by its tasks.
#[derive(Debug)]
pub enum Command {
    Send {
        to: ServerId,
        message: Bytes,
    },
    Dial {
        to: ServerId,
    },
    DialAll,
    SetPeers(Peers),
    /// Own addresses, as others are told them.
    MoveTo(Vec<Address>),
    /// * `read`: what came in behind the hello.
    Called {
        stream: TcpStream,
        hello: Hello,
        read: BytesMut,
    },
    Dialed {
        to: ServerId,
        result: io::Result<TcpStream>,
    },
    Ended {
        from: ServerId,
        link: u64,
    },
}

/// One other server.
#[derive(Debug, Default)]
struct Peer {
    slot: Slot,
    link: Option<Link>,
    is_dialing: bool,
    /// Told as up, and not as down since.
    is_up: bool,
    /// Attempts in a row that failed.
    failures: u32,
}

#[derive(Debug)]
struct Link {
    /// Tells a connection from those before it.
    number: u64,
    stop: CancellationToken,
}

pub struct Hub {
    settings: Settings,
    addresses: Peers,
    peers: BTreeMap<ServerId, Peer>,
    old_observers: OldObservers,
    links: u64,
    commands: UnboundedSender<Command>,
    inbox: Inbox,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Hub {
    pub fn new(
        settings: Settings,
        addresses: Peers,
        commands: UnboundedSender<Command>,
        inbox: Inbox,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let (peers, old_observers) = (BTreeMap::new(), OldObservers::default());
        Self { settings, addresses, peers, old_observers, links: 0, commands, inbox, stop, tasks }
    }

    /// Until `stop`.
    pub async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        let stop = self.stop.clone();
        while let Some(Some(command)) = stop.run_until_cancelled(commands.recv()).await {
            self.on_command(command);
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Send { to, message } => {
                self.peers.entry(to).or_default().slot.put(message);
                self.dial(to, None);
            }
            Command::Dial { to } => self.dial(to, None),
            Command::DialAll => {
                let all: Vec<ServerId> = self.addresses.keys().copied().collect();
                all.into_iter().for_each(|to| self.dial(to, None));
            }
            Command::SetPeers(addresses) => self.addresses = addresses,
            Command::MoveTo(addresses) => self.settings.addresses = addresses,
            Command::Called { stream, hello, read } => self.on_called(stream, hello, read),
            Command::Dialed { to, result } => self.on_dialed(to, result),
            Command::Ended { from, link } => self.on_ended(from, link),
        }
    }

    /// * `told`: where the server says it is, if it said so just now.
    fn dial(&mut self, to: ServerId, told: Option<Vec<Address>>) {
        if self.peers.get(&to).is_none_or(|peer| peer.link.is_none()) {
            self.dial_again(to, told);
        }
    }

    /// Likewise, whether there is a connection or not.
    fn dial_again(&mut self, to: ServerId, told: Option<Vec<Address>>) {
        let peer = self.peers.entry(to).or_default();
        if to == self.settings.me || peer.is_dialing {
            return;
        }
        let known = self.addresses.get(&to).cloned();
        let Some(addresses) = told.filter(|told| !told.is_empty()).or(known) else {
            tracing::warn!(
                "server {} is to be sent an election message, and nothing says where it is",
                to.0
            );
            self.forget_unknown(to);
            return;
        };
        peer.is_dialing = true;
        let (settings, commands) = (self.settings.clone(), self.commands.clone());
        let dialing = async move {
            let result = link::dial(addresses, settings).await;
            // The hub is gone when all is being closed.
            let _ = commands.send(Command::Dialed { to, result });
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move { stop.run_until_cancelled(dialing).await });
    }

    fn on_dialed(&mut self, to: ServerId, result: io::Result<TcpStream>) {
        let peer = self.peers.entry(to).or_default();
        peer.is_dialing = false;
        match result {
            Ok(stream) => {
                peer.failures = 0;
                if fate_of_dialed(self.settings.me, to) == Fate::Keep {
                    self.link(to, stream, BytesMut::new());
                }
            }
            Err(error) => {
                peer.failures = peer.failures.saturating_add(1);
                let Peer { failures, .. } = *peer;
                // A server that is down is said to be once.
                if failures == 1 {
                    tracing::info!(%error, "dial the election port of server {}", to.0);
                } else {
                    tracing::debug!(%error, failures, "dial the election port of server {}", to.0);
                }
                if peer.link.is_none() && std::mem::take(&mut peer.is_up) {
                    self.inbox.put(Event::LinkDown { to });
                }
            }
        }
        self.forget_unknown(to);
    }

    fn on_called(&mut self, stream: TcpStream, hello: Hello, read: BytesMut) {
        let id = self.old_observers.id_of(hello.id);
        let unknown = |id: &ServerId| !self.addresses.contains_key(id);
        if unknown(&id) && UNKNOWN_MAX <= self.peers.keys().filter(|id| unknown(id)).count() {
            tracing::warn!(
                "election connection of unknown server {} closed: there are {UNKNOWN_MAX} such",
                id.0
            );
            return;
        }
        match fate_of_accepted(self.settings.me, id) {
            Fate::Keep => self.link(id, stream, read),
            Fate::DialBack => {
                // It would not call if it had the connection that this side may still believe in; unless it called while
                // that was being made. So it stays until there is another one: its end would look like a server's end.
                drop(stream);
                self.dial_again(id, Some(hello.addresses));
            }
            Fate::Close => {
                tracing::warn!(
                    "election connection closed: the caller has myid {} like this server",
                    id.0
                );
            }
        }
    }

    /// Makes `stream` the connection to `to`.
    fn link(&mut self, to: ServerId, stream: TcpStream, read: BytesMut) {
        if self.addresses.get(&to).is_some_and(|addresses| 1 < addresses.len())
            && let Err(error) = listen::look_after(&stream, &self.settings)
        {
            tracing::warn!(%error, "watch the address of server {}", to.0);
        }
        self.links += 1;
        let (number, stop) = (self.links, self.stop.child_token());
        let peer = self.peers.entry(to).or_default();
        if let Some(before) = peer.link.replace(Link { number, stop: stop.clone() }) {
            before.stop.cancel();
        }
        peer.is_up = true;
        self.inbox.put(Event::LinkUp { to });
        let (slot, inbox, commands) =
            (peer.slot.clone(), self.inbox.clone(), self.commands.clone());
        let at = stream.peer_addr();
        self.tasks.spawn(async move {
            let carrying = link::carry(stream, read, to, slot, inbox);
            if let Some(error) = stop.run_until_cancelled(carrying).await {
                let at = at.map_or_else(|error| error.to_string(), |at| at.to_string());
                tracing::info!(%error, at, "election connection to server {} ended", to.0);
                // The hub is gone when all is being closed.
                let _ = commands.send(Command::Ended { from: to, link: number });
            }
        });
    }

    fn on_ended(&mut self, from: ServerId, number: u64) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        // Another connection may have taken its place.
        if peer.link.take_if(|link| link.number == number).is_some() {
            peer.is_up = false;
            self.inbox.put(Event::LinkDown { to: from });
            self.forget_unknown(from);
        }
    }

    /// Whoever is in no configuration is kept as long as there is a connection or an attempt at one.
    fn forget_unknown(&mut self, id: ServerId) {
        let idle = |peer: &Peer| peer.link.is_none() && !peer.is_dialing;
        if !self.addresses.contains_key(&id) && self.peers.get(&id).is_some_and(idle) {
            self.peers.remove(&id);
        }
    }
}
