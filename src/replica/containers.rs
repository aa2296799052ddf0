//! Deletes containers without children and TTL znodes past their time (P-74).
//!
//! A look through all of them is cut into slices, and what it finds is deleted bit by bit: no tick does much. Each znode
//! is judged when it is found, again when its turn comes, and by `prep` against what is pending then.

use super::{Action, Replica, TICK_MS};
use crate::model::{SessionId, op};
use crate::tree::NodeId;
use std::collections::VecDeque;

/// Znodes judged per tick.
const SLICE: usize = 1024;
const MINUTE_US: u64 = 60_000_000;

/// How far the look under way has come.
pub(super) struct Sweep {
    next_look_ms: u64,
    /// Not judged yet.
    unseen: Vec<NodeId>,
    /// To be deleted.
    found: VecDeque<String>,
    next_delete_us: u64,
}

impl Sweep {
    pub const fn new(first_look_ms: u64) -> Self {
        Self {
            next_look_ms: first_look_ms,
            unseen: Vec::new(),
            found: VecDeque::new(),
            next_delete_us: 0,
        }
    }

    /// Drops what was found: another server deletes it.
    pub fn forget(&mut self) {
        self.unseen.clear();
        self.found.clear();
    }
}

impl Replica {
    pub(super) fn sweep_containers(&mut self, wall_ms: i64, out: &mut Vec<Action>) {
        let sweep = &mut self.sweep;
        let at_rest = sweep.unseen.is_empty() && sweep.found.is_empty();
        let is_due = self.now_ms >= sweep.next_look_ms;
        if (at_rest && !is_due) || self.settings.container_max_per_minute == 0 {
            return;
        }
        let shared = self.shared.clone();
        if at_rest {
            // A look that takes longer than the interval is followed by the next one at once, as in Java.
            sweep.next_look_ms = self.now_ms + self.settings.container_check_interval_ms.max(1);
            sweep.unseen = shared.state.tree.read().transients();
        }
        let never_used_ms = self.settings.container_max_never_used_ms;
        if !sweep.unseen.is_empty() {
            let tree = shared.state.tree.read();
            let rest = sweep.unseen.len().saturating_sub(SLICE);
            let slice = sweep.unseen.split_off(rest);
            let outlived =
                slice.into_iter().filter(|&id| tree.has_outlived(id, wall_ms, never_used_ms));
            sweep.found.extend(outlived.map(|id| tree.path(id).to_owned()));
        }
        self.delete_found(wall_ms, out);
    }

    /// Deletes what may be deleted by now at an even pace.
    fn delete_found(&mut self, wall_ms: i64, out: &mut Vec<Action>) {
        let pace_us = MINUTE_US / self.settings.container_max_per_minute;
        let never_used_ms = self.settings.container_max_never_used_ms;
        let now_us = self.now_ms * 1000;
        // Time in which there was nothing to delete gives no right to a burst.
        self.sweep.next_delete_us = self.sweep.next_delete_us.max(now_us - TICK_MS * 1000);
        while self.sweep.next_delete_us <= now_us
            && let Some(path) = self.sweep.found.pop_front()
        {
            {
                let tree = self.shared.state.tree.read();
                let id = tree.find(&path);
                if !id.is_some_and(|id| tree.has_outlived(id, wall_ms, never_used_ms)) {
                    continue;
                }
            }
            self.sweep.next_delete_us += pace_us;
            tracing::info!(path, "deleting a container without children or a znode past its TTL");
            let mut body = Vec::new();
            jute::put_string(&mut body, &path);
            if !self.propose(SessionId(0), op::DELETE_CONTAINER, &body, None, wall_ms) {
                return self.out_of_zxids(out);
            }
        }
        self.on_zab(0, out);
    }
}
