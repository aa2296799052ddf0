//! What a reconfiguration means for a role: whether it goes on under the committed configuration, and what a leader may decide while
//! another is proposed (`configurations.rs` has the configurations that count).
//!
//! Source: `QuorumPeer.processReconfig`, `Leader.tryToCommit`, `Learner.syncWithLeader`, ZooKeeper 3.9.5.

use super::learner_handler::{LearnerHandler, Stage};
use super::{Action, Core, Leader, LearnerConnectionId};
use crate::model::{Role, ServerId, View, Zxid};
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl Core {
    /// Adopts a committed configuration.
    ///
    /// * `named`: the leader that the reconfiguration named; `None`: it named none.
    ///
    /// Returns whether this server goes on as it is, under `leader`. Otherwise its role is over.
    pub(super) fn adopt(
        &mut self,
        view: View,
        named: Option<ServerId>,
        leader: ServerId,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(before) = self.activate(view, out) else { return true };
        let changes_role = before.is_observer(self.me) != self.view.is_observer(self.me);
        let changes_leader = match named {
            Some(named) => named != leader,
            None => !keeps_place(leader, &before, &self.view),
        };
        if changes_role || changes_leader {
            let version = self.view.version;
            let why = match (changes_leader, named) {
                (true, Some(named)) => {
                    format!("by configuration {version:#x} server {named} is to lead")
                }
                (true, None) => {
                    format!("leader {leader} does not lead by configuration {version:#x}")
                }
                (false, _) => format!("this server has another role by configuration {version:#x}"),
            };
            self.go_on_under(named, why);
            return false;
        }
        true
    }
}

/// Whether a server votes in both configurations, with the same addresses and quorum ports.
fn keeps_place(id: ServerId, before: &View, now: &View) -> bool {
    let places = |view: &View| -> Option<BTreeSet<(String, u16)>> {
        let member = view.members.get(&id).filter(|member| member.role == Role::Participant)?;
        Some(member.addresses.iter().map(|at| (at.host.clone(), at.quorum_port)).collect())
    };
    places(now).is_some_and(|now| Some(now) == places(before))
}

impl Leader {
    /// Notes whether a learner's log, which ends at `last`, has the proposed configuration. The learner has sent ACKEPOCH.
    pub(super) fn note_end(&mut self, core: &Core, of: ServerId, last: Zxid) {
        if let Some(next) = core.next_in_turn() {
            let knows = next.version <= last.to_wire();
            if knows { &mut self.aware } else { &mut self.unaware }.insert(of);
        }
    }

    /// Does nothing while it is open whether the proposed configuration was committed: the learners that are ahead wait, because
    /// an epoch opened without them truncates their logs. Once it may have been committed, their transactions may have been, too:
    /// closes their connections. If there is no quorum without them, this leader stands down, so that one of them can lead.
    pub(super) fn disconnect_learners_ahead(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let may_be_decided =
            |next: &View| core.view.has_quorum(&self.aware) && next.has_quorum(&self.aware);
        if core.next_in_turn().is_some_and(|next| !may_be_decided(next)) {
            return;
        }
        let is_ahead = |id: &ServerId| self.ahead.iter().any(|(_, ahead, _)| id == ahead);
        let is_needed = core.next.as_ref().is_some_and(|next| {
            !next.has_quorum(&next.voters().filter(|id| !is_ahead(id)).collect())
        });
        for (id, server, why) in std::mem::take(&mut self.ahead) {
            if is_needed {
                core.end_role(format!("server {}: {why}", server.0));
            }
            if self.handlers.get(id).is_some() {
                self.handlers.close(id, why, out);
            }
        }
    }

    /// Whether neither the proposed configuration nor a later transaction can have been committed, so that its members need
    /// not be asked before an epoch is opened: both need a quorum of both configurations, and the servers that may have
    /// logged the proposal are no quorum of one of them. The others promised, and log nothing before this epoch is open.
    ///
    /// Without this rule an ensemble may stay without a leader: a newcomer that logged more than any voter did is ahead of every
    /// elected leader, and can't be elected itself by voters that don't know the proposal.
    pub(super) fn next_is_undecided(&self, core: &Core) -> bool {
        let may_know = |view: &View| {
            let ids = view.voters().filter(|id| !self.unaware.contains(id)).collect();
            view.has_quorum(&ids)
        };
        core.next_in_turn().is_some_and(|next| !may_know(&core.view) || !may_know(next))
    }

    /// The member whose connection this is; `None` for a server in no configuration.
    pub fn member_at(&self, core: &Core, connection: LearnerConnectionId) -> Option<ServerId> {
        let id = self.handlers.get(connection)?.id;
        core.is_member(id).then_some(id)
    }

    /// The leader, and the followers that have its history and acknowledge its proposals. Not the followers that the
    /// configuration in force made observers and that are about to reconnect as such: they would not receive a new proposal before
    /// it is committed.
    pub fn synced(&self, core: &Core) -> BTreeSet<ServerId> {
        let has_history = |handler: &&LearnerHandler| {
            Stage::Synchronised <= handler.stage
                && !handler.is_observer
                && !core.view.is_observer(handler.id)
        };
        let learners = self.handlers.iter().filter(has_history).map(|handler| handler.id);
        learners.chain([core.me]).collect()
    }

    /// The leader under the proposed configuration: this server, if it keeps its address and vote; otherwise the voter that
    /// acknowledged most, of several the one with the lowest id.
    pub(super) fn named(&self, core: &Core, next: &View) -> ServerId {
        if keeps_place(core.me, &core.view, next) {
            return core.me;
        }
        let there = |id: &ServerId| self.handlers.iter().any(|handler| handler.id == *id);
        let others = next.voters().filter(|id| *id != core.me && there(id));
        let by_acked = |id: &ServerId| (self.acked.get(id).copied(), Reverse(*id));
        others.max_by_key(by_acked).or_else(|| next.voters().next()).unwrap_or(core.me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-97
    #[test]
    fn a_leader_keeps_its_place_by_its_address_and_vote() {
        let view = |line: &str| View::parse(&format!("server.2=b:1:2\n{line}")).unwrap();
        let before = view("server.1=a:1:2;2181");
        let keeps = |line| keeps_place(ServerId(1), &before, &view(line));
        assert!(keeps("server.1=a:1:2;2182"));
        assert!(keeps("server.1=a:1:3"), "Java looks at the quorum port only");
        assert!(!keeps("server.1=a:9:2"));
        assert!(!keeps("server.1=c:1:2"));
        assert!(!keeps("server.1=a:1:2:observer"));
        assert!(!keeps("server.3=a:1:2"));
    }
}
