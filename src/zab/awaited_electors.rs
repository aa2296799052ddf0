//! A leader that no quorum has reached yet: how long it waits for the servers that elected it.

use super::election::{Notification, PeerState, Views};
use super::{Action, Peer, Role};
use crate::model::ServerId;

/// A server that was elected so often, and followed by no quorum, stays the leader until initLimit ends, as Java's does, if others have
/// the history of its epoch. Its learners may never reach it (a wrong address, a firewall), and with the best vote it would keep them from
/// electing another leader.
const UNREACHED_MAX: u32 = 2;

impl Peer {
    /// Gives up the lead if no quorum is connected, and those that elected this server have changed their votes or are gone.
    pub(super) fn give_up_without_electors(
        &mut self,
        views: &Views,
        from: ServerId,
        heard: &Notification,
        out: &mut Vec<Action>,
    ) {
        let Role::Leading(leader) = &self.role else { return };
        if leader.has_established() || leader.has_followers(&self.core) {
            return;
        }
        let Some(backing) = &mut self.backing else { return };
        // One whose election connection has only been replaced may be connected as a learner.
        let is_there = |id| id == self.core.me || self.links.is_up(id) || leader.has_learner(id);
        let stays = UNREACHED_MAX <= self.unreached && self.core.others_have_its_epoch();
        let keep_votes = backing.holds_after(views, from, heard);
        let are_there =
            heard.state != PeerState::Looking || backing.suffice_beside(views, from, is_there);
        let (why, unreached) = match (keep_votes, are_there) {
            (false, _) if !stays => ("voters changed their votes", self.unreached + 1),
            // They may not have had the time to reach this server.
            (true, false) => {
                ("no quorum of its electors is left, and another voter is looking", self.unreached)
            }
            _ => return,
        };
        self.core.stats.disloyal += 1;
        self.stand_down(why.to_owned(), out);
        self.unreached = unreached;
    }
}
