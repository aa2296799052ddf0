//! How much of what was committed a learner has not acknowledged, in bytes. `left_behind.rs` says what follows from it.

use crate::model::Zxid;
use std::collections::VecDeque;

/// What a transaction in memory takes in addition to its bytes, approximately.
const OVERHEAD_BYTES: u64 = 96;

/// Sizes of the transactions that some learner has not acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// Each zxid with the bytes of all transactions through it.
    sums: VecDeque<(Zxid, u64)>,
    /// Bytes of the transactions before the first of `sums`.
    before: u64,
    /// The newest transaction that was noted, also if it is forgotten.
    last: Zxid,
    /// Bytes of all that was committed.
    committed: u64,
}

impl Sizes {
    /// A transaction was proposed, or is committed without having been proposed here.
    pub fn note(&mut self, zxid: Zxid, len: usize) {
        if self.last < zxid {
            self.last = zxid;
            let sum = self.sums.back().map_or(self.before, |(_, sum)| *sum);
            self.sums.push_back((zxid, sum + len as u64 + OVERHEAD_BYTES));
        }
    }

    /// Everything through `zxid` is committed.
    pub fn commit(&mut self, zxid: Zxid) {
        self.committed = self.through(zxid).max(self.committed);
    }

    /// Bytes of the transactions through `zxid`.
    fn through(&self, zxid: Zxid) -> u64 {
        let count = self.sums.partition_point(|(at, _)| *at <= zxid);
        count.checked_sub(1).map_or(self.before, |at| self.sums[at].1)
    }

    /// Committed bytes that a learner lacks which has acknowledged everything through `acked`.
    pub fn lag(&self, acked: Zxid) -> u64 {
        self.committed.saturating_sub(self.through(acked))
    }

    /// Forgets the transactions through `zxid`.
    pub fn forget(&mut self, zxid: Zxid) {
        while let Some((_, sum)) = self.sums.pop_front_if(|(at, _)| *at <= zxid) {
            self.before = sum;
        }
    }

    /// Whether a learner can lack more than `bytes`.
    pub fn may_exceed(&self, bytes: u64) -> bool {
        bytes < self.committed.saturating_sub(self.before)
    }
}

/// What a learner has acknowledged, and for how long it has lacked too much.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lag {
    /// The learner has acknowledged everything through this.
    pub acked: Zxid,
    /// Ticks for which it has lacked too much; of these, since its last ACK.
    pub ticks: u64,
    pub stalled_ticks: u64,
    /// The last transaction it had been sent when it acknowledged NEWLEADER.
    pub joined_at: Zxid,
    /// The last transaction that the learner was sent before it was left behind; `None`: it was not left behind.
    pub left_at: Option<Zxid>,
}

impl Lag {
    /// The lag of a learner whose synchronisation begins.
    pub const fn from(acked: Zxid) -> Self {
        Self { acked, ticks: 0, stalled_ticks: 0, joined_at: Zxid::ZERO, left_at: None }
    }
}
