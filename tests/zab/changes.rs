//! Reconfigurations in worlds.

use super::situations::some_rule;
use super::world::World;
use oxkeeper::model::{Role as Kind, Rule, ServerId, View};
use oxkeeper::zab::{Peer, Role};
use support::quorums::is_quorum;
use support::views::{VIEW, member};

impl World {
    /// A leader proposes another configuration, if a quorum of that configuration is synchronised.
    pub fn change(&mut self, at: usize) {
        let Some(Role::Leading(leader)) = self.servers[at].peer.as_ref().map(Peer::role) else {
            return;
        };
        let core = &self.servers[at].peer.as_ref().expect("the server leads").core;
        let synced = leader.synced(core);
        if core.next.is_some() || self.servers[at].leads.is_none() {
            return;
        }
        let mut view = core.view.clone();
        for at in 0..self.servers.len() {
            let role = match self.below(3) {
                0 => Kind::Observer,
                1 => Kind::Participant,
                _ => continue,
            };
            let id = ServerId(at as i64);
            if self.below(4) == 0 || self.servers[at].is_gone {
                view.members.remove(&id);
            } else {
                view.members.insert(id, member(id, role));
            }
        }
        view.rule = if self.witness.conditions.has_groups {
            some_rule(&mut self.witness.rare, &view, false)
        } else {
            Rule::Majority
        };
        if view.voters().next().is_some() && is_quorum(&view, |id| synced.contains(&id)) {
            self.propose_view(at, view);
        }
    }

    /// A leader proposes this configuration; its version becomes the zxid of the proposal.
    pub fn propose_view(&mut self, at: usize, mut view: View) {
        let zxid = self.servers[at].proposed.next().expect("an epoch is long");
        view.version = zxid.to_wire();
        self.propose_payload(at, format!("{VIEW}{view}").into());
    }
}
