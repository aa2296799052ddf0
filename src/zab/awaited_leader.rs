//! A learner and a leader that it has not reached: how long it waits, and when it leaves.

use super::election::{CurrentVote, Notification, PeerState};
use super::{Action, Learner, Peer, Role};
use crate::model::ServerId;

impl Peer {
    /// A voter may have come with which another leader can be elected.
    pub(super) fn stop_awaiting_leader(&mut self, out: &mut Vec<Action>) {
        if matches!(&self.role, Role::Learning(it) if it.awaits_leader() && self.others_suffice(it.leader()))
            && let Role::Learning(learner) = &mut self.role
        {
            learner.dial_anew(&mut self.core, out);
        }
    }

    /// Whether this server waits for a leader longer than Java's learners do: nothing is lost, because no other leader can be elected.
    pub(super) fn needs(&self, leader: ServerId) -> bool {
        let core = &self.core;
        core.is_voter(core.me)
            && core.oracle.is_none()
            && self.links.is_up(leader)
            && !self.others_suffice(leader)
    }

    /// Whether the voters that this server knows to run are enough to elect another leader.
    fn others_suffice(&self, leader: ServerId) -> bool {
        let running = self.links.up().chain([self.core.me]);
        self.core.views().have_quorums(&running.filter(|id| *id != leader).collect())
    }

    /// Whether a notification says that the leader, which this server may not have reached, votes for another one, or has looked
    /// for one since.
    pub(super) fn has_left(&self, learner: &Learner, from: ServerId, heard: &Notification) -> bool {
        let Some(current_vote) = &self.current_vote else { return false };
        let round = current_vote.vote_round;
        // A server that has restarted begins with the first round again.
        let is_news = round <= heard.round || learner.is_relinked();
        let looks_anew = heard.state == PeerState::Looking && round != heard.round;
        let votes_elsewhere = heard.vote.leader != from;
        // A leader that a reconfiguration named may not know that yet.
        let is_elected = round != CurrentVote::NO_ROUND;
        is_elected
            && learner.is_asking()
            && learner.leader() == from
            && is_news
            && (looks_anew || votes_elsewhere)
    }
}
