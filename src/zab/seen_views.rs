//! From where a server knows its proposed configurations.

use std::collections::BTreeSet;

/// Versions of configurations that were proposed.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenViews {
    /// Configurations in this server's history.
    pub in_history: BTreeSet<i64>,
    /// Configurations in the history before a truncation that is under way.
    pub before_cut: Option<BTreeSet<i64>>,
    /// The configuration that NEWLEADER named.
    pub named: Option<i64>,
    /// Configurations in `.dynamic.next`, oldest first.
    pub saved: Vec<i64>,
    /// A configuration that is a transaction of this server's history, and the configuration before it.
    pub followed: Option<(i64, i64)>,
}
