//! How far a freeze has come in its scan of the tree.

use super::node::NodeId;
use super::saved::Saved;
use crate::model::sync::Mutex;

/// What a freeze is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// A snapshot of this server's own.
    Snapshot,
    /// The tree for a learner.
    Learner { is_member: bool },
}

/// A scan under way. Lives in the tree; the tree's changes report to it.
pub(super) struct Freeze {
    pub progress: Mutex<Progress>,
    /// Places in use when it began: znodes at those above are newer.
    pub places: u32,
    pub number: u64,
    pub purpose: Purpose,
}

pub(super) struct Progress {
    pub done: Done,
    pub next: NodeId,
    /// Old versions of znodes, which are written before the scan goes on.
    pub saved: Saved,
    pub ended: bool,
    /// So much was saved that the freeze was given up.
    pub is_given_up: bool,
}

/// One bit per place: written, saved, or not to be written.
pub(super) struct Done(Vec<u64>);

impl Done {
    pub fn new(places: u32) -> Self {
        Self(vec![0; (places as usize).div_ceil(64)])
    }

    pub fn has(&self, id: NodeId) -> bool {
        self.0[id as usize / 64] & 1 << (id % 64) != 0
    }

    pub fn set(&mut self, id: NodeId) {
        self.0[id as usize / 64] |= 1 << (id % 64);
    }
}

impl Freeze {
    /// Leaves out a znode that was created after the freeze began.
    pub fn skip(&self, id: NodeId) {
        if id < self.places {
            self.progress.lock().done.set(id);
        }
    }
}
