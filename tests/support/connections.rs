//! The connections of an ensemble: learner connections, and election connections with their notifications.

use super::disk::Entry;
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Input, Notification, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is on its way to a learner.
#[derive(Clone, Debug)]
pub enum Item {
    Packet(Packet),
    Tree(Vec<Entry>),
}

/// A learner's connection to its leader, and what is under way on it.
#[derive(Clone, Debug)]
pub struct LearnerConnection {
    pub leader: usize,
    pub learner: usize,
    pub to_learner: VecDeque<Item>,
    pub to_leader: VecDeque<Packet>,
}

impl LearnerConnection {
    pub fn new(leader: usize, learner: usize) -> Self {
        Self { leader, learner, to_learner: VecDeque::new(), to_leader: VecDeque::new() }
    }

    pub fn is_of(&self, server: usize) -> bool {
        self.leader == server || self.learner == server
    }

    pub fn is_empty(&self) -> bool {
        self.to_learner.is_empty() && self.to_leader.is_empty()
    }
}

/// The election connections: one for each two servers, with room for one notification in each direction.
#[derive(Clone, Debug, Default)]
pub struct ElectionConnections {
    /// The smaller id first.
    open: BTreeSet<(usize, usize)>,
    notifications: BTreeMap<(usize, usize), Notification>,
}

impl ElectionConnections {
    /// Queues a notification in place of an unsent one.
    pub fn put(&mut self, from: usize, to: usize, notification: Notification) {
        self.notifications.insert((from, to), notification);
    }

    /// Connects two servers; true if they were not connected.
    pub fn connect(&mut self, a: usize, b: usize) -> bool {
        self.open.insert((a.min(b), a.max(b)))
    }

    fn is_open(&self, a: usize, b: usize) -> bool {
        self.open.contains(&(a.min(b), a.max(b)))
    }

    /// Ends a connection, with what is on its way; returns the two servers, each with the input that notifies it.
    pub fn end(&mut self, a: usize, b: usize) -> Vec<(usize, Input)> {
        if !self.open.remove(&(a.min(b), a.max(b))) {
            return Vec::new();
        }
        self.notifications.remove(&(a, b));
        self.notifications.remove(&(b, a));
        let ended = |to: usize| Input::ElectionDisconnected { to: ServerId(to as i64) };
        vec![(a, ended(b)), (b, ended(a))]
    }

    /// Ends all connections of a server that is gone; returns what [`Self::end`] does for each.
    pub fn end_all(&mut self, at: usize) -> Vec<(usize, Input)> {
        let of = |&(a, b): &(usize, usize)| a == at || b == at;
        let ended: Vec<_> = self.open.iter().copied().filter(of).collect();
        self.notifications.retain(|&(from, to), _| from != at && to != at);
        ended.into_iter().flat_map(|(a, b)| self.end(a, b)).collect()
    }

    /// The directions, from one server to another, in which a notification is on its way.
    pub fn busy(&self) -> Vec<(usize, usize)> {
        self.notifications.keys().copied().filter(|&(from, to)| self.is_open(from, to)).collect()
    }

    /// Takes the notification that is on its way from one server to another.
    pub fn take(&mut self, from: usize, to: usize) -> Option<Notification> {
        if self.is_open(from, to) { self.notifications.remove(&(from, to)) } else { None }
    }
}
