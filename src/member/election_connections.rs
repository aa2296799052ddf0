//! The election connections of a server (ZooKeeper: `QuorumCnxManager`): one to each other server, made by the server with
//! the larger id.
//!
//! Messages are opaque. Only the newest unsent message to each server is kept. The last message sent is sent again over a new
//! connection, since it may have been lost with the old one.
//!
//! # Not here
//! What a message means and when to dial again (`zab`): a server is dialed when a message is to be sent to it or when `zab`
//! asks for it. Sockets, names and the race between several addresses of one server (`net::election`).

use super::dial::HostPort;
use super::duplicate_id::{Duplicate, other_address};
pub use super::election_actions::{
    Action, ConnectionId, Event, Input, REFUSED_BY_TLS, ServerAddresses,
};
use super::election_connection::{ConnectionError, ElectionConnection, Received};
use super::election_hello::{
    ConnectionChoice, Hello, OldObservers, choice_for_accepted, choice_for_dialed,
};
use super::election_listeners::Listeners;
use super::election_log::{ElectionLog, places};
use super::election_peer::{Peer, SHORT_LIVED_MS};
pub use super::election_settings::{Settings, Stats};
use super::sasl_exchange::ConnectionKind;
use super::unreachable::{Reach, Unreachable};
use crate::model::ServerId;
use ConnectionStage::{AwaitingHello, Dialing, Established};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Limit on connected servers in no known configuration.
const UNKNOWN_SERVERS_MAX: usize = 64;
/// The error if a server with a larger id was dialed and has made no connection itself.
const NOT_CONNECTED_BACK: &str = "reached, but it has not connected back: it can't reach this server's election port, another server has this server's myid, or the two ports in server.N are swapped";
/// Limit on accepted connections whose hello has not come.
const AWAITED_HELLOS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectionStage {
    /// Dialed by this server: it is not connected yet, or the SASL exchange or the hello is not done.
    Dialing(ServerId),
    /// Accepted: the hello has not come.
    AwaitingHello,
    /// The connection to this server.
    Established(ServerId),
}

struct Connection {
    stage: ConnectionStage,
    machine: ElectionConnection,
    /// The other end's address, for the log.
    peer: String,
    /// A WARN with the reason of its end is logged already.
    is_logged: bool,
}

pub struct ElectionConnections {
    settings: Settings,
    addresses: ServerAddresses,
    peers: BTreeMap<ServerId, Peer>,
    connections: BTreeMap<ConnectionId, Connection>,
    last_connection: u64,
    old_observers: OldObservers,
    listeners: Listeners,
    log: ElectionLog,
    pub stats: Stats,
}

impl ElectionConnections {
    pub fn new(settings: Settings, addresses: ServerAddresses) -> Self {
        Self {
            listeners: Listeners::new(settings.bind_tries_max),
            settings,
            addresses,
            peers: BTreeMap::new(),
            connections: BTreeMap::new(),
            last_connection: 0,
            old_observers: OldObservers::default(),
            log: ElectionLog::default(),
            stats: Stats::default(),
        }
    }

    /// An id for a connection that is about to be given in [`Input::Accepted`].
    pub const fn next_connection(&mut self) -> ConnectionId {
        self.last_connection += 1;
        ConnectionId(self.last_connection)
    }

    /// When the next [`Input::Tick`] is due.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let connections = self.connections.values();
        let deadlines = connections.filter_map(|connection| connection.machine.deadline_ms());
        deadlines.chain(self.listeners.next_deadline_ms()).min()
    }

    /// The other members of the configurations: those from which a message has come over the election connection that exists; and
    /// all others, each with its address and the reason.
    pub fn reach(&self) -> Reach {
        let mut reach = Reach { deaf: self.listeners.error(), ..Reach::default() };
        for (&id, addresses) in self.addresses.iter().filter(|(id, _)| **id != self.settings.me) {
            let peer = self.peers.get(&id);
            if peer.is_some_and(|peer| peer.connection.is_some() && peer.heard == peer.connection) {
                reach.heard.push(id);
                continue;
            }
            let error = peer.and_then(|peer| peer.error.clone());
            reach.missing.push(Unreachable { id, address: places(addresses), error });
        }
        reach
    }

    /// Applies one input and pushes what must happen next.
    ///
    /// * `now_ms`: monotonic.
    pub fn step(&mut self, input: Input, now_ms: u64, out: &mut Vec<Action>) {
        match input {
            Input::Start => self.listen(out),
            Input::Send { to, message } => self.send(to, message, now_ms, out),
            Input::Dial { to } => self.dial(to, now_ms, out),
            Input::DialAll => {
                let all: Vec<ServerId> = self.addresses.keys().copied().collect();
                all.into_iter().for_each(|to| self.dial(to, now_ms, out));
            }
            Input::SetPeers(addresses) => self.addresses = addresses,
            Input::MoveTo(addresses) => {
                self.settings.addresses = addresses;
                self.listen(out);
            }
            Input::Accepted { connection, peer } => self.on_accepted(connection, peer, now_ms, out),
            Input::Connected { connection, peer } => {
                let Some(held) = self.connections.get_mut(&connection) else { return };
                held.peer = peer;
                held.machine.connected(now_ms + self.settings.hello_timeout_ms);
                self.advance(connection, now_ms, out);
            }
            Input::DialFailed { connection, error } => self.end(connection, &error, now_ms, out),
            Input::Received { connection, bytes } => {
                let Some(held) = self.connections.get_mut(&connection) else { return };
                held.machine.receive(&bytes);
                self.advance(connection, now_ms, out);
            }
            Input::Written { connection } => {
                let Some(held) = self.connections.get_mut(&connection) else { return };
                held.machine.written();
                self.advance(connection, now_ms, out);
            }
            Input::WorkDone { connection } => {
                let Some(held) = self.connections.get_mut(&connection) else { return };
                held.machine.work_done();
                self.advance(connection, now_ms, out);
            }
            Input::Ended { connection, error } => self.on_ended(connection, error, now_ms, out),
            Input::Listening { listener } => self.listeners.on_listening(listener),
            Input::ListenFailed { listener, error } => {
                if let Some(place) = self.listeners.on_failed(listener, &error, now_ms) {
                    let place = place.to_string();
                    out.push(Action::Report(Event::BindFailed { place, error }));
                }
            }
            Input::Tick => self.on_time(now_ms, out),
        }
        if cfg!(any(debug_assertions, feature = "sim")) {
            self.assert_invariants();
        }
    }

    fn listen(&mut self, out: &mut Vec<Action>) {
        let mut changes = Vec::new();
        let Settings { addresses, on_all_addresses, .. } = &self.settings;
        self.listeners.set(addresses, *on_all_addresses, &mut changes);
        out.extend(changes.into_iter().map(Action::from));
    }

    fn send(&mut self, to: ServerId, message: Bytes, now_ms: u64, out: &mut Vec<Action>) {
        let peer = self.peers.entry(to).or_default();
        peer.unsent = Some(message);
        match peer.connection {
            Some(connection) => self.write(connection, out),
            None => self.dial(to, now_ms, out),
        }
    }

    fn dial(&mut self, to: ServerId, now_ms: u64, out: &mut Vec<Action>) {
        if self.peers.get(&to).is_none_or(|peer| peer.connection.is_none()) {
            self.dial_again(to, Vec::new(), now_ms, out);
        }
    }

    /// Dials unless an attempt is under way, whether there is a connection or not.
    ///
    /// * `named`: the addresses that the server's hello named just now.
    fn dial_again(
        &mut self,
        to: ServerId,
        named: Vec<HostPort>,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        if to == self.settings.me {
            return;
        }
        let known = self.addresses.get(&to);
        let addresses = if named.is_empty() { known.cloned().unwrap_or_default() } else { named };
        let peer = self.peers.entry(to).or_default();
        if peer.dialing.is_some() {
            return;
        }
        if known.is_none() && addresses.is_empty() {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id = to.0,
                "election message not sent: no configuration or hello names that server's address; give all servers the same server.N lines"
            );
            out.push(Action::Report(Event::ElectionUnreached { to }));
            return self.forget_unknown(to);
        }
        self.last_connection += 1;
        let connection = ConnectionId(self.last_connection);
        peer.dialing = Some(connection);
        let Settings { me, multi_address, reach_timeout_ms: grace_ms, .. } = self.settings;
        let hello = Hello { id: me, addresses: self.settings.addresses.clone() };
        let deadline_ms = now_ms + self.settings.connect_timeout_ms;
        let exchange = self.settings.exchanges.dialed(ConnectionKind::Election, &addresses);
        let machine =
            ElectionConnection::dialed(exchange, hello.encode(multi_address), deadline_ms);
        let held =
            Connection { stage: Dialing(to), machine, peer: String::new(), is_logged: false };
        self.connections.insert(connection, held);
        out.push(Action::Dial { connection, to, addresses, grace_ms });
    }

    fn on_accepted(
        &mut self,
        connection: ConnectionId,
        peer: String,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let held = self.connections.values();
        if AWAITED_HELLOS_MAX <= held.filter(|held| held.stage == AwaitingHello).count() {
            tracing::warn!(target: crate::model::STRANGERS, %peer, "election connection refused: {AWAITED_HELLOS_MAX} others have sent no hello; allow only members to connect to the election port");
            return out.push(Action::Close { connection });
        }
        let deadline_ms = now_ms + self.settings.hello_timeout_ms;
        let exchange = self.settings.exchanges.accepted(ConnectionKind::Election, &peer);
        let machine = ElectionConnection::accepted(exchange, deadline_ms);
        let held = Connection { stage: AwaitingHello, machine, peer, is_logged: false };
        let before = self.connections.insert(connection, held);
        assert!(before.is_none(), "{connection:?} is used twice");
    }

    /// Processes what a connection has received, and writes what is to be written.
    fn advance(&mut self, connection: ConnectionId, now_ms: u64, out: &mut Vec<Action>) {
        while let Some(held) = self.connections.get_mut(&connection) {
            if let Dialing(to) = held.stage
                && held.machine.is_ready()
            {
                self.on_dialed(connection, to, now_ms, out);
                continue;
            }
            let received = held.machine.next_received();
            // After that: the SASL exchange begins as soon as the hello is read, and its first bytes may have come with it.
            if let Some(work) = held.machine.take_work() {
                out.push(Action::Work { connection, work });
            }
            match (received, held.stage) {
                (Ok(Some(Received::Hello(hello))), _) => {
                    self.on_hello(connection, hello, now_ms, out);
                }
                (Ok(Some(Received::Message(message))), Established(from)) => {
                    self.peers.entry(from).or_default().heard = Some(connection);
                    if let Some(other) = other_address(&message) {
                        self.log.own_double(&self.settings, from, other, now_ms);
                    }
                    out.push(Action::Report(Event::Heard { from, message }));
                }
                (Ok(Some(Received::Message(_))), stage) => panic!("a message while {stage:?}"),
                (Ok(None), _) => return self.write(connection, out),
                (Err(error), stage) => {
                    // Logged here, because the other end does not learn the reason.
                    held.is_logged = stage != AwaitingHello && error == ConnectionError::Sasl;
                    if held.is_logged {
                        self.log.closed(&held.peer, &error, now_ms);
                    }
                    out.push(Action::Close { connection });
                    return self.end(connection, &error, now_ms, out);
                }
            }
        }
    }

    fn on_hello(
        &mut self,
        connection: ConnectionId,
        hello: Hello,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let id = self.old_observers.id_of(hello.id);
        let unknown = |id: &ServerId| !self.addresses.contains_key(id);
        let unknown_servers = self.peers.keys().filter(|id| unknown(id)).count();
        let is_one_too_many = unknown(&id) && UNKNOWN_SERVERS_MAX <= unknown_servers;
        if unknown(&id) && hello.is_of_learner() {
            let error = "a learner dials this election port: the two ports of this server's line server.N differ between zoo.cfg \
                         here and there; compare both";
            let at = self.connections.remove(&connection).map(|held| held.peer).unwrap_or_default();
            self.log.closed(&at, &error, now_ms);
            return out.push(Action::Close { connection });
        }
        let choice = choice_for_accepted(self.settings.me, id);
        self.look_for_double(id, connection, now_ms);
        match choice {
            _ if is_one_too_many => tracing::warn!(
                target: crate::model::STRANGERS, server_id = id.0,
                "election connection closed: {UNKNOWN_SERVERS_MAX} servers in no configuration have one; allow only members to connect to the election port"
            ),
            ConnectionChoice::Keep if self.is_late(connection, id) => tracing::debug!(
                server_id = id.0,
                "election connection closed: the dialing server has made another one after it"
            ),
            ConnectionChoice::Keep => return self.establish(connection, id, now_ms, out),
            ConnectionChoice::DialBack => {}
            ConnectionChoice::Close => tracing::warn!(
                target: crate::model::STRANGERS, server_id = id.0, peer = self.connections.get(&connection).map(|held| display(&held.peer)),
                peer_addresses = %places(&hello.addresses), own_addresses = %places(&self.settings.addresses),
                "election connection closed: the dialing server has this server's myid, correct one of them"
            ),
        }
        self.connections.remove(&connection);
        out.push(Action::Close { connection });
        if choice == ConnectionChoice::DialBack && !is_one_too_many {
            // A connection to the peer may be left. 1. The peer may have lost it, so it has dialed. 2. Or the peer dialed
            // while it was made. So it stays until there is another connection: its end would look like the peer's end.
            self.dial_again(id, hello.addresses, now_ms, out);
        }
    }

    /// Whether a server has made another connection after this one, whose hello has come only now: that server has ended it.
    fn is_late(&self, connection: ConnectionId, id: ServerId) -> bool {
        let newest = self.peers.get(&id).and_then(|peer| peer.newest);
        newest.is_some_and(|newest| connection < newest)
    }

    /// Warns if the server `id`, whose hello has come, is connected and another server says that it is the same.
    fn look_for_double(&mut self, id: ServerId, connection: ConnectionId, now_ms: u64) {
        let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.is_up) else { return };
        let address = |id: ConnectionId| self.connections.get(&id).map(|held| held.peer.as_str());
        let (connected, dials) = (peer.connection.and_then(address), address(connection));
        if let (Some(connected), Some(dials)) = (connected, dials)
            && peer.repeats.note(connected, dials, id < self.settings.me, peer.up_ms, now_ms)
        {
            self.log.double(id, connected, dials, now_ms);
            let (connected, dials) = (connected.to_owned(), dials.to_owned());
            peer.duplicate = Some(Duplicate { connected, dials });
        }
    }

    /// Makes this connection the one to `to`.
    fn establish(
        &mut self,
        connection: ConnectionId,
        to: ServerId,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let held = self.connections.get_mut(&connection).expect("the caller has looked");
        held.stage = Established(to);
        let has_several = self.addresses.get(&to).is_some_and(|addresses| 1 < addresses.len());
        if let Some(timeout_ms) = self.settings.reach_timeout_ms.filter(|_| has_several) {
            out.push(Action::LimitSilence { connection, to, timeout_ms });
        }
        let peer = self.peers.entry(to).or_default();
        if let Some(before) = peer.connection.replace(connection) {
            self.connections.remove(&before);
            out.push(Action::Close { connection: before });
        }
        peer.newest = Some(connection);
        peer.since_ms = now_ms;
        if !std::mem::replace(&mut peer.is_up, true) {
            peer.up_ms = now_ms;
        }
        if peer.unsent.is_none() {
            peer.unsent.clone_from(&peer.last_sent);
            self.stats.resent += u64::from(peer.unsent.is_some());
        }
        out.push(Action::Report(Event::ElectionConnected { to }));
    }

    fn write(&mut self, connection: ConnectionId, out: &mut Vec<Action>) {
        let Some(held) = self.connections.get_mut(&connection) else { return };
        if let Established(to) = held.stage
            && held.machine.has_room()
            && let Some(peer) = self.peers.get_mut(&to)
            && let Some(message) = peer.unsent.take()
        {
            let duplicate = peer.duplicate.take();
            let with_address = duplicate.map(|duplicate| duplicate.append(&message, &held.peer));
            held.machine.send(with_address.as_ref().unwrap_or(&message));
            peer.last_sent = Some(message);
        }
        if let Some(bytes) = held.machine.take_output() {
            out.push(Action::Write { connection, bytes });
        }
    }

    /// Hello and SASL exchange of a connection that this server has made are done.
    fn on_dialed(
        &mut self,
        connection: ConnectionId,
        to: ServerId,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let peer = self.peers.entry(to).or_default();
        (peer.dialing, peer.failures) = (None, 0);
        match choice_for_dialed(self.settings.me, to) {
            ConnectionChoice::Keep => self.establish(connection, to, now_ms, out),
            ConnectionChoice::DialBack | ConnectionChoice::Close => {
                peer.error = Some(NOT_CONNECTED_BACK.to_owned());
                self.connections.remove(&connection);
                out.push(Action::Close { connection });
                self.forget_unknown(to);
            }
        }
    }

    fn on_ended(
        &mut self,
        connection: ConnectionId,
        error: Option<String>,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let Some(held) = self.connections.get_mut(&connection) else { return };
        if held.stage == AwaitingHello && held.machine.accept_hello_without_sasl() {
            return self.accept_silent_peer(connection, true, now_ms, out);
        }
        let why = match (held.stage, held.machine.refusal(), error) {
            (_, Some(refusal), _) => refusal.to_string(),
            (AwaitingHello, None, None) => "the connection ended before its hello came".to_owned(),
            (AwaitingHello, None, Some(error)) if error.starts_with(REFUSED_BY_TLS) => error,
            (AwaitingHello, None, Some(error)) => format!("read hello: {error}"),
            (Dialing(_) | Established(_), None, None) => "closed by the peer".to_owned(),
            (Dialing(_) | Established(_), None, Some(error)) => error,
        };
        self.end(connection, &why, now_ms, out);
    }

    /// A peer that does not take part in the SASL exchange has sent its hello, and has ended the connection or is silent.
    fn accept_silent_peer(
        &mut self,
        connection: ConnectionId,
        has_ended: bool,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        self.advance(connection, now_ms, out);
        if has_ended && self.connections.contains_key(&connection) {
            self.end(connection, &"closed by the peer", now_ms, out);
        }
    }

    /// The connection has ended, or was never made.
    fn end(
        &mut self,
        connection: ConnectionId,
        error: &dyn std::fmt::Display,
        now_ms: u64,
        out: &mut Vec<Action>,
    ) {
        let Some(held) = self.connections.remove(&connection) else { return };
        let Connection { stage, peer: at, is_logged, .. } = held;
        let to = match stage {
            AwaitingHello => return self.log.closed(&at, error, now_ms),
            Dialing(to) => {
                let peer = self.peers.entry(to).or_default();
                peer.dialing = None;
                peer.failures = peer.failures.saturating_add(1);
                let failures = peer.failures;
                peer.refusals = if at.is_empty() { 0 } else { peer.refusals.saturating_add(1) };
                if 1 < peer.refusals && self.log.refusal(to, &at, error, now_ms) {
                } else if failures == 1 {
                    tracing::info!(target: crate::model::STRANGERS, server_id = to.0, %error, "can't dial the election port");
                } else {
                    tracing::debug!(server_id = to.0, %error, failures, "can't dial the election port");
                }
                to
            }
            Established(to) => {
                let peer = self.peers.entry(to).or_default();
                peer.connection = None;
                // A server with a larger id has made the connection, and also ends it if it makes another one.
                let is_short = to < self.settings.me && now_ms < peer.since_ms + SHORT_LIVED_MS;
                peer.short_lived = if is_short { peer.short_lived.saturating_add(1) } else { 0 };
                // A single short connection may have ended because the peer was stopped just then.
                let is_refused = !is_logged && 1 < peer.short_lived;
                if !(is_logged || is_refused && self.log.refusal(to, &at, error, now_ms)) {
                    tracing::info!(target: crate::model::STRANGERS, server_id = to.0, peer = %at, %error, "election connection ended");
                }
                to
            }
        };
        let peer = self.peers.entry(to).or_default();
        peer.error = Some(error.to_string());
        if peer.connection.is_none() && std::mem::take(&mut peer.is_up) {
            out.push(Action::Report(Event::ElectionDisconnected { to }));
        }
        // A server that ends the TLS handshake, or what comes after that, runs.
        let is_reached = !at.is_empty() || error.to_string().starts_with(REFUSED_BY_TLS);
        if matches!(stage, Dialing(_)) && peer.connection.is_none() && !is_reached {
            out.push(Action::Report(Event::ElectionUnreached { to }));
        }
        self.forget_unknown(to);
    }

    fn on_time(&mut self, now_ms: u64, out: &mut Vec<Action>) {
        let is_late = |held: &Connection| held.machine.deadline_ms().is_some_and(|at| at <= now_ms);
        let late = self.connections.iter().filter(|(_, held)| is_late(held));
        let late: Vec<(ConnectionId, ConnectionStage)> =
            late.map(|(&id, held)| (id, held.stage)).collect();
        for (connection, stage) in late {
            let Some(held) = self.connections.get_mut(&connection) else { continue };
            if stage == AwaitingHello && held.machine.accept_hello_without_sasl() {
                self.accept_silent_peer(connection, false, now_ms, out);
                continue;
            }
            let refusal = held.machine.refusal().map(ToString::to_string);
            let why = match (refusal, stage) {
                (Some(refusal), _) => refusal,
                (None, AwaitingHello) => "hello, or SASL after it, took too long".to_owned(),
                (None, Dialing(_) | Established(_)) => "timed out".to_owned(),
            };
            out.push(Action::Close { connection });
            self.end(connection, &why, now_ms, out);
        }
        let mut changes = Vec::new();
        self.listeners.on_time(now_ms, &mut changes);
        out.extend(changes.into_iter().map(Action::from));
    }

    /// A server in no known configuration is kept as long as there is a connection or an attempt at one.
    fn forget_unknown(&mut self, id: ServerId) {
        let is_idle = |peer: &Peer| peer.connection.is_none() && peer.dialing.is_none();
        if !self.addresses.contains_key(&id) && self.peers.get(&id).is_some_and(is_idle) {
            self.peers.remove(&id);
        }
    }

    /// Each connection with a server is the one that the server's entry names, and the reverse. Strangers choose how many
    /// connections there are, so only tests and the simulator check this.
    fn assert_invariants(&self) {
        let is = |id: &ConnectionId, stage| {
            self.connections.get(id).is_some_and(|held| held.stage == stage)
        };
        for (&to, peer) in &self.peers {
            assert!(peer.connection.is_none_or(|id| is(&id, Established(to))), "{to:?}");
            assert!(peer.dialing.is_none_or(|id| is(&id, Dialing(to))), "{to:?}");
        }
        for (id, held) in &self.connections {
            let named = match held.stage {
                AwaitingHello => continue,
                Dialing(to) => self.peers.get(&to).and_then(|peer| peer.dialing),
                Established(to) => self.peers.get(&to).and_then(|peer| peer.connection),
            };
            assert_eq!(named, Some(*id), "{:?}", held.stage);
        }
    }
}
