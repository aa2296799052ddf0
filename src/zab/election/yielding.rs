//! The votes of a server that has doubted its data: it votes for any other with as much, even one with a lower id, and stands only if there is
//! none. As a leader it could not send what its tree lacks.

use super::Vote;
use super::machine::{Action, Election, YIELD_TICKS};

impl Election {
    /// This server's vote at the begin of a round: [`Vote::NOTHING`] while it waits for another candidate.
    pub(super) fn first_vote(&self) -> Vote {
        if self.stands_at.is_some() { Vote::NOTHING } else { self.setup.vote }
    }

    /// Whether a candidate has as much history as this server, and may be elected.
    pub(super) fn has_as_much(&self, vote: Vote) -> bool {
        let own = self.setup.vote;
        let is_light = self.setup.views.weighs_nothing(vote.leader);
        !is_light && (own.epoch, own.zxid) <= (vote.epoch, vote.zxid)
    }

    pub(super) fn stand_in_time(&mut self, out: &mut Vec<Action>) {
        if self.stands_at.take_if(|at| *at <= self.now).is_some() && self.vote == Vote::NOTHING {
            self.vote = self.setup.vote;
            self.send_vote_to_all(out);
        }
    }

    /// Whether this server stands, and another candidate with as much has come: others may vote for this server already, so it begins a later
    /// round. Once in an election, since that candidate may yield, too.
    pub(super) fn waits_again(&self, heard: Vote) -> bool {
        let me = self.setup.me;
        let stands = self.setup.yields && self.vote.leader == me;
        stands && !self.has_waited_again && heard.leader != me && self.has_as_much(heard)
    }

    pub(super) fn begin_later_round(&mut self, out: &mut Vec<Action>) {
        self.has_waited_again = true;
        self.stands_at = Some(self.now + YIELD_TICKS);
        self.begin_round(self.round.saturating_add(1), out);
    }
}
