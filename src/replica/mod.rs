//! `zab`, `request` and `tree` as one machine: the order between logging, applying, events and answers.
//!
//! A [`Replica`] is a `core::Core`, which every server has, and a `role::Role`, which holds what only that role has.
//! [`Replica::step`] is the table of contents; `dispatch` has the tables of what each role does with each command and each
//! packet. Nothing here blocks, reads a clock or touches a socket; whatever must happen outside is an [`Action`].
//!
//! The outcome of a step is its list of actions, and by design what clients' connections read in `request::Shared`: the tree;
//! answers and events, which are appended to the outboxes of connections under the exclusive lock of the tree when they answer
//! a transaction, because a read of the same connection must find either both the change and its event, or neither; the
//! clock and the flags, stored in one place each (`Core::advance_clock`, `Core::set_service`); and the count of outstanding
//! writes (`Throttle::end`), which goes down with the answers.
//!
//! # Invariants
//! 1. A transaction is applied only once `zab` has committed it, and `zab` commits only what the log holds.
//! 2. Applying, its events and its answer are one critical section under the exclusive lock; tasks are woken after it.
//! 3. What takes the write path without a transaction (sync, a refused body) is answered in its place in the order.
//! 4. `invariants` asserts what can be seen of these between two steps, and what holds of the role.

mod apply;
pub mod configuration;
mod containers;
mod core;
mod digest_mismatches;
mod dispatch;
mod eager_acl_check;
mod ended_sessions;

mod forwarded;
mod forwarding;
mod inflight;
mod interface;
mod invariants;
mod learner_packets;
mod learner_requests;
mod local_sessions;
mod observer_master;
mod observer_questions;
mod observers_requests;
mod quiet;
mod read_only;
mod replies;
mod request_processor;
mod restore;
mod role;
mod session_log;
mod sessions;
mod snapshot_schedule;
mod stats;
mod tree_sync;
mod unapplied_requests;
mod zxid_rollover;

pub use interface::{Action, AskedSnapshot, Input, Mode, Settings, TICK_MS};
pub use restore::{RestorePlan, RestoreQuestion, RestoreRefusal};
pub use stats::{Figures, Samples, Stats, WriteSample};

use crate::model::sync::Arc;
use crate::model::{ServerId, SessionId, Zxid};
use crate::request::{
    Batch, ChangeCounts, ClientCommand, Namespaces, OpenSession, ReopenSession, Sessions, Shared,
};
use crate::tree::txn;
use crate::zab::{self, LearnerConnectionId, Packet};
use bytes::Bytes;
pub use configuration::LastConfigs;
use core::{Core, OutOfZxids};
use dispatch::{FromLearner, LeadersAnswer, Open, Ping, Reopen, SessionAfterClose, Writes};
use forwarding::Forwarding;
use learner_packets::{LeaderPacket, LearnerPacket};
use request_processor::RequestProcessor;
use role::Role;
use std::ops::{Deref, DerefMut};

/// One server: `zab`, `request` and `tree` as one machine.
pub struct Replica {
    core: Core,
    role: Role,
}

impl Replica {
    /// A standalone server, whose tree is what its disk held.
    ///
    /// * `now_ms`: monotonic milliseconds; sessions found on disk get their whole timeout from here.
    pub fn standalone(shared: Arc<Shared>, settings: Settings, now_ms: u64) -> Self {
        let last = shared.state.tree.read().last_zxid();
        let zab = zab::Peer::alone(ServerId(1), last);
        // Settings of ensemble members only.
        let settings = Settings {
            local_sessions: false,
            local_upgrades: false,
            quorum_sync: false,
            read_only: false,
            ..settings
        };
        let mut core = Core::new(shared, zab, settings, now_ms);
        let role = Role::standalone(&mut core);
        Self { core, role }
    }

    /// A member of an ensemble, whose tree is what its disk held. It rests until its first election is over.
    pub fn member(
        shared: Arc<Shared>,
        mut zab: zab::Peer,
        settings: Settings,
        now_ms: u64,
    ) -> Self {
        configuration::adopt_entry_readers(&mut zab);
        configuration::set_views_of_history(&mut zab, LastConfigs::of(&shared.state.tree.read()));
        let mut core = Core::new(shared, zab, settings, now_ms);
        let role = Role::resting(&mut core);
        Self { core, role }
    }

    /// The tree does not fit the digests in the log from which it was loaded.
    pub const fn doubt_tree(&mut self) {
        self.core.mismatches.differ();
    }

    /// The tree has had other digests than its leaders' since this transaction, and an earlier run has noted that.
    pub const fn know_difference(&mut self, since: Zxid) {
        self.core.mismatches.know_difference(since);
    }

    /// Whether the tree is in doubt, and no leader's tree or digest has ended it since.
    pub const fn doubts_tree(&self) -> bool {
        self.core.mismatches.tree_differs()
    }

    pub const fn mode(&self) -> Mode {
        self.role.mode()
    }

    pub const fn shared(&self) -> &Arc<Shared> {
        &self.core.shared
    }

    pub const fn peer(&self) -> &zab::Peer {
        &self.core.zab
    }

    /// What has happened among the servers since the last call.
    pub fn notes(&mut self) -> Vec<zab::Note> {
        std::mem::take(&mut self.core.zab.core.notes)
    }

    /// Inputs of `zab` since the last call; they are recorded from the first call on.
    #[cfg(feature = "sim")]
    pub fn tape(&mut self) -> Vec<zab::Input> {
        self.core.zab.core.tape.replace(Vec::new()).unwrap_or_default()
    }

    /// Syncs that wait for what was proposed before them.
    pub fn pending_syncs(&self) -> usize {
        self.core.inflight.iter().filter(|inflight| inflight.is_sync()).count()
    }

    /// Whether this server keeps all sessions and processes writes: a standalone server or a leader.
    pub fn prepares(&self) -> bool {
        self.role.processor().is_some()
    }

    /// Number of global sessions kept: all of them on a standalone server or a leader, on a learner those of its own
    /// clients.
    pub fn session_count(&self) -> usize {
        self.role.sessions().map_or(0, Sessions::len)
    }

    /// Writes that exceeded a hard quota, by namespace.
    pub fn quota_refusals(&mut self) -> &mut Namespaces {
        match self.role.processor_mut() {
            Some(processor) => processor.prep.quota_refusals(),
            None => &mut self.core.past.quota_refusals,
        }
    }

    /// Changes to znodes in all leaderships.
    pub fn changes(&self) -> ChangeCounts {
        let past = self.core.past.changes;
        let now = self.role.processor().map(|processor| processor.prep.changes());
        let ChangeCounts { noted, forgotten } = now.unwrap_or_default();
        ChangeCounts { noted: past + noted, forgotten: past + forgotten }
    }

    /// Every global session with the monotonic milliseconds at which it expires, in no order.
    pub fn session_dues(&self) -> Vec<(u64, SessionId)> {
        self.role.sessions().map_or_else(Vec::new, Sessions::dues)
    }

    /// Every session that only this server knows, in the same way; `None` where sessions are never local.
    pub fn local_dues(&self) -> Option<Vec<(u64, SessionId)>> {
        self.core.settings.local_sessions.then(|| self.core.locals.dues())
    }

    /// Number of sessions that only this server knows.
    pub fn local_count(&self) -> usize {
        self.core.locals.len()
    }

    /// Outstanding requests.
    pub fn outstanding(&self) -> usize {
        let asked = || self.core.inflight.iter().filter(|inflight| inflight.conn.is_some()).count();
        match &self.role {
            Role::Standalone(_) => self.core.inflight.len(),
            Role::Resting(_) | Role::ReadOnly | Role::Leading(_) => asked(),
            Role::Following(forwarding) | Role::Observing(forwarding) => {
                asked() + forwarding.requests.len()
            }
        }
    }

    /// Starts a snapshot of the tree as it is, unless one is under way.
    pub fn snapshot(&mut self, out: &mut Vec<Action>) {
        self.core.snapshot(out);
    }

    /// Starts a snapshot that an operator asks for.
    pub fn asked_snapshot(&mut self, out: &mut Vec<Action>) -> AskedSnapshot {
        if dispatch::snapshot(self.mode()) == dispatch::AskedFor::Refused {
            return AskedSnapshot::Refused;
        }
        let Some(frozen) = self.core.shared.state.tree.write().freeze() else {
            return AskedSnapshot::Later;
        };
        self.core.write_snapshot(frozen, out);
        AskedSnapshot::Begun(frozen)
    }

    /// Sets the time of the inputs that follow, in monotonic microseconds. It can be later than the ticks, as after a pause of the process: a
    /// role that begins at a late tick gives sessions their whole timeouts from here on.
    pub fn set_now(&mut self, now_us: u64) {
        self.core.now_us = self.core.now_us.max(now_us);
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Tick { wall_ms } => {
                self.core.wall_ms = wall_ms;
                self.on_tick(out);
            }
            Input::Command { command, wall_ms } => {
                self.core.wall_ms = wall_ms;
                self.on_command(command, out);
            }
            Input::Peer(input) => self.on_peer(input, out),
            Input::LeaderTree { zxid, tree } => {
                self.core.arrived = Some(tree);
                self.on_peer(zab::Input::Leader { packet: Packet::Snap { zxid } }, out);
                self.core.arrived = None; // Unless it was installed, it is dropped.
            }
            Input::Rebuilt { tree, differs_since } => {
                if let Some(input) = self.core.rebuilt(tree, differs_since, out) {
                    self.hand_over(input, out);
                }
            }
            Input::Flushed { through } => self.hand_over(zab::Input::Flushed { through }, out),
            Input::SnapshotEnded(frozen) => self.core.end_snapshot(frozen),
        }
        self.end_step(out);
    }

    fn end_step(&mut self, out: &mut Vec<Action>) {
        out.extend(self.core.wakers.drain(..).map(Action::Wake));
        invariants::assert_invariants(&self.core, &self.role);
    }

    /// Ticks from now on that only count time, if no other input comes. The number may be too small, never too large.
    pub fn quiet_ticks(&self) -> u64 {
        self.role.quiet_ticks(&self.core)
    }

    fn on_tick(&mut self, out: &mut Vec<Action>) {
        self.core.advance_clock();
        self.core.zab.step(zab::Input::Tick, &mut self.core.zab_out);
        self.carry_out(0, out);
        self.role.consider_read_only(&mut self.core);
        if matches!(self.role, Role::Resting(_)) {
            return self.core.release_late_connects();
        }
        self.core.expire_locals();
        if self.core.now_ms % quiet::SWEEP_MS < TICK_MS {
            self.core.close_sessionless();
            if let Some(sessions) = self.role.sessions() {
                self.core.close_silent(sessions, self.role.processor().is_some());
            }
        }
        let proposed = match &mut self.role {
            Role::Standalone(processor) => processor.on_tick(&mut self.core),
            Role::Leading(leading) => leading.processor.on_tick(&mut self.core),
            Role::Resting(_) | Role::ReadOnly | Role::Following(_) | Role::Observing(_) => Ok(()),
        };
        self.conclude(proposed, 0, out);
        if let Role::Leading(leading) = &mut self.role
            && let Some(why) = leading.stands_down(&self.core)
        {
            self.stand_down(why);
            self.carry_out(self.core.now_us, out);
        }
    }

    fn on_command(&mut self, command: ClientCommand, out: &mut Vec<Action>) {
        match command {
            ClientCommand::Open(open) => self.on_open(open, out),
            ClientCommand::Reopen(reopen) => self.on_reopen(reopen, out),
            ClientCommand::Writes(batch) => self.on_writes(&batch, out),
            ClientCommand::Gone { conn } => {
                match dispatch::session_after_close(self.mode()) {
                    SessionAfterClose::Keep => {}
                    SessionAfterClose::Forget => {
                        self.forward(|forwarding, _| forwarding.gone(&conn))
                    }
                }
                tracing::debug!(peer = %conn.peer, "connection ended");
            }
        }
    }

    fn on_open(&mut self, open: OpenSession, out: &mut Vec<Action>) {
        let (mode, core) = (self.mode(), &mut self.core);
        match dispatch::open(mode, core.settings.local_sessions) {
            Open::Drop => {}
            Open::Close => open.conn.close(&mut core.wakers),
            Open::Local => {
                let is_read_only = mode == Mode::ReadOnly;
                core.open_local(&open, self.role.sessions(), is_read_only);
            }
            Open::Process => self.process(0, out, |processor, core| processor.open(core, open)),
            Open::Forward => self.forward(|forwarding, core| forwarding.open(core, open, out)),
        }
    }

    fn on_reopen(&mut self, reopen: ReopenSession, out: &mut Vec<Action>) {
        let (mode, core) = (self.mode(), &mut self.core);
        match dispatch::reopen(mode, core.locals.contains(reopen.session)) {
            Reopen::Drop => {}
            Reopen::Local => core.reopen_local(&reopen, mode == Mode::ReadOnly),
            Reopen::ReadOnly => core.reopen_read_only(&reopen),
            Reopen::Process => self.process(0, out, |processor, core| {
                processor.reopen(core, &reopen);
                Ok(())
            }),
            Reopen::Forward => {
                self.forward(|forwarding, core| forwarding.reopen(core, reopen, out))
            }
        }
    }

    fn on_writes(&mut self, batch: &Batch, out: &mut Vec<Action>) {
        match dispatch::writes(self.mode()) {
            Writes::Drop => self.core.drop_batch(batch),
            Writes::Refuse => self.core.refuse_writes(batch),
            Writes::Process => self.process(batch.received_us, out, |processor, core| {
                processor.on_writes(core, batch)
            }),
            Writes::Forward => {
                self.forward(|forwarding, core| forwarding.on_writes(core, batch, out));
            }
        }
    }

    /// Has the request processor do something that may need zxids.
    fn process(
        &mut self,
        now_us: u64,
        out: &mut Vec<Action>,
        request: impl FnOnce(&mut RequestProcessor, &mut Core) -> Result<(), OutOfZxids>,
    ) {
        let processor = self.role.processor_mut().expect("`dispatch` knows which roles process");
        let proposed = request(processor, &mut self.core);
        self.conclude(proposed, now_us, out);
    }

    /// Carries out what follows from proposals. Without zxids the role ends.
    fn conclude(&mut self, proposed: Result<(), OutOfZxids>, now_us: u64, out: &mut Vec<Action>) {
        self.carry_out(now_us, out);
        if proposed.is_err() {
            self.out_of_zxids(out);
            self.carry_out(self.core.now_us, out);
        }
    }

    /// Has a learner send its leader something, or handle what its leader sent.
    fn forward(&mut self, request: impl FnOnce(&mut Forwarding, &mut Core)) {
        let forwarding = self.role.forwarding_mut().expect("`dispatch` forwards on learners");
        request(forwarding, &mut self.core);
    }

    fn on_peer(&mut self, input: zab::Input, out: &mut Vec<Action>) {
        if let Some(input) = self.core.keep_until_rebuilt(input, out) {
            self.hand_over(input, out);
        }
    }

    fn hand_over(&mut self, input: zab::Input, out: &mut Vec<Action>) {
        self.core.zab.step(input, &mut self.core.zab_out);
        self.carry_out(self.core.now_us, out);
    }

    /// Carries out the actions of `zab`.
    fn carry_out(&mut self, now_us: u64, out: &mut Vec<Action>) {
        self.role.end_read_only(&mut self.core);
        // What an action leads to comes after the actions that were there before it.
        while !self.core.zab_out.is_empty() {
            let mut actions = std::mem::take(&mut self.core.zab_out);
            for action in actions.drain(..) {
                self.on_action(action, now_us, out);
            }
            if self.core.zab_out.is_empty() {
                self.core.zab_out = actions; // Keeps its memory.
            }
        }
        if self.core.inflight.front().is_some_and(|inflight| inflight.zxid.is_none()) {
            self.commit(None, now_us, out);
        }
    }

    fn commit(&mut self, through: Option<Zxid>, now_us: u64, out: &mut Vec<Action>) {
        apply::commit(&mut self.core, &mut self.role, through, now_us, out);
    }

    fn append(&mut self, zxid: Zxid, entry: Bytes, out: &mut Vec<Action>) {
        match &mut self.role {
            // The request processor has put it into the order.
            Role::Standalone(_) | Role::Leading(_) => {}
            Role::Resting(_) | Role::ReadOnly => {
                forwarding::expect(&mut self.core, None, zxid, entry.clone());
            }
            Role::Following(forwarding) => {
                self.core.figures.samples.heard.extend(txn::born_ms(&entry));
                let asked = forwarding.expected(&entry);
                forwarding::expect(&mut self.core, asked, zxid, entry.clone());
            }
            Role::Observing(forwarding) => {
                let asked = forwarding.expected(&entry);
                forwarding::expect(&mut self.core, asked, zxid, entry.clone());
            }
        }
        self.core.append(zxid, entry, out);
    }

    fn on_action(&mut self, action: zab::Action, now_us: u64, out: &mut Vec<Action>) {
        let core = &mut self.core;
        match action {
            zab::Action::Append { zxid, payload } => self.append(zxid, payload, out),
            zab::Action::Commit { through } => self.commit(Some(through), now_us, out),
            zab::Action::Truncate { to, before_tree } => {
                core.truncate(to);
                out.push(Action::Peer(zab::Action::Truncate { to, before_tree }));
            }
            zab::Action::Install { zxid } => {
                match core.restoring {
                    Some(_) => core.install_restored(out),
                    None => core.install(zxid, out),
                }
                let views = LastConfigs::of(&core.shared.state.tree.read()).views();
                core.zab.step(zab::Input::TreeViews { views }, &mut core.zab_out);
            }
            zab::Action::SendSnapshot { connection, is_member } => {
                let frozen = core.shared.state.tree.write().freeze_for_learner(is_member);
                if let Some(frozen) = frozen {
                    out.push(Action::SendTree { connection, frozen });
                    let begun = zab::Input::SnapshotBegun { connection, zxid: frozen.zxid };
                    core.zab.step(begun, &mut core.zab_out);
                }
            }
            zab::Action::Lead { epoch } => self.role.lead(core, epoch),
            zab::Action::Follow { .. } => {
                self.role.follow(core);
                core.settle_digests(out);
            }
            zab::Action::StopServing => self.role.rest(core),
            zab::Action::FromLearner { connection, packet } => {
                self.on_learner(connection, packet, out)
            }
            zab::Action::FromLeader { packet } => self.on_leader(packet, out),
            action @ (zab::Action::Promise { .. }
            | zab::Action::ToLearner { .. }
            | zab::Action::ReadLog { .. }
            | zab::Action::CloseLearner { .. }
            | zab::Action::Connect { .. }
            | zab::Action::ToLeader { .. }
            | zab::Action::Disconnect
            | zab::Action::SendNotification { .. }
            | zab::Action::DialAll
            | zab::Action::Dial { .. }
            | zab::Action::NoteJoining
            | zab::Action::ViewsProposed { .. }
            | zab::Action::ViewForgotten
            | zab::Action::ViewCommitted { .. }
            | zab::Action::Look { .. }) => out.push(Action::Peer(action)),
        }
    }

    fn on_learner(
        &mut self,
        connection: LearnerConnectionId,
        packet: Packet,
        out: &mut Vec<Action>,
    ) {
        let Some(packet) = LearnerPacket::read(packet) else { return };
        match dispatch::from_learner(self.mode()) {
            FromLearner::Process => {
                let leading = self.role.leading_mut().expect("`dispatch` knows the leading role");
                if leading.on_learner(&mut self.core, connection, packet, out).is_err() {
                    self.out_of_zxids(out);
                }
            }
            FromLearner::Forward => {
                self.forward(|forwarding, core| {
                    forwarding.on_observer(core, connection, packet, out)
                });
            }
            FromLearner::Never => self.assert_unreachable("a learner's packet"),
        }
    }

    fn on_leader(&mut self, packet: Packet, out: &mut Vec<Action>) {
        let Some(packet) = LeaderPacket::read(packet) else { return };
        match packet {
            LeaderPacket::Ping { zxid } => match dispatch::ping(self.mode()) {
                Ping::Answer => self.forward(|forwarding, core| {
                    forwarding.on_ping(core, zxid, out);
                }),
                Ping::AnswerEmpty => {
                    let pongs = learner_packets::pongs(zxid, std::iter::empty());
                    out.extend(pongs.iter().map(core::to_leader));
                }
                Ping::Never => self.assert_unreachable("a leader's ping"),
            },
            LeaderPacket::Revalidate { data } => match dispatch::leaders_answer(self.mode()) {
                LeadersAnswer::Answer => self.forward(|forwarding, core| {
                    forwarding.on_revalidated(core, &data, out);
                }),
                LeadersAnswer::Never => self.assert_unreachable("a leader's answer"),
            },
            LeaderPacket::SessionMoved { session } => match dispatch::leaders_answer(self.mode()) {
                LeadersAnswer::Answer => self.forward(|forwarding, core| {
                    forwarding.on_session_moved(core, session);
                }),
                LeadersAnswer::Never => self.assert_unreachable("a leader's answer"),
            },
            LeaderPacket::Sync => match dispatch::leaders_answer(self.mode()) {
                LeadersAnswer::Answer => self.forward(|forwarding, core| {
                    forwarding.on_synced(core, out);
                }),
                LeadersAnswer::Never => self.assert_unreachable("a leader's answer"),
            },
        }
    }

    /// `zab` passed a packet on that it should have kept from this role: our own bug, but nothing is lost when the packet is
    /// ignored, so only tests and the simulator panic.
    fn assert_unreachable(&self, what: &str) {
        let is_tested = cfg!(any(debug_assertions, feature = "sim"));
        assert!(!is_tested, "{what} reached a server that is {:?}", self.mode());
    }

    /// No zxid is left for a write. A leader stands down, so that another epoch begins; a standalone server has no other
    /// epoch.
    fn out_of_zxids(&mut self, out: &mut Vec<Action>) {
        match self.mode() {
            Mode::Standalone => out.push(Action::Stop("there are no zxids left")),
            Mode::Resting | Mode::ReadOnly | Mode::Leading | Mode::Following | Mode::Observing => {
                self.stand_down("the zxids of this epoch are used up".to_owned());
            }
        }
    }

    fn stand_down(&mut self, why: String) {
        self.core.zab.step(zab::Input::StandDown { why }, &mut self.core.zab_out);
    }
}

/// Lets `replica.stats` and `replica.samples` read as fields of the replica.
impl Deref for Replica {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        &self.core.figures
    }
}

impl DerefMut for Replica {
    fn deref_mut(&mut self) -> &mut Figures {
        &mut self.core.figures
    }
}
