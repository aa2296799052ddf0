//! Who votes while an ensemble is being changed.

use crate::model::{ServerId, View};
use std::collections::BTreeSet;

/// The configuration that holds and, while the ensemble is being changed, the one that was proposed.
#[derive(Clone, Debug)]
pub struct Views {
    pub current: View,
    pub next: Option<View>,
}

impl Views {
    pub fn of(current: View) -> Self {
        Self { current, next: None }
    }

    /// Whether a server votes in either.
    pub fn is_voter(&self, id: ServerId) -> bool {
        self.all().any(|view| view.is_voter(id))
    }

    /// Whether a server is in either, whether it votes or not.
    pub fn has_member(&self, id: ServerId) -> bool {
        self.all().any(|view| view.members.contains_key(&id))
    }

    /// Who votes in either, in rising order.
    pub fn voters(&self) -> BTreeSet<ServerId> {
        self.all().flat_map(View::voters).collect()
    }

    /// Whether `ids` are a quorum in each. A `next` that is not newer decides nothing, as in Java.
    pub fn have_quorums(&self, ids: &BTreeSet<ServerId>) -> bool {
        self.have_quorums_or(ids, None)
    }

    /// Likewise; `alone`: enough where it is one of two.
    pub fn have_quorums_or(&self, ids: &BTreeSet<ServerId>, alone: Option<ServerId>) -> bool {
        let newer = |view: &&View| self.current.version < view.version;
        let next = self.next.iter().filter(newer);
        std::iter::once(&self.current).chain(next).all(|view| view.has_quorum_or(ids, alone))
    }

    /// Whether a candidate's vote is told to weigh nothing, so that it can't be elected.
    ///
    /// One that only `next` knows is judged by it.
    pub fn weighs_nothing(&self, id: ServerId) -> bool {
        self.all().find(|view| view.is_voter(id)).is_some_and(|view| view.weight(id) == 0)
    }

    fn all(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.current).chain(&self.next)
    }
}
