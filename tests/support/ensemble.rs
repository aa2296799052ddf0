//! An ensemble in one process: peers on virtual disks, and the connections between them.
//!
//! It performs the actions of its peers, and a [`Witness`] sees what they do. Nothing moves by itself: a test says when a disk
//! writes, when a packet or notification arrives, when time passes, and what fails.

use super::connections::{ElectionConnections, Item, LearnerConnection};
use super::disk::{Disk, Entry, Write, last_of};
use super::packets::packets;
use super::server::Server;
use bytes::Bytes;
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId as Id, LogRead, Packet, Peer, Role, Settings,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a server does, at the moment it does it.
pub enum Seen<'a> {
    /// It has read its disk.
    Starts,
    /// It is given an input.
    Input(&'a Input),
    /// It asks for an action, which is performed next.
    Action(&'a Action),
    ToLearner(&'a Packet),
    ToLeader(&'a Packet),
    /// It leads an established epoch from here on.
    Leads(Epoch),
    /// It serves under a leader from here on.
    Follows,
    /// It has applied what is committed through a zxid.
    Applied(Zxid),
    /// It begins a turn of several inputs.
    Turn,
    /// It ends, because a configuration file can't be written. Nothing that it asked for after that is performed.
    Fails,
}

/// What a server does outside of its memory.
#[derive(Clone)]
enum Effect {
    Write(Write),
    ToLearner(Id, Vec<Item>),
    ToLeader(Id, Vec<Packet>),
    ReadLog {
        connection: Id,
        from: Zxid,
        through: Zxid,
    },
    CloseLearner(Id),
    Connect {
        leader: usize,
        id: Id,
    },
    Disconnect(Id),
    /// A notification, configuration files, dials.
    Other(Action),
}

/// A turn in which a server takes several inputs before it performs what they led to.
#[derive(Clone, Default)]
struct Turn {
    effects: VecDeque<Effect>,
    /// Learner connections that the server closed in this turn: what else they brought is discarded.
    closed: BTreeSet<Id>,
}

/// What looks at the servers of an ensemble.
pub trait Witness {
    fn see(&mut self, servers: &[Server], at: usize, seen: Seen<'_>);
}

#[derive(Clone)]
pub struct Ensemble<W> {
    /// By server id.
    pub servers: Vec<Server>,
    pub connections: BTreeMap<Id, LearnerConnection>,
    pub elections: ElectionConnections,
    pub witness: W,
    /// Election ports are dialed; otherwise elections end by [`Ensemble::is_elected`] only.
    pub has_elections: bool,
    /// Connections are numbered after their learners, so that two ensembles that are alike compare equal.
    pub numbers_by_learner: bool,
    first_view: View,
    settings: Settings,
    /// What the servers have to be told of, in order.
    pending: VecDeque<(usize, Input)>,
    next_connection: u64,
    /// `Some`: a server is taking the inputs of a turn.
    turn: Option<Turn>,
    /// Packets that were discarded because an earlier one of the same turn ended their connection.
    pub discarded: usize,
}

impl<W: Witness> Ensemble<W> {
    /// The servers of `first_view`, which are down, with empty disks.
    pub fn new(first_view: View, settings: Settings, witness: W) -> Self {
        let count = first_view.members.keys().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        Self {
            servers: (0..count).map(|_| Server::default()).collect(),
            connections: BTreeMap::new(),
            elections: ElectionConnections::default(),
            witness,
            has_elections: false,
            numbers_by_learner: false,
            first_view,
            settings,
            pending: VecDeque::new(),
            next_connection: 0,
            turn: None,
            discarded: 0,
        }
    }

    /// Power is gone: of what is on its way to the disk some may have got there.
    ///
    /// * `logged`, `trees`: how many of the writes of the log thread and of trees still happen.
    pub fn crash(&mut self, at: usize, logged: usize, trees: usize) {
        let server = &mut self.servers[at];
        let log: Vec<_> = (0..logged).map_while(|_| server.disk.take(false)).collect();
        let trees = (0..trees).map_while(|_| server.disk.take(true));
        let last: Vec<_> = log.into_iter().chain(trees.collect::<Vec<_>>()).collect();
        for write in last {
            if !matches!(write, Write::Truncate(to) if !server.disk.can_cut(to)) {
                server.disk.perform(write);
            }
        }
        server.end();
        let ended: Vec<_> =
            self.connections.iter().filter(|(_, it)| it.is_of(at)).map(|(&id, _)| id).collect();
        ended.into_iter().for_each(|id| self.end_connection(id));
        let told = self.elections.end_all(at);
        self.pending.extend(told);
        self.settle();
    }

    pub fn end_connection(&mut self, id: Id) {
        let Some(connection) = self.connections.remove(&id) else { return };
        if self.servers[connection.learner].connection == Some(id) {
            self.servers[connection.learner].connection = None;
            self.pending.push_back((connection.learner, Input::LeaderGone));
        }
        self.pending.push_back((connection.leader, Input::LearnerGone { connection: id }));
        self.settle();
    }

    /// Starts a server that is down from its disk.
    pub fn restart(&mut self, at: usize) {
        let server = &mut self.servers[at];
        // A member ends at its start if it can't write beside its configuration file.
        if server.peer.is_some() || server.is_gone || server.refuses_config.is_some() {
            return;
        }
        server.start(ServerId(at as i64), &self.first_view, self.settings);
        self.witness.see(&self.servers, at, Seen::Starts);
        self.step(at, Input::Tick);
    }

    /// The configurations by which a server decides: one that is down by those that it starts with.
    pub fn views_of(&self, at: usize) -> Vec<View> {
        match &self.servers[at].peer {
            Some(peer) => peer.core.all_views().cloned().collect(),
            None => self.views_on(at, &self.servers[at].disk),
        }
    }

    /// The configurations that a server would start with from this disk.
    pub fn views_on(&self, at: usize, disk: &Disk) -> Vec<View> {
        let mut server = Server { disk: disk.clone(), ..Server::default() };
        server.start(ServerId(at as i64), &self.first_view, self.settings);
        server.peer.iter().flat_map(|peer| peer.core.all_views()).cloned().collect()
    }

    /// One input and all that follows from it at once.
    pub fn step(&mut self, at: usize, input: Input) {
        self.pending.push_back((at, input));
        self.settle();
    }

    /// Several inputs in one turn, as a driver takes them (`src/member/turn.rs`): the server's memory follows each at once, and
    /// what they ask of its disk, files and connections is performed after all of them, in order.
    ///
    /// * `events`: makes inputs of this server alone happen.
    pub fn turn(&mut self, at: usize, events: impl FnOnce(&mut Self)) {
        self.witness.see(&self.servers, at, Seen::Turn);
        self.turn = Some(Turn::default());
        events(self);
        let turn = self.turn.take().expect("no turn begins within another");
        for effect in turn.effects {
            if self.servers[at].peer.is_none() {
                break; // It has failed.
            }
            let answer = self.perform(at, effect);
            self.pending.extend(answer.map(|input| (at, input)));
        }
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((at, input)) = self.pending.pop_front() {
            if self.servers[at].peer.is_none() {
                continue;
            }
            self.witness.see(&self.servers, at, Seen::Input(&input));
            let mut actions = VecDeque::from(self.servers[at].answer(input));
            while let Some(action) = actions.pop_front() {
                self.witness.see(&self.servers, at, Seen::Action(&action));
                let Some(effect) = self.take_in(at, action, &mut actions) else { continue };
                if let Some(turn) = &mut self.turn {
                    turn.effects.push_back(effect);
                    continue;
                }
                let answer = self.perform(at, effect);
                if self.servers[at].peer.is_none() {
                    break; // It has failed.
                }
                actions.extend(answer.into_iter().flat_map(|input| self.servers[at].answer(input)));
            }
        }
    }

    /// Does what an action changes in the server's memory; gives what is to be done outside of it.
    fn take_in(
        &mut self,
        at: usize,
        action: Action,
        more: &mut VecDeque<Action>,
    ) -> Option<Effect> {
        let server = &mut self.servers[at];
        match action {
            Action::Append { .. }
            | Action::Promise { .. }
            | Action::Truncate { .. }
            | Action::Install { .. } => {
                let (write, answers) = server.take_in(&action);
                more.extend(answers);
                return Some(Effect::Write(write));
            }
            Action::Commit { through } => self.apply(at, through),
            Action::ToLearner { connection, bytes } => {
                return self.say_to_learner(at, connection, &bytes);
            }
            Action::ToLeader { bytes } => return self.say_to_leader(at, &bytes),
            Action::SendSnapshot { connection, .. } => {
                if self.is_open(connection) {
                    let server = &mut self.servers[at];
                    let zxid = last_of(&server.tree);
                    let tree = Item::Tree(server.tree.clone());
                    more.extend(server.answer(Input::SnapshotBegun { connection, zxid }));
                    return Some(Effect::ToLearner(connection, vec![tree]));
                }
            }
            Action::ReadLog { connection, from, through } => {
                return Some(Effect::ReadLog { connection, from, through });
            }
            Action::CloseLearner { connection, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.closed.insert(connection);
                }
                return Some(Effect::CloseLearner(connection));
            }
            Action::Connect { leader } => {
                let next = if self.numbers_by_learner { at as u64 } else { self.next_connection };
                self.next_connection = next + 1;
                let id = Id(self.next_connection);
                server.connection = Some(id);
                server.unsaid.clear();
                return Some(Effect::Connect { leader: leader.0 as usize, id });
            }
            Action::Disconnect => return server.connection.take().map(Effect::Disconnect),
            Action::Lead { epoch } => {
                (server.serves, server.leads) = (true, Some(epoch));
                server.proposed = Zxid::new(epoch, 0);
                self.witness.see(&self.servers, at, Seen::Leads(epoch));
            }
            Action::Follow { .. } => {
                server.serves = true;
                let unsaid = std::mem::take(&mut server.unsaid);
                let connection = server.connection;
                self.witness.see(&self.servers, at, Seen::Follows);
                return connection.map(|id| Effect::ToLeader(id, unsaid));
            }
            Action::StopServing => (server.serves, server.leads) = (false, None),
            Action::Look { .. } => server.is_looking = true,
            // What `replica` answers for a server without clients: here are peers alone.
            Action::FromLeader { packet: packet @ Packet::Ping { .. } } => {
                return self.say_to_leader(at, &packet.to_bytes());
            }
            Action::FromLearner { .. } | Action::FromLeader { .. } => {}
            Action::SendNotification { .. }
            | Action::ViewCommitted { .. }
            | Action::ViewsProposed { .. }
            | Action::ViewForgotten
            | Action::DialAll => return Some(Effect::Other(action)),
        }
        None
    }

    /// Does what a server asked for outside of its memory; gives what it is told of that at once.
    fn perform(&mut self, at: usize, effect: Effect) -> Option<Input> {
        let server = &mut self.servers[at];
        match effect {
            Effect::Write(write) => server.disk.asked.push_back(write),
            Effect::ToLearner(id, items) => {
                if let Some(to) = self.connections.get_mut(&id) {
                    to.to_learner.extend(items);
                }
            }
            Effect::ToLeader(id, packets) => {
                if let Some(to) = self.connections.get_mut(&id) {
                    to.to_leader.extend(packets);
                }
            }
            Effect::ReadLog { connection, from, through } => {
                let all = server.disk.whole();
                let before = all.iter().map(|(zxid, _)| *zxid).take_while(|zxid| *zxid <= from);
                let before = before.last();
                let wanted = |entry: &&Entry| from < entry.0 && entry.0 <= through;
                let entries = all.iter().filter(wanted).cloned().collect();
                let read = LogRead { before, entries };
                return Some(Input::LogRead { connection, read });
            }
            Effect::CloseLearner(id) => {
                if let Some(ended) = self.connections.remove(&id)
                    && self.servers[ended.learner].connection.take_if(|at| *at == id).is_some()
                {
                    self.pending.push_back((ended.learner, Input::LeaderGone));
                }
            }
            Effect::Connect { leader, id } => {
                let old = self.connections.insert(id, LearnerConnection::new(leader, at));
                assert!(old.is_none(), "server {at} connects twice");
            }
            Effect::Disconnect(id) => {
                if let Some(connection) = self.connections.remove(&id) {
                    self.pending
                        .push_back((connection.leader, Input::LearnerGone { connection: id }));
                }
            }
            Effect::Other(action) => self.perform_other(at, action),
        }
        None
    }

    fn perform_other(&mut self, at: usize, action: Action) {
        let server = &mut self.servers[at];
        match action {
            Action::SendNotification { to, notification } => {
                if self.has_elections {
                    self.elections.put(at, to.0 as usize, notification);
                    self.dial(at, to.0 as usize);
                }
            }
            Action::DialAll => (0..self.servers.len()).for_each(|to| self.dial(at, to)),
            _ if server.refuses_config.is_some() => {
                let logged = server.refuses_config.unwrap_or(0);
                self.witness.see(&self.servers, at, Seen::Fails);
                self.crash(at, logged, 0);
            }
            Action::ViewCommitted { view, is_last } => {
                server.disk.view = Some(view);
                if is_last {
                    server.disk.next.clear();
                }
            }
            Action::ViewsProposed { views } => server.disk.next = views,
            Action::ViewForgotten => server.disk.next.clear(),
            action => unreachable!("{action:?} is for memory or for a connection"),
        }
    }

    /// Whether a leader takes packets of this learner connection.
    fn is_open(&self, id: Id) -> bool {
        let is_closed = self.turn.as_ref().is_some_and(|turn| turn.closed.contains(&id));
        self.connections.contains_key(&id) && !is_closed
    }

    fn dial(&mut self, from: usize, to: usize) {
        if from == to || self.servers[to].peer.is_none() || !self.has_elections {
            return;
        }
        if self.elections.connect(from, to) {
            self.pending.push_back((from, Input::ElectionConnected { to: ServerId(to as i64) }));
            self.pending.push_back((to, Input::ElectionConnected { to: ServerId(from as i64) }));
        }
    }

    fn apply(&mut self, at: usize, through: Zxid) {
        let server = &mut self.servers[at];
        while let Some(entry) = server.tail.pop_front_if(|(zxid, _)| *zxid <= through) {
            server.tree.push(entry);
        }
        self.witness.see(&self.servers, at, Seen::Applied(through));
    }

    fn say_to_learner(&mut self, at: usize, connection: Id, bytes: &Bytes) -> Option<Effect> {
        if !self.is_open(connection) {
            return None;
        }
        let mut packets = packets(bytes);
        self.servers[at].say_as_java(&mut packets);
        for packet in &packets {
            self.witness.see(&self.servers, at, Seen::ToLearner(packet));
        }
        let items = packets.into_iter().map(Item::Packet).collect();
        Some(Effect::ToLearner(connection, items))
    }

    fn say_to_leader(&mut self, at: usize, bytes: &Bytes) -> Option<Effect> {
        let connection = self.servers[at].connection?;
        let packets = packets(bytes);
        for packet in &packets {
            self.witness.see(&self.servers, at, Seen::ToLeader(packet));
        }
        Some(Effect::ToLeader(connection, self.servers[at].say_later_as_java(packets)))
    }

    /// A leader proposes what one of its clients asked for; gives its zxid.
    pub fn next_zxid(&mut self, at: usize) -> Zxid {
        let server = &mut self.servers[at];
        server.proposed = server.proposed.next().expect("an epoch is long");
        server.proposed
    }

    /// The log thread gets on by one.
    pub fn write_log(&mut self, at: usize) {
        if let Some(write) = self.servers[at].disk.take(false) {
            self.written(at, write);
        }
    }

    /// A tree is written, unless the log is to be truncated first: the log thread gives it its name, after what it was asked
    /// before (`member::disk_work`). The store itself is not here, since searches copy whole worlds at every step: that a
    /// truncation is marked as superseded is for tests of `member`, what then becomes of the log for those of `store`, and
    /// `sim` has all of them together.
    pub fn write_tree(&mut self, at: usize) {
        let disk = &mut self.servers[at].disk;
        if disk.is_to_be_cut() {
            return;
        }
        if let Some(write) = disk.take(true) {
            self.written(at, write);
        }
    }

    fn written(&mut self, at: usize, write: Write) {
        let server = &mut self.servers[at];
        let report = write.report().expect("peers do not roll logs");
        match write {
            Write::Truncate(to) if !server.disk.can_cut(to) => {
                if server.disk.trees_asked() > 0 {
                    return self.step(at, report); // The tree that comes takes the place of all.
                }
                server.tree = server.disk.whole().to_vec();
                let last = last_of(&server.tree);
                return self.step(at, Input::CannotTruncate { last });
            }
            Write::Truncate(to) => server.tree.retain(|entry| entry.0 <= to),
            _ => {}
        }
        server.disk.perform(write);
        self.step(at, report);
    }

    /// The oldest packet of one direction arrives; true if there was one.
    pub fn deliver(&mut self, id: Id, goes_to_leader: bool) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let (leader, learner) = (connection.leader, connection.learner);
        if self.servers[leader].peer.is_none() {
            self.end_connection(id);
            return true;
        }
        if goes_to_leader {
            let Some(packet) = connection.to_leader.pop_front() else { return false };
            if !self.is_open(id) {
                self.discarded += 1;
                return true;
            }
            self.step(leader, Input::Learner { connection: id, packet });
            return true;
        }
        let packet = match connection.to_learner.pop_front() {
            None => return false,
            // An earlier packet of the same turn had the learner leave.
            Some(_) if self.servers[learner].connection != Some(id) => {
                self.discarded += 1;
                return true;
            }
            Some(Item::Packet(packet)) => packet,
            Some(Item::Tree(tree)) => {
                let zxid = last_of(&tree);
                self.servers[learner].arrived = Some(tree);
                Packet::Snap { zxid }
            }
        };
        if let Packet::LeaderInfo { epoch } = packet {
            self.servers[learner].told = epoch;
        }
        self.step(learner, Input::Leader { packet });
        true
    }

    /// The notification that is under way from one server to another arrives; true if there was one.
    pub fn hear(&mut self, from: usize, to: usize) -> bool {
        let Some(notification) = self.elections.take(from, to) else { return false };
        self.step(to, Input::Notification { from: ServerId(from as i64), notification });
        true
    }

    /// The server that leads, or is about to.
    pub fn leader(&self) -> Option<usize> {
        let leads = |server: &Server| {
            matches!(server.peer.as_ref().map(Peer::role), Some(Role::Leading(_)))
        };
        self.servers.iter().position(leads)
    }
}
