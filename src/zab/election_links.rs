//! Which election connections to members are up, as far as this server knows.

use super::Input;
use crate::model::ServerId;
use std::collections::{BTreeMap, BTreeSet};

/// Members with which this server has had an election connection since it started, and whether it has one now.
#[derive(Clone, Debug, Default)]
pub(super) struct ElectionLinks(BTreeMap<ServerId, bool>);

impl ElectionLinks {
    /// Notes what an input says about a connection, in any role: a dead leader's ends before its learners look for another one.
    ///
    /// * `is_member`: strangers connect to the election port too, each with another id. An observer may become a voter.
    pub fn note(&mut self, input: &Input, is_member: impl Fn(ServerId) -> bool) {
        let (id, is_up) = match input {
            Input::ElectionDisconnected { to } => (*to, false),
            Input::ElectionConnected { to } | Input::Notification { from: to, .. } => (*to, true),
            _ => return,
        };
        if is_member(id) {
            self.0.insert(id, is_up);
        } else {
            self.0.remove(&id);
        }
    }

    pub fn is_up(&self, id: ServerId) -> bool {
        self.0.get(&id).is_some_and(|is_up| *is_up)
    }

    pub fn up(&self) -> impl Iterator<Item = ServerId> {
        self.0.iter().filter(|(_, is_up)| **is_up).map(|(id, _)| *id)
    }

    /// Members whose connection has ended and is not back: an election does not wait for them.
    pub fn down(&self) -> BTreeSet<ServerId> {
        self.0.iter().filter(|(_, is_up)| !**is_up).map(|(id, _)| *id).collect()
    }
}
