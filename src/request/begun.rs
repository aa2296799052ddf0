//! How far the request at the front of a connection's input has come, if one hold of the tree's lock is too short for it.
//!
//! What changes meanwhile may be seen or not (P-58, P-60b, P-60c). What changes to a znode whose watch was brought back
//! already is told by that watch, and a znode whose turn comes later is compared with the client's zxid then, so no change
//! is lost in between. A session makes no ephemeral znode before the answer; one that another client deletes may be left out.

use crate::tree::{Count, NodeId};
use bytes::Bytes;

/// A request that is served in slices, each under a hold of its own.
pub(super) enum Begun {
    Count(Count),
    Watches(WatchCursor),
    Ephemerals(EphemeralList),
}

/// The next path of a setWatches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchCursor {
    /// Lists whose count has been read.
    pub lists: usize,
    /// Paths left of the last of them.
    pub left: usize,
    /// The place in the request's body.
    pub at: usize,
}

/// The ephemeral znodes of a session, and the part of the answer that is made.
pub(super) struct EphemeralList {
    /// As they were when the request began. The session makes no more before the answer; others may delete some.
    pub ids: Vec<NodeId>,
    pub next: usize,
    /// Paths in the answer.
    pub found: usize,
    /// Their encoding, a piece for each slice.
    pub pieces: Vec<Bytes>,
    /// Length of all pieces.
    pub len: usize,
}

impl EphemeralList {
    pub const fn new(ids: Vec<NodeId>) -> Self {
        Self { ids, next: 0, found: 0, pieces: Vec::new(), len: 0 }
    }
}
