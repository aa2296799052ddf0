//! The number of ticks for which nothing happens if no other input comes, so that an idle server need not tick.
//!
//! Each number may be too small, never too large: a tick that would have done something must not be late.

use super::learner_handler::Stage;
use super::learner_handlers::LearnerHandlers;
use super::observer_master::ObserverMaster;
use super::{Core, Leader, Learner, Peer, Role};

impl Peer {
    /// Ticks from now on that only count time.
    pub fn quiet_ticks(&self) -> u64 {
        if !self.counts_nothing_down() {
            return 0;
        }
        match self.role() {
            Role::Looking(_) => 0,
            Role::Leading(leader) => leader.quiet_ticks(&self.core),
            Role::Learning(learner) => learner.quiet_ticks(&self.core),
        }
    }
}

impl Leader {
    fn quiet_ticks(&self, core: &Core) -> u64 {
        // A leader reads its oracle's answer at each tick.
        if !self.is_broadcasting() || core.oracle.is_some() {
            return 0;
        }
        let ping = before_next_multiple(self.ticks, core.settings.ping_ticks());
        ping.min(self.handlers.quiet_ticks(core))
    }
}

impl Learner {
    fn quiet_ticks(&self, core: &Core) -> u64 {
        if !self.is_serving() {
            return 0;
        }
        let silence = core.settings.sync_ticks().saturating_sub(self.silent_ticks);
        let observers = self.observer_master.as_ref();
        silence.min(observers.map_or(u64::MAX, |master| master.quiet_ticks(core)))
    }
}

impl ObserverMaster {
    fn quiet_ticks(&self, core: &Core) -> u64 {
        let ping = before_next_multiple(self.ticks, core.settings.ping_ticks());
        ping.min(self.handlers.quiet_ticks(core))
    }
}

impl LearnerHandlers {
    fn quiet_ticks(&self, core: &Core) -> u64 {
        if self.may_lag(core) {
            return 0;
        }
        let settings = &core.settings;
        let limits = self.iter().map(|handler| {
            let limit = match handler.stage {
                Stage::WantsSnapshot => 0, // Asked for again at each tick.
                Stage::InfoReceived
                | Stage::LeaderInfoSent
                | Stage::Promised
                | Stage::Reading
                | Stage::Synchronising => settings.init_ticks(),
                Stage::Synchronised | Stage::Active => settings.sync_ticks(),
            };
            limit.saturating_sub(handler.silent_ticks)
        });
        limits.min().unwrap_or(u64::MAX)
    }
}

/// Ticks after `ticks` and before the next multiple of `period`.
const fn before_next_multiple(ticks: u64, period: u64) -> u64 {
    period - ticks % period - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ServerId, Zxid};

    #[test]
    fn a_leader_with_an_oracle_has_no_quiet_ticks() {
        let mut peer = Peer::alone(ServerId(1), Zxid::ZERO);
        assert!(0 < peer.quiet_ticks());
        peer.core.oracle = Some(true);
        assert_eq!(peer.quiet_ticks(), 0);
    }

    #[test]
    fn the_tick_of_a_ping_is_not_quiet() {
        for (ticks, quiet) in [(0, 199), (1, 198), (198, 1), (199, 0), (200, 199)] {
            assert_eq!(before_next_multiple(ticks, 200), quiet);
        }
    }
}
