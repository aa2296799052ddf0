//! A whole ensemble and its clients in one process, and the scheduler that runs them, one task after the other.
//!
//! Everything that happens is a task with a time; tasks with the same time run in the order in which they were scheduled.

use super::check::{Checks, Failure, Seen};
use super::client::Client;
use super::membership;
use super::network::{Due, EndId, Holder, Network, ProcessId};
use super::plan::{
    Climate, MS, Micros, Plan, PlannedEvent, PlantedFault, SERVES_AFTER_BREAK_US, SERVES_US,
    STARTS_TOGETHER_US,
};
use super::process::{Process, Server};
use super::restored_tree::TreeCopy;
use super::script::Tape;
use super::trace::{Trace, Tracing};
use crate::member::Input;
use crate::model::{Rng, Zxid};
use crate::tree::{self, Tree};
use std::collections::BTreeMap;

/// Period of a client's timer.
pub const CLIENT_TURN_US: Micros = 20 * MS;
/// A task of a machine that stands still is tried again after this time.
const LATER_US: Micros = 5 * MS;

type Task = Box<dyn FnOnce(&mut World)>;

/// A change of members that is under way, in worlds whose operators write lines (`super::joins`).
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// The member that leaves, because it is down.
    pub lagging: usize,
    /// A learner that acknowledges this zxid or a later one has acknowledged the configuration with the joiner.
    pub from: Option<Zxid>,
}

pub struct World {
    pub plan: Plan,
    pub now_us: Micros,
    /// The tasks to come, by time and the order in which they were scheduled.
    tasks: BTreeMap<(Micros, u64), Task>,
    scheduled: u64,
    pub net: Network,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    pub checks: Checks,
    pub failure: Option<Failure>,
    pub rng: Rng,
    pub trace: Trace,
    /// One for each process, if tapes are wanted.
    pub tapes: Vec<Tape>,
    /// Faults are over.
    pub is_healing: bool,
    /// A quorum has lost its data, and no leader is established yet.
    pub is_recovering: bool,
    /// The one of two voters that the oracle lets go on without the other.
    pub oracle: Option<usize>,
    /// The server that has data which all others have lost.
    pub outsider: Option<usize>,
    /// Clients may reconfigure the ensemble: zxids are still later than the versions of all configurations.
    pub reconfigures: bool,
    /// The change of members that ends with a stop of all servers.
    pub join: Option<Join>,
    /// When a first connection ended, where servers start together.
    pub broken_us: Micros,
    /// An operator's copies of trees.
    pub copies: Vec<TreeCopy>,
}

impl World {
    pub fn new(plan: Plan, tracing: Tracing) -> Self {
        let (climate, seed) = (plan.climate.clone(), plan.climate.seed);
        let mut world = Self {
            now_us: 0,
            tasks: BTreeMap::new(),
            scheduled: 0,
            net: Network::new(seed, climate.latency_us),
            servers: (0..climate.servers()).map(|_| Server::default()).collect(),
            clients: (0..climate.clients).map(|client| Client::new(client, &climate)).collect(),
            checks: Checks::new(
                &Tree::new(tree::Options { seed, ..tree::Options::default() }),
                climate.local_sessions,
                membership::first_view(&climate),
            ),
            failure: None,
            rng: Rng::new(seed, 4),
            trace: Trace { tracing, ..Trace::default() },
            tapes: Vec::new(),
            is_healing: false,
            is_recovering: false,
            oracle: None,
            outsider: None,
            reconfigures: true,
            join: None,
            broken_us: 0,
            copies: Vec::new(),
            plan,
        };
        for server in 0..world.servers.len() {
            membership::write_files(&world.servers[server].disk, &climate, server)
                .expect("a new disk takes its first files");
            let is_joiner = climate.voters + climate.observers <= server;
            // A new directory without `initialize`.
            world.servers[server].is_unsure = is_joiner && climate.marks_new;
            let within_us = match is_joiner {
                true => climate.lasts_us / 2,
                false if climate.starts_together => STARTS_TOGETHER_US,
                false => 30 * MS,
            };
            world.do_within(0, within_us, move |world| world.start(server));
        }
        for client in 0..world.clients.len() {
            world.do_within(0, CLIENT_TURN_US, move |world| world.turn_client(client));
        }
        world.checks.left_out = climate.left_out;
        let history = &mut world.checks.history;
        history.is_alone = climate.alone;
        history.confirms_reads = climate.linearizable_reads || climate.alone;
        history.confirms_syncs = climate.quorum_sync || history.confirms_reads;
        world.count_climate();
        for number in 0..world.plan.steps.len() {
            let at_us = world.plan.steps[number].at_us;
            world.do_at(at_us, move |world| match world.plan.steps[number].event.clone() {
                PlannedEvent::Client { client, action } => world.act_as_client(client, action),
                PlannedEvent::Fault(fault) if !world.is_healing && !world.is_recovering => {
                    world.strike(fault)
                }
                PlannedEvent::Fault(_) => {}
            });
        }
        world
    }

    fn count_climate(&mut self) {
        let climate = self.climate().clone();
        for (happens, what) in [
            (climate.alone, "worlds of a standalone server"),
            (climate.voters == 2, "worlds of two voters"),
            (climate.linearizable_reads, "worlds with linearizable reads"),
            (climate.starts_together, "worlds that start together"),
            (climate.voters == 7, "worlds of seven voters"),
            (climate.groups, "worlds with groups"),
            (climate.oracle, "worlds with an oracle"),
            (climate.oracle && climate.changes, "worlds with an oracle and changes"),
            (climate.read_only, "worlds with read-only service"),
            (climate.destroys, "worlds whose quorums lose their data"),
            (climate.restores, "worlds with restores"),
            (!climate.java.is_empty(), "worlds with Java members"),
            (climate.java_trees, "worlds with damaged trees of Java leaders"),
            (climate.loses_older_logs, "worlds that lose older logs"),
            (climate.trusts_empty, "worlds with snapshot.trust.empty throughout"),
            (climate.locks_folders, "worlds with locked configuration folders"),
            (climate.loses_machine, "worlds that lose a machine"),
            (climate.migrates, "worlds that start with snapshot.trust.empty"),
            (climate.restores_epochs, "worlds that restore older epochs"),
            (climate.moves_ports, "worlds that move client ports"),
            (climate.hurries, "worlds that reconfigure in a hurry"),
            (climate.returns, "worlds with a server that comes back"),
            (climate.rivals, "worlds with rivals that observers meet"),
            (climate.rewrites, "worlds whose operators write lines anew"),
            (climate.grows, "worlds that begin with one server"),
            (climate.strays, "worlds with packets of another phase"),
            (climate.breaks_early, "worlds whose first connections end"),
            (
                climate.loses_files && climate.marks_new,
                "worlds that lose files, db.autocreate=false",
            ),
            (climate.loses_files && !climate.marks_new, "worlds that lose files"),
        ] {
            if happens {
                self.trace.count(what);
            }
        }
    }

    pub const fn climate(&self) -> &Climate {
        &self.plan.climate
    }

    pub fn do_at(&mut self, at_us: Micros, task: impl FnOnce(&mut Self) + 'static) {
        self.scheduled += 1;
        self.tasks.insert((at_us.max(self.now_us), self.scheduled), Box::new(task));
    }

    pub fn do_within(
        &mut self,
        low_us: Micros,
        high_us: Micros,
        task: impl FnOnce(&mut Self) + 'static,
    ) {
        let at_us = self.now_us + self.rng.range(low_us, high_us);
        self.do_at(at_us, task);
    }

    /// Tries a task again later, because its machine stands still.
    pub fn do_soon(&mut self, task: impl FnOnce(&mut Self) + 'static) {
        self.do_at(self.now_us + LATER_US, task);
    }

    /// One of a process's threads, or one of its connections, reports to its driver.
    pub fn report(&mut self, at: ProcessId, input: Input) {
        if let Some(process) = self.process(at) {
            process.events.push(input);
            self.wake_driver(at);
        }
    }

    pub fn process_id(&self, server: usize) -> ProcessId {
        ProcessId { server, number: self.servers[server].number }
    }

    /// The process, if it still lives.
    pub fn process(&mut self, at: ProcessId) -> Option<&mut Process> {
        let server = &mut self.servers[at.server];
        if server.number == at.number { server.process.as_mut() } else { None }
    }

    pub fn is_stalled(&self, server: usize) -> bool {
        self.now_us < self.servers[server].stalled_us
    }

    /// Whether servers that start together still have time until they must serve.
    pub const fn is_starting(&self) -> bool {
        self.climate().starts_together && self.now_us < self.serves_us()
    }

    /// When servers that start together have to serve.
    pub const fn serves_us(&self) -> Micros {
        let begin_us =
            if self.broken_us < STARTS_TOGETHER_US { STARTS_TOGETHER_US } else { self.broken_us };
        begin_us + if self.broken_us == 0 { SERVES_US } else { SERVES_AFTER_BREAK_US }
    }

    pub fn note(&mut self, server: usize, text: impl FnOnce() -> String) {
        self.trace.note(self.now_us, 's', server, text);
    }

    pub fn note_client(&mut self, client: usize, text: impl FnOnce() -> String) {
        self.trace.note(self.now_us, 'c', client, text);
    }

    pub fn note_fault(&mut self, text: impl FnOnce() -> String) {
        self.trace.note(self.now_us, '!', 0, text);
    }

    /// Shows the checks what a server or a client did, as the planted fault of this world changes it.
    pub fn see(&mut self, seen: &Seen<'_>) {
        match self.climate().plant {
            Some(plant) => self.see_spoilt(plant, seen),
            None => self.run_checks(seen),
        }
    }

    pub fn run_checks(&mut self, seen: &Seen<'_>) {
        if self.failure.is_none()
            && let Err(failure) = self.checks.see(seen)
        {
            self.fail(failure.check, failure.what);
        }
    }

    pub fn fail(&mut self, check: &'static str, what: String) {
        self.note_fault(|| format!("{check}: {what}"));
        if self.checks.left_out == Some(check) {
            return;
        }
        self.failure.get_or_insert(Failure { check, what });
    }

    /// Lets time pass until `end_us`, or until a property does not hold.
    pub fn run_until(&mut self, end_us: Micros) {
        while self.failure.is_none() {
            let Some(first) = self.tasks.first_entry().filter(|first| first.key().0 <= end_us)
            else {
                self.now_us = self.now_us.max(end_us);
                return;
            };
            self.now_us = first.key().0;
            let task = first.remove();
            task(self);
        }
    }

    /// Bytes arrive at one end of a connection.
    fn arrive(&mut self, end: EndId) {
        let Some(holder) = self.net.holder(end) else { return };
        let is_late =
            self.climate().plant == Some(PlantedFault::SlowStart) && self.now_us < 1000 * MS;
        let is_stalled = match holder {
            Holder::ElectionConnection(..) if is_late => true,
            Holder::Client(client) => self.is_asleep(client),
            Holder::ClientConnection(at) | Holder::ElectionConnection(at, _) => {
                self.is_stalled(at.server)
            }
            Holder::LearnerConnection(at, peer) => {
                self.is_stalled(at.server) || self.sleeps(at, peer)
            }
        };
        if is_stalled {
            return self.do_soon(move |world| world.arrive(end));
        }
        let Some(chunk) = self.net.arrive(self.now_us, end) else { return };
        match holder {
            Holder::Client(client) => self.client_receives(client, end, chunk),
            Holder::ClientConnection(at) => self.client_connection_receives(at, end, chunk),
            Holder::LearnerConnection(at, peer) => {
                self.learner_connection_reads(at, peer, end, chunk);
            }
            Holder::ElectionConnection(at, connection) => {
                self.election_connection_receives(at, connection, chunk);
            }
        }
    }

    pub fn expect_arrivals(&mut self, due: impl IntoIterator<Item = Due>) {
        for (at_us, end) in due {
            self.do_at(at_us, move |world| world.arrive(end));
        }
    }

    /// Sends bytes from one end of a connection.
    pub fn send(&mut self, from: EndId, bytes: bytes::Bytes) {
        let due = self.net.send(self.now_us, from, bytes);
        self.expect_arrivals(due);
    }

    /// Closes one end of a connection.
    pub fn close(&mut self, end: EndId) {
        let due = self.net.close(self.now_us, end);
        self.expect_arrivals(due);
    }
}
