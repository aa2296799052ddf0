//! Reports of tree digests that differ from the predicted ones (D-68).

use crate::model::Zxid;

/// Differing digests are reported at most this often.
const REPORT_PAUSE_MS: u64 = 10_000;

/// Counts of digests that differed.
#[derive(Debug, Default)]
pub struct DigestMismatches {
    /// `Some`: the tree came with SNAP, and this many digests differed since. A Java leader writes its tree while it changes
    /// it, so such a tree may hold the effects of later transactions: until this server follows, differing digests are
    /// expected.
    fuzzy: Option<u64>,
    /// Digests that differed since the last report.
    unreported: u64,
    /// Monotonic milliseconds of the last report.
    reported_ms: Option<u64>,
    /// The tree did not fit the digests in the log from which it was loaded. No leader's tree has replaced it since, and it fitted no digest of a
    /// leader. Not set by what differs while this server follows: that leader's tree may be the one that lacks something.
    tree_differs: bool,
    /// The tree was what this server's data is, and has had another digest than its leader's since this transaction. The disk has a note of it.
    differs_since: Option<Zxid>,
    /// A leader sent the tree, and it has had no digest since: if it differs, then not because of what this server had.
    is_untried: bool,
}

impl DigestMismatches {
    /// A tree that came with SNAP has replaced the old one: from here on digests may differ.
    pub const fn expect(&mut self) {
        self.fuzzy = Some(0);
        self.tree_differs = false;
        // The note goes when that tree is on disk.
        self.differs_since = None;
        self.is_untried = true;
    }

    /// The tree was found to differ when it was loaded.
    pub const fn differ(&mut self) {
        self.tree_differs = true;
    }

    /// A restored tree has replaced the old one, on disk, too.
    pub const fn restore(&mut self) {
        self.tree_differs = false;
        (self.differs_since, self.is_untried) = (None, false);
    }

    /// The log was truncated, and the tree loaded again: it ends with `last`.
    pub fn truncate(&mut self, last: Zxid) {
        self.differs_since.take_if(|since| last < *since);
    }

    /// The tree has a digest of its leader's. `true`: it was in doubt.
    pub const fn fit(&mut self) -> bool {
        std::mem::replace(&mut self.tree_differs, false)
    }

    /// The tree has a digest of its leader's.
    pub const fn match_leader(&mut self) {
        self.is_untried = false;
    }

    /// The tree has another digest than its leader's after this transaction. A tree that was in doubt before proves nothing.
    /// Returns the transaction that is to be noted on disk.
    pub fn differ_from_leader(&mut self, zxid: i64) -> Option<Zxid> {
        if !self.tree_differs && !self.is_untried && self.differs_since.is_none() {
            self.differs_since = Zxid::from_wire(zxid);
            return self.differs_since;
        }
        None
    }

    /// An earlier run has noted that.
    pub const fn know_difference(&mut self, since: Zxid) {
        self.differs_since = Some(since);
    }

    /// Whether a tree that is loaded again, and differs from the log since this transaction, does so because it differed from its leader.
    pub fn is_known_to_differ(&self, since: Zxid) -> bool {
        !self.tree_differs && self.differs_since.is_some_and(|known| known <= since)
    }

    pub const fn tree_differs(&self) -> bool {
        self.tree_differs
    }

    /// Expects the predicted digests from here on. Returns how many differed since the tree came with SNAP.
    pub fn expect_no_more(&mut self) -> u64 {
        self.fuzzy.take().unwrap_or(0)
    }

    /// Reports a difference. `false`: it was expected, and does not count.
    pub fn note(&mut self, zxid: i64, predicted: i64, found: u64, now_ms: u64) -> bool {
        let text =
            format!("digest mismatch at {zxid:#x}: predicted {predicted}, the tree has {found}");
        if let Some(expected) = &mut self.fuzzy {
            *expected += 1;
            tracing::debug!("{text}; expected, as the tree came with SNAP");
            return false;
        }
        // Once the trees differ, all following digests differ: what matters is the first, and that it goes on.
        self.unreported += 1;
        if self.reported_ms.is_none_or(|reported_ms| reported_ms + REPORT_PAUSE_MS <= now_ms) {
            let left_out = self.unreported - 1;
            tracing::error!(
                zxid = %format_args!("{zxid:#x}"),
                left_out,
                "{text}; which of the two lacks something is not known: compare the znodes of all members before one is emptied (docs/operations.md, Trees that differ)"
            );
            (self.unreported, self.reported_ms) = (0, Some(now_ms));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zxid(raw: i64) -> Zxid {
        Zxid::from_wire(raw).unwrap()
    }

    // The disk forgets its note with a restored tree, and where the log is truncated before it.
    // rows: D-69
    #[test]
    fn difference_is_noted_again_after_a_restore_or_a_truncation() {
        let mut mismatches = DigestMismatches::default();
        assert_eq!(mismatches.differ_from_leader(5), Some(zxid(5)));
        assert_eq!(mismatches.differ_from_leader(6), None, "once");
        mismatches.restore();
        assert!(!mismatches.is_known_to_differ(zxid(5)));
        assert_eq!(mismatches.differ_from_leader(7), Some(zxid(7)));
        mismatches.truncate(zxid(7));
        assert!(mismatches.is_known_to_differ(zxid(7)));
        mismatches.truncate(zxid(6));
        assert!(!mismatches.is_known_to_differ(zxid(7)));
        assert_eq!(mismatches.differ_from_leader(8), Some(zxid(8)));
    }

    // rows: D-69
    #[test]
    fn difference_of_a_tree_that_came_is_not_noted_before_it_has_a_digest_of_a_leader() {
        let mut mismatches = DigestMismatches::default();
        mismatches.expect();
        assert_eq!(mismatches.differ_from_leader(5), None);
        mismatches.match_leader();
        assert_eq!(mismatches.differ_from_leader(6), Some(zxid(6)));
    }
}
