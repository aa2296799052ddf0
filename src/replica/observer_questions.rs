//! Syncs and revalidations of a follower's observers that the leader has not answered.

use crate::zab::LearnerConnectionId;
use std::collections::BTreeMap;

/// Syncs and revalidations of one observer that may wait for the leader.
const OF_ONE_MAX: usize = 1 << 16;
/// The same limit for all observers. The leader closes its connection to this follower when more syncs than
/// [`crate::zab::WAITING_SYNCS_MAX`] wait there: observers leave half of them to this follower's own clients.
const OF_ALL_MAX: usize = 1 << 17;

/// The number of unanswered questions of each observer's connection. Questions of a closed connection count until they are
/// answered, as the leader's answers come in order.
#[derive(Default)]
pub struct ObserverQuestions {
    counts: BTreeMap<LearnerConnectionId, usize>,
    all: usize,
}

impl ObserverQuestions {
    /// Counts a question.
    ///
    /// # Errors
    /// Why the connection is closed instead.
    pub fn asked(&mut self, connection: LearnerConnectionId) -> Result<(), String> {
        let all = self.all;
        let count = self.counts.entry(connection).or_default();
        if OF_ONE_MAX <= *count || OF_ALL_MAX <= all {
            return Err(format!(
                "{count} of its syncs and revalidations wait for the leader, {all} of all observers"
            ));
        }
        *count += 1;
        self.all += 1;
        Ok(())
    }

    /// The leader has answered a question.
    pub fn answered(&mut self, connection: LearnerConnectionId) {
        let Some(count) = self.counts.get_mut(&connection) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&connection);
        }
        self.all -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_above_the_limit_of_one_or_of_all_observers_are_refused() {
        let [one, two, three] = [1, 2, 3].map(LearnerConnectionId);
        let mut questions = ObserverQuestions::default();
        for connection in [one, two] {
            for _ in 0..OF_ONE_MAX {
                questions.asked(connection).unwrap();
            }
            assert!(questions.asked(connection).is_err());
        }
        assert!(
            questions.asked(three).is_err(),
            "together they have as many as the leader is to keep"
        );
        questions.answered(one);
        questions.asked(three).unwrap();
        assert!(questions.asked(one).is_err());
        (0..OF_ONE_MAX).for_each(|_| questions.answered(one));
        (0..OF_ONE_MAX).for_each(|_| questions.answered(two));
        questions.answered(three);
        assert!(questions.counts.is_empty() && questions.all == 0);
    }
}
