//! One peer on a virtual disk.

use super::disk::Disk;
use super::election::votes_for;
use oxkeeper::model::{ServerId, Zxid, op};
use oxkeeper::zab::{Action, Input, LogRead, Packet, Peer};

pub struct PeerOnDisk {
    pub peer: Peer,
    pub disk: Disk,
    /// What the log has for any learner.
    pub log: LogRead,
    /// Zxid of the tree that is sent; `None`: what is committed.
    pub tree: Option<Zxid>,
}

impl PeerOnDisk {
    pub fn new(peer: Peer) -> Self {
        Self { peer, disk: Disk::default(), log: LogRead::default(), tree: None }
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

    /// What the server around the peer answers at once to an action: it has read the log for a learner, has frozen its tree for
    /// one, and passes the sync of one on.
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
