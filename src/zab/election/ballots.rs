//! The votes that one server has received, and which of them are votes for the same leader.

use super::{Notification, PeerState, Views, Vote};
use crate::model::ServerId;
use std::collections::{BTreeMap, BTreeSet};

/// One server's vote as it was last received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ballot {
    pub state: PeerState,
    pub vote: Vote,
    pub round: i64,
    /// Whether the notification named its format, and formats count.
    pub versioned: bool,
}

impl Ballot {
    /// The vote as one of this round, where formats are not distinguished.
    pub fn of_round(heard: &Notification) -> Self {
        Self { versioned: false, ..Self::settled(heard) }
    }

    /// The vote as that of a server whose election is over.
    pub fn settled(heard: &Notification) -> Self {
        let &Notification { state, vote, round, version, .. } = heard;
        Self { state, vote, round, versioned: 0 < version }
    }

    /// Whether both are votes for the same leadership.
    ///
    /// Between two servers that are no longer looking, zxid and round may differ: each took them from another moment of one
    /// election. Servers that name no format name old epochs, too.
    ///
    /// Source: `Vote.equals`, ZooKeeper 3.9.5.
    fn agrees(&self, other: &Self) -> bool {
        if self.state == PeerState::Looking || other.state == PeerState::Looking {
            return self.vote == other.vote && self.round == other.round;
        }
        let same_format = self.versioned == other.versioned;
        self.vote.leader == other.vote.leader
            && (!same_format || self.vote.epoch == other.vote.epoch)
    }
}

/// The last vote of each server.
#[derive(Clone, Debug, Default)]
pub struct Ballots(BTreeMap<ServerId, Ballot>);

impl Ballots {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn put(&mut self, from: ServerId, ballot: Ballot) {
        self.0.insert(from, ballot);
    }

    pub fn remove(&mut self, from: ServerId) {
        self.0.remove(&from);
    }

    pub fn get(&self, from: ServerId) -> Option<&Ballot> {
        self.0.get(&from)
    }

    /// The leaders in the votes of servers whose election is over.
    pub fn settled_leaders(&self) -> impl Iterator<Item = ServerId> {
        let settled = self.0.values().filter(|cast| cast.state != PeerState::Looking);
        settled.map(|cast| cast.vote.leader)
    }

    /// The servers whose election is over, and ended with `leader`.
    pub fn settled_for(&self, leader: ServerId) -> BTreeSet<ServerId> {
        let is_settled = |cast: &Ballot| cast.state != PeerState::Looking;
        let settled = self.0.iter().filter(|(_, cast)| is_settled(cast));
        settled.filter(|(_, cast)| cast.vote.leader == leader).map(|(&id, _)| id).collect()
    }

    /// The servers whose votes agree with `ballot`.
    pub fn for_same(&self, ballot: &Ballot) -> BTreeSet<ServerId> {
        self.0.iter().filter(|(_, cast)| ballot.agrees(cast)).map(|(&id, _)| id).collect()
    }

    /// The servers that make `ballot` the outcome of an election that others have ended: a quorum of the configuration in force, if
    /// the leader itself says that it leads. Without the leader's own vote, servers that still follow a dead leader would elect
    /// it for ever.
    ///
    /// No proposed configuration counts here: one that was never committed may have no quorum any more, and a Java server, which counts
    /// it, then looks for a leader for ever. The election waits for quorums of the proposed configurations after this, for 400 ms; a
    /// server that joins the leader without them does not promise its epoch (docs/deviations.md, "Elections").
    ///
    /// * `me`, `round`: when `ballot` is for this server, only an election of its own round can have made it leader.
    pub fn settle(
        &self,
        ballot: &Ballot,
        views: &Views,
        me: ServerId,
        round: i64,
    ) -> Option<BTreeSet<ServerId>> {
        let leader = ballot.vote.leader;
        let leads = if leader == me {
            round == ballot.round
        } else {
            self.get(leader).is_some_and(|cast| cast.state == PeerState::Leading)
        };
        let backing = self.for_same(ballot);
        (leads && views.current.has_quorum(&backing)).then_some(backing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(state: PeerState, epoch: i64, zxid: i64, round: i64) -> Ballot {
        let vote = Vote { epoch, zxid, leader: ServerId(1) };
        Ballot { state, vote, round, versioned: true }
    }

    // rows: Q-09
    #[test]
    fn looking_votes_agree_in_all_and_settled_votes_in_leader_and_epoch() {
        use PeerState::{Following, Leading, Looking};
        let looking = ballot(Looking, 1, 5, 3);
        assert!(looking.agrees(&looking));
        for other in [ballot(Looking, 2, 5, 3), ballot(Looking, 1, 6, 3), ballot(Looking, 1, 5, 4)]
        {
            assert!(!looking.agrees(&other) && !other.agrees(&looking));
            assert!(!looking.agrees(&Ballot { state: Following, ..other }));
        }
        let following = ballot(Following, 1, 5, 3);
        assert!(looking.agrees(&following), "all four are the same");
        assert!(following.agrees(&ballot(Leading, 1, 9, 8)), "zxid and round don't matter");
        assert!(!following.agrees(&ballot(Leading, 2, 5, 3)), "the epoch does");
        let unversioned = Ballot { versioned: false, ..ballot(Leading, 2, 5, 3) };
        assert!(following.agrees(&unversioned), "but not between formats");
        let other = Vote { leader: ServerId(2), ..following.vote };
        assert!(!following.agrees(&Ballot { vote: other, ..unversioned }));
    }
}
