//! Elections of several servers over the election connections that ship, on a network that a seed decides: any order of
//! messages, losses, crashes and restarts.

use super::election::{TEXT, setup, view, vote};
use oxkeeper::member::election_connections::Event;
use oxkeeper::model::Rng;
use oxkeeper::model::ServerId;
use oxkeeper::zab::election::{Action, CurrentVote, Elected, Input, Setup, TICK_MS};
use oxkeeper::zab::{Notification, PeerState, Views, Vote};
use std::collections::{BTreeMap, BTreeSet};
use support::elector::Elector;
use support::virtual_election_net::VirtualElectionNet;

/// The state of a server in this world.
#[derive(Clone, Debug)]
enum Phase {
    Down,
    /// * `alone`: ticks without followers, or without a leader, since it has settled.
    Up {
        elector: Elector,
        alone: u32,
    },
}

impl Phase {
    const fn current_vote(&self) -> Option<&CurrentVote> {
        match self {
            Self::Down => None,
            Self::Up { elector, .. } => elector.current_vote(),
        }
    }
}

struct World {
    rng: Rng,
    net: VirtualElectionNet,
    views: Views,
    own: BTreeMap<i64, Vote>,
    /// Servers that have doubted their data.
    yields: BTreeSet<i64>,
    phases: BTreeMap<i64, Phase>,
    /// Servers that were elected by a quorum of looking servers, by round.
    leaders: BTreeMap<i64, BTreeSet<ServerId>>,
    /// All votes that were ever cast: no server may count a vote that is not here. Votes of several rounds may count together.
    cast: BTreeSet<(i64, Vote)>,
    /// (server, peer): the election connection broke and was not made again, as `zab::Peer` keeps it.
    down: BTreeSet<(i64, ServerId)>,
}

/// Ticks after which a leader without followers, or a follower without a leader, gives up.
const PATIENCE: u32 = 100;

impl World {
    /// * `delay_max`: longest time in flight, in ticks.
    fn new(seed: u64, servers: i64, delay_max: u64) -> Self {
        let mut world = Self {
            rng: Rng::seeded(seed),
            net: VirtualElectionNet::new(seed, servers, delay_max * u64::from(TICK_MS)),
            views: Views::of(view(1..=servers, &[])),
            own: BTreeMap::new(),
            yields: BTreeSet::new(),
            phases: BTreeMap::new(),
            leaders: BTreeMap::new(),
            cast: BTreeSet::new(),
            down: BTreeSet::new(),
        };
        for id in 1..=servers {
            let (zxid, epoch) = (world.below(3) as i64, world.below(2) as i64);
            world.own.insert(id, vote(id, zxid, epoch));
            if world.below(4) == 0 {
                world.yields.insert(id);
            }
            world.phases.insert(id, Phase::Down);
        }
        world
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn ids(&self) -> Vec<i64> {
        self.phases.keys().copied().collect()
    }

    fn is_dead(&self, id: i64) -> bool {
        matches!(self.phases[&id], Phase::Down)
    }

    fn look(&mut self, id: i64, last_round: i64) {
        if self.is_dead(id) {
            self.net.start(id);
        }
        let down = self.down.iter().filter(|(at, _)| *at == id).map(|(_, other)| *other).collect();
        let mut out = Vec::new();
        let yields = self.yields.contains(&id);
        let setup =
            Setup { down, yields, ..setup(id, self.views.clone(), self.own[&id], last_round) };
        let elector = Elector::look(setup, &mut out);
        self.phases.insert(id, Phase::Up { elector, alone: 0 });
        self.perform(id, out);
    }

    fn step(&mut self, id: i64, input: Input) {
        let mut out = Vec::new();
        if let Phase::Up { elector, .. } = self.phases.get_mut(&id).unwrap() {
            elector.step(input, &mut out);
        }
        self.perform(id, out);
    }

    fn perform(&mut self, id: i64, out: Vec<Action>) {
        for action in out {
            match action {
                Action::SendNotification { to, notification } => {
                    self.cast.insert((id, notification.vote));
                    self.net.send(id, to.0, notification.encode());
                }
                Action::DialAll => self.net.dial_all(id),
                Action::Elected(elected) => self.settle(id, elected),
                Action::NewerView { .. } => {
                    panic!("all servers have one configuration")
                }
            }
        }
    }

    fn settle(&mut self, id: i64, elected: Elected) {
        let Elected { vote, round, electors, .. } = &elected;
        let (vote, round) = (*vote, *round);
        assert!(self.views.have_quorums(electors), "{id} in round {round}: {electors:?}");
        assert_eq!(self.own[&vote.leader.0], vote, "{id} in round {round}");
        for elector in electors {
            // A server casts its own vote without a message.
            let cast = elector.0 == id || self.cast.contains(&(elector.0, vote));
            assert!(cast, "{elector:?} never voted for {vote}");
        }
        if vote.leader.0 == id {
            self.leaders.entry(round).or_default().insert(vote.leader);
        }
        let elector = Elector::settled(id, elected, TEXT);
        self.phases.insert(id, Phase::Up { elector, alone: 0 });
    }

    /// Passes an event of its election connections on to a server.
    fn on_report(&mut self, at: i64, event: Event) {
        match event {
            Event::ElectionConnected { to } => {
                self.down.remove(&(at, to));
                self.step(at, Input::ElectionConnected { to });
            }
            Event::ElectionDisconnected { to } => {
                self.down.insert((at, to));
                self.step(at, Input::ElectionDisconnected { to });
            }
            Event::Heard { from, message } => {
                self.down.remove(&(at, from));
                self.hear(from, at, Notification::decode(&message).expect("a notification"));
            }
            Event::ElectionUnreached { .. } => {} // No election asks for it.
            Event::BindFailed { .. } => panic!("no port is bound in this world"),
        }
    }

    fn hear(&mut self, from: ServerId, to: i64, notification: Notification) {
        let Phase::Up { elector, .. } = self.phases.get_mut(&to).unwrap() else { return };
        let mut out = Vec::new();
        let holds = elector.hear(&self.views, from, notification, &mut out);
        let round = elector.current_vote().map(|current_vote| current_vote.round);
        self.perform(to, out);
        if let Some(round) = round
            && !holds
            && !self.has_followers(to)
        {
            self.look(to, round);
        }
    }

    /// The leader that a server has, if it is in reach and leads.
    fn is_led(&self, id: i64, leader: i64) -> bool {
        let reached = !self.net.is_cut(id, leader);
        let leads = |current_vote: &CurrentVote| current_vote.state == PeerState::Leading;
        reached && self.phases[&leader].current_vote().is_some_and(leads)
    }

    fn has_followers(&self, leader: i64) -> bool {
        let of = |current_vote: &CurrentVote| current_vote.vote.leader.0 == leader;
        let follows = |phase: &Phase| phase.current_vote().is_some_and(of);
        let mut following = BTreeSet::from([ServerId(leader)]);
        for id in self.ids() {
            if id != leader && !self.net.is_cut(id, leader) && follows(&self.phases[&id]) {
                following.insert(ServerId(id));
            }
        }
        self.views.have_quorums(&following)
    }

    fn tick(&mut self) {
        self.hear_until(self.net.now_ms() + u64::from(TICK_MS));
        for id in self.ids() {
            let Some(current_vote) = self.phases[&id].current_vote() else {
                self.step(id, Input::Tick);
                continue;
            };
            let (leader, round) = (current_vote.vote.leader.0, current_vote.round);
            let fine = if leader == id { self.has_followers(id) } else { self.is_led(id, leader) };
            let Phase::Up { alone, .. } = self.phases.get_mut(&id).unwrap() else { unreachable!() };
            *alone = if fine { 0 } else { *alone + 1 };
            if PATIENCE < *alone {
                self.look(id, round);
            }
        }
    }

    fn hear_until(&mut self, until_ms: u64) {
        while let Some((at, event)) = self.net.next_report(until_ms) {
            self.on_report(at, event);
        }
    }

    /// Kills a server. The others have noticed before this returns.
    fn kill(&mut self, id: i64) {
        self.phases.insert(id, Phase::Down);
        self.down.retain(|(at, _)| *at != id);
        self.net.kill(id);
        self.hear_until(self.net.now_ms());
    }

    fn fault(&mut self) {
        let servers = self.phases.len() as u64;
        let a = 1 + self.below(servers) as i64;
        let b = 1 + ((a as u64 - 1 + 1 + self.below(servers - 1)) % servers) as i64;
        match self.below(6) {
            0 if !self.is_dead(a) => self.kill(a),
            0 | 1 if self.is_dead(a) => self.look(a, 0),
            1 | 2 => self.net.disconnect(a, b),
            3 => self.net.cut(a, b),
            _ => self.net.mend(a, b),
        }
    }

    /// Whether a condition holds within this many ticks.
    fn comes_to(&mut self, ticks_max: u64, condition: impl Fn(&Self) -> bool) -> bool {
        (0..=ticks_max).any(|ticks| {
            if 0 < ticks {
                self.tick();
            }
            condition(self)
        })
    }

    /// Whether one server leads and all others follow it.
    fn has_converged(&self) -> bool {
        let mut leaders = BTreeSet::new();
        let settled = self.phases.iter().all(|(id, phase)| {
            phase.current_vote().is_some_and(|current_vote| {
                leaders.insert(current_vote.vote.leader.0);
                (current_vote.state == PeerState::Leading) == (current_vote.vote.leader.0 == *id)
            })
        });
        settled && leaders.len() == 1
    }
}

/// All servers start within 20 ticks, without faults.
fn start_all(world: &mut World) {
    let mut starts: BTreeMap<i64, u64> = BTreeMap::new();
    for id in world.ids() {
        starts.insert(id, world.below(20));
    }
    for tick in 0..20 {
        for id in world.ids() {
            if starts[&id] == tick {
                let last_round = world.below(3) as i64;
                world.look(id, last_round);
            }
        }
        world.tick();
    }
}

#[test]
fn without_faults_all_servers_follow_the_best_vote_and_no_round_has_two_leaders() {
    for seed in 0..300 {
        let servers = if seed % 2 == 0 { 3 } else { 5 };
        // Delays of at most 6 ticks, far below finalizeWait, as on a network without faults.
        let mut world = World::new(seed, servers, 6);
        start_all(&mut world);
        let converges = world.comes_to(400, World::has_converged);
        assert!(converges, "seed {seed}: {:#?}", world.phases);
        for (round, leaders) in &world.leaders {
            assert!(leaders.len() == 1, "seed {seed}, round {round}: {leaders:?}");
        }
    }
}

#[test]
fn zk_3398_elections_converge_once_faults_stop() {
    for seed in 0..400 {
        let servers = if seed % 2 == 0 { 3 } else { 5 };
        let mut world = World::new(seed, servers, 1 + seed % 60);
        start_all(&mut world);
        for _ in 0..600 {
            if world.below(8) == 0 {
                world.fault();
            }
            world.tick();
        }
        for id in world.ids() {
            if world.is_dead(id) {
                world.look(id, 0);
            }
        }
        world.net.mend_all();
        let converges = world.comes_to(3000, World::has_converged);
        assert!(converges, "seed {seed}: {:#?}", world.phases);
        // The ensemble stays converged.
        for _ in 0..300 {
            world.tick();
        }
        assert!(world.has_converged(), "seed {seed}: {:#?}", world.phases);
    }
}

#[test]
fn a_dead_leader_is_replaced_without_a_wait() {
    for seed in 0..100 {
        let mut world = World::new(seed, if seed % 2 == 0 { 3 } else { 5 }, 1);
        world.yields.clear();
        start_all(&mut world);
        assert!(world.comes_to(400, World::has_converged), "seed {seed}");
        for _ in 0..50 {
            world.tick();
        }
        let leader = |world: &World| {
            let current_vote = world.phases.values().find_map(Phase::current_vote);
            current_vote.map(|current_vote| (current_vote.vote.leader.0, current_vote.round))
        };
        let (dead, round) = leader(&world).unwrap();
        world.kill(dead);
        let left: Vec<i64> = world.ids().into_iter().filter(|id| *id != dead).collect();
        left.iter().for_each(|id| world.look(*id, round));
        let is_settled = |world: &World, id: &i64| world.phases[id].current_vote().is_some();
        let have_settled = |world: &World| left.iter().all(|id| is_settled(world, id));
        // Two messages of a tick each, and the write before the second one; none of the 40 ticks that Java waits.
        assert!(world.comes_to(3, have_settled), "seed {seed}: {:#?}", world.phases);
    }
}
