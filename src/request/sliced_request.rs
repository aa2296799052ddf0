//! The progress of the request at the front of a connection's input, if one hold of the tree's lock is too short for it.
//!
//! Changes between the holds may be seen or not (P-58, P-60b, P-60c). A change to a znode whose watch is already set again
//! fires that watch, and a znode whose turn comes later is compared with the client's zxid then, so no change is lost. A
//! session creates no ephemeral znode before the answer; one that another client deletes may be left out. A list of children
//! is that of the last hold, in which its watch is set too.

use crate::tree::{Count, Listing, NodeId};
use bytes::Bytes;

/// A request that is served in slices, each under a hold of its own.
pub(super) enum SlicedRequest {
    Count(Count),
    Watches(WatchCursor),
    Ephemerals(EphemeralList),
    Children(Box<Listing>),
}

/// The next path of a setWatches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchCursor {
    /// Lists whose count has been read.
    pub lists: usize,
    /// Paths left in the last of these lists.
    pub left: usize,
    /// The place in the request's body.
    pub at: usize,
}

/// The ephemeral znodes of a session, and the part of the answer that is made.
pub(super) struct EphemeralList {
    /// As they were when the request began. The session creates no more before the answer; other clients may delete some.
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
