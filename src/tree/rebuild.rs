//! Builds a tree from a snapshot and the log after it, and compares it with the digests in both.

use super::digest::DIGEST_VERSION;
use super::load::{Batch, Builder, LoadError};
use super::txn::{Entry, Txn};
use super::{Options, Tree};
use crate::model::{Zxid, op};
use jute::txn::{TxnDigest, TxnHeader};

/// The tree and what is compared with it.
pub struct Rebuild {
    options: Options,
    builder: Builder,
    pub tree: Tree,
    /// Where Java's snapshot stops being fuzzy: digests are compared from there on (D-69).
    exact_from: i64,
    /// Transactions after which the tree had another digest than was logged (D-69).
    pub digest_mismatches: u64,
}

impl Rebuild {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            builder: Builder::new(options),
            tree: Tree::new(options),
            exact_from: 0,
            digest_mismatches: 0,
        }
    }

    /// Adds what a snapshot holds; batches come in the order of their stream.
    ///
    /// # Errors
    /// [`LoadError`] when it does not fit what came before.
    pub fn add(&mut self, batch: &Batch) -> Result<(), LoadError> {
        self.builder.add(batch)
    }

    /// The snapshot is complete.
    ///
    /// * `zxid`: from the file's name. `digest`: of the snapshot, and the zxid it belongs to.
    ///
    /// # Errors
    /// [`LoadError::NoRoot`] when it held no root.
    pub fn snapshot_done(
        &mut self,
        zxid: Zxid,
        digest: Option<(i64, TxnDigest)>,
    ) -> Result<(), LoadError> {
        let builder = std::mem::replace(&mut self.builder, Builder::new(self.options));
        self.tree = builder.finish(zxid)?;
        if let Some((at, digest)) = digest.filter(|(at, _)| 0 < *at) {
            self.exact_from = at;
            if at == zxid.to_wire() {
                self.compare(at, digest);
            }
        }
        Ok(())
    }

    /// Applies what the log holds.
    pub fn replay(&mut self, entry: &Entry<'_>) {
        self.tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        if let Some(digest) = entry.digest {
            self.compare(entry.header.zxid, digest);
        }
    }

    fn compare(&mut self, zxid: i64, digest: TxnDigest) {
        if !self.options.digest || digest.version != DIGEST_VERSION || zxid < self.exact_from {
            return;
        }
        let ours = self.tree.digest() as i64;
        if ours != digest.tree_digest {
            self.digest_mismatches += 1;
            if self.digest_mismatches == 1 {
                tracing::error!(
                    "digest mismatch at {zxid:#x}: logged {}, the tree has {ours}; check disk and memory",
                    digest.tree_digest
                );
            }
        }
    }

    /// Removes the ephemerals of sessions that no longer exist (D-67); returns the number of those sessions.
    pub fn remove_orphans(&mut self) -> usize {
        let orphans = self.tree.orphan_sessions();
        for &client_id in &orphans {
            let header = TxnHeader {
                client_id,
                zxid: self.tree.last_zxid().to_wire(),
                kind: op::CLOSE_SESSION,
                ..TxnHeader::default()
            };
            tracing::warn!("session {client_id:#x} is gone; its ephemeral znodes are removed");
            self.tree.apply(&header, &Txn::CloseSession { paths: None }, &mut Vec::new());
        }
        orphans.len()
    }
}
