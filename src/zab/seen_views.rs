//! Where a server knows its proposed configurations from.

use std::collections::BTreeSet;

/// Versions of configurations that were proposed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenViews {
    /// Those that this server's history has.
    pub in_history: BTreeSet<i64>,
    /// Those that it had before a cut that is under way.
    pub before_cut: Option<BTreeSet<i64>>,
    /// The one that NEWLEADER named.
    pub named: Option<i64>,
    /// Those that `.dynamic.next` has, oldest first.
    pub saved: Vec<i64>,
    /// One that this server's history has as a transaction, and the one it followed.
    pub followed: Option<(i64, i64)>,
}
