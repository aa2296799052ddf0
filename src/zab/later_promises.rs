//! Voters that say that they are promised to a later epoch: whether a server believes them, and how often a leader ends its role for
//! them.
//!
//! Such a voter can follow no leader before a later epoch is opened, so an election is due. But a stranger may say so in the name
//! of an absent voter, and each such election stops writes and uses up epochs. So each voter has a pause of its own, which grows,
//! and all voters together have a limit: an honest voter that is ahead is accepted at its first try.
//!
//! Epochs count elections, and an honest server is ahead of its ensemble by the few in which the others did not promise. A server
//! that is further ahead has a damaged file, belongs to another ensemble, or has taken part in many failed attempts to lead. It is
//! not believed, unless no leader is elected without it: the limit grows meanwhile, by 1024 with each initLimit. What was believed
//! is taken off the limit, which comes back as fast, so that a stranger that invents promises needs more than a year without a
//! leader to reach the last epoch.

use super::inputs::TICK_MS;
use crate::model::{Epoch, ServerId};
use std::collections::{BTreeMap, VecDeque};

const HOUR_TICKS: u64 = 60 * 60 * 1000 / TICK_MS;
const DAY_TICKS: u64 = 24 * HOUR_TICKS;
/// Elections within an hour, for all voters together.
const HOURLY_MAX: usize = 8;
/// The number of epochs that another server may be ahead. With each initLimit without a leader it grows by the same number.
const LEAP: i64 = 1024;

/// The elections that this server has begun because a voter said that it is promised to a later epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct LaterPromises {
    voters: BTreeMap<ServerId, Pause>,
    /// Ticks until each of the last elections is an hour old; oldest first.
    recent: VecDeque<u64>,
    /// Ticks since this server last belonged to a quorum. Below 0: ticks until as much is believed as at the start.
    idle_ticks: i64,
    /// The latest epoch for which this server has given up the lead.
    pub outbid: Epoch,
}

/// The pause before the next election for the same voter.
#[derive(Clone, Copy, Debug)]
struct Pause {
    ticks: u64,
    left: u64,
    /// Ticks since the last election for this voter, or since the pause was halved.
    quiet: u64,
}

impl LaterPromises {
    /// * `init_ticks`: initLimit, the shortest pause.
    pub fn on_tick(&mut self, init_ticks: u64) {
        self.idle_ticks += 1;
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

    /// This server belongs to a quorum.
    pub fn note_quorum(&mut self) {
        self.idle_ticks = self.idle_ticks.min(0);
    }

    /// This server, which has promised `ours`, promises `next`.
    pub fn note_promise(&mut self, ours: Epoch, next: Epoch, init_ticks: u64) {
        let left_out = i64::from(next.0.saturating_sub(ours.0).saturating_sub(1));
        let init_ticks = init_ticks.max(1).cast_signed();
        let cost_ticks = left_out.saturating_mul(init_ticks) / LEAP;
        self.idle_ticks = self.idle_ticks.saturating_sub(cost_ticks).max(-init_ticks);
    }

    /// Whether this server, which has promised `ours`, believes another that it has promised `theirs`.
    pub fn believes(&self, theirs: Epoch, ours: Epoch, init_ticks: u64) -> bool {
        let more = self.idle_ticks.saturating_mul(LEAP) / init_ticks.max(1).cast_signed();
        ours.may_reach(theirs, u32::try_from(LEAP + more).unwrap_or(u32::MAX))
    }

    /// Whether an election may begin for this voter now.
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
    fn pause(later_promises: &mut LaterPromises, voter: i64) -> u64 {
        let mut ticks = 0;
        while !later_promises.may(ServerId(voter)) {
            later_promises.on_tick(INIT);
            ticks += 1;
        }
        ticks
    }

    #[test]
    fn pause_of_a_voter_doubles_up_to_an_hour_and_halves_each_quiet_day() {
        let mut later_promises = LaterPromises::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            later_promises.note(ServerId(3), INIT);
            pauses.push(pause(&mut later_promises, 3));
            assert_eq!(pause(&mut later_promises, 2), 0, "each voter has its own pause");
        }
        let doubled = [1, 2, 4, 8, 16, 32, 64, 128].map(|times| times * INIT);
        assert_eq!(pauses[..8], doubled);
        assert_eq!(pauses[8..], [HOUR_TICKS; 2]);
        (0..DAY_TICKS).for_each(|_| later_promises.on_tick(INIT));
        later_promises.note(ServerId(3), INIT);
        assert_eq!(pause(&mut later_promises, 3), HOUR_TICKS, "half an hour, and doubled");
        (0..9 * DAY_TICKS).for_each(|_| later_promises.on_tick(INIT));
        assert!(later_promises.voters.is_empty(), "{later_promises:?}");
    }

    /// The furthest that another server may be ahead to be believed.
    fn limit(later_promises: &LaterPromises) -> u32 {
        let believes = |ahead: &u32| later_promises.believes(Epoch(5 + ahead), Epoch(5), INIT);
        (0..10_000).take_while(believes).last().unwrap_or(0)
    }

    #[test]
    fn limit_of_believed_epochs_grows_without_a_leader_and_shrinks_by_each_leap() {
        let mut later_promises = LaterPromises::default();
        let wait = |later_promises: &mut LaterPromises, ticks| {
            (0..ticks).for_each(|_| later_promises.on_tick(INIT));
            limit(later_promises)
        };
        assert_eq!(wait(&mut later_promises, 0), 1024);
        assert_eq!(wait(&mut later_promises, INIT), 2048);
        assert_eq!(wait(&mut later_promises, INIT / 2), 2560);
        later_promises.note_promise(Epoch(5), Epoch(6), INIT);
        assert_eq!(wait(&mut later_promises, 0), 2560, "no epoch was left out");
        later_promises.note_promise(Epoch(5), Epoch(5 + 2049), INIT);
        assert_eq!(wait(&mut later_promises, 0), 512);
        later_promises.note_promise(Epoch(5), Epoch(5 + 2000), INIT);
        assert_eq!(wait(&mut later_promises, 0), 0);
        for (waited, expected) in [(INIT, 1024), (INIT, 1024)] {
            wait(&mut later_promises, waited);
            later_promises.note_quorum();
            assert_eq!(limit(&later_promises), expected);
        }
    }

    #[test]
    fn all_voters_together_cause_eight_elections_an_hour() {
        let mut later_promises = LaterPromises::default();
        (1..=8).for_each(|voter| later_promises.note(ServerId(voter), INIT));
        assert_eq!(pause(&mut later_promises, 9), HOUR_TICKS);
    }
}
