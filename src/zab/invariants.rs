//! Invariants of a leader and of its learner connections, asserted after each step. Peers can't break them: packets are checked
//! before they change the state.

use super::leader::Phase;
use super::learner_handler::Stage;
use super::learner_handlers::LearnerHandlers;
use super::observer_master::ObserverMaster;
use super::{Core, Leader};
use crate::model::{Epoch, ServerId};
use std::collections::BTreeSet;

/// Whether invariants that look at every learner are asserted: in tests and in the simulator.
const CHECKS_ALL: bool = cfg!(any(debug_assertions, feature = "sim"));

impl LearnerHandlers {
    /// See [`CHECKS_ALL`].
    fn assert_invariants(&self, core: &Core) {
        let mut servers = BTreeSet::from([core.me]);
        for handler in self.iter() {
            let (id, stage) = (handler.id.0, handler.stage);
            assert!(handler.id != core.me, "learner {id} has the number of this server");
            assert!(servers.insert(handler.id), "learner {id} has two connections");
            let (start, committed) = (handler.start, core.history.committed());
            assert!(start <= committed, "learner {id} begins at {start}, committed is {committed}");
            let held = handler.held.len();
            let is_reading = stage == Stage::Reading;
            assert!(held == 0 || is_reading, "{held} held for {id}, which is {stage:?}");
        }
    }
}

impl ObserverMaster {
    pub(super) fn assert_invariants(&self, core: &Core) {
        if CHECKS_ALL {
            self.handlers.assert_invariants(core);
            let is_for_observers = self.handlers.iter().all(|handler| handler.is_observer);
            assert!(is_for_observers, "a follower follows this one: {:?}", self.handlers);
        }
    }
}

impl Leader {
    /// Takes a time that does not grow with the ensemble; see [`CHECKS_ALL`].
    pub(super) fn assert_invariants(&self, core: &Core) {
        let (committed, last) = (core.history.committed(), core.history.last());
        if let Some(at) = self.reconfig {
            assert!(committed < at && at <= last, "proposed {at}, not of {committed} to {last}");
        }
        if let Some((first, end)) = self.syncs.ends() {
            assert!(committed < first, "a sync waits for {first}, and {committed} is committed");
            assert!(end <= last, "a sync waits for {end}, and the last is {last}");
        }
        self.assert_epochs(core);
        let (proposed, flushed) = (self.proposed, core.flushed);
        assert!(last <= proposed, "logged {last}, and proposed {proposed}");
        let own = self.acked.get(&core.me).copied().unwrap_or_default();
        assert!(own <= flushed, "counts {own} as written here, and flushed is {flushed}");
        if CHECKS_ALL {
            self.handlers.assert_invariants(core);
            self.assert_stages();
            self.assert_sets(core);
        }
    }

    /// An epoch is on disk before it is sent, and a leader serves in no other.
    fn assert_epochs(&self, core: &Core) {
        let (epoch, accepted, current) = (self.epoch.0, core.accepted.0, core.current.0);
        let is_open = match self.phase {
            Phase::Discovering => return,
            Phase::Promising | Phase::Opening => false,
            Phase::Broadcasting if self.epoch == Epoch(0) => return, // A server that is alone.
            Phase::Synchronising | Phase::Broadcasting | Phase::Leaving { .. } => true,
        };
        assert!(!self.has_promised || accepted == epoch, "opens {epoch}, promised {accepted}");
        assert!(!is_open || self.has_promised, "opened {epoch}, promised {accepted}");
        assert!(!is_open || current == epoch, "leads {epoch}, and has saved {current}");
        let proposed = self.proposed;
        assert!(!is_open || proposed.epoch().0 == epoch, "proposed {proposed} in {epoch}");
    }

    fn assert_stages(&self) {
        let phase = self.phase;
        let is_open = !matches!(phase, Phase::Discovering | Phase::Promising | Phase::Opening);
        for handler in self.handlers.iter() {
            let (id, stage) = (handler.id.0, handler.stage);
            let has_epoch = Stage::LeaderInfoSent <= stage;
            assert!(!has_epoch || self.has_promised, "learner {id} is {stage:?} while {phase:?}");
            let has_history = Stage::Reading <= stage;
            assert!(!has_history || is_open, "learner {id} is {stage:?} while {phase:?}");
            let counts = self.acked.contains_key(&handler.id);
            assert!(stage < Stage::Synchronised || counts, "no acknowledged zxid of learner {id}");
        }
    }

    fn assert_sets(&self, core: &Core) {
        let last = core.history.last();
        for (id, acked) in &self.acked {
            assert!(*acked <= last, "server {} acknowledged {acked}, the last is {last}", id.0);
        }
        let both: Vec<&ServerId> = self.aware.intersection(&self.unaware).collect();
        assert!(both.is_empty(), "{both:?} know a configuration, and don't");
    }
}
