//! What every role of a server shares: promises, history, and what is asked of the disk.

use super::history::Logged;
use super::inputs::TICK_MS;
use super::later_promises::LaterPromises;
use super::seen_views::SeenViews;
use super::{Action, EntryError, History, Input, Note, Promise, Stats, Vote};
use crate::model::{Epoch, ServerId, View, Zxid};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Timeouts and limits of an ensemble.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    pub tick_time_ms: u64,
    /// In ticks of `tick_time_ms`, as `initLimit` and `syncLimit` are.
    pub init_limit: u64,
    pub sync_limit: u64,
    /// `forceSnapshotSync`: every learner gets the whole tree.
    pub always_sends_tree: bool,
    /// `leader.maxConcurrentSnapSyncs`, `leader.maxConcurrentDiffSyncs`: above them an observer is disconnected and has to connect
    /// again. Followers never are.
    pub trees_max: u32,
    pub differences_max: u32,
    /// `commitLogCount`.
    pub window_txns: usize,
    /// `oxkeeper.lagBytes`: bytes of committed transactions that a follower may lack before commits wait for it.
    pub lag_bytes_max: u64,
    /// `reconfigEnabled`.
    pub reconfigs: bool,
    /// `observerMasterPort` is set: a follower serves observers.
    pub relays: bool,
    /// Shortest and longest pause between two resends of a vote.
    pub resend_min_ms: u32,
    pub resend_max_ms: u32,
    /// `observer.election.DelayMs`: an observer that lost its leader waits for less than this before it looks for another.
    pub observer_election_delay_ms: u64,
    /// `observer.reconnectDelayMs`: an observer waits for less than this before it connects to its leader; where followers
    /// serve observers, before it tries all of them once more.
    pub observer_reconnect_delay_ms: u64,
}

impl Settings {
    /// The settings of a member whose zoo.cfg has none of them: a `tickTime` of 2 s, limits of ten ticks.
    pub const DEFAULT: Self = Self {
        tick_time_ms: 2000,
        init_limit: 10,
        sync_limit: 10,
        always_sends_tree: false,
        trees_max: 10,
        differences_max: 10,
        window_txns: 500,
        lag_bytes_max: 64 << 20,
        reconfigs: false,
        relays: false,
        resend_min_ms: 200,
        resend_max_ms: 60_000,
        observer_election_delay_ms: 0,
        observer_reconnect_delay_ms: 0,
    };

    pub(super) const fn init_ticks(&self) -> u64 {
        self.init_limit * self.tick_time_ms / TICK_MS
    }

    pub(super) const fn sync_ticks(&self) -> u64 {
        self.sync_limit * self.tick_time_ms / TICK_MS
    }

    /// Half of tickTime.
    pub(super) const fn ping_ticks(&self) -> u64 {
        let ticks = self.tick_time_ms / 2 / TICK_MS;
        if ticks == 0 { 1 } else { ticks }
    }
}

/// What every role shares.
#[derive(Clone, Debug)]
pub struct Core {
    pub me: ServerId,
    pub settings: Settings,
    /// The configuration in force.
    pub view: View,
    /// The newest configuration that was proposed: until it is committed, every decision needs a quorum of both.
    pub next: Option<View>,
    /// Configurations that were proposed before `next` and after the one in force, oldest first. They may have been
    /// committed, so that every decision needs a quorum of each.
    pub earlier: Vec<View>,
    /// A proposed configuration that does not count here: it has the addresses of the leader that this server's last election ended with.
    pub leaders_view: Option<View>,
    pub(super) seen: SeenViews,
    /// Finds the configuration in a payload that proposes one.
    pub finds_view: fn(&[u8]) -> Option<View>,
    /// Checks that a payload is a transaction with this zxid, so that it can be applied here and read from the log again.
    pub checks_entry: fn(Zxid, &[u8]) -> Result<(), EntryError>,
    pub accepted: Epoch,
    pub current: Epoch,
    pub history: History,
    /// How far the log is durable.
    pub flushed: Zxid,
    /// A data directory without the `initialize` marker, or data in quarantine: what this server has does not count (D-02).
    pub is_unsure: bool,
    /// The tree does not fit the digests in the log: ticks without a leader until it counts nevertheless, because digests may be
    /// wrong in the same way everywhere.
    pub(super) doubt_ticks: u64,
    /// It has doubted its tree, counts nevertheless, and has not taken one from a leader since.
    pub(super) yields: bool,
    /// It has waited for another candidate with as much as it has, and there was none: until it has followed a leader it waits for none
    /// again. Servers whose elections take as long as it waits would elect another each time, and leave that for this one (world 470000101150).
    pub(super) has_stood: bool,
    /// currentEpoch on the disk says that the history is ahead of it.
    is_joining: bool,
    /// The last currentEpoch that was sent to the disk.
    saving_current: Epoch,
    /// It asked the last leader for a tree, and none came.
    pub(super) asked_in_vain: bool,
    /// Servers whose last vote is for one without any history.
    pub(super) for_empty: BTreeSet<ServerId>,
    /// The last answer of the oracle: whether this server may go on without the other of two voters. `None`: there is no
    /// oracle. `Some(false)` before it was asked.
    pub oracle: Option<bool>,
    /// Requests that the disk has not done yet: epochs, truncations, trees.
    promising: u32,
    truncating: u32,
    pub(super) installing: u32,
    /// Transactions that are appended once the log is truncated or the tree installed: before that a crash would leave a log with a
    /// hole.
    held: Vec<Logged>,
    /// The epoch of a leader that has to send its whole tree, because this server could not truncate its log.
    wants_tree: Option<Epoch>,
    /// The role is over: the reason, and the server that leads next without an election, if a reconfiguration named one.
    pub(super) over: Option<(String, Option<ServerId>)>,
    pub(super) later_promises: LaterPromises,
    /// An ERROR has said that no epoch is left.
    pub(super) has_logged_last_epoch: bool,
    /// The epoch of each voter's history by its last vote for itself, since this server's last election began.
    pub(super) vote_epochs: BTreeMap<ServerId, i64>,
    /// The epoch of a leader was adopted.
    pub(super) settled_on: Option<Epoch>,
    pub stats: Stats,
    /// Notes since they were last taken.
    pub notes: Vec<Note>,
    /// Inputs since they were last taken; `None`: they are not recorded.
    #[cfg(feature = "sim")]
    pub tape: Option<Vec<Input>>,
    /// How often this server waited so as not to connect together with others, and how often it dialed a leader or observer master.
    waits: u64,
    dials: u64,
}

impl Core {
    pub(super) fn new(me: ServerId, settings: Settings, view: View, history: History) -> Self {
        Self {
            me,
            settings,
            view,
            next: None,
            earlier: Vec::new(),
            leaders_view: None,
            seen: SeenViews::default(),
            finds_view: |_| None,
            checks_entry: |_, _| Ok(()),
            accepted: Epoch(0),
            current: Epoch(0),
            flushed: history.last(),
            history,
            is_unsure: false,
            doubt_ticks: 0,
            yields: false,
            has_stood: false,
            is_joining: false,
            saving_current: Epoch(0),
            asked_in_vain: false,
            for_empty: BTreeSet::new(),
            oracle: None,
            promising: 0,
            truncating: 0,
            installing: 0,
            held: Vec::new(),
            wants_tree: None,
            over: None,
            later_promises: LaterPromises::default(),
            has_logged_last_epoch: false,
            vote_epochs: BTreeMap::new(),
            settled_on: None,
            stats: Stats::default(),
            notes: Vec::new(),
            #[cfg(feature = "sim")]
            tape: None,
            waits: 0,
            dials: 0,
        }
    }

    /// Ticks of a wait shorter than `delay_ms`, unlike the last one and unlike those of other servers. It is computed without
    /// randomness, which this room does not have: it is enough that servers do not connect together.
    pub(super) fn wait_ticks(&mut self, delay_ms: u64) -> u64 {
        self.waits += 1;
        let mixed =
            (self.me.0 as u64 ^ self.waits.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) % delay_ms.max(1)
            / TICK_MS
    }

    /// Ticks to wait before the leader or observer master is dialed.
    ///
    /// Source: `QuorumPeer.findLearnerMaster`, ZooKeeper 3.9.5.
    pub(super) fn dial_ticks(&mut self) -> u64 {
        if !self.is_observer() {
            return 0;
        }
        if self.settings.relays {
            let (dials, in_turn) = (self.dials, self.view.voters().count() as u64);
            self.dials += 1;
            if dials < in_turn || 0 < in_turn && !dials.is_multiple_of(in_turn) {
                return 0;
            }
        }
        self.wait_ticks(self.settings.observer_reconnect_delay_ms)
    }

    /// Whether all that was appended is durable.
    pub(super) fn is_durable(&self) -> bool {
        self.history.last() <= self.flushed
    }

    pub(super) fn is_settled(&self) -> bool {
        self.is_durable() && self.promising + self.truncating + self.installing == 0
    }

    /// Notes what the disk has done, in any role.
    pub(super) fn note(&mut self, input: &Input, out: &mut Vec<Action>) {
        match input {
            // A flush from before a truncation says nothing of what is appended after it.
            Input::Flushed { through } if self.truncating == 0 => {
                self.flushed = self.flushed.max(*through);
                self.save_next(out);
            }
            Input::Truncated { to } => {
                self.truncating = self.truncating.saturating_sub(1);
                self.seen.before_cut = None;
                self.flushed = self.flushed.min(*to);
                self.append_held(out);
            }
            Input::CannotTruncate { last } => self.on_cannot_truncate(*last),
            Input::TreeViews { views } => {
                views.iter().cloned().for_each(|view| self.see_logged_view(view));
            }
            Input::Oracle { agrees } => self.oracle = self.oracle.map(|_| *agrees),
            Input::Promised { promise, epoch } => {
                self.promising = self.promising.saturating_sub(1);
                match promise {
                    Promise::Accepted => {
                        let (old, new) = (self.accepted.0, epoch.0);
                        assert!(old <= new, "promised to epoch {new} after {old}");
                        self.accepted = *epoch;
                    }
                    // The tree that was received before it counts from here on, if it did not yet.
                    Promise::Current => {
                        (self.current, self.is_unsure) = (*epoch, false);
                        (self.has_stood, self.is_joining) = (false, false);
                    }
                }
            }
            Input::Installed { zxid } => {
                self.installing = self.installing.saturating_sub(1);
                self.flushed = self.flushed.max(*zxid);
                self.append_held(out);
            }
            Input::Tick => self.later_promises.on_tick(self.settings.init_ticks()),
            Input::Flushed { .. }
            | Input::Notification { .. }
            | Input::ElectionConnected { .. }
            | Input::ElectionDisconnected { .. }
            | Input::ElectionUnreached { .. }
            | Input::StandDown { .. }
            | Input::Restore { .. }
            | Input::Propose { .. }
            | Input::Learner { .. }
            | Input::LearnerGone { .. }
            | Input::Progress { .. }
            | Input::Sync { .. }
            | Input::SnapshotBegun { .. }
            | Input::LogRead { .. }
            | Input::Leader { .. }
            | Input::LeaderGone => {}
        }
    }

    /// Ends the role once the current input is processed.
    pub(super) fn end_role(&mut self, why: String) {
        self.over.get_or_insert((why, None));
    }

    /// Notes the epoch of a voter's history by its vote for itself: the voter's currentEpoch, or the epoch of its last zxid, which is later
    /// after a crash between the log and currentEpoch (world 1400000001966 of the simulator).
    pub(super) fn note_vote(&mut self, from: ServerId, vote: &Vote) {
        if vote.leader == from && self.is_voter(from) {
            let of_last =
                Zxid::from_wire(vote.zxid).map_or(vote.epoch, |last| last.epoch().0.into());
            self.vote_epochs.insert(from, vote.epoch.max(of_last));
        }
    }

    /// The epoch of a learner's history, if it is later than the one that it is about to join: the learner comes from another
    /// ensemble, or this one has lost data.
    pub(super) fn foreign_epoch(&self, learner: ServerId, ours: Epoch) -> Option<i64> {
        let theirs = self.vote_epochs.get(&learner).copied();
        theirs.filter(|theirs| i64::from(ours.0) < *theirs)
    }

    /// Whether a quorum of other voters has voted for itself with a history of this server's epoch or a later one. Others may have
    /// been emptied, and elect one of themselves if this server does not stand.
    pub(super) fn others_have_its_epoch(&self) -> bool {
        let own = i64::from(self.current.0);
        let others =
            self.vote_epochs.iter().filter(|(id, epoch)| **id != self.me && own <= **epoch);
        self.is_quorum(&others.map(|(id, _)| *id).collect(), None)
    }

    /// Whether a server's vote for itself was received since this server's last election began. Without it the epoch of its history is
    /// unknown: by its own configuration, which may be older, it may not vote (world 505979).
    pub(super) fn has_voted_for_itself(&self, server: ServerId) -> bool {
        self.vote_epochs.contains_key(&server)
    }

    /// Ends the role if a learner that votes is promised to a later epoch than this server's: it promised a rival that did not
    /// come to lead, and can follow no leader before a later epoch is opened.
    ///
    /// Not for a learner whose history is of a later epoch, or of an unknown one: it would replace this ensemble's history.
    pub(super) fn stands_down_for_promise(
        &mut self,
        learner: ServerId,
        theirs: Epoch,
        ours: Epoch,
    ) -> bool {
        let is_of_this_ensemble =
            self.has_voted_for_itself(learner) && self.foreign_epoch(learner, ours).is_none();
        let can_come = self.later_promises.may(learner) && is_of_this_ensemble;
        let stands_down_for_promise = ours < theirs && self.is_voter(learner) && can_come;
        if stands_down_for_promise {
            self.later_promises.note(learner, self.settings.init_ticks());
            self.later_promises.outbid = self.later_promises.outbid.max(theirs);
            let (id, theirs, ours) = (learner.0, theirs.0, ours.0);
            self.end_role(format!(
                "server {id} has acceptedEpoch {theirs}, later than our epoch {ours}"
            ));
        }
        stands_down_for_promise
    }

    /// Ends the role; in the next one this server goes on without an election, under the `leader` that a reconfiguration named.
    pub(super) fn go_on_under(&mut self, leader: Option<ServerId>, why: String) {
        self.over.get_or_insert((why, leader));
    }

    pub(super) const fn is_over(&self) -> bool {
        self.over.is_some()
    }

    pub(super) fn promise(&mut self, promise: Promise, epoch: Epoch, out: &mut Vec<Action>) {
        self.promising += 1;
        if promise == Promise::Current {
            self.saving_current = epoch;
        }
        self.later_promises.note_promise(self.accepted, epoch, self.settings.init_ticks());
        out.push(Action::Promise { promise, epoch });
    }

    /// The history is about to get ahead of currentEpoch. Only where configurations change is it necessary to know why.
    fn note_joining(&mut self, zxid: Zxid, out: &mut Vec<Action>) {
        let saved = self.current.max(self.saving_current);
        if self.settings.reconfigs && saved < zxid.epoch() && !self.is_joining {
            self.is_joining = true;
            out.push(Action::NoteJoining);
        }
    }

    pub(super) fn append(&mut self, zxid: Zxid, payload: Bytes, out: &mut Vec<Action>) {
        self.note_joining(zxid, out);
        self.history.append(zxid, payload.clone());
        if self.truncating + self.installing == 0 {
            out.push(Action::Append { zxid, payload });
        } else {
            self.held.push((zxid, payload));
        }
    }

    fn append_held(&mut self, out: &mut Vec<Action>) {
        if self.truncating + self.installing == 0 {
            let held = std::mem::take(&mut self.held);
            out.extend(held.into_iter().map(|(zxid, payload)| Action::Append { zxid, payload }));
        }
    }

    fn on_cannot_truncate(&mut self, last: Zxid) {
        self.truncating = self.truncating.saturating_sub(1);
        self.held.clear();
        self.history = History::with_window(last, self.settings.window_txns);
        self.flushed = last;
        self.restore_logged_views();
    }

    /// The leader of this epoch asked for a truncation that can't be made, and is to send its tree. The epoch is promised already, so
    /// the end of this server's log, sent to the leader again, counts as no vote.
    pub(super) fn want_tree(&mut self, epoch: Epoch) {
        self.wants_tree = Some(epoch);
    }

    /// The end of this server's log as sent to the leader of `epoch`; `None`: the server has nothing that counts, or needs the tree.
    pub(super) fn last_for(&self, epoch: Epoch, is_vote: bool) -> Option<Zxid> {
        let wants_tree = !is_vote && self.wants_tree == Some(epoch);
        (!self.is_unsure && !wants_tree).then_some(self.history.last())
    }

    /// * `before_tree`: see [`Action::Truncate`].
    pub(super) fn truncate(&mut self, to: Zxid, before_tree: bool, out: &mut Vec<Action>) {
        self.history.truncate(to);
        if self.truncating == 0 {
            let SeenViews { in_history, outranked, .. } = &self.seen;
            self.seen.before_cut = Some((in_history.clone(), outranked.clone()));
        }
        self.retain_logged_views(|version| version <= to.to_wire());
        self.truncating += 1;
        out.push(Action::Truncate { to, before_tree });
    }

    /// Whether this server's tree does not fit the digests in its log, and does not count for the time being.
    pub const fn is_doubted(&self) -> bool {
        0 < self.doubt_ticks
    }

    /// * `epoch`: the epoch of the leader that sent the tree.
    pub(super) fn install(&mut self, zxid: Zxid, epoch: Epoch, out: &mut Vec<Action>) {
        self.note_joining(zxid, out);
        self.history.restart(zxid);
        self.retain_logged_views(|version| zxid.to_wire() < version);
        self.seen.before_cut = None;
        // Until the leader's epoch is saved, this server's epoch stands for the lost history. If it is not known, this server would
        // claim less with the new history than others acknowledged of the lost one; if it is later than the leader's, as an
        // observer's may be, this server would claim more.
        let is_known = 0 < self.doubt_ticks || Epoch(0) < self.current;
        let knows_epoch = is_known && self.current <= epoch;
        self.is_unsure &= !knows_epoch;
        (self.doubt_ticks, self.yields, self.asked_in_vain) = (0, false, false);
        self.wants_tree = None;
        self.installing += 1;
        out.push(Action::Install { zxid });
    }

    /// Whether all that the leader's history consists of is on disk: appended, truncated and installed.
    pub(super) fn has_history(&self) -> bool {
        self.is_durable() && self.truncating + self.installing == 0
    }

    /// Asserts what holds after each step, in any role.
    pub(super) fn assert_invariants(&self) {
        self.history.assert_invariants();
        let (accepted, current) = (self.accepted.0, self.current.0);
        assert!(current <= accepted, "current epoch {current} beyond the accepted one, {accepted}");
        let (flushed, last) = (self.flushed, self.history.last());
        // What is being truncated may have been flushed.
        assert!(self.truncating > 0 || flushed <= last, "flushed {flushed}, and logged {last}");
        let (held, waits) = (self.held.len(), self.truncating + self.installing);
        assert!(held == 0 || waits > 0, "{held} transactions held, {waits} truncations and trees");
        let versions = || self.current_and_proposed().map(|view| view.version);
        for (before, after) in versions().zip(versions().skip(1)) {
            assert!(before < after, "configuration {after:#x} is to follow {before:#x}");
        }
        let is_alone = self.earlier.is_empty() || self.next.is_some();
        assert!(is_alone, "{} configurations come before none", self.earlier.len());
    }
}
