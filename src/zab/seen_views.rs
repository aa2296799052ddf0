//! Where a server knows its proposed configurations from.

use std::collections::BTreeSet;

/// Versions of configurations that were proposed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenViews {
    /// Those that this server's history has.
    pub in_history: BTreeSet<i64>,
    /// The one that NEWLEADER named.
    pub named: Option<i64>,
    /// The one that `.dynamic.next` has.
    pub saved: Option<i64>,
    /// One that was proposed, and the one it followed, where the history says so.
    pub followed: Option<(i64, i64)>,
}
