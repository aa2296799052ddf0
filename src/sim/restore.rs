//! A tree from a virtual disk: what `server::Restorer` does, on one thread.

use super::server::Disk;
use crate::model::Zxid;
use crate::store::quarantine::{self, Trouble};
use crate::store::{Folders, Progress, RecoverOptions, Recovered, Restore, Trailers, recover};
use crate::tree::load::{Batch, LoadError, Parser};
use crate::tree::rebuild::Rebuild;
use crate::tree::txn::{Entry, TxnError};
use crate::tree::{Options, Tree};
use jute::txn::TxnDigest;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("replay {zxid:#x}: {source}")]
    Txn { zxid: i64, source: TxnError },
}

pub struct Restorer {
    options: Options,
    parser: Parser,
    batch: Batch,
    rebuild: Rebuild,
}

impl Restorer {
    pub fn new(options: Options) -> Self {
        let (parser, rebuild) = (Parser::new(options), Rebuild::new(options));
        Self { options, parser, batch: Batch::default(), rebuild }
    }

    /// The tree, and how many digests were not those logged. An ensemble agrees on what becomes of orphans.
    pub fn finish(self) -> (Tree, u64) {
        (self.rebuild.tree, self.rebuild.digest_mismatches)
    }
}

impl Restore for Restorer {
    type Error = RestoreError;

    fn reset(&mut self) {
        *self = Self::new(self.options);
    }

    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, RestoreError> {
        self.batch.clear();
        let taken = self.parser.take(bytes, &mut self.batch)?;
        self.rebuild.add(&self.batch)?;
        Ok(Progress { consumed: taken.bytes, finished: taken.ended })
    }

    fn snapshot_done(&mut self, zxid: Zxid, trailers: Trailers) -> Result<(), RestoreError> {
        let digest = trailers.digest.map(|digest| {
            (digest.zxid, TxnDigest { version: digest.version, tree_digest: digest.digest })
        });
        Ok(self.rebuild.snapshot_done(zxid, digest)?)
    }

    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), RestoreError> {
        let entry = Entry::decode(entry).map_err(|source| RestoreError::Txn { zxid, source })?;
        self.rebuild.replay(&entry);
        Ok(())
    }
}

/// Fills `restorer` from a disk.
///
/// # Errors
/// In words, why that can't be done.
pub fn restore(
    disk: &Disk,
    folders: &Folders,
    wanted: RecoverOptions,
    restorer: &mut Restorer,
) -> Result<Recovered, String> {
    restore_as(disk, folders, wanted, restorer).map_err(|(why, _)| why)
}

/// Likewise.
///
/// # Errors
/// Also by its kind.
pub fn restore_as(
    disk: &Disk,
    folders: &Folders,
    wanted: RecoverOptions,
    restorer: &mut Restorer,
) -> Result<Recovered, (String, Trouble)> {
    recover(disk, folders, wanted, restorer, || Duration::ZERO).map_err(|error| {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            text = format!("{text}: {deeper}");
            cause = deeper.source();
        }
        (text, quarantine::trouble(&error))
    })
}
