//! An ensemble in one process: servers on virtual disks, their connections, and whatever fails.
//!
//! Nothing here decides anything: a world carries out the actions of its peers and tells the checks of them.

use crate::checks::{Checks, Event};
use crate::climate::Climate;
use crate::disk::{Disk, Entry, Queues, Write, last_of};
use crate::views::{address, view_in};
use crate::votes::votes_for;
use crate::wires::{Connection, Wires, packets};
use bytes::Bytes;
use oxkeeper::model::{Epoch, Member, Role as Kind, Rule, ServerId, View, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId as Id, LogRead, Packet, Peer, Role};
use std::collections::{BTreeMap, VecDeque};

/// On its way to a learner.
pub enum Item {
    Packet(Packet),
    Tree(Vec<Entry>),
}

#[derive(Default)]
pub struct Node {
    pub peer: Option<Peer>,
    pub disk: Disk,
    pub writes: Queues,
    /// What is applied.
    pub tree: Vec<Entry>,
    /// Proposed or logged here and not applied.
    pub tail: VecDeque<Entry>,
    arrived: Option<Vec<Entry>>,
    pub is_looking: bool,
    /// Leads or follows, and serves clients.
    pub serves: bool,
    pub leads: Option<Epoch>,
    pub proposed: Zxid,
    /// The epoch its leader told of.
    told: Epoch,
    pub connection: Option<Id>,
    /// What a Java learner says later than ours.
    unsaid: Vec<Packet>,
}

pub struct World {
    pub climate: Climate,
    pub nodes: Vec<Node>,
    pub connections: BTreeMap<Id, Connection>,
    pub wires: Wires,
    /// What the others have to be told of, in order.
    pending: VecDeque<(usize, Input)>,
    next_connection: u64,
    next_payload: u64,
    checks: Checks,
    random: u64,
    /// Configurations decided on, by all who heard of it; and times another leader was named.
    pub decided: usize,
    pub named: usize,
    /// What happened, if somebody wants to read it.
    pub trace: Option<Vec<String>>,
}

impl World {
    pub fn new(climate: Climate) -> Self {
        let count = climate.voters + climate.observers;
        let mut world = Self {
            nodes: (0..count).map(|_| Node::default()).collect(),
            connections: BTreeMap::new(),
            wires: Wires::default(),
            pending: VecDeque::new(),
            next_connection: 0,
            next_payload: 0,
            checks: Checks::default(),
            decided: 0,
            named: 0,
            random: climate.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            trace: None,
            climate,
        };
        (0..count).for_each(|at| world.restart(at));
        world
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % n
    }

    fn view(&self) -> View {
        let member = |at: usize| Member {
            id: ServerId(at as i64),
            addresses: vec![address(at)],
            role: if at < self.climate.voters { Kind::Participant } else { Kind::Observer },
            client: None,
        };
        let members = (0..self.nodes.len()).map(|at| (ServerId(at as i64), member(at)));
        View { version: 0, members: members.collect(), rule: Rule::Majority }
    }

    /// Panics with the name of the property that does not hold, and how this world is made again.
    fn see(&mut self, event: Event<'_>) {
        let seen = self.checks.see(event);
        self.must(seen);
    }

    fn must<T>(&self, result: Result<T, String>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => panic!("{}: {error}", self.climate),
        }
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    /// Power is gone: of what is on its way to the disk some may have got there.
    pub fn crash(&mut self, at: usize) {
        if self.nodes[at].peer.is_none() {
            return;
        }
        let logged = self.below(self.nodes[at].writes.log.len() + 1);
        let is_cut = |write: &Write| matches!(write, Write::Truncate(_));
        let waits = self.nodes[at].writes.log.iter().skip(logged).any(is_cut);
        let trees = if waits { 0 } else { self.nodes[at].writes.trees.len() };
        let trees = self.below(trees + 1);
        self.crash_after(at, logged, trees);
        if self.climate.loses == Some(at) && self.below(2) == 0 {
            self.note(|| format!("{at} loses its history"));
            self.nodes[at].disk.lose();
        }
    }

    /// * `logged`, `trees`: how many of the writes under way still happen.
    pub fn crash_after(&mut self, at: usize, logged: usize, trees: usize) {
        self.note(|| format!("{at} crashes after {logged} and {trees} writes"));
        let node = &mut self.nodes[at];
        let last: Vec<Write> =
            node.writes.log.drain(..logged).chain(node.writes.trees.drain(..trees)).collect();
        for write in last {
            if !matches!(write, Write::Truncate(to) if !node.disk.can_cut(to)) {
                node.disk.perform(write);
            }
        }
        let disk = std::mem::take(&mut node.disk);
        *node = Node { disk, ..Node::default() };
        self.cut(at);
        let told = self.wires.unplug(at);
        self.pending.extend(told);
        self.settle();
    }

    /// Ends all its connections.
    fn cut(&mut self, at: usize) {
        let there = |it: &Connection| it.leader == at || it.learner == at;
        let ended: Vec<_> =
            self.connections.iter().filter(|(_, it)| there(it)).map(|(&id, _)| id).collect();
        ended.into_iter().for_each(|id| self.end_connection(id));
    }

    pub fn end_connection(&mut self, id: Id) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if self.nodes[connection.learner].connection == Some(id) {
            self.nodes[connection.learner].connection = None;
            self.pending.push_back((connection.learner, Input::LeaderGone));
        }
        self.pending.push_back((connection.leader, Input::LearnerGone { connection: id }));
        self.settle();
    }

    pub fn restart(&mut self, at: usize) {
        if self.nodes[at].peer.is_some() {
            return;
        }
        self.note(|| format!("{at} starts"));
        let (first, settings) = (self.view(), self.climate.settings());
        let node = &mut self.nodes[at];
        let view = node.disk.view.clone().unwrap_or(first);
        node.tree = node.disk.whole().to_vec();
        let epochs = (node.disk.accepted, node.disk.current);
        let last = last_of(&node.tree);
        let me = ServerId(at as i64);
        let knows = !node.disk.is_unsure || self.climate.loses_unknown;
        let mut peer = Peer::member(me, settings, view, epochs, knows.then_some(last));
        peer.core.finds_view = view_in;
        // What was proposed is in the log, decided or not; as a server reads it, whose first file is its operator's.
        let mut newest_first = node.tree.iter().rev().filter_map(|(_, payload)| view_in(payload));
        let (logged, before) = (newest_first.next(), newest_first.next());
        let order = logged.as_ref().map(|view| view.version).zip(before.map(|view| view.version));
        for view in [logged, node.disk.next.clone()].into_iter().flatten() {
            if node.disk.view.is_some() && view.version <= last.to_wire() {
                peer.core.see_view(view, &mut Vec::new());
            }
        }
        if let Some((version, before)) = order {
            peer.core.see_order(version, before);
        }
        peer.core.oracle = self.climate.blessed.map(|blessed| blessed == at);
        node.disk.lies = self.climate.lying_disk == Some(at);
        node.peer = Some(peer);
        self.step(at, Input::Tick);
    }

    /// One input and all that follows from it at once.
    pub fn step(&mut self, at: usize, input: Input) {
        self.pending.push_back((at, input));
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((at, input)) = self.pending.pop_front() {
            let Some(peer) = &mut self.nodes[at].peer else { continue };
            if let Some(trace) = &mut self.trace
                && input != Input::Tick
            {
                trace.push(format!("{at} < {input:?}"));
            }
            let mut actions = Vec::new();
            peer.step(input, &mut actions);
            let mut actions = VecDeque::from(actions);
            while let Some(action) = actions.pop_front() {
                if let Some(trace) = &mut self.trace
                    && !matches!(action, Action::SendNotification { .. })
                {
                    trace.push(format!("{at}   > {action:?}"));
                }
                self.perform(at, action, &mut actions);
            }
        }
    }

    fn perform(&mut self, at: usize, action: Action, more: &mut VecDeque<Action>) {
        let node = &mut self.nodes[at];
        match action {
            Action::Append { zxid, payload } => {
                node.tail.push_back((zxid, payload.clone()));
                node.writes.push(Write::Append((zxid, payload)));
            }
            Action::Commit { through } => self.apply(at, through),
            Action::Promise { promise, epoch } => {
                node.writes.push(Write::Promise(promise, epoch));
            }
            Action::Truncate { to } => {
                node.tail.retain(|(zxid, _)| *zxid <= to);
                node.writes.push(Write::Truncate(to));
            }
            Action::Install { zxid } => {
                node.tree = node.arrived.take().expect("a tree came with SNAP");
                node.tail.retain(|(at, _)| zxid < *at);
                node.writes.push(Write::Install(node.tree.clone()));
            }
            Action::ToLearner { connection, bytes } => self.say_down(at, connection, &bytes),
            Action::ToLeader { bytes } => self.say_up(at, &bytes),
            Action::SendSnapshot { connection } => {
                if let Some(to) = self.connections.get_mut(&connection) {
                    to.down.push_back(Item::Tree(node.tree.clone()));
                    let begun = Input::SnapshotBegun { connection, zxid: last_of(&node.tree) };
                    Self::answer(node, begun, more);
                }
            }
            Action::ReadLog { connection, from, through } => {
                let all = node.disk.whole();
                let before = all.iter().map(|(zxid, _)| *zxid).take_while(|zxid| *zxid <= from);
                let before = before.last();
                let wanted = |entry: &&Entry| from < entry.0 && entry.0 <= through;
                let entries = all.iter().filter(wanted).cloned().collect();
                let read = LogRead { before, entries };
                Self::answer(node, Input::LogRead { connection, read }, more);
            }
            Action::CloseLearner { connection, .. } => {
                if let Some(ended) = self.connections.remove(&connection)
                    && self.nodes[ended.learner]
                        .connection
                        .take_if(|at| *at == connection)
                        .is_some()
                {
                    self.pending.push_back((ended.learner, Input::LeaderGone));
                }
            }
            Action::Connect { leader } => {
                self.next_connection += 1;
                let id = Id(self.next_connection);
                node.connection = Some(id);
                node.unsaid.clear();
                self.connections.insert(id, Connection::new(leader.0 as usize, at));
            }
            Action::Disconnect => {
                if let Some(id) = node.connection.take()
                    && let Some(connection) = self.connections.remove(&id)
                {
                    self.pending
                        .push_back((connection.leader, Input::LearnerGone { connection: id }));
                }
            }
            Action::Lead { epoch } => self.lead(at, epoch),
            Action::Follow { .. } => {
                node.serves = true;
                let unsaid = std::mem::take(&mut node.unsaid);
                if let Some(connection) =
                    node.connection.and_then(|id| self.connections.get_mut(&id))
                {
                    connection.up.extend(unsaid);
                }
                let node = &self.nodes[at];
                let seen = self.checks.see(Event::Follows { at, tree: &node.tree });
                self.must(seen);
            }
            Action::StopServing => (node.serves, node.leads) = (false, None),
            Action::Look { .. } => node.is_looking = true,
            Action::SendNotification { to, notification } => {
                self.wires.put(at, to.0 as usize, notification);
                self.dial(at, to.0 as usize);
            }
            Action::ViewCommitted { view, .. } => {
                node.disk.view = Some(view);
                self.decided += 1;
            }
            Action::ViewProposed { view } => node.disk.next = Some(view),
            Action::DialAll => (0..self.nodes.len()).for_each(|to| self.dial(at, to)),
            // As a driver of no clients would.
            Action::FromLeader { packet: packet @ Packet::Ping { .. } } => {
                self.say_up(at, &packet.to_bytes());
            }
            Action::FromLearner { .. } | Action::FromLeader { .. } => {}
        }
    }

    /// What its driver says to a peer before it does anything else.
    fn answer(node: &mut Node, input: Input, more: &mut VecDeque<Action>) {
        let mut out = Vec::new();
        node.peer.as_mut().expect("it acts, so it lives").step(input, &mut out);
        more.extend(out);
    }

    fn dial(&mut self, from: usize, to: usize) {
        if from == to || self.nodes[to].peer.is_none() || !self.climate.elects {
            return;
        }
        if self.wires.plug(from, to) {
            self.pending.push_back((from, Input::ElectionConnected { to: ServerId(to as i64) }));
            self.pending.push_back((to, Input::ElectionConnected { to: ServerId(from as i64) }));
        }
    }

    fn apply(&mut self, at: usize, through: Zxid) {
        let node = &mut self.nodes[at];
        while let Some(entry) = node.tail.pop_front_if(|(zxid, _)| *zxid <= through) {
            node.tree.push(entry);
        }
        if last_of(&node.tree) < through && !node.tree.is_empty() {
            self.must(Err(format!("{at} is to commit {through}, which it does not have")))
        }
        let node = &self.nodes[at];
        if !node.serves {
            return;
        }
        let leads = node.leads.map(|_| self.holders(at, &node.tree));
        let seen = self.checks.see(Event::Applied { at, tree: &node.tree, leads });
        self.must(seen);
    }

    fn quorum(&self) -> usize {
        self.climate.voters / 2 + 1
    }

    /// How many voters have a history on disk, and how many are a quorum: by the configuration in force, and by that which
    /// was proposed, if there it is worse.
    fn holders(&self, at: usize, tree: &[Entry]) -> (usize, usize) {
        let core = &self.nodes[at].peer.as_ref().expect("it leads").core;
        let lost = self.climate.loses.map(|at| ServerId(at as i64));
        let has = |id: &ServerId| match tree.len().checked_sub(1) {
            // What it acknowledged it had.
            Some(_) if lost == Some(*id) => true,
            Some(last) => self.nodes[id.0 as usize].disk.whole().get(last) == tree.last(),
            None => true,
        };
        if let Some(blessed) = self.climate.blessed.map(|at| ServerId(at as i64)) {
            // What it lacks nobody may decide on: it may go on without the others.
            return (usize::from(has(&blessed)), 1);
        }
        let of = |view: &View| (view.voters().filter(has).count(), view.voters().count() / 2 + 1);
        let in_force = of(&core.view);
        let next = core.next.as_ref().map(of);
        next.filter(|(holders, quorum)| holders < quorum).unwrap_or(in_force)
    }

    /// Who lives and belongs to the newest configuration.
    pub fn members(&self) -> impl Iterator<Item = &Node> {
        let views = self.nodes.iter().filter_map(|node| Some(&node.peer.as_ref()?.core.view));
        let newest = views.max_by_key(|view| view.version);
        let belongs = move |at: usize| {
            newest.is_some_and(|view| view.members.contains_key(&ServerId(at as i64)))
        };
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(at, node)| node.peer.is_some() && belongs(*at))
            .map(|(_, node)| node)
    }

    fn lead(&mut self, at: usize, epoch: Epoch) {
        let node = &mut self.nodes[at];
        (node.serves, node.leads, node.proposed) = (true, Some(epoch), Zxid::new(epoch, 0));
        let tree = &self.nodes[at].tree;
        let (holders, quorum) = self.holders(at, tree);
        let seen = self.checks.see(Event::Leads { at, epoch, tree, holders, quorum });
        self.must(seen);
    }

    fn say_down(&mut self, at: usize, connection: Id, bytes: &Bytes) {
        let Some(to) = self.connections.get_mut(&connection) else { return };
        let packets = packets(bytes);
        for packet in &packets {
            self.named += usize::from(
                matches!(packet, Packet::CommitAndActivate { leader, .. } if leader.0 as usize != at),
            );
            let disk = &self.nodes[at].disk;
            let seen = self.checks.see(Event::ToLearner { at, packet, disk });
            if let Err(error) = seen {
                panic!("{}: {error}", self.climate);
            }
        }
        to.down.extend(packets.into_iter().map(Item::Packet));
    }

    fn say_up(&mut self, at: usize, bytes: &Bytes) {
        let is_early = self.climate.java == Some(at) && !self.nodes[at].serves;
        let node = &self.nodes[at];
        let Some(connection) = node.connection.and_then(|id| self.connections.get_mut(&id)) else {
            return;
        };
        let packets = packets(bytes);
        for packet in &packets {
            let known = &mut node.tree.iter().chain(&node.tail);
            let (disk, told) = (&node.disk, node.told);
            let event = Event::ToLeader { at, packet, disk, told, known };
            if let Err(error) = self.checks.see(event) {
                panic!("{}: {error}", self.climate);
            }
        }
        let waits = |packet: &Packet| matches!(packet, Packet::Ack { zxid } if is_early && zxid.counter() != 0);
        let (late, said): (Vec<_>, Vec<_>) = packets.into_iter().partition(waits);
        connection.up.extend(said);
        self.nodes[at].unsaid.extend(late);
    }

    pub fn propose(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.leads.is_none() {
            return;
        }
        self.next_payload += 1;
        let payload = Bytes::copy_from_slice(&self.next_payload.to_be_bytes());
        self.propose_payload(at, payload);
    }

    pub fn propose_payload(&mut self, at: usize, payload: Bytes) {
        let node = &mut self.nodes[at];
        node.proposed = node.proposed.next().expect("an epoch is long");
        let zxid = node.proposed;
        self.see(Event::Proposed { entry: &(zxid, payload.clone()) });
        self.step(at, Input::Propose { zxid, payload });
    }

    /// The log thread gets on by one.
    pub fn write_log(&mut self, at: usize) {
        if let Some(write) = self.nodes[at].writes.log.pop_front() {
            self.written(at, write);
        }
    }

    /// A tree is written, unless the log is to be cut first.
    pub fn write_tree(&mut self, at: usize) {
        let writes = &self.nodes[at].writes;
        if writes.log.iter().any(|write| matches!(write, Write::Truncate(_))) {
            return;
        }
        if let Some(write) = self.nodes[at].writes.trees.pop_front() {
            self.written(at, write);
        }
    }

    fn written(&mut self, at: usize, write: Write) {
        let node = &mut self.nodes[at];
        if let Write::Truncate(to) = write
            && !node.disk.can_cut(to)
        {
            if node.writes.trees.is_empty() {
                node.tree = node.disk.whole().to_vec();
                let last = last_of(&node.tree);
                self.step(at, Input::CannotTruncate { last });
            } else {
                self.step(at, Input::Truncated { to }); // The tree that comes takes the place of all.
            }
            return;
        }
        node.disk.perform(write.clone());
        match write {
            Write::Append((through, _)) => self.step(at, Input::Flushed { through }),
            Write::Promise(promise, epoch) => self.step(at, Input::Promised { promise, epoch }),
            Write::Truncate(to) => {
                self.nodes[at].tree.retain(|entry| entry.0 <= to);
                self.step(at, Input::Truncated { to });
            }
            Write::Install(tree) => {
                let zxid = last_of(&tree);
                self.step(at, Input::Installed { zxid });
            }
        }
    }

    /// The oldest packet of one direction arrives; true if there was one.
    pub fn deliver(&mut self, id: Id, goes_up: bool) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let (leader, learner) = (connection.leader, connection.learner);
        if self.nodes[leader].peer.is_none() {
            self.end_connection(id);
            return true;
        }
        if goes_up {
            let Some(packet) = connection.up.pop_front() else { return false };
            self.step(leader, Input::Learner { connection: id, packet });
            return true;
        }
        let packet = match connection.down.pop_front() {
            None => return false,
            Some(Item::Packet(packet)) => packet,
            Some(Item::Tree(tree)) => {
                let zxid = last_of(&tree);
                self.nodes[learner].arrived = Some(tree);
                Packet::Snap { zxid }
            }
        };
        if let Packet::LeaderInfo { epoch } = packet {
            self.nodes[learner].told = epoch;
        }
        self.step(learner, Input::Leader { packet });
        true
    }

    /// Ends the elections of some who look for a leader, by an oracle.
    pub fn elect(&mut self, is_careless: bool) {
        let looking: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].is_looking).collect();
        let voters: Vec<usize> =
            looking.iter().copied().filter(|&at| at < self.climate.voters).collect();
        let leads = |at: &usize| {
            matches!(self.nodes[*at].peer.as_ref().map(Peer::role), Some(Role::Leading(_)))
        };
        let incumbent = (0..self.nodes.len()).find(leads);
        let leader = if is_careless && !voters.is_empty() && self.below(5) == 0 {
            voters[self.below(voters.len())]
        } else if let Some(incumbent) = incumbent {
            incumbent
        } else if self.quorum() <= voters.len() {
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

    /// One hears from the others who leads.
    pub fn is_elected(&mut self, at: usize, leader: usize) {
        let node = &mut self.nodes[at];
        node.is_looking = false;
        let votes = node.peer.as_ref().map(|peer| votes_for(peer, ServerId(leader as i64)));
        votes.into_iter().flatten().for_each(|vote| self.step(at, vote));
    }

    fn vote(&self, at: usize) -> (Epoch, Zxid, usize) {
        let core = &self.nodes[at].peer.as_ref().expect("who looks lives").core;
        (core.current, core.history.last(), at)
    }

    /// Everybody who lives has the same transactions; gives their number.
    pub fn assert_all_alike(&mut self) -> usize {
        let ids = self.members().filter_map(|node| node.peer.as_ref()).map(|peer| peer.core.me.0);
        for at in ids.map(|id| id as usize).collect::<Vec<_>>() {
            let node = &self.nodes[at];
            let event = Event::Calm { at, tree: &node.tree, disk: node.disk.whole() };
            if let Err(error) = self.checks.see(event) {
                panic!("{}: {error}", self.climate);
            }
            assert_eq!(node.tree, self.checks.committed(), "{}: node {at}", self.climate);
        }
        self.checks.committed().len()
    }
}
