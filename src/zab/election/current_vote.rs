//! The vote of a server whose election is over, and whether the electors of a leader keep their votes.

use super::{Notification, PeerState, Views, Vote, notification};
use crate::model::ServerId;
use bytes::Bytes;
use std::collections::BTreeSet;

/// The vote that a server sends to looking servers once its election is over (`QuorumPeer.getCurrentVote`).
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentVote {
    pub state: PeerState,
    /// How the election ended. From NEWLEADER on `epoch` has to be the new one, at the leader as well: servers that
    /// join later count votes of the same epoch only (ZOOKEEPER-1732).
    pub vote: Vote,
    /// Round of that vote; [`Self::NO_ROUND`] for a leader that a reconfiguration named.
    pub vote_round: i64,
    /// Round that this server is in.
    pub round: i64,
    /// Text of the configuration in force.
    pub config: Bytes,
}

impl CurrentVote {
    /// As in Java.
    pub const NO_ROUND: i64 = -1;

    /// The answer to `heard`; `None` to a server that is not looking.
    ///
    /// Java answers every notification of a server that does not vote. Two servers that don't take each other for voters, as
    /// after an unlucky reconfiguration, would answer each other without end.
    ///
    /// Source: `FastLeaderElection.WorkerReceiver`, ZooKeeper 3.9.5.
    pub fn answer(
        &self,
        views: &Views,
        from: ServerId,
        heard: &Notification,
    ) -> Option<Notification> {
        if heard.state != PeerState::Looking {
            return None;
        }
        let round = if views.is_voter(from) { self.vote_round } else { self.round };
        Some(Notification {
            state: self.state,
            vote: self.vote,
            round,
            version: notification::VERSION,
            config: Some(self.config.clone()),
            is_ours: true,
            candidates_view: None,
        })
    }
}

/// The electors of a leader, until its followers have connected.
///
/// A voter may still change its vote while it waits for better ones. A leader that goes on waiting for it keeps the
/// ensemble from electing another until initLimit is over (ZOOKEEPER-3109).
#[derive(Clone, Debug)]
pub struct Electors {
    vote: Vote,
    round: i64,
    electors: BTreeSet<ServerId>,
}

impl Electors {
    /// * `electors`: the servers that agreed on `vote` in `round`, this one among them.
    pub fn new(vote: Vote, round: i64, electors: BTreeSet<ServerId>) -> Self {
        Self { vote, round, electors }
    }

    /// Those of a leader that a reconfiguration named: all voters.
    ///
    /// * `vote`: for that leader, with the epoch of the reconfiguration.
    pub fn of_named(vote: Vote, voters: BTreeSet<ServerId>) -> Self {
        Self::new(vote, CurrentVote::NO_ROUND, voters)
    }

    /// Notes a notification; returns whether the electors that keep their votes are a quorum.
    ///
    /// An elector that is looking with the same vote has only not ended its election yet.
    #[must_use]
    pub fn holds_after(&mut self, views: &Views, from: ServerId, heard: &Notification) -> bool {
        // What a voter sent in the election before comes again when a connection is made anew.
        let is_old = heard.state != PeerState::Looking || heard.vote.epoch < self.vote.epoch;
        if self.round == CurrentVote::NO_ROUND && is_old {
            return views.have_quorums(&self.electors);
        }
        let same = heard.vote == self.vote && heard.round == self.round;
        let settled = heard.state != PeerState::Looking && heard.vote.leader != self.vote.leader;
        if settled || heard.state == PeerState::Looking && !same {
            self.electors.remove(&from);
        }
        views.have_quorums(&self.electors)
    }
    /// Whether this server may go on waiting for its electors although `from` is looking: it is one of them, or those that are there
    /// are a quorum. Without one the electors that are gone would be waited for until initLimit, and `from` could be in a quorum.
    pub fn suffice_beside(
        &self,
        views: &Views,
        from: ServerId,
        is_there: impl Fn(ServerId) -> bool,
    ) -> bool {
        let there = self.electors.iter().copied().filter(|id| is_there(*id)).collect();
        self.electors.contains(&from) || !views.is_voter(from) || views.have_quorums(&there)
    }
}
