//! What a server's other threads do: the log thread, snapshots, loading and reading.

use super::check::Seen;
use super::plan::Plant;
use super::restore::{Restorer, restore};
use super::server::{Happened, Job, folders, tree_options, write_snapshot};
use super::world::{Event, Of, World};
use crate::model::Zxid;
use crate::store::worker;
use crate::store::{Command, Draft, RecoverOptions, epoch::EpochFile, log_read};
use crate::tree::freeze::Frozen;
use crate::zab::{self, LinkId, Promise};

/// Of bytes of log that are read for one learner at most: few, so that a tree is sent now and then.
const LOG_READ_MAX_BYTES: u64 = 20_000;

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
            let happened = match event {
                worker::Event::Flushed(report) => {
                    durable.last = report.through;
                    Happened::Flushed { through: report.through }
                }
                worker::Event::Truncated { to } => {
                    durable.last = durable.last.min(to);
                    Happened::Peer(zab::Input::Truncated { to })
                }
                worker::Event::Uncuttable { last } => {
                    self.trace.count("cuts refused");
                    Happened::Peer(zab::Input::Uncuttable { last })
                }
                worker::Event::Placed { zxid, replaces, .. } => {
                    self.trace.count("snapshots");
                    if !replaces {
                        continue;
                    }
                    durable.last = durable.last.max(zxid);
                    Happened::Peer(zab::Input::Installed { zxid })
                }
                worker::Event::EpochSaved { file, epoch } => {
                    let promise = match file {
                        EpochFile::Accepted => {
                            durable.accepted = epoch;
                            Promise::Accepted
                        }
                        EpochFile::Current => {
                            durable.current = epoch;
                            Promise::Current
                        }
                    };
                    Happened::Peer(zab::Input::Promised { promise, epoch })
                }
                worker::Event::Failed(error) => {
                    // A cut that was begun may be done, or not.
                    durable.last = cuts.into_iter().fold(durable.last, Zxid::min);
                    return self.disk_failed(of, &error);
                }
            };
            self.ask(at_us, Event::Happen(of, happened));
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
            self.ask(self.now_us, Event::Happen(of, Happened::Flushed { through }));
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

    pub fn begin_snapshot(&mut self, of: Of, frozen: Frozen, installed: bool) {
        self.note(of.server, || format!("> snapshot {}, installed {installed}", frozen.zxid));
        let Some(process) = self.process(of) else { return };
        let cuts = process.cuts;
        process.jobs.push(Job { frozen, installed, body: Vec::new(), cuts });
        self.ask_within(100, 6000, Event::Job(of));
    }

    /// The next piece of a snapshot, or the whole file.
    pub fn write_snapshot(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let Some(job) = process.jobs.first_mut() else { return };
        let is_held = {
            let tree = process.shared.state.tree.read();
            tree.holds(job.frozen).then(|| tree.freeze_piece(&mut job.body))
        };
        match is_held {
            Some(false) => return self.ask_within(50, 1000, Event::Job(of)),
            Some(true) => {}
            None => {
                // The tree was replaced meanwhile, and nobody needs this.
                let job = process.jobs.remove(0);
                let Job { frozen, installed, cuts, .. } = job;
                let drafted = Happened::Drafted { frozen, draft: None, installed, cuts };
                return self.ask_within(10, 100, Event::Happen(of, drafted));
            }
        }
        let Job { frozen, installed, body, cuts } = process.jobs.remove(0);
        let draft = match write_snapshot(&process.disk, &folders(), frozen, &body) {
            Ok(draft) => Some(draft),
            Err(error) => return self.disk_failed(of, &error),
        };
        let takes_us = self.disk_takes(of.server) * 4;
        let drafted = Happened::Drafted { frozen, draft, installed, cuts };
        self.ask(self.now_us + takes_us, Event::Happen(of, drafted));
    }

    /// By the log thread, unless the log was cut meanwhile and it is no leader's.
    pub fn place(&mut self, of: Of, draft: Draft, installed: bool, cuts: u64) {
        let Some(process) = self.process(of) else { return };
        if !installed && cuts != process.cuts {
            return draft.discard(&process.disk);
        }
        process.log.push(Command::Place { draft, replaces: installed });
        self.wake_log(of);
    }

    /// Loads the tree anew: the log was cut behind it.
    pub fn rebuild(&mut self, of: Of) {
        let seed = self.climate().seed ^ of.server as u64;
        let Some(process) = self.process(of) else { return };
        let wanted = RecoverOptions { running: true, ..RecoverOptions::default() };
        let mut restorer = Restorer::new(tree_options(seed));
        match restore(&process.disk, &folders(), wanted, &mut restorer) {
            Ok(_) => {
                let (tree, _) = restorer.finish();
                self.note(of.server, || format!("> rebuilt, {}", tree.last_zxid()));
                self.trace.count("trees rebuilt");
                let rebuilt = Happened::Rebuilt(Box::new(tree));
                self.ask_within(10, 2000, Event::Happen(of, rebuilt));
            }
            Err(why) => self.cannot(of, &format!("load the tree again: {why}")),
        }
    }

    pub fn read_log(&mut self, of: Of, link: LinkId, asked: (Zxid, Zxid)) {
        let Some(process) = self.process(of) else { return };
        let tail = log_read::read(&process.disk, &folders(), asked, LOG_READ_MAX_BYTES);
        let read = zab::LogRead { before: tail.before, entries: tail.entries };
        let happened = Happened::Peer(zab::Input::LogRead { link, read });
        self.trace.count("logs read");
        self.ask_within(10, 500, Event::Happen(of, happened));
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
