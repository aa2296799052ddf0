//! A tree that does not fit the digests in the log: what was in a lost file may be missing in it.

use super::election::Elected;
use super::{Action, Note, Peer, Role};

/// How long a server that asks for a tree again does not count if it gets none: the election of the next leader may need it.
const ASKS_AGAIN_TICKS: u64 = 1;

impl Peer {
    /// The tree does not fit the digests in the log. A leader's tree replaces it; if no server has led for
    /// initLimit, this server's data counts again, because digests may be wrong in the same way everywhere. It stands only if no
    /// other has as much then.
    pub fn doubt(&mut self) {
        if self.core.is_unsure {
            return; // This server has nothing that could count later.
        }
        (self.core.is_unsure, self.core.yields) = (true, false);
        self.core.doubt_ticks = self.core.settings.init_ticks().max(1);
    }

    /// Another server leads: a server that has doubted its tree, and has none from a leader since, asks for it if a quorum of other servers follows
    /// that leader already. If its vote is needed, its history has to count, and what its tree lacks is missing until it next looks for a leader.
    ///
    /// The quorum must have ended its elections before: if servers that look for a leader counted, and all of them had doubted, all would ask, none
    /// would count, and no leader would be established, again and again. The first server that asks has a quorum before it that did not.
    pub(super) fn ask_if_not_needed(&mut self, elected: &Elected) {
        let core = &mut self.core;
        let asks = core.yields && !core.is_unsure && elected.vote.leader != core.me;
        if asks && elected.others_suffice {
            (core.is_unsure, core.doubt_ticks) = (true, ASKS_AGAIN_TICKS);
        }
    }

    /// Lets a tree that does not fit its digests count once no server has led for initLimit.
    pub(super) fn stop_doubting_in_time(&mut self, out: &mut Vec<Action>) {
        if self.core.doubt_ticks == 0 || !matches!(self.role(), Role::Looking(_)) {
            return;
        }
        self.core.doubt_ticks -= 1;
        if self.core.doubt_ticks == 0 {
            self.core.is_unsure = false;
            // It yields already if it has asked again.
            if !std::mem::replace(&mut self.core.yields, true) {
                self.core.notes.push(Note::Believed);
            }
            if matches!(self.role(), Role::Looking(Some(_))) {
                self.look(out);
            }
        }
    }
}
