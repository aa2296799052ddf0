//! A world from its beginning to its end.

use super::check::{Failure, Seen};
use super::client::Client;
use super::membership;
use super::plan::{ClientAction, Crash, CrashKind, MS, Micros, Plan, PlantedFault};
use super::process::Process;
use super::script::Tape;
use super::trace::Tracing;
use super::workload::{Op, PATHS, Request, Required};
use super::world::World;
use crate::model::ServerId;
use crate::replica::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// After the last fault the ensemble has to settle within this time.
const REST_US: Micros = 20_000 * MS;
/// How often a world looks whether the ensemble has settled.
const LOOK_US: Micros = 20 * MS;
/// The ensemble has settled when it has been idle for this time.
const STILL_US: Micros = 100 * MS;

/// What became of a world.
pub struct Outcome {
    pub failure: Option<Failure>,
    /// Number of lines that a trace has: the same for the same plan.
    pub events: u64,
    /// Transactions that were committed.
    pub committed: usize,
    pub lasted_us: Micros,
    /// How often each thing happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// With [`Tracing::Inputs`]: the inputs of each process's `zab` peer.
    pub tapes: Vec<Tape>,
}

/// Runs a world from its beginning to its end.
pub fn run(plan: &Plan, tracing: Tracing) -> Outcome {
    let mut world = World::new(plan.clone(), tracing);
    world.run();
    let (lost, broken_off) = (world.net.lost, world.net.broken_off);
    world.trace.counts.extend([("sent again", lost), ("lost with a connection", broken_off)]);
    Outcome {
        failure: world.failure,
        events: world.trace.events,
        committed: world.checks.history.committed().len(),
        lasted_us: world.now_us,
        counts: world.trace.counts,
        tapes: world.tapes,
    }
}

impl World {
    fn run(&mut self) {
        let lasts_us = self.climate().lasts_us;
        self.begin_rescales();
        if self.climate().starts_together {
            while self.now_us < self.serves_us() && self.failure.is_none() {
                self.run_until(self.serves_us());
            }
            // An ensemble whose data an operator has just destroyed begins anew, later.
            if self.checks.history.leaders.is_empty() && !self.is_recovering {
                self.see_unsettled(format!("no epoch is established yet: {}", self.describe()));
            }
        }
        if self.climate().plant == Some(PlantedFault::TamperedTree) {
            self.run_until(lasts_us / 2);
            self.tamper(0);
        }
        self.run_until(lasts_us);
        self.wait_for_outsider();
        if self.failure.is_some() {
            return;
        }
        self.heal();
        self.replace_lost();
        self.run_until(self.now_us + LOOK_US); // So that all have started.
        // A server that has started since may know a configuration with a lost server (world 2963000000059).
        self.replace_lost();
        if self.has_lost() && self.members_without_lost().is_none() {
            return self.trace.count("ensembles that can't do without a lost server");
        }
        if self.waits_for_lost_data() {
            return self.trace.count("ensembles that need a server that lost its data");
        }
        self.outdo_uncommitted();
        self.come_to_rest();
        if self.failure.is_some() {
            return;
        }
        // All that was committed has to be there again after a power cut of all machines.
        for server in 0..self.servers.len() {
            let keeps = self.rng.below(1000);
            self.crash(server, Crash { kind: CrashKind::Power { keeps }, down_us: 0 });
        }
        self.come_to_rest();
    }

    /// Whether no server leads, and a configuration has no quorum without a server that lost files. A leader that has yet to see that the
    /// server's connection ended may propose such a configuration (world 1860000000596). Java's ensembles stand still then, too.
    fn waits_for_lost_data(&self) -> bool {
        let running = |at: usize| self.servers[at].process.as_ref();
        let has_data = |at: &usize| {
            running(*at).is_some_and(|it| !it.member.replica.peer().core.is_unsure)
                || !self.servers[*at].has_lost
        };
        let all = || 0..self.servers.len();
        let leads = |at| running(at).is_some_and(|it| it.member.replica.mode() == Mode::Leading);
        let sure: BTreeSet<ServerId> =
            all().filter(has_data).map(|at| ServerId(at as i64)).collect();
        let mut views =
            all().filter_map(running).flat_map(|it| it.member.replica.peer().core.all_views());
        !self.climate().alone && !all().any(leads) && views.any(|view| !view.has_quorum(&sure))
    }

    fn wait_for_outsider(&mut self) {
        let end_us = self.now_us + REST_US;
        while self.failure.is_none() && self.outsider.is_some() {
            if end_us < self.now_us {
                return self.see_unsettled(format!("no new ensemble: {}", self.describe()));
            }
            self.run_until(self.now_us + LOOK_US);
        }
    }

    /// Clients remove servers that are lost for good.
    fn replace_lost(&mut self) {
        let end_us = self.now_us + REST_US;
        while self.failure.is_none() && self.now_us < end_us && self.counts_lost() {
            match self.members_without_lost() {
                Some(members) => self.ask_for(members),
                None if self.has_lost() => return,
                // A proposed configuration that has such a server may come in force yet.
                None => {}
            }
            self.run_until(self.now_us + STILL_US);
        }
    }

    /// Every client asks for these members.
    fn ask_for(&mut self, members: String) {
        let (required, members) = (Required::Any, Some(members));
        let change = Op::Reconfig { required, joining: None, leaving: None, members };
        let action = ClientAction::Send(vec![Request::new(change, "")]);
        (0..self.clients.len()).for_each(|client| self.act_as_client(client, action.clone()));
        self.trace.count("removals of lost servers asked for");
    }

    /// A client that has seen the zxid of a transaction that was never committed is refused by all servers until they have
    /// committed a later one; so the other clients write.
    fn outdo_uncommitted(&mut self) {
        let end_us = self.now_us + REST_US;
        let is_ahead = |world: &Self| {
            let last = world.checks.history.last().to_wire();
            world.clients.iter().any(|client| last < client.session.last_zxid)
        };
        while self.failure.is_none() && self.now_us < end_us && is_ahead(self) {
            let action = ClientAction::Send(vec![Request::create_end()]);
            (0..self.clients.len()).for_each(|client| self.act_as_client(client, action.clone()));
            self.run_until(self.now_us + STILL_US);
        }
    }

    /// All members have to serve, a write of each client has to succeed, and then all members have the same tree.
    fn come_to_rest(&mut self) {
        self.wait_for_rest("before the last writes");
        self.wait_for_ends();
        self.clients.iter_mut().for_each(|client| client.last_done = 0);
        // Delays from before the end of faults may still cost a client its connection.
        for _ in 0..3 {
            self.write_last();
        }
        if self.failure.is_some() {
            return;
        }
        if let Some(client) = self.clients.iter().find(|client| client.last_done == 0) {
            let number = client.number;
            return self.see_unsettled(format!("client {number} could not write in a calm world"));
        }
        self.see_settled();
    }

    fn write_last(&mut self) {
        for client in 0..self.clients.len() {
            if self.clients[client].last_done == 0 {
                let (sync, pair) = (Request::new(Op::Sync, "/a"), Request::new(Op::GetPair, ""));
                let mut requests = vec![Request::create_end(), sync, pair];
                requests.extend(PATHS.map(|path| Request::new(Op::Get { watch: false }, path)));
                self.act_as_client(client, ClientAction::Send(requests));
            }
        }
        self.wait_for_rest("after the last writes");
    }

    fn see_unsettled(&mut self, why: String) {
        self.see(&Seen::Unsettled { why: &why });
    }

    fn wait_for_rest(&mut self, when: &str) {
        let end_us = self.now_us + REST_US;
        let mut still_us = 0;
        while self.failure.is_none() {
            // Again each time: a reconfiguration that a client sent earlier may make a lost server a member again.
            self.replace_lost();
            self.run_until(self.now_us + LOOK_US);
            still_us = if self.is_settled() { still_us + LOOK_US } else { 0 };
            if STILL_US <= still_us {
                return;
            }
            if end_us < self.now_us {
                return self.see_unsettled(format!("not settled {when}: {}", self.describe()));
            }
        }
    }

    /// Waits for the end of sessions that no client has.
    fn wait_for_ends(&mut self) {
        let end_us = self.now_us + REST_US;
        while self.failure.is_none() {
            let held: Vec<i64> = self.clients.iter().map(|client| client.session.id).collect();
            let mut sessions = self.checks.history.model.sessions.iter();
            let left = sessions.find(|(id, span)| span.closed.is_none() && !held.contains(id));
            let Some((&id, _)) = left else { return };
            if end_us < self.now_us {
                return self.see_unsettled(format!("session {id:#x} of no client does not end"));
            }
            self.run_until(self.now_us + LOOK_US);
        }
    }

    /// The members of the newest configuration that any server has in force; a standalone server by itself. Where members don't change,
    /// a machine that is lost for good does not count.
    fn members(&self) -> BTreeSet<usize> {
        if self.climate().alone {
            return BTreeSet::from([0]);
        }
        let views = self.servers.iter().filter_map(|server| Some(server.process.as_ref()?.view()));
        let newest = views.max_by_key(|view| view.version);
        let members =
            newest.into_iter().flat_map(|view| view.members.keys()).map(|id| id.0 as usize);
        members.filter(|&at| self.climate().changes || !self.servers[at].is_gone).collect()
    }

    fn is_settled(&self) -> bool {
        let last = self.checks.history.last();
        let settled = |server: usize, process: &Process| {
            let serves = process.is_serving() && process.serves_where_wanted(server);
            serves && process.is_quiet() && process.last() == last
        };
        self.clients.iter().all(Client::is_idle)
            && self
                .members()
                .iter()
                .all(|&at| self.servers[at].process.as_ref().is_some_and(|it| settled(at, it)))
    }

    /// The state of servers and clients, in words.
    fn describe(&self) -> String {
        let mut text = format!("committed {}", self.checks.history.last());
        for (number, server) in self.servers.iter().enumerate() {
            text += &match &server.process {
                None => format!("; server {number} down"),
                Some(process) => {
                    let (mode, last) = (process.member.replica.mode(), process.last());
                    let quiet = if process.is_quiet() { "quiet" } else { "busy" };
                    let view = membership::short(process.view());
                    let port = process.client_port.port;
                    format!("; server {number} {mode:?} at {last}, port {port:?}, {quiet}, {view}")
                }
            };
        }
        for client in &self.clients {
            let Client { number, connection, outstanding, .. } = client;
            text += &format!("; client {number} {connection:?}, {} requests", outstanding.len());
        }
        text
    }

    fn see_settled(&mut self) {
        for server in self.members() {
            let Some(process) = &self.servers[server].process else { continue };
            let shared = process.shared.clone();
            let mismatches = process.member.replica.stats.digest_mismatches;
            let tree = &shared.state.tree.read();
            self.see(&Seen::Settled { server, tree, mismatches });
        }
        self.see(&Seen::AllSettled);
    }
}
