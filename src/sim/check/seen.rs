//! The observations that the checks of a world get.

use crate::model::{Epoch, EventKind, View, Zxid};
use crate::sim::history::History;
use crate::sim::restored_tree::RestoredTree;
use crate::sim::workload::{Body, Request};
use crate::tree::Tree;
use crate::zab::Packet;
use jute::proto::ReplyHeader;
use std::collections::BTreeSet;

/// What a server's disk durably has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Durable {
    /// The end of its history.
    pub last: Zxid,
    pub accepted: Epoch,
    pub current: Epoch,
}

/// What a server that serves has in memory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    pub accepted: Epoch,
    pub current: Epoch,
    pub committed: Zxid,
    /// The end of its history, and how much of it the disk has reported as flushed.
    pub last: Zxid,
    pub flushed: Zxid,
}

/// A client's request and its answer.
#[derive(Clone, Copy)]
pub struct Answered<'a> {
    pub client: usize,
    pub session: i64,
    pub request: &'a Request,
    pub header: ReplyHeader,
    pub body: &'a Body,
}

/// An observation. `disks`: the end of the history that each server has on disk, or had when it acknowledged it.
#[derive(Clone, Copy)]
pub enum Seen<'a> {
    /// A server has started with the state that it found. `before`: what its disk durably had.
    Started {
        server: usize,
        found: Durable,
        before: Durable,
        digest: u64,
    },
    /// An epoch is established.
    Leads {
        server: usize,
        epoch: Epoch,
        last: Zxid,
        disks: &'a [Zxid],
    },
    /// A server gives this entry to its log thread.
    Logs {
        server: usize,
        zxid: Zxid,
        entry: &'a [u8],
    },
    /// A server serves with this tree. `commits`: the disks, if it commits.
    Applied {
        server: usize,
        last: Zxid,
        /// The server is an observer that has just begun to serve and may learn from a follower. A follower learns of a commit after
        /// the leader does, so this observer may have heard of it earlier, from the master that it had before.
        may_go_back: bool,
        digest: u64,
        commits: Option<&'a [Zxid]>,
    },
    /// A configuration is in force at a server, and its files say so.
    InForce {
        server: usize,
        view: &'a View,
    },
    /// A server acknowledges its history, or begins to look for a leader with it. `last`: its end. `after`: the version of a configuration
    /// that replaces all before it. `counted`: the versions of the configurations that count at the server.
    Counts {
        server: usize,
        last: Zxid,
        after: i64,
        counted: &'a [i64],
    },
    /// A server looks for a leader. * `unmet`: a voter of a configuration that counts there, which it has no connection to and has not dialed.
    Looks {
        server: usize,
        unmet: Option<usize>,
    },
    /// A server has started. `acknowledged`: versions of proposed configurations that it had acknowledged before. `counted`: as above.
    Remembers {
        server: usize,
        acknowledged: &'a BTreeSet<i64>,
        counted: &'a [i64],
    },
    /// The data of a quorum is lost while all servers are down. `left`: the end of the latest history that remains. `promised`: the
    /// acceptedEpoch of its server; no disk has anything of a later epoch.
    Destroyed {
        left: Zxid,
        promised: Epoch,
    },
    /// A server gives up its history for a restored tree of this zxid.
    Restores {
        server: usize,
        zxid: Zxid,
        tree: &'a RestoredTree,
    },
    /// An operator is answered. * `is_done`: the restored tree is what the ensemble serves.
    RestoreEnded {
        server: usize,
        zxid: Zxid,
        is_done: bool,
    },
    /// The configurations that a server knew are lost with its disk.
    ForgetsView {
        server: usize,
    },
    /// A server serves, and its epochs or zxids in memory have changed.
    Stands {
        server: usize,
        standing: Standing,
        durable: Durable,
    },
    /// A learner sends a packet to its leader. `epoch`: the epoch in the leader's LEADERINFO.
    ToLeader {
        server: usize,
        packet: &'a Packet,
        durable: Durable,
        epoch: Epoch,
    },
    /// A server acknowledges the proposal of a configuration. * `is_saved`: `.dynamic.next` has it.
    AcknowledgesView {
        server: usize,
        zxid: Zxid,
        is_saved: bool,
    },
    /// A server saves a configuration of this zxid in `.dynamic.next`, and its log ends with `durable`. * `is_proposed`: it is in the
    /// server's history, and NEWLEADER has not named it.
    SavesView {
        server: usize,
        zxid: Zxid,
        is_proposed: bool,
        durable: Zxid,
    },
    /// A learner answers the LEADERINFO of `epoch`. * `accepted`: its acceptedEpoch. `votes`: it votes by a configuration that counts there.
    /// `promises`: the answer counts as its promise. `is_backed`: the leader has votes of a quorum of each configuration that counts there.
    AnswersEpoch {
        server: usize,
        epoch: Epoch,
        accepted: Epoch,
        votes: bool,
        promises: bool,
        is_backed: bool,
    },
    /// A learner has processed a packet of another phase. * `goes_on`: it has not left its leader.
    Strayed {
        server: usize,
        packet: &'a Packet,
        goes_on: bool,
    },
    /// A server sends a packet to a learner.
    ToLearner {
        server: usize,
        packet: &'a Packet,
        durable: Durable,
    },
    /// Bytes for another server were queued, `batch` of them together, and its connection was kept. `unsent`: all its queued bytes then.
    Queued {
        server: usize,
        unsent: usize,
        limit: usize,
        batch: usize,
    },
    /// A server gives a snapshot of its own a name. `tree`: the newest leader's tree that it has on disk.
    Named {
        server: usize,
        zxid: Zxid,
        tree: Zxid,
        durable: Durable,
    },
    /// A server is about to write a snapshot of its tree.
    Frozen {
        server: usize,
        zxid: Zxid,
        digest: u64,
    },
    /// The digest of a server's tree is not the one in a transaction that it has applied.
    Mismatch {
        server: usize,
    },
    /// A leader is about to expire a session of which it has not heard for `silent_ms`.
    Expires {
        session: i64,
        silent_ms: u64,
        timeout_ms: u64,
    },
    /// A server processed an input from a leader whose connection it had closed. `actions`: how many actions followed.
    FromClosed {
        server: usize,
        actions: usize,
    },
    /// A client sends a request.
    Asked {
        client: usize,
        session: i64,
        xid: i32,
        request: &'a Request,
    },
    Answered(Answered<'a>),
    /// As `Answered`, by a server without a leader (read-only).
    AnsweredReadOnly(Answered<'a>),
    /// A client receives an event.
    Event {
        client: usize,
        zxid: i64,
        kind: EventKind,
        path: &'a str,
    },
    /// A client asks a server for its session.
    Connects {
        client: usize,
        /// 0: the client asks for a new session.
        session: i64,
    },
    /// A client's connection is gone, with all requests that were not answered on it.
    Disconnected {
        client: usize,
    },
    /// A client has a session: a new one, or the one it had.
    SessionOpened {
        client: usize,
        session: i64,
        is_new: bool,
    },
    /// A server tells a client that its session is over.
    ExpiryReported {
        client: usize,
        session: i64,
    },
    /// A client gives its session up: it was told that the session is over, or has closed it.
    Expired {
        client: usize,
        session: i64,
    },
    /// All faults are over, the ensemble has settled, and this is a member's tree. `mismatches`: how many digests were not those
    /// that its leaders had computed.
    Settled {
        server: usize,
        tree: &'a Tree,
        mismatches: u64,
    },
    /// All members' trees were seen settled.
    AllSettled,
    /// The ensemble should have settled long ago.
    Unsettled {
        why: &'a str,
    },
}

pub trait Check {
    /// # Errors
    /// What does not hold.
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String>;
}

/// A property of single observations is a function.
impl<F: FnMut(&Seen<'_>, &History) -> Result<(), String>> Check for F {
    fn see(&mut self, seen: &Seen<'_>, history: &History) -> Result<(), String> {
        self(seen, history)
    }
}
