//! Feeds inputs to the [`Member`] and performs its actions.

use super::audit_log::AuditQueue;
use super::clock::Clock;
use super::inbox::{Event, Inbox, Waiting};
use super::operator_requests::PendingRequests;
use super::peers::Peers;
use super::pipeline::{self, HandedOver, LogBatch, Pipeline};
use super::publish::Published;
use super::replica_report::{self, Report};
use super::role_log::{self, Roles};
use super::snapshots;
use crate::member::configured::SnapshotStyle;
use crate::member::{Action, Ended, Input, ListenAddress, Member, Now, SnapshotJob, turn};
use crate::metrics::Registry;
use crate::model::Zxid;
use crate::net::{election, reply_at_once};
use crate::request::{ClientCommand, Shared};
use crate::store::log_thread::LogQueue;
use crate::store::worker;
use crate::store::{self, Disk, Draft, Folders, log_read};
use crate::tree::Tree;
use crate::tree::rebuild::Comparison;
use crate::zab::{self, LearnerConnectionId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Inputs processed before their actions are performed, so that one flush covers every append in them.
const BATCH_MAX: usize = 1024;

/// The driver flushes itself only if the last flush was not slower than this, because its clock and new connections wait meanwhile.
const QUICK_FLUSH: Duration = Duration::from_millis(1);

/// Loads the tree from the files, with the number of transactions whose logged digests it does not fit; or fails with the reason.
pub type Loader = dyn Fn() -> Result<(Tree, Comparison), String> + Send + Sync;

/// The parts of the server that the driver moves values between.
pub struct Parts<D> {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub inbox: Arc<Inbox>,
    pub log: LogQueue,
    pub disk: D,
    pub folders: Folders,
    pub snapshot_style: SnapshotStyle,
    pub metrics: Arc<Registry>,
    pub clock: Clock,
    /// Connections to the other servers of the ensemble; `None`: standalone.
    pub peers: Option<Peers>,
    /// Logs and counts elections and roles; `None`: standalone.
    pub roles: Option<Roles>,
    /// Takes the client address of a new configuration.
    pub client_ports: UnboundedSender<ListenAddress>,
    pub loader: Arc<Loader>,
    /// `None`: there is no audit log.
    pub audit: Option<AuditQueue>,
}

/// The driver: the thread that has it runs one turn after the other.
pub struct Driver<D> {
    parts: Parts<D>,
    pipeline: Pipeline,
    operator_requests: PendingRequests,
    published: Published,
    waiting: Waiting,
    actions: Vec<Action>,
    /// How many clients the thread that runs the turn sends replies to itself.
    direct_replies_max: u32,
    /// Reports of the flush that this turn did itself.
    flushed: Vec<Event>,
    /// How long the last flush took.
    last_flush: Duration,
    /// When the inputs of this turn were taken.
    now: Now,
    ended: Option<Ended>,
}

impl<D: Disk + Clone + 'static> Driver<D> {
    /// * `first`: actions that the `Member` asked for during the start.
    pub fn new(parts: Parts<D>, first: Vec<Action>) -> Self {
        Self {
            pipeline: Pipeline::new(parts.metrics.clone()),
            now: now(parts.clock),
            operator_requests: PendingRequests::default(),
            published: Published::new(parts.audit.clone()),
            parts,
            waiting: Waiting::default(),
            actions: first,
            direct_replies_max: 0,
            flushed: Vec::new(),
            last_flush: Duration::MAX,
            ended: None,
        }
    }

    /// Steps the `Member` with everything in the inbox and with the time, and performs its actions. Does nothing once the server
    /// has ended.
    ///
    /// * `direct_replies_max`: clients to whom this thread sends replies itself; the tasks of the others do.
    pub fn turn(&mut self, direct_replies_max: u32) {
        if self.ended.is_some() {
            return;
        }
        self.direct_replies_max = direct_replies_max;
        self.parts.inbox.take(&mut self.waiting);
        let Waiting { mut events, mut commands } = std::mem::take(&mut self.waiting);
        turn::run(self, &mut events, &mut commands, BATCH_MAX);
        if !self.flushed.is_empty() {
            std::mem::swap(&mut events, &mut self.flushed);
            self.direct_replies_max = 1;
            turn::run(self, &mut events, &mut commands, BATCH_MAX);
        }
        self.waiting = Waiting { events, commands }; // Keeps their memory.
    }

    /// How the server has ended; `None`: it runs.
    pub fn ended(&self) -> Option<Ended> {
        self.ended.clone()
    }

    /// Monotonic microseconds at which there is something to do even if no input comes.
    pub fn deadline_us(&mut self) -> u64 {
        self.parts.member.next_deadline_us()
    }

    fn step(&mut self, input: Input) {
        self.parts.member.step(self.now, input, &mut self.actions);
    }

    fn on_quorum_input(&mut self, input: Input) {
        let requests = self.parts.member.learner_requests;
        self.step(input);
        let requests = self.parts.member.learner_requests - requests;
        if requests > 0 && self.parts.member.replica.prepares() {
            self.pipeline.prepared_own(requests, self.parts.clock.now_us() - self.now.us);
        }
    }

    /// Performs actions in order. Log commands reach the log thread together, before any task is woken and before packets for
    /// learners and the leader are sent. Only where a connection begins, ends or gets a tree, its packets are sent earlier: none
    /// of them depends on a log command of the same turn, because an ACK is put only after the flush was reported.
    fn perform_all(&mut self) {
        if self.actions.is_empty() {
            return;
        }
        let mut log = Vec::new();
        let mut handed = HandedOver::new(self.parts.member.replica.mode());
        let mut wakers = Vec::new();
        let mut actions = std::mem::take(&mut self.actions);
        turn::perform_in_order(actions.drain(..), &mut self.ended, |action| {
            match action {
                Action::Log(command) => {
                    handed.note(&command);
                    log.push(command);
                }
                Action::Wake(waker) => wakers.push(waker),
                Action::Answer { ask, answer } => self.operator_requests.answer(ask, answer),
                Action::ChangeConfigFiles(change) => {
                    return self.parts.peers.as_ref()?.change_config_files(&change);
                }
                action => self.parts.perform(action),
            }
            None
        });
        self.actions = actions; // Keeps its memory.
        if handed.records > 0 {
            self.note_handed_over(handed, self.now.us);
        }
        self.hand_over(&mut log);
        if let Some(peers) = &mut self.parts.peers {
            peers.flush();
        }
        reply_at_once(self.direct_replies_max, || {
            wakers.into_iter().for_each(std::task::Waker::wake);
        });
    }

    fn hand_over(&mut self, log: &mut Vec<store::Command>) {
        if self.flushes_itself(log) {
            let flushed = &mut self.flushed;
            self.parts.log.run_or_send(log, &mut |event| {
                flushed.push(Event::Input(Input::Log(event)));
            });
        } else {
            self.parts.log.send_all(log);
        }
    }

    /// Whether this thread flushes instead of the log thread, which saves a change of threads: only the one connected client,
    /// whose request this is, waits meanwhile. Not after another flush in the same turn, and not on the log thread, because
    /// both send replies themselves.
    fn flushes_itself(&self, log: &[store::Command]) -> bool {
        matches!(log, [store::Command::Append { .. }])
            && self.direct_replies_max == 0
            && self.last_flush <= QUICK_FLUSH
            && self.parts.peers.is_none()
            && self.parts.shared.conns.count() <= 1
    }

    fn note_handed_over(&mut self, handed: HandedOver, prepared_us: u64) {
        let at_us = self.parts.clock.now_us();
        if let Some(sizes) = handed.sizes {
            self.parts.metrics.proposal_size.record(sizes, at_us);
        }
        let HandedOver { through, records, births, .. } = handed;
        // A learner's writes are prepared by its leader.
        let prepared_us = self.parts.member.replica.prepares().then_some(prepared_us);
        self.pipeline.handed_over(LogBatch { through, records, at_us, births }, prepared_us);
    }
}

impl<D: Disk + Clone + 'static> turn::TurnDriver for Driver<D> {
    type Event = Event;

    fn is_stop(event: &Event) -> bool {
        matches!(event, Event::Input(Input::Stop))
    }

    fn takes_commands(&self) -> bool {
        !self.parts.member.is_stopping()
    }

    fn on_event(&mut self, event: Event) {
        let (parts, now) = (&mut self.parts, self.now);
        match event {
            Event::Input(input) => {
                if let Input::Log(worker::Event::Flushed(report)) = &input {
                    self.pipeline.flushed(report, now.us, now.wall_ms);
                    self.last_flush = report.write_took + report.sync_took.unwrap_or_default();
                }
                self.step(input);
            }
            Event::Quorum(event) => {
                if let Some(input) = parts.peers.as_mut().and_then(|peers| peers.take(event)) {
                    self.on_quorum_input(input);
                }
            }
            Event::Election(event) => {
                if let Some(input) = parts.on_election(event) {
                    self.step(input);
                }
            }
            Event::Report(to) => {
                let replica = &parts.member.replica;
                let mut report = Report::of(replica, parts.roles.as_ref(), parts.clock);
                if let Some(peers) = &parts.peers {
                    report.observers = peers.observers(replica_report::observers(replica));
                }
                // The connection that asked may be closed.
                let _gone = to.send(report);
            }
            Event::OperatorRequest(request) => {
                let input = self.operator_requests.put(request);
                self.step(input);
            }
            Event::ResetLearners => parts.peers.as_mut().into_iter().for_each(Peers::reset_figures),
            Event::Sessions(to) => {
                let replica = &parts.member.replica;
                let _gone = to.send((replica.session_dues(), replica.local_dues()));
            }
        }
    }

    fn read_clock(&mut self) {
        self.now = now(self.parts.clock);
    }

    fn on_commands(&mut self, commands: &mut dyn Iterator<Item = ClientCommand>) {
        let now = self.now;
        // A learner's writes are prepared by its leader.
        let prepares = self.parts.member.replica.prepares();
        let mut taken = pipeline::Taken::default();
        for command in commands {
            if prepares {
                self.pipeline.take(&command, now.us, &mut taken);
            }
            // The end of a session is rare, so the clock is read for it alone.
            let began_us = pipeline::closes(&command).then(|| self.parts.clock.now_us());
            self.step(Input::Client(command));
            if let Some(began_us) = began_us {
                self.pipeline.closed(1, self.parts.clock.now_us() - began_us);
            }
        }
        self.pipeline.prepared_taken(taken, || self.parts.clock.now_us() - now.us);
        self.read_clock();
    }

    fn on_time(&mut self) {
        let (before, first) =
            (self.parts.member.replica.stats.sessions_expired, self.actions.len());
        self.step(Input::Timer);
        let is_own =
            |action: &&Action| matches!(action, Action::Log(store::Command::Append { .. }));
        // The server's own transactions: ends of sessions, deletions of containers.
        let own = self.actions[first..].iter().filter(is_own).count() as u64;
        let expired = self.parts.member.replica.stats.sessions_expired - before;
        if own + expired > 0 {
            let took_us = self.parts.clock.now_us() - self.now.us;
            self.pipeline.prepared_own(own, took_us);
            self.pipeline.closed(expired, took_us);
        }
        let (parts, now) = (&mut self.parts, self.now);
        if let Some(roles) = &mut parts.roles {
            roles.publish(&mut parts.member, &|| parts.peers.as_ref()?.port_error(), now.us);
        }
        self.published.publish(&mut parts.member.replica, &parts.metrics, &parts.shared, now);
    }

    fn perform(&mut self) {
        self.perform_all();
        if let (Some(roles), Some(peers)) = (&mut self.parts.roles, &mut self.parts.peers) {
            roles.publish_relayed(&self.parts.member.replica, peers.take_relaying());
        }
    }
}

impl<D: Disk + Clone + 'static> Parts<D> {
    fn on_election(&mut self, report: election::Report) -> Option<Input> {
        let (peers, member) = (self.peers.as_mut()?, &mut self.member);
        let next = || member.next_election_connection().expect("a member has election connections");
        peers.take_election(report, next)
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::WriteSnapshot(job) => self.write_snapshot(job),
            Action::DiscardSnapshot(draft) => self.discard(draft),
            Action::LoadTree => self.load_tree(),
            Action::ReadLog { connection, from, through, limit_bytes } => {
                self.read_log(connection, from, through, limit_bytes);
            }
            Action::MoveClientPort(place) => {
                let _stopping = self.client_ports.send(place);
            }
            action => {
                if let Some(peers) = &mut self.peers {
                    peers.perform(action);
                }
            }
        }
    }

    fn write_snapshot(&self, job: SnapshotJob) {
        let (disk, dir, shared) =
            (self.disk.clone(), self.folders.snapshots.clone(), self.shared.clone());
        let (inbox, style, metrics) =
            (self.inbox.clone(), self.snapshot_style, self.metrics.clone());
        let begun = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let began = Instant::now();
            let draft =
                match snapshots::draft(&disk, &dir, &shared, job.frozen, style, !job.is_leaders) {
                    Ok(draft) => draft,
                    Err(error) => {
                        if let Some(failed) = Input::snapshot_failed(&error) {
                            inbox.put_input(failed);
                        }
                        None
                    }
                };
            snapshots::note(&metrics, job.zxid(), draft.as_ref(), began.elapsed());
            inbox.put_input(Input::SnapshotWritten { job, draft });
        });
        if let Err(error) = begun {
            tracing::error!(%error, "snapshot not taken: its thread can't be started; raise ulimit -u");
            self.metrics.snapshot_error_count.increment();
            self.inbox.put_input(Input::snapshot_not_begun(job));
        }
    }

    fn discard(&self, draft: Draft) {
        let disk = self.disk.clone();
        tokio::task::spawn_blocking(move || draft.discard(&disk));
    }

    /// Loads the tree on a thread of its own. The log was truncated, so the log thread does not write to it meanwhile.
    fn load_tree(&self) {
        let (loader, inbox) = (self.loader.clone(), self.inbox.clone());
        tokio::task::spawn_blocking(move || {
            inbox.put_input(Input::tree_loaded(loader()));
        });
    }

    /// Reads the log on a thread of its own while the log thread writes: only committed transactions are asked for.
    fn read_log(&self, connection: LearnerConnectionId, from: Zxid, to: Zxid, limit_bytes: u64) {
        let learner = replica_report::learner_id(&self.member.replica, connection);
        let (disk, folders, inbox) = (self.disk.clone(), self.folders.clone(), self.inbox.clone());
        tokio::task::spawn_blocking(move || {
            let tail = log_read::read(&disk, &folders, from, to, limit_bytes);
            role_log::warn_of_unread_log(learner, &folders.logs, tail.error.as_deref());
            let read = zab::LogRead { before: tail.before, entries: tail.entries };
            inbox.put_input(Input::LogRead { connection, read });
        });
    }
}

fn now(clock: Clock) -> Now {
    Now { us: clock.now_us(), wall_ms: clock.wall_ms() }
}
