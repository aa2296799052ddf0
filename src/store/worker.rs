//! The work of the log thread: a batch of commands in, events out, one fsync per batch.
//!
//! Commands take effect in the order they were sent, truncation included, and events come in that order. So a
//! `Flushed` from before a truncation can never be taken for one from after it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::disk::Disk;
use super::epoch::{self, EpochError, EpochFile};
use super::log::{Log, LogError};
use super::purge::{self, PurgeError};
use super::quarantine;
use super::replaced_files;
use super::snapshot::{Draft, SnapshotError};
use super::truncation_check;
use super::{differing, doubted};
use crate::model::{Epoch, STRANGERS, Zxid};

/// A command to the log thread.
#[derive(Clone, Debug)]
pub enum Command {
    /// `entry`: TxnHeader, txn, digest as they are logged and proposed (D-42).
    Append {
        zxid: Zxid,
        entry: Bytes,
    },
    /// The next record opens a new file.
    Roll,
    /// Truncate the log after `to`.
    ///
    /// * `replaced`: a leader's tree comes next and replaces everything, so it does not matter whether recovery would reach `to`.
    Truncate {
        to: Zxid,
        replaced: bool,
    },
    /// Give a snapshot its final name.
    ///
    /// * `replaces`: the snapshot is a leader's tree; a start must prefer it to any of this server's own.
    Place {
        draft: Draft,
        replaces: bool,
    },
    /// Give a restored snapshot its name, and set all older snapshots and logs aside.
    PlaceRestored {
        draft: Draft,
    },
    SaveEpoch {
        file: EpochFile,
        epoch: Epoch,
    },
    /// What follows is of a later epoch than currentEpoch, and comes with a synchronisation.
    NoteJoining,
    /// A snapshot comes of a tree that does not fit the digests in the log: later starts are to doubt it.
    NoteDoubt,
    /// The tree is the leader's.
    ForgetDoubt,
    /// The tree has another digest than the leader's since this transaction.
    NoteDifference {
        since: Zxid,
    },
}

/// A report of the log thread.
#[derive(Debug)]
pub enum Event {
    Flushed(FlushReport),
    Truncated {
        to: Zxid,
    },
    /// Recovery would not have ended at the zxid of the command. Nothing was changed: the log ends at `last`.
    CannotTruncate {
        last: Zxid,
    },
    Placed {
        zxid: Zxid,
        bytes: u64,
        replaces: bool,
    },
    /// The restored snapshot counts.
    Restored {
        zxid: Zxid,
    },
    EpochSaved {
        file: EpochFile,
        epoch: Epoch,
    },
    /// The disk failed. This is the last event: every later command is discarded.
    Failed(WorkerError),
}

/// One flush: what is durable now, and what it cost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FlushReport {
    pub through: Zxid,
    pub records: u32,
    pub bytes: u64,
    /// Bytes in the file written to.
    pub file_len: u64,
    /// How long the log thread was busy with the records before the sync.
    pub write_took: Duration,
    /// How long the sync took; `None` with `forceSync=no`, where there is none.
    pub sync_took: Option<Duration>,
    /// The flush was full: the next record had to wait for it.
    pub full: bool,
    /// The sync took longer than the threshold, and a warning was logged.
    pub slow: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Epoch(#[from] EpochError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("remove snapshots that are no longer valid")]
    Purge(#[from] PurgeError),
    #[error("rename files that a restored snapshot replaces")]
    RenameReplaced(#[source] std::io::Error),
    #[error("remove the mark of quarantined data")]
    Mark(#[source] std::io::Error),
    #[error("write or remove the mark of a doubted tree")]
    Doubt(#[source] std::io::Error),
    #[error("write or remove the note of a tree that differs from its leader's")]
    Difference(#[source] std::io::Error),
}

/// The log thread without the thread.
pub struct Worker<D: Disk, C> {
    log: Log<D>,
    disk: D,
    /// The folder of epoch files and snapshots.
    data_dir: PathBuf,
    slow_after: Duration,
    clock: C,
    /// When the first record that is not flushed yet was appended.
    began: Option<Duration>,
    failed: bool,
}

impl<D: Disk + Clone, C: FnMut() -> Duration> Worker<D, C> {
    /// * `data_dir`: `version-2` under dataDir.
    /// * `slow_after`: `fsync.warningthresholdms`, default 1,000 ms.
    /// * `clock`: any monotonic time.
    pub fn new(disk: D, log: Log<D>, data_dir: &Path, slow_after: Duration, clock: C) -> Self {
        let data_dir = data_dir.to_owned();
        Self { log, disk, data_dir, slow_after, clock, began: None, failed: false }
    }

    /// Runs a batch of commands and reports what became of them; leaves `batch` empty.
    ///
    /// Appends are flushed together: at the end of the batch, before a command of another kind, and whenever
    /// [`super::decide::FLUSH_MAX`] bytes have gathered.
    pub fn run(&mut self, batch: &mut Vec<Command>, report: &mut impl FnMut(Event)) {
        self.run_before_last_flush(batch, report);
        self.last_flush(report);
    }

    pub(super) fn run_before_last_flush(
        &mut self,
        batch: &mut Vec<Command>,
        report: &mut impl FnMut(Event),
    ) {
        for command in batch.drain(..) {
            if !self.failed {
                let done = self.command(command, report);
                self.settle(done, report);
            }
        }
    }

    pub(super) fn last_flush(&mut self, report: &mut impl FnMut(Event)) {
        if !self.failed {
            let done = self.flush(false, report);
            self.settle(done, report);
        }
    }

    /// True when [`Worker::prepare_ahead`] has something to do.
    pub fn wants_zeros_ahead(&self) -> bool {
        !self.failed && self.log.wants_zeros_ahead()
    }

    /// To be called when no command waits: see [`Log::prepare_ahead`].
    pub fn prepare_ahead(&mut self, report: &mut impl FnMut(Event)) {
        if !self.failed {
            let done = self.log.prepare_ahead().map_err(WorkerError::from);
            self.settle(done, report);
        }
    }

    fn command(
        &mut self,
        command: Command,
        report: &mut impl FnMut(Event),
    ) -> Result<(), WorkerError> {
        match command {
            Command::Append { zxid, entry } => {
                if self.log.is_full_for(entry.len()) {
                    self.flush(true, report)?;
                }
                if self.began.is_none() {
                    self.began = Some((self.clock)());
                }
                self.log.append(zxid, &entry);
            }
            Command::Roll => {
                self.flush(false, report)?;
                self.log.roll()?;
            }
            Command::Truncate { to, replaced } => {
                self.flush(false, report)?;
                report(self.truncate(to, replaced)?);
            }
            Command::Place { draft, replaces } => {
                self.flush(false, report)?;
                let (zxid, bytes) = (draft.zxid, draft.bytes);
                let placed = draft.place(&self.disk)?;
                if replaces {
                    purge::remove_snapshots_for(&self.disk, &placed.path, zxid)?;
                    self.log.drop_unreadable()?;
                    self.log.passed(zxid);
                    quarantine::unmark(&self.disk, &self.data_dir, self.log.dir())
                        .map_err(WorkerError::Mark)?;
                    self.forget_doubts()?;
                }
                report(Event::Placed { zxid, bytes, replaces });
            }
            Command::PlaceRestored { draft } => self.place_restored(draft, report)?,
            Command::SaveEpoch { file, epoch } => {
                self.flush(false, report)?;
                epoch::save(&self.disk, &self.data_dir, file, epoch)?;
                report(Event::EpochSaved { file, epoch });
            }
            Command::NoteJoining => epoch::note_joining(&self.disk, &self.data_dir)?,
            Command::NoteDoubt => {
                doubted::note(&self.disk, &self.data_dir).map_err(WorkerError::Doubt)?;
            }
            Command::ForgetDoubt => {
                self.flush(false, report)?;
                doubted::forget(&self.disk, &self.data_dir).map_err(WorkerError::Doubt)?;
            }
            Command::NoteDifference { since } => {
                differing::note(&self.disk, &self.data_dir, since)
                    .map_err(WorkerError::Difference)?;
            }
        }
        Ok(())
    }

    fn place_restored(
        &mut self,
        draft: Draft,
        report: &mut impl FnMut(Event),
    ) -> Result<(), WorkerError> {
        self.flush(false, report)?;
        self.log.roll()?;
        let zxid = draft.zxid;
        let placed = draft.place(&self.disk)?;
        let renamed = replaced_files::rename_all_but(&self.disk, &placed.path, self.log.dir());
        let renamed = renamed.map_err(WorkerError::RenameReplaced)?.len();
        self.log.passed(zxid);
        self.forget_doubts()?;
        tracing::info!(%zxid, renamed, "snapshot restored; older files are named restored-over.*");
        report(Event::Restored { zxid });
        Ok(())
    }

    /// Another tree is on disk in place of the one in doubt.
    fn forget_doubts(&self) -> Result<(), WorkerError> {
        doubted::forget(&self.disk, &self.data_dir).map_err(WorkerError::Doubt)?;
        differing::forget(&self.disk, &self.data_dir).map_err(WorkerError::Difference)
    }

    /// Removes everything greater than `to`, from the log before the snapshots: [`Log::truncate`] says why.
    ///
    /// Snapshots stay while a leader's tree is awaited: this server may have acknowledged what they hold, so nothing of it may
    /// be lost before that tree is durable.
    fn truncate(&mut self, to: Zxid, replaced: bool) -> Result<Event, WorkerError> {
        if !replaced && !truncation_check::reaches(&self.disk, &self.data_dir, self.log.dir(), to) {
            return Ok(Event::CannotTruncate { last: self.log.last().unwrap_or(Zxid::ZERO) });
        }
        self.log.truncate(to)?;
        if !replaced {
            purge::remove_snapshots_after(&self.disk, &self.data_dir, to)?;
        }
        differing::forget_after(&self.disk, &self.data_dir, to).map_err(WorkerError::Difference)?;
        Ok(Event::Truncated { to })
    }

    /// * `full`: another record waits, because no more fit into this flush.
    fn flush(&mut self, full: bool, report: &mut impl FnMut(Event)) -> Result<(), WorkerError> {
        self.log.write()?;
        let written = (self.clock)();
        let file_len = self.log.file_len();
        let Some(flushed) = self.log.sync()? else { return Ok(()) };
        let write_took = written.saturating_sub(self.began.take().unwrap_or(written));
        let sync_took = self.log.forces().then(|| (self.clock)().saturating_sub(written));
        let slow = sync_took.is_some_and(|took| self.slow_after < took);
        if slow {
            let took_ms = sync_took.unwrap_or_default().as_millis() as u64;
            let path = self.log.file().unwrap_or_else(|| self.log.dir());
            tracing::warn!(
                target: STRANGERS,
                took_ms,
                file_len,
                path = %path.display(),
                "fsync of the log is slow and delays every write: look for other load on its disk"
            );
        }
        report(Event::Flushed(FlushReport {
            through: flushed.through,
            records: flushed.records,
            bytes: flushed.bytes,
            file_len,
            write_took,
            sync_took,
            full,
            slow,
        }));
        Ok(())
    }

    fn settle(&mut self, done: Result<(), WorkerError>, report: &mut impl FnMut(Event)) {
        if let Err(error) = done {
            self.failed = true;
            report(Event::Failed(error));
        }
    }
}
