//! Votes for servers that no configuration known here lets vote.

use super::{Action, Election, Notification, PeerState, Vote};
use crate::model::ServerId;

impl Election {
    /// A voter votes for a server that is no candidate here: it no longer votes for the one it voted for before, which may be itself, and
    /// then would not lead. A server that votes by a configuration which was proposed to this server and not to that one votes for
    /// nothing, and drops notifications of earlier rounds: its later round is joined.
    pub(super) fn on_unknown_candidate(
        &mut self,
        from: ServerId,
        heard: &Notification,
        out: &mut Vec<Action>,
    ) {
        if heard.state != PeerState::Looking {
            return;
        }
        if self.round == heard.round {
            self.votes.remove(from);
        } else if heard.vote == Vote::NOTHING && self.round < heard.round {
            self.begin_round(heard.round, out);
        }
    }
}
