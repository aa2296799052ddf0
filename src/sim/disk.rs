//! What a server's other threads do: the log thread, snapshot threads, loading the tree and reading the log.

use super::boot::write_snapshot;
use super::check::Seen;
use super::network::ProcessId;
use super::plan::{MS, Micros, PlantedFault};
use super::process::{Server, folders};
use super::restorer::SimRestorer;
use super::world::World;
use crate::member::{Input, SnapshotJob};
use crate::model::{Zxid, chain};
use crate::store::worker::{self, FlushReport};
use crate::store::{Command, epoch::EpochFile, log_read, names, recover};
use crate::zab::{LearnerConnectionId, LogRead};
use std::time::Duration;

/// A slow snapshot takes at most this much longer: longer than an election and a synchronisation.
const SNAPSHOT_LAGS_MAX_US: Micros = 4000 * MS;

impl World {
    pub fn wake_log(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        if !std::mem::replace(&mut process.log_is_due, true) {
            self.do_within(10, 100, move |world| world.write_log(at));
        }
    }

    fn disk_takes(&mut self, server: usize) -> u64 {
        let takes_us = self.rng.range(80, 600);
        let is_slow =
            self.climate().slow_disk == Some(server) || self.now_us < self.servers[server].slow_us;
        if is_slow { takes_us * 50 } else { takes_us }
    }

    /// The log thread does all that has queued up; its reports reach the driver a while later.
    fn write_log(&mut self, at: ProcessId) {
        let server = at.server;
        if self.climate().plant == Some(PlantedFault::EarlyReport) && self.report_early(at) {
            return;
        }
        let Some(process) = self.process(at) else { return };
        let mut batch = std::mem::take(&mut process.log);
        let (cuts, trees) = (cuts_of(&batch), trees_of(&batch));
        let mut events = Vec::new();
        process.worker.run(&mut batch, &mut |event| events.push(event));
        let takes_us = self.disk_takes(server);
        let at_us = self.now_us + takes_us;
        let (mut thwarted_one_in, mut has_failed) = (None, false);
        for event in events {
            let Server { durable, tree, .. } = &mut self.servers[server];
            match &event {
                worker::Event::Flushed(report) => durable.last = report.through,
                worker::Event::Truncated { to } => {
                    durable.last = durable.last.min(*to);
                    *tree = (*tree).min(*to);
                    thwarted_one_in = thwarted_one_in.or(Some(8));
                }
                worker::Event::CannotTruncate { .. } => {
                    self.trace.count("truncations refused");
                    thwarted_one_in = Some(1);
                }
                worker::Event::Placed { zxid, replaces, .. } => {
                    let zxid = *zxid;
                    self.trace.count("snapshots");
                    if *replaces {
                        thwarted_one_in = thwarted_one_in.or(Some(8));
                        durable.last = durable.last.max(zxid);
                        *tree = zxid;
                    } else {
                        let (durable, tree) = (*durable, *tree);
                        self.see(&Seen::Named { server, zxid, tree, durable });
                    }
                }
                worker::Event::Restored { zxid } => {
                    durable.last = durable.last.max(*zxid);
                    *tree = *zxid;
                }
                worker::Event::EpochSaved { file: EpochFile::Accepted, epoch } => {
                    durable.accepted = *epoch;
                }
                worker::Event::EpochSaved { file: EpochFile::Current, epoch } => {
                    durable.current = *epoch;
                }
                worker::Event::Failed(_) => {
                    self.servers[server].doubt_batch(&cuts, &trees);
                    has_failed = true;
                }
            }
            self.do_at(at_us, move |world| world.report(at, Input::Log(event)));
        }
        if has_failed {
            return self.crash_if_due(at);
        }
        if let Some(one_in) = thwarted_one_in {
            self.cut_power_after_truncation(at, one_in);
        }
        self.do_at(at_us, move |world| {
            let Some(process) = world.process(at) else { return };
            process.log_is_due = false;
            if !process.log.is_empty() {
                world.wake_log(at);
            }
        });
    }

    /// A planted fault: what is about to be written is reported as written.
    fn report_early(&mut self, at: ProcessId) -> bool {
        let is_due = self.rng.one_in(3);
        let Some(process) = self.process(at) else { return false };
        let zxid = |command: &Command| match command {
            Command::Append { zxid, .. } => Some(*zxid),
            _ => None,
        };
        let zxids: Option<Vec<Zxid>> = process.log.iter().map(zxid).collect();
        let Some(through) = zxids.and_then(|zxids| zxids.last().copied()) else { return false };
        if is_due {
            let event = worker::Event::Flushed(FlushReport { through, ..FlushReport::default() });
            self.do_within(0, 0, move |world| world.report(at, Input::Log(event)));
            self.do_within(2000, 5000, move |world| world.write_log(at));
        }
        is_due
    }

    pub fn begin_snapshot(&mut self, at: ProcessId, job: SnapshotJob) {
        self.note(at.server, || format!("> {job:?}"));
        if let Some(digest) = job.frozen.digest {
            self.see(&Seen::Frozen { server: at.server, zxid: job.zxid(), digest });
        }
        let Some(process) = self.process(at) else { return };
        process.snapshots += 1;
        self.do_within(100, 6000, move |world| world.write_snapshot(at, job, Vec::new()));
    }

    /// How much longer than usual a snapshot takes: longest if its tree has transactions that are not committed.
    fn snapshot_lags(&mut self, zxid: Zxid) -> Micros {
        let hurts = self.checks.history.last() < zxid;
        let may_be_slow = self.climate().slow_snapshots && !self.is_healing && !self.is_starting();
        if hurts {
            self.trace.count("snapshots of uncommitted transactions");
        }
        let is_slow = may_be_slow && (hurts || self.rng.one_in(8));
        let low_us = if hurts { SNAPSHOT_LAGS_MAX_US / 8 } else { 10 * MS };
        if is_slow { self.rng.range(low_us, SNAPSHOT_LAGS_MAX_US) } else { 0 }
    }

    /// Takes the next piece of a snapshot, or writes the file after the last one. Each snapshot has a thread of its own.
    fn write_snapshot(&mut self, at: ProcessId, job: SnapshotJob, mut body: Vec<u8>) {
        let Some(process) = self.process(at) else { return };
        let taken = process.shared.snapshot_piece(job.frozen, &mut body);
        let (draft, takes_us) = match taken.map(|taken| taken.is_last) {
            Some(false) => {
                return self.do_within(50, 1000, move |world| world.write_snapshot(at, job, body));
            }
            Some(true) => {
                match write_snapshot(
                    &process.disk,
                    &process.folders,
                    job.frozen,
                    process.snapshot_style,
                    &body,
                ) {
                    Ok(draft) => (
                        Some(draft),
                        self.disk_takes(at.server) * 4 + self.snapshot_lags(job.zxid()),
                    ),
                    Err(error) => {
                        if let Some(failed) = Input::snapshot_failed(&error) {
                            self.report(at, failed);
                        }
                        self.crash_if_due(at);
                        (None, 0)
                    }
                }
            }
            // The tree was replaced meanwhile: the snapshot is of no use.
            None => (None, self.rng.range(10, 100)),
        };
        let written = Input::SnapshotWritten { job, draft };
        self.do_at(self.now_us + takes_us, move |world| {
            if let Some(process) = world.process(at) {
                process.snapshots -= 1;
                world.report(at, written);
            }
        });
    }

    /// Loads the tree again from the files, after their log was truncated.
    pub fn load_tree(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let wanted = process.recovery.while_running();
        let mut restorer = SimRestorer::new(process.tree_options);
        let (disk, folders) = (&process.disk, &process.folders);
        let found = recover(disk, folders, wanted, &mut restorer, || Duration::ZERO);
        let loaded = match found {
            Ok(_) => {
                self.trace.count("trees rebuilt");
                Ok(restorer.finish())
            }
            Err(error) => Err(format!("load the tree again: {}", chain(&error))),
        };
        if loaded.is_err() {
            self.crash_if_due(at);
        }
        self.note(at.server, || {
            format!("> loaded the tree, {:?}", loaded.as_ref().map(|(tree, _)| tree.last_zxid()))
        });
        let loaded = Input::tree_loaded(loaded);
        self.do_within(10, 2000, move |world| world.report(at, loaded));
    }

    pub fn read_log(
        &mut self,
        at: ProcessId,
        connection: LearnerConnectionId,
        from: Zxid,
        through: Zxid,
        limit_bytes: u64,
    ) {
        let Some(process) = self.process(at) else { return };
        let tail = log_read::read(&process.disk, &process.folders, from, through, limit_bytes);
        let read = LogRead { before: tail.before, entries: tail.entries };
        self.trace.count("logs read");
        let read = Input::LogRead { connection, read };
        self.do_within(10, 500, move |world| world.report(at, read));
    }
}

impl Server {
    /// A write has failed: truncations before it are done or not, and so are the first steps of putting a tree in the history's place.
    ///
    /// * `cuts`, `trees`: as [`cuts_of`] and [`trees_of`] give them.
    fn doubt_batch(&mut self, cuts: &[Zxid], trees: &[Zxid]) {
        self.durable.last = cuts.iter().copied().fold(self.durable.last, Zxid::min);
        let named = names::snapshots(&self.disk, &folders().snapshots).unwrap_or_default();
        let is_there = |at: &&Zxid| named.iter().any(|file| file.zxid == **at);
        self.tree = trees.iter().rfind(is_there).copied().unwrap_or(self.tree);
    }
}

/// Zxids of the leaders' trees that a batch puts in the history's place.
fn trees_of(batch: &[Command]) -> Vec<Zxid> {
    let tree = |command: &Command| match command {
        Command::Place { draft, replaces: true } => Some(draft.zxid),
        _ => None,
    };
    batch.iter().filter_map(tree).collect()
}

/// Where a history may end when a batch is done only in part: where it is truncated, and at zero, which is all that is certain, where a
/// leader's tree replaces it.
fn cuts_of(batch: &[Command]) -> Vec<Zxid> {
    let cut = |command: &Command| match command {
        Command::Truncate { to, .. } => Some(*to),
        Command::Place { replaces: true, .. } => Some(Zxid::ZERO),
        _ => None,
    };
    batch.iter().filter_map(cut).collect()
}
