//! Connections: those of learners to leaders, and those on which votes travel.

use crate::world::Item;
use bytes::{Bytes, BytesMut};
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Input, Notification, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A learner's connection to its leader.
pub struct Connection {
    pub leader: usize,
    pub learner: usize,
    pub down: VecDeque<Item>,
    pub up: VecDeque<Packet>,
}

impl Connection {
    pub fn new(leader: usize, learner: usize) -> Self {
        Self { leader, learner, down: VecDeque::new(), up: VecDeque::new() }
    }
}

/// The connections of the election ports: one for each two servers, with room for one message in each direction.
#[derive(Default)]
pub struct Wires {
    /// The smaller id first.
    up: BTreeSet<(usize, usize)>,
    slots: BTreeMap<(usize, usize), Notification>,
}

impl Wires {
    /// In the place of whatever is unsent.
    pub fn put(&mut self, from: usize, to: usize, notification: Notification) {
        self.slots.insert((from, to), notification);
    }

    /// Connects two; true if they were not connected.
    pub fn plug(&mut self, a: usize, b: usize) -> bool {
        self.up.insert((a.min(b), a.max(b)))
    }

    pub fn is_up(&self, a: usize, b: usize) -> bool {
        self.up.contains(&(a.min(b), a.max(b)))
    }

    /// Breaks a connection, with what is under way on it; who has to be told.
    pub fn break_one(&mut self, a: usize, b: usize) -> Vec<(usize, Input)> {
        if !self.up.remove(&(a.min(b), a.max(b))) {
            return Vec::new();
        }
        self.slots.remove(&(a, b));
        self.slots.remove(&(b, a));
        let down = |to: usize| Input::ElectionDisconnected { to: ServerId(to as i64) };
        vec![(a, down(b)), (b, down(a))]
    }

    /// Breaks all connections of a server that is gone.
    pub fn unplug(&mut self, at: usize) -> Vec<(usize, Input)> {
        let ended: Vec<_> = self.up.iter().copied().filter(|&(a, b)| a == at || b == at).collect();
        self.slots.retain(|&(from, to), _| from != at && to != at);
        ended.into_iter().flat_map(|(a, b)| self.break_one(a, b)).collect()
    }

    /// Directions in which something is under way.
    pub fn busy(&self) -> Vec<(usize, usize)> {
        self.slots.keys().copied().filter(|&(from, to)| self.is_up(from, to)).collect()
    }

    pub fn take(&mut self, from: usize, to: usize) -> Option<Notification> {
        if self.is_up(from, to) { self.slots.remove(&(from, to)) } else { None }
    }
}

/// The packets in `bytes`, which must hold whole ones.
pub fn packets(bytes: &Bytes) -> Vec<Packet> {
    let mut bytes = BytesMut::from(&bytes[..]);
    let mut packets = Vec::new();
    while let Some(packet) = Packet::decode(&mut bytes).expect("peers speak well") {
        packets.push(packet);
    }
    assert!(bytes.is_empty(), "half a packet");
    packets
}
