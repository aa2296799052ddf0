//! What `cons` shows of a connection.

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// The last cxid of a connection on which no request has carried one.
const NO_XID: i64 = -1;

/// Numbers of one connection. Nothing is ordered by them, and they are no part of any decision, so they are plain atomics;
/// the connection's task or `replica` writes them when it answers a request, never both at a time (the gate).
#[derive(Debug)]
pub struct ConnStats {
    received: AtomicU64,
    sent: AtomicU64,
    /// Writes and syncs handed to `replica`.
    asked: AtomicU64,
    /// Bit 0: more is read from the client; bit 2: it has not received all yet.
    interest: AtomicU64,
    timeout_ms: AtomicI64,
    last_op: AtomicI64,
    last_xid: AtomicI64,
    last_zxid: AtomicI64,
    last_answer_ms: AtomicU64,
    last_latency_ms: AtomicU64,
    min_latency_ms: AtomicU64,
    max_latency_ms: AtomicU64,
    answers: AtomicU64,
    latency_ms: AtomicU64,
    /// Answers are not sent any more.
    gone: AtomicBool,
}

/// Requests that were answered together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The last request's operation; 0 for a write that was refused, which Java shows without a name.
    pub op: i32,
    pub xid: i32,
    pub zxid: i64,
    pub count: u64,
    /// Monotonic microseconds.
    pub began_us: u64,
    pub ended_us: u64,
}

/// [`ConnStats`] at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnFigures {
    pub received: u64,
    pub sent: u64,
    pub asked: u64,
    pub reads: bool,
    pub writes: bool,
    pub timeout_ms: i64,
    /// 0 when nothing was answered yet, or the last write was refused.
    pub last_op: i32,
    /// The xid of the last request whose xid is not negative.
    pub last_xid: Option<i32>,
    /// -1 when nothing was answered yet.
    pub last_zxid: i64,
    pub last_answer_ms: u64,
    pub last_latency_ms: u64,
    pub min_latency_ms: u64,
    pub avg_latency_ms: u64,
    pub max_latency_ms: u64,
}

impl Default for ConnStats {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            received: zero(),
            sent: zero(),
            asked: zero(),
            interest: AtomicU64::new(1),
            timeout_ms: AtomicI64::new(0),
            last_op: AtomicI64::new(0),
            last_xid: AtomicI64::new(NO_XID),
            last_zxid: AtomicI64::new(-1),
            last_answer_ms: zero(),
            last_latency_ms: zero(),
            min_latency_ms: AtomicU64::new(u64::MAX),
            max_latency_ms: zero(),
            answers: zero(),
            latency_ms: zero(),
            gone: AtomicBool::new(false),
        }
    }
}

impl ConnStats {
    pub fn add_received(&self, packets: u64) {
        self.received.fetch_add(packets, Relaxed);
    }

    pub fn add_sent(&self, packets: u64) {
        self.sent.fetch_add(packets, Relaxed);
    }

    pub(super) fn set_gone(&self) {
        self.gone.store(true, Relaxed);
    }

    /// Whether the connection was closed without regard to what was still to be sent.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    pub(super) fn set_asked(&self, asked: u64) {
        self.asked.store(asked, Relaxed);
    }

    pub(super) fn set_timeout_ms(&self, timeout_ms: i32) {
        self.timeout_ms.store(timeout_ms.into(), Relaxed);
    }

    pub fn set_interest(&self, reads: bool, writes: bool) {
        self.interest.store(u64::from(reads) | u64::from(writes) << 2, Relaxed);
    }

    /// Source: `ServerCnxn.updateStatsForResponse`, ZooKeeper 3.9.5. Requests answered in one turn all have its latency.
    pub fn note(&self, answered: Answered) {
        // The xids of pings and of other special requests do not count.
        if answered.xid >= 0 {
            self.last_xid.store(answered.xid.into(), Relaxed);
        }
        self.last_op.store(answered.op.into(), Relaxed);
        self.last_zxid.store(answered.zxid, Relaxed);
        self.last_answer_ms.store(answered.ended_us / 1000, Relaxed);
        let took_ms = answered.ended_us.saturating_sub(answered.began_us) / 1000;
        self.last_latency_ms.store(took_ms, Relaxed);
        if took_ms < self.min_latency_ms.load(Relaxed) {
            self.min_latency_ms.store(took_ms, Relaxed);
        }
        if self.max_latency_ms.load(Relaxed) < took_ms {
            self.max_latency_ms.store(took_ms, Relaxed);
        }
        self.answers.fetch_add(answered.count, Relaxed);
        self.latency_ms.fetch_add(took_ms * answered.count, Relaxed);
    }

    /// Resets what the four-letter word `crst` resets.
    pub fn reset(&self) {
        let fresh = Self::default();
        for (mine, fresh) in [
            (&self.received, fresh.received),
            (&self.sent, fresh.sent),
            (&self.last_answer_ms, fresh.last_answer_ms),
            (&self.last_latency_ms, fresh.last_latency_ms),
            (&self.min_latency_ms, fresh.min_latency_ms),
            (&self.max_latency_ms, fresh.max_latency_ms),
            (&self.answers, fresh.answers),
            (&self.latency_ms, fresh.latency_ms),
        ] {
            mine.store(fresh.into_inner(), Relaxed);
        }
        self.last_op.store(0, Relaxed);
        self.last_xid.store(NO_XID, Relaxed);
        self.last_zxid.store(-1, Relaxed);
    }

    pub fn figures(&self) -> ConnFigures {
        let interest = self.interest.load(Relaxed);
        let (answers, latency_ms) = (self.answers.load(Relaxed), self.latency_ms.load(Relaxed));
        let min_latency_ms = self.min_latency_ms.load(Relaxed);
        ConnFigures {
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
            asked: self.asked.load(Relaxed),
            reads: interest & 1 != 0,
            writes: interest & 4 != 0,
            timeout_ms: self.timeout_ms.load(Relaxed),
            last_op: self.last_op.load(Relaxed) as i32,
            last_xid: i32::try_from(self.last_xid.load(Relaxed)).ok().filter(|xid| *xid >= 0),
            last_zxid: self.last_zxid.load(Relaxed),
            last_answer_ms: self.last_answer_ms.load(Relaxed),
            last_latency_ms: self.last_latency_ms.load(Relaxed),
            min_latency_ms: if min_latency_ms == u64::MAX { 0 } else { min_latency_ms },
            avg_latency_ms: latency_ms.checked_div(answers).unwrap_or(0),
            max_latency_ms: self.max_latency_ms.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_for_each_of_the_requests_answered_together() {
        let stats = ConnStats::default();
        let note = |count, took_us| {
            let began_us: u64 = 1_000_000;
            let ended_us = began_us + took_us;
            stats.note(Answered { op: 4, xid: 1, zxid: 9, count, began_us, ended_us });
        };
        note(3, 8000);
        note(1, 4000);
        let seen = stats.figures();
        assert_eq!((seen.min_latency_ms, seen.avg_latency_ms, seen.max_latency_ms), (4, 7, 8));
        assert_eq!((seen.last_latency_ms, seen.last_answer_ms, seen.last_zxid), (4, 1004, 9));
    }
}
