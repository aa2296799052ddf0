//! Elections of an [`Ensemble`] whose outcome a test chooses.

use super::builders;
use super::election::votes_for;
use super::ensemble::{Ensemble, Witness};
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Input, Peer, PeerState, Role, Vote};
use std::collections::BTreeSet;

impl<W: Witness> Ensemble<W> {
    /// A server gets votes for `leader`: those of the servers that follow it or would vote for it, and of as many others as are needed
    /// for a quorum. More of these would count as quorums of proposed configurations whose voters have not voted.
    pub fn is_elected(&mut self, at: usize, leader: usize) {
        self.servers[at].is_looking = false;
        self.hear_later_promise(at, leader);
        let Some(peer) = &self.servers[at].peer else { return };
        let view = peer.core.view.clone();
        let (backed, others): (Vec<_>, Vec<_>) = votes_for(peer, ServerId(leader as i64))
            .into_iter()
            .filter_map(|vote| match vote {
                Input::Notification { from, .. } => Some((from, vote)),
                _ => None,
            })
            .partition(|(from, _)| self.backs(from.0 as usize, leader));
        let mut heard: BTreeSet<ServerId> = backed.iter().map(|(from, _)| *from).collect();
        backed.into_iter().for_each(|(_, vote)| self.step(at, vote));
        for (from, vote) in others {
            if !view.has_quorum(&heard) {
                heard.insert(from);
                self.step(at, vote);
            }
        }
    }

    /// The leader hears the vote for itself of a server that is promised to a later epoch: only then it ends its role for that promise.
    fn hear_later_promise(&mut self, at: usize, leader: usize) {
        let core_of = |at: usize| {
            let peer = self.servers.get(at).and_then(|server| server.peer.as_ref());
            peer.map(|peer| &peer.core)
        };
        let (Some(core), Some(leading)) = (core_of(at), core_of(leader)) else { return };
        if core.accepted <= leading.accepted || self.servers[leader].leads.is_none() {
            return; // A leader that still waits for followers would take it for a vote that was changed.
        }
        let (epoch, zxid) = (i64::from(core.current.0), core.history.last().to_wire());
        let vote = Vote { epoch, zxid, leader: core.me };
        let (state, from) = (PeerState::Looking, core.me);
        let notification = builders::notification(state, vote, 0, None);
        self.step(leader, Input::Notification { from, notification });
    }

    /// Whether a server follows `leader`, or is looking and its history is not ahead of that one's.
    fn backs(&self, at: usize, leader: usize) -> bool {
        let peer = |at: usize| self.servers.get(at).and_then(|server| server.peer.as_ref());
        let history = |peer: &Peer| (peer.core.current, peer.core.history.last());
        let (Some(voter), Some(candidate)) = (peer(at), peer(leader)) else { return false };
        match voter.role() {
            Role::Looking(_) => history(voter) <= history(candidate),
            Role::Learning(learner) => learner.leader() == candidate.core.me,
            Role::Leading(_) => at == leader,
        }
    }
}
