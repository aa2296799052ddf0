//! One `zab` peer on a virtual disk.

use super::disk::Disk;
use super::election::votes_for;
use oxkeeper::model::{ServerId, Zxid, op};
use oxkeeper::zab::{Action, Input, LogRead, Packet, Peer};

pub struct PeerOnDisk {
    pub peer: Peer,
    pub disk: Disk,
    /// What a read of the log gives, for any learner.
    pub log: LogRead,
    /// Zxid of the tree that is sent; `None`: the last committed one.
    pub tree: Option<Zxid>,
}

impl PeerOnDisk {
    pub fn new(peer: Peer) -> Self {
        Self { peer, disk: Disk::default(), log: LogRead::default(), tree: None }
    }

    /// Gives an input, requests the writes that follow from it, and returns all actions.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.peer.step(input, &mut actions);
        for action in &actions {
            self.disk.ask(action);
        }
        actions
    }

    /// The input with which the server around the `zab` peer answers an action at once: it has read the log for a learner, has frozen its tree
    /// for a learner, or passes a learner's sync on.
    pub fn answer(&self, action: &Action) -> Option<Input> {
        match action {
            &Action::ReadLog { connection, .. } => {
                Some(Input::LogRead { connection, read: self.log.clone() })
            }
            &Action::SendSnapshot { connection, .. } => {
                let zxid = self.tree.unwrap_or(self.peer.core.history.committed());
                Some(Input::SnapshotBegun { connection, zxid })
            }
            Action::FromLearner { connection, packet: Packet::Request(asked) }
                if asked.op == op::SYNC =>
            {
                Some(Input::Sync { connection: *connection })
            }
            _ => None,
        }
    }

    /// The disk does its first pending write; returns the `zab` peer's input.
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

    /// The inputs that end the election with `leader` as the leader.
    pub fn votes_for(&self, leader: i64) -> Vec<Input> {
        votes_for(&self.peer, ServerId(leader))
    }
}
