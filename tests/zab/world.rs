//! Random worlds: an ensemble at whose servers random events happen. Every step is checked.

use super::checks::{Checks, Event};
use super::conditions::Conditions;
use super::driver_turns::Happened;
use super::losses::Loss;
use super::other_peers::{Asking, Replaced};
use super::situations::Starts;
use bytes::Bytes;
use oxkeeper::model::Rng;
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId, Packet, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use support::disk::{Disk, Entry, Write, last_of};
use support::ensemble::{Ensemble, Seen, Witness};
use support::quorums::{Count, is_quorum};
use support::server::Server;
use support::views::view_in;

/// A random ensemble; every step is checked.
#[derive(Clone)]
pub struct World(Ensemble<Checker>);

impl Deref for World {
    type Target = Ensemble<Checker>;

    fn deref(&self) -> &Ensemble<Checker> {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Ensemble<Checker> {
        &mut self.0
    }
}

/// Checks what the servers of a world do, and decides by chance what happens next.
#[derive(Clone)]
pub struct Checker {
    pub conditions: Conditions,
    pub checks: Checks,
    random: Rng,
    /// Numbers for the situations that few worlds have.
    pub rare: Rng,
    /// Numbers for turns, configuration folders and oracles: a stream of their own, so that the worlds of older seeds stay as they are.
    pub turns: Rng,
    /// How often each of these happened.
    pub happened: BTreeMap<Happened, usize>,
    /// The one of two voters to which the oracle says yes, where the oracle changes sides.
    pub agreed: Option<usize>,
    /// The voter to which the oracle said yes last.
    pub agreed_last: Option<usize>,
    /// Whether the oracle has changed sides, and its voter has not led alone since.
    pub has_switched: bool,
    /// Numbers for the situations of `other_peers.rs`.
    pub peers: Rng,
    /// The servers that have sent each server FOLLOWERINFO or OBSERVERINFO, by their connections.
    pub hellos: BTreeMap<usize, BTreeMap<LearnerConnectionId, ServerId>>,
    /// How each server has found its leader.
    pub asking: BTreeMap<usize, Asking>,
    /// A voter that has come back with data of a later epoch than the leader's.
    pub outsider: Option<ServerId>,
    /// Election connections that are being replaced.
    pub replaced: Vec<Replaced>,
    /// The configurations that counted at the last acknowledgement of each server before its turn.
    before_turn: BTreeMap<usize, BTreeSet<i64>>,
    /// Copies of servers' disks.
    pub backups: BTreeMap<usize, Disk>,
    /// What servers had before each loss: it counts as acknowledged.
    pub lost: Vec<(ServerId, Vec<Entry>)>,
    /// Versions of the configurations that counted at each server when it last acknowledged something, and were not forgotten as
    /// uncommitted since.
    acknowledged: BTreeMap<usize, BTreeSet<i64>>,
    /// How often each loss happened.
    pub losses: BTreeMap<Loss, usize>,
    next_payload: u64,
    /// Whether the server that processes the current input leads.
    is_of_leader: bool,
    /// A server that gets no packet and no notification before its next turn.
    pub stalled: Option<usize>,
    /// The server that takes several inputs in one turn.
    pub in_turn: Option<usize>,
    /// Configurations that came in force, counted once for each server.
    pub in_force_count: usize,
    /// Reconfigurations that named another leader, counted once for each learner that was sent COMMITANDACTIVATE.
    pub named_count: usize,
    /// A bit for each server that has done something since the bits were last taken.
    pub touched: u64,
    /// What happened, line by line; `None`: it is not recorded.
    pub trace: Option<Vec<String>>,
}

impl Checker {
    pub fn below(&mut self, n: usize) -> usize {
        self.random.pick(n)
    }

    pub const fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Panics with the name of the property that does not hold, and with the conditions that make this world again.
    pub fn check(&mut self, event: Event<'_>) {
        let seen = self.checks.see(event);
        seen.unwrap_or_else(|error| panic!("{}: {error}", self.conditions));
    }

    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    /// Returns how many voters have a leader's history on disk, and how many are needed: in the first configuration in which they are no
    /// quorum, of [`Self::needed_views`] and those that this leader counts; otherwise in the one in force. Two quorums of one
    /// configuration have a voter in common ([`support::quorums`]).
    ///
    /// * `opened`: the epoch that begins with this history. A quorum must have promised it, on disk, of the newest configuration in force
    ///   anywhere and of each that this leader counts.
    fn holders(&self, servers: &[Server], at: usize, opened: Option<Epoch>) -> (usize, usize) {
        let tree = &servers[at].tree;
        let core = &servers[at].peer.as_ref().expect("the server leads").core;
        let lost = self.conditions.loses.map(|at| ServerId(at as i64));
        let has = |id: ServerId| match tree.len().checked_sub(1) {
            // The server that loses its data counts as holding what it acknowledged.
            Some(_) if lost == Some(id) => true,
            Some(last) => {
                let has = servers[id.0 as usize].disk.whole();
                let had = self.lost.iter().filter(|(of, _)| *of == id).map(|(_, had)| &had[..]);
                had.chain([has]).any(|entries| entries.get(last) == tree.last())
            }
            None => true,
        };
        let alone = self.conditions.may_lead_alone.or(self.agreed);
        if let Some(may_lead_alone) = alone.map(|at| ServerId(at as i64)) {
            // Nothing that this voter lacks may be committed: it may go on without the other.
            return (usize::from(has(may_lead_alone)), 1);
        }
        let of = |view: &View| Count::of(view, has);
        let lost = |id| lost == Some(id) || self.lost.iter().any(|(of, _)| *of == id);
        let has_promised = |id: ServerId| {
            let accepted = servers[id.0 as usize].disk.accepted;
            opened.is_none_or(|epoch| epoch <= accepted) || lost(id)
        };
        let newest = self.checks.newest_view_before(Zxid::new(Epoch::LAST, u32::MAX)).into_iter();
        let promises = newest.chain(core.all_views()).map(|view| Count::of(view, has_promised));
        let named = self.needed_views(tree);
        let mut counts = named.iter().chain(core.all_views()).map(of).chain(promises);
        let count = counts.find(|count| !count.is_quorum()).unwrap_or_else(|| of(&core.view));
        (count.there, count.needed)
    }

    /// Forgets what counted at a server when its files are lost.
    pub fn forget_acknowledged(&mut self, at: usize) {
        self.acknowledged.remove(&at);
    }

    /// Notes which configurations a start must find: those that counted when the server last acknowledged a history or a proposal. A
    /// configuration that the leader of an open epoch truncates, or that is later than its tree, was never committed.
    fn keep_acknowledged(&mut self, server: &Server, at: usize, seen: &Seen<'_>) {
        let Some(peer) = &server.peer else { return };
        let core = &peer.core;
        let (flushed, last) = (core.flushed.to_wire(), core.history.last().to_wire());
        // A configuration whose proposal is not flushed yet is not acknowledged yet. One that was proposed in this epoch is acknowledged
        // only by the ACK of its zxid, even if the NEWLEADER of a Java leader names it.
        let epoch = core.current;
        let is_of_epoch =
            |version| Zxid::from_wire(version).is_some_and(|proposed| proposed.epoch() == epoch);
        let is_saved =
            |version: &i64| *version <= flushed || last < *version && !is_of_epoch(*version);
        let versions = || core.all_views().map(|view| view.version).filter(is_saved);
        let counting = || versions().collect::<BTreeSet<i64>>();
        match seen {
            Seen::ToLeader(Packet::Ack { .. }) | Seen::Leads(_) => {
                assert!(
                    !server.disk.joins,
                    "{at} follows or leads, and currentEpoch says otherwise"
                );
                self.acknowledged.insert(at, counting());
            }
            Seen::Action(
                Action::ViewForgotten | Action::ViewsProposed { .. } | Action::ViewCommitted { .. },
            ) => {
                let counting = counting();
                let kept = self.acknowledged.entry(at).or_default();
                kept.retain(|version| counting.contains(version));
            }
            Seen::Action(Action::Truncate { to, .. } | Action::Install { zxid: to }) => {
                let kept = self.acknowledged.entry(at).or_default();
                kept.retain(|version| *version <= to.to_wire());
            }
            _ => {}
        }
    }

    /// Whether a packet of one server may arrive at the other now.
    pub fn lets_through(&self, from: usize, to: usize) -> bool {
        !self.conditions.silent.contains(&(from, to)) && self.stalled != Some(to)
    }

    pub fn count(&mut self, what: Happened) {
        *self.happened.entry(what).or_default() += 1;
    }

    /// A server ends because a configuration file can't be written. What it sent in this turn has reached no other server, and its next
    /// start does not have what it did in memory alone.
    fn fails(&mut self, at: usize) {
        self.note(|| format!("{at} can't write its configuration files"));
        self.count(Happened::ConfigRefused);
        self.check(Event::OlderView { at });
        let before = self.before_turn.get(&at);
        let kept = self.acknowledged.entry(at).or_default();
        kept.retain(|version| before.is_some_and(|before| before.contains(version)));
    }

    /// The configurations that the last transaction of a history needs quorums of, whatever a server believes: the newest configuration
    /// before the last transaction and, if that transaction is a reconfiguration, the one that it proposes. The newest may be in no
    /// history: quorums may have acknowledged it with NEWLEADER.
    fn needed_views(&self, tree: &[Entry]) -> Vec<View> {
        let Some(((zxid, last), before)) = tree.split_last() else { return Vec::new() };
        let named = before.iter().rev().find_map(|(_, entry)| view_in(entry));
        let decided = self.checks.newest_view_before(*zxid).cloned();
        let newest = named.into_iter().chain(decided).max_by_key(|view| view.version);
        let newest = newest.unwrap_or_else(|| self.conditions.first_view());
        view_in(last).into_iter().chain([newest]).collect()
    }
}

impl Witness for Checker {
    fn see(&mut self, servers: &[Server], at: usize, seen: Seen<'_>) {
        self.touched |= 1 << at;
        let server = &servers[at];
        let (tree, disk) = (&server.tree[..], &server.disk);
        if let Seen::Input(_) = seen {
            let peer = server.peer.as_ref().expect("the server is up");
            self.is_of_leader = matches!(peer.role(), Role::Leading(_));
        }
        self.keep_acknowledged(server, at, &seen);
        self.see_learners(servers, at, &seen);
        let begins = matches!(seen, Seen::Turn | Seen::Input(_)) && self.in_turn != Some(at);
        if begins && self.conditions.refuses_config {
            let before = self.acknowledged.get(&at).cloned().unwrap_or_default();
            self.before_turn.insert(at, before);
        }
        match seen {
            Seen::Turn => self.in_turn = Some(at),
            Seen::Fails => self.fails(at),
            Seen::Starts => {
                let acknowledged = self.acknowledged.get(&at).cloned().unwrap_or_default();
                let core = &server.peer.as_ref().expect("the server is up").core;
                let views: Vec<&View> = core.all_views().collect();
                self.check(Event::Starts { at, acknowledged: &acknowledged, views: &views });
            }
            Seen::Input(Input::Tick) | Seen::Action(Action::SendNotification { .. }) => {}
            Seen::Input(input) => self.note(|| format!("{at} < {input:?}")),
            Seen::Action(action) => {
                if let Action::ViewCommitted { view, .. } = action {
                    self.in_force_count += 1;
                    self.check(Event::InForce { at, view, leads: self.is_of_leader });
                }
                self.note(|| format!("{at}   > {action:?}"));
            }
            Seen::ToLearner(packet) => {
                self.named_count += usize::from(
                    matches!(packet, Packet::CommitAndActivate { leader, .. } if leader.0 as usize != at),
                );
                self.check(Event::ToLearner { at, packet, disk });
            }
            Seen::ToLeader(packet) => {
                let (epoch, known) =
                    (server.leader_info_epoch, &mut tree.iter().chain(&server.tail));
                let core = &server.peer.as_ref().expect("the server is up").core;
                let votes = core.all_views().any(|view| view.is_voter(ServerId(at as i64)));
                self.check(Event::ToLeader { at, packet, disk, epoch, votes, known });
            }
            Seen::Leads(epoch) => {
                let (holders, quorum) = self.holders(servers, at, Some(epoch));
                self.check(Event::Leads { at, epoch, tree, holders, quorum });
            }
            Seen::Follows => self.check(Event::Follows { at, tree }),
            Seen::Applied(through) => {
                let conditions = &self.conditions;
                assert!(
                    tree.is_empty() || through <= last_of(tree),
                    "{conditions}: {at} is to commit {through}, which it does not have"
                );
                if server.serves {
                    let leads = server.leads.map(|_| self.holders(servers, at, None));
                    self.check(Event::Applied { at, tree, leads });
                }
            }
        }
    }
}

impl World {
    pub fn of(conditions: Conditions) -> Self {
        let (count, view) = (conditions.voters + conditions.observers, conditions.first_view());
        let checker = Checker {
            checks: Checks::default(),
            random: Rng::seeded(conditions.seed),
            rare: Rng::new(conditions.seed, 4),
            turns: Rng::new(conditions.seed, 5),
            peers: Rng::new(conditions.seed, 6),
            hellos: BTreeMap::new(),
            asking: BTreeMap::new(),
            outsider: None,
            replaced: Vec::new(),
            happened: BTreeMap::new(),
            agreed: None,
            agreed_last: None,
            has_switched: false,
            before_turn: BTreeMap::new(),
            backups: BTreeMap::new(),
            lost: Vec::new(),
            losses: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            next_payload: 0,
            is_of_leader: false,
            stalled: None,
            in_turn: None,
            in_force_count: 0,
            named_count: 0,
            touched: 0,
            trace: None,
            conditions,
        };
        let mut world = Ensemble::new(view, checker.conditions.settings(), checker);
        let conditions = &world.witness.conditions;
        world.has_elections = conditions.elects;
        for (at, server) in world.servers.iter_mut().enumerate() {
            server.oracle = conditions.may_lead_alone.map(|may_lead_alone| may_lead_alone == at);
            if conditions.oracle_switches {
                server.oracle = Some(false);
            }
            server.is_java = conditions.all_java || conditions.java == Some(at);
            server.misses_loss = conditions.loses_unknown;
            server.repeats = conditions.repeats && conditions.java == Some(at);
            server.disk.lies = conditions.lying_disk == Some(at);
        }
        if conditions.starts == Starts::AtOnce {
            (0..count).for_each(|at| world.restart(at));
        }
        Self(world)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.witness.below(n)
    }

    /// Power is lost: some of the pending writes may have reached the disk.
    pub fn cut_power(&mut self, at: usize) {
        if self.servers[at].peer.is_none() {
            return;
        }
        let asked = self.servers[at].disk.asked_of_log().count();
        let logged = self.below(asked + 1);
        let disk = &self.servers[at].disk;
        let is_cut = |write: &Write| matches!(write, Write::Truncate { .. });
        let waits = disk.asked_of_log().skip(logged).any(is_cut);
        let trees = if waits { 0 } else { disk.trees_asked() };
        let trees = self.below(trees + 1);
        self.witness.note(|| format!("{at} crashes after {logged} log writes and {trees} trees"));
        self.crash(at, logged, trees);
        if self.witness.conditions.loses == Some(at) && self.below(2) == 0 {
            self.witness.note(|| format!("{at} loses its history"));
            self.servers[at].disk.lose();
        }
    }

    /// The servers that are up and in the newest configuration.
    pub fn members(&self) -> impl Iterator<Item = &Server> {
        let views = self.servers.iter().filter_map(|server| Some(&server.peer.as_ref()?.core.view));
        let newest = views.max_by_key(|view| view.version);
        let belongs = move |at: usize| {
            newest.is_some_and(|view| view.members.contains_key(&ServerId(at as i64)))
        };
        let members = self.servers.iter().enumerate();
        let members = members.filter(move |(at, server)| server.peer.is_some() && belongs(*at));
        members.map(|(_, server)| server)
    }

    pub fn propose(&mut self, at: usize) {
        if self.servers[at].leads.is_none() {
            return;
        }
        self.witness.next_payload += 1;
        let payload = Bytes::copy_from_slice(&self.witness.next_payload.to_be_bytes());
        self.propose_payload(at, payload);
    }

    pub fn propose_payload(&mut self, at: usize, payload: Bytes) {
        let zxid = self.next_zxid(at);
        self.witness.check(Event::Proposed { entry: &(zxid, payload.clone()) });
        self.step(at, Input::Propose { zxid, payload });
    }

    /// A leader restores a snapshot, as one more transaction after all that it has proposed. The restored tree replaces all earlier
    /// transactions, committed or not.
    pub fn restore(&mut self, at: usize) {
        if self.servers[at].leads.is_none() {
            return;
        }
        self.witness.next_payload += 1;
        let payload = Bytes::copy_from_slice(&self.witness.next_payload.to_be_bytes());
        let entry = (self.next_zxid(at), payload);
        self.witness.check(Event::Proposed { entry: &entry });
        let server = &mut self.servers[at];
        let before = server.tree.iter().chain(&server.tail).cloned();
        server.arrived = Some(before.chain([entry.clone()]).collect());
        self.step(at, Input::Restore { zxid: entry.0, past: None });
    }

    /// Ends the elections of some looking servers with a leader that the test chooses.
    ///
    /// * `is_careless`: whether the test may elect a voter without a quorum, and leave servers out.
    pub fn elect(&mut self, is_careless: bool) {
        let count = self.witness.conditions.voters;
        let view = self.witness.conditions.first_view();
        let looking: Vec<usize> =
            (0..self.servers.len()).filter(|&at| self.servers[at].is_looking).collect();
        let voters: Vec<usize> = looking.iter().copied().filter(|&at| at < count).collect();
        let leader = if is_careless && !voters.is_empty() && self.below(5) == 0 {
            voters[self.below(voters.len())]
        } else if let Some(incumbent) = self.leader() {
            incumbent
        } else if is_quorum(&view, |id| voters.contains(&(id.0 as usize))) {
            *voters.iter().max_by_key(|&&at| self.vote(at)).unwrap()
        } else {
            return;
        };
        for at in looking {
            if is_careless && self.below(4) == 0 && at != leader {
                continue;
            }
            self.is_elected(at, leader);
        }
    }

    fn vote(&self, at: usize) -> (Epoch, Zxid, usize) {
        let core = &self.servers[at].peer.as_ref().expect("the server is up").core;
        (core.current, core.history.last(), at)
    }

    /// Asserts that all members that are up have the same transactions; returns the number of these transactions.
    pub fn assert_all_alike(&mut self) -> usize {
        let ids = self.members().filter_map(|server| server.peer.as_ref());
        for at in ids.map(|peer| peer.core.me.0 as usize).collect::<Vec<_>>() {
            let Ensemble { servers, witness, .. } = &mut self.0;
            let (tree, disk): (&[Entry], _) = (&servers[at].tree, servers[at].disk.whole());
            let view = servers[at].peer.as_ref().map_or(0, |peer| peer.core.view.version);
            witness.check(Event::Calm { at, tree, disk, view });
            assert_eq!(tree, witness.checks.committed(), "{}: {at}", witness.conditions);
        }
        self.witness.checks.committed().len()
    }
}
