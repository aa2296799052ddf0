//! What the connections of a server have in common.

use super::connection_table::Conns;
use super::limits::Limits;
use super::throttle::Throttle;
use crate::model::Identity;
use crate::model::sync::{AtomicBool, AtomicU64};
use crate::tree::State;

/// What the connections share with each other and with `replica`.
pub struct Shared {
    pub state: State,
    pub conns: Conns,
    pub throttle: Throttle,
    pub limits: Limits,
    /// Monotonic milliseconds, moved on by `replica`'s tick.
    pub clock_ms: AtomicU64,
    /// No leader is known: clients are turned away. Set by `replica`.
    pub at_rest: AtomicBool,
    /// Only those who asked for no more than reading are served.
    pub is_read_only: AtomicBool,
}

impl Shared {
    /// Whether one of `who` has a permission of `wanted` on what `acl` guards.
    pub fn permits(&self, acl: &[crate::model::Acl], wanted: i32, who: &[Identity]) -> bool {
        self.limits.skip_acl || crate::auth::permits(&self.limits.schemes, acl, wanted, who)
    }
}
