//! Whether the configuration in a tree is of the history that the tree stands for.

use crate::model::{Epoch, Zxid};

/// Where the configuration in a tree comes from.
///
/// Servers write the configuration in force into their trees. Where all data was lost and the configuration files were not, that is a
/// configuration of a later epoch than the history after the loss, and snapshots keep it, also when an operator has replaced it since.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConfigOrigin {
    /// A transaction of this history, or this process, has written it.
    History,
    /// The snapshot has a configuration of this epoch and of a later zxid than its own. Its transaction may follow in the log: Java writes
    /// snapshots while it applies transactions. Or a leader has named the configuration, and it is in no history.
    AfterSnapshot(Epoch),
    /// Such a configuration, and the next transactions are of an earlier epoch than it: no leader of their time can have known it.
    LostHistory,
}

impl ConfigOrigin {
    /// * `written`: the zxid of the transaction that made the configuration, which is its version.
    pub(super) fn of_snapshot(snapshot: Zxid, written: Option<Zxid>) -> Self {
        // The first configuration of an epoch is in no log.
        match written.filter(|written| written.counter() > 0 && snapshot < *written) {
            Some(written) => Self::AfterSnapshot(written.epoch()),
            None => Self::History,
        }
    }

    /// A transaction of epoch `next` follows what the tree has.
    pub(super) fn judge(&mut self, next: Epoch) {
        if let Self::AfterSnapshot(epoch) = *self
            && next < epoch
        {
            *self = Self::LostHistory;
        }
    }
}
