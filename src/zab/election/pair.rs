//! Elections among two voters that ask an oracle.

use super::machine::Election;
use super::{Notification, PeerState};
use crate::model::ServerId;
use std::collections::BTreeSet;

impl Election {
    pub(super) fn note_leading(&mut self, from: ServerId, heard: &Notification) {
        if heard.state == PeerState::Leading {
            // A leader that is up answers each resend.
            self.leading.insert(from, self.now + 2 * self.resend_ticks);
        } else {
            self.leading.remove(&from);
        }
    }

    /// This server, if it may elect itself without the other of two voters.
    ///
    /// Not while the other voter says that it leads: its oracle may have let it go on alone until now, and it may not know yet that
    /// the oracle has changed. Java's server does not wait for that.
    pub(super) fn alone(&self) -> Option<ServerId> {
        let me = self.setup.me;
        let is_led = self.leading.values().any(|&until| self.now < until);
        (self.setup.oracle == Some(true) && self.vote.leader == me && !is_led).then_some(me)
    }

    /// With an oracle that does not let this server go on alone, the other of two voters may lead alone: its vote for itself is enough.
    ///
    /// Source: `FastLeaderElection.receivedLeadingNotification`, ZooKeeper 3.9.5, where it holds among more voters as well.
    pub(super) fn oracle_follows(
        &self,
        from: ServerId,
        heard: &Notification,
    ) -> Option<BTreeSet<ServerId>> {
        let leads = heard.state == PeerState::Leading && heard.vote.leader == from;
        let follows = self.setup.oracle == Some(false) && self.setup.views.current.is_pair();
        (leads && follows).then(|| BTreeSet::from([from]))
    }
}
