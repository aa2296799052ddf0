//! Global sessions that ended recently.

use crate::model::SessionId;
use std::collections::{BTreeSet, VecDeque};

/// Global sessions that ended recently, kept where a session that the leader does not know may be a learner's local session.
/// A write of an ended session, which its learner forwarded before it applied the end, must not be taken for the write of
/// such a local session.
#[derive(Default)]
pub struct EndedSessions {
    ids: BTreeSet<SessionId>,
    /// With the monotonic milliseconds of their ends, in that order.
    since: VecDeque<(u64, SessionId)>,
}

impl EndedSessions {
    pub fn contains(&self, session: SessionId) -> bool {
        self.ids.contains(&session)
    }

    /// * `from_ms`: sessions that ended before that are forgotten.
    pub fn add(&mut self, session: SessionId, now_ms: u64, from_ms: u64) {
        while let Some((_, old)) = self.since.pop_front_if(|(at_ms, _)| *at_ms < from_ms) {
            self.ids.remove(&old);
        }
        if self.ids.insert(session) {
            self.since.push_back((now_ms, session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_ended_long_ago_are_forgotten() {
        let mut ended = EndedSessions::default();
        ended.add(SessionId(1), 100, 0);
        ended.add(SessionId(2), 200, 100);
        assert!(ended.contains(SessionId(1)) && ended.contains(SessionId(2)));
        ended.add(SessionId(3), 300, 101);
        let left = [1, 2, 3].map(|id| ended.contains(SessionId(id)));
        assert_eq!((left, ended.since.len()), ([false, true, true], 2));
    }
}
