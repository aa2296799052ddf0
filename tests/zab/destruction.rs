//! A quorum loses its data, but no configuration files, and a new history begins. A voter whose data stayed comes back then, and must not
//! replace what was acknowledged since (QuorumZxidSyncTest, ReconfigRecoveryTest); or an observer that has only its epochs, which are later
//! than those of the new history.
//!
//! What was committed is lost, so the checks begin anew. Servers that lost their data have no epochs either.

use super::checks::Checks;
use super::driver_turns::Happened;
use super::world::World;
use oxkeeper::model::{Role as Kind, ServerId, View};
use std::collections::BTreeSet;
use support::disk::Disk;
use support::quorums::is_quorum;

/// Random steps before the loss, so that reconfigurations are under way.
const STEPS_MAX: usize = 300;
/// For how long a voter that comes back is watched: two seconds.
const REFUSED_ROUNDS: usize = 400;

/// A disk that has lost all but its configuration files.
fn emptied(disk: &Disk) -> Disk {
    let mut emptied = Disk::default();
    (emptied.view, emptied.next) = (disk.view.clone(), disk.next.clone());
    emptied
}

impl World {
    pub fn destroy(&mut self) {
        for _ in 0..self.witness.peers.pick(STEPS_MAX) {
            self.random_step();
            self.rare_step();
        }
        self.witness.conditions.silent.clear();
        self.witness.stalled = None;
        self.servers.iter_mut().for_each(|server| server.refuses_config = None);
        (0..self.servers.len()).for_each(|at| self.cut_power(at));
        let Some(spared) = self.spared() else { return };
        self.witness.count(Happened::Destroyed);
        for at in 0..self.servers.len() {
            self.witness.forget_acknowledged(at);
            if Some(at) != spared {
                self.witness.note(|| format!("{at} loses its data"));
                self.servers[at].disk = emptied(&self.servers[at].disk);
            }
        }
        self.remove_unfinished(spared);
        let Checks { fault, left_out, .. } = self.witness.checks;
        self.witness.checks = Checks::default();
        (self.witness.checks.fault, self.witness.checks.left_out) = (fault, left_out);
        let in_force: Vec<_> = self.servers.iter().filter_map(|it| it.disk.view.clone()).collect();
        self.witness.checks.know_views(in_force);
        // A new history may give out zxids again, below the versions of the configurations.
        (self.witness.conditions.changes, self.witness.conditions.destroys) = (false, false);
        self.witness.lost.clear();
        (0..self.servers.len()).filter(|at| Some(*at) != spared).for_each(|at| self.restart(at));
        self.go_on();
        if let Some(at) = spared {
            self.bring_back(at);
        }
    }

    /// The operator removes `.dynamic.next` where not all servers that start have it: those that have it would not follow those that
    /// don't (world 6000062284).
    fn remove_unfinished(&mut self, spared: Option<usize>) {
        let starting = || (0..self.servers.len()).filter(|at| Some(*at) != spared);
        let in_force =
            starting().filter_map(|at| Some(self.servers[at].disk.view.as_ref()?.version)).max();
        let unfinished = |at: usize| {
            let proposed = self.servers[at].disk.next.iter().map(|view| view.version);
            proposed.filter(|version| in_force < Some(*version)).collect::<BTreeSet<_>>()
        };
        let known: BTreeSet<_> = starting().map(unfinished).collect();
        if 1 < known.len() {
            starting()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|at| self.servers[at].disk.next.clear());
        }
    }

    fn go_on(&mut self) {
        self.calm();
        if let Some(leader) = self.servers.iter().position(|server| server.leads.is_some()) {
            self.propose(leader);
        }
        self.calm();
        self.assert_all_alike();
    }

    /// The server that starts later, or none, if the others are a quorum of each configuration; `None`: they are not.
    fn spared(&mut self) -> Option<Option<usize>> {
        let servers = self.servers.len();
        let spared = self.witness.peers.pick(servers);
        let mut views = Vec::new();
        for at in 0..self.servers.len() {
            let disk = &self.servers[at].disk;
            views.extend(self.views_on(at, &emptied(disk)));
        }
        let others = |id: ServerId| id.0 as usize != spared;
        let newest = |at: usize| self.servers[at].disk.view.as_ref().map_or(0, |view| view.version);
        let theirs = (0..servers).filter(|at| *at != spared).map(newest).max();
        // A configuration that is in force at that server alone may be proposed to others, which then wait for it.
        let can_be_spared =
            Some(newest(spared)) <= theirs && views.iter().all(|view| is_quorum(view, others));
        let spared = Some(spared).filter(|_| can_be_spared);
        let is_possible = views.iter().all(|view| is_quorum(view, |_| true));
        is_possible.then_some(spared)
    }

    /// The role of a server by the leader's configuration. `None`: it has none, it is to begin as an observer and is a voter by its
    /// own, or it knows a later configuration.
    fn role_of(&self, at: usize) -> Option<Kind> {
        let view = &self.servers[self.leader()?].peer.as_ref().expect("the server leads").core.view;
        let known = self.views_on(at, &self.servers[at].disk);
        let role_in = |view: &View| Some(view.members.get(&ServerId(at as i64))?.role);
        let fits = role_in(view) != Some(Kind::Observer) || role_in(&known[0]) == role_in(view);
        let is_newest = known.iter().all(|known| known.version <= view.version);
        role_in(view).filter(|_| fits && is_newest)
    }

    /// A server starts, while all others have a leader of an earlier epoch than that of the server's data: a voter with the lost history,
    /// an observer with its epochs alone.
    fn bring_back(&mut self, at: usize) {
        let current = self.servers[at].disk.current;
        let disks = self.servers.iter().enumerate().filter(|(other, _)| *other != at);
        let theirs = disks.map(|(_, server)| server.disk.accepted).max();
        let Some(role) = self.role_of(at).filter(|_| theirs < Some(current)) else { return };
        self.witness.note(|| format!("{at} comes back with data of epoch {}", current.0));
        if role == Kind::Observer {
            self.servers[at].disk.lose();
            // Without the history nothing shows that it has not acknowledged a proposed configuration, by which it may be a voter
            // (world 524000176139).
            if self.role_of(at).is_none() {
                return;
            }
            self.witness.count(Happened::ObserverCameBack);
            self.restart(at);
            return self.go_on();
        }
        self.witness.count(Happened::CameBack);
        self.witness.outsider = Some(ServerId(at as i64));
        let led: BTreeSet<_> = self.servers.iter().filter_map(|server| server.leads).collect();
        self.restart(at);
        for round in 0..REFUSED_ROUNDS {
            self.round(round);
        }
        let conditions = &self.witness.conditions;
        let leads: BTreeSet<_> = self.servers.iter().filter_map(|server| server.leads).collect();
        assert!(!self.servers[at].serves, "{conditions}: convergence: {at} replaces a history");
        assert_eq!(led, leads, "{conditions}: convergence: {at} ends the epoch");
    }
}
