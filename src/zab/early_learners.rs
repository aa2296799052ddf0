//! Learners that connected before this server knew that it leads.

use super::{Action, LearnerConnectionId, Packet};
use crate::model::ServerId;
use std::collections::BTreeMap;

/// At most this many learners wait. Learners in no configuration make room for members.
const EARLY_MAX: usize = 256;

#[derive(Clone, Debug)]
struct EarlyLearner {
    id: ServerId,
    /// FOLLOWERINFO or OBSERVERINFO.
    hello: Packet,
    /// For how many more ticks the learner waits.
    ticks: u32,
}

/// The first packets of learners, until this server leads or their time is over. A member sends no other packet before it is
/// answered.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlyLearners(BTreeMap<LearnerConnectionId, EarlyLearner>);

impl EarlyLearners {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn holds(&self, connection: LearnerConnectionId) -> bool {
        self.0.contains_key(&connection)
    }

    /// Keeps the first packet of a connection if it says who the learner is. A later packet changes nothing.
    ///
    /// * `ticks`: for how long it is kept. `is_member`: whether a server is in a configuration that counts.
    pub fn take(
        &mut self,
        connection: LearnerConnectionId,
        hello: Packet,
        ticks: u32,
        is_member: impl Fn(ServerId) -> bool,
        out: &mut Vec<Action>,
    ) {
        if self.holds(connection) {
            return;
        }
        let (Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. }) = &hello else {
            return close(connection, "it sent no FOLLOWERINFO or OBSERVERINFO", out);
        };
        let id = info.id;
        if EARLY_MAX <= self.0.len() {
            let unknown = self.0.iter().find(|(_, learner)| !is_member(learner.id));
            let oldest = unknown.map(|(&connection, _)| connection).filter(|_| is_member(id));
            close(oldest.unwrap_or(connection), "too many learners wait for a leader", out);
            match oldest {
                Some(oldest) => self.forget(oldest),
                None => return,
            }
        }
        self.0.insert(connection, EarlyLearner { id, hello, ticks });
    }

    /// The connection has ended.
    pub fn forget(&mut self, connection: LearnerConnectionId) {
        self.0.remove(&connection);
    }

    /// Closes the connections of learners that have waited long enough for this server to lead.
    pub fn tick(&mut self, out: &mut Vec<Action>) {
        self.0.retain(|&connection, EarlyLearner { ticks, .. }| match ticks.checked_sub(1) {
            Some(left) => {
                *ticks = left;
                true
            }
            None => {
                close(connection, "this server does not lead", out);
                false
            }
        });
    }

    /// This server follows: no learner waits any longer.
    pub fn close_all(&mut self, out: &mut Vec<Action>) {
        for connection in std::mem::take(&mut self.0).into_keys() {
            close(connection, "this server does not lead", out);
        }
    }

    /// This server leads: gives the packets to be processed, in the order of the connections.
    pub fn take_all(&mut self) -> impl Iterator<Item = (LearnerConnectionId, Packet)> + use<> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.map(|(connection, learner)| (connection, learner.hello))
    }
}

fn close(connection: LearnerConnectionId, why: &str, out: &mut Vec<Action>) {
    out.push(Action::CloseLearner { connection, why: why.to_owned() });
}
