//! When a leader makes way for the next epoch: once the zxids of its own are used up, and before that when nobody minds.

use super::{Action, Mode, Replica};
use crate::model::Zxid;
use crate::zab;

/// A quiet moment is waited for once so few zxids are left. They last three days at 1,000 transactions a second.
const LATE_LEFT: u32 = 0x0fff_fffe;
/// So long nothing was proposed in a quiet moment.
const QUIET_MS: u64 = 1000;

/// Looks for a quiet moment near the end of an epoch. Java's leader goes on until there are no zxids left, which is when it
/// is busy.
#[derive(Default)]
pub(super) struct Quiet {
    last: Zxid,
    since_ms: u64,
}

impl Quiet {
    /// * `last`: the last zxid proposed. `left`: zxids of its epoch behind it. To be asked at each tick.
    fn is_time(&mut self, last: Zxid, left: u32, now_ms: u64) -> bool {
        if self.last != last {
            (self.last, self.since_ms) = (last, now_ms);
        }
        left <= LATE_LEFT && QUIET_MS <= now_ms - self.since_ms
    }
}

impl Replica {
    /// Clients have to connect again, as after every election; so this one comes when none of them waits for anything.
    pub(super) fn consider_next_epoch(&mut self, out: &mut Vec<Action>) {
        let last = self.prep.last();
        let left = self.settings.counter_max.saturating_sub(last.counter());
        let is_time = self.quiet.is_time(last, left, self.now_ms);
        // An epoch in which nothing happened is not worth another one.
        let is_used = 0 < last.counter();
        if is_time && is_used && self.mode == Mode::Leading && self.inflight.is_empty() {
            self.make_way(format!("{left} zxids of this epoch are left, and nobody writes"), out);
        }
    }

    pub(super) fn out_of_zxids(&mut self, out: &mut Vec<Action>) {
        if self.mode == Mode::Standalone {
            return out.push(Action::Stop("there are no zxids left"));
        }
        self.make_way("the zxids of this epoch are used up".to_owned(), out);
    }

    fn make_way(&mut self, why: String, out: &mut Vec<Action>) {
        self.zab.step(zab::Input::StandDown { why }, &mut self.zab_out);
        self.on_zab(self.now_us, out);
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
        let mut quiet = Quiet::default();
        let mut is_time_in = |epoch, counter, now_ms| {
            let left = Zxid::COUNTER_MAX - counter;
            quiet.is_time(Zxid::new(Epoch(epoch), counter), left, now_ms)
        };
        let mut is_time = |counter, now_ms| is_time_in(1, counter, now_ms);
        assert!(!is_time(LATE - 1, 0) && !is_time(LATE - 1, 90_000));
        // Each transaction begins the wait anew.
        assert!(!is_time(LATE, 90_000) && !is_time(LATE + 1, 90_999));
        assert!(!is_time(LATE + 1, 91_998) && is_time(LATE + 1, 91_999));
        // In the next epoch there is time again.
        assert!(!is_time_in(2, 0, 200_000));
    }
}
