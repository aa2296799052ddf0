//! At most one log line a minute about each thing that a peer can cause again and again.

use std::collections::BTreeMap;

const PAUSE_MS: u64 = 60_000;
/// Limit on things that are remembered: strangers choose some of them.
const KEPT_MAX: usize = 256;

/// When a line about each thing was written last.
#[derive(Clone, Debug)]
pub struct LogMinute<K>(BTreeMap<K, u64>);

impl<K> Default for LogMinute<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> LogMinute<K> {
    /// Whether a line about `thing` is due, which then counts as written.
    ///
    /// * `now_ms`: monotonic.
    pub fn admit(&mut self, thing: K, now_ms: u64) -> bool {
        if self.0.get(&thing).is_some_and(|written_ms| now_ms < written_ms + PAUSE_MS) {
            return false;
        }
        if KEPT_MAX <= self.0.len() {
            self.0.retain(|_, written_ms| now_ms < *written_ms + PAUSE_MS);
        }
        if KEPT_MAX <= self.0.len() {
            self.0.clear(); // A line too many is better than none about a member.
        }
        self.0.insert(thing, now_ms);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_about_one_thing_is_due_once_a_minute_and_memory_is_bounded() {
        let mut minute = LogMinute::default();
        assert!(minute.admit(1, 0));
        assert!(!minute.admit(1, 59_999));
        assert!(minute.admit(2, 59_999), "another thing");
        assert!(minute.admit(1, 60_000));
        assert!(!minute.admit(1, 60_001));
        for thing in 3..10_000 {
            assert!(minute.admit(thing, 60_002));
        }
        assert!(minute.0.len() <= KEPT_MAX);
    }
}
