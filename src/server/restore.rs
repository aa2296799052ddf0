//! From the files to a tree.

use crate::model::{Zxid, op};
use crate::store::{Progress, Restore, Trailers};
use crate::tree::load::{LoadError, Loader};
use crate::tree::txn::{Entry, Txn, TxnError};
use crate::tree::{Options, Tree};
use jute::txn::{TxnDigest, TxnHeader};
use std::time::{Duration, Instant};

/// Progress of a long load is told this often.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Znodes named in one line.
const LOST_SHOWN: usize = 10;

/// A tree being restored.
pub struct Restorer {
    options: Options,
    loader: Loader,
    tree: Tree,
    /// Where Java's snapshot stops being fuzzy: digests are compared from there on (D-69).
    exact_from: i64,
    expected: Option<(i64, i64)>,
    pub digest_mismatches: u64,
    /// Transactions of the log.
    replayed: u64,
    told: Instant,
}

/// Why the files can't be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("replay transaction {zxid:#x}")]
    Txn { zxid: i64, source: TxnError },
}

impl Restorer {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            loader: Loader::new(options),
            tree: Tree::new(options),
            exact_from: 0,
            expected: None,
            digest_mismatches: 0,
            replayed: 0,
            told: Instant::now(),
        }
    }

    /// The tree, with the ephemerals of sessions that no longer exist taken away (D-67). Their number comes with it.
    pub fn finish(mut self) -> (Tree, usize) {
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
        let (paths, count) = self.tree.znodes_without_acl(LOST_SHOWN);
        if 0 < count {
            tracing::error!(
                "the snapshot holds {count} znodes without their access lists, and the log does not bring them back; \
                 only a superuser may touch them, and give them new ones: {}",
                paths.join(" ")
            );
        }
        (self.tree, orphans.len())
    }

    fn compare(&mut self, zxid: i64, digest: TxnDigest) {
        if !self.options.digest
            || digest.version != crate::tree::digest::DIGEST_VERSION
            || zxid < self.exact_from
        {
            return;
        }
        let ours = self.tree.digest() as i64;
        if ours != digest.tree_digest {
            self.digest_mismatches += 1;
            if self.digest_mismatches == 1 {
                tracing::error!(
                    "digest mismatch at {zxid:#x}: logged {}, the tree has {ours}",
                    digest.tree_digest
                );
            }
        }
    }

    /// One line now and then: a big state takes a while, and whoever waits wants to know how long.
    fn is_time_to_tell(&mut self) -> bool {
        let due = self.told.elapsed() >= TELL_EVERY;
        if due {
            self.told = Instant::now();
        }
        due
    }
}

impl Restore for Restorer {
    type Error = RestoreError;

    fn reset(&mut self) {
        *self = Self::new(self.options);
    }

    fn snapshot_read(&mut self, done_bytes: u64, all_bytes: u64) {
        if self.is_time_to_tell() {
            let percent = done_bytes * 100 / all_bytes.max(1);
            tracing::info!(
                znodes = self.loader.nodes(),
                bytes = done_bytes,
                of = all_bytes,
                percent,
                "restoring: snapshot"
            );
        }
    }

    fn snapshot_bytes(&mut self, bytes: &[u8]) -> Result<Progress, RestoreError> {
        let taken = self.loader.take(bytes)?;
        Ok(Progress { consumed: taken.bytes, finished: taken.ended })
    }

    fn snapshot_done(&mut self, zxid: Zxid, trailers: Trailers) -> Result<(), RestoreError> {
        self.tree = std::mem::replace(&mut self.loader, Loader::new(self.options)).finish(zxid)?;
        if let Some(digest) = trailers.digest.filter(|digest| digest.zxid > 0) {
            self.exact_from = digest.zxid;
            self.expected = Some((digest.zxid, digest.digest));
            if digest.zxid == zxid.to_wire() {
                self.compare(
                    digest.zxid,
                    TxnDigest { version: digest.version, tree_digest: digest.digest },
                );
            }
        }
        Ok(())
    }

    fn replay(&mut self, zxid: i64, entry: &[u8]) -> Result<(), RestoreError> {
        let entry = Entry::decode(entry).map_err(|source| RestoreError::Txn { zxid, source })?;
        self.tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        if let Some(digest) = entry.digest {
            self.compare(zxid, digest);
        }
        self.replayed += 1;
        if self.is_time_to_tell() {
            tracing::info!(
                txns = self.replayed,
                zxid = format!("{zxid:#x}"),
                znodes = self.tree.node_count(),
                "restoring: log"
            );
        }
        Ok(())
    }
}
