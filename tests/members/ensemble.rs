//! Members of an ensemble without sockets, threads or disks: replicas with their clients, moved by hand.
//!
//! Server 1 leads, 2 and 3 follow, 4 observes. Packets arrive at once and in order. All packets wait in one queue, and not
//! in one for each connection as in `support::ensemble`, because the tests are about a client's answers when one server gets
//! its packets after all others have acted.

use oxkeeper::client::ConnectRequest;
use oxkeeper::model::{ServerId, Zxid};
use oxkeeper::replica::{Input, Mode, Settings, TICK_MS};
use oxkeeper::request::{Limits, Shared};
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::{self, LearnerConnectionId, Packet, Request};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use support::builders::peer;
use support::client::{ClientConnection, open};
use support::election::votes_for;
use support::packets::packets;
use support::replica::ReplicaOnDisk;
use support::requests::{hello, hello_again, hello_bytes};

pub const LEADER: usize = 1;
pub const FOLLOWER: usize = 2;
pub const OTHER: usize = 3;
pub const OBSERVER: usize = 4;

const VIEW: &str = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer\n";

/// A client, and the server it is at.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub at: usize,
    index: usize,
}

struct Server {
    host: ReplicaOnDisk,
    clients: Vec<ClientConnection>,
    log_held: bool,
    /// Requests that a learner has forwarded to its leader.
    asked: Vec<Request>,
}

pub struct Ensemble {
    servers: Vec<Server>,
    /// Packets on their way, with the server that receives them.
    packets: VecDeque<(usize, zab::Input)>,
    /// A server that is slow: packets to it wait.
    pub stalled: Option<usize>,
    /// How far the clock of every server is ahead of the ticks that it has counted: the servers stood still.
    pub uncounted_ms: u64,
    passes_on: usize,
}

impl Ensemble {
    pub fn new(settings: &Settings, limits: &Limits) -> Self {
        Self::behind(LEADER, settings, limits)
    }

    /// * `passes_on`: the server that the observer connects to.
    pub fn behind(passes_on: usize, settings: &Settings, limits: &Limits) -> Self {
        let servers = (1..=4).map(|id| Server::new(id, settings, limits)).collect();
        let packets = VecDeque::new();
        let mut ensemble = Self { servers, packets, stalled: None, uncounted_ms: 0, passes_on };
        ensemble.pass(TICK_MS);
        for at in [LEADER, FOLLOWER, OTHER, OBSERVER] {
            let votes = votes_for(ensemble.servers[at - 1].host.replica.peer(), ServerId(1));
            ensemble.packets.extend(votes.into_iter().map(|vote| (at, vote)));
            ensemble.run();
        }
        let modes: Vec<Mode> =
            ensemble.servers.iter().map(|server| server.host.replica.mode()).collect();
        assert_eq!(modes, [Mode::Leading, Mode::Following, Mode::Following, Mode::Observing]);
        ensemble
    }

    /// A connection with a session of its own.
    pub fn client(&mut self, at: usize, address: &str) -> Client {
        let (client, lines) = self.greet(at, address, &hello());
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    /// A connection that reconnects with a session.
    pub fn client_again(&mut self, at: usize, session: i64) -> Client {
        let (client, lines) = self.greet(at, "10.0.0.9", &hello_again(session));
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    /// A connection that asks for a session, whatever the answer.
    pub fn ask_for_session(&mut self, at: usize, session: i64) -> Client {
        self.greet(at, "10.0.0.9", &hello_again(session)).0
    }

    /// A client without a session that has seen `zxid` on another server.
    ///
    /// # Errors
    /// What the server sent, if it does not accept the client.
    pub fn client_that_has_seen(&mut self, at: usize, zxid: i64) -> Result<Client, Vec<String>> {
        let (client, lines) =
            self.greet(at, "10.0.0.9", &ConnectRequest { last_zxid_seen: zxid, ..hello() });
        if lines[0].starts_with("session") { Ok(client) } else { Err(lines) }
    }

    /// As [`Self::client_again`]; the server reads this connection first, and then what the `older` one had sent, before any
    /// other server acts.
    pub fn greet_late(&mut self, at: usize, session: i64, older: (Client, Vec<u8>)) -> Client {
        let client = self.connect(at, "10.0.0.9", &hello_again(session));
        let (old, bytes) = older;
        let server = &mut self.servers[at - 1];
        let now_us = server.host.now_us();
        server.clients[old.index].push(&bytes);
        // Both are read before the first of them has an effect.
        let mut commands = Vec::new();
        for index in [client.index, old.index] {
            server.clients[index].turn(now_us);
            commands.append(&mut server.clients[index].take_commands());
        }
        for command in commands {
            let actions = self.servers[at - 1].host.command(command);
            self.send(at, actions);
        }
        self.run();
        let lines = self.heard(client);
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    fn greet(&mut self, at: usize, address: &str, hello: &ConnectRequest) -> (Client, Vec<String>) {
        let client = self.connect(at, address, hello);
        self.run();
        (client, self.heard(client))
    }

    fn connect(&mut self, at: usize, address: &str, hello: &ConnectRequest) -> Client {
        let server = &mut self.servers[at - 1];
        let now_ms = server.host.shared.clock_ms.load(Ordering::Relaxed);
        let mut client = ClientConnection::new(open(&server.host.shared, address, now_ms));
        client.input = hello_bytes(hello);
        server.clients.push(client);
        Client { at, index: server.clients.len() - 1 }
    }

    /// Sends requests together, lets everything happen, and returns what the client received.
    pub fn say<const N: usize>(&mut self, client: Client, requests: [Vec<u8>; N]) -> Vec<String> {
        self.servers[client.at - 1].clients[client.index].push(&requests.concat());
        self.run();
        self.heard(client)
    }

    /// What the client has received since the last call.
    pub fn heard(&mut self, client: Client) -> Vec<String> {
        self.servers[client.at - 1].clients[client.index].heard()
    }

    pub fn session(&self, client: Client) -> i64 {
        let client = &self.servers[client.at - 1].clients[client.index];
        client.machine().conn().session().expect("the client has a session").0
    }

    /// Requests that a learner has forwarded to its leader since the last call.
    pub fn asked(&mut self, at: usize) -> Vec<Request> {
        std::mem::take(&mut self.servers[at - 1].asked)
    }

    /// A learner forwards an earlier request again.
    pub fn pass_on(&mut self, at: usize, request: Request) {
        let packet = Packet::Request(request);
        let input = zab::Input::Learner { connection: LearnerConnectionId(at as u64), packet };
        self.packets.push_back((LEADER, input));
        self.run();
    }

    /// Keeps the logs of servers from flushing; `false` flushes what they have.
    pub fn hold_logs<const N: usize>(&mut self, servers: [usize; N], held: bool) {
        for at in servers {
            self.servers[at - 1].log_held = held;
        }
        self.run();
    }

    pub fn shared(&self, at: usize) -> &Shared {
        &self.servers[at - 1].host.shared
    }

    /// The last transaction that a server has applied.
    pub fn last_zxid(&self, at: usize) -> i64 {
        self.shared(at).state.tree.read().last_zxid().to_wire()
    }

    /// The servers count the ticks that they missed, without packets of `silent`.
    pub fn count_missed_ticks(&mut self, silent: usize) {
        let missed_ms = std::mem::take(&mut self.uncounted_ms);
        self.stalled = Some(silent);
        self.pass(missed_ms);
        self.stalled = None;
        self.run();
    }

    /// Lets virtual time pass everywhere.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            for at in 1..=self.servers.len() {
                let actions = self.servers[at - 1].host.tick();
                self.send(at, actions);
            }
            self.run();
        }
    }

    fn run(&mut self) {
        loop {
            let mut moved = false;
            for at in 1..=self.servers.len() {
                moved |= self.turns(at);
                while let Some(done) = self.servers[at - 1].written() {
                    moved = true;
                    done.into_iter().for_each(|input| self.step(at, input));
                }
            }
            let stalled = self.stalled;
            while let Some(next) = self.packets.iter().position(|(at, _)| Some(*at) != stalled) {
                let (at, input) = self.packets.remove(next).expect("just found");
                moved = true;
                self.deliver(at, input);
            }
            if !moved {
                return;
            }
        }
    }

    fn deliver(&mut self, at: usize, input: zab::Input) {
        let now_us = self.now_us(at);
        self.servers[at - 1].host.replica.set_now(now_us);
        self.step(at, Input::Peer(input));
    }

    fn now_us(&self, at: usize) -> u64 {
        self.servers[at - 1].host.now_us() + self.uncounted_ms * 1000
    }

    /// A stalled server gets the first packet that waits for it, and all others act on what it does.
    pub fn deliver_first(&mut self, at: usize) {
        let first = self.packets.iter().position(|(to, _)| *to == at).expect("a packet waits");
        let (at, input) = self.packets.remove(first).expect("just found");
        self.deliver(at, input);
        self.run();
    }

    /// `true`: a connection of the server made progress.
    fn turns(&mut self, at: usize) -> bool {
        let mut moved = false;
        for index in 0..self.servers[at - 1].clients.len() {
            let now_us = self.now_us(at);
            let server = &mut self.servers[at - 1];
            moved |= server.clients[index].turn(now_us);
            for command in server.clients[index].take_commands() {
                moved = true;
                let actions = self.servers[at - 1].host.command(command);
                self.send(at, actions);
            }
        }
        moved
    }

    fn step(&mut self, at: usize, input: Input) {
        let actions = self.servers[at - 1].host.step(input);
        self.send(at, actions);
    }

    /// Sends a server's packets to the others.
    fn send(&mut self, at: usize, actions: Vec<zab::Action>) {
        for action in actions {
            match action {
                zab::Action::ToLeader { bytes } => {
                    let to = if at == OBSERVER { self.passes_on } else { LEADER };
                    for packet in packets(&bytes) {
                        if let Packet::Request(request) = &packet {
                            self.servers[at - 1].asked.push(request.clone());
                        }
                        let connection = LearnerConnectionId(at as u64);
                        self.packets.push_back((to, zab::Input::Learner { connection, packet }));
                    }
                }
                zab::Action::ToLearner { connection, bytes } => {
                    let heard = packets(&bytes)
                        .into_iter()
                        .map(|packet| (connection.0 as usize, zab::Input::Leader { packet }));
                    self.packets.extend(heard);
                }
                zab::Action::CloseLearner { connection, why } => {
                    // Packets of a connection that was closed reach the replica here, where a member discards them.
                    let is_closed = why == "it sent no FOLLOWERINFO or OBSERVERINFO";
                    assert!(is_closed || why.contains("used up"), "connection closed: {why}");
                    if !is_closed {
                        let learner = connection.0 as usize;
                        self.packets.push_back((learner, zab::Input::LeaderGone));
                    }
                }
                _ => {}
            }
        }
    }
}

impl Server {
    fn new(id: i64, settings: &Settings, limits: &Limits) -> Self {
        let agreement = zab::Settings {
            tick_time_ms: settings.tick_time_ms,
            sync_limit: 50,
            relays: true,
            reconfigs: true,
            ..zab::Settings::DEFAULT
        };
        let peer = peer(id, VIEW, agreement, Some(Zxid::ZERO));
        let settings = Settings { first_session: id << 56 | 1, ..settings.clone() };
        let tree = Tree::new(Options::default());
        Self {
            host: ReplicaOnDisk::member(tree, limits.clone(), peer, settings),
            clients: Vec::new(),
            log_held: false,
            asked: Vec::new(),
        }
    }

    fn written(&mut self) -> Option<Vec<Input>> {
        if self.log_held { None } else { self.host.written() }
    }
}
