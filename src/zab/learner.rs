//! A learner: as a follower its disk counts in the quorum, as an observer it does not.
//!
//! Source: `Learner`, `Follower`, `Observer`, ZooKeeper 3.9.5.

use super::leader_link::LeaderLink;
use super::learner_handlers::{Activation, LearnerHandlers};
use super::learner_phase::Phase;
use super::observer_master::ObserverMaster;
use super::packet::{LearnerInfo, PROTOCOL_VERSION, Packet};
use super::{Action, Core, Input, Note, Promise, SyncType};
use crate::model::{Epoch, ServerId, Zxid};
use bytes::Bytes;

/// A learner, from its connection to its end.
#[derive(Clone, Debug)]
pub struct Learner {
    leader: ServerId,
    is_observer: bool,
    phase: Phase,
    /// The leader was elected without a quorum of every configuration that counts here. This server's promise must not open
    /// its epoch: should a quorum without this server open it, those configurations were never committed.
    withholds_promise: bool,
    /// When the leader was elected, its election connection was up, and the other voters that ran could elect no other leader.
    is_needed: bool,
    /// The election connection to the leader, before the leader is reached.
    link: LeaderLink,
    /// Ticks until the leader is dialed: an observer waits (`observer.reconnectDelayMs`).
    pause_ticks: u64,
    /// The leader said that everything through this is committed; applied from UPTODATE on.
    commit_to: Zxid,
    /// UPTODATE came before NEWLEADER's work was done.
    is_up_to_date: bool,
    /// Proposals through this need no ACK any more.
    acked: Zxid,
    pub(super) silent_ticks: u64,
    /// How this server is synchronised with the leader's history.
    sync_type: SyncType,
    /// The observers of this follower, once it serves.
    pub(super) observer_master: Option<Box<ObserverMaster>>,
    /// Transactions received before UPTODATE.
    caught_up: u64,
}

impl Learner {
    /// * `withholds_promise`, `is_needed`: see the fields.
    pub fn new(
        core: &mut Core,
        leader: ServerId,
        withholds_promise: bool,
        is_needed: bool,
        out: &mut Vec<Action>,
    ) -> Self {
        let learner = Self {
            leader,
            is_observer: core.is_observer(),
            phase: Phase::Asking,
            withholds_promise,
            is_needed,
            link: LeaderLink::default(),
            pause_ticks: core.dial_ticks(),
            commit_to: core.history.committed(),
            is_up_to_date: false,
            acked: core.history.last(),
            silent_ticks: 0,
            sync_type: SyncType::Diff,
            observer_master: None,
            caught_up: 0,
        };
        if learner.pause_ticks == 0 {
            learner.dial(core, out);
        }
        learner
    }

    fn dial(&self, core: &Core, out: &mut Vec<Action>) {
        out.push(Action::Connect { leader: self.leader, is_needed: self.is_needed });
        let (accepted, view_version) = (core.accepted, core.view.version);
        let info = LearnerInfo { id: core.me, protocol_version: PROTOCOL_VERSION, view_version };
        let packet = if self.is_observer {
            Packet::ObserverInfo { accepted, info }
        } else {
            Packet::FollowerInfo { accepted, info }
        };
        out.push(Action::ToLeader { bytes: packet.to_bytes() });
    }

    /// Connects anew, and gives up soon if the leader's port refuses.
    pub fn dial_anew(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        out.push(Action::Disconnect);
        let link = self.link;
        let anew = Self::new(core, self.leader, self.withholds_promise, false, out);
        *self = Self { link, ..anew };
    }

    /// Whether the leader may not have been reached, and no other server could be elected when it was.
    pub const fn awaits_leader(&self) -> bool {
        self.is_needed && self.is_asking()
    }

    pub(super) const fn link(&self) -> &LeaderLink {
        &self.link
    }

    pub(super) const fn link_mut(&mut self) -> &mut LeaderLink {
        &mut self.link
    }

    pub const fn leader(&self) -> ServerId {
        self.leader
    }

    pub const fn is_observer(&self) -> bool {
        self.is_observer
    }

    /// Notes what an input says about the election connection to the leader, as long as the leader is not reached.
    pub fn note_election_connection(&mut self, core: &mut Core, input: &Input) {
        if self.is_asking() && self.link.note(self.leader, input) {
            core.end_role(format!("leader {} left before it was reached", self.leader.0));
        }
    }

    /// Whether the leader has not said which epoch it opens.
    pub const fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking)
    }

    /// Whether the leader knows the end of this server's log, and has not sent DIFF, TRUNC or SNAP.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    /// Whether the leader has not sent DIFF, TRUNC or SNAP.
    pub const fn is_before_sync(&self) -> bool {
        matches!(self.phase, Phase::Asking | Phase::Promising { .. } | Phase::Waiting { .. })
    }

    pub const fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Serving { .. })
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, core: &mut Core, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Tick => {
                self.on_tick(core, out);
                self.serve_observers(core, Input::Tick, out);
            }
            Input::Flushed { .. } => {
                self.try_adopt(core, out);
                self.acknowledge(core, out);
            }
            Input::Promised { promise: Promise::Accepted, epoch } => {
                if self.phase == (Phase::Promising { epoch }) {
                    let current = (!self.withholds_promise).then_some(core.current);
                    self.say_ack_epoch(core, epoch, current, out);
                }
            }
            Input::Promised { promise: Promise::Current, epoch } => {
                if self.phase == (Phase::SavingEpoch { epoch }) {
                    self.on_adopted(core, epoch, out);
                }
            }
            Input::Truncated { .. } | Input::Installed { .. } => self.try_adopt(core, out),
            Input::CannotTruncate { last } => {
                tracing::info!(last_zxid = %last, "the log can't be truncated as the leader asked: the leader is asked for its tree");
                if let Some(epoch) = self.phase.epoch() {
                    core.want_tree(epoch);
                }
                self.dial_anew(core, out);
            }
            Input::Leader { packet } => {
                self.silent_ticks = 0;
                if let Err(why) = self.on_packet(core, packet, out) {
                    core.end_role(why);
                }
            }
            Input::Progress { connection: None } => self.silent_ticks = 0,
            Input::LeaderGone => core.end_role(format!("leader {} disconnected", self.leader.0)),
            // `Core` and `Peer` deal with these, or a leader.
            Input::Propose { .. }
            | Input::Notification { .. }
            | Input::ElectionConnected { .. }
            | Input::ElectionDisconnected { .. }
            | Input::ElectionUnreached { .. }
            | Input::StandDown { .. }
            | Input::Restore { .. }
            | Input::Oracle { .. }
            | Input::TreeViews { .. }
            | Input::Sync { .. } => {}
            Input::Learner { .. }
            | Input::LearnerGone { .. }
            | Input::Progress { connection: Some(_) }
            | Input::SnapshotBegun { .. }
            | Input::LogRead { .. } => self.serve_observers(core, input, out),
        }
        self.assert_invariants(core);
    }

    fn assert_invariants(&self, core: &Core) {
        let (commit_to, last) = (self.commit_to, core.history.last());
        assert!(commit_to <= last, "to commit {commit_to}, and the last is {last}");
        let Some(epoch) = self.phase.epoch() else { return };
        let (accepted, current, phase) = (core.accepted.0, core.current.0, self.phase);
        // An observer's promise counts in no quorum.
        let is_promised = self.is_observer || core.accepted == epoch;
        assert!(is_promised, "{phase:?}, and promised to epoch {accepted}");
        if !phase.has_adopted() {
            return assert!(self.observer_master.is_none(), "takes observers while {phase:?}");
        }
        assert!(core.current == epoch, "{phase:?}, and the epoch saved is {current}");
        let (acked, end) = (self.acked, last.max(Zxid::new(epoch, 0)));
        assert!(acked <= end, "acknowledged {acked}, and the last is {end}");
        if let Some(master) = &self.observer_master {
            master.assert_invariants(core);
            let (own, theirs) = (epoch.0, master.epoch().0);
            assert!(own == theirs, "follows in epoch {own}, and sends observers epoch {theirs}");
            assert!(self.is_serving() && !self.is_observer, "takes observers while {phase:?}");
        }
    }

    fn on_packet(
        &mut self,
        core: &mut Core,
        packet: Packet,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match (self.phase, packet) {
            (Phase::Asking, Packet::LeaderInfo { epoch }) => self.on_epoch(core, epoch, out),
            (Phase::Waiting { epoch }, packet) => self.on_first(core, epoch, packet, out),
            (
                Phase::Serving { .. } | Phase::AckedNewLeader { .. },
                packet @ Packet::Ping { .. },
            ) => {
                out.push(Action::FromLeader { packet });
                Ok(())
            }
            // No answer: a Java leader waits only for the ACK of NEWLEADER.
            (_, Packet::Ping { .. }) => Ok(()),
            (
                Phase::Serving { .. },
                packet @ (Packet::Sync | Packet::Revalidate { .. } | Packet::SessionMoved { .. }),
            ) => {
                out.push(Action::FromLeader { packet });
                Ok(())
            }
            (Phase::Synchronising { epoch }, Packet::NewLeader { epoch: new, view }) => {
                if new != epoch {
                    let (new, epoch) = (new.0, epoch.0);
                    return Err(format!(
                        "NEWLEADER of epoch {new}, LEADERINFO was of epoch {epoch}"
                    ));
                }
                core.hear_view(&view);
                if let Some(version) = core.later_view_unknown_to_leader(epoch) {
                    let epoch = epoch.0;
                    return Err(format!(
                        "the leader of epoch {epoch} does not know the proposed configuration {version:x} of a later epoch: members \
                         have lost their data; start the members of that configuration, or see docs/operations.md, \"A proposed \
                         configuration whose members are gone\""
                    ));
                }
                self.phase = Phase::Flushing { epoch };
                self.try_adopt(core, out);
                Ok(())
            }
            (
                Phase::Flushing { .. } | Phase::SavingEpoch { .. } | Phase::AckedNewLeader { .. },
                Packet::UpToDate,
            ) => {
                self.is_up_to_date = true;
                self.try_serve(core, out);
                Ok(())
            }
            (
                Phase::Synchronising { .. }
                | Phase::Flushing { .. }
                | Phase::SavingEpoch { .. }
                | Phase::AckedNewLeader { .. }
                | Phase::Serving { .. },
                packet,
            ) => self.on_history(core, packet, out),
            (phase, packet) => Err(format!("unexpected {} while {phase}", packet.name())),
        }
    }

    fn on_epoch(
        &mut self,
        core: &mut Core,
        epoch: Epoch,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        if epoch < core.accepted && self.is_observer && !core.is_voter(core.me) {
            // An observer's promise counts in no quorum.
            self.say_ack_epoch(core, epoch, None, out);
            return Ok(());
        }
        if epoch < core.accepted || Epoch::LAST < epoch {
            let (it, from, to) = (epoch.0, core.accepted.0, Epoch::LAST.0);
            return Err(format!(
                "the leader's epoch {it} is not between acceptedEpoch here, {from}, and the last epoch, {to}"
            ));
        }
        if epoch == core.accepted {
            // Promised before: to this leader or to another, so it does not count again.
            self.say_ack_epoch(core, epoch, None, out);
        } else {
            self.phase = Phase::Promising { epoch };
            core.promise(Promise::Accepted, epoch, out);
        }
        Ok(())
    }

    fn say_ack_epoch(
        &mut self,
        core: &mut Core,
        epoch: Epoch,
        current: Option<Epoch>,
        out: &mut Vec<Action>,
    ) {
        self.phase = Phase::Waiting { epoch };
        core.notes.push(Note::Synchronising { leader: self.leader, epoch });
        // A leader of Java's counts every learner that names an epoch, even if its history does not count.
        let current = current.filter(|_| !core.is_unsure);
        let last = core.last_for(epoch, current.is_some());
        out.push(Action::ToLeader { bytes: Packet::AckEpoch { current, last }.to_bytes() });
    }

    /// Takes DIFF, TRUNC or SNAP, which the leader chose by the end of this server's log.
    fn on_first(
        &mut self,
        core: &mut Core,
        epoch: Epoch,
        packet: Packet,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let mut acked = None;
        if core.is_unsure && !matches!(packet, Packet::Snap { .. }) {
            return Err(format!("{} although this server has no data that counts", packet.name()));
        }
        match packet {
            Packet::Diff { zxid } => self.commit_to = zxid.min(core.history.last()),
            Packet::Trunc { zxid } => {
                if core.history.last() < zxid {
                    let last = core.history.last();
                    return Err(format!("told to truncate to {zxid}, but our log ends at {last}"));
                }
                core.truncate(zxid, false, out);
                self.commit_to = zxid;
                self.sync_type = SyncType::Trunc { to: zxid };
            }
            Packet::Snap { zxid } if epoch < zxid.epoch() => {
                return Err(format!("SNAP {zxid} from the leader of epoch {}", epoch.0));
            }
            Packet::Snap { zxid } => {
                // Transactions of older epochs beyond the leader's history were never committed. What this very leader
                // proposed stays: the leader may count on it.
                let last = core.history.last();
                if zxid < last && (last.epoch() < epoch || zxid < core.history.committed()) {
                    core.truncate(zxid, true, out);
                }
                self.commit_to = zxid;
                core.install(zxid, epoch, out);
                // With the last connection the leader has forgotten this server's ACKs.
                acked = Some(zxid);
                self.sync_type = SyncType::Snap { zxid };
            }
            packet => return Err(format!("{} in place of DIFF, TRUNC or SNAP", packet.name())),
        }
        self.acked = acked.unwrap_or(core.history.last());
        self.phase = Phase::Synchronising { epoch };
        Ok(())
    }

    fn on_history(
        &mut self,
        core: &mut Core,
        packet: Packet,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        match packet {
            Packet::Proposal { zxid, entry } => {
                core.stats.proposals_heard += u64::from(self.is_serving());
                self.append(core, zxid, entry, out)
            }
            Packet::Commit { zxid } => self.on_commit(core, zxid, out),
            Packet::Inform { zxid, entry } => {
                self.append(core, zxid, entry, out)?;
                self.on_commit(core, zxid, out)
            }
            Packet::CommitAndActivate { zxid, leader } => self.on_decided(core, zxid, leader, out),
            Packet::InformAndActivate { zxid, leader, entry } => {
                self.append(core, zxid, entry, out)?;
                self.on_decided(core, zxid, leader, out)
            }
            packet => Err(format!("unexpected {} while {}", packet.name(), self.phase)),
        }
    }

    /// A reconfiguration is committed, and `leader` is to lead by it.
    fn on_decided(
        &mut self,
        core: &mut Core,
        zxid: Zxid,
        leader: ServerId,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        let Some(view) = core.history.entry(zxid).and_then(|entry| (core.finds_view)(entry)) else {
            return Err(format!("the leader activates {zxid}, which is no reconfiguration here"));
        };
        if !self.is_serving() {
            // It is in force elsewhere, so it is adopted before UPTODATE: this server must decide nothing without it.
            core.adopt(view, Some(leader), self.leader, out);
            return self.on_commit(core, zxid, out);
        }
        let goes_on = core.adopt(view, Some(leader), self.leader, out);
        self.commit_to = zxid.max(self.commit_to);
        let count = self.commit(core, Some(Activation { zxid, leader }), out);
        core.stats.commits_heard += count;
        assert!(goes_on || core.is_over(), "a learner that gives up its leader is not over");
        Ok(())
    }

    fn append(
        &mut self,
        core: &mut Core,
        zxid: Zxid,
        entry: Bytes,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        // The tree takes the zxid in the transaction: with another one it would be ahead of what is committed. An entry that
        // can't be read would end this server at its COMMIT, and at each start from a log that has it.
        (core.checks_entry)(zxid, &entry).map_err(|error| format!("proposal {zxid}: {error}"))?;
        let last = core.history.last();
        if zxid <= last {
            // A leader may propose again what this server has: in a synchronisation, or after a connection ended.
            tracing::debug!(%zxid, last_zxid = %last, "this proposal is in the log already");
            return Ok(());
        }
        if let Some(epoch) = self.phase.epoch().filter(|epoch| *epoch < zxid.epoch()) {
            // No leader has such a history. With it this server would be ahead of every epoch that it may open itself.
            return Err(format!("proposal {zxid} from the leader of epoch {}", epoch.0));
        }
        if zxid.epoch() == last.epoch() && Some(zxid) != last.next() {
            let text = format!(
                "proposal {zxid} after {last}: the proposals between are missing; compare the znodes of the members"
            );
            if !self.is_serving() {
                return Err(text);
            }
            tracing::warn!(target: crate::model::STRANGERS, "{text}"); // As Java's followers do.
        }
        if !self.is_serving() {
            self.caught_up += 1;
        }
        // During a synchronisation the configuration before this one may be in the tree alone.
        core.see_payload(&entry, self.is_serving());
        core.append(zxid, entry, out);
        Ok(())
    }

    fn on_commit(
        &mut self,
        core: &mut Core,
        zxid: Zxid,
        out: &mut Vec<Action>,
    ) -> Result<(), String> {
        if core.history.last() < zxid {
            return Err(format!("{zxid} is committed, but was never proposed to us"));
        }
        self.commit_to = zxid.max(self.commit_to);
        if self.is_serving() {
            let count = self.commit(core, None, out);
            core.stats.commits_heard += count;
        }
        Ok(())
    }

    /// Commits what the leader said is committed, here and at this follower's observers. Returns the number of transactions.
    fn commit(
        &mut self,
        core: &mut Core,
        activation: Option<Activation>,
        out: &mut Vec<Action>,
    ) -> u64 {
        let through = self.commit_to;
        if through <= core.history.committed() {
            return 0;
        }
        assert!(self.is_serving(), "commit {through} while {:?}", self.phase);
        match &mut self.observer_master {
            Some(master) => master.handlers.commit(core, through, activation, out),
            None => LearnerHandlers::default().commit(core, through, activation, out),
        }
    }

    /// History first, then the epoch that stands for it (ZOOKEEPER-4643, 4646, 3911).
    fn try_adopt(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let Phase::Flushing { epoch } = self.phase else { return };
        if core.has_history() {
            core.forget_dead_views(out);
            self.phase = Phase::SavingEpoch { epoch };
            core.promise(Promise::Current, epoch, out);
        }
    }

    fn on_adopted(&mut self, core: &mut Core, epoch: Epoch, out: &mut Vec<Action>) {
        self.phase = Phase::AckedNewLeader { epoch };
        core.settled_on = Some(epoch);
        let zxid = Zxid::new(epoch, 0);
        out.push(Action::ToLeader { bytes: Packet::Ack { zxid }.to_bytes() });
        // Proposals of the new epoch that came before NEWLEADER need an ACK each, unless they are committed; older ones are
        // acknowledged with NEWLEADER.
        self.acked = self.acked.max(zxid).max(self.commit_to);
        self.acknowledge(core, out);
        self.try_serve(core, out);
    }

    fn try_serve(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let Phase::AckedNewLeader { epoch } = self.phase else { return };
        if !self.is_up_to_date {
            return;
        }
        self.phase = Phase::Serving { epoch };
        let zxid = Zxid::new(epoch, 0);
        out.push(Action::ToLeader { bytes: Packet::Ack { zxid }.to_bytes() });
        let through = self.commit_to;
        if let Some(view) = core.committed_view(epoch, through).cloned()
            && !core.adopt(view, None, self.leader, out)
        {
            return;
        }
        core.notes.push(Note::Learns {
            leader: self.leader,
            epoch,
            sync_type: self.sync_type,
            txns: self.caught_up,
        });
        self.commit(core, None, out);
        out.push(Action::Follow { leader: self.leader, epoch });
        if core.settings.relays && !self.is_observer {
            self.observer_master = Some(Box::new(ObserverMaster::new(epoch)));
        }
    }

    /// Acknowledges each proposal that is durable here: Java's leader counts them one by one.
    fn acknowledge(&mut self, core: &Core, out: &mut Vec<Action>) {
        if self.is_observer || !self.phase.has_adopted() {
            return;
        }
        let flushed = core.flushed.min(core.history.last());
        if flushed <= self.acked {
            return;
        }
        let mut bytes = Vec::new();
        let fresh = core.history.zxids_after(self.acked);
        for zxid in fresh.take_while(|zxid| *zxid <= flushed) {
            Packet::Ack { zxid }.encode(&mut bytes);
        }
        self.acked = flushed;
        if !bytes.is_empty() {
            out.push(Action::ToLeader { bytes: bytes.into() });
        }
    }

    fn on_tick(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        if self.link.on_tick() && self.is_asking() {
            out.push(Action::Dial { to: self.leader });
        }
        if let Some(left) = self.pause_ticks.checked_sub(1) {
            self.pause_ticks = left;
            if left == 0 {
                self.dial(core, out);
            }
            return;
        }
        self.silent_ticks += 1;
        let limit = if self.phase.has_adopted() {
            core.later_promises.note_quorum();
            core.settings.sync_ticks()
        } else {
            core.settings.init_ticks()
        };
        if limit < self.silent_ticks {
            core.end_role(format!("leader {} has been silent for too long", self.leader.0));
        }
    }
}
