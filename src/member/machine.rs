//! The machine itself: [`Member::step`] is the table of contents.

use super::asked_snapshots::AskedSnapshots;
use super::clock_watch::ClockWatch;
use super::configuration::{Configuration, all_election_addresses};
use super::disk_work::DiskWork;
use super::elections::Elections;
use super::failure::FailureCause;
use super::quorum_connections::QuorumConnections;
use super::restoring::{Restore, Restoring};
use super::stop::Stop;
use super::unreachable::Reach;
use super::{Action, Ended, Input, Now, QuorumPeer, Settings, SnapshotJob, election_connections};
use crate::model::{Zxid, chain};
use crate::replica::{self, AskedSnapshot, Replica, TICK_MS};
use crate::request::ClientCommand;
use crate::store::Draft;
use crate::store::disk::is_echo;
use crate::store::epoch::EpochFile;
use crate::store::worker::{self, WorkerError};
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::zab::{self, LearnerConnectionId, Packet, Promise, Role};

/// An idle server ticks at least once a second.
const QUIET_TICKS_MAX: u64 = 1000 / TICK_MS;

/// The machine of one server, a member of an ensemble or a standalone server.
pub struct Member {
    pub replica: Replica,
    /// `None`: standalone.
    pub(super) ensemble: Option<Ensemble>,
    disk: DiskWork,
    pub(super) asked_snapshots: AskedSnapshots,
    pub(super) restoring: Restoring,
    stop: Stop,
    /// Ticks of [`TICK_MS`] that `replica` was given.
    ticks: u64,
    /// Ticks through this number are quiet, unless another input comes before them: they only change counters.
    quiet_through: u64,
    /// Requests of learners' clients that came in so far.
    pub learner_requests: u64,
    /// Actions of `replica` that were not translated yet: empty between two steps.
    pub(super) asked: Vec<replica::Action>,
}

/// What only a member of an ensemble has.
pub(super) struct Ensemble {
    pub quorum: QuorumConnections,
    pub elections: Elections,
    configuration: Configuration,
    clocks: ClockWatch,
}

impl Member {
    /// * `now`: the time at which `replica` was made.
    pub fn new(replica: Replica, settings: Settings, now: Now) -> Self {
        let views = replica.peer().core.all_views();
        let ensemble = settings.ensemble.map(|ensemble| Ensemble {
            quorum: QuorumConnections::new(
                ensemble.observer_master_port,
                ensemble.tracked_messages,
            ),
            elections: Elections::new(
                ensemble.election.clone(),
                all_election_addresses(views, ensemble.my_id),
            ),
            configuration: Configuration::new(ensemble),
            clocks: ClockWatch::default(),
        });
        Self {
            replica,
            ensemble,
            disk: DiskWork::new(settings.log_read),
            asked_snapshots: AskedSnapshots::default(),
            restoring: Restoring::default(),
            stop: Stop::default(),
            ticks: now.us / 1000 / TICK_MS,
            quiet_through: 0,
            learner_requests: 0,
            asked: Vec::new(),
        }
    }

    /// Asks for what comes before the first input: ports, and a copy of the static configuration file.
    pub fn start(&mut self, now: Now, out: &mut Vec<Action>) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.configuration.start(self.replica.peer().core.all_views(), out);
            ensemble.elections.step(now, election_connections::Input::Start, out);
        }
    }

    /// Takes the first snapshot, of the tree that was loaded at the start.
    pub fn snapshot(&mut self, now: Now, out: &mut Vec<Action>) {
        self.replica.snapshot(&mut self.asked);
        self.translate(now, out);
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Action>) {
        self.replica.set_now(now.us);
        self.catch_up(now, out);
        match input {
            Input::Timer => self.pass_time(now, out),
            Input::Client(command) => self.on_command(now, command, out),
            Input::Log(event) => self.on_log(now, event, out),
            Input::SnapshotWritten { job, draft } => self.on_snapshot(now, job, draft, out),
            Input::TakeSnapshot { ask } => {
                self.asked_snapshots.ask(ask);
                self.begin_asked_snapshot(now, out);
            }
            Input::PlanRestore { ask, question } => {
                self.restoring.plan(&self.replica, ask, question, out)
            }
            Input::Restore { ask, plan, tree, draft } => {
                self.restore(now, Restore { ask, plan, tree, draft }, out);
            }
            Input::TreeSent(frozen) => {
                if let Some(ensemble) = &mut self.ensemble {
                    ensemble.quorum.end_tree(frozen);
                }
                self.step_replica(now, replica::Input::SnapshotEnded(frozen), out);
            }
            Input::TreeLoaded { tree, differs_since } => {
                self.step_replica(now, replica::Input::Rebuilt { tree, differs_since }, out);
            }
            Input::LogRead { connection, read } => {
                self.step_zab(now, zab::Input::LogRead { connection, read }, out);
            }
            Input::Oracle { agrees } => self.step_zab(now, zab::Input::Oracle { agrees }, out),
            Input::LearnerConnected { connection, address } => {
                self.on_learner_connected(connection, address, out);
            }
            Input::Packets { from, packets } => self.on_packets(now, from, packets, out),
            Input::LeaderTree { dial, zxid, tree } => {
                self.on_leader_tree(now, dial, zxid, tree, out);
            }
            Input::Progress { from } => self.on_progress(now, from, out),
            Input::Disconnected { from, why } => self.on_disconnected(now, from, why, out),
            Input::Election(input) => self.step_elections(now, input, out),
            Input::Stop => self.stop.begin(now),
            Input::Failed { reason, exit, cause } => {
                out.push(Action::End(Ended::Failed { reason, exit, cause }));
            }
        }
        self.process_election_reports(now, out);
        self.restoring.end(&self.replica, out);
        self.end_if_stopped(now, out);
        self.assert_invariants();
    }

    fn step_elections(
        &mut self,
        now: Now,
        input: election_connections::Input,
        out: &mut Vec<Action>,
    ) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.elections.step(now, input, out);
        }
    }

    /// Processes what the election connections have reported during this input.
    fn process_election_reports(&mut self, now: Now, out: &mut Vec<Action>) {
        while let Some(report) =
            self.ensemble.as_mut().and_then(|ensemble| ensemble.elections.next_report())
        {
            self.step_zab(now, report, out);
        }
    }

    /// An id for an election connection that was accepted; `None`: this server is standalone.
    pub fn next_election_connection(&mut self) -> Option<election_connections::ConnectionId> {
        Some(self.ensemble.as_mut()?.elections.next_connection())
    }

    /// Which other members this server has election connections with.
    pub fn reach(&self) -> Reach {
        let view = &self.replica.peer().core.view;
        self.ensemble.as_ref().map(|ensemble| ensemble.elections.reach(view)).unwrap_or_default()
    }

    /// Election messages that were sent again over a new connection.
    pub fn election_messages_resent(&self) -> u64 {
        self.ensemble.as_ref().map_or(0, |ensemble| ensemble.elections.resent())
    }

    /// Gives `replica` the ticks that have passed. Once the server stops, it gets no more: sessions that expire
    /// meanwhile would each be a write to wait for, and with a slow disk there might always be another one.
    fn pass_time(&mut self, now: Now, out: &mut Vec<Action>) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.elections.pass_time(now, out);
        }
        self.tick_through(now.us / 1000 / TICK_MS, now, out);
    }

    /// Gives `replica` the ticks before this input that were known to be quiet. Ticks after those wait for [`Input::Timer`]:
    /// a process that stood still hears its peers before it counts them as silent.
    fn catch_up(&mut self, now: Now, out: &mut Vec<Action>) {
        let before = out.len();
        self.tick_through(self.quiet_through.min(now.us / 1000 / TICK_MS), now, out);
        self.quiet_through = self.ticks;
        if cfg!(any(debug_assertions, feature = "sim")) {
            assert_eq!(before, out.len(), "a quiet tick does nothing: {:?}", &out[before..]);
        }
    }

    fn tick_through(&mut self, due: u64, now: Now, out: &mut Vec<Action>) {
        while self.ticks < due {
            self.ticks += 1;
            if !self.stop.is_begun() {
                self.step_replica(now, replica::Input::Tick { wall_ms: now.wall_ms }, out);
            }
        }
    }

    /// Monotonic microseconds at which [`Input::Timer`] is due, if no other input comes before.
    pub fn next_deadline_us(&mut self) -> u64 {
        let quiet = if self.stop.is_begun() { 0 } else { self.replica.quiet_ticks() };
        self.quiet_through = self.ticks + quiet.min(QUIET_TICKS_MAX);
        let tick_us = (self.quiet_through + 1) * TICK_MS * 1000;
        let elections =
            self.ensemble.as_ref().and_then(|ensemble| ensemble.elections.deadline_us());
        elections.map_or(tick_us, |deadline_us| deadline_us.min(tick_us))
    }

    fn on_command(&mut self, now: Now, command: ClientCommand, out: &mut Vec<Action>) {
        self.step_replica(now, replica::Input::Command { command, wall_ms: now.wall_ms }, out);
    }

    fn step_zab(&mut self, now: Now, input: zab::Input, out: &mut Vec<Action>) {
        self.step_replica(now, replica::Input::Peer(input), out);
    }

    fn step_replica(&mut self, now: Now, input: replica::Input, out: &mut Vec<Action>) {
        self.replica.step(input, &mut self.asked);
        self.translate(now, out);
    }

    /// Turns what `replica` asked for into actions, in its order, and keeps this machine's own state in step with it.
    fn translate(&mut self, now: Now, out: &mut Vec<Action>) {
        let mut asked = std::mem::take(&mut self.asked);
        for action in asked.drain(..) {
            match action {
                replica::Action::Wake(waker) => out.push(Action::Wake(waker)),
                replica::Action::Stop(reason) => {
                    let (reason, cause) = (reason.to_owned(), FailureCause::Other);
                    out.push(Action::End(Ended::Failed { reason, exit: 1, cause }));
                }
                replica::Action::SendTree { connection, frozen } => {
                    self.send_tree(now, connection, frozen, out)
                }
                replica::Action::Peer(action) => self.on_zab_action(now, action, out),
                replica::Action::PlaceRestored => {
                    self.disk.replace_all();
                    self.restoring.place(out);
                }
                action => self.disk.translate(action, out),
            }
        }
        self.asked = asked; // Keeps its memory.
    }

    fn on_zab_action(&mut self, now: Now, action: zab::Action, out: &mut Vec<Action>) {
        match action {
            zab::Action::Promise { promise, epoch } => self.disk.save_epoch(promise, epoch, out),
            zab::Action::Truncate { to, before_tree } => {
                self.disk.truncate(to, before_tree, out);
            }
            zab::Action::ReadLog { connection, from, through } => {
                let limit_bytes = self.log_read_limit();
                out.push(Action::ReadLog { connection, from, through, limit_bytes });
            }
            zab::Action::SendNotification { to, notification } => {
                let message = notification.encode();
                self.step_elections(now, election_connections::Input::Send { to, message }, out);
            }
            zab::Action::DialAll => {
                self.step_elections(now, election_connections::Input::DialAll, out);
            }
            zab::Action::Dial { to } => {
                self.step_elections(now, election_connections::Input::Dial { to }, out);
            }
            zab::Action::NoteJoining => out.push(Action::Log(worker::Command::NoteJoining)),
            zab::Action::ViewsProposed { views } => {
                let Some(ensemble) = &self.ensemble else { return };
                let all = self.replica.peer().core.all_views();
                let inputs = ensemble.configuration.on_proposed(views, all, out);
                inputs.into_iter().for_each(|input| self.step_elections(now, input, out));
            }
            zab::Action::ViewForgotten => {
                let Some(ensemble) = &self.ensemble else { return };
                let all = self.replica.peer().core.all_views();
                let input = ensemble.configuration.on_forgotten(all, out);
                self.step_elections(now, input, out);
            }
            zab::Action::ViewCommitted { view, is_last } => {
                let Some(ensemble) = &mut self.ensemble else { return };
                let all = self.replica.peer().core.all_views();
                let inputs = ensemble.configuration.on_committed(view, is_last, all, out);
                inputs.into_iter().for_each(|input| self.step_elections(now, input, out));
            }
            zab::Action::ToLearner { connection, bytes } => {
                self.with_connections(|quorum, _| {
                    quorum.send_to_learner(connection, bytes, now, out);
                });
            }
            zab::Action::ToLeader { bytes } => {
                self.with_connections(|quorum, _| quorum.send_to_leader(bytes, now, out));
            }
            zab::Action::CloseLearner { connection, why } => {
                self.with_connections(|quorum, peer| {
                    let is_leading = matches!(peer.role(), Role::Leading(_));
                    quorum.close_learner(connection, &why, is_leading, now, out);
                })
            }
            zab::Action::Connect { leader, is_needed } => self.with_connections(|quorum, peer| {
                quorum.dial(leader, is_needed, &peer.core, now, out)
            }),
            zab::Action::Disconnect => self.with_connections(|quorum, _| quorum.hang_up(now, out)),
            // `replica` has dealt with these.
            zab::Action::Append { .. }
            | zab::Action::Commit { .. }
            | zab::Action::Install { .. }
            | zab::Action::SendSnapshot { .. }
            | zab::Action::FromLearner { .. }
            | zab::Action::FromLeader { .. }
            | zab::Action::Lead { .. }
            | zab::Action::Follow { .. }
            | zab::Action::StopServing
            | zab::Action::Look { .. } => {}
        }
    }

    fn log_read_limit(&self) -> u64 {
        let tree = self.replica.shared().state.tree.read();
        self.disk.log_read_limit(tree.approximate_data_size(), tree.node_count() as u64)
    }

    /// Whether the server was asked to stop.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_begun()
    }

    fn end_if_stopped(&self, now: Now, out: &mut Vec<Action>) {
        if self.stop.is_begun() {
            let is_member = self.ensemble.is_some();
            self.stop.end_if_done(now, self.replica.outstanding(), is_member, out);
        }
    }
}

/// Reports of the disk.
impl Member {
    fn on_snapshot(
        &mut self,
        now: Now,
        job: SnapshotJob,
        draft: Option<Draft>,
        out: &mut Vec<Action>,
    ) {
        self.step_replica(now, replica::Input::SnapshotEnded(job.frozen), out);
        let is_placed = draft.is_some_and(|draft| self.disk.place(job, draft, out));
        if !is_placed {
            self.asked_snapshots.lost(&job, out);
        }
        self.begin_asked_snapshot(now, out);
    }

    /// Begins the snapshot that an operator wants, if it can begin now.
    fn begin_asked_snapshot(&mut self, now: Now, out: &mut Vec<Action>) {
        if !self.asked_snapshots.wants_one() {
            return;
        }
        match self.replica.asked_snapshot(&mut self.asked) {
            AskedSnapshot::Begun(frozen) => self.asked_snapshots.begun(frozen),
            AskedSnapshot::Later => {}
            AskedSnapshot::Refused => self.asked_snapshots.refuse(out),
        }
        self.translate(now, out);
    }

    /// Restores a tree: its snapshot gets its name once the tree is in place.
    fn restore(&mut self, now: Now, restore: Restore, out: &mut Vec<Action>) {
        self.restoring.begin(&mut self.replica, restore, &mut self.asked, out);
        self.translate(now, out);
    }

    fn on_restored(&mut self, now: Now, zxid: Zxid, out: &mut Vec<Action>) {
        self.restoring.placed(zxid);
        self.replica.restored(zxid, &mut self.asked);
        self.translate(now, out);
    }

    /// Processes a report of the log thread.
    fn on_log(&mut self, now: Now, event: worker::Event, out: &mut Vec<Action>) {
        let input = match event {
            worker::Event::Flushed(report) => {
                let flushed = replica::Input::Flushed { through: report.through };
                return self.step_replica(now, flushed, out);
            }
            worker::Event::Truncated { to } => zab::Input::Truncated { to },
            worker::Event::CannotTruncate { last } => zab::Input::CannotTruncate { last },
            worker::Event::Placed { zxid, replaces: true, .. } => zab::Input::Installed { zxid },
            worker::Event::Placed { zxid, bytes, replaces: false } => {
                self.asked_snapshots.placed(zxid, bytes, out);
                return self.begin_asked_snapshot(now, out);
            }
            worker::Event::Restored { zxid } => return self.on_restored(now, zxid, out),
            worker::Event::EpochSaved { file, epoch } => {
                let promise = match file {
                    EpochFile::Accepted => Promise::Accepted,
                    EpochFile::Current => Promise::Current,
                };
                zab::Input::Promised { promise, epoch }
            }
            worker::Event::Failed(error) => {
                return out.extend(failure(&error).map(Action::End));
            }
        };
        self.step_zab(now, input, out);
    }
}

/// Connections between a leader and its learners.
impl Member {
    fn on_learner_connected(
        &mut self,
        connection: LearnerConnectionId,
        address: String,
        out: &mut Vec<Action>,
    ) {
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.accept(connection, address, out);
        }
    }

    /// Whether packets of this connection are processed.
    pub fn is_current(&self, from: QuorumPeer) -> bool {
        self.ensemble.as_ref().is_some_and(|ensemble| ensemble.quorum.is_current(from))
    }

    /// Packets that were read together are processed one by one. One of them may end its connection, or begin another: the
    /// packets after it are the old leader's, and must not be taken for those of the next leader's connection.
    fn on_packets(
        &mut self,
        now: Now,
        from: QuorumPeer,
        packets: Vec<Packet>,
        out: &mut Vec<Action>,
    ) {
        if !self.is_current(from) {
            return;
        }
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.note_packets(from, &packets, now);
            if let QuorumPeer::Learner(connection) = from
                && ensemble.quorum.close_if_early(connection, now, out)
            {
                return self.step_zab(now, zab::Input::LearnerGone { connection }, out);
            }
        }
        for packet in packets {
            if !self.is_current(from) {
                return;
            }
            let input = match from {
                QuorumPeer::Learner(connection) => {
                    self.learner_requests += u64::from(matches!(packet, Packet::Request(_)));
                    zab::Input::Learner { connection, packet }
                }
                QuorumPeer::Leader { .. } => {
                    self.compare_clocks(&packet, now);
                    zab::Input::Leader { packet }
                }
            };
            self.step_zab(now, input, out);
        }
    }

    fn compare_clocks(&mut self, packet: &Packet, now: Now) {
        if let Packet::Proposal { entry, .. } | Packet::Inform { entry, .. } = packet
            && let Some(ensemble) = &mut self.ensemble
            && let Some(ahead_s) = ensemble.clocks.ahead_s(entry, now)
        {
            tracing::warn!(
                ahead_s,
                "the leader's clock is ahead of this server's: compare both with a time server"
            );
        }
    }

    fn on_leader_tree(
        &mut self,
        now: Now,
        dial: u64,
        zxid: Zxid,
        tree: Box<Tree>,
        out: &mut Vec<Action>,
    ) {
        let from = QuorumPeer::Leader { dial };
        if !self.is_current(from) {
            return;
        }
        if let Some(ensemble) = &mut self.ensemble {
            ensemble.quorum.note_packets(from, &[Packet::Snap { zxid }], now);
        }
        self.step_replica(now, replica::Input::LeaderTree { zxid, tree }, out);
    }

    fn on_progress(&mut self, now: Now, from: QuorumPeer, out: &mut Vec<Action>) {
        if self.is_current(from) {
            let connection = match from {
                QuorumPeer::Learner(connection) => Some(connection),
                QuorumPeer::Leader { .. } => None,
            };
            self.step_zab(now, zab::Input::Progress { connection }, out);
        }
    }

    fn on_disconnected(&mut self, now: Now, from: QuorumPeer, why: String, out: &mut Vec<Action>) {
        let Some(ensemble) = &mut self.ensemble else { return };
        let is_news = ensemble.quorum.end(from, &why, now);
        match from {
            QuorumPeer::Learner(connection) => {
                self.step_zab(now, zab::Input::LearnerGone { connection }, out);
            }
            QuorumPeer::Leader { .. } if is_news => {
                self.step_zab(now, zab::Input::LeaderGone, out);
            }
            QuorumPeer::Leader { .. } => {} // This server had already closed that dial's connection.
        }
    }

    /// A tree for a learner that has disconnected is not sent: its freeze ends at once.
    fn send_tree(
        &mut self,
        now: Now,
        connection: LearnerConnectionId,
        frozen: Frozen,
        out: &mut Vec<Action>,
    ) {
        let quorum = self.ensemble.as_mut().map(|ensemble| &mut ensemble.quorum);
        match quorum.filter(|quorum| quorum.is_current(QuorumPeer::Learner(connection))) {
            Some(quorum) => quorum.send_tree(connection, frozen, now, out),
            None => self.step_replica(now, replica::Input::SnapshotEnded(frozen), out),
        }
    }

    /// Does something with the connections of a member of an ensemble.
    fn with_connections(&mut self, act: impl FnOnce(&mut QuorumConnections, &zab::Peer)) {
        if let Some(ensemble) = &mut self.ensemble {
            act(&mut ensemble.quorum, self.replica.peer());
        }
    }
}

/// How a failure of the log thread ends the server; `None`: the disk had failed earlier, and that failure was reported where it occurred.
fn failure(error: &WorkerError) -> Option<Ended> {
    if is_echo(error) {
        return None;
    }
    let (what, exit) = match error {
        // As Java: a server that can't write snapshots must not go on (D-34).
        WorkerError::Snapshot(_) => ("write snapshot", 10),
        WorkerError::Log(_) => ("the log's disk failed", 1),
        WorkerError::Epoch(_)
        | WorkerError::Purge(_)
        | WorkerError::Doubt(_)
        | WorkerError::Difference(_) => ("dataDir's disk failed", 1),
        // Files of both folders.
        WorkerError::RenameReplaced(_) | WorkerError::Mark(_) => {
            ("dataDir's or dataLogDir's disk failed", 1)
        }
    };
    let cause = FailureCause::of_disk(error);
    Some(Ended::Failed { reason: format!("{what}: {}", chain(error)), exit, cause })
}
