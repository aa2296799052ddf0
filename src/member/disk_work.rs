//! The order of disk work: log commands, snapshots, truncations.

use super::{Action, LogReadLimit, SnapshotJob};
use crate::model::{Epoch, Zxid};
use crate::replica;
use crate::store::epoch::EpochFile;
use crate::store::{self, Draft, log_read};
use crate::tree::freeze::Frozen;
use crate::zab::Promise;

/// The disk work that was asked for.
pub struct DiskWork {
    /// Truncations of the log, and restores, that were asked for.
    truncations: u64,
    log_read: LogReadLimit,
}

impl DiskWork {
    pub const fn new(log_read: LogReadLimit) -> Self {
        Self { truncations: 0, log_read }
    }

    /// Translates the disk work that `replica` asks for; its other actions are translated elsewhere.
    pub fn translate(&self, action: replica::Action, out: &mut Vec<Action>) {
        match action {
            replica::Action::Append { zxid, entry } => {
                out.push(Action::Log(store::Command::Append { zxid, entry }));
            }
            replica::Action::Roll => out.push(Action::Log(store::Command::Roll)),
            replica::Action::NoteDoubt => out.push(Action::Log(store::Command::NoteDoubt)),
            replica::Action::ForgetDoubt => out.push(Action::Log(store::Command::ForgetDoubt)),
            replica::Action::NoteDifference { since } => {
                out.push(Action::Log(store::Command::NoteDifference { since }));
            }
            replica::Action::Snapshot(frozen) => self.write_snapshot(frozen, false, out),
            replica::Action::Install(frozen) => {
                out.push(Action::Log(store::Command::Roll));
                self.write_snapshot(frozen, true, out);
            }
            replica::Action::Rebuild => out.push(Action::LoadTree),
            replica::Action::SendTree { .. }
            | replica::Action::PlaceRestored
            | replica::Action::Peer(_)
            | replica::Action::Wake(_)
            | replica::Action::Stop(_) => {}
        }
    }

    fn write_snapshot(&self, frozen: Frozen, is_leaders: bool, out: &mut Vec<Action>) {
        let truncations = self.truncations;
        out.push(Action::WriteSnapshot(SnapshotJob { frozen, is_leaders, truncations }));
    }

    /// * `before_tree`: the leader's tree follows, and replaces all that the truncation can't reach.
    pub fn truncate(&mut self, to: Zxid, before_tree: bool, out: &mut Vec<Action>) {
        self.truncations += 1;
        out.push(Action::Log(store::Command::Truncate { to, replaced: before_tree }));
    }

    /// A restored tree replaces everything: no snapshot that was begun before gets a name any more.
    pub const fn replace_all(&mut self) {
        self.truncations += 1;
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
    ///
    /// `false`: it gets none.
    pub fn place(&self, job: SnapshotJob, draft: Draft, out: &mut Vec<Action>) -> bool {
        if job.is_leaders || job.truncations == self.truncations {
            out.push(Action::Log(store::Command::Place { draft, replaces: job.is_leaders }));
            return true;
        }
        tracing::info!(zxid = %draft.zxid, "snapshot discarded: the log was truncated meanwhile");
        out.push(Action::DiscardSnapshot(draft));
        false
    }
}
