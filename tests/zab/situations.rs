//! Situations that few worlds have. Each is drawn by a chance of its own and apart from all others, so that worlds without them stay as
//! they were before the situation was added.

use super::conditions::Conditions;
use super::world::World;
use oxkeeper::model::{Rng, Rule, ServerId, View};
use std::collections::{BTreeMap, BTreeSet};
use support::quorums::is_quorum;
use support::views::view_of;

/// How the servers of an ensemble start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Starts {
    #[default]
    AtOnce,
    /// One after the other, with time for the first to elect a leader.
    InTurn,
    /// The last one 100 ms after the first, or sooner.
    Together,
}

/// Rounds of 5 ms in 100 ms.
const TOGETHER_ROUNDS: usize = 20;
/// Servers that start together serve within these rounds: a lost packet would cost a whole initLimit (200 rounds).
const SERVES_ROUNDS: usize = 180;

impl Conditions {
    /// Adds some of the situations, or none.
    pub fn with_situations(mut self) -> Self {
        let mut rng = Rng::new(self.seed, 2);
        if rng.one_in(40) {
            self.elects = true;
            self.have_voters(1 + rng.pick(2));
        }
        if rng.one_in(25) {
            (self.elects, self.has_groups) = (true, true);
        }
        if rng.one_in(25) {
            self.starts = if rng.one_in(2) { Starts::InTurn } else { Starts::Together };
        }
        if rng.one_in(20) {
            (self.elects, self.loses_files) = (true, true);
            self.marks_new = rng.one_in(2);
        }
        if rng.one_in(50) {
            (self.elects, self.changes, self.loses_machine) = (true, true, true);
        }
        self.batches = rng.one_in(12);
        if rng.one_in(30) {
            (self.elects, self.changes, self.refuses_config) = (true, true, true);
            self.batches |= rng.one_in(2);
        }
        // Only in an ensemble without reconfigurations that loses nothing but what a crash may take.
        if rng.one_in(30) && !self.changes && !self.loses_files && !self.has_groups {
            (self.elects, self.oracle_switches) = (true, true);
            self.have_voters(2);
        }
        // The loss may happen at any time: not where the other servers, or a proposed configuration, may need that server.
        let is_needed = self.voters < 3
            || self.has_groups
            || self.loses_files
            || self.loses_machine
            || self.refuses_config;
        self.loses.take_if(|_| is_needed);
        self.with_other_peers()
    }

    fn with_other_peers(mut self) -> Self {
        let mut rng = Rng::new(self.seed, 7);
        if rng.one_in(40) {
            (self.elects, self.sends_trees, self.repeats) = (true, true, true);
            self.java = Some(rng.pick(self.voters));
        }
        self.strays = rng.one_in(40);
        if rng.one_in(40) {
            (self.elects, self.replaces) = (true, true);
        }
        if rng.one_in(15) && !self.oracle_switches {
            (self.elects, self.changes, self.hurries) = (true, true, true);
            self.all_java = !rng.one_in(4);
            if rng.one_in(2) {
                self.have_voters(3);
            }
        }
        // `destroys` assumes that no server has lost files or its machine earlier.
        let loses = self.loses_files || self.loses_machine || self.oracle_switches;
        if rng.one_in(40) && !loses {
            (self.elects, self.destroys) = (true, true);
        }
        let is_needed = self.changes || self.destroys;
        self.loses.take_if(|_| is_needed);
        // Servers that start together serve at once if none doubts.
        if Rng::new(self.seed, 8).one_in(15) && self.starts != Starts::Together {
            (self.elects, self.doubts) = (true, true);
        }
        self
    }

    /// Sets the number of voters, and keeps a voter's traits with a voter.
    fn have_voters(&mut self, voters: usize) {
        self.voters = voters;
        for place in [&mut self.slow, &mut self.java].into_iter().flatten() {
            *place %= voters;
        }
    }

    /// Whether the world has any of the situations.
    pub fn has_situations(&self) -> bool {
        let has_losses = self.loses_files || self.loses_machine;
        let has_turns = self.batches || self.refuses_config;
        let has_other_peers =
            self.repeats || self.strays || self.replaces || self.hurries || self.destroys;
        let has_other_peers = has_other_peers || self.doubts;
        self.voters < 3
            || self.has_groups
            || self.starts != Starts::AtOnce
            || has_losses
            || has_turns
            || has_other_peers
    }

    /// The first configuration of the ensemble.
    pub fn first_view(&self) -> View {
        let (voters, count) = (self.voters as i64, (self.voters + self.observers) as i64);
        let mut view = view_of(0, 0..voters, voters..count);
        if self.has_groups {
            view.rule = some_rule(&mut Rng::new(self.seed, 3), &view, !self.changes);
        }
        view
    }
}

/// Groups and weights of the voters; majorities if those are drawn, or if the groups have no quorum.
///
/// * `some_weigh_nothing`: a voter without weight is not elected, and does not vote for a candidate with a shorter history, so
///   there may be no leader if a proposed configuration needs its vote, here and in ZooKeeper (world 1202166862).
pub fn some_rule(rng: &mut Rng, view: &View, some_weigh_nothing: bool) -> Rule {
    let (count, mut weights) = (rng.range(1, 3), BTreeMap::new());
    let mut groups: BTreeMap<i64, BTreeSet<ServerId>> = BTreeMap::new();
    for id in view.voters() {
        groups.entry(rng.range(1, count) as i64).or_default().insert(id);
        let lightest = u64::from(!some_weigh_nothing || weights.is_empty());
        weights.insert(id, if rng.one_in(3) { rng.range(lightest, 3) } else { 1 });
    }
    let rule = Rule::Hierarchical { groups, weights };
    let ruled = View { rule: rule.clone(), ..view.clone() };
    let decides = !rng.one_in(4) && is_quorum(&ruled, |id| view.is_voter(id));
    if decides { rule } else { Rule::Majority }
}

impl World {
    /// Starts the servers that did not start with the world.
    pub fn begin(&mut self) {
        let rounds_max = match self.witness.conditions.starts {
            Starts::AtOnce => return,
            Starts::InTurn => 400,
            Starts::Together => TOGETHER_ROUNDS / self.servers.len(),
        };
        let mut waiting: Vec<usize> = (0..self.servers.len()).collect();
        while !waiting.is_empty() {
            let more = &mut self.witness.rare;
            let (at, rounds) =
                (waiting.swap_remove(more.pick(waiting.len())), more.pick(rounds_max + 1));
            self.restart(at);
            (0..rounds).for_each(|round| self.round(round));
        }
        let rounds = self.calm();
        let conditions = &self.witness.conditions;
        assert!(
            conditions.starts != Starts::Together || rounds < SERVES_ROUNDS,
            "{conditions}: convergence: after {rounds} rounds they serve"
        );
    }
}
