//! How often a leader ends its role because a voter says that it is promised to a later epoch.
//!
//! Such a voter can follow no leader before a later epoch is opened, so an election is due. But a stranger may say so in the name
//! of an absent voter, and each such election stops writes and uses up epochs. So each voter has a pause of its own, which grows,
//! and all voters together have a limit: an honest voter that is ahead is let in at its first try.

use super::inputs::TICK_MS;
use crate::model::ServerId;
use std::collections::{BTreeMap, VecDeque};

const HOUR_TICKS: u64 = 60 * 60 * 1000 / TICK_MS;
const DAY_TICKS: u64 = 24 * HOUR_TICKS;
/// Elections within an hour, for whichever voters.
const HOURLY_MAX: usize = 8;

/// The elections that this server has begun on the word of one voter.
#[derive(Clone, Debug, Default)]
pub(super) struct GivingWay {
    voters: BTreeMap<ServerId, Pause>,
    /// Ticks until each of the last elections is an hour old; oldest first.
    recent: VecDeque<u64>,
}

/// The pause before the next election on the word of the same voter.
#[derive(Clone, Copy, Debug)]
struct Pause {
    ticks: u64,
    left: u64,
    /// Ticks since the last election for this voter, or since the pause was halved.
    quiet: u64,
}

impl GivingWay {
    /// * `init_ticks`: initLimit, the shortest pause.
    pub fn on_tick(&mut self, init_ticks: u64) {
        self.recent.iter_mut().for_each(|left| *left -= 1);
        while self.recent.pop_front_if(|left| *left == 0).is_some() {}
        self.voters.retain(|_, pause| {
            pause.left = pause.left.saturating_sub(1);
            pause.quiet += 1;
            if DAY_TICKS <= pause.quiet {
                (pause.ticks, pause.quiet) = (pause.ticks / 2, 0);
            }
            init_ticks <= pause.ticks
        });
    }

    pub fn may(&self, voter: ServerId) -> bool {
        let is_over = self.voters.get(&voter).is_none_or(|pause| pause.left == 0);
        is_over && self.recent.len() < HOURLY_MAX
    }

    /// Notes an election, and lengthens the voter's pause: initLimit, then twice as long each time, up to an hour.
    pub fn note(&mut self, voter: ServerId, init_ticks: u64) {
        let longest = HOUR_TICKS.max(init_ticks);
        let before = self.voters.get(&voter).map(|pause| pause.ticks);
        let ticks = before.map_or(init_ticks, |before| (2 * before).min(longest));
        self.voters.insert(voter, Pause { ticks, left: ticks, quiet: 0 });
        self.recent.push_back(HOUR_TICKS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: u64 = 4000;

    /// Ticks until the voter may cause an election again.
    fn pause(giving_way: &mut GivingWay, voter: i64) -> u64 {
        let mut ticks = 0;
        while !giving_way.may(ServerId(voter)) {
            giving_way.on_tick(INIT);
            ticks += 1;
        }
        ticks
    }

    #[test]
    fn pause_of_a_voter_doubles_up_to_an_hour_and_halves_each_quiet_day() {
        let mut giving_way = GivingWay::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            giving_way.note(ServerId(3), INIT);
            pauses.push(pause(&mut giving_way, 3));
            assert_eq!(pause(&mut giving_way, 2), 0, "each voter has its own pause");
        }
        let doubled = [1, 2, 4, 8, 16, 32, 64, 128].map(|times| times * INIT);
        assert_eq!(pauses[..8], doubled);
        assert_eq!(pauses[8..], [HOUR_TICKS; 2]);
        (0..DAY_TICKS).for_each(|_| giving_way.on_tick(INIT));
        giving_way.note(ServerId(3), INIT);
        assert_eq!(pause(&mut giving_way, 3), HOUR_TICKS, "half an hour, and doubled");
        (0..9 * DAY_TICKS).for_each(|_| giving_way.on_tick(INIT));
        assert!(giving_way.voters.is_empty(), "{giving_way:?}");
    }

    #[test]
    fn all_voters_together_cause_eight_elections_an_hour() {
        let mut giving_way = GivingWay::default();
        (1..=8).for_each(|voter| giving_way.note(ServerId(voter), INIT));
        assert_eq!(pause(&mut giving_way, 9), HOUR_TICKS);
    }
}
