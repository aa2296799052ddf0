//! One server in an election, without the rest of its `zab` peer: it is looking, or has settled and answers servers that are looking.

use bytes::Bytes;
use oxkeeper::model::ServerId;
use oxkeeper::zab::election::{Action, CurrentVote, Elected, Election, Electors, Input, Setup};
use oxkeeper::zab::{Notification, PeerState, Views};

#[derive(Clone, Debug)]
pub enum Elector {
    Looking(Box<Election>),
    Settled { current_vote: CurrentVote, backing: Electors },
}

impl Elector {
    pub fn look(setup: Setup, out: &mut Vec<Action>) -> Self {
        Self::Looking(Box::new(Election::begin(setup, out)))
    }

    /// A server that leads or follows.
    ///
    /// * `config`: the configuration in its notifications.
    pub fn settled(me: i64, elected: Elected, config: impl Into<Bytes>) -> Self {
        let Elected { vote, round, electors, .. } = elected;
        let state = if vote.leader.0 == me { PeerState::Leading } else { PeerState::Following };
        let config = config.into();
        let current_vote = CurrentVote { state, vote, vote_round: round, round, config };
        Self::Settled { current_vote, backing: Electors::new(vote, round, electors) }
    }

    /// Gives an input to an election that is under way.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        if let Self::Looking(election) = self {
            election.step(input, out);
        }
    }

    /// Another server's notification arrives; `false`: this server leads, and the servers that still vote for it are no quorum.
    pub fn hear(
        &mut self,
        views: &Views,
        from: ServerId,
        notification: Notification,
        out: &mut Vec<Action>,
    ) -> bool {
        match self {
            Self::Looking(election) => {
                election.step(Input::Notification { from, notification }, out);
                true
            }
            Self::Settled { current_vote, backing } => {
                let answer = current_vote.answer(views, from, &notification);
                let send = |notification| Action::SendNotification { to: from, notification };
                out.extend(answer.map(send));
                let holds = backing.holds_after(views, from, &notification);
                holds || current_vote.state != PeerState::Leading
            }
        }
    }

    /// The vote of a server whose election is over; `None`: the server is looking.
    pub const fn current_vote(&self) -> Option<&CurrentVote> {
        match self {
            Self::Looking(_) => None,
            Self::Settled { current_vote, .. } => Some(current_vote),
        }
    }
}
