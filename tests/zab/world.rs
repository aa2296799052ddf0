//! An ensemble in one process.

use bytes::{Bytes, BytesMut};
use oxkeeper::model::{Epoch, Member, Role, Rule, ServerId, View, Zxid};
use oxkeeper::zab::{self, Action, Input, LinkId, LogRead, Packet, Peer, Promise, Settings};
use std::collections::{BTreeMap, VecDeque};

const SETTINGS: Settings = Settings {
    tick_time_ms: 100,
    init_limit: 10,
    sync_limit: 5,
    always_sends_tree: false,
    reconfigs: false,
    resend_min_ms: 200,
    resend_max_ms: 60_000,
};

/// What can go wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    Crash,
    Disconnect,
    /// Somebody is elected who is not the best.
    Elect,
}

impl Fault {
    pub const ALL: &[Self] = &[Self::Crash, Self::Disconnect, Self::Elect];
}

type Entry = (Zxid, Bytes);

/// What survives a crash.
#[derive(Clone, Default)]
struct Disk {
    /// The whole history: a snapshot and the log behind it are one list here.
    log: Vec<Entry>,
    accepted: Epoch,
    current: Epoch,
}

/// On its way to the disk.
#[derive(Clone)]
enum Write {
    Append(Entry),
    Promise(Promise, Epoch),
    Truncate(Zxid),
    Install(Vec<Entry>),
}

/// On its way to a learner.
enum Item {
    Packet(Packet),
    Tree(Vec<Entry>),
}

struct Link {
    leader: usize,
    learner: usize,
    down: VecDeque<Item>,
    up: VecDeque<Packet>,
}

struct Node {
    peer: Option<Peer>,
    disk: Disk,
    writes: VecDeque<Write>,
    /// What is applied.
    tree: Vec<Entry>,
    /// Proposed or logged here and not applied.
    tail: VecDeque<Entry>,
    arrived: Option<Vec<Entry>>,
    is_looking: bool,
    /// Leads or follows, and serves clients.
    serves: bool,
    leads: Option<Epoch>,
    proposed: Zxid,
    link: Option<LinkId>,
}

pub struct World {
    nodes: Vec<Node>,
    links: BTreeMap<LinkId, Link>,
    next_link: u64,
    next_payload: u64,
    /// What anybody was ever told is committed.
    committed: Vec<Entry>,
    leaders: BTreeMap<Epoch, usize>,
    random: u64,
    seed: u64,
}

impl World {
    pub fn new(count: usize, seed: u64) -> Self {
        let node = || Node {
            peer: None,
            disk: Disk::default(),
            writes: VecDeque::new(),
            tree: Vec::new(),
            tail: VecDeque::new(),
            arrived: None,
            is_looking: false,
            serves: false,
            leads: None,
            proposed: Zxid::ZERO,
            link: None,
        };
        let mut world = Self {
            nodes: (0..count).map(|_| node()).collect(),
            links: BTreeMap::new(),
            next_link: 0,
            next_payload: 0,
            committed: Vec::new(),
            leaders: BTreeMap::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            seed,
        };
        (0..count).for_each(|node| world.restart(node));
        world
    }

    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % n
    }

    fn view(&self) -> View {
        let member = |at: usize| Member {
            id: ServerId(at as i64),
            addresses: Vec::new(),
            role: Role::Participant,
            client: None,
        };
        let members = (0..self.nodes.len()).map(|at| (ServerId(at as i64), member(at)));
        View { version: 0, members: members.collect(), rule: Rule::Majority }
    }

    pub fn crash(&mut self, at: usize) {
        let lost = self.below(self.nodes[at].writes.len() + 1);
        // Of what is on its way to the disk some may have got there.
        for _ in 0..lost {
            let write = self.nodes[at].writes.pop_front().unwrap();
            self.nodes[at].disk.perform(write);
        }
        let node = &mut self.nodes[at];
        (node.peer, node.serves, node.leads, node.is_looking) = (None, false, None, false);
        node.writes.clear();
        node.tail.clear();
        node.tree.clear();
        self.cut(at);
    }

    /// Ends all its connections.
    fn cut(&mut self, at: usize) {
        let there = |link: &Link| link.leader == at || link.learner == at;
        let ended: Vec<_> =
            self.links.iter().filter(|(_, link)| there(link)).map(|(&id, _)| id).collect();
        ended.into_iter().for_each(|id| self.end_link(id));
    }

    fn end_link(&mut self, id: LinkId) {
        let Some(link) = self.links.remove(&id) else { return };
        if self.nodes[link.learner].link == Some(id) {
            self.nodes[link.learner].link = None;
            self.step(link.learner, Input::LeaderGone);
        }
        self.step(link.leader, Input::LearnerGone { link: id });
    }

    pub fn restart(&mut self, at: usize) {
        if self.nodes[at].peer.is_some() {
            return;
        }
        let view = self.view();
        let node = &mut self.nodes[at];
        let last = node.disk.log.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
        let epochs = (node.disk.accepted, node.disk.current);
        node.tree = node.disk.log.clone();
        let me = ServerId(at as i64);
        node.peer = Some(Peer::member(me, SETTINGS, view, epochs, Some(last)));
        self.step(at, Input::Tick);
    }

    fn step(&mut self, at: usize, input: Input) {
        let mut actions = Vec::new();
        let Some(peer) = &mut self.nodes[at].peer else { return };
        peer.step(input, &mut actions);
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            self.perform(at, action, &mut actions);
        }
    }

    fn perform(&mut self, at: usize, action: Action, more: &mut VecDeque<Action>) {
        let node = &mut self.nodes[at];
        match action {
            Action::Append { zxid, payload } => {
                node.tail.push_back((zxid, payload.clone()));
                node.writes.push_back(Write::Append((zxid, payload)));
            }
            Action::Commit { through } => {
                while let Some(entry) = node.tail.pop_front_if(|(zxid, _)| *zxid <= through) {
                    node.tree.push(entry);
                }
                assert!(
                    node.tree.last().is_none_or(|(last, _)| through <= *last),
                    "seed {}: {at} is to commit {through}, which it does not have",
                    self.seed
                );
                self.check(at);
            }
            Action::Promise { promise, epoch } => {
                node.writes.push_back(Write::Promise(promise, epoch));
            }
            Action::Truncate { to } => {
                node.tail.retain(|(zxid, _)| *zxid <= to);
                node.writes.push_back(Write::Truncate(to));
            }
            Action::Install { zxid } => {
                node.tree = node.arrived.take().expect("a tree came with SNAP");
                node.tail.retain(|(at, _)| zxid < *at);
                node.writes.push_back(Write::Install(node.tree.clone()));
            }
            Action::ToLearner { link, bytes } => {
                if let Some(link) = self.links.get_mut(&link) {
                    link.down.extend(packets(&bytes).into_iter().map(Item::Packet));
                }
            }
            Action::SendSnapshot { link } => {
                if let Some(to) = self.links.get_mut(&link) {
                    to.down.push_back(Item::Tree(node.tree.clone()));
                    let zxid = node.tree.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
                    let mut out = Vec::new();
                    node.peer.as_mut().unwrap().step(Input::SnapshotBegun { link, zxid }, &mut out);
                    more.extend(out);
                }
            }
            Action::ReadLog { link, from, through } => {
                let before = node
                    .disk
                    .log
                    .iter()
                    .map(|(zxid, _)| *zxid)
                    .take_while(|zxid| *zxid <= from)
                    .last();
                let wanted = |entry: &&Entry| from < entry.0 && entry.0 <= through;
                let entries = node.disk.log.iter().filter(wanted).cloned().collect();
                let read = LogRead { before, entries };
                let mut out = Vec::new();
                node.peer.as_mut().unwrap().step(Input::LogRead { link, read }, &mut out);
                more.extend(out);
            }
            Action::CloseLink { link, .. } => {
                if let Some(link) = self.links.remove(&link)
                    && self.nodes[link.learner].link.take().is_some()
                {
                    self.step(link.learner, Input::LeaderGone);
                }
            }
            Action::Connect { leader } => {
                self.next_link += 1;
                let (id, leader) = (LinkId(self.next_link), leader.0 as usize);
                let link = Link { leader, learner: at, down: VecDeque::new(), up: VecDeque::new() };
                node.link = Some(id);
                self.links.insert(id, link);
            }
            Action::ToLeader { bytes } => {
                if let Some(link) = node.link.and_then(|id| self.links.get_mut(&id)) {
                    link.up.extend(packets(&bytes));
                }
            }
            Action::HangUp => {
                if let Some(id) = node.link.take()
                    && let Some(link) = self.links.remove(&id)
                {
                    self.step(link.leader, Input::LearnerGone { link: id });
                }
            }
            Action::Lead { epoch } => {
                (node.serves, node.leads, node.proposed) = (true, Some(epoch), Zxid::new(epoch, 0));
                let before = self.leaders.insert(epoch, at);
                assert_eq!(before, None, "seed {}: two leaders of {epoch:?}", self.seed);
                self.check(at);
            }
            Action::Follow { .. } => {
                node.serves = true;
                self.check(at);
            }
            Action::Rest => (node.serves, node.leads) = (false, None),
            Action::Look { .. } => node.is_looking = true,
            // Who leads is told by `elect`.
            Action::Tell { .. } | Action::DialAll => {}
            Action::FromLearner { .. } | Action::FromLeader { .. } => {}
        }
    }

    /// What a serving node has applied is what everybody has, in one order.
    fn check(&mut self, at: usize) {
        let (node, seed) = (&self.nodes[at], self.seed);
        if !node.serves {
            return;
        }
        let common = node.tree.len().min(self.committed.len());
        for n in 0..common {
            assert_eq!(node.tree[n], self.committed[n], "seed {seed}: node {at}, transaction {n}");
        }
        if node.leads.is_some() {
            assert!(
                self.committed.len() <= node.tree.len(),
                "seed {seed}: leader {at} has lost transactions"
            );
        }
        self.committed.extend_from_slice(&node.tree[common..]);
    }

    pub fn propose(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.leads.is_none() {
            return;
        }
        node.proposed = node.proposed.next().expect("an epoch is long");
        self.next_payload += 1;
        let payload = Bytes::copy_from_slice(&self.next_payload.to_be_bytes());
        let zxid = node.proposed;
        self.step(at, Input::Propose { zxid, payload });
    }

    /// One thing happens.
    pub fn random_step(&mut self, faults: &[Fault]) {
        let at = self.below(self.nodes.len());
        match self.below(1000) {
            0..300 => self.write_one(at),
            300..700 => self.deliver_one(),
            700..850 => self.propose(at),
            850..900 => self.step(at, Input::Tick),
            900..960 => self.elect(faults.contains(&Fault::Elect)),
            960..970 if faults.contains(&Fault::Disconnect) => {
                let ids: Vec<_> = self.links.keys().copied().collect();
                if !ids.is_empty() {
                    let id = ids[self.below(ids.len())];
                    self.end_link(id);
                }
            }
            970..980 if faults.contains(&Fault::Crash) => self.crash(at),
            980..1000 => self.restart(at),
            _ => {}
        }
    }

    fn write_one(&mut self, at: usize) {
        if self.nodes[at].peer.is_none() {
            return;
        }
        let Some(write) = self.nodes[at].writes.pop_front() else { return };
        let node = &mut self.nodes[at];
        node.disk.perform(write.clone());
        match write {
            Write::Append((through, _)) => self.step(at, Input::Flushed { through }),
            Write::Promise(promise, epoch) => self.step(at, Input::Promised { promise, epoch }),
            Write::Truncate(to) => {
                let keep = |entry: &Entry| entry.0 <= to;
                self.nodes[at].tree.retain(keep);
                self.step(at, Input::Truncated { to });
            }
            Write::Install(tree) => {
                let zxid = tree.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
                self.step(at, Input::Installed { zxid });
            }
        }
    }

    fn deliver_one(&mut self) {
        let ids: Vec<_> = self.links.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.below(ids.len())];
        let goes_up = self.below(2) == 0;
        self.deliver(id, goes_up);
    }

    fn deliver(&mut self, id: LinkId, goes_up: bool) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let (leader, learner) = (link.leader, link.learner);
        if self.nodes[leader].peer.is_none() {
            return self.end_link(id);
        }
        let link = self.links.get_mut(&id).unwrap();
        if goes_up {
            let Some(packet) = link.up.pop_front() else { return };
            self.step(leader, Input::Learner { link: id, packet });
            return;
        }
        let packet = match link.down.pop_front() {
            None => return,
            Some(Item::Packet(packet)) => packet,
            Some(Item::Tree(tree)) => {
                let zxid = tree.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
                self.nodes[learner].arrived = Some(tree);
                Packet::Snap { zxid }
            }
        };
        self.step(learner, Input::Leader { packet });
    }

    /// Ends the elections of some who look for a leader.
    fn elect(&mut self, is_careless: bool) {
        let looking: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].is_looking).collect();
        if looking.is_empty() {
            return;
        }
        let leads = |at: &usize| {
            matches!(self.nodes[*at].peer.as_ref().map(Peer::role), Some(zab::Role::Leading(_)))
        };
        let incumbent = (0..self.nodes.len()).find(leads);
        let quorum = self.nodes.len() / 2 + 1;
        let leader = if is_careless && self.below(5) == 0 {
            looking[self.below(looking.len())]
        } else if let Some(incumbent) = incumbent {
            incumbent
        } else if quorum <= looking.len() {
            *looking.iter().max_by_key(|&&at| self.vote(at)).unwrap()
        } else {
            return;
        };
        for at in looking {
            if is_careless && self.below(4) == 0 && at != leader {
                continue;
            }
            self.nodes[at].is_looking = false;
            self.step(at, Input::Elected { leader: ServerId(leader as i64) });
        }
    }

    fn vote(&self, at: usize) -> (Epoch, Zxid, usize) {
        let core = &self.nodes[at].peer.as_ref().expect("who looks lives").core;
        (core.current, core.history.last(), at)
    }

    /// Everybody lives, and nothing fails any more.
    pub fn heal(&mut self) {
        (0..self.nodes.len()).for_each(|at| self.restart(at));
    }

    /// Lets everything that is under way come to its end.
    pub fn calm(&mut self) {
        for round in 0..4000 {
            for at in 0..self.nodes.len() {
                for _ in 0..8 {
                    self.write_one(at);
                }
                self.step(at, Input::Tick);
            }
            for id in self.links.keys().copied().collect::<Vec<_>>() {
                for _ in 0..8 {
                    self.deliver(id, true);
                    self.deliver(id, false);
                }
            }
            if round % 4 == 0 {
                self.elect(false);
            }
            if round > 20 && self.is_calm() {
                return;
            }
        }
        panic!("seed {}: it never calms down", self.seed);
    }

    fn is_calm(&self) -> bool {
        let lives = |node: &&Node| node.peer.is_some();
        self.nodes
            .iter()
            .filter(lives)
            .all(|node| node.serves && node.writes.is_empty() && node.tail.is_empty())
            && self.links.values().all(|link| link.up.is_empty() && link.down.is_empty())
    }

    pub fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.leads.is_some())
    }

    pub fn epoch(&self, at: usize) -> Epoch {
        self.nodes[at].peer.as_ref().expect("it lives").core.current
    }

    /// Everybody who lives has the same `count` transactions.
    pub fn assert_alike(&self, count: usize) {
        assert_eq!(self.assert_all_alike(), count, "seed {}", self.seed);
    }

    pub fn assert_all_alike(&self) -> usize {
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.peer.is_some()) {
            assert_eq!(node.tree, self.committed, "seed {}: node {at}", self.seed);
            assert_eq!(node.disk.log, self.committed, "seed {}: disk of node {at}", self.seed);
        }
        self.committed.len()
    }
}

impl Disk {
    fn perform(&mut self, write: Write) {
        match write {
            Write::Append(entry) => self.log.push(entry),
            Write::Promise(Promise::Accepted, epoch) => self.accepted = epoch,
            Write::Promise(Promise::Current, epoch) => self.current = epoch,
            Write::Truncate(to) => self.log.retain(|(zxid, _)| *zxid <= to),
            Write::Install(tree) => {
                let last = tree.last().map_or(Zxid::ZERO, |(zxid, _)| *zxid);
                let kept: Vec<_> = self.log.drain(..).filter(|(zxid, _)| last < *zxid).collect();
                self.log = tree;
                self.log.extend(kept);
            }
        }
    }
}

fn packets(bytes: &Bytes) -> Vec<Packet> {
    let mut bytes = BytesMut::from(&bytes[..]);
    let mut packets = Vec::new();
    while let Some(packet) = Packet::decode(&mut bytes).expect("peers speak well") {
        packets.push(packet);
    }
    assert!(bytes.is_empty(), "half a packet");
    packets
}
