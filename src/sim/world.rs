//! A whole ensemble and its clients in one process, one thing after the other.
//!
//! Everything that happens is an [`Event`] at a time; what is due at the same time happens in the order it was asked for.

use super::check::{Checks, Failure, Seen};
use super::client::Client;
use super::driver::LogRequest;
use super::network::{Chunk, Due, End, Network, PipeId, Port};
use super::plan::{Climate, MS, Micros, Plan, What};
use super::rng::Rng;
use super::script::Tape;
use super::server::{Process, Server, tree_options};
use super::trace::{Trace, Tracing};
use crate::member::election_connections::{self, ConnectionId};
use crate::member::{Input, QuorumPeer};
use crate::tree::Tree;
use crate::zab::LearnerConnectionId;
use std::collections::BTreeMap;

/// A client looks up from what it does this often.
pub const CLIENT_TURN_US: Micros = 20 * MS;

/// Who stands still is looked at again after so long.
const LATER_US: Micros = 5 * MS;

/// Of one process of a server: what was asked by one is nothing to the next.
#[derive(Clone, Copy, Debug)]
pub struct Of {
    pub server: usize,
    pub life: u64,
}

pub enum Event {
    /// A step of the plan.
    Step(usize),
    Arrive(PipeId, End),
    /// The driver looks at what there is.
    Turn(Of),
    /// Its timer wakes it.
    Timer(Of),
    /// The log thread takes what has queued up.
    Log(Of),
    /// ...and is done with it.
    LogIdle(Of),
    /// The snapshot under way gets on.
    Job(Of),
    Rebuild(Of),
    ReadLog(Of, LogRequest),
    /// One of its threads reports.
    Report(Of, Input),
    /// A connection's task looks at what there is.
    Side(Of, PipeId),
    /// A call of a leader goes on.
    Dial {
        of: Of,
        dial: u64,
    },
    /// An attempt at one of its addresses is answered, or not.
    DialAnswer {
        of: Of,
        dial: u64,
        address: usize,
        until_ms: u64,
    },
    /// A learner must have sent its hello.
    HelloDue(Of, LearnerConnectionId),
    /// A dial of another server's election port gets through or not.
    DialWire {
        of: Of,
        connection: ConnectionId,
        to: usize,
    },
    /// Something happens to a server's election connections.
    Wires(Of, election_connections::Input),
    /// A tree on its way to a learner gets on.
    TreePiece(Of, QuorumPeer),
    /// The power, or the process, goes now if it has not gone yet.
    Strike(Of),
    Start(usize),
    Mend(Vec<(usize, usize)>),
    Client(usize),
}

pub struct World {
    pub plan: Plan,
    pub now_us: Micros,
    /// What is due, by time and the order it was asked for.
    events: BTreeMap<(Micros, u64), Event>,
    asked: u64,
    pub net: Network,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    pub checks: Checks,
    pub failure: Option<Failure>,
    pub rng: Rng,
    pub trace: Trace,
    /// What each process's machine of agreement was given, if somebody wants to know.
    pub tapes: Option<Vec<Tape>>,
    /// Faults are over.
    pub is_healing: bool,
}

impl World {
    pub fn new(plan: Plan, tracing: Tracing) -> Self {
        let climate = plan.climate.clone();
        let seed = climate.seed;
        let mut world = Self {
            now_us: 0,
            events: BTreeMap::new(),
            asked: 0,
            net: Network::new(seed, climate.latency_us),
            servers: (0..climate.servers()).map(|_| Server::new()).collect(),
            clients: (0..climate.clients).map(|at| Client::new(at, seed)).collect(),
            checks: Checks::new(&Tree::new(tree_options(seed))),
            failure: None,
            rng: Rng::new(seed, 4),
            trace: Trace { tracing, ..Trace::default() },
            tapes: None,
            is_healing: false,
            plan,
        };
        world.checks.truth.local_sessions = climate.local_sessions;
        for at in 0..world.servers.len() {
            let is_joiner = climate.voters + climate.observers <= at;
            let within_us = if is_joiner { climate.lasts_us / 2 } else { 30 * MS };
            let at_us = world.rng.below(within_us / MS) * MS;
            world.ask(at_us, Event::Start(at));
        }
        for at in 0..world.clients.len() {
            let at_us = world.rng.below(CLIENT_TURN_US);
            world.ask(at_us, Event::Client(at));
        }
        for at in 0..world.plan.steps.len() {
            let at_us = world.plan.steps[at].at_us;
            world.ask(at_us, Event::Step(at));
        }
        world
    }

    pub const fn climate(&self) -> &Climate {
        &self.plan.climate
    }

    /// Something is to happen then.
    pub fn ask(&mut self, at_us: Micros, event: Event) {
        self.asked += 1;
        self.events.insert((at_us.max(self.now_us), self.asked), event);
    }

    /// Something is to happen within so long.
    pub fn ask_within(&mut self, low_us: Micros, high_us: Micros, event: Event) {
        let at_us = self.now_us + self.rng.range(low_us, high_us);
        self.ask(at_us, event);
    }

    /// Whoever it is for does nothing now: it may be able to in a while.
    pub fn ask_later(&mut self, event: Event) {
        self.ask(self.now_us + LATER_US, event);
    }

    pub fn ask_all(&mut self, due: impl IntoIterator<Item = Due>) {
        for (at_us, pipe, end) in due {
            self.ask(at_us, Event::Arrive(pipe, end));
        }
    }

    pub fn of(&self, server: usize) -> Of {
        Of { server, life: self.servers[server].life }
    }

    /// The process, if it is still that one.
    pub fn process(&mut self, of: Of) -> Option<&mut Process> {
        let server = &mut self.servers[of.server];
        if server.life == of.life { server.process.as_mut() } else { None }
    }

    pub fn note(&mut self, server: usize, text: impl FnOnce() -> String) {
        self.trace.note(self.now_us, "s", server, text);
    }

    pub fn note_client(&mut self, client: usize, text: impl FnOnce() -> String) {
        self.trace.note(self.now_us, "c", client, text);
    }

    /// Tells the checks.
    pub fn see(&mut self, seen: &Seen<'_>) {
        if self.failure.is_none()
            && let Err(failure) = self.checks.see(seen)
        {
            self.fail(failure.check, failure.what);
        }
    }

    pub fn fail(&mut self, check: &'static str, what: String) {
        self.trace.note(self.now_us, "!", 0, || format!("{check}: {what}"));
        self.failure.get_or_insert(Failure { check, what });
    }

    /// Lets time pass, until then or until something does not hold.
    pub fn run_until(&mut self, end_us: Micros) {
        while self.failure.is_none() {
            let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= end_us)
            else {
                self.now_us = self.now_us.max(end_us);
                return;
            };
            self.now_us = first.key().0;
            let event = first.remove();
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(at) => match self.plan.steps[at].what.clone() {
                What::Client { client, deed } => self.do_deed(client, deed),
                What::Fault(fault) if !self.is_healing => self.strike(fault),
                What::Fault(_) => {}
            },
            Event::Arrive(pipe, end) => self.arrive(pipe, end),
            Event::Turn(of) => self.turn(of),
            Event::Timer(of) => self.on_timer(of),
            Event::Log(of) => self.write_log(of),
            Event::LogIdle(of) => self.on_log_idle(of),
            Event::Job(of) => self.write_snapshot(of),
            Event::Rebuild(of) => self.load_tree(of),
            Event::ReadLog(of, asked) => self.read_log(of, asked),
            Event::Report(of, input) => {
                if let Some(process) = self.process(of) {
                    process.reports.push_back(input);
                    self.wake_driver(of);
                }
            }
            Event::Side(of, pipe) => self.turn_side(of, pipe),
            Event::DialWire { of, connection, to } => self.dial_wire(of, connection, to),
            Event::Wires(of, input) if self.now_us < self.servers[of.server].stalled_us => {
                self.ask_later(Event::Wires(of, input));
            }
            Event::Wires(of, input) => self.step_wires(of, input),
            Event::Dial { of, dial } => self.dial(of, dial),
            Event::DialAnswer { of, dial, address, until_ms } => {
                self.dial_answer(of, dial, (address, until_ms));
            }
            Event::HelloDue(of, connection) => self.check_hello(of, connection),
            Event::TreePiece(of, peer) => self.send_piece(of, peer),
            Event::Strike(of) => self.strike_now(of),
            Event::Start(server) => self.start(server),
            Event::Mend(cuts) => self.mend(&cuts),
            Event::Client(client) => self.turn_client(client),
        }
    }

    /// Something comes in at one end of a connection.
    fn arrive(&mut self, pipe: PipeId, end: End) {
        let Some(node) = self.net.pipes.get(&pipe).map(|found| found.at(end)) else { return };
        // A machine that stands still takes nothing up.
        if let Some(server) = self.servers.get(node)
            && self.now_us < server.stalled_us
        {
            return self.ask_later(Event::Arrive(pipe, end));
        }
        if let Some(client) = node.checked_sub(self.servers.len())
            && self.is_asleep(client)
        {
            return self.ask_later(Event::Arrive(pipe, end));
        }
        let Some(chunk) = self.net.arrive(self.now_us, pipe, end) else { return };
        let port = self.net.pipes[&pipe].port;
        let is_over = matches!(chunk, Chunk::End);
        if node >= self.servers.len() {
            self.client_hears(node - self.servers.len(), pipe, chunk);
        } else {
            let of = self.of(node);
            match port {
                Port::Client => self.side_hears(of, pipe, chunk),
                Port::Quorum { .. } => self.on_quorum_chunk(of, pipe, end, chunk),
                Port::Election => self.wire_hears(of, pipe, chunk),
            }
        }
        if is_over {
            self.net.ended(pipe, end);
        }
    }

    /// Sends bytes over a connection.
    pub fn send(&mut self, pipe: PipeId, from: End, bytes: bytes::Bytes) {
        let due = self.net.send(self.now_us, pipe, from, bytes);
        self.ask_all(due);
    }

    /// Closes one end of a connection.
    pub fn close(&mut self, pipe: PipeId, from: End) {
        let due = self.net.close(self.now_us, pipe, from);
        self.ask_all(due);
    }
}
