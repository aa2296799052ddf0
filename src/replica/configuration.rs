//! The configuration of the ensemble, as the tree and the transactions hold it.

use super::core::Core;
use crate::model::{View, Zxid};
use crate::tree::txn::Entry;
use crate::tree::{Tree, txn};
use crate::zab::{self, EntryError};

/// Texts of the last two configurations of a history. What came before them was committed, and has been replaced since.
#[derive(Clone, Copy, Debug)]
pub struct LastConfigs<'a> {
    /// `None`: the history begins with a tree, and that has one configuration only. Empty: there was none before `last`.
    pub before: Option<&'a [u8]>,
    pub last: Option<&'a [u8]>,
}

impl<'a> LastConfigs<'a> {
    /// The last configurations of a history that ends with this tree.
    pub fn of(tree: &'a Tree) -> Self {
        Self { before: tree.config_before(), last: tree.config_in_history() }
    }

    /// Oldest first.
    pub fn views(&self) -> Vec<View> {
        let texts = [self.before, self.last].into_iter().flatten();
        texts.filter_map(|text| View::from_bytes(text).ok()).collect()
    }
}

/// Gives a `zab` peer the functions that check proposals and find configurations in them.
pub fn adopt_entry_readers(peer: &mut zab::Peer) {
    (peer.core.finds_view, peer.core.checks_entry) = (view_in, check_entry);
}

/// Decodes the whole entry, as applying does: an entry that passes here never ends a server later.
fn check_entry(zxid: Zxid, entry: &[u8]) -> Result<(), EntryError> {
    let entry = Entry::decode(entry).map_err(|error| EntryError::Unreadable(error.to_string()))?;
    let found = entry.header.zxid;
    if found == zxid.to_wire() { Ok(()) } else { Err(EntryError::OtherZxid(found)) }
}

/// Gives a `zab` peer the configurations in its history. Committed or not, a proposed configuration counts together with the one in force
/// until a leader knows more. The dynamic configuration files may have lost it with the power.
///
/// A configuration of an epoch that this server has not promised is in no history: where all data was lost and the configuration files were not,
/// it was in force, and leaders wrote it into their trees.
pub fn set_views_of_history(peer: &mut zab::Peer, configs: LastConfigs<'_>) {
    let mut views = configs.views();
    views.retain(|view| view.is_promised(peer.core.accepted));
    let newest = views.last().map(|view| view.version);
    // A configuration file that no reconfiguration has changed is the operator's, whatever configuration the tree has. What this server
    // has acknowledged since is saved: each configuration that is in its history and is not saved is older than the operator's.
    if peer.core.view.version == 0 {
        let core = &peer.core;
        let is_saved =
            |view: &View| core.current_and_proposed().any(|known| known.version == view.version);
        let (saved, older) = views.into_iter().partition(is_saved);
        peer.core.see_outranked_views(older);
        views = saved;
    }
    views.into_iter().for_each(|view| peer.core.see_logged_view(view));
    if let Some(version) = newest
        && peer.core.current_and_proposed().any(|view| view.version == version)
        && let Some(before) = configs.before.and_then(version_of)
    {
        peer.core.see_order(version, before);
    }
}

/// Version of a configuration; a server without one has an empty text.
fn version_of(text: &[u8]) -> Option<i64> {
    if text.is_empty() { Some(0) } else { View::from_bytes(text).ok().map(|view| view.version) }
}

/// The configuration that an entry proposes.
fn view_in(entry: &[u8]) -> Option<View> {
    View::from_bytes(txn::config_in(entry)?)
        .inspect_err(|error| tracing::error!(%error, "reconfiguration ignored, it can't be read: run the same version on all servers"))
        .ok()
}

impl Core {
    /// Writes the configuration in force into the tree, where clients read it.
    pub fn write_config(&self) {
        let view = &self.zab.core.view;
        let text = view.to_string();
        let mut tree = self.shared.state.tree.write();
        tree.set_config(text.as_bytes(), view.version, self.wall_ms);
    }
}
