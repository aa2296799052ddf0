//! A tree that does not fit the digests in the log: what was in a lost file may be missing in it.

use super::{Action, Note, Peer, Role};

impl Peer {
    /// The tree does not fit the digests in the log. A leader's tree replaces it; if no server has led for
    /// initLimit, this server's data counts again, because digests may be wrong in the same way everywhere. It stands only if no
    /// other has as much then.
    pub fn doubt(&mut self) {
        if self.core.is_unsure {
            return; // This server has nothing that could count later.
        }
        self.core.is_unsure = true;
        self.core.yields = true;
        self.core.doubt_ticks = self.core.settings.init_ticks().max(1);
    }

    /// Lets a tree that does not fit its digests count once no server has led for initLimit.
    pub(super) fn stop_doubting_in_time(&mut self, out: &mut Vec<Action>) {
        if self.core.doubt_ticks == 0 || !matches!(self.role(), Role::Looking(_)) {
            return;
        }
        self.core.doubt_ticks -= 1;
        if self.core.doubt_ticks == 0 {
            self.core.is_unsure = false;
            self.core.notes.push(Note::Believed);
            if matches!(self.role(), Role::Looking(Some(_))) {
                self.look(out);
            }
        }
    }
}
