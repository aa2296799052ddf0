//! What the readers share: tree and watches behind one lock.

use super::{Tree, Watches};
use crate::model::sync::RwLock;

/// The tree behind its lock, and the watch tables with locks of their own.
///
/// Only applying takes the lock exclusively. A read, the watch it leaves and the place of its reply are one critical
/// section under the shared lock. Lock order: tree, watch shard, outbox.
pub struct State {
    pub tree: RwLock<Tree>,
    pub watches: Watches,
}

impl State {
    pub fn new(tree: Tree, seed: u64) -> Self {
        Self { tree: RwLock::new(tree), watches: Watches::new(seed) }
    }
}
