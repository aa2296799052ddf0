//! The order of disk work: log commands, snapshots, truncations.

use super::{Action, Input, LogReadLimit, Member, Now};
use crate::model::{Epoch, Zxid, chain};
use crate::replica;
use crate::store::disk::is_echo;
use crate::store::epoch::EpochFile;
use crate::store::worker::{self, WorkerError};
use crate::store::{self, Draft, log_read};
use crate::tree::freeze::Frozen;
use crate::zab::{self, Promise};

/// A snapshot to be written.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotJob {
    pub frozen: Frozen,
    /// It is the leader's tree, which takes the place of all this server had: others wait for it.
    pub is_leaders: bool,
    /// Truncations of the log that had been asked for when it began.
    truncations: u64,
}

impl SnapshotJob {
    pub const fn zxid(&self) -> Zxid {
        self.frozen.zxid
    }
}

/// What was asked of the disk.
pub struct DiskWork {
    /// Truncations of the log that were asked for.
    truncations: u64,
    log_read: LogReadLimit,
}

impl DiskWork {
    pub const fn new(log_read: LogReadLimit) -> Self {
        Self { truncations: 0, log_read }
    }

    /// What `replica` asks of the disk; its other actions are translated elsewhere.
    pub fn ask(&self, action: replica::Action, out: &mut Vec<Action>) {
        match action {
            replica::Action::Append { zxid, entry } => {
                out.push(Action::Log(store::Command::Append { zxid, entry }));
            }
            replica::Action::Roll => out.push(Action::Log(store::Command::Roll)),
            replica::Action::Snapshot(frozen) => self.write_snapshot(frozen, false, out),
            replica::Action::Install(frozen) => {
                mark_replaced(out);
                out.push(Action::Log(store::Command::Roll));
                self.write_snapshot(frozen, true, out);
            }
            replica::Action::Rebuild => out.push(Action::LoadTree),
            replica::Action::SendTree { .. }
            | replica::Action::Peer(_)
            | replica::Action::Wake(_)
            | replica::Action::Stop(_) => {}
        }
    }

    fn write_snapshot(&self, frozen: Frozen, is_leaders: bool, out: &mut Vec<Action>) {
        let truncations = self.truncations;
        out.push(Action::WriteSnapshot(SnapshotJob { frozen, is_leaders, truncations }));
    }

    pub fn truncate(&mut self, to: Zxid, out: &mut Vec<Action>) {
        self.truncations += 1;
        out.push(Action::Log(store::Command::Truncate { to, replaced: false }));
    }

    pub fn save_epoch(&self, promise: Promise, epoch: Epoch, out: &mut Vec<Action>) {
        let file = match promise {
            Promise::Accepted => EpochFile::Accepted,
            Promise::Current => EpochFile::Current,
        };
        out.push(Action::Log(store::Command::SaveEpoch { file, epoch }));
    }

    /// * `data_bytes`, `znodes`: of the tree as it is.
    pub fn log_read_limit(&self, data_bytes: u64, znodes: u64) -> u64 {
        match self.log_read {
            LogReadLimit::Factor(factor) => log_read::limit_bytes(factor, data_bytes, znodes),
            LogReadLimit::Bytes(bytes) => bytes,
        }
    }

    /// The log thread gives a snapshot its name, in order with truncations: so the leader's tree counts once the log is
    /// truncated, and a snapshot of this server's own that was begun before a truncation never counts after it.
    fn place(&self, job: SnapshotJob, draft: Draft, out: &mut Vec<Action>) {
        if job.is_leaders || job.truncations == self.truncations {
            out.push(Action::Log(store::Command::Place { draft, replaces: job.is_leaders }));
            return;
        }
        tracing::info!(zxid = %draft.zxid, "snapshot discarded: the log was truncated meanwhile");
        out.push(Action::DiscardSnapshot(draft));
    }
}

/// The leader's tree takes the place of all that a truncation just before it could not reach.
fn mark_replaced(out: &mut [Action]) {
    let last = out.iter_mut().rev().find_map(|action| match action {
        Action::Log(command) => Some(command),
        _ => None,
    });
    if let Some(store::Command::Truncate { replaced, .. }) = last {
        *replaced = true;
    }
}

impl Member {
    pub(super) fn on_snapshot(
        &mut self,
        now: Now,
        job: SnapshotJob,
        draft: Option<Draft>,
        out: &mut Vec<Action>,
    ) {
        self.step_replica(now, replica::Input::SnapshotEnded(job.frozen), out);
        if let Some(draft) = draft {
            self.disk.place(job, draft, out);
        }
    }

    /// What the log thread has done.
    pub(super) fn on_log(&mut self, now: Now, event: worker::Event, out: &mut Vec<Action>) {
        let input = match event {
            worker::Event::Flushed(report) => {
                let flushed = replica::Input::Flushed { through: report.through, now_us: now.us };
                return self.step_replica(now, flushed, out);
            }
            worker::Event::Truncated { to } => zab::Input::Truncated { to },
            worker::Event::Uncuttable { last } => zab::Input::Uncuttable { last },
            worker::Event::Placed { zxid, replaces: true, .. } => zab::Input::Installed { zxid },
            worker::Event::Placed { replaces: false, .. } => return,
            worker::Event::EpochSaved { file, epoch } => {
                let promise = match file {
                    EpochFile::Accepted => Promise::Accepted,
                    EpochFile::Current => Promise::Current,
                };
                zab::Input::Promised { promise, epoch }
            }
            worker::Event::Failed(error) => {
                if let Some(failed) = failure(&error) {
                    self.step(now, failed, out);
                }
                return;
            }
        };
        self.step_zab(now, input, out);
    }
}

/// How a failure of the log thread ends the server; `None`: the snapshot thread met the same failure and reports it.
fn failure(error: &WorkerError) -> Option<Input> {
    if is_echo(error) {
        return None;
    }
    let (what, exit) = match error {
        // As Java: a server that can't write snapshots must not go on (D-34).
        WorkerError::Snapshot(_) => ("write snapshot", 10),
        WorkerError::Log(_)
        | WorkerError::Epoch(_)
        | WorkerError::Purge(_)
        | WorkerError::Mark(_) => ("the log's disk failed", 1),
    };
    Some(Input::Failed { reason: format!("{what}: {}", chain(error)), exit })
}

impl SnapshotJob {
    /// What is reported when no thread could be had for it. Other servers wait for a leader's tree to be on disk: without
    /// it this server can't go on.
    pub fn not_begun(self) -> Input {
        match self.is_leaders {
            true => Input::Failed { reason: "start snapshot thread".to_owned(), exit: 10 },
            false => Input::SnapshotWritten { job: self, draft: None },
        }
    }
}
