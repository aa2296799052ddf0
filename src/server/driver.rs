//! Feeds inputs to the replica and does what it asks.

use super::clock::Clock;
use super::report::Report;
use super::snapshots;
use crate::metrics::Registry;
use crate::model::EventKind;
use crate::replica::{Action, Input, Replica, Stats, TICK_MS};
use crate::request::{Command, Shared};
use crate::store::worker::{FlushReport, WorkerHandle};
use crate::store::{self, Disk, Folders};
use crate::tree::freeze::Frozen;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// Inputs taken in one go, so that one flush covers every append in them.
const BATCH_MAX: usize = 1024;

/// What reaches the driver besides the clients' commands.
pub enum Event {
    Flushed(FlushReport),
    SnapshotEnded {
        took: Duration,
        ok: bool,
    },
    /// Somebody wants to know how things stand.
    Report(oneshot::Sender<Report>),
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

/// What the driver moves values between.
pub struct Driver<D> {
    pub replica: Replica,
    pub shared: Arc<Shared>,
    pub commands: UnboundedReceiver<Command>,
    pub events: UnboundedReceiver<Event>,
    /// For the threads it starts.
    pub sender: UnboundedSender<Event>,
    pub log: WorkerHandle,
    pub disk: D,
    pub folders: Folders,
    pub snapshot_style: snapshots::Style,
    pub metrics: Arc<Registry>,
    pub clock: Clock,
}

impl<D: Disk + Clone + 'static> Driver<D> {
    /// Runs until it is told to stop or can't go on. `first`: what the replica asked for before.
    pub async fn run(mut self, first: Vec<Action>) -> Ended {
        let mut actions = first;
        let mut published = Stats::default();
        let mut commands = Vec::with_capacity(BATCH_MAX);
        let mut events = Vec::with_capacity(BATCH_MAX);
        let mut ticks = self.clock.now_ms() / TICK_MS;
        let mut stopping = false;
        let mut timer = tokio::time::interval(Duration::from_millis(TICK_MS));
        timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            if let Some(ended) = self.perform(&mut actions) {
                return ended;
            }
            if stopping && self.replica.outstanding() == 0 {
                return Ended::Stopped;
            }
            tokio::select! {
                biased;
                _ = self.events.recv_many(&mut events, BATCH_MAX) => {}
                count = self.commands.recv_many(&mut commands, BATCH_MAX), if !stopping => stopping |= count == 0,
                _ = timer.tick() => {}
            }
            for event in events.drain(..) {
                match event {
                    Event::Flushed(report) => {
                        self.note_flush(&report);
                        let now_us = self.clock.now_us();
                        self.replica
                            .step(Input::Flushed { through: report.through, now_us }, &mut actions);
                    }
                    Event::SnapshotEnded { took, ok } => {
                        if ok {
                            self.metrics.snapshottime.record(took.as_millis() as i64);
                        } else {
                            self.metrics.snapshot_error_count.increment();
                        }
                        self.replica.step(Input::SnapshotEnded, &mut actions);
                    }
                    Event::Report(to) => {
                        // The asker may have gone.
                        let _gone = to.send(Report::of(&self.replica));
                    }
                    Event::Stop => {
                        stopping = true;
                        // What has come this far is still done.
                        while let Ok(command) = self.commands.try_recv() {
                            commands.push(command);
                        }
                    }
                    Event::Failed { reason, exit } => return Ended::Failed { reason, exit },
                }
            }
            let wall_ms = self.clock.wall_ms();
            for command in commands.drain(..) {
                self.replica.step(Input::Command { command, wall_ms }, &mut actions);
            }
            let due = self.clock.now_ms() / TICK_MS;
            while ticks < due {
                ticks += 1;
                self.replica.step(Input::Tick { wall_ms }, &mut actions);
            }
            self.publish(&mut published);
        }
    }

    /// Does what was asked, in order; appends reach the log thread together, before anybody is woken.
    fn perform(&mut self, actions: &mut Vec<Action>) -> Option<Ended> {
        let mut commands = Vec::new();
        let mut wakers = Vec::new();
        for action in actions.drain(..) {
            match action {
                Action::Append { zxid, entry } => {
                    commands.push(store::Command::Append { zxid, entry })
                }
                Action::Roll => commands.push(store::Command::Roll),
                Action::Wake(waker) => wakers.push(waker),
                Action::Snapshot(frozen) => self.snapshot(frozen),
                Action::Stop(reason) => {
                    return Some(Ended::Failed { reason: reason.to_owned(), exit: 1 });
                }
            }
        }
        if !commands.is_empty() {
            self.metrics.sync_processor_request_queued.add(commands.len() as u64);
            self.log.send_all(&mut commands);
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
        None
    }

    fn snapshot(&self, frozen: Frozen) {
        let (disk, dir, shared) =
            (self.disk.clone(), self.folders.snapshots.clone(), self.shared.clone());
        let (sender, style) = (self.sender.clone(), self.snapshot_style);
        let begun = std::thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let began = Instant::now();
            let written = snapshots::write(&disk, &dir, &shared, frozen, style, true);
            let took = began.elapsed();
            match &written {
                Ok(bytes) => tracing::info!(zxid = %frozen.zxid, bytes, ms = took.as_millis() as u64, "snapshot written"),
                Err(error) => {
                    // As Java: a server that can't write snapshots must not go on (D-34).
                    let reason = format!("write snapshot: {}", chain(error));
                    let _stopped = sender.send(Event::Failed { reason, exit: 10 });
                }
            }
            let _stopped = sender.send(Event::SnapshotEnded { took, ok: written.is_ok() });
        });
        if let Err(error) = begun {
            tracing::error!(%error, "start snapshot thread");
            let _stopped =
                self.sender.send(Event::SnapshotEnded { took: Duration::ZERO, ok: false });
        }
    }

    fn note_flush(&self, report: &FlushReport) {
        self.metrics.fsynctime.record(report.sync_took.as_millis() as i64);
        self.metrics.sync_processor_batch_size.record(i64::from(report.records));
    }

    /// Moves the replica's plain counters and measurements into the registry.
    fn publish(&mut self, published: &mut Stats) {
        let (stats, metrics) = (self.replica.stats, &self.metrics);
        metrics.commit_count.add(stats.commits - published.commits);
        metrics.proposal_count.add(stats.proposals - published.proposals);
        metrics.digest_mismatches_count.add(stats.digest_mismatches - published.digest_mismatches);
        metrics.stale_sessions_expired.add(stats.sessions_expired - published.sessions_expired);
        metrics
            .sessionless_connections_expired
            .add(stats.sessionless_expired - published.sessionless_expired);
        metrics.connection_revalidate_count.add(stats.reopens - published.reopens);
        metrics.watch_bytes.add(stats.event_bytes - published.event_bytes);
        let samples = &mut self.replica.samples;
        metrics.packets_sent.add(stats.events - published.events + samples.write_us.len() as u64);
        for us in samples.write_us.drain(..) {
            let took_ms = us as i64 / 1000;
            metrics.request_latency.record(took_ms);
            metrics.updatelatency.record(took_ms);
        }
        for (kind, watchers) in samples.told.drain(..) {
            let summary = match kind {
                EventKind::NodeCreated => &metrics.node_created_watch_count,
                EventKind::NodeDeleted => &metrics.node_deleted_watch_count,
                EventKind::NodeDataChanged => &metrics.node_changed_watch_count,
                EventKind::NodeChildrenChanged => &metrics.node_children_watch_count,
            };
            summary.record(watchers as i64);
        }
        *published = stats;
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
