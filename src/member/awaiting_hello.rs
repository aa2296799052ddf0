//! Accepted learner connections on which no hello has come yet.

use crate::zab::LearnerConnectionId;
use std::collections::VecDeque;

/// Learners send their hello at once: so many connections without one are kept.
pub const AWAITING_HELLO_MAX: usize = 256;

/// Accepted learner connections without a hello, the oldest first. `T`: what the caller closes one with.
pub struct AwaitingHello<T>(VecDeque<(LearnerConnectionId, T)>);

impl<T> Default for AwaitingHello<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> AwaitingHello<T> {
    /// A connection was accepted. Gives the oldest without a hello if there are too many: it is to be closed.
    #[must_use]
    pub fn admit(
        &mut self,
        connection: LearnerConnectionId,
        closer: T,
    ) -> Option<(LearnerConnectionId, T)> {
        let oldest = if AWAITING_HELLO_MAX <= self.0.len() { self.0.pop_front() } else { None };
        self.0.push_back((connection, closer));
        oldest
    }

    /// A hello has come, or the connection has ended.
    pub fn remove(&mut self, connection: LearnerConnectionId) {
        self.0.retain(|(waiting, _)| *waiting != connection);
    }
}
