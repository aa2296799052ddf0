//! Feeds inputs to the [`Member`] and performs its actions.

use super::clock::Clock;
use super::peers::Peers;
use super::pipeline::{self, Handed, Pipeline};
use super::publish::Published;
use super::report::Report;
use super::roles::Roles;
use super::snapshots;
use crate::member::{Action, Ended, Input, Member, Now, SnapshotJob};
use crate::metrics::{Registry, SizeValues};
use crate::model::{SessionId, Zxid, chain};
use crate::net::ClientPlace;
use crate::replica::{Mode, TICK_MS};
use crate::request::{ClientCommand, Shared};
use crate::store::disk::is_echo;
use crate::store::worker::{self, WorkerHandle};
use crate::store::{self, Disk, Draft, Folders, log_read};
use crate::tree::{Tree, txn};
use crate::zab::{self, LearnerConnectionId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// Inputs taken in one turn, so that one flush covers every append in them.
const BATCH_MAX: usize = 1024;

/// When each session expires; also those that only this server knows, if it keeps such.
pub type Dues = (Vec<(u64, SessionId)>, Option<Vec<(u64, SessionId)>>);

/// What reaches the driver besides the clients' commands.
pub enum Event {
    Input(Input),
    /// Asks for the figures that only the driver knows.
    Report(oneshot::Sender<Report>),
    /// Asks when each session expires, in monotonic milliseconds.
    Sessions(oneshot::Sender<Dues>),
}

/// Loads the tree from the files; in words, why it can't.
pub type Loader = dyn Fn() -> Result<Tree, String> + Send + Sync;

/// What the driver moves values between.
pub struct Driver<D> {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub commands: UnboundedReceiver<ClientCommand>,
    pub events: UnboundedReceiver<Event>,
    /// For the threads it starts.
    pub sender: UnboundedSender<Event>,
    pub log: WorkerHandle,
    pub disk: D,
    pub folders: Folders,
    pub snapshot_style: snapshots::Style,
    pub metrics: Arc<Registry>,
    pub clock: Clock,
    /// Connections to the other servers of an ensemble, and what becomes of this one among them.
    pub peers: Option<Peers>,
    pub roles: Option<Roles>,
    /// Where clients are to be served after a reconfiguration.
    pub client_ports: UnboundedSender<ClientPlace>,
    pub loader: Arc<Loader>,
}

impl<D: Disk + Clone + 'static> Driver<D> {
    /// Runs until the server ends. `first`: what the member asked for before.
    pub async fn run(mut self, first: Vec<Action>) -> Ended {
        let mut actions = first;
        let mut published = Published::default();
        let mut pipeline = Pipeline::new(self.metrics.clone());
        let mut judged_us = self.clock.now_us();
        let mut commands = Vec::with_capacity(BATCH_MAX);
        let mut events = Vec::with_capacity(BATCH_MAX);
        let mut is_stopping = false;
        let mut timer = tokio::time::interval(Duration::from_millis(TICK_MS));
        timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            if let Some(ended) = self.perform(&mut actions, &mut pipeline, judged_us) {
                return ended;
            }
            let mut peer_inputs = Vec::new();
            tokio::select! {
                biased;
                _ = self.events.recv_many(&mut events, BATCH_MAX) => {}
                () = Peers::next(&mut self.peers, &mut peer_inputs) => {}
                count = self.commands.recv_many(&mut commands, BATCH_MAX), if !is_stopping => {
                    if count == 0 {
                        events.push(Event::Input(Input::Stop));
                    }
                }
                _ = timer.tick() => {}
            }
            for event in events.drain(..) {
                if matches!(event, Event::Input(Input::Stop)) && !is_stopping {
                    is_stopping = true;
                    // Commands that have arrived by now are still performed.
                    commands.extend(std::iter::from_fn(|| self.commands.try_recv().ok()));
                    self.judge(&mut commands, &mut pipeline, &mut actions);
                }
                self.on_event(event, &mut pipeline, &mut actions);
            }
            self.on_peers(peer_inputs, &mut pipeline, &mut actions);
            judged_us = self.clock.now_us();
            if !commands.is_empty() {
                self.judge(&mut commands, &mut pipeline, &mut actions);
                judged_us = self.clock.now_us();
            }
            self.pass_time(&mut pipeline, &mut actions);
            if let Some(roles) = &mut self.roles {
                roles.publish(&mut self.member.replica, self.clock.now_us());
            }
            published.publish(&mut self.member.replica, &self.metrics, self.clock.wall_ms());
        }
    }

    fn now(&self) -> Now {
        Now { us: self.clock.now_us(), wall_ms: self.clock.wall_ms() }
    }

    fn on_event(&mut self, event: Event, pipeline: &mut Pipeline, actions: &mut Vec<Action>) {
        match event {
            Event::Input(input) => {
                let now = self.now();
                if let Input::Log(worker::Event::Flushed(report)) = &input {
                    pipeline.flushed(report, now.us, now.wall_ms);
                }
                self.member.step(now, input, actions);
            }
            Event::Report(to) => {
                // The asker may have gone.
                let _gone =
                    to.send(Report::of(&self.member.replica, self.roles.as_ref(), self.clock));
            }
            Event::Sessions(to) => {
                let replica = &self.member.replica;
                let _gone = to.send((replica.session_dues(), replica.local_dues()));
            }
        }
    }

    fn on_peers(&mut self, inputs: Vec<Input>, pipeline: &mut Pipeline, actions: &mut Vec<Action>) {
        if inputs.is_empty() {
            return;
        }
        let (now, requests) = (self.now(), self.member.learner_requests);
        let judges = self.member.replica.judges();
        for input in inputs {
            self.member.step(now, input, actions);
        }
        if judges {
            let requests = self.member.learner_requests - requests;
            pipeline.judged_own(requests, self.clock.now_us() - now.us);
        }
    }

    fn judge(
        &mut self,
        commands: &mut Vec<ClientCommand>,
        pipeline: &mut Pipeline,
        actions: &mut Vec<Action>,
    ) {
        let now = self.now();
        // A learner judges nothing.
        let judges = self.member.replica.judges();
        let requests = if judges { pipeline.taken(commands, now.us) } else { 0 };
        for command in commands.drain(..) {
            // Rare, so it has its clock read for itself.
            let began_us = pipeline::closes(&command).then(|| self.clock.now_us());
            self.member.step(now, Input::Client(command), actions);
            if let Some(began_us) = began_us {
                pipeline.closed(1, self.clock.now_us() - began_us);
            }
        }
        pipeline.judged(requests, self.clock.now_us() - now.us);
    }

    fn pass_time(&mut self, pipeline: &mut Pipeline, actions: &mut Vec<Action>) {
        let (before, now) = (self.member.replica.stats.sessions_expired, self.now());
        let first = actions.len();
        self.member.step(now, Input::Timer, actions);
        let is_own =
            |action: &&Action| matches!(action, Action::Log(store::Command::Append { .. }));
        // Ends of sessions and of containers.
        let own = actions[first..].iter().filter(is_own).count() as u64;
        let expired = self.member.replica.stats.sessions_expired - before;
        if own + expired > 0 {
            let took_us = self.clock.now_us() - now.us;
            pipeline.judged_own(own, took_us);
            pipeline.closed(expired, took_us);
        }
    }

    /// Performs actions in order; log commands reach the log thread together, before anything is sent or woken.
    fn perform(
        &mut self,
        actions: &mut Vec<Action>,
        pipeline: &mut Pipeline,
        judged_us: u64,
    ) -> Option<Ended> {
        if actions.is_empty() {
            return None;
        }
        let mut log = Vec::new();
        let mut handed = HandedOver::new(self.member.replica.mode());
        let (mut wakers, mut ended) = (Vec::new(), None);
        for action in actions.drain(..) {
            match action {
                Action::Log(command) => {
                    handed.note(&command);
                    log.push(command);
                }
                Action::Wake(waker) => wakers.push(waker),
                Action::WriteSnapshot(job) => self.write_snapshot(job),
                Action::DiscardSnapshot(draft) => self.discard(draft),
                Action::LoadTree => self.load_tree(),
                Action::ReadLog { connection, from, through, limit_bytes } => {
                    self.read_log(connection, (from, through), limit_bytes);
                }
                Action::MoveClientPort(place) => {
                    let _stopping = self.client_ports.send(place);
                }
                Action::End(end) => {
                    ended.get_or_insert(end);
                }
                action => {
                    if let Some(peers) = &mut self.peers {
                        peers.perform(action);
                    }
                }
            }
        }
        if !log.is_empty() {
            self.log.send_all(&mut log);
        }
        if let Some(peers) = &mut self.peers {
            peers.flush();
        }
        if handed.records > 0 {
            let at_us = self.clock.now_us();
            if let Some(sizes) = handed.sizes {
                self.metrics.proposal_size.record(sizes, at_us);
            }
            let HandedOver { through, records, births, .. } = handed;
            // A learner's writes are judged by its leader.
            let judged_us = self.member.replica.judges().then_some(judged_us);
            pipeline.handed(Handed { through, records, at_us, births }, judged_us);
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        ended
    }

    fn write_snapshot(&self, job: SnapshotJob) {
        let (disk, dir, shared) =
            (self.disk.clone(), self.folders.snapshots.clone(), self.shared.clone());
        let (sender, style, metrics) =
            (self.sender.clone(), self.snapshot_style, self.metrics.clone());
        let begun = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let began = Instant::now();
            let draft =
                match snapshots::draft(&disk, &dir, &shared, job.frozen, style, !job.is_leaders) {
                    Ok(draft) => draft,
                    Err(error) => {
                        // As Java: a server that can't write snapshots must not go on (D-34).
                        let reason = format!("write snapshot: {}", chain(&error));
                        // The log thread may have met the disk's error first, and has reported it then.
                        if !is_echo(&error) {
                            tell(&sender, Input::Failed { reason, exit: 10 });
                        }
                        None
                    }
                };
            snapshots::note(&metrics, job.zxid(), draft.as_ref(), began.elapsed());
            tell(&sender, Input::SnapshotWritten { job, draft });
        });
        if let Err(error) = begun {
            tracing::error!(%error, "start snapshot thread");
            self.metrics.snapshot_error_count.increment();
            tell(&self.sender, Input::snapshot_not_begun(job));
        }
    }

    fn discard(&self, draft: Draft) {
        let disk = self.disk.clone();
        tokio::task::spawn_blocking(move || draft.discard(&disk));
    }

    /// On a thread of its own. The log was truncated, so the log thread does not write to it meanwhile.
    fn load_tree(&self) {
        let (loader, sender) = (self.loader.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let loaded = loader().map(Box::new).map(Input::TreeLoaded);
            tell(&sender, loaded.unwrap_or_else(|reason| Input::Failed { reason, exit: 1 }));
        });
    }

    /// Beside the log thread: only what is committed is asked for.
    fn read_log(&self, connection: LearnerConnectionId, range: (Zxid, Zxid), limit_bytes: u64) {
        let (disk, folders, sender) =
            (self.disk.clone(), self.folders.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let tail = log_read::read(&disk, &folders, range, limit_bytes);
            let read = zab::LogRead { before: tail.before, entries: tail.entries };
            tell(&sender, Input::LogRead { connection, read });
        });
    }
}

/// The driver is gone when all is over.
pub fn tell(driver: &UnboundedSender<Event>, input: Input) {
    let _stopped = driver.send(Event::Input(input));
}

/// Records that one turn hands to the log thread, as the metrics want them.
struct HandedOver {
    mode: Mode,
    records: u64,
    through: Zxid,
    /// Of a voter's records: when each became a transaction, in wall-clock milliseconds.
    births: Vec<i64>,
    sizes: Option<SizeValues>,
}

impl HandedOver {
    const fn new(mode: Mode) -> Self {
        Self { mode, records: 0, through: Zxid::ZERO, births: Vec::new(), sizes: None }
    }

    fn note(&mut self, command: &store::Command) {
        let store::Command::Append { zxid, entry } = command else { return };
        (self.records, self.through) = (self.records + 1, *zxid);
        if matches!(self.mode, Mode::Leading | Mode::Following) {
            self.births.extend(txn::born_ms(entry));
        }
        if self.mode == Mode::Leading {
            let size = entry.len() as i64;
            let seen = self.sizes.get_or_insert(SizeValues { last: size, min: size, max: size });
            *seen = SizeValues { last: size, min: seen.min.min(size), max: seen.max.max(size) };
        }
    }
}
