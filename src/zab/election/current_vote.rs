//! The vote of a server whose election is over, and whether the electors of a leader stay.

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
    /// Round of that vote; -1 for a leader that a reconfiguration named.
    pub vote_round: i64,
    /// Round that this server is in.
    pub round: i64,
    /// Text of the configuration that holds.
    pub config: Bytes,
}

impl CurrentVote {
    /// What to answer to `heard`; nothing to a server that is not looking.
    ///
    /// Java answers a server that does not vote whatever it says. Two servers that don't hold each other for voters, as
    /// after an unlucky change of the ensemble, would go on like that without end.
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
        })
    }
}

/// The electors of a leader, as long as its followers have not come.
///
/// A voter may still change its mind while it waits for better votes. A leader that goes on waiting for it keeps the
/// ensemble from electing another until initLimit is over (ZOOKEEPER-3109).
#[derive(Clone, Debug)]
pub struct Backing {
    vote: Vote,
    round: i64,
    electors: BTreeSet<ServerId>,
}

impl Backing {
    /// * `electors`: the servers that agreed on `vote` in `round`, this one among them.
    pub fn new(vote: Vote, round: i64, electors: BTreeSet<ServerId>) -> Self {
        Self { vote, round, electors }
    }

    /// Takes note of a notification and tells whether the electors that stand by their vote are a quorum.
    ///
    /// An elector that is looking with the vote it gave has only not ended its election yet.
    #[must_use]
    pub fn holds_after(&mut self, views: &Views, from: ServerId, heard: &Notification) -> bool {
        let same = heard.vote == self.vote && heard.round == self.round;
        let settled = heard.state != PeerState::Looking && heard.vote.leader != self.vote.leader;
        if settled || heard.state == PeerState::Looking && !same {
            self.electors.remove(&from);
        }
        views.have_quorums(&self.electors)
    }
}
