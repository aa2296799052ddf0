//! What a world is like, and what fails in it.

use super::situations::Starts;
use super::world::World;
use oxkeeper::model::{Rng, View};
use oxkeeper::zab::{Input, LearnerConnectionId, Settings};
use std::collections::BTreeSet;
use std::fmt;
use support::server::Server;

/// The conditions of a world, all from its seed.
#[derive(Clone, Debug)]
pub struct Conditions {
    pub seed: u64,
    pub voters: usize,
    pub observers: usize,
    /// Real elections; otherwise an oracle ends them, now and then with the wrong leader.
    pub elects: bool,
    /// Every learner is sent the whole tree.
    pub sends_trees: bool,
    /// The server with a slow disk.
    pub slow: Option<usize>,
    /// The one of two voters that may go on without the other, as their oracles say.
    pub may_lead_alone: Option<usize>,
    /// The server that acknowledges in Java's order: NEWLEADER, UPTODATE, and only then what was proposed meanwhile.
    pub java: Option<usize>,
    /// Members of the ensemble change.
    pub changes: bool,
    /// Pairs (from, to) between which nothing arrives. Nothing is lost: it arrives when the silence is over.
    pub silent: BTreeSet<(usize, usize)>,
    /// The server whose history may be lost when it crashes: at its start it has nothing but its epochs.
    pub loses: Option<usize>,
    /// A planted fault: it does not notice that loss.
    pub loses_unknown: bool,
    /// A planted fault: the server whose disk reports writes that it has not done.
    pub lying_disk: Option<usize>,
    /// Voters have weights and groups, in the first configuration and in some of the later ones.
    pub has_groups: bool,
    pub starts: Starts,
    /// Files are lost, or come back as they were.
    pub loses_files: bool,
    /// db.autocreate=false: a server with an empty directory knows that its data is missing.
    pub marks_new: bool,
    /// Machines are lost for good.
    pub loses_machine: bool,
    /// A planted fault: files are lost that the other servers can't make up for.
    pub loses_needed: bool,
    /// Servers take several packets in one turn.
    pub batches: bool,
    /// Configuration folders can't be written for a while.
    pub refuses_config: bool,
    /// The oracle changes sides: now one and now the other of two voters may go on alone.
    pub oracle_switches: bool,
    /// The Java member repeats, after a tree that it sends as the leader, the last proposals that the tree has.
    pub repeats: bool,
    /// A stranger sends learners packets of other phases.
    pub strays: bool,
    /// The election connection to each leader that a learner dials is replaced.
    pub replaces: bool,
    /// All members name configurations in NEWLEADER, and acknowledge, as Java's do.
    pub all_java: bool,
    /// Leaders reconfigure at once and often, and are cut off while they do.
    pub hurries: bool,
    /// At the end a quorum loses its data, but no configuration files.
    pub destroys: bool,
    /// Servers start with trees that do not fit the digests in their logs, though nothing is missing in them.
    pub doubts: bool,
    /// A planted fault: the oracle changes to a voter without regard to what that voter has.
    pub oracle_is_wrong: bool,
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SEED={} ({self:?})", self.seed)
    }
}

impl Conditions {
    /// Conditions without anything special.
    pub fn mild(voters: usize, seed: u64) -> Self {
        Self {
            seed,
            voters,
            observers: 0,
            elects: false,
            sends_trees: false,
            slow: None,
            may_lead_alone: None,
            java: None,
            changes: false,
            silent: BTreeSet::new(),
            loses: None,
            loses_unknown: false,
            lying_disk: None,
            has_groups: false,
            starts: Starts::AtOnce,
            loses_files: false,
            marks_new: false,
            loses_machine: false,
            loses_needed: false,
            batches: false,
            refuses_config: false,
            oracle_switches: false,
            oracle_is_wrong: false,
            repeats: false,
            strays: false,
            replaces: false,
            all_java: false,
            hurries: false,
            destroys: false,
            doubts: false,
        }
    }

    pub fn of(seed: u64) -> Self {
        Self::without_situations(seed).with_situations()
    }

    fn without_situations(seed: u64) -> Self {
        if seed % 6 == 4 {
            return Self::of_changes(seed, seed / 6);
        }
        let voters = if seed.is_multiple_of(3) { 5 } else { 3 };
        Self {
            observers: if seed.is_multiple_of(4) { 1 } else { 0 },
            elects: seed.is_multiple_of(2),
            sends_trees: seed % 4 == 1,
            slow: seed.is_multiple_of(5).then_some(seed as usize / 5 % voters),
            java: seed.is_multiple_of(2).then_some(seed as usize / 2 % voters),
            loses: (seed % 6 == 2).then_some(seed as usize / 6 % voters),
            ..Self::mild(voters, seed)
        }
    }

    /// An ensemble whose members change.
    ///
    /// * `draw`: decides the rest.
    fn of_changes(seed: u64, draw: u64) -> Self {
        let voters = [3, 3, 5, 4, 7][draw as usize % 5];
        Self {
            observers: 2 - usize::from(4 < voters),
            elects: true,
            changes: true,
            sends_trees: draw % 3 == 1,
            java: draw.is_multiple_of(2).then_some(draw as usize / 2 % voters),
            slow: draw.is_multiple_of(4).then_some(draw as usize / 4 % voters),
            ..Self::mild(voters, seed)
        }
    }

    pub fn settings(&self) -> Settings {
        Settings {
            tick_time_ms: 100,
            sync_limit: 5,
            always_sends_tree: self.sends_trees,
            // A few transactions: so commits wait for followers, and learners are left behind.
            lag_bytes_max: if Rng::new(self.seed, 41).one_in(5) { 300 } else { 64 << 20 },
            reconfigs: self.changes,
            resend_max_ms: 1600,
            observer_election_delay_ms: 100,
            observer_reconnect_delay_ms: 20,
            ..Settings::DEFAULT
        }
    }
}

/// A world has three chapters: things fail for a while, then faults stop and all servers have to become alike.
const CHAPTERS: usize = 3;
const STEPS: usize = 1000;

impl World {
    /// Runs the world; returns the number of committed transactions.
    pub fn live(&mut self) -> usize {
        let mut committed = 0;
        self.begin();
        for _ in 0..CHAPTERS {
            for _ in 0..STEPS {
                self.random_step();
                self.lose_some();
                self.rare_step();
            }
            self.heal();
            self.calm();
            committed = self.assert_all_alike();
        }
        if self.witness.conditions.destroys {
            self.destroy();
        }
        committed
    }

    /// One random event.
    pub fn random_step(&mut self) {
        let at = self.below(self.servers.len());
        match self.below(1000) {
            0..300 => self.write_one(at),
            300..650 => self.deliver_one(),
            760..830 => self.tick_some(at),
            740..750 if self.witness.conditions.changes => self.change(at),
            650..760 => self.propose(at),
            830..940 if self.witness.conditions.elects => self.hear_one(),
            830..890 => self.elect(true),
            890..940 => self.propose(at),
            940..960 => self.fail(at),
            960..964 => self.cut_power(at),
            964 => (0..self.servers.len()).for_each(|at| self.cut_power(at)),
            965..1000 => self.restart(at),
            _ => {}
        }
    }

    /// Something in the network breaks, or is mended.
    fn fail(&mut self, at: usize) {
        let to = self.below(self.servers.len());
        match self.below(8) {
            0 => self
                .connections
                .keys()
                .copied()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|id| self.end_connection(id)),
            1..3 => {
                let ids: Vec<LearnerConnectionId> = self.connections.keys().copied().collect();
                if !ids.is_empty() {
                    let id = ids[self.below(ids.len())];
                    self.end_connection(id);
                }
            }
            3 => self.end_election_connection(at, to),
            4 => {
                self.witness.conditions.silent.insert((at, to));
            }
            5 if self.witness.conditions.changes => self.part(),
            _ => {
                self.witness.conditions.silent.pop_first();
            }
        }
    }

    /// A network partition in two; or its end.
    fn part(&mut self) {
        let silent = &mut self.witness.conditions.silent;
        if !silent.is_empty() {
            return silent.clear();
        }
        let side = self.below(1 << self.servers.len());
        self.part_from(side);
    }

    /// * `side`: a bit for each server of one side.
    pub fn part_from(&mut self, side: usize) {
        let count = self.servers.len();
        let is_here = |at: usize| side >> at & 1 == 1;
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let parted = pairs.filter(|&(from, to)| is_here(from) != is_here(to));
        self.witness.conditions.silent.extend(parted);
    }

    pub fn end_election_connection(&mut self, a: usize, b: usize) {
        for (at, input) in self.elections.end(a, b) {
            self.step(at, input);
        }
    }

    fn tick_some(&mut self, at: usize) {
        // The ticks of a machine that stood still come at once.
        let ticks = match self.below(40) {
            0 => 250,
            1..10 => 20,
            _ => 1,
        };
        for _ in 0..ticks {
            self.step(at, Input::Tick);
        }
    }

    fn write_one(&mut self, at: usize) {
        if self.witness.conditions.slow == Some(at) && self.below(8) != 0 {
            return;
        }
        // Writing a tree takes long.
        if self.below(4) == 0 { self.write_tree(at) } else { self.write_log(at) }
    }

    fn deliver_one(&mut self) {
        let ids: Vec<LearnerConnectionId> = self.connections.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.below(ids.len())];
        let goes_up = self.below(2) == 0;
        let connection = &self.connections[&id];
        let (from, to) = if goes_up {
            (connection.learner, connection.leader)
        } else {
            (connection.leader, connection.learner)
        };
        if self.witness.lets_through(from, to) {
            self.deliver(id, goes_up);
        }
    }

    fn hear_one(&mut self) {
        let busy = self.elections.busy();
        if busy.is_empty() {
            return;
        }
        let (from, to) = busy[self.below(busy.len())];
        if self.witness.lets_through(from, to) {
            self.hear(from, to);
        }
    }

    /// Restarts all servers and ends all faults.
    pub fn heal(&mut self) {
        self.witness.conditions.silent.clear();
        self.witness.stalled = None;
        self.servers.iter_mut().for_each(|server| server.refuses_config = None);
        (0..self.servers.len()).for_each(|at| self.restart(at));
    }

    /// Runs until nothing is under way any more; returns the rounds of 5 ms that this takes.
    pub fn calm(&mut self) -> usize {
        for round in 0..4000 {
            self.round(round);
            if round % 50 == 49 {
                self.remove_lost();
            }
            if round > 20 && self.is_calm() {
                return round;
            }
        }
        panic!(
            "{}: convergence: the ensemble does not settle\n{}",
            self.witness.conditions,
            self.standing()
        );
    }

    /// 5 ms in which nothing fails.
    ///
    /// * `round`: the number of rounds before this one.
    pub fn round(&mut self, round: usize) {
        for at in 0..self.servers.len() {
            for _ in 0..8 {
                self.write_log(at);
            }
            self.write_tree(at);
            self.step(at, Input::Tick);
        }
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            for _ in 0..8 {
                self.deliver(id, true);
                self.deliver(id, false);
            }
        }
        self.replace_connections();
        if self.witness.conditions.elects {
            for (from, to) in self.elections.busy() {
                self.hear(from, to);
            }
        } else if round.is_multiple_of(4) {
            self.elect(false);
        }
    }

    /// The state of each server, a line each.
    fn standing(&self) -> String {
        let voters = |view: &View| view.voters().map(|id| id.0).collect::<Vec<_>>();
        let line = |server: &Server| {
            let Some(peer) = &server.peer else { return "is down\n".to_owned() };
            let core = &peer.core;
            let next: Vec<_> =
                core.all_views().skip(1).map(|next| (next.version, voters(next))).collect();
            let (role, view) = (peer.role(), (core.view.version, voters(&core.view)));
            let role = format!("{role:?}").chars().take(60).collect::<String>();
            format!(
                "{}: serves {}, last {}, view {view:x?}, next {next:x?}, {role}\n",
                core.me,
                server.serves,
                core.history.last()
            )
        };
        self.servers.iter().map(line).collect()
    }

    fn is_calm(&self) -> bool {
        !self.has_lost()
            && self.members().all(|server| {
                server.serves && server.disk.asked.is_empty() && server.tail.is_empty()
            })
            && self.connections.values().all(|connection| connection.is_empty())
    }
}
