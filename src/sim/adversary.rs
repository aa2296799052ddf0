//! Faults that are timed by the state of the ensemble: they hit a leader whose history is on few disks, and a disk whose log was just
//! truncated. Random faults can do the same, but seldom do.

use super::network::ProcessId;
use super::plan::{Crash, CrashKind, MS, Micros};
use super::process::Server;
use super::world::World;
use crate::model::Zxid;

/// How often `isolate_leader` looks for a leader while there is none.
const NO_LEADER_US: Micros = 50 * MS;

impl World {
    /// For a while what the leader sends reaches only the server `spared`, or no server; then the leader crashes, or all its
    /// connections to other servers break.
    pub fn isolate_leader(&mut self, spared: usize, for_us: Micros, crash: Option<Crash>) {
        if self.is_recovering {
            return;
        }
        let is_leading =
            |server: &Server| server.process.as_ref().is_some_and(|process| process.is_leading);
        let Some(leader) = self.servers.iter().position(is_leading) else {
            // There is no leader yet.
            if !self.is_healing {
                let again = move |world: &mut Self| world.isolate_leader(spared, for_us, crash);
                self.do_at(self.now_us + NO_LEADER_US, again);
            }
            return;
        };
        self.trace.count("leaders isolated");
        let all = 0..self.servers.len();
        let others: Vec<usize> = all.filter(|&other| other != leader).collect();
        let unreached: Vec<usize> =
            others.iter().copied().filter(|&other| other != spared).collect();
        self.cut(&[leader], &unreached, false, for_us + MS);
        let at = self.process_id(leader);
        self.do_at(self.now_us + for_us, move |world| match crash {
            _ if world.is_healing || world.is_recovering || world.process(at).is_none() => {}
            Some(crash) => world.crash(leader, crash),
            None => world.break_all(&[leader], &others),
        });
    }

    fn break_all(&mut self, from: &[usize], to: &[usize]) {
        for (&one, &other) in from.iter().flat_map(|one| to.iter().map(move |other| (one, other))) {
            let due = self.net.break_between(self.now_us, one, other);
            self.expect_arrivals(due);
        }
    }

    /// In an adverse climate, cuts off a leader that begins to synchronise learners, so that its epoch may never be established: always
    /// if the leader has applied transactions that are not committed, otherwise one time in four.
    pub fn cut_off_synchronising_leader(&mut self, leader: usize, applied: Zxid) {
        let hurts = self.checks.history.last() < applied;
        if !self.climate().adverse || self.is_healing || !hurts && !self.rng.one_in(4) {
            return;
        }
        self.trace.count("leaders cut off while they synchronise");
        if hurts {
            self.trace.count("leaders cut off with uncommitted transactions applied");
        }
        let for_us = self.rng.range(500, 1000) * MS;
        let starves = self.climate().late_tasks && self.rng.one_in(2);
        let starved = starves.then(|| self.rng.pick(self.servers.len()));
        let all = 0..self.servers.len();
        let others: Vec<usize> = all.filter(|&other| other != leader).collect();
        // The leader is cut off from all other servers, or from all but one, which it can synchronise.
        let spares = self.rng.one_in(if self.climate().sends_trees { 2 } else { 4 });
        let spared = spares.then(|| self.rng.pick(others.len()));
        let mut first = others.clone();
        spared.map(|spared| first.remove(spared));
        self.cut(&[leader], &first, true, for_us);
        let ends_connections = !self.rng.one_in(3);
        self.do_within(0, 60 * MS, move |world| {
            if world.is_healing {
                return;
            }
            if let Some(server) = starved {
                world.starve_tasks(server, for_us);
            }
            let both: Vec<usize> =
                spared.map(|at| others[at]).into_iter().chain([leader]).collect();
            let rest: Vec<usize> =
                others.into_iter().filter(|other| !both.contains(other)).collect();
            world.cut(&both, &rest, true, for_us);
            if ends_connections {
                world.break_all(&both, &rest);
            }
        });
    }

    /// After a truncation, or when a leader's tree replaces the history or is about to, the machine may lose its power.
    pub fn cut_power_after_truncation(&mut self, at: ProcessId, one_in: u64) {
        if !self.climate().adverse || self.is_healing || !self.rng.one_in(one_in) {
            return;
        }
        let (keeps, down_us) = (self.rng.below(4000), self.rng.range(5, 300) * MS);
        self.do_within(0, 30 * MS, move |world| {
            if world.process(at).is_some() && !world.is_healing {
                world.trace.count("power cuts after truncations");
                world.crash(at.server, Crash { kind: CrashKind::Power { keeps }, down_us });
            }
        });
    }
}
