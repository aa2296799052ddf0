//! The oracle of two voters: something outside of the ensemble that says which of them may go on without the other.
//!
//! Each server has an oracle of its own, `oraclePath`, and knows its last answer alone ([`Core::oracle`]). The operator's oracle has to
//! make sure that it says yes to one server only: two would both lead, each with a history of its own.
//!
//! The oracle decides only while the other voter is away: a leader with a follower waits for the follower's ACKs, whatever its
//! oracle says.
//!
//! Source: `QuorumOracleMaj`, `Leader.lead`, ZooKeeper 3.9.5.

use super::leader::Phase;
use super::learner_handler::{LearnerHandler, Stage};
use super::{Action, Core, Leader, Note};
use crate::model::{Rule, ServerId, View};

impl Core {
    /// This server, if the oracle lets it go on without the other of two voters.
    pub(super) fn without_other(&self) -> Option<ServerId> {
        let is_one = self.view.is_pair() && self.view.is_voter(self.me);
        (self.oracle == Some(true) && is_one).then_some(self.me)
    }

    /// A configuration as this server uses it: with an oracle it has no groups.
    pub(super) fn read_view(&self, view: View) -> View {
        if self.oracle.is_some() { View { rule: Rule::Majority, ..view } } else { view }
    }
}

impl Leader {
    /// This server, if the oracle lets it go on alone and no other voter is connected.
    ///
    /// Once clients are served, the other voter counts as soon as it has this server's history, which it is sent meanwhile. Before
    /// that, this server waits for it when it has connected.
    pub(super) fn without_other(&self, core: &Core) -> Option<ServerId> {
        let is_there = |handler: &LearnerHandler| {
            let counts = !self.is_broadcasting() || Stage::Synchronised <= handler.stage;
            counts && !handler.is_observer && core.is_voter(handler.id)
        };
        // First come the packets of a learner that connected before this server knew that it leads.
        let has_listened = self.phase != Phase::Discovering || 0 < self.ticks;
        core.without_other().filter(|_| has_listened && !self.handlers.iter().any(is_there))
    }

    /// Does what waited for the other voter, if the oracle lets this server go on without it.
    pub(super) fn go_on_alone(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.without_other(core).is_some() {
            self.try_propose_epoch(core, out);
            self.try_open(core, out);
            self.try_establish(core, out);
            self.try_commit(core, out);
        }
        let is_alone = self.is_broadcasting() && self.without_other(core).is_some();
        if is_alone != self.is_alone {
            self.is_alone = is_alone;
            core.notes.push(Note::Alone { is_alone });
        }
    }
}
