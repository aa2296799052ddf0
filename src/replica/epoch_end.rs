//! When a leader stands down for the next epoch: before the zxids of its own are used up, in a quiet moment.

use crate::model::Zxid;

/// From this counter on a quiet moment is waited for. The zxids left then last three days at 1,000 transactions a second.
const LATE: u32 = 0xf000_0000;
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
    /// Whether the leader should stand down now. To be asked at each tick.
    ///
    /// * `last`: the last zxid proposed.
    pub fn is_time(&mut self, last: Zxid, now_ms: u64) -> bool {
        if self.last != last {
            (self.last, self.since_ms) = (last, now_ms);
        }
        LATE <= last.counter() && QUIET_MS <= now_ms - self.since_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    // rows: Q-80
    #[test]
    fn an_epoch_ends_early_in_a_quiet_moment() {
        let zxid = |counter| Zxid::new(Epoch(1), counter);
        let mut quiet = QuietMoment::default();
        assert!(!quiet.is_time(zxid(LATE - 1), 0) && !quiet.is_time(zxid(LATE - 1), 90_000));
        // Each transaction begins the wait anew.
        assert!(!quiet.is_time(zxid(LATE), 90_000) && !quiet.is_time(zxid(LATE + 1), 90_999));
        assert!(!quiet.is_time(zxid(LATE + 1), 91_998) && quiet.is_time(zxid(LATE + 1), 91_999));
        // In the next epoch there is time again.
        assert!(!quiet.is_time(Zxid::new(Epoch(2), 0), 200_000));
    }
}
