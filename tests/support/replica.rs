//! One replica on a virtual disk, with the clock of its server.

use super::builders::{WALL_MS, shared};
use super::disk::{Disk, Write};
use oxkeeper::model::Zxid;
use oxkeeper::model::sync::{Arc, Ordering};
use oxkeeper::replica::{Action, Input, Replica, Settings, TICK_MS};
use oxkeeper::request::{ClientCommand, Limits, Shared};
use oxkeeper::tree::Tree;
use oxkeeper::tree::freeze::Frozen;
use oxkeeper::zab::{self, Peer};
use std::collections::VecDeque;

pub struct ReplicaOnDisk {
    pub replica: Replica,
    pub shared: Arc<Shared>,
    is_alone: bool,
    pub disk: Disk,
    /// Trees that were frozen for the leader's tree to replace the disk's, in the order of [`Write::Install`].
    installs: VecDeque<Frozen>,
    /// Snapshots that were begun.
    pub frozen: Vec<Frozen>,
    /// How many snapshots came before each note that the next one is of a doubted tree.
    pub noted_doubts: Vec<usize>,
    pub forgotten_doubts: u64,
    /// Notes that the tree differs from the leader's since this transaction.
    pub differences: Vec<Zxid>,
    /// How often the replica has requested that the tree is loaded again.
    pub rebuilds: usize,
    pub wall_ms: i64,
}

impl ReplicaOnDisk {
    pub fn standalone(tree: Tree, limits: Limits, settings: Settings) -> Self {
        let shared = shared(tree, limits);
        let replica = Replica::standalone(shared.clone(), settings, 0);
        Self::new(replica, shared, true)
    }

    pub fn member(tree: Tree, limits: Limits, peer: Peer, settings: Settings) -> Self {
        let shared = shared(tree, limits);
        let replica = Replica::member(shared.clone(), peer, settings, 0);
        Self::new(replica, shared, false)
    }

    fn new(replica: Replica, shared: Arc<Shared>, is_alone: bool) -> Self {
        Self {
            replica,
            shared,
            is_alone,
            disk: Disk::default(),
            installs: VecDeque::new(),
            frozen: Vec::new(),
            noted_doubts: Vec::new(),
            forgotten_doubts: 0,
            differences: Vec::new(),
            rebuilds: 0,
            wall_ms: WALL_MS,
        }
    }

    /// Gives an input, performs the actions that follow, and returns those for other servers.
    pub fn step(&mut self, input: Input) -> Vec<zab::Action> {
        let mut actions = Vec::new();
        self.replica.step(input, &mut actions);
        self.perform(actions)
    }

    /// Performs actions on the disk, and returns those for other servers.
    pub fn perform(&mut self, actions: Vec<Action>) -> Vec<zab::Action> {
        let mut to_others = Vec::new();
        for action in actions {
            match action {
                Action::Install(_) | Action::Rebuild | Action::Peer(_) if self.is_alone => {
                    panic!("a standalone server has no peers")
                }
                Action::Append { zxid, entry } => {
                    self.disk.ask(&zab::Action::Append { zxid, payload: entry });
                }
                Action::Roll => self.disk.asked.push_back(Write::Roll),
                Action::ForgetDoubt => self.forgotten_doubts += 1,
                Action::NoteDoubt => self.noted_doubts.push(self.frozen.len()),
                Action::NoteDifference { since } => self.differences.push(since),
                Action::Snapshot(frozen) => self.frozen.push(frozen),
                Action::Install(frozen) => {
                    self.disk.asked.push_back(Write::Install(frozen.zxid, Vec::new()));
                    self.installs.push_back(frozen);
                }
                Action::Rebuild => self.rebuilds += 1,
                Action::Wake(waker) => waker.wake(),
                Action::Peer(action) if self.disk.ask(&action) => {}
                Action::Peer(action) => to_others.push(action),
                Action::SendTree { .. } => panic!("no learner of these tests needs a tree"),
                Action::PlaceRestored => panic!("nothing is restored in these tests"),
                Action::Stop(reason) => panic!("the replica stopped: {reason}"),
            }
        }
        to_others
    }

    /// Begins a snapshot.
    pub fn snapshot(&mut self) {
        let mut actions = Vec::new();
        self.replica.snapshot(&mut actions);
        self.perform(actions);
    }

    /// Gives an input of agreement; returns the actions for other servers.
    pub fn hear(&mut self, input: zab::Input) -> Vec<zab::Action> {
        self.step(Input::Peer(input))
    }

    /// Gives a client's command; returns the actions for other servers.
    pub fn command(&mut self, command: ClientCommand) -> Vec<zab::Action> {
        self.step(Input::Command { command, wall_ms: self.wall_ms })
    }

    /// Lets 5 ms pass; returns the actions for other servers.
    pub fn tick(&mut self) -> Vec<zab::Action> {
        self.wall_ms += TICK_MS as i64;
        self.step(Input::Tick { wall_ms: self.wall_ms })
    }

    /// The disk does its first pending write; returns the replica's inputs.
    pub fn written(&mut self) -> Option<Vec<Input>> {
        let write = self.disk.write()?;
        let ended = matches!(write, Write::Install(..)).then(|| {
            Input::SnapshotEnded(self.installs.pop_front().expect("frozen for its installation"))
        });
        let report = write.report().map(|report| match report {
            zab::Input::Flushed { through } => Input::Flushed { through },
            input => Input::Peer(input),
        });
        Some(ended.into_iter().chain(report).collect())
    }

    /// The disk does all pending writes; returns the actions for other servers.
    pub fn write_all(&mut self) -> Vec<zab::Action> {
        let mut to_others = Vec::new();
        while let Some(done) = self.written() {
            done.into_iter().for_each(|input| to_others.extend(self.step(input)));
        }
        to_others
    }

    /// A standalone server flushes all that was appended, together; `false`: nothing was appended.
    pub fn flush(&mut self) -> bool {
        let Some(through) = self.disk.flush() else { return false };
        self.replica.set_now(2);
        self.step(Input::Flushed { through });
        true
    }

    /// Microseconds on the clock of the clients' connections.
    pub fn now_us(&self) -> u64 {
        1 + self.shared.clock_ms.load(Ordering::Relaxed) * 1000
    }
}
