//! The votes of a server that has doubted its data: it votes for any other with as much, even one with a lower id, and stands only if there is
//! none. As a leader it could not send what its tree lacks.

use super::ballots::Ballot;
use super::machine::{Action, Election};
use super::{Notification, Vote};
use crate::model::ServerId;

impl Election {
    /// This server's vote at the begin of a round.
    pub(super) fn first_vote(&self) -> Vote {
        if self.stands_at.is_some() { self.setup.vote.without_history() } else { self.setup.vote }
    }

    /// Whether it waits for another candidate, and votes for no server meanwhile.
    pub fn is_waiting(&self) -> bool {
        self.setup.yields && self.vote.zxid == -1
    }

    /// Whether it has waited for another candidate in vain.
    pub fn has_stood(&self) -> bool {
        self.setup.yields
            && self.setup.waits
            && self.stands_at.is_none()
            && self.vote == self.setup.vote
    }

    /// Whether a candidate has as much history as this server, and may be elected.
    pub(super) fn has_as_much(&self, vote: Vote) -> bool {
        let own = self.setup.vote;
        let is_light = self.setup.views.weighs_nothing(vote.leader);
        !is_light && (own.epoch, own.zxid) <= (vote.epoch, vote.zxid)
    }

    pub(super) fn stand_in_time(&mut self, out: &mut Vec<Action>) {
        if self.stands_at.take_if(|at| *at <= self.now).is_some() && self.is_waiting() {
            self.vote = self.setup.vote;
            self.send_vote_to_all(out);
        }
    }

    /// Whether this server votes for another candidate: it has waited for one, in whatever round that is, or it stands, and this is the first that
    /// came. Others may vote for this server already then, so all vote anew in a later round. Once in an election, since that candidate may give way, too.
    pub(super) fn gives_way_to(&self, heard: Vote) -> bool {
        let stands = self.vote == self.setup.vote && !self.has_given_way;
        let may = self.setup.yields && (self.is_waiting() || stands);
        may && heard.leader != self.setup.me && self.has_as_much(heard)
    }

    pub(super) fn give_way(&mut self, from: ServerId, heard: &Notification, out: &mut Vec<Action>) {
        let stands = !self.is_waiting();
        self.has_given_way |= stands;
        // It has cast no vote in the round in which it waits: servers that are about to elect the candidate stay in theirs.
        let round = match stands {
            true => self.round.max(heard.round).saturating_add(1),
            false => heard.round,
        };
        if round != self.round {
            self.votes.clear();
        }
        (self.round, self.vote) = (round, heard.vote);
        self.send_vote_to_all(out);
        if heard.round == round {
            self.votes.put(from, Ballot::of_round(heard));
        }
    }
}
