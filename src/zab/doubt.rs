//! A tree that does not fit the digests in the log: what was in a lost file may be missing in it.

use super::election::{Elected, Notification, PeerState};
use super::{Action, Note, Peer, Role};
use crate::model::ServerId;

/// A doubt of which so much is left ends with the next election.
const COUNTS_TICKS: u64 = 1;

impl Peer {
    /// The tree does not fit the digests in the log. A leader's tree replaces it; if no server has led for
    /// initLimit, this server's data counts again, because digests may be wrong in the same way everywhere. It stands only if no
    /// other has as much then.
    pub fn doubt(&mut self) {
        if self.core.is_unsure {
            return; // This server has nothing that could count later.
        }
        (self.core.is_unsure, self.core.yields) = (true, false);
        self.core.has_stood = false;
        self.core.doubt_ticks = self.core.settings.init_ticks().max(COUNTS_TICKS + 1);
    }

    /// Another server leads: a server that has doubted its tree, and has none from a leader since, asks for it if a quorum of other servers follows
    /// that leader already. If its vote is needed, its history has to count, and what its tree lacks is missing until it next looks for a leader.
    ///
    /// The quorum must have ended its elections before: if servers that look for a leader counted, and all of them had doubted, all would ask, none
    /// would count, and no leader would be established. The first server that asks has a quorum before it that did not. But the leader may know a
    /// proposed configuration that needs this server, and that this server does not know, so it does not ask twice in a row (world 501000001519).
    pub(super) fn ask_if_not_needed(&mut self, elected: &Elected) {
        let core = &mut self.core;
        let may = core.yields && !core.is_unsure && elected.vote.leader != core.me;
        if may && elected.others_suffice {
            core.asked_in_vain = !core.asked_in_vain;
            if core.asked_in_vain {
                (core.is_unsure, core.doubt_ticks) = (true, COUNTS_TICKS);
            }
        }
    }

    /// Lets a tree that does not fit its digests count once no server has led for initLimit: at once if this server looks for a leader, else when it
    /// next does. A candidate that this server connects to and that never leads may lack its promise: by a proposed configuration, for example.
    pub(super) fn stop_doubting_in_time(&mut self, out: &mut Vec<Action>) {
        let counts_down = match self.role() {
            Role::Looking(_) => 0 < self.core.doubt_ticks,
            Role::Learning(learner) => {
                COUNTS_TICKS < self.core.doubt_ticks && learner.is_before_sync()
            }
            Role::Leading(_) => false,
        };
        if !counts_down {
            return;
        }
        self.core.doubt_ticks -= 1;
        if self.core.doubt_ticks == 0 {
            self.count_again();
            if matches!(self.role(), Role::Looking(Some(_))) {
                self.look(out);
            }
        }
    }

    /// An election begins.
    pub(super) fn stop_doubting_at_election(&mut self) {
        if self.core.doubt_ticks == COUNTS_TICKS {
            self.core.doubt_ticks = 0;
            self.count_again();
        }
    }

    /// A quorum of other servers is about to elect one without any history, as new servers are and those with new disks: beside these the tree counts
    /// at once, though it may lack something. Otherwise they would lead before this server counts or has waited for other candidates, and send it
    /// nothing in place of what may be the last copy.
    pub(super) fn stand_beside_empty(
        &mut self,
        from: ServerId,
        heard: &Notification,
        out: &mut Vec<Action>,
    ) {
        let Role::Looking(Some(election)) = self.role() else { return };
        let may = 0 < self.core.doubt_ticks || election.is_waiting();
        if !may || !self.core.view.is_voter(self.core.me) {
            return;
        }
        let has_nothing = (heard.vote.epoch, heard.vote.zxid) == (0, 0);
        if heard.state != PeerState::Looking || !has_nothing {
            self.core.for_empty.remove(&from);
            return;
        }
        self.core.for_empty.insert(from);
        if self.core.views().have_quorums(&self.core.for_empty) {
            (self.core.doubt_ticks, self.core.is_unsure) = (0, false);
            self.core.notes.push(Note::BelievedBesideEmpty);
            self.core.yields = false; // In this election.
            self.look(out);
            self.core.yields = true;
        }
    }

    fn count_again(&mut self) {
        self.core.is_unsure = false;
        // It yields already if it has asked again.
        if !std::mem::replace(&mut self.core.yields, true) {
            self.core.notes.push(Note::Believed);
        }
    }
}
