//! What changes among the children of a znode while they are listed (`listing.rs`).

use super::NodeId;
use crate::model::sync::{Arc, Mutex};
use std::collections::VecDeque;

/// Changes that are kept. A list that missed earlier ones begins again, which is never seen in practice.
const CHANGES_MAX: usize = 1 << 16;

#[derive(Clone, Copy)]
pub(super) enum ChildChange {
    Created(NodeId),
    Deleted {
        id: NodeId,
        /// The child after it.
        next: NodeId,
    },
}

/// What the tree notes for all lists of one znode's children that are under way, so that a change is noted once.
pub(super) struct ChildLog {
    pub parent: NodeId,
    pub changes: Mutex<ChildChanges>,
}

/// The changes that are kept.
#[derive(Default)]
pub(super) struct ChildChanges {
    /// Number of those that are not kept any more.
    dropped: usize,
    kept: VecDeque<ChildChange>,
}

impl ChildLog {
    pub fn new(parent: NodeId) -> Self {
        Self { parent, changes: Mutex::new(ChildChanges::default()) }
    }

    /// Whether anybody but the tree has it.
    pub fn is_used(self: &Arc<Self>) -> bool {
        1 < Arc::strong_count(self)
    }
}

impl ChildChanges {
    pub fn push(&mut self, change: ChildChange) {
        if self.kept.len() == CHANGES_MAX {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(change);
    }

    /// Number of all changes so far.
    pub fn count(&self) -> usize {
        self.dropped + self.kept.len()
    }

    /// Whether all changes from this one on are kept.
    pub const fn reach_back_to(&self, number: usize) -> bool {
        self.dropped <= number
    }

    /// The change of this number, if it is kept.
    pub fn get(&self, number: usize) -> Option<ChildChange> {
        self.kept.get(number.checked_sub(self.dropped)?).copied()
    }
}
