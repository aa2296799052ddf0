//! Configurations in worlds and scripts: how a payload proposes one, and who proposes which.

use crate::world::World;
use oxkeeper::model::{Member, PeerAddress, Role as Kind, ServerId, View};
use oxkeeper::zab::{Peer, Role};

/// In front of a payload that proposes a configuration.
pub const VIEW: &str = "view ";

pub fn view_in(payload: &[u8]) -> Option<View> {
    View::parse(std::str::from_utf8(payload).ok()?.strip_prefix(VIEW)?).ok()
}

pub fn address(at: usize) -> PeerAddress {
    PeerAddress { host: format!("host{at}"), quorum_port: 2888, election_port: 3888 }
}

impl World {
    /// A leader proposes another configuration, if enough of it have its history.
    pub fn change(&mut self, at: usize) {
        let Some(Role::Leading(leader)) = self.nodes[at].peer.as_ref().map(Peer::role) else {
            return;
        };
        let core = &self.nodes[at].peer.as_ref().expect("it leads").core;
        let synced = leader.synced(core);
        if core.next.is_some() || self.nodes[at].leads.is_none() {
            return;
        }
        let mut view = core.view.clone();
        for at in 0..self.nodes.len() {
            let role = match self.below(3) {
                0 => Kind::Observer,
                1 => Kind::Participant,
                _ => continue,
            };
            let id = ServerId(at as i64);
            if self.below(4) == 0 {
                view.members.remove(&id);
            } else {
                view.members
                    .insert(id, Member { id, addresses: vec![address(at)], role, client: None });
            }
        }
        let zxid = self.nodes[at].proposed.next().expect("an epoch is long");
        view.version = zxid.to_wire();
        if view.voters().next().is_some() && view.has_quorum(&synced) {
            self.propose_payload(at, format!("{VIEW}{view}").into());
        }
    }
}
