//! What a server's other threads do: the log thread, snapshots, loading and reading.

use super::check::Seen;
use super::driver::LogRequest;
use super::plan::Plant;
use super::server::{Job, folders, tree_options, write_snapshot};
use super::world::{Event, Of, World};
use crate::member::restorer::Restorer;
use crate::member::{Input, SnapshotJob};
use crate::model::{Zxid, chain};
use crate::store::worker::{self, FlushReport};
use crate::store::{Command, RecoverOptions, epoch::EpochFile, log_read, recover};
use crate::zab;
use std::time::Duration;

impl World {
    pub fn wake_log(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        if !std::mem::replace(&mut process.log_is_due, true) {
            self.ask_within(10, 100, Event::Log(of));
        }
    }

    fn disk_takes(&mut self, server: usize) -> u64 {
        let takes_us = self.rng.range(80, 600);
        let is_slow =
            self.climate().slow_disk == Some(server) || self.now_us < self.servers[server].slow_us;
        if is_slow { takes_us * 50 } else { takes_us }
    }

    /// All that has queued up goes to the disk; what becomes of it is told a while later.
    pub fn write_log(&mut self, of: Of) {
        let server = of.server;
        if self.climate().plant == Some(Plant::EarlyReport) && self.report_early(of) {
            return;
        }
        let Some(process) = self.process(of) else { return };
        let mut batch = std::mem::take(&mut process.log);
        let cuts = cuts_of(&batch);
        let mut events = Vec::new();
        process.worker.run(&mut batch, &mut |event| events.push(event));
        let takes_us = self.disk_takes(server);
        let at_us = self.now_us + takes_us;
        for event in events {
            let durable = &mut self.servers[server].durable;
            match &event {
                worker::Event::Flushed(report) => durable.last = report.through,
                worker::Event::Truncated { to } => durable.last = durable.last.min(*to),
                worker::Event::CannotTruncate { .. } => self.trace.count("cuts refused"),
                worker::Event::Placed { zxid, replaces, .. } => {
                    if *replaces {
                        durable.last = durable.last.max(*zxid);
                    }
                    self.trace.count("snapshots");
                }
                worker::Event::EpochSaved { file: EpochFile::Accepted, epoch } => {
                    durable.accepted = *epoch;
                }
                worker::Event::EpochSaved { file: EpochFile::Current, epoch } => {
                    durable.current = *epoch;
                }
                worker::Event::Failed(error) => {
                    // A truncation that was begun may be done, or not.
                    durable.last = cuts.into_iter().fold(durable.last, Zxid::min);
                    return self.disk_failed(of, error);
                }
            }
            self.ask(at_us, Event::Report(of, Input::Log(event)));
        }
        self.ask(at_us, Event::LogIdle(of));
    }

    /// A planted fault: what is about to be written is reported as written.
    fn report_early(&mut self, of: Of) -> bool {
        let is_due = self.rng.one_in(3);
        let Some(process) = self.process(of) else { return false };
        let zxid = |command: &Command| match command {
            Command::Append { zxid, .. } => Some(*zxid),
            _ => None,
        };
        let zxids: Option<Vec<Zxid>> = process.log.iter().map(zxid).collect();
        let Some(through) = zxids.and_then(|zxids| zxids.last().copied()) else { return false };
        if is_due {
            let event = worker::Event::Flushed(FlushReport { through, ..FlushReport::default() });
            self.ask(self.now_us, Event::Report(of, Input::Log(event)));
            self.ask_within(2000, 5000, Event::Log(of));
        }
        is_due
    }

    pub fn on_log_idle(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        process.log_is_due = false;
        if !process.log.is_empty() {
            self.wake_log(of);
        }
    }

    pub fn begin_snapshot(&mut self, of: Of, job: SnapshotJob) {
        self.note(of.server, || format!("> {job:?}"));
        let Some(process) = self.process(of) else { return };
        process.jobs.push(Job { job, body: Vec::new() });
        self.ask_within(100, 6000, Event::Job(of));
    }

    /// The next piece of a snapshot, or the whole file.
    pub fn write_snapshot(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let Some(Job { job, body }) = process.jobs.first_mut() else { return };
        let is_held = {
            let tree = process.shared.state.tree.read();
            tree.holds(job.frozen).then(|| tree.freeze_piece(body))
        };
        if is_held == Some(false) {
            return self.ask_within(50, 1000, Event::Job(of));
        }
        let Job { job, body } = process.jobs.remove(0);
        if is_held.is_none() {
            // The tree was replaced meanwhile: the snapshot is of no use.
            let written = Input::SnapshotWritten { job, draft: None };
            return self.ask_within(10, 100, Event::Report(of, written));
        }
        let draft = match write_snapshot(&process.disk, &folders(), job.frozen, &body) {
            Ok(draft) => Some(draft),
            Err(error) => return self.disk_failed(of, &error),
        };
        let takes_us = self.disk_takes(of.server) * 4;
        self.ask(self.now_us + takes_us, Event::Report(of, Input::SnapshotWritten { job, draft }));
    }

    /// Loads the tree from the files, whose log was truncated.
    pub fn load_tree(&mut self, of: Of) {
        let seed = self.climate().seed ^ of.server as u64;
        let Some(process) = self.process(of) else { return };
        let wanted = RecoverOptions { running: true, ..RecoverOptions::default() };
        let mut restorer = Restorer::new(tree_options(seed));
        match recover(&process.disk, &folders(), wanted, &mut restorer, || Duration::ZERO) {
            Ok(_) => {
                let (tree, _) = restorer.finish();
                self.note(of.server, || format!("> loaded the tree, {}", tree.last_zxid()));
                self.trace.count("trees rebuilt");
                let loaded = Input::TreeLoaded(Box::new(tree));
                self.ask_within(10, 2000, Event::Report(of, loaded));
            }
            Err(error) => self.cannot(of, &format!("load the tree again: {}", chain(&error))),
        }
    }

    pub fn read_log(&mut self, of: Of, asked: LogRequest) {
        let Some(process) = self.process(of) else { return };
        let LogRequest { connection, from, through, limit_bytes } = asked;
        let tail = log_read::read(&process.disk, &folders(), (from, through), limit_bytes);
        let read = zab::LogRead { before: tail.before, entries: tail.entries };
        self.trace.count("logs read");
        self.ask_within(10, 500, Event::Report(of, Input::LogRead { connection, read }));
    }

    /// A change of the disk did not happen: that is the end of the process, one way or the other.
    fn disk_failed(&mut self, of: Of, error: &dyn std::error::Error) {
        self.cannot(of, &error.to_string());
    }

    /// Tells what a server found when it started.
    pub fn see_started(&mut self, server: usize, found: super::check::Durable, digest: u64) {
        let before = std::mem::replace(&mut self.servers[server].durable, found);
        self.see(&Seen::Started { server, found, before, digest });
    }
}

/// What may be left of a history when a batch is done in part: where it is cut, and nothing for certain where another
/// server's takes its place.
fn cuts_of(batch: &[Command]) -> Vec<Zxid> {
    let cut = |command: &Command| match command {
        Command::Truncate { to, .. } => Some(*to),
        Command::Place { replaces: true, .. } => Some(Zxid::ZERO),
        _ => None,
    };
    batch.iter().filter_map(cut).collect()
}
