//! The state that all client connections of a server share.

use super::connection_table::Conns;
use super::limits::Limits;
use super::throttle::Throttle;
use crate::model::Identity;
use crate::model::sync::{AtomicBool, AtomicU64, Ordering};
use crate::tree::State;

/// State that the client connections share with each other and with `replica`.
pub struct Shared {
    pub state: State,
    pub conns: Conns,
    pub throttle: Throttle,
    pub limits: Limits,
    /// Monotonic milliseconds; each tick of `replica` advances it.
    pub clock_ms: AtomicU64,
    /// No leader is known, so connect requests are refused. Set by `replica`.
    pub at_rest: AtomicBool,
    /// Until then, in milliseconds of `clock_ms`, a connect request waits for the election that is under way; 0: it does not. Set
    /// by `replica`.
    pub connects_held_until_ms: AtomicU64,
    /// Only clients that accept a read-only server are served.
    pub is_read_only: AtomicBool,
}

impl Shared {
    pub fn new(state: State, limits: Limits) -> Self {
        Self {
            state,
            conns: Conns::default(),
            throttle: Throttle::default(),
            limits,
            clock_ms: AtomicU64::default(),
            at_rest: AtomicBool::default(),
            connects_held_until_ms: AtomicU64::default(),
            is_read_only: AtomicBool::default(),
        }
    }

    /// Monotonic milliseconds of something that was read at `now_us`. Ticks count later than what was read, as after the process was
    /// stopped: by `clock_ms` alone, what is heard on waking would look as old as the pause is long.
    pub fn ms_at(&self, now_us: u64) -> u64 {
        self.clock_ms.load(Ordering::Relaxed).max(now_us / 1000)
    }

    /// Whether `acl` gives one of the identities `who` a permission of `wanted`.
    pub fn permits(&self, acl: &crate::model::AccessList, wanted: i32, who: &[Identity]) -> bool {
        self.limits.skip_acl || crate::auth::permits(&self.limits.schemes, acl, wanted, who)
    }
}
