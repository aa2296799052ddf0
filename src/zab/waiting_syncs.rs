//! Learners' syncs that wait for a commit.

use super::LearnerConnectionId;
use crate::model::Zxid;
use std::collections::{BTreeMap, VecDeque};

/// Limit on syncs of one learner connection that wait for commits. A learner's clients have about a thousand writes and syncs under
/// way, and one for each of their connections.
pub const WAITING_SYNCS_MAX: usize = 1 << 18;
/// Places that an empty queue keeps.
const CAPACITY: usize = 256;

/// Syncs in the order in which they came, each with the last proposal before it.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingSyncs {
    queue: VecDeque<(Zxid, LearnerConnectionId)>,
    /// How many syncs each connection has in the queue.
    counts: BTreeMap<LearnerConnectionId, usize>,
    /// At this length syncs of connections that have ended are discarded.
    sweep_at: usize,
}

impl WaitingSyncs {
    /// Adds a sync; `false`: the connection has too many already.
    ///
    /// * `last`: the last proposal. * `is_connected`: whether a connection is still there.
    #[must_use]
    pub fn push(
        &mut self,
        last: Zxid,
        id: LearnerConnectionId,
        is_connected: impl Fn(LearnerConnectionId) -> bool,
    ) -> bool {
        let count = self.counts.entry(id).or_default();
        if WAITING_SYNCS_MAX <= *count {
            return false;
        }
        *count += 1;
        self.queue.push_back((last, id));
        if self.sweep_at <= self.queue.len() {
            self.queue.retain(|(_, id)| is_connected(*id));
            self.counts.retain(|id, _| is_connected(*id));
            self.sweep_at = WAITING_SYNCS_MAX.max(2 * self.queue.len());
        }
        true
    }

    /// Takes the next sync that waits for a proposal at or before `through`.
    pub fn pop_through(&mut self, through: Zxid) -> Option<(Zxid, LearnerConnectionId)> {
        let (zxid, id) = self.queue.pop_front_if(|(zxid, _)| *zxid <= through)?;
        if let Some(count) = self.counts.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&id);
            }
        }
        if self.queue.is_empty() {
            self.queue.shrink_to(CAPACITY);
        }
        Some((zxid, id))
    }

    /// The proposals that the first and the last sync wait for.
    pub fn ends(&self) -> Option<(Zxid, Zxid)> {
        Some((self.queue.front()?.0, self.queue.back()?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    const ONE: LearnerConnectionId = LearnerConnectionId(1);
    const TWO: LearnerConnectionId = LearnerConnectionId(2);

    fn zxid(counter: u32) -> Zxid {
        Zxid::new(Epoch(1), counter)
    }

    #[test]
    fn sync_above_the_limit_of_its_connection_is_refused_until_one_is_answered() {
        let (mut syncs, all) = (WaitingSyncs::default(), |_| true);
        for counter in 0..WAITING_SYNCS_MAX {
            assert!(syncs.push(zxid(1 + counter as u32 / 1000), ONE, all));
        }
        assert!(!syncs.push(zxid(1000), ONE, all));
        assert!(syncs.push(zxid(1000), TWO, all), "others are not hindered");
        assert_eq!(syncs.ends(), Some((zxid(1), zxid(1000))));
        assert_eq!(syncs.pop_through(zxid(0)), None);
        assert_eq!(syncs.pop_through(zxid(1)), Some((zxid(1), ONE)));
        assert!(syncs.push(zxid(1000), ONE, all));
        assert!(!syncs.push(zxid(1000), ONE, all));
        while syncs.pop_through(zxid(1000)).is_some() {}
        assert!(syncs.counts.is_empty() && syncs.queue.capacity() <= 2 * CAPACITY);
    }

    #[test]
    fn syncs_of_connections_that_have_ended_are_discarded() {
        let mut syncs = WaitingSyncs::default();
        for connection in 1..=20 {
            let now = LearnerConnectionId(connection);
            while syncs.push(zxid(1), now, |id| id == now) {}
        }
        assert!(syncs.queue.len() <= 2 * WAITING_SYNCS_MAX, "{}", syncs.queue.len());
        assert!(syncs.counts.len() <= 2, "{}", syncs.counts.len());
    }
}
