//! Elections with the outcome that a test wants: the notifications of the other voters.

use super::builders;
use oxkeeper::model::ServerId;
use oxkeeper::zab::{Input, Peer, PeerState, Role, Vote};
use std::collections::BTreeSet;

/// The inputs that end the election at `peer` with `leader` as the leader; none if there is no election.
///
/// The other voters say that their election is over. Only if the other one of two voters is to lead, it is still looking: it is no
/// quorum alone, so this server has to vote for it.
pub fn votes_for(peer: &Peer, leader: ServerId) -> Vec<Input> {
    let Role::Looking(Some(election)) = peer.role() else { return Vec::new() };
    let (core, round) = (&peer.core, election.round());
    let proposed = core.next.iter().flat_map(|view| view.voters());
    let mut others: BTreeSet<ServerId> = core.view.voters().chain(proposed).collect();
    others.remove(&core.me);
    let is_over = leader == core.me || core.view.has_quorum(&others);
    let (epoch, zxid) = (i64::from(core.current.0), core.history.last().to_wire());
    let vote = Vote { epoch: epoch + i64::from(!is_over), zxid, leader };
    let heard = |from: ServerId| {
        let state = match from == leader {
            _ if !is_over => PeerState::Looking,
            true => PeerState::Leading,
            false => PeerState::Following,
        };
        let config = Some(core.view.to_string().into());
        let notification = builders::notification(state, vote, round, config);
        Input::Notification { from, notification }
    };
    others.into_iter().map(heard).collect()
}
