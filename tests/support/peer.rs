//! One peer on a virtual disk.

use super::disk::Disk;
use super::election::votes_for;
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Action, Input, Peer};

pub struct PeerOnDisk {
    pub peer: Peer,
    pub disk: Disk,
}

impl PeerOnDisk {
    pub fn new(peer: Peer) -> Self {
        Self { peer, disk: Disk::default() }
    }

    /// Gives an input, asks the disk for what the peer wants of it, and returns all actions.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.peer.step(input, &mut actions);
        for action in &actions {
            self.disk.ask(action);
        }
        actions
    }

    /// The disk does what it was asked first: what the peer has to be told of.
    pub fn written(&mut self) -> Option<Input> {
        self.disk.write()?.report()
    }

    /// As [`PeerOnDisk::step`], on a disk that takes no time.
    pub fn settle(&mut self, input: Input) -> Vec<Action> {
        let mut actions = self.step(input);
        while let Some(done) = self.written() {
            actions.extend(self.step(done));
        }
        actions
    }

    /// What ends the election that is under way with `leader`.
    pub fn votes_for(&self, leader: i64) -> Vec<Input> {
        votes_for(&self.peer, ServerId(leader))
    }
}
