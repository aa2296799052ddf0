//! The end of the log in memory: the last committed transactions, and those that are not committed yet.

use crate::model::{Epoch, Zxid};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;

/// The window for learners that missed a little: at least this many transactions (`commitLogCount`), ...
pub const WINDOW_TXNS: usize = 500;
/// ...and more while they are no more bytes than this; ...
const WINDOW_BYTES: usize = 8 << 20;
/// ...but fewer if they are large: what a learner lacks beyond this many bytes is read from the log.
const WINDOW_BYTES_MAX: usize = 64 << 20;
/// What a transaction in memory takes in addition to its bytes, approximately.
const LOGGED_BYTES: usize = 96;

/// One logged transaction.
pub type Logged = (Zxid, Bytes);

/// The epoch that a history stands for, and its last zxid. The server with the greater end is ahead of the other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct HistoryEnd {
    pub epoch: Epoch,
    /// `None`: the server has nothing that counts.
    pub last: Option<Zxid>,
}

impl fmt::Display for HistoryEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            Some(last) => write!(f, "epoch {}, last zxid {last}", self.epoch.0),
            None => write!(f, "epoch {}, no last zxid", self.epoch.0),
        }
    }
}

const fn cost(logged: &Logged) -> usize {
    logged.1.len() + LOGGED_BYTES
}

/// The end of the log, in memory.
#[derive(Clone, Debug)]
pub struct History {
    /// Committed, oldest first.
    window: VecDeque<Logged>,
    window_txns: usize,
    window_bytes: usize,
    /// The zxid before the window's first.
    floor: Zxid,
    /// Transactions that are appended and not committed.
    tail: VecDeque<Logged>,
    /// Transactions are not kept: a standalone server has no learner that asks for them.
    forgets: bool,
    committed: Zxid,
    last: Zxid,
}

impl History {
    /// * `last`: the last zxid of the log; the tree has the whole log.
    pub fn new(last: Zxid) -> Self {
        Self::with_window(last, WINDOW_TXNS)
    }

    /// * `txns`: this many committed transactions are kept, unless they are large.
    pub fn with_window(last: Zxid, txns: usize) -> Self {
        Self {
            window: VecDeque::new(),
            window_txns: txns,
            window_bytes: 0,
            floor: last,
            tail: VecDeque::new(),
            forgets: false,
            committed: last,
            last,
        }
    }

    /// The history of a standalone server: remembers zxids only.
    pub fn forgetful(last: Zxid) -> Self {
        Self { forgets: true, ..Self::new(last) }
    }

    /// The last zxid that was appended.
    pub const fn last(&self) -> Zxid {
        self.last
    }

    pub const fn committed(&self) -> Zxid {
        self.committed
    }

    /// [`Self::window`] has all transactions after this zxid.
    pub const fn floor(&self) -> Zxid {
        self.floor
    }

    pub const fn window(&self) -> &VecDeque<Logged> {
        &self.window
    }

    pub const fn tail(&self) -> &VecDeque<Logged> {
        &self.tail
    }

    /// The zxids that were appended after `after`, as far as they are remembered.
    pub fn zxids_after(&self, after: Zxid) -> impl Iterator<Item = Zxid> {
        let from = |queue: &VecDeque<Logged>| queue.partition_point(|(zxid, _)| *zxid <= after);
        let window = self.window.range(from(&self.window)..);
        window.chain(self.tail.range(from(&self.tail)..)).map(|(zxid, _)| *zxid)
    }

    /// The transaction that was logged as `zxid`, as far as it is remembered.
    pub fn entry(&self, zxid: Zxid) -> Option<&Bytes> {
        let found =
            |queue: &VecDeque<Logged>| queue.binary_search_by_key(&zxid, |(zxid, _)| *zxid).ok();
        let in_tail = found(&self.tail).map(|at| &self.tail[at].1);
        in_tail.or_else(|| found(&self.window).map(|at| &self.window[at].1))
    }

    pub fn append(&mut self, zxid: Zxid, entry: Bytes) {
        assert!(self.last < zxid, "append {zxid} after {}", self.last);
        self.last = zxid;
        if !self.forgets {
            self.tail.push_back((zxid, entry));
        }
    }

    /// Everything through `through` is committed; `each` gets the transactions that were not before.
    pub fn commit(&mut self, through: Zxid, mut each: impl FnMut(&Logged)) {
        assert!(through <= self.last, "commit {through}, and the last is {}", self.last);
        while let Some(logged) = self.tail.pop_front_if(|(zxid, _)| *zxid <= through) {
            each(&logged);
            self.window_bytes += cost(&logged);
            self.window.push_back(logged);
        }
        self.committed = through.max(self.committed);
        while WINDOW_BYTES_MAX < self.window_bytes
            || (self.window_txns < self.window.len() && WINDOW_BYTES < self.window_bytes)
        {
            let Some(logged) = self.window.pop_front() else { break };
            self.floor = logged.0;
            self.window_bytes -= cost(&logged);
        }
    }

    /// Drops everything after `to`.
    pub fn truncate(&mut self, to: Zxid) {
        while self.tail.pop_back_if(|(zxid, _)| to < *zxid).is_some() {}
        while let Some(logged) = self.window.pop_back_if(|(zxid, _)| to < *zxid) {
            self.window_bytes -= cost(&logged);
        }
        self.floor = self.floor.min(to);
        self.committed = self.committed.min(to);
        self.last = self.last.min(to);
    }

    /// Starts anew from a tree at `zxid`; what was logged after it and stays logged is kept.
    pub fn restart(&mut self, zxid: Zxid) {
        let kept: VecDeque<_> = self.tail.drain(..).filter(|logged| zxid < logged.0).collect();
        let last = kept.back().map_or(zxid, |(last, _)| *last);
        let fresh = Self::with_window(zxid, self.window_txns);
        *self = Self { tail: kept, last, forgets: self.forgets, ..fresh };
    }

    /// Window, committed, tail and last are in this order.
    pub(super) fn assert_invariants(&self) {
        let &Self { floor, committed, last, .. } = self;
        assert!(floor <= committed, "the window begins at {floor}, committed is {committed}");
        assert!(committed <= last, "committed {committed}, and the last is {last}");
        if let (Some((first, _)), Some((end, _))) = (self.window.front(), self.window.back()) {
            assert!(floor < *first, "the window begins at {floor}, and with {first}");
            assert!(*end <= committed, "the window ends with {end}, committed is {committed}");
        }
        if let (Some((first, _)), Some((end, _))) = (self.tail.front(), self.tail.back()) {
            assert!(committed < *first, "{first} is not committed, and {committed} is");
            assert!(*end <= last, "logged {end}, and the last is {last}");
        }
    }
}
