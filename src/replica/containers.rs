//! Finds containers without children and TTL znodes past their time, which the leader deletes (P-74).
//!
//! A sweep over all of them is cut into slices, and the znodes it finds are deleted at an even pace: no tick does much. Each
//! znode is checked when it is found, again when its turn comes, and by `prep` against the changes that are pending then.

use super::core::{ContainerTimes, Core};
use super::interface::TICK_MS;
use crate::tree::NodeId;
use std::collections::VecDeque;

/// Znodes checked per tick.
const SLICE: usize = 1024;
const MINUTE_US: u64 = 60_000_000;

/// The sweep under way. It ends with the leadership: the next leader begins another one.
pub struct ContainerSweep {
    times: ContainerTimes,
    /// Znodes not checked yet.
    unseen: Vec<NodeId>,
    /// Paths to be deleted.
    found: VecDeque<String>,
}

impl ContainerSweep {
    pub const fn new(times: ContainerTimes) -> Self {
        Self { times, unseen: Vec::new(), found: VecDeque::new() }
    }

    /// The times that the next leadership of this server goes on with.
    pub const fn times(&self) -> ContainerTimes {
        self.times
    }

    /// Monotonic milliseconds before which [`Self::look`] has nothing to do; `None`: it never has.
    pub fn next_look_ms(&self, core: &Core) -> Option<u64> {
        let is_idle = self.unseen.is_empty() && self.found.is_empty();
        let at_ms = if is_idle { self.times.next_look_ms } else { core.now_ms };
        (core.settings.container_max_per_minute != 0).then_some(at_ms)
    }

    /// Checks one slice, if a sweep is due or under way. `false`: there is nothing to do.
    pub fn look(&mut self, core: &Core) -> bool {
        let is_idle = self.unseen.is_empty() && self.found.is_empty();
        let is_due = core.now_ms >= self.times.next_look_ms;
        if (is_idle && !is_due) || core.settings.container_max_per_minute == 0 {
            return false;
        }
        if is_idle {
            // A sweep that takes longer than the interval is followed by the next sweep at once, as in Java.
            let interval_ms = core.settings.container_check_interval_ms.max(1);
            self.times.next_look_ms = core.now_ms + interval_ms;
            self.unseen = core.shared.state.tree.read().transients();
        }
        let never_used_ms = core.settings.container_max_never_used_ms;
        if !self.unseen.is_empty() {
            let tree = core.shared.state.tree.read();
            let rest = self.unseen.len().saturating_sub(SLICE);
            let slice = self.unseen.split_off(rest);
            let outlived =
                slice.into_iter().filter(|&id| tree.has_outlived(id, core.wall_ms, never_used_ms));
            self.found.extend(outlived.map(|id| tree.path(id).to_owned()));
        }
        // Time without anything to delete allows no burst afterwards.
        let now_us = core.now_ms * 1000;
        self.times.next_delete_us = self.times.next_delete_us.max(now_us - TICK_MS * 1000);
        true
    }

    /// The next path that may be deleted by now, at an even pace.
    pub fn next(&mut self, core: &Core) -> Option<String> {
        let never_used_ms = core.settings.container_max_never_used_ms;
        while self.times.next_delete_us <= core.now_ms * 1000
            && let Some(path) = self.found.pop_front()
        {
            let tree = core.shared.state.tree.read();
            let id = tree.find(&path);
            if id.is_some_and(|id| tree.has_outlived(id, core.wall_ms, never_used_ms)) {
                self.times.next_delete_us += MINUTE_US / core.settings.container_max_per_minute;
                return Some(path);
            }
        }
        None
    }
}
