//! What changes among the children of a znode while they are listed (`listing.rs`).

use super::NodeId;

/// What the tree notes for a list under way.
pub(super) struct Noted {
    pub parent: NodeId,
    /// The child to be listed next.
    pub next: NodeId,
    pub changes: Vec<ChildChange>,
    /// More was changed than is noted.
    pub is_lost: bool,
}

#[derive(Clone, Copy)]
pub(super) enum ChildChange {
    Created(NodeId),
    Deleted(NodeId),
}
