//! Members of an ensemble without sockets, threads or disks: replicas with their clients, moved by hand.
//!
//! Server 1 leads, 2 and 3 follow, 4 observes. What one says to another arrives at once and in order.

use crate::votes::votes_for;
use crate::wire::{Ear, drain, hello, hello_again, hello_bytes};
use bytes::BytesMut;
use oxkeeper::client::Hello;
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::replica::{Action, Input, Mode, Replica, Settings, TICK_MS};
use oxkeeper::request::{Conn, Connection, Conns, Limits, Need, Shared};
use oxkeeper::tree::{Options, State, Tree};
use oxkeeper::zab::{self, LearnerConnectionId, Packet, Peer, Request};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

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

struct Side {
    machine: Connection,
    input: Vec<u8>,
    need: Need,
    ear: Ear,
    lines: Vec<String>,
}

struct Server {
    replica: Replica,
    shared: Arc<Shared>,
    sides: Vec<Side>,
    log_held: bool,
    /// What the disk will report, in order.
    disk: VecDeque<Input>,
    /// What a learner asked of its leader.
    asked: Vec<Request>,
}

pub struct Ensemble {
    servers: Vec<Server>,
    /// To which server.
    wires: VecDeque<(usize, zab::Input)>,
    passes_on: usize,
    wall_ms: i64,
}

impl Ensemble {
    pub fn new(settings: &Settings, limits: &Limits) -> Self {
        Self::behind(LEADER, settings, limits)
    }

    /// * `passes_on`: to whom the observer goes.
    pub fn behind(passes_on: usize, settings: &Settings, limits: &Limits) -> Self {
        let servers = (1..=4).map(|id| Server::new(id, settings, limits)).collect();
        let wall_ms = 1_700_000_000_000;
        let mut ensemble = Self { servers, wires: VecDeque::new(), passes_on, wall_ms };
        ensemble.pass(TICK_MS);
        for at in [LEADER, FOLLOWER, OTHER, OBSERVER] {
            let votes = votes_for(ensemble.servers[at - 1].replica.peer(), ServerId(1));
            ensemble.wires.extend(votes.into_iter().map(|vote| (at, vote)));
            ensemble.run();
        }
        let modes: Vec<Mode> =
            ensemble.servers.iter().map(|server| server.replica.mode()).collect();
        assert_eq!(modes, [Mode::Leading, Mode::Following, Mode::Following, Mode::Observing]);
        ensemble
    }

    /// A connection with a session of its own.
    pub fn client(&mut self, at: usize, address: &str) -> Client {
        let (client, lines) = self.greet(at, address, &hello());
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    /// A connection that takes a session over.
    pub fn client_again(&mut self, at: usize, session: i64) -> Client {
        let (client, lines) = self.greet(at, "10.0.0.9", &hello_again(session));
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    /// Likewise; the server reads it first, and then what the `older` connection had sent, before anybody else does anything.
    pub fn greet_late(&mut self, at: usize, session: i64, older: (Client, Vec<u8>)) -> Client {
        let client = self.connect(at, "10.0.0.9", &hello_again(session));
        let (old, bytes) = older;
        let server = &mut self.servers[at - 1];
        let now_us = 1 + server.shared.clock_ms.load(Ordering::Relaxed) * 1000;
        server.sides[old.index].ear.asked(&bytes);
        server.sides[old.index].input.extend(bytes);
        // Both are read before the first of them has an effect.
        let mut commands = Vec::new();
        for index in [client.index, old.index] {
            server.sides[index].turn(now_us);
            commands.append(&mut server.sides[index].machine.commands);
        }
        for command in commands {
            self.step(at, Input::Command { command, wall_ms: self.wall_ms });
        }
        self.run();
        let lines = self.heard(client);
        assert!(lines.len() == 1 && lines[0].starts_with("session"), "{lines:?}");
        client
    }

    fn greet(&mut self, at: usize, address: &str, hello: &Hello) -> (Client, Vec<String>) {
        let client = self.connect(at, address, hello);
        self.run();
        (client, self.heard(client))
    }

    fn connect(&mut self, at: usize, address: &str, hello: &Hello) -> Client {
        let server = &mut self.servers[at - 1];
        let peer = SocketAddr::new(address.parse().expect("an address"), 1000);
        let now_ms = server.shared.clock_ms.load(Ordering::Relaxed);
        let conn = server.shared.conns.add(|id| Conn::new(id, peer, now_ms));
        server.sides.push(Side {
            machine: Connection::new(conn, server.shared.clone()),
            input: hello_bytes(hello),
            need: Need::Bytes(1),
            ear: Ear::default(),
            lines: Vec::new(),
        });
        Client { at, index: server.sides.len() - 1 }
    }

    /// Sends requests together, lets everything happen, and gives what the client heard.
    pub fn say<const N: usize>(&mut self, client: Client, requests: [Vec<u8>; N]) -> Vec<String> {
        let side = &mut self.servers[client.at - 1].sides[client.index];
        let bytes = requests.concat();
        side.ear.asked(&bytes);
        side.input.extend(bytes);
        self.run();
        self.heard(client)
    }

    /// What the client was sent since it was last asked.
    pub fn heard(&mut self, client: Client) -> Vec<String> {
        std::mem::take(&mut self.servers[client.at - 1].sides[client.index].lines)
    }

    pub fn session(&self, client: Client) -> i64 {
        let side = &self.servers[client.at - 1].sides[client.index];
        side.machine.conn().session().expect("it has one").0
    }

    /// What a learner asked of its leader since it was last asked.
    pub fn asked(&mut self, at: usize) -> Vec<Request> {
        std::mem::take(&mut self.servers[at - 1].asked)
    }

    /// A learner passes on what it was asked earlier.
    pub fn pass_on(&mut self, at: usize, request: Request) {
        let packet = Packet::Request(request);
        let input = zab::Input::Learner { connection: LearnerConnectionId(at as u64), packet };
        self.wires.push_back((LEADER, input));
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
        &self.servers[at - 1].shared
    }

    /// The last transaction that a server has applied.
    pub fn last_zxid(&self, at: usize) -> i64 {
        self.shared(at).state.tree.read().last_zxid().to_wire()
    }

    /// Lets virtual time pass everywhere.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.wall_ms += TICK_MS as i64;
            for at in 1..=self.servers.len() {
                self.step(at, Input::Tick { wall_ms: self.wall_ms });
            }
            self.run();
        }
    }

    fn run(&mut self) {
        loop {
            let mut moved = false;
            for at in 1..=self.servers.len() {
                moved |= self.turns(at);
                while let Some(input) = self.servers[at - 1].reported() {
                    moved = true;
                    self.step(at, input);
                }
            }
            while let Some((at, input)) = self.wires.pop_front() {
                moved = true;
                self.step(at, Input::Peer { input, now_us: 1 });
            }
            if !moved {
                return;
            }
        }
    }

    /// `true`: a connection of the server got on.
    fn turns(&mut self, at: usize) -> bool {
        let mut moved = false;
        for index in 0..self.servers[at - 1].sides.len() {
            let server = &mut self.servers[at - 1];
            let now_us = 1 + server.shared.clock_ms.load(Ordering::Relaxed) * 1000;
            moved |= server.sides[index].turn(now_us);
            let commands = std::mem::take(&mut server.sides[index].machine.commands);
            for command in commands {
                moved = true;
                self.step(at, Input::Command { command, wall_ms: self.wall_ms });
            }
        }
        moved
    }

    fn step(&mut self, at: usize, input: Input) {
        let server = &mut self.servers[at - 1];
        let mut actions = Vec::new();
        server.replica.step(input, &mut actions);
        for action in actions {
            match action {
                Action::Append { zxid, .. } => {
                    server.disk.push_back(Input::Flushed { through: zxid, now_us: 1 });
                }
                Action::Peer(zab::Action::Promise { promise, epoch }) => {
                    let input = zab::Input::Promised { promise, epoch };
                    server.disk.push_back(Input::Peer { input, now_us: 1 });
                }
                Action::Peer(zab::Action::ToLeader { bytes }) => {
                    for packet in packets(&bytes) {
                        if let Packet::Request(request) = &packet {
                            server.asked.push(request.clone());
                        }
                        let input = zab::Input::Learner {
                            connection: LearnerConnectionId(at as u64),
                            packet,
                        };
                        let to = if at == OBSERVER { self.passes_on } else { LEADER };
                        self.wires.push_back((to, input));
                    }
                }
                Action::Peer(zab::Action::ToLearner { connection, bytes }) => {
                    for packet in packets(&bytes) {
                        self.wires
                            .push_back((connection.0 as usize, zab::Input::Leader { packet }));
                    }
                }
                Action::Peer(zab::Action::CloseLearner { why, .. }) => {
                    assert!(why.contains("used up"), "connection closed: {why}");
                }
                Action::Stop(why) => panic!("server {at} stopped: {why}"),
                Action::Install(_) | Action::SendTree { .. } | Action::Rebuild => {
                    panic!("all begin with the same tree")
                }
                Action::Peer(_) | Action::Wake(_) | Action::Roll | Action::Snapshot(_) => {}
            }
        }
    }
}

impl Server {
    fn new(id: i64, settings: &Settings, limits: &Limits) -> Self {
        let shared = Arc::new(Shared {
            state: State::new(Tree::new(Options::default()), 1),
            conns: Conns::default(),
            throttle: Default::default(),
            limits: limits.clone(),
            clock_ms: Default::default(),
            at_rest: Default::default(),
            is_read_only: Default::default(),
        });
        let agreement = zab::Settings {
            tick_time_ms: settings.tick_time_ms,
            sync_limit: 50,
            relays: true,
            reconfigs: true,
            ..zab::Settings::DEFAULT
        };
        let view = View::parse(VIEW).expect("a view");
        let epochs = (Epoch(0), Epoch(0));
        let peer = Peer::member(ServerId(id), agreement, view, epochs, Some(Zxid::ZERO));
        let settings = Settings { first_session: id << 56 | 1, ..settings.clone() };
        Self {
            replica: Replica::member(shared.clone(), peer, settings, 0),
            shared,
            sides: Vec::new(),
            log_held: false,
            disk: VecDeque::new(),
            asked: Vec::new(),
        }
    }

    fn reported(&mut self) -> Option<Input> {
        if self.log_held { None } else { self.disk.pop_front() }
    }
}

impl Side {
    fn turn(&mut self, now_us: u64) -> bool {
        let has_news = !self.machine.wait(Waker::noop());
        let may_go = match self.need {
            Need::Bytes(_) => !self.input.is_empty(),
            Need::Turn => true,
            Need::Room => self.machine.unsent.is_empty(),
            Need::Answer | Need::Relief => false,
            Need::Word(_) | Need::Close(_) => return false,
        };
        if !may_go && !has_news && self.machine.unsent.is_empty() {
            return false;
        }
        let before = (self.input.len(), self.need.clone());
        let (taken, need) = self.machine.advance(&self.input, now_us);
        self.input.drain(..taken);
        self.need = need;
        let fetched = !self.machine.unsent.is_empty();
        let bytes = drain(&mut self.machine.unsent);
        for said in self.ear.hear(&bytes) {
            self.lines.push(self.ear.line(&said));
        }
        match &self.need {
            Need::Close(reason) if reason.is_empty() => self.lines.push("closed".to_owned()),
            Need::Close(reason) => self.lines.push(format!("closed: {reason}")),
            _ => {}
        }
        before != (self.input.len(), self.need.clone()) || has_news || fetched
    }
}

fn packets(bytes: &[u8]) -> Vec<Packet> {
    let (mut bytes, mut packets) = (BytesMut::from(bytes), Vec::new());
    while let Some(packet) = Packet::decode(&mut bytes).expect("packets") {
        packets.push(packet);
    }
    packets
}
