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
        let Some(round) = self.round_of_awaited(learner, from) else { return false };
        let is_news = round <= heard.round || learner.link().has_restarted();
        let looks_anew = heard.state == PeerState::Looking && round != heard.round;
        let votes_elsewhere = heard.vote.leader != from;
        is_news && (looks_anew || votes_elsewhere)
    }

    /// Notes whether the leader, which this server may not have reached, is in an earlier round.
    pub(super) fn note_earlier_round(&mut self, from: ServerId, heard: &Notification) {
        let Role::Learning(learner) = &self.role else { return };
        let Some(round) = self.round_of_awaited(learner, from) else { return };
        let has_left = heard.state == PeerState::Looking || heard.vote.leader != from;
        let is_earlier = has_left && heard.round < round;
        let Role::Learning(learner) = &mut self.role else { return };
        learner.link_mut().note_round(is_earlier);
    }

    /// The round in which `leader` was elected, if this server may not have reached it. A leader that a reconfiguration named may not
    /// know that yet.
    fn round_of_awaited(&self, learner: &Learner, leader: ServerId) -> Option<i64> {
        let round = self.current_vote.as_ref()?.vote_round;
        let is_elected = round != CurrentVote::NO_ROUND;
        (is_elected && learner.is_asking() && learner.leader() == leader).then_some(round)
    }
}
