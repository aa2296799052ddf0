//! The state that all client connections of a server share.

use super::connection_table::ClientHandles;
use super::limits::Limits;
use super::throttle::Throttle;
use crate::model::Identity;
use crate::model::sync::{AtomicBool, AtomicU64, Ordering};
use crate::tree::State;
use crate::tree::freeze::Frozen;
use std::task::Waker;

/// State that the client connections share with each other and with `replica`.
pub struct Shared {
    pub state: State,
    pub conns: ClientHandles,
    pub throttle: Throttle,
    pub limits: Limits,
    /// Monotonic milliseconds; each tick of `replica` advances it.
    pub clock_ms: AtomicU64,
    /// No leader is known, so connect requests are refused. Set by `replica`.
    pub at_rest: AtomicBool,
    /// Milliseconds of `clock_ms` before which a connect request waits for the election that is under way; 0: it does not
    /// wait. Set by `replica`.
    pub connects_held_until_ms: AtomicU64,
    /// Only clients that accept a read-only server are served.
    pub is_read_only: AtomicBool,
    /// Zxid with which the epoch begins that this server serves in; 0: none. All that was committed before is applied here.
    /// Set by `replica`.
    pub epoch_begin: AtomicU64,
}

/// A piece of a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SnapshotPiece {
    pub is_last: bool,
    /// Bytes saved for the snapshot that are in no piece yet.
    pub saved_bytes: u64,
}

impl Shared {
    pub fn new(state: State, limits: Limits) -> Self {
        Self {
            state,
            conns: ClientHandles::default(),
            throttle: Throttle::default(),
            limits,
            clock_ms: AtomicU64::default(),
            at_rest: AtomicBool::default(),
            connects_held_until_ms: AtomicU64::default(),
            is_read_only: AtomicBool::default(),
            epoch_begin: AtomicU64::default(),
        }
    }

    /// Monotonic milliseconds of something that was read at `now_us`. Ticks may be counted later than bytes are read, as
    /// after the process was stopped: by `clock_ms` alone, a client heard on waking would seem to have been silent during
    /// the whole pause.
    pub fn ms_at(&self, now_us: u64) -> u64 {
        self.clock_ms.load(Ordering::Relaxed).max(now_us / 1000)
    }

    /// Appends the next piece of a snapshot to `to`, and lets writes that waited for the snapshot go on. `None`: the tree
    /// was replaced meanwhile. Holds the tree's shared lock: not for the thread that drives the replica.
    pub fn snapshot_piece(&self, frozen: Frozen, to: &mut Vec<u8>) -> Option<SnapshotPiece> {
        let mut wakers = Vec::new();
        let tree = self.state.tree.read();
        let is_last = tree.holds(frozen).then(|| tree.freeze_piece(frozen, to))?;
        let saved_bytes = tree.snapshot_saved_bytes();
        self.throttle.note_snapshot_saved(saved_bytes, &mut wakers);
        drop(tree);
        wakers.into_iter().for_each(Waker::wake);
        Some(SnapshotPiece { is_last, saved_bytes })
    }

    /// Whether `acl` gives one of `identities` a permission of `wanted`.
    pub fn permits(
        &self,
        acl: &crate::model::AccessList,
        wanted: i32,
        identities: &[Identity],
    ) -> bool {
        self.limits.skip_acl || crate::auth::permits(&self.limits.schemes, acl, wanted, identities)
    }
}
