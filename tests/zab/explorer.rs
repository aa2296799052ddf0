//! Every order of events in a small ensemble: writes, deliveries, losses, crashes, elections. The checks are those of the random
//! worlds.
//!
//! It is a depth-first search over copies of a [`World`]. Worlds that don't differ in anything that decides what comes next are one
//! state, and of each state a hash of 64 bits is kept. It is not `stateright`, which wants derived hashes and comparisons throughout
//! the shipped types, and a model of network and disks of its own, which the worlds have already.

#![allow(clippy::disallowed_types, reason = "states are looked up, never iterated over")]

use super::conditions::Conditions;
use super::world::World;
use oxkeeper::model::{Role as Kind, ServerId, View};
use oxkeeper::zab::{Input, LearnerConnectionId, Peer, Role, Stats};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use support::ensemble::Ensemble;
use support::views::member;

/// How often each event may still happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    pub proposals: u8,
    pub changes: u8,
    pub crashes: u8,
    /// Learner connections that end.
    pub cuts: u8,
    /// Elections that end at one server, with any server as leader.
    pub elections: u8,
    /// Leaders that give up.
    pub stands_down: u8,
    /// Leaders that restore a snapshot.
    pub restores: u8,
    /// Times that the clock of one server goes on by [`WAIT_TICKS`].
    pub waits: u8,
}

/// An ensemble to search.
pub struct Scope {
    pub name: &'static str,
    pub conditions: Conditions,
    pub budget: Budget,
    /// Voters of the configurations that a leader may propose; other members become observers.
    pub views: &'static [&'static [i64]],
    /// Servers that may crash.
    pub crashing: &'static [usize],
    /// What happens before the search.
    pub begin: fn(&mut World),
    /// Rounds within which all servers have to settle when faults stop.
    pub rounds_max: usize,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    WriteLog(usize),
    WriteTree(usize),
    ToLeader {
        learner: usize,
    },
    ToLearner {
        learner: usize,
    },
    Hear {
        from: usize,
        to: usize,
    },
    Propose(usize),
    Change {
        at: usize,
        view: usize,
    },
    /// The number of pending writes that reach the disk before the crash.
    Crash {
        at: usize,
        logged: usize,
        trees: usize,
    },
    Restart(usize),
    Cut {
        learner: usize,
    },
    Elect {
        at: usize,
        leader: usize,
    },
    StandDown(usize),
    Restore(usize),
    Wait(usize),
}

/// One tick more than the 200 ms for which an election waits for better votes.
const WAIT_TICKS: usize = 41;

/// The result of a search.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    pub steps: u64,
    /// States in which nothing more can happen. From each of them all servers settle, and have to be alike then.
    pub ends: usize,
    /// The longest time until they had settled, in rounds of 5 ms.
    pub rounds: usize,
    pub depth: usize,
    pub took: Duration,
    /// Every state was searched.
    pub is_complete: bool,
    /// The property that does not hold, and the steps that lead there.
    pub failure: Option<(String, Vec<Step>)>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, ends, rounds, depth, took, is_complete, failure } = self;
        let end = if *is_complete { "all" } else { "cut off" };
        let seconds = took.as_secs_f64();
        write!(
            f,
            "{states} states, {steps} steps, {ends} ends, {rounds} rounds, depth {depth}, {seconds:.1} s, {end}"
        )?;
        let Some((what, path)) = failure else { return Ok(()) };
        writeln!(f, "\n{what}")?;
        path.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

#[derive(Clone)]
struct State {
    world: World,
    left: Budget,
    /// Hash of each server.
    hashes: Vec<u64>,
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// A state on the path to the current one, and the steps that have yet to be tried from it.
struct Frame {
    state: State,
    steps: Vec<Step>,
    /// The step that led here.
    by: Option<Step>,
}

/// Searches until all states are seen, a property does not hold, or a limit is reached; returns which of these, and the counts.
pub fn search(scope: &Scope, states_max: usize, time_max: Duration) -> Found {
    let began = Instant::now();
    let (mut seen, mut stack, mut failure) = (HashSet::new(), Vec::new(), None);
    match caught(|| State::first(scope)) {
        Err(what) => failure = Some((what, Vec::new())),
        Ok(mut first) => {
            seen.insert(first.digest());
            let steps = first.steps(scope);
            stack.push(Frame { state: first, steps, by: None });
        }
    }
    let (mut count, mut depth, mut ends, mut rounds) = (0, 0, 0, 0);
    while let Some(frame) = stack.last_mut() {
        let Some(step) = frame.steps.pop() else {
            stack.pop();
            continue;
        };
        count += 1;
        let next = caught(|| {
            let mut state = frame.state.after(step, scope);
            let steps = if seen.insert(state.digest()) { state.steps(scope) } else { return None };
            if steps.is_empty() {
                ends += 1;
                rounds = rounds.max(state.rounds_to_calm());
            }
            Some(Frame { state, steps, by: Some(step) })
        });
        match next {
            Ok(next) => stack.extend(next),
            Err(what) => {
                let path = stack.iter().filter_map(|frame| frame.by).chain([step]).collect();
                failure = Some((what, path));
                break;
            }
        }
        depth = depth.max(stack.len());
        if scope.rounds_max < rounds {
            let path = stack.iter().filter_map(|frame| frame.by).collect();
            failure = Some((format!("liveness: calm after {rounds} rounds only"), path));
            break;
        }
        if states_max <= seen.len() || count % 1024 == 0 && time_max < began.elapsed() {
            break;
        }
    }
    let is_complete = failure.is_none() && stack.is_empty();
    let (states, took) = (seen.len(), began.elapsed());
    Found { states, steps: count, ends, rounds, depth, took, is_complete, failure }
}

/// The result of `work`, or the text of its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        text.unwrap_or_default()
    })
}

/// Repeats the steps of a search, with a trace of what the servers do.
pub fn trace(scope: &Scope, path: &[Step]) -> String {
    let mut state = State::first(scope);
    let mut text = String::new();
    for &step in path {
        state.world.witness.trace = Some(Vec::new());
        let lived = caught(|| state.perform(step, scope));
        writeln!(text, "{step:?}").unwrap();
        let lines = state.world.witness.trace.take().unwrap_or_default();
        lines.iter().for_each(|line| writeln!(text, "    {line}").unwrap());
        if lived.is_err() {
            break;
        }
    }
    text
}

impl State {
    fn first(scope: &Scope) -> Self {
        let mut world = World::of(scope.conditions.clone());
        world.numbers_by_learner = true;
        (scope.begin)(&mut world);
        world.witness.touched = u64::MAX;
        let mut first = Self { world, left: scope.budget, hashes: Vec::new() };
        first.forget();
        first
    }

    fn after(&self, step: Step, scope: &Scope) -> Self {
        let mut next = self.clone();
        next.perform(step, scope);
        next.forget();
        next
    }

    /// Runs until the ensemble settles, all servers up, with real elections.
    fn rounds_to_calm(&self) -> usize {
        let mut world = self.world.clone();
        (world.has_elections, world.witness.conditions.elects) = (true, true);
        world.heal();
        let rounds = world.calm();
        world.assert_all_alike();
        rounds
    }

    /// Clears what does not decide what comes next.
    fn forget(&mut self) {
        for peer in self.world.servers.iter_mut().filter_map(|server| server.peer.as_mut()) {
            peer.core.stats = Stats::default();
            peer.core.notes.clear();
        }
    }

    /// Hashes what decides what comes next. Only servers that have done something are hashed again: most of a state is as before.
    fn digest(&mut self) -> u64 {
        let Ensemble { servers, connections, elections, witness, .. } = &mut *self.world;
        let touched = std::mem::take(&mut witness.touched);
        self.hashes.resize(servers.len(), 0);
        let mut text = String::new();
        for (at, server) in servers.iter().enumerate().filter(|(at, _)| touched >> at & 1 == 1) {
            text.clear();
            write!(text, "{server:?}").expect("a text has no end");
            self.hashes[at] = hash(&text);
        }
        text.clear();
        let Self { hashes, left, .. } = self;
        let checks = witness.checks();
        write!(text, "{hashes:?}{connections:?}{elections:?}{checks:?}{left:?}")
            .expect("a text has no end");
        hash(&text)
    }

    fn role(&self, at: usize) -> Option<&Role> {
        self.world.servers[at].peer.as_ref().map(Peer::role)
    }

    /// The events that can happen next; the last one is tried first.
    fn steps(&self, scope: &Scope) -> Vec<Step> {
        let (world, left) = (&self.world, self.left);
        let count = world.servers.len();
        let mut steps = Vec::new();
        for (at, server) in world.servers.iter().enumerate() {
            if server.peer.is_none() {
                steps.push(Step::Restart(at));
                continue;
            }
            let logged = server.disk.asked_of_log().count().min(1);
            let trees =
                if server.disk.is_to_be_cut() { 0 } else { server.disk.trees_asked().min(1) };
            if 0 < left.crashes && scope.crashing.contains(&at) {
                for trees in 0..=trees {
                    steps.extend((0..=logged).map(|logged| Step::Crash { at, logged, trees }));
                }
            }
            if 0 < left.stands_down && matches!(self.role(at), Some(Role::Leading(_))) {
                steps.push(Step::StandDown(at));
            }
            if 0 < left.restores && server.leads.is_some() {
                steps.push(Step::Restore(at));
            }
            if 0 < left.waits {
                steps.push(Step::Wait(at));
            }
            let looks = matches!(self.role(at), Some(Role::Looking(Some(_))));
            if 0 < left.elections && server.is_looking && looks {
                let core = &server.peer.as_ref().expect("the server is up").core;
                let may_lead = |leader: &usize| {
                    let id = ServerId(*leader as i64);
                    let is_alive = world.servers[*leader].peer.is_some();
                    is_alive && core.all_views().any(|view| view.is_voter(id))
                };
                let leaders = (0..count).filter(may_lead);
                steps.extend(leaders.map(|leader| Step::Elect { at, leader }));
            }
            if 0 < left.proposals && server.leads.is_some() {
                steps.push(Step::Propose(at));
            }
            if 0 < left.changes && server.leads.is_some() {
                steps.extend(
                    (0..scope.views.len())
                        .filter(|&view| self.may_change(at, scope.views[view]))
                        .map(|view| Step::Change { at, view }),
                );
            }
            steps.extend((0 < trees).then_some(Step::WriteTree(at)));
            steps.extend((0 < logged).then_some(Step::WriteLog(at)));
        }
        for connection in world.connections.values() {
            let learner = connection.learner;
            if 0 < left.cuts {
                steps.push(Step::Cut { learner });
            }
            if !connection.to_leader.is_empty() {
                steps.push(Step::ToLeader { learner });
            }
            if !connection.to_learner.is_empty() {
                steps.push(Step::ToLearner { learner });
            }
        }
        steps.extend(world.elections.busy().into_iter().map(|(from, to)| Step::Hear { from, to }));
        steps
    }

    /// The configuration in force at a server, with these voters; all other members are observers.
    fn view_with(&self, at: usize, voters: &[i64]) -> View {
        let core = &self.world.servers[at].peer.as_ref().expect("the server leads").core;
        let role = |id| if voters.contains(&id) { Kind::Participant } else { Kind::Observer };
        let ids = 0..self.world.servers.len() as i64;
        let members = ids.map(|id| (ServerId(id), member(ServerId(id), role(id)))).collect();
        View { members, ..core.view.clone() }
    }

    /// Whether a leader would take the reconfiguration: a quorum of the next configuration is synchronised.
    fn may_change(&self, at: usize, voters: &[i64]) -> bool {
        let Some(Role::Leading(leader)) = self.role(at) else { return false };
        let core = &self.world.servers[at].peer.as_ref().expect("the server leads").core;
        let next = self.view_with(at, voters);
        let is_another = !core.view.voters().eq(next.voters());
        core.next.is_none() && is_another && next.has_quorum(&leader.synced(core))
    }

    fn perform(&mut self, step: Step, scope: &Scope) {
        let Self { world, left, .. } = self;
        let connection = |learner: usize| LearnerConnectionId(learner as u64 + 1);
        match step {
            Step::WriteLog(at) => world.write_log(at),
            Step::WriteTree(at) => world.write_tree(at),
            Step::ToLeader { learner } => {
                world.deliver(connection(learner), true);
            }
            Step::ToLearner { learner } => {
                world.deliver(connection(learner), false);
            }
            Step::Hear { from, to } => {
                world.hear(from, to);
            }
            Step::Propose(at) => {
                left.proposals -= 1;
                world.propose(at);
            }
            Step::Change { at, view } => {
                left.changes -= 1;
                let next = self.view_with(at, scope.views[view]);
                self.world.propose_view(at, next);
            }
            Step::Crash { at, logged, trees } => {
                left.crashes -= 1;
                world.crash(at, logged, trees);
                world.witness.touched |= 1 << at;
            }
            Step::Restart(at) => world.restart(at),
            Step::Cut { learner } => {
                left.cuts -= 1;
                world.end_connection(connection(learner));
            }
            Step::Elect { at, leader } => {
                left.elections -= 1;
                world.is_elected(at, leader);
            }
            Step::StandDown(at) => {
                left.stands_down -= 1;
                world.step(at, Input::StandDown { why: "it gives up".to_owned() });
            }
            Step::Restore(at) => {
                left.restores -= 1;
                world.restore(at);
            }
            Step::Wait(at) => {
                left.waits -= 1;
                (0..WAIT_TICKS).for_each(|_| world.step(at, Input::Tick));
            }
        }
    }
}
