//! The configurations that count: the one in force, and those that were proposed after it and may have been committed.
//!
//! From the moment a server knows of a newer configuration, every decision of its own needs a quorum of each. A committed
//! configuration replaces all before it. So does a configuration that is followed by another in this server's history, because a
//! leader proposes one at a time.
//!
//! Once the history of an open epoch is on this server's disk, a configuration that is neither in the history nor named by NEWLEADER,
//! and is newer than the named one, was never committed: quorums of all configurations that the leader knows have promised that
//! epoch, and had it been committed one of those servers would have had it, and been ahead of the leader. A configuration older
//! than the named one may have been committed: the leader's history may have it before the named one, and a tree that replaces
//! this server's history names its last configuration only.
//!
//! Source: `QuorumPeer.processReconfig`, `QuorumPeer.setLastSeenQuorumVerifier`, `Learner.syncWithLeader`, ZooKeeper 3.9.5,
//! which counts the newest proposed configuration only.

use super::election::Views;
use super::seen_views::SeenViews;
use super::{Action, Core, Note};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

impl Core {
    /// The configurations that count: the one in force and the proposed ones, oldest first, then those that were in force or proposed before an
    /// operator wrote another.
    pub fn all_views(&self) -> impl Iterator<Item = &View> {
        self.current_and_proposed().chain(self.seen.beside_operators())
    }

    /// The configurations that count beside the one in force because they were in force or proposed before an operator wrote that one.
    pub fn views_beside_operators(&self) -> impl Iterator<Item = &View> {
        self.seen.beside_operators()
    }

    /// The configuration in force, and the proposed ones, oldest first.
    pub fn current_and_proposed(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.view).chain(&self.earlier).chain(&self.next)
    }

    /// Whether decisions need quorums of several configurations.
    pub(super) fn is_joint(&self) -> bool {
        self.all_views().nth(1).is_some()
    }

    pub(super) fn views(&self) -> Views {
        Views { current: self.view.clone(), proposed: self.all_views().skip(1).cloned().collect() }
    }

    /// Whether the voters among `ids` are a quorum of every configuration that counts.
    ///
    /// * `alone`: a voter that suffices by itself where it is one of two.
    pub(super) fn is_quorum(&self, ids: &BTreeSet<ServerId>, alone: Option<ServerId>) -> bool {
        self.all_views().all(|view| view.has_quorum_or(ids, alone))
    }

    /// The highest zxid that a quorum has acknowledged, by every configuration that counts.
    ///
    /// * `alone`: a voter that suffices by itself where it is one of two.
    pub(super) fn highest_agreed(
        &self,
        acked: &BTreeMap<ServerId, Zxid>,
        alone: Option<ServerId>,
    ) -> Option<Zxid> {
        let mut agreed = self.view.highest_agreed_or(acked, alone)?;
        for view in self.all_views().skip(1) {
            agreed = agreed.min(view.highest_agreed_or(acked, alone)?);
        }
        Some(agreed)
    }

    /// Whether a server votes in any configuration that counts.
    pub(super) fn is_voter(&self, id: ServerId) -> bool {
        self.all_views().any(|view| view.is_voter(id))
    }

    /// Whether a server votes or observes in any configuration that counts.
    pub(super) fn is_member(&self, id: ServerId) -> bool {
        self.all_views().any(|view| view.members.contains_key(&id))
    }

    /// Whether this server is an observer. A server that is in no configuration is a follower without a vote.
    pub(super) fn is_observer(&self) -> bool {
        self.view.is_observer(self.me)
    }

    fn newest_version(&self) -> i64 {
        self.next.as_ref().map_or(self.view.version, |next| next.version)
    }

    /// Notes a proposed configuration: from now on every decision needs a quorum of it, too.
    pub fn see_view(&mut self, view: View) {
        let view = self.read_view(view);
        let is_known = self.current_and_proposed().any(|known| known.version == view.version);
        if !self.settings.reconfigs || is_known || view.version < self.view.version {
            return;
        }
        if self.newest_version() < view.version {
            self.earlier.extend(self.next.replace(view));
        } else {
            let at = self.earlier.partition_point(|known| known.version < view.version);
            self.earlier.insert(at, view);
        }
    }

    /// Whether a leader's configuration has other quorums than the lines here, which count alone without `reconfigEnabled`, as in Java.
    pub(super) fn ignores(&self, view: &View) -> bool {
        let is_newer = self.view.version < view.version;
        let has_other_quorums = || !self.read_view(view.clone()).has_quorums_of(&self.view);
        !self.settings.reconfigs && is_newer && has_other_quorums()
    }

    /// Warns of a configuration that a leader sends, if this server [ignores](Self::ignores) it.
    fn warn_if_ignored(&self, view: &View) {
        if self.ignores(view) {
            tracing::warn!(
                target: crate::model::STRANGERS,
                voters = %self.view.voters_text(), other_voters = %view.voters_text(), config_version = %format_args!("{:x}", view.version),
                "the leader has a configuration with other voters than the server.N lines here, which count alone because reconfigEnabled is not true: if members with reconfigEnabled=true go by it, \
                 servers of these lines may elect a second leader, and writes are lost; unless no member has it, set reconfigEnabled=true on all of them, and restart them before the next reconfig"
            );
        }
    }

    /// Notes a configuration in this server's history: every decision needs a quorum of it, too.
    pub fn see_logged_view(&mut self, view: View) {
        if self.view.version < view.version {
            self.seen.in_history.insert(view.version);
        }
        self.see_view(view);
    }

    /// Notes the configurations in the history of a server whose own was written by its operator (version 0), oldest first.
    ///
    /// They count once the server takes another server's configuration for its own: that may be an older one, of which this server's
    /// history knows that it was replaced. Alone it might make this server lead beside those that have the newer one in force. Those that are
    /// newer than the last configuration that was in force here count from the start on, together with that one
    /// ([`Self::see_last_in_force`]): this server may have been stopped between its acknowledgement and the commit.
    pub fn see_outranked_views(&mut self, mut views: Vec<View>) {
        views.retain(|view| self.settings.reconfigs && self.view.version < view.version);
        self.seen.outranked = views;
    }

    /// Notes the last configuration that was in force here, as the data directory has it, at a start.
    ///
    /// - If the operator has written another one since (version 0), both count until one of a leader takes the operator's place: the
    ///   operator's lines may be of an earlier time, or have few of the servers that have what was committed. This server must have
    ///   promised the epoch of that version: each leader that it follows gives the operator's configuration a later version.
    ///   Otherwise it has only heard of that version, and if an ensemble begins anew after a loss, its epochs may come to that one again.
    /// - Beside the older configuration of a dynamic file it counts if that one has come in force after it.
    ///
    /// * `promised`: the last one before `view` that was of a promised epoch, if `view` was not. `beside`: versions of the older configurations that
    ///   came in force after `view`. `proposed`: what `.dynamic.next` has from the time before the operator wrote, oldest first. Those that are
    ///   newer than the last one in force count together with it.
    pub fn see_last_in_force(
        &mut self,
        view: View,
        promised: Option<View>,
        beside: &BTreeSet<i64>,
        proposed: Vec<View>,
    ) {
        let accepted = self.accepted;
        let is_promised = |view: &View| view.is_promised(accepted);
        match self.view.version {
            0 if self.settings.reconfigs => {
                let last = Some(view).filter(is_promised).or(promised.filter(is_promised));
                let Some(last) = last else { return };
                let is_newer = |known: &View| last.version < known.version && is_promised(known);
                let newer: Vec<View> = proposed.into_iter().filter(is_newer).collect();
                self.seen.in_force_before = std::iter::once(last).chain(newer).collect();
            }
            version if beside.contains(&version) => self.see_view(view),
            _ => {}
        }
    }

    /// Whether the operator's configuration (version 0) stands before others that this server knows: those of its history, which do not
    /// count, or the last one in force, which counts as well.
    pub fn has_outranked_views(&self) -> bool {
        !self.seen.outranked.is_empty() || !self.seen.in_force_before.is_empty()
    }

    /// Notes what `.dynamic.next` has.
    ///
    /// * `views`: oldest first. `newest_counts`: whether the newest counts, too; the others do.
    pub fn see_saved_views(&mut self, views: Vec<View>, newest_counts: bool) {
        self.seen.saved = views.iter().map(|view| view.version).collect();
        self.seen.is_newest_unread = !newest_counts && !views.is_empty();
        let count = views.len() - usize::from(self.seen.is_newest_unread);
        views.into_iter().take(count).for_each(|view| self.see_view(view));
    }

    /// Looks for a proposed configuration in a payload that is appended to the history.
    ///
    /// * `knows_all`: this server has seen every configuration that was proposed or committed before.
    pub(super) fn see_payload(&mut self, payload: &Bytes, knows_all: bool) -> bool {
        let Some(view) = (self.finds_view)(payload) else { return false };
        self.warn_if_ignored(&view);
        let newest = self.newest_version();
        if knows_all && newest < view.version {
            self.seen.followed = Some((view.version, newest));
        }
        self.see_logged_view(view);
        true
    }

    /// Notes what this server's history says: configuration `version` follows `before`.
    pub fn see_order(&mut self, version: i64, before: i64) {
        self.seen.followed = Some((version, before));
    }

    /// The history was truncated, or begins anew with a tree that names its configurations itself: of the configurations in it
    /// only those stay that are `kept`.
    pub(super) fn retain_logged_views(&mut self, kept: impl Fn(i64) -> bool) {
        self.seen.in_history.retain(|version| kept(*version));
        self.seen.outranked.retain(|view| kept(view.version));
        self.seen.followed.take_if(|(version, _)| !kept(*version));
    }

    /// The log could not be truncated: the configurations in it count again, unless a tree was installed since, which has named its own.
    pub(super) fn restore_logged_views(&mut self) {
        if let Some((in_history, outranked)) = self.seen.before_cut.take() {
            (self.seen.in_history, self.seen.outranked) = (in_history, outranked);
        }
    }

    /// Puts the configuration before the newest in the history in force: the leader proposed the newest after that one was
    /// committed. Later would be too late: a tree that replaces the history names the newest alone. Returns whether there was one.
    ///
    /// It takes the place of what came before it, but not of a configuration that an operator has written: all of the history may be older
    /// than that.
    pub(super) fn activate_followed(&mut self, out: &mut Vec<Action>) -> bool {
        let Some(&committed) = self.seen.in_history.iter().nth_back(1) else { return false };
        if self.view.version == 0 {
            self.earlier.retain(|view| committed <= view.version);
            self.retain_logged_views(|version| committed <= version);
            return false;
        }
        let committed = self.earlier.iter().find(|view| view.version == committed).cloned();
        committed.is_some_and(|view| self.activate(view, out).is_some())
    }

    /// The proposed configuration, if it is to follow the one in force here and no other: one reconfiguration is under way at a
    /// time, so the configuration that the proposed one follows was committed. `None` where there is an oracle, which may let one
    /// voter commit alone.
    pub(super) fn next_in_turn(&self) -> Option<&View> {
        let is_in_turn = self.oracle.is_none()
            && self.earlier.is_empty()
            && self.next_follows()? <= self.view.version;
        self.next.as_ref().filter(|_| is_in_turn)
    }

    /// Version of the configuration that the proposed one follows, where the history says so.
    pub fn next_follows(&self) -> Option<i64> {
        let next = self.next.as_ref()?;
        self.seen.followed.filter(|(version, _)| *version == next.version).map(|(_, before)| before)
    }

    /// Puts a committed configuration in force, if it is newer than the one in force. Returns the one that it replaces.
    pub(super) fn activate(&mut self, view: View, out: &mut Vec<Action>) -> Option<View> {
        let view = self.read_view(view);
        if !self.settings.reconfigs || view.version <= self.view.version {
            return None;
        }
        self.earlier.retain(|proposed| view.version < proposed.version);
        self.next.take_if(|next| next.version <= view.version);
        self.retain_logged_views(|version| view.version < version);
        let before = std::mem::replace(&mut self.view, view.clone());
        self.notes.push(Note::Reconfigured { version: view.version });
        let outranked = std::mem::take(&mut self.seen.outranked);
        outranked.into_iter().for_each(|known| self.see_logged_view(known));
        std::mem::take(&mut self.seen.in_force_before)
            .into_iter()
            .for_each(|known| self.see_view(known));
        let is_last = self.next.is_none();
        if is_last {
            self.seen.saved.clear();
            self.seen.is_newest_unread = false;
        }
        out.push(Action::ViewCommitted { view, is_last });
        Some(before)
    }

    /// The configuration that the leader of `epoch` commits with its epoch: one that an earlier leader proposed and did not
    /// commit, or the one in force. The first configuration gets a version of its own.
    pub(super) fn next_view(&self, epoch: Epoch) -> View {
        let mut view = self.next.as_ref().unwrap_or(&self.view).clone();
        if view.version == 0 && self.settings.reconfigs {
            view.version = Zxid::new(epoch, 0).to_wire();
        }
        view
    }

    /// NEWLEADER names a configuration: the one in force at the leader, or one that it has proposed and not committed, as
    /// Java's leaders do. Text that is no configuration is ignored, as in Java.
    pub(super) fn hear_view(&mut self, text: &Bytes) {
        self.seen.named = None;
        if text.len() <= 1 {
            return;
        }
        match View::from_bytes(text) {
            Ok(view) => {
                self.seen.named = Some(view.version);
                self.warn_if_ignored(&view);
                self.see_view(view);
            }
            Err(error) => {
                tracing::warn!(target: crate::model::STRANGERS, %error, "the configuration in NEWLEADER can't be read and is ignored: check that all servers run versions that work together");
            }
        }
    }

    /// A configuration that was proposed to this server in a later epoch than that of the leader, which does not know it: members have lost
    /// their data and kept their configuration files, this server as well, so what it has acknowledged of that configuration is gone.
    /// The configuration may be in force at a server that is down, and another leader would serve beside this one (world 6000062284).
    ///
    /// `None` as well for a server that no configuration lets vote: it decides nothing.
    pub(super) fn later_view_unknown_to_leader(&self, epoch: Epoch) -> Option<i64> {
        let version = self.next.as_ref()?.version;
        let is_of_later_epoch = Zxid::from_wire(version).is_some_and(|at| epoch < at.epoch());
        let is_known = self.seen.named.is_some_and(|named| version <= named);
        (is_of_later_epoch && !is_known && self.is_voter(self.me)).then_some(version)
    }

    /// The history of an open epoch is on disk: forgets each configuration that is not in it and is newer than the one that NEWLEADER
    /// named, because it was never committed.
    pub(super) fn forget_dead_views(&mut self, out: &mut Vec<Action>) {
        let named = self.seen.named;
        self.forget_views(|version| named.is_some_and(|named| version <= named), out);
    }

    /// Forgets each configuration that is not in the history, unless it `stays`.
    fn forget_views(&mut self, stays: impl Fn(i64) -> bool, out: &mut Vec<Action>) {
        let SeenViews { in_history, in_force_before, .. } = &mut self.seen;
        let counts = |view: &View| in_history.contains(&view.version) || stays(view.version);
        // The last one in force is first, and was committed.
        let last = in_force_before.first().map(|last| last.version);
        in_force_before.retain(|view| last == Some(view.version) || counts(view));
        self.earlier.retain(counts);
        if !self.next.as_ref().is_none_or(counts) {
            self.next = self.earlier.pop();
        }
        self.save_next(out);
    }

    /// Before an election: if the newest configuration in `.dynamic.next` did not count at the start, and a leader has named it since, its
    /// members are dialed. Other configurations that a leader has named are saved, and their members dialed, with the ACK of NEWLEADER.
    pub(super) fn dial_saved_views(&mut self, out: &mut Vec<Action>) {
        let newest = self.next.as_ref().map(|next| next.version);
        if self.seen.is_newest_unread && newest == self.seen.saved.last().copied() {
            self.save_next(out);
        }
    }

    /// Before an election: if the history has transactions of an epoch whose NEWLEADER this server has not acknowledged, a
    /// synchronisation with the leader of that epoch was interrupted. Configurations that were proposed before that epoch and are not
    /// in that history are forgotten.
    ///
    /// A leader proposes once its epoch is open, so no quorum has logged such a configuration. Nor has this server acknowledged a
    /// NEWLEADER that named it, which may be committed although no log has it: a named one is from before the leader's first proposal.
    pub(super) fn forget_outlived_views(&mut self, out: &mut Vec<Action>) {
        if self.is_unsure {
            return; // Its epoch may not be known.
        }
        let (last, acknowledged) = (self.history.last(), self.current);
        if last.epoch() <= acknowledged || last.counter() == 0 {
            return;
        }
        let named_through = Zxid::new(acknowledged, 0).to_wire();
        let begin = Zxid::new(last.epoch(), 0).to_wire();
        self.forget_views(|version| version <= named_through || begin <= version, out);
    }

    /// Has `.dynamic.next` written, or removed. A configuration that is on its way to the log is saved once the log has it, so that
    /// a saved configuration that the log lacks was never acknowledged as part of it.
    ///
    /// All configurations that count are saved, not the newest alone: a tree that replaced the history names one, so after a
    /// restart nothing else names those before it, and any of them may be in force elsewhere.
    pub(super) fn save_next(&mut self, out: &mut Vec<Action>) {
        let newest = self.next.as_ref().map(|next| next.version);
        let (flushed, last) = (self.flushed.to_wire(), self.history.last().to_wire());
        let is_on_its_way = newest.is_some_and(|version| flushed < version && version <= last);
        let proposed = || self.earlier.iter().chain(&self.next);
        let is_saved = proposed().map(|view| view.version).eq(self.seen.saved.iter().copied())
            && !self.seen.is_newest_unread;
        if is_saved || is_on_its_way || !self.settings.reconfigs {
            return;
        }
        let views: Vec<View> = proposed().cloned().collect();
        self.seen.saved = views.iter().map(|view| view.version).collect();
        self.seen.is_newest_unread = false;
        out.push(match views.is_empty() {
            false => Action::ViewsProposed { views },
            true => Action::ViewForgotten,
        });
    }

    /// The newest committed configuration, given that the history of the leader of `epoch` is committed through `through`: one in
    /// that history, or the one that NEWLEADER named. The named one may be of a later epoch than the leader's, where data was lost
    /// and configuration files were not; of the leader's own epoch it is committed only as part of the history, because Java's
    /// leaders name what they have only proposed. A configuration that is in neither may be uncommitted.
    pub(super) fn committed_view(&self, epoch: Epoch, through: Zxid) -> Option<&View> {
        let begin = Zxid::new(epoch, 0);
        let (begin, through) = (begin.to_wire(), through.max(begin).to_wire());
        let is_of_other_epoch = |version: i64| {
            version <= begin || Zxid::from_wire(version).is_some_and(|at| epoch < at.epoch())
        };
        let is_committed = |&&View { version, .. }: &&View| {
            version <= through && self.seen.in_history.contains(&version)
                || self.seen.named == Some(version) && is_of_other_epoch(version)
        };
        self.next.iter().chain(self.earlier.iter().rev()).find(is_committed)
    }
}
