//! The voters while a reconfiguration is under way.

use crate::model::{ServerId, View};
use std::collections::BTreeSet;

/// The configuration in force and, during a reconfiguration, those that were proposed and may have been committed.
#[derive(Clone, Debug)]
pub struct Views {
    pub current: View,
    /// Oldest first.
    pub proposed: Vec<View>,
}

impl Views {
    pub fn of(current: View) -> Self {
        Self { current, proposed: Vec::new() }
    }

    /// Whether a server votes in any configuration.
    pub fn is_voter(&self, id: ServerId) -> bool {
        self.all().any(|view| view.is_voter(id))
    }

    /// Whether a server is in any configuration, whether it votes or not.
    pub fn has_member(&self, id: ServerId) -> bool {
        self.all().any(|view| view.members.contains_key(&id))
    }

    /// The voters of all configurations, in rising order.
    pub fn voters(&self) -> BTreeSet<ServerId> {
        self.all().flat_map(View::voters).collect()
    }

    /// Whether `ids` are a quorum of each configuration. A proposed configuration that is not newer than the one in force does not
    /// count, as in Java.
    pub fn have_quorums(&self, ids: &BTreeSet<ServerId>) -> bool {
        self.have_quorums_or(ids, None)
    }

    /// As [`Self::have_quorums`]; `alone`: a voter that suffices by itself where it is one of two.
    pub fn have_quorums_or(&self, ids: &BTreeSet<ServerId>, alone: Option<ServerId>) -> bool {
        let newer = |view: &&View| self.current.version < view.version;
        let proposed = self.proposed.iter().filter(newer);
        std::iter::once(&self.current).chain(proposed).all(|view| view.has_quorum_or(ids, alone))
    }

    /// Whether a candidate has weight 0, so that it can't be elected.
    ///
    /// The weight of a candidate that only a proposed configuration knows is its weight there.
    pub fn weighs_nothing(&self, id: ServerId) -> bool {
        self.all().find(|view| view.is_voter(id)).is_some_and(|view| view.weight(id) == 0)
    }

    fn all(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.current).chain(&self.proposed)
    }
}
