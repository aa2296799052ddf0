//! When a leader stands down for the next epoch: before the zxids of its own are used up, in a quiet moment.

use crate::model::Zxid;

/// The leader waits for a quiet moment once this few zxids are left. They last three days at 1,000 transactions a second.
const LATE_LEFT: u32 = 0x0fff_fffe;
/// A moment is quiet after nothing was proposed for this long.
const QUIET_MS: u64 = 1000;

/// Looks for a quiet moment near the end of an epoch. Java's leader goes on until there are no zxids left, which is when it
/// is busy.
#[derive(Default)]
pub struct QuietMoment {
    last: Zxid,
    since_ms: u64,
}

impl QuietMoment {
    /// Whether each tick has to look for a quiet moment, as few zxids are left.
    pub const fn is_late(left: u32) -> bool {
        left <= LATE_LEFT
    }

    /// Whether the leader should stand down now. To be called at each tick.
    ///
    /// * `last`: the last zxid proposed. `left`: zxids of its epoch after it.
    pub fn is_time(&mut self, last: Zxid, left: u32, now_ms: u64) -> bool {
        if self.last != last {
            (self.last, self.since_ms) = (last, now_ms);
        }
        Self::is_late(left) && QUIET_MS <= now_ms - self.since_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    // rows: Q-80
    #[test]
    fn an_epoch_ends_early_in_a_quiet_moment() {
        const LATE: u32 = 0xf000_0000;
        let mut quiet = QuietMoment::default();
        let mut is_time_in = |epoch, counter, now_ms| {
            let left = Zxid::COUNTER_MAX - counter;
            quiet.is_time(Zxid::new(Epoch(epoch), counter), left, now_ms)
        };
        let mut is_time = |counter, now_ms| is_time_in(1, counter, now_ms);
        assert!(!is_time(LATE - 1, 0) && !is_time(LATE - 1, 90_000));
        // Each transaction begins the wait again.
        assert!(!is_time(LATE, 90_000) && !is_time(LATE + 1, 90_999));
        assert!(!is_time(LATE + 1, 91_998) && is_time(LATE + 1, 91_999));
        // In the next epoch there is time again.
        assert!(!is_time_in(2, 0, 200_000));
    }
}
