//! Configurations in worlds: who proposes which.

use crate::views::{VIEW, address};
use crate::world::World;
use oxkeeper::model::{Member, Role as Kind, ServerId};
use oxkeeper::zab::{Peer, Role};

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
