//! What holds of a leader after each of its steps. Peers cannot break it: what they say is judged before it is taken in.

use super::leader::Phase;
use super::learner_handler::{LearnerHandler, Stage};
use super::{Core, Leader};
use crate::model::{Epoch, ServerId};
use std::collections::BTreeSet;

/// Whether invariants that take a look at every learner are asserted: in tests and in the simulator.
pub(super) const CHECKS_ALL: bool = cfg!(any(debug_assertions, feature = "sim"));

impl Leader {
    /// In time that does not grow with the ensemble; see [`CHECKS_ALL`].
    pub(super) fn assert_invariants(&self, core: &Core) {
        let (committed, last) = (core.history.committed(), core.history.last());
        if let Some(at) = self.reconfig {
            assert!(committed < at && at <= last, "proposed {at}, not of {committed} to {last}");
        }
        if let (Some((first, _)), Some((end, _))) = (self.syncs.front(), self.syncs.back()) {
            assert!(committed < *first, "a sync waits for {first}, and {committed} is committed");
            assert!(*end <= last, "a sync waits for {end}, and the last is {last}");
        }
        if self.phase != Phase::Relaying {
            self.assert_epochs(core);
            let (proposed, flushed) = (self.proposed, core.flushed);
            assert!(last <= proposed, "logged {last}, and proposed {proposed}");
            let own = self.acked.get(&core.me).copied().unwrap_or_default();
            assert!(own <= flushed, "counts {own} as written here, and flushed is {flushed}");
        }
        if CHECKS_ALL {
            self.handlers.values().for_each(|connection| self.assert_handler(core, connection));
            self.assert_sets(core);
        }
    }

    /// An epoch is on disk before it is told, and a leader serves in no other.
    fn assert_epochs(&self, core: &Core) {
        let (epoch, accepted, current) = (self.epoch.0, core.accepted.0, core.current.0);
        let is_open = match self.phase {
            Phase::Discovering | Phase::Relaying => return,
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

    fn assert_handler(&self, core: &Core, connection: &LearnerHandler) {
        let (id, stage, phase) = (connection.id.0, connection.stage, self.phase);
        assert!(connection.id != core.me, "learner {id} has the number of this server");
        let was_told = Stage::Told <= stage;
        assert!(!was_told || self.has_promised, "learner {id} is {stage:?} while {phase:?}");
        let has_history = Stage::Reading <= stage;
        let is_open = !matches!(phase, Phase::Discovering | Phase::Promising | Phase::Opening);
        assert!(!has_history || is_open, "learner {id} is {stage:?} while {phase:?}");
        let (start, committed) = (connection.start, core.history.committed());
        assert!(start <= committed, "learner {id} begins at {start}, committed is {committed}");
        let held = connection.held.len();
        assert!(held == 0 || stage == Stage::Reading, "{held} held for {id}, which is {stage:?}");
        if Stage::Synchronised <= stage {
            assert!(self.synchronised.contains(&connection.id), "learner {id} was not counted");
            assert!(
                self.acked.contains_key(&connection.id),
                "learner {id} has no place in the log"
            );
        }
    }

    /// What is known of servers is known of those that are connected, as long as that matters.
    fn assert_sets(&self, core: &Core) {
        let last = core.history.last();
        for (id, acked) in &self.acked {
            assert!(*acked <= last, "server {} acknowledged {acked}, the last is {last}", id.0);
        }
        let of = |fits: &dyn Fn(&LearnerHandler) -> bool| -> BTreeSet<ServerId> {
            let fitting = self.handlers.values().filter(|connection| fits(connection));
            fitting.map(|connection| connection.id).chain([core.me]).collect()
        };
        let all = of(&|_| true);
        assert!(
            all.len() == self.handlers.len() + 1,
            "{} connections of {all:?}",
            self.handlers.len()
        );
        if self.phase == Phase::Discovering {
            assert!(self.known == all, "{:?} are known, and {all:?} are here", self.known);
        }
        if self.phase == Phase::Synchronising {
            let (counted, there) =
                (&self.synchronised, of(&|connection| Stage::Synchronised <= connection.stage));
            assert!(*counted == there, "{counted:?} count as synchronised, and {there:?} are");
        }
        let both: Vec<_> = self.aware.intersection(&self.unaware).collect();
        assert!(both.is_empty(), "{both:?} know of a configuration, and don't");
    }
}
