//! Builds a tree from a snapshot and the log after it, and compares it with the digests in both.

use super::digest::DIGEST_VERSION;
use super::load::{Batch, Builder, LoadError};
use super::txn::{Entry, Txn};
use super::{Options, Tree};
use crate::model::{SessionId, Zxid, op};
use jute::txn::{TxnDigest, TxnHeader};

/// How a tree compared with the digests in the log from which it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Transactions after which the tree had another digest than was logged (D-69).
    pub mismatches: u64,
    /// The first of those transactions.
    pub differs_since: Option<Zxid>,
    /// The last transaction of the log with a digest.
    pub last: Option<Zxid>,
}

/// The tree and what is compared with it.
pub struct Rebuild {
    options: Options,
    builder: Builder,
    pub tree: Tree,
    /// Where Java's snapshot stops being fuzzy: digests are compared from there on (D-69).
    exact_from: i64,
    /// The digest at `exact_from` did not match, and no later one has been compared. Java reads that zxid while the next
    /// transaction may be half applied to the tree that it has just written: if so, the next digest matches (G-21).
    unsettled: Option<Mismatch>,
    /// Without an unsettled digest.
    comparison: Comparison,
}

/// A digest that the tree should have had.
struct Mismatch {
    zxid: i64,
    logged: i64,
    found: i64,
}

impl Rebuild {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            builder: Builder::new(options),
            tree: Tree::new(options),
            exact_from: 0,
            unsettled: None,
            comparison: Comparison::default(),
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
            self.comparison.last = Zxid::from_wire(entry.header.zxid);
        }
    }

    fn compare(&mut self, zxid: i64, digest: TxnDigest) {
        if !self.options.digest || digest.version != DIGEST_VERSION || zxid < self.exact_from {
            return;
        }
        let (logged, found) = (digest.tree_digest, self.tree.digest() as i64);
        let earlier = self.unsettled.take();
        if logged == found {
            if let Some(Mismatch { zxid, .. }) = earlier {
                tracing::info!(
                    "the snapshot has an effect of the transaction after {zxid:#x}; the digests after it match"
                );
            }
            return;
        }
        if let Some(earlier) = earlier {
            self.count(&earlier);
        }
        let mismatch = Mismatch { zxid, logged, found };
        if zxid == self.exact_from {
            self.unsettled = Some(mismatch);
        } else {
            self.count(&mismatch);
        }
    }

    fn count(&mut self, mismatch: &Mismatch) {
        let Mismatch { zxid, logged, found } = *mismatch;
        self.comparison.mismatches += 1;
        self.comparison.differs_since = self.comparison.differs_since.or(Zxid::from_wire(zxid));
        if self.comparison.mismatches == 1 {
            tracing::error!(
                zxid = %format_args!("{zxid:#x}"),
                "digest mismatch at {zxid:#x}: logged {logged}, the tree has {found}; check disk and memory"
            );
        }
    }

    /// The log has ended.
    pub fn replay_done(&mut self) -> Comparison {
        if let Some(mismatch) = self.unsettled.take() {
            self.count(&mismatch);
        }
        self.comparison
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
            tracing::warn!(
                session = %SessionId(client_id),
                "session {client_id:#x} is gone, so its ephemeral znodes are removed; nothing to do"
            );
            self.tree.apply(&header, &Txn::CloseSession { paths: None }, &mut Vec::new());
        }
        orphans.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::txn::{Create, CreateKind};

    const OPTIONS: Options =
        Options { seed: 1, digest: true, extended_types: false, emulate_353: false };

    /// Creates of the znodes `/z1`, `/z2`..., with the digests that a server logs with them.
    fn history(count: i64) -> Vec<Entry<'static>> {
        let mut tree = Tree::new(OPTIONS);
        (1..=count)
            .map(|zxid| {
                let header = TxnHeader { zxid, kind: op::CREATE, ..TxnHeader::default() };
                let txn = Txn::Create(Create {
                    path: format!("/z{zxid}").into(),
                    data: None,
                    acl: &[0; 4],
                    kind: CreateKind::Persistent,
                    parent_cversion: zxid as i32,
                });
                tree.apply(&header, &txn, &mut Vec::new());
                let tree_digest = tree.digest() as i64;
                Entry {
                    header,
                    txn,
                    digest: Some(TxnDigest { version: DIGEST_VERSION, tree_digest }),
                }
            })
            .collect()
    }

    /// Replays a log onto a snapshot with the digest of zxid 3, in which the effects of transactions up to `ahead` are.
    fn mismatches(log: &[Entry<'_>], ahead: usize) -> u64 {
        let mut rebuild = Rebuild::new(OPTIONS);
        rebuild.exact_from = 3;
        for entry in &history(6)[..ahead] {
            rebuild.tree.apply(&entry.header, &entry.txn, &mut Vec::new());
        }
        log.iter().for_each(|entry| rebuild.replay(entry));
        rebuild.replay_done().mismatches
    }

    // rows: D-69 G-21
    #[test]
    fn snapshot_ahead_of_its_digest_by_one_transaction_is_no_mismatch_if_the_next_digest_matches() {
        for ahead in 0..=3 {
            assert_eq!(mismatches(&history(6), ahead), 0, "{ahead}");
        }
        assert_eq!(mismatches(&history(6), 4), 0);
        // Two transactions ahead of it is no snapshot that Java writes.
        assert_eq!(mismatches(&history(6), 5), 2);
    }

    // A leader whose tree lacked something has led for a while, and another after it.
    // rows: D-69
    #[test]
    fn tree_differs_since_the_first_mismatch_even_if_later_digests_match() {
        for (others, since) in [(&[][..], None), (&[3, 4], Some(3)), (&[5, 6], Some(5))] {
            let mut rebuild = Rebuild::new(OPTIONS);
            for mut entry in history(6) {
                if others.contains(&entry.header.zxid) {
                    entry.digest = Some(TxnDigest { version: DIGEST_VERSION, tree_digest: 1 });
                }
                rebuild.replay(&entry);
            }
            let zxid = |raw| Zxid::from_wire(raw).unwrap();
            let (mismatches, differs_since) = (others.len() as u64, since.map(zxid));
            let expected = Comparison { mismatches, differs_since, last: Some(zxid(6)) };
            assert_eq!(rebuild.replay_done(), expected);
        }
    }

    // The digest of a snapshot is that of its own tree, and says nothing of what a leader had.
    #[test]
    fn digest_of_the_snapshot_alone_compares_nothing_of_the_log() {
        let mut rebuild = Rebuild::new(OPTIONS);
        let tree_digest = rebuild.tree.digest() as i64;
        rebuild.compare(3, TxnDigest { version: DIGEST_VERSION, tree_digest });
        assert_eq!(rebuild.replay_done(), Comparison::default());
    }

    // rows: D-69 G-21
    #[test]
    fn mismatch_at_the_end_of_the_log_counts_and_so_does_one_that_goes_on() {
        // The log does not have the transaction whose effect is in the snapshot.
        assert_eq!(mismatches(&history(3), 4), 1);
        // A transaction is lost before the digest of the snapshot.
        let mut log = history(6);
        log.remove(1);
        assert_eq!(mismatches(&log, 0), 4);
        // One is lost after it.
        let mut log = history(6);
        log.remove(3);
        assert_eq!(mismatches(&log, 0), 2);
    }
}
