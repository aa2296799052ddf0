//! A world from its beginning to its end.

use super::ask::{Ask, PATHS};
use super::check::{Failure, Seen, Server};
use super::faults::Armed;
use super::plan::{Deed, MS, Micros, Plan, Plant};
use super::script::Tape;
use super::trace::Tracing;
use super::world::World;
use std::collections::{BTreeMap, VecDeque};

/// Once faults are over all has to come to rest within this.
const REST_US: Micros = 20_000 * MS;
/// Looked at this often.
const LOOK_US: Micros = 20 * MS;
/// Rest is what lasts so long.
const STILL_US: Micros = 100 * MS;

/// What became of a world.
pub struct Lived {
    pub failure: Option<Failure>,
    /// Its last lines, or all, as was wished.
    pub lines: VecDeque<String>,
    /// How much happened: the same for the same plan.
    pub events: u64,
    /// Transactions that were committed.
    pub committed: usize,
    pub lasted_us: Micros,
    /// What happened how often.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Lets a world live.
pub fn live(plan: &Plan, tracing: Tracing) -> Lived {
    let mut world = World::new(plan.clone(), tracing);
    world.live();
    let (lost, broken_off) = (world.net.lost, world.net.broken_off);
    world.trace.counts.insert("sent again", lost);
    world.trace.counts.insert("lost with a connection", broken_off);
    Lived {
        failure: world.failure,
        lines: world.trace.lines,
        events: world.trace.events,
        committed: world.checks.truth.committed().len(),
        lasted_us: world.now_us,
        counts: world.trace.counts,
    }
}

/// Lets a world live, and keeps what each server's machine of agreement was given until something did not hold.
pub fn live_taped(plan: &Plan) -> (Option<Failure>, Vec<Tape>) {
    let mut world = World::new(plan.clone(), Tracing::Off);
    world.tapes = Some(Vec::new());
    world.live();
    (world.failure, world.tapes.unwrap_or_default())
}

impl World {
    fn live(&mut self) {
        let lasts_us = self.climate().lasts_us;
        if self.climate().plant == Some(Plant::TamperedTree) {
            self.run_until(lasts_us / 2);
            self.tamper(0);
        }
        self.run_until(lasts_us);
        if self.failure.is_some() {
            return;
        }
        self.heal();
        self.come_to_rest();
        if self.failure.is_some() {
            return;
        }
        // Whatever was committed is there again after the power was gone everywhere.
        for server in 0..self.servers.len() {
            let keeps = self.rng.below(1000);
            self.end(server, Armed::Power { keeps, down_us: 0 });
        }
        self.come_to_rest();
    }

    /// All serve, a write of each client succeeds, and all have the same.
    fn come_to_rest(&mut self) {
        self.wait_for_rest("before the last writes");
        self.wait_for_ends();
        if self.failure.is_some() {
            return;
        }
        self.clients.iter_mut().for_each(|client| client.last_done = 0);
        // What was late before faults ended may still cost somebody a connection.
        for _ in 0..3 {
            self.write_last();
        }
        if self.failure.is_some() {
            return;
        }
        if let Some(client) = self.clients.iter().find(|client| client.last_done == 0) {
            let why = format!("client {} could not write although nothing failed", client.at);
            return self.see(&Seen::Restless { why: &why });
        }
        self.see_calm();
    }

    fn write_last(&mut self) {
        for client in 0..self.clients.len() {
            if self.clients[client].last_done == 0 {
                let mut asks = vec![Ask::Last, Ask::Sync { path: 0 }, Ask::ReadPair];
                asks.extend((0..PATHS.len()).map(|path| Ask::Get { path, watch: false }));
                self.do_deed(client, Deed::Ask(asks));
            }
        }
        self.wait_for_rest("after the last writes");
    }

    fn wait_for_rest(&mut self, when: &str) {
        let end_us = self.now_us + REST_US;
        let mut still_us = 0;
        while self.failure.is_none() {
            self.run_until(self.now_us + LOOK_US);
            still_us = if self.is_at_rest() { still_us + LOOK_US } else { 0 };
            if STILL_US <= still_us {
                return;
            }
            if end_us < self.now_us {
                let why = format!("no rest {when}: {}", self.standing());
                return self.see(&Seen::Restless { why: &why });
            }
        }
    }

    /// Sessions that nobody speaks for are ended.
    fn wait_for_ends(&mut self) {
        let end_us = self.now_us + REST_US;
        while self.failure.is_none() {
            let held: Vec<i64> = self.clients.iter().map(|client| client.session).collect();
            let sessions = &self.checks.truth.model.sessions;
            let left = sessions
                .iter()
                .find(|(id, life)| life.closed.is_none() && !held.contains(id))
                .map(|(&id, _)| id);
            let Some(id) = left else { return };
            if end_us < self.now_us {
                let why = format!("session {id:#x}, which nobody has, does not end");
                return self.see(&Seen::Restless { why: &why });
            }
            self.run_until(self.now_us + LOOK_US);
        }
    }

    fn is_at_rest(&self) -> bool {
        let (last, members) = (self.checks.truth.last(), self.members());
        self.clients.iter().all(super::client::Client::is_idle)
            && members.iter().all(|&at| {
                let process = self.servers[at].process.as_ref();
                process.is_some_and(|process| {
                    process.is_serving() && process.is_quiet() && process.last() == last
                })
            })
    }

    /// How things stand, in words.
    fn standing(&self) -> String {
        let servers = self.servers.iter().map(|server| match &server.process {
            None => "down".to_owned(),
            Some(process) => {
                let (mode, last) = (process.member.replica.mode(), process.last());
                let quiet = if process.is_quiet() { "quiet" } else { "busy" };
                let view = super::membership::short(process.view());
                format!("{mode:?} at {last}, {quiet}, {view}")
            }
        });
        let servers: Vec<String> = servers.collect();
        let clients: Vec<String> = self
            .clients
            .iter()
            .map(|client| format!("{:?}, {} asked", client.place, client.asked.len()))
            .collect();
        let last = self.checks.truth.last();
        format!(
            "committed {last}; servers: {}; clients: {}",
            servers.join("; "),
            clients.join("; ")
        )
    }

    fn see_calm(&mut self) {
        let processes: Vec<_> = self
            .members()
            .into_iter()
            .filter_map(|at| Some((at, self.servers[at].process.as_ref()?)))
            .collect();
        let trees: Vec<_> =
            processes.iter().map(|(_, process)| process.shared.state.tree.read()).collect();
        let servers: Vec<Server<'_>> = processes
            .iter()
            .zip(&trees)
            .map(|((server, process), tree)| Server {
                server: *server,
                tree,
                mismatches: process.member.replica.stats.digest_mismatches,
            })
            .collect();
        let seen = self.checks.see(&Seen::Calm { servers: &servers });
        drop(servers);
        drop(trees);
        drop(processes);
        if let Err(failure) = seen {
            self.fail(failure.check, failure.what);
        }
    }
}
