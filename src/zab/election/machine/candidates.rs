//! Candidates that only a proposed configuration lets vote, which came with another server's vote for one of them.

use super::{Action, Election, Notification, PeerState, Setup, TICK_MS, Vote, view_in};
use crate::model::{ServerId, View};
use bytes::Bytes;

/// How long this server votes for a candidate that only another server's vote lets vote, without a quorum that agrees. 1 s.
const CANDIDATE_TICKS: u64 = 1000 / TICK_MS as u64;
/// For how long it votes for none of them after that, so that those who never do so elect another leader, if they can. 2 s.
pub(super) const WITHOUT_CANDIDATES_TICKS: u64 = 2000 / TICK_MS as u64;
/// Bytes of a configuration that may come with a vote: that of some hundred servers.
const CANDIDATES_VIEW_MAX: usize = 32 * 1024;

/// The servers of a proposed configuration that came with a vote.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) view: View,
    pub(super) text: Bytes,
    /// The tick at which this server votes without them again.
    pub(super) until: u64,
}

impl Election {
    /// Whether a server may be voted for.
    pub(super) fn is_candidate(&self, id: ServerId) -> bool {
        let mut candidates = self.candidates.iter();
        self.setup.views.is_voter(id) || candidates.any(|it| it.view.is_voter(id))
    }

    /// The configuration that lets a candidate vote which no configuration known here does, if this server is to vote for that candidate: it
    /// has more than this server, and this server votes or would vote by that configuration.
    ///
    /// Such a candidate may have what was committed by that configuration, and then no other server can lead: without this server's vote
    /// there might be no quorum of the configuration in force, or of the other one.
    pub(super) fn candidates_of(&self, from: ServerId, heard: &Notification) -> Option<Candidates> {
        let Setup { me, views, adopts_views, vote, history, .. } = &self.setup;
        let may = *adopts_views && self.candidates_from <= self.now && history.zxid != -1;
        let has_more = (history.epoch, history.zxid) < (heard.vote.epoch, heard.vote.zxid);
        let is_of_round =
            self.round < heard.round || self.round == heard.round && self.vote < heard.vote;
        let is_live = heard.state == PeerState::Looking && !self.down.contains(&heard.vote.leader);
        let text =
            heard.candidates_view.as_ref().filter(|text| text.len() <= CANDIDATES_VIEW_MAX)?;
        if !may || !has_more || !is_of_round || !is_live || self.ends_at.is_some() {
            return None;
        }
        let view = view_in(from, text)?;
        let votes = *vote != Vote::NOTHING || view.is_voter(*me);
        let is_newer = views.current.version < view.version;
        let lets_vote = view.is_voter(heard.vote.leader) && view.weight(heard.vote.leader) != 0;
        let until = self.now + CANDIDATE_TICKS;
        (votes && is_newer && lets_vote).then(|| Candidates { view, text: text.clone(), until })
    }

    /// Whether this server votes for such a candidate.
    pub(super) fn votes_for_candidate(&self) -> bool {
        self.candidates.is_some() && !self.setup.views.is_voter(self.vote.leader)
    }

    /// No quorum agrees on such a candidate, or it is gone: begins a later round without it, so that all vote anew. Servers that don't know
    /// that configuration and have as much, and Java's, never vote for it, and would wait for this vote for ever.
    pub(super) fn drop_candidates(&mut self, out: &mut Vec<Action>) {
        let voted = self.votes_for_candidate();
        self.candidates = None;
        if voted {
            self.candidates_from = self.now + WITHOUT_CANDIDATES_TICKS;
            self.round = self.round.saturating_add(1);
            self.votes.clear();
            self.vote = self.setup.vote;
            self.send_vote_to_all(out);
        }
    }

    /// The proposed configuration that lets this vote's candidate vote, where the one in force does not.
    pub(super) fn candidates_view(&self) -> Option<Bytes> {
        let (views, candidate) = (&self.setup.views, self.vote.leader);
        if views.current.is_voter(candidate) {
            return None;
        }
        let proposed = views.proposed.iter().find(|view| view.is_voter(candidate));
        let mut candidates = self.candidates.iter().filter(|it| it.view.is_voter(candidate));
        proposed
            .map(|view| view.to_string().into())
            .or_else(|| candidates.next().map(|it| it.text.clone()))
    }
}
