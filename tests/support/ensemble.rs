//! An ensemble in one process: `zab` peers on virtual disks, and the connections between them.
//!
//! It performs the actions of its `zab` peers, and a [`Witness`] sees what they do. Nothing moves by itself: a test says when a disk
//! writes, when a packet or notification arrives, when time passes, and what fails.

use super::connections::{ElectionConnections, Item, LearnerConnection};
use super::disk::{Disk, Write, last_of};
use super::ensemble_turns::Turn;
use super::server::Server;
use oxkeeper::model::{Epoch, ServerId, View, Zxid};
use oxkeeper::zab::{Action, Input, LearnerConnectionId as Id, Packet, Peer, Role, Settings};
use std::collections::{BTreeMap, VecDeque};

/// What a server does, at the moment it does it.
pub enum Seen<'a> {
    /// The server has read its disk.
    Starts,
    /// The server is given an input.
    Input(&'a Input),
    /// The server gives an action, which is performed next.
    Action(&'a Action),
    ToLearner(&'a Packet),
    ToLeader(&'a Packet),
    /// The server leads an established epoch from now on.
    Leads(Epoch),
    /// The server serves under a leader from now on.
    Follows,
    /// The server has applied what is committed through a zxid.
    Applied(Zxid),
    /// The server begins a turn of several inputs.
    Turn,
    /// The server ends, because a configuration file can't be written. Its later actions are not performed.
    Fails,
}

/// Observes the servers of an ensemble.
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
    pub(super) first_view: View,
    settings: Settings,
    /// Inputs that the servers are still to be given, in order.
    pub(super) pending: VecDeque<(usize, Input)>,
    pub(super) next_connection: u64,
    /// `Some`: a server is taking the inputs of a turn.
    pub(super) turn: Option<Turn>,
    /// Packets that were discarded because an earlier one of the same turn ended their connection.
    pub discarded: usize,
}

impl<W: Witness> Ensemble<W> {
    /// An ensemble of the servers of `first_view`, which are down, with empty disks.
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

    /// A server loses its power; some of the writes that are not done may still have happened.
    ///
    /// * `logged`, `trees`: how many writes of the log thread, and how many trees, still happen.
    pub fn crash(&mut self, at: usize, logged: usize, trees: usize) {
        let server = &mut self.servers[at];
        let log: Vec<_> = (0..logged).map_while(|_| server.disk.take(false)).collect();
        let trees = (0..trees).map_while(|_| server.disk.take(true));
        let last: Vec<_> = log.into_iter().chain(trees.collect::<Vec<_>>()).collect();
        for write in last {
            if !matches!(write, Write::Truncate { to, .. } if !server.disk.can_cut(to)) {
                server.disk.perform(write);
            }
        }
        server.end();
        let ended: Vec<_> =
            self.connections.iter().filter(|(_, it)| it.is_of(at)).map(|(&id, _)| id).collect();
        ended.into_iter().for_each(|id| self.end_connection(id));
        let reports = self.elections.end_all(at);
        self.pending.extend(reports);
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

    /// The configurations by which a server decides; for a server that is down, those with which it starts.
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

    /// The zxid with which a leader proposes its client's next request.
    pub fn next_zxid(&mut self, at: usize) -> Zxid {
        let server = &mut self.servers[at];
        server.proposed = server.proposed.next().expect("an epoch is long");
        server.proposed
    }

    /// The log thread does its next write.
    pub fn write_log(&mut self, at: usize) {
        if let Some(write) = self.servers[at].disk.take(false) {
            self.written(at, write);
        }
    }

    /// A tree is written, unless the log is to be truncated first: the log thread gives the tree its name, after what was requested
    /// before that (`member::disk_work`). The store itself is not here, since searches copy whole worlds at every step: that a truncation
    /// is marked as superseded is tested in `member`, what then becomes of the log in `store`, and `sim` has all of them together.
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
            // The leader's tree will replace everything.
            Write::Truncate { to, before_tree: true } if !server.disk.can_cut(to) => {
                return self.step(at, report);
            }
            Write::Truncate { to, .. } if !server.disk.can_cut(to) => {
                server.tree = server.disk.whole().to_vec();
                let last = last_of(&server.tree);
                return self.step(at, Input::CannotTruncate { last });
            }
            Write::Truncate { to, .. } => server.tree.retain(|entry| entry.0 <= to),
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
            // At an earlier packet of the same turn the learner left its leader.
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
            self.servers[learner].leader_info_epoch = epoch;
        }
        self.step(learner, Input::Leader { packet });
        true
    }

    /// The notification that is on its way from one server to another arrives; true if there was one.
    pub fn hear(&mut self, from: usize, to: usize) -> bool {
        let Some(notification) = self.elections.take(from, to) else { return false };
        self.step(to, Input::Notification { from: ServerId(from as i64), notification });
        true
    }

    /// The server that leads, in an established epoch or before that.
    pub fn leader(&self) -> Option<usize> {
        let leads = |server: &Server| {
            matches!(server.peer.as_ref().map(Peer::role), Some(Role::Leading(_)))
        };
        self.servers.iter().position(leads)
    }
}
