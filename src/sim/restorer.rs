//! A tree loaded from files on one thread; the server's restorer parses and builds on two.

use crate::model::Zxid;
use crate::store::{Progress, Restore, Trailers};
use crate::tree::load::{Batch, LoadError, Parser};
use crate::tree::rebuild::{Comparison, Rebuild};
use crate::tree::txn::{Entry, TxnError};
use crate::tree::{Options, Tree};
use jute::txn::TxnDigest;

/// Why a snapshot or a log entry was refused.
#[derive(Debug, thiserror::Error)]
pub enum SimRestoreError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("replay {zxid:#x}: {source}")]
    Txn { zxid: i64, source: TxnError },
}

/// Builds a tree from what [`crate::store::recover()`] reads.
pub struct SimRestorer {
    options: Options,
    parser: Parser,
    batch: Batch,
    rebuild: Rebuild,
}

impl SimRestorer {
    pub fn new(options: Options) -> Self {
        let (parser, rebuild) = (Parser::new(options), Rebuild::new(options));
        Self { options, parser, batch: Batch::default(), rebuild }
    }

    /// The tree, and how it compared with the logged digests. Ephemeral znodes of sessions that are gone stay: an ensemble agrees
    /// on their deletion.
    pub fn finish(mut self) -> (Tree, Comparison) {
        let comparison = self.rebuild.replay_done();
        (self.rebuild.tree, comparison)
    }
}

/// The tree of a snapshot's stream, and the paths of its znodes.
///
/// # Errors
/// Why the stream is refused.
pub fn tree_of(
    body: &[u8],
    zxid: Zxid,
    options: Options,
) -> Result<(Tree, Vec<String>), SimRestoreError> {
    let mut restorer = SimRestorer::new(options);
    let (mut rest, mut paths) = (body, Vec::new());
    loop {
        let progress = restorer.snapshot_bytes(rest)?;
        paths.extend(restorer.batch.znodes().map(|znode| znode.path.into_owned()));
        rest = &rest[progress.consumed..];
        if progress.finished || progress.consumed == 0 {
            break;
        }
    }
    restorer.snapshot_done(zxid, Trailers { digest: None, zxid: None })?;
    Ok((restorer.finish().0, paths))
}

impl Restore for SimRestorer {
    type Error = SimRestoreError;

    fn reset(&mut self) {
        *self = Self::new(self.options);
    }

    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, SimRestoreError> {
        self.batch.clear();
        let taken = self.parser.take(bytes, &mut self.batch)?;
        self.rebuild.add(&self.batch)?;
        Ok(Progress { consumed: taken.bytes, finished: taken.ended })
    }

    fn snapshot_done(&mut self, zxid: Zxid, trailers: Trailers) -> Result<(), SimRestoreError> {
        let digest = trailers.digest.map(|digest| {
            (digest.zxid, TxnDigest { version: digest.version, tree_digest: digest.digest })
        });
        Ok(self.rebuild.snapshot_done(zxid, digest)?)
    }

    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), SimRestoreError> {
        let entry = Entry::decode(entry).map_err(|source| SimRestoreError::Txn { zxid, source })?;
        self.rebuild.replay(&entry);
        Ok(())
    }
}
