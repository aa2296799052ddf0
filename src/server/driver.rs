//! Feeds inputs to the replica and does what it asks.

use super::clock::Clock;
use super::peers::{Incoming, Peers};
use super::pipeline::{self, Handed, Pipeline};
use super::report::Report;
use super::roles::Roles;
use super::snapshots;
use crate::metrics::{Registry, Samples, SizeValues};
use crate::model::{EventKind, SessionId, Zxid};
use crate::replica::{Action, Input, Mode, Replica, Stats, TICK_MS, WriteSample};
use crate::request::{ClientCommand, Namespace, Shared};
use crate::store::disk::is_echo;
use crate::store::epoch::EpochFile;
use crate::store::worker::{FlushReport, WorkerHandle};
use crate::store::{self, Disk, Draft, Folders, log_read};
use crate::tree::freeze::Frozen;
use crate::tree::{Tree, txn};
use crate::zab::{self, LinkId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// Inputs taken in one go, so that one flush covers every append in them.
const BATCH_MAX: usize = 1024;

/// A member of an ensemble that stops has this long to finish what its clients asked: it may depend on others, who may
/// be gone. What is not finished then may be done all the same, as with any server that a client loses.
const MEMBER_STOP_MAX: Duration = Duration::from_secs(3);

/// When which session expires; likewise those that only this server knows, where there are such.
pub type Dues = (Vec<(u64, SessionId)>, Option<Vec<(u64, SessionId)>>);

/// What reaches the driver besides the clients' commands.
pub enum Event {
    Flushed(FlushReport),
    /// All that will be of a snapshot is on disk, and waits for its name.
    Drafted {
        frozen: Frozen,
        /// `None` unless it was written whole.
        draft: Option<Draft>,
        took: Duration,
        /// It is the leader's tree.
        installed: bool,
        /// Cuts of the log that had been asked for when it began.
        cuts: u64,
    },
    /// A tree was sent to a learner, or will not be.
    TreeSent(Frozen),
    /// The tree as the log on disk has it.
    Rebuilt(Box<Tree>),
    /// The disk did what the other servers wait for.
    Peer(zab::Input),
    /// Somebody wants to know how things stand.
    Report(oneshot::Sender<Report>),
    /// Somebody wants to know when which session expires, in monotonic milliseconds.
    Sessions(oneshot::Sender<Dues>),
    /// No more commands are taken; end once everything proposed is answered.
    Stop,
    /// The disk failed, and with it this server.
    Failed {
        reason: String,
        exit: u8,
    },
}

/// Why the driver ended.
#[derive(Debug, Eq, PartialEq)]
pub enum Ended {
    /// As asked.
    Stopped,
    /// With this exit code of Java's list (P-87).
    Failed { reason: String, exit: u8 },
}

/// Loads the tree from the files; in words, why it can't.
pub type Loader = dyn Fn() -> Result<Tree, String> + Send + Sync;

/// What the driver moves values between.
pub struct Driver<D> {
    pub replica: Replica,
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
    /// The other servers of an ensemble, and what becomes of this one among them.
    pub peers: Option<Peers>,
    pub roles: Option<Roles>,
    /// Loads the tree from the files.
    pub loader: Arc<Loader>,
    /// Cuts of the log that were asked for.
    pub cuts: u64,
}

impl<D: Disk + Clone + 'static> Driver<D> {
    /// Runs until it is told to stop or can't go on. `first`: what the replica asked for before.
    pub async fn run(mut self, first: Vec<Action>) -> Ended {
        let mut actions = first;
        let mut published = Published::default();
        let mut pipeline = Pipeline::new(self.metrics.clone());
        let mut judged_us = self.clock.now_us();
        let mut commands = Vec::with_capacity(BATCH_MAX);
        let mut events = Vec::with_capacity(BATCH_MAX);
        let mut ticks = self.clock.now_ms() / TICK_MS;
        let mut stopping = false;
        let mut stop_at: Option<Instant> = None;
        let mut timer = tokio::time::interval(Duration::from_millis(TICK_MS));
        timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            if let Some(ended) = self.perform(&mut actions, &mut pipeline, judged_us) {
                return ended;
            }
            if stopping && (self.replica.outstanding() == 0 || self.is_late(&mut stop_at)) {
                return Ended::Stopped;
            }
            tokio::select! {
                biased;
                _ = self.events.recv_many(&mut events, BATCH_MAX) => {}
                event = Peers::next(&mut self.peers) => self.on_peer_event(event, &mut pipeline, &mut actions),
                count = self.commands.recv_many(&mut commands, BATCH_MAX), if !stopping => stopping |= count == 0,
                _ = timer.tick() => {}
            }
            for event in events.drain(..) {
                match event {
                    Event::Stop => {
                        stopping = true;
                        // What has come this far is still done.
                        commands.extend(std::iter::from_fn(|| self.commands.try_recv().ok()));
                    }
                    Event::Failed { reason, exit } => return Ended::Failed { reason, exit },
                    event => self.on_event(event, &mut pipeline, &mut actions),
                }
            }
            let (wall_ms, now_us) = (self.clock.wall_ms(), self.clock.now_us());
            judged_us = now_us;
            if !commands.is_empty() {
                // A learner judges nothing.
                let judges = self.replica.judges();
                let requests = if judges { pipeline.taken(&commands, now_us) } else { 0 };
                self.judge(&mut commands, wall_ms, &pipeline, &mut actions);
                judged_us = self.clock.now_us();
                pipeline.judged(requests, judged_us - now_us);
            }
            // Once it stops, time stands still: sessions that expired meanwhile would each be a write to wait for, and with a
            // slow disk there might always be another one.
            let due = if stopping { ticks } else { now_us / 1000 / TICK_MS };
            while ticks < due {
                ticks += 1;
                self.tick(wall_ms, &mut pipeline, &mut actions);
            }
            self.publish(&mut published, wall_ms);
        }
    }

    fn on_event(&mut self, event: Event, pipeline: &mut Pipeline, actions: &mut Vec<Action>) {
        match event {
            Event::Flushed(report) => {
                let now_us = self.clock.now_us();
                pipeline.flushed(&report, now_us, self.clock.wall_ms());
                self.replica.step(Input::Flushed { through: report.through, now_us }, actions);
            }
            Event::Drafted { frozen, draft, took, installed, cuts } => {
                self.note_snapshot(draft.as_ref().map(|_| took));
                self.replica.step(Input::SnapshotEnded(frozen), actions);
                if let Some(draft) = draft {
                    self.place(draft, installed, cuts);
                }
            }
            Event::TreeSent(frozen) => {
                self.replica.step(Input::SnapshotEnded(frozen), actions);
            }
            Event::Rebuilt(tree) => self.replica.step(Input::Rebuilt { tree }, actions),
            Event::Peer(input) => self.tell(input, actions),
            Event::Report(to) => {
                // The asker may have gone.
                let _gone = to.send(Report::of(&self.replica, self.roles.as_ref(), self.clock));
            }
            Event::Sessions(to) => {
                let dues = (self.replica.session_dues(), self.replica.local_dues());
                let _gone = to.send(dues);
            }
            Event::Stop | Event::Failed { .. } => {} // The loop's own.
        }
    }

    /// Whether a member has been stopping for long enough.
    fn is_late(&self, stop_at: &mut Option<Instant>) -> bool {
        if self.peers.is_none() {
            return false;
        }
        let is_late =
            *stop_at.get_or_insert_with(|| Instant::now() + MEMBER_STOP_MAX) < Instant::now();
        if is_late {
            let requests = self.replica.outstanding();
            tracing::warn!(requests, "stopping: the other members did not finish these in time");
        }
        is_late
    }

    fn tell(&mut self, input: zab::Input, actions: &mut Vec<Action>) {
        let now_us = self.clock.now_us();
        self.replica.step(Input::Peer { input, now_us }, actions);
    }

    fn on_peer_event(
        &mut self,
        event: Incoming,
        pipeline: &mut Pipeline,
        actions: &mut Vec<Action>,
    ) {
        let Some(peers) = &mut self.peers else { return };
        let mut inputs = Vec::new();
        let began_us = self.clock.now_us();
        peers.take(event, began_us, &mut inputs);
        let requests = inputs.iter().filter(|input| is_request(input)).count() as u64;
        let judges = self.replica.judges();
        self.replica.step_all(inputs, actions);
        if judges {
            pipeline.judged_own(requests, self.clock.now_us() - began_us);
        }
    }

    fn tick(&mut self, wall_ms: i64, pipeline: &mut Pipeline, actions: &mut Vec<Action>) {
        let (before, began_us) = (self.replica.stats.sessions_expired, self.clock.now_us());
        let first = actions.len();
        self.replica.step(Input::Tick { wall_ms }, actions);
        let took_us = self.clock.now_us() - began_us;
        // Ends of sessions and of containers.
        let own = actions[first..].iter().filter(|action| matches!(action, Action::Append { .. }));
        pipeline.judged_own(own.count() as u64, took_us);
        pipeline.closed(self.replica.stats.sessions_expired - before, took_us);
    }

    fn note_snapshot(&self, took: Option<Duration>) {
        match took {
            Some(took) => self.metrics.snapshottime.record(took.as_millis() as i64),
            None => self.metrics.snapshot_error_count.increment(),
        }
    }

    fn judge(
        &mut self,
        commands: &mut Vec<ClientCommand>,
        wall_ms: i64,
        pipeline: &Pipeline,
        actions: &mut Vec<Action>,
    ) {
        for command in commands.drain(..) {
            // Rare, so it has its clock read for itself.
            let began_us = pipeline::closes(&command).then(|| self.clock.now_us());
            self.replica.step(Input::Command { command, wall_ms }, actions);
            if let Some(began_us) = began_us {
                pipeline.closed(1, self.clock.now_us() - began_us);
            }
        }
    }

    /// Does what was asked, in order; appends reach the log thread together, before anybody is woken.
    fn perform(
        &mut self,
        actions: &mut Vec<Action>,
        pipeline: &mut Pipeline,
        judged_us: u64,
    ) -> Option<Ended> {
        let mut commands = Vec::new();
        let (mut records, mut through) = (0, Zxid::ZERO);
        let mut wakers = Vec::new();
        let mode = self.replica.mode();
        let mut births = Vec::new();
        let mut sizes: Option<SizeValues> = None;
        for action in actions.drain(..) {
            match action {
                Action::Append { zxid, entry } => {
                    (records, through) = (records + 1, zxid);
                    if matches!(mode, Mode::Leading | Mode::Following) {
                        births.extend(txn::born_ms(&entry));
                    }
                    if mode == Mode::Leading {
                        note_size(&mut sizes, entry.len() as i64);
                    }
                    commands.push(store::Command::Append { zxid, entry });
                }
                Action::Roll => commands.push(store::Command::Roll),
                Action::Wake(waker) => wakers.push(waker),
                Action::Snapshot(frozen) => self.snapshot(frozen, false),
                Action::Install(frozen) => {
                    if let Some(store::Command::Truncate { replaced, .. }) = commands.last_mut() {
                        *replaced = true;
                    }
                    commands.push(store::Command::Roll);
                    self.snapshot(frozen, true);
                }
                Action::SendTree { link, frozen } => {
                    if let Some(peers) = &mut self.peers {
                        peers.send_tree(link, frozen);
                    }
                }
                Action::Rebuild => self.rebuild(),
                Action::Peer(action) => self.perform_for_peers(action, &mut commands),
                Action::Stop(reason) => {
                    return Some(Ended::Failed { reason: reason.to_owned(), exit: 1 });
                }
            }
        }
        if !commands.is_empty() {
            self.log.send_all(&mut commands);
        }
        if let Some(peers) = &mut self.peers {
            peers.flush();
        }
        if records > 0 {
            let now_us = self.clock.now_us();
            // A learner's are judged elsewhere.
            let judged_us = self.replica.judges().then_some(judged_us);
            pipeline.handed(Handed { through, records, at_us: now_us, births }, judged_us);
            if let Some(sizes) = sizes {
                self.metrics.proposal_size.record(sizes, now_us);
            }
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        None
    }

    fn perform_for_peers(&mut self, action: zab::Action, commands: &mut Vec<store::Command>) {
        match action {
            zab::Action::Promise { promise, epoch } => {
                let file = match promise {
                    zab::Promise::Accepted => EpochFile::Accepted,
                    zab::Promise::Current => EpochFile::Current,
                };
                commands.push(store::Command::SaveEpoch { file, epoch });
            }
            zab::Action::Truncate { to } => {
                self.cuts += 1;
                commands.push(store::Command::Truncate { to, replaced: false });
            }
            zab::Action::ReadLog { link, from, through } => self.read_log(link, from, through),
            action => {
                if let Some(peers) = &mut self.peers {
                    peers.perform(action, self.replica.peer());
                }
            }
        }
    }

    /// * `installed`: it is the leader's tree, and much depends on it.
    fn snapshot(&self, frozen: Frozen, installed: bool) {
        let (disk, dir, shared) =
            (self.disk.clone(), self.folders.snapshots.clone(), self.shared.clone());
        let (sender, style, cuts) = (self.sender.clone(), self.snapshot_style, self.cuts);
        let begun = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let began = Instant::now();
            let draft = match snapshots::draft(&disk, &dir, &shared, frozen, style, !installed) {
                Ok(draft) => draft,
                Err(error) => {
                    // As Java: a server that can't write snapshots must not go on (D-34).
                    let reason = format!("write snapshot: {}", chain(&error));
                    // If it is the log's error, that is told already.
                    if !is_echo(&error) {
                        let _stopped = sender.send(Event::Failed { reason, exit: 10 });
                    }
                    None
                }
            };
            let took = began.elapsed();
            if let Some(Draft { bytes, .. }) = draft {
                let ms = took.as_millis() as u64;
                tracing::info!(zxid = %frozen.zxid, bytes, ms, "snapshot written");
            }
            let _stopped = sender.send(Event::Drafted { frozen, draft, took, installed, cuts });
        });
        if let Err(error) = begun {
            tracing::error!(%error, "start snapshot thread");
            let ended = match installed {
                // The others wait for it.
                true => Event::Failed { reason: "start snapshot thread".to_owned(), exit: 10 },
                false => {
                    Event::Drafted { frozen, draft: None, took: Duration::ZERO, installed, cuts }
                }
            };
            let _stopped = self.sender.send(ended);
        }
    }

    /// By the log thread, so that the leader's tree counts once the log is cut, and none of our own that was begun before a
    /// cut counts after it.
    fn place(&self, draft: Draft, installed: bool, cuts: u64) {
        if installed || cuts == self.cuts {
            self.log.send(store::Command::Place { draft, replaces: installed });
            return;
        }
        tracing::info!(zxid = %draft.zxid, "snapshot given up: the log was cut meanwhile");
        let disk = self.disk.clone();
        tokio::task::spawn_blocking(move || draft.discard(&disk));
    }

    /// Loads the tree anew, on a thread of its own. The log was cut, so no log thread writes to it meanwhile.
    fn rebuild(&self) {
        let (loader, sender) = (self.loader.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let event = match loader() {
                Ok(tree) => Event::Rebuilt(Box::new(tree)),
                Err(reason) => Event::Failed { reason, exit: 1 },
            };
            let _stopped = sender.send(event);
        });
    }

    /// Reads the end of the log for a learner, beside the log thread: only what is committed is asked for.
    fn read_log(&self, link: LinkId, from: Zxid, through: Zxid) {
        let (disk, folders, sender) =
            (self.disk.clone(), self.folders.clone(), self.sender.clone());
        let factor = self.peers.as_ref().and_then(Peers::size_factor);
        let limit_bytes = {
            let tree = self.shared.state.tree.read();
            log_read::limit_bytes(factor, tree.approximate_data_size(), tree.node_count() as u64)
        };
        tokio::task::spawn_blocking(move || {
            let tail = log_read::read(&disk, &folders, (from, through), limit_bytes);
            let read = zab::LogRead { before: tail.before, entries: tail.entries };
            let _stopped = sender.send(Event::Peer(zab::Input::LogRead { link, read }));
        });
    }

    /// Moves the replica's plain counters and measurements into the registry.
    fn publish(&mut self, published: &mut Published, wall_ms: i64) {
        if let Some(roles) = &mut self.roles {
            roles.publish(&mut self.replica, self.clock.now_us());
        }
        let now = Published { stats: self.replica.stats, changes: self.replica.changes() };
        let (stats, before, metrics) = (now.stats, published.stats, &self.metrics);
        metrics.digest_mismatches_count.add(stats.digest_mismatches - before.digest_mismatches);
        metrics.stale_sessions_expired.add(stats.sessions_expired - before.sessions_expired);
        metrics
            .sessionless_connections_expired
            .add(stats.sessionless_expired - before.sessionless_expired);
        metrics.stale_requests.add(stats.stale_requests - before.stale_requests);
        metrics.stale_replies.add(stats.stale_replies - before.stale_replies);
        metrics.outstanding_changes_queued.add(now.changes.0 - published.changes.0);
        metrics.outstanding_changes_removed.add(now.changes.1 - published.changes.1);
        let mode = self.replica.mode();
        let samples = &mut self.replica.samples;
        let age_ms = |born_ms: i64| Some(wall_ms - born_ms).filter(|age_ms| 0 <= *age_ms);
        samples
            .heard
            .drain(..)
            .filter_map(age_ms)
            .for_each(|ms| metrics.proposal_latency.record(ms));
        let committed = match mode {
            Mode::Leading => &metrics.quorum_ack_latency,
            _ => &metrics.commit_propagation_latency,
        };
        samples.committed.drain(..).filter_map(age_ms).for_each(|ms| committed.record(ms));
        for WriteSample { took_us, born_ms } in samples.writes.drain(..) {
            if let Some(took_us) = took_us {
                let took_ms = took_us as i64 / 1000;
                metrics.request_latency.record(took_ms);
                // As Java: what takes no zxid, a sync or a body that can't be read, counts as a read.
                let kind =
                    if born_ms.is_some() { &metrics.updatelatency } else { &metrics.readlatency };
                kind.record(took_ms);
            }
            // The wall clock may have been set back meanwhile.
            if let Some(age_ms) = born_ms.and_then(age_ms) {
                metrics.propagation_latency.record(age_ms);
            }
        }
        samples.spaces.publish(|space| {
            metrics.write_per_namespace.record(&space.name, &sampled(space));
        });
        for (kind, watchers) in samples.told.drain(..) {
            let summary = match kind {
                EventKind::NodeCreated => &metrics.node_created_watch_count,
                EventKind::NodeDeleted => &metrics.node_deleted_watch_count,
                EventKind::NodeDataChanged => &metrics.node_changed_watch_count,
                EventKind::NodeChildrenChanged => &metrics.node_children_watch_count,
            };
            summary.record(watchers as i64);
        }
        self.replica.quota_refusals().publish(|space| {
            metrics.quota_exceeded_error_per_namespace.record(&space.name, &sampled(space));
        });
        *published = now;
    }
}

/// What of the replica's counters is in the registry already.
#[derive(Default)]
struct Published {
    stats: Stats,
    changes: (u64, u64),
}

/// Whether it is what a client of a learner wants.
fn is_request(input: &Input) -> bool {
    use zab::{Input::Learner, Packet::Request};
    matches!(input, Input::Peer { input: Learner { packet: Request(_), .. }, .. })
}

fn note_size(sizes: &mut Option<SizeValues>, size: i64) {
    let seen = sizes.get_or_insert(SizeValues { last: size, min: size, max: size });
    *seen = SizeValues { last: size, min: seen.min.min(size), max: seen.max.max(size) };
}

fn sampled(space: &Namespace) -> Samples {
    Samples {
        count: space.count,
        sum: space.sum_bytes as i64,
        min: space.min_bytes as i64,
        max: space.max_bytes as i64,
    }
}

/// An error with all its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
