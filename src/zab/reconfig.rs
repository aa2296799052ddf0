//! An ensemble that changes: the configuration in force, the one that was proposed, and how one follows the other.
//!
//! From the moment a server has seen a newer configuration, every decision needs a quorum of each. The leader's
//! COMMITANDACTIVATE ends that: the new one alone is in force, and who is to lead by it is named.
//!
//! Source: `QuorumPeer.processReconfig`, `Leader.tryToCommit`, `Learner.syncWithLeader`, ZooKeeper 3.9.5.

use super::election::Views;
use super::learner_handler::{LearnerHandler, Stage};
use super::{Action, Core, Leader, Note};
use crate::model::{Epoch, Role, ServerId, View, Zxid};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Core {
    /// The configuration in force and the one to come.
    pub(super) fn views(&self) -> Views {
        Views { current: self.view.clone(), next: self.next.clone() }
    }

    /// Whether the voters among `ids` are a quorum of every configuration that counts.
    ///
    /// * `alone`: enough where it is one of two.
    pub(super) fn is_quorum(&self, ids: &BTreeSet<ServerId>, alone: Option<ServerId>) -> bool {
        let by_next = self.next.as_ref().is_none_or(|next| next.has_quorum_or(ids, alone));
        self.view.has_quorum_or(ids, alone) && by_next
    }

    /// The highest zxid that a quorum has acknowledged, by every configuration that counts.
    ///
    /// * `alone`: enough where it is one of two.
    pub(super) fn highest_agreed(
        &self,
        acked: &BTreeMap<ServerId, Zxid>,
        alone: Option<ServerId>,
    ) -> Option<Zxid> {
        let agreed = self.view.highest_agreed_or(acked, alone)?;
        match &self.next {
            Some(next) => next.highest_agreed_or(acked, alone).map(|by_next| agreed.min(by_next)),
            None => Some(agreed),
        }
    }

    /// Whether a server votes by any configuration that counts.
    pub(super) fn is_voter(&self, id: ServerId) -> bool {
        self.view.is_voter(id) || self.next.as_ref().is_some_and(|next| next.is_voter(id))
    }

    /// Whether this server only listens. One that is in no configuration follows, and has no vote.
    pub(super) fn is_observer(&self) -> bool {
        self.view.is_observer(self.me)
    }

    /// A configuration was proposed: from now on it decides as well.
    pub fn see_view(&mut self, view: View, out: &mut Vec<Action>) {
        let newest = self.next.as_ref().map_or(self.view.version, |next| next.version);
        let view = self.read_view(view);
        if self.settings.reconfigs && newest < view.version {
            out.push(Action::ViewProposed { view: view.clone() });
            self.next = Some(view);
        }
    }

    /// Looks for a proposed configuration in a payload.
    ///
    /// * `knows_all`: this server has seen every configuration that was proposed or committed before.
    pub(super) fn see_payload(
        &mut self,
        payload: &Bytes,
        knows_all: bool,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(view) = (self.finds_view)(payload) else { return false };
        let newest = self.next.as_ref().map_or(self.view.version, |next| next.version);
        if knows_all && newest < view.version {
            self.followed = Some((view.version, newest));
        }
        self.see_view(view, out);
        true
    }

    /// What the history of this server says: configuration `version` took the place of `before`.
    pub fn see_order(&mut self, version: i64, before: i64) {
        self.followed = Some((version, before));
    }

    /// The configuration that was proposed, if it is to follow the one in force here and no other: one reconfiguration is
    /// under way at a time, so that whatever the proposed one followed was decided. Where an oracle may let one voter decide
    /// alone this is not asked.
    pub(super) fn next_in_turn(&self) -> Option<&View> {
        let is_in_turn = self.oracle.is_none() && self.next_follows()? <= self.view.version;
        self.next.as_ref().filter(|_| is_in_turn)
    }

    /// Version of the configuration that the proposed one follows, where the history says so.
    pub fn next_follows(&self) -> Option<i64> {
        let next = self.next.as_ref()?;
        self.followed.filter(|(version, _)| *version == next.version).map(|(_, before)| before)
    }

    /// Puts a committed configuration in force, if it is newer than the one in force. Returns the one it follows.
    pub(super) fn activate(&mut self, view: View, out: &mut Vec<Action>) -> Option<View> {
        let view = self.read_view(view);
        if !self.settings.reconfigs || view.version <= self.view.version {
            return None;
        }
        let is_done = self.next.as_ref().is_none_or(|next| next.version <= view.version);
        if is_done {
            self.next = None;
        }
        let before = std::mem::replace(&mut self.view, view.clone());
        self.notes.push(Note::Reconfigured { version: view.version });
        out.push(Action::ViewCommitted { view, is_last: is_done });
        Some(before)
    }

    /// What a leader of `epoch` makes its learners agree on: what an earlier one left undecided; and the first
    /// configuration gets a number of its own.
    pub(super) fn next_view(&self, epoch: Epoch) -> View {
        let mut view = self.next.as_ref().unwrap_or(&self.view).clone();
        if view.version == 0 && self.settings.reconfigs {
            view.version = Zxid::new(epoch, 0).to_wire();
        }
        view
    }

    /// NEWLEADER tells of a configuration. It takes the place of whatever was proposed to this server: the leader knows
    /// of all that may have been decided. Text that is none is passed over, as Java does.
    pub(super) fn heard_view(&mut self, text: &Bytes, out: &mut Vec<Action>) {
        if text.len() <= 1 {
            return;
        }
        match View::from_bytes(text) {
            Ok(view) => {
                self.next = None;
                self.see_view(view.clone(), out);
                self.heard = Some((view, None));
            }
            Err(error) => tracing::warn!("configuration of the leader not understood: {error}"),
        }
    }

    /// A configuration was committed while this server is being synchronised.
    pub(super) fn heard_decided(&mut self, view: View, named: ServerId) {
        if self.heard.as_ref().is_none_or(|(heard, _)| heard.version < view.version) {
            self.heard = Some((view, Some(named)));
        }
    }

    /// Adopts what was heard of on the way. `Err`: why this server can't go on under `leader`.
    pub(super) fn adopt_heard(&mut self, leader: ServerId, out: &mut Vec<Action>) -> bool {
        let Some((view, named)) = self.heard.take() else { return true };
        self.adopt(view, named, leader, out)
    }

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

/// Whether a server votes in both, and is at the same place for its learners.
fn keeps_place(id: ServerId, before: &View, now: &View) -> bool {
    let places = |view: &View| -> Option<BTreeSet<(String, u16)>> {
        let member = view.members.get(&id).filter(|member| member.role == Role::Participant)?;
        Some(member.addresses.iter().map(|at| (at.host.clone(), at.quorum_port)).collect())
    };
    places(now).is_some_and(|now| Some(now) == places(before))
}

impl Leader {
    /// A learner that promises has told how far its log goes.
    pub(super) fn note_end(&mut self, core: &Core, of: ServerId, last: Zxid) {
        if let Some(next) = core.next_in_turn() {
            let knows = next.version <= last.to_wire();
            if knows { &mut self.aware } else { &mut self.unaware }.insert(of);
        }
    }

    /// Closes the connections of learners that are ahead, once the proposed configuration may have been committed as far as
    /// this server knows, and their transactions with it; one of them is to lead if there is no quorum without them. Until
    /// then they wait, because an epoch opened without them truncates their logs.
    pub(super) fn turn_away(&mut self, core: &mut Core, out: &mut Vec<Action>) {
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
    /// not be asked before an epoch is opened: both need a quorum of either configuration, and the servers that may have
    /// logged the proposal are no quorum of one of them. The others promised, and log nothing before this epoch is open.
    ///
    /// Otherwise an ensemble may stay without a leader: a newcomer that logged more than any voter did is ahead of every
    /// elected leader, and can't be elected itself by voters that don't know the proposal.
    pub(super) fn next_is_undecided(&self, core: &Core) -> bool {
        let may_know = |view: &View| {
            let ids = view.voters().filter(|id| !self.unaware.contains(id)).collect();
            view.has_quorum(&ids)
        };
        core.next_in_turn().is_some_and(|next| !may_know(&core.view) || !may_know(next))
    }

    /// The leader, and the followers that have its history and acknowledge its proposals. Not the followers that the
    /// configuration in force made observers and that are about to come again as such: they would not receive a proposal
    /// of now before it is committed.
    pub fn synced(&self, core: &Core) -> BTreeSet<ServerId> {
        let has_history = |handler: &&LearnerHandler| {
            Stage::Synchronised <= handler.stage
                && !handler.is_observer
                && !core.view.is_observer(handler.id)
        };
        let learners = self.handlers.iter().filter(has_history).map(|handler| handler.id);
        learners.chain([core.me]).collect()
    }

    /// The leader by the proposed configuration: this server, if it keeps its address and vote; otherwise the voter that
    /// acknowledged most, of several the one with the lowest number.
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
