//! The one that proposes, counts acknowledgements and commits.

use super::{Action, Input, Majority};
use crate::model::{ServerId, Zxid};
use bytes::Bytes;
use std::collections::BTreeMap;

/// A leader whose term has begun.
#[derive(Debug)]
pub struct Leader {
    id: ServerId,
    quorum: Majority,
    /// How far each server's log is durable.
    acked: BTreeMap<ServerId, Zxid>,
    proposed: Zxid,
    committed: Zxid,
}

impl Leader {
    /// * `last`: the last zxid of the history this term goes on from; all of it counts as committed.
    pub fn new(id: ServerId, quorum: Majority, last: Zxid) -> Self {
        Self { id, quorum, acked: BTreeMap::from([(id, last)]), proposed: last, committed: last }
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Propose { zxid, payload } => self.propose(zxid, payload, out),
            Input::Flushed { through } => self.on_ack(self.id, through, out),
        }
        self.assert_invariants();
    }

    fn propose(&mut self, zxid: Zxid, payload: Bytes, out: &mut Vec<Action>) {
        assert!(self.proposed < zxid, "propose {zxid} after {}", self.proposed);
        self.proposed = zxid;
        out.push(Action::Append { zxid, payload });
    }

    fn on_ack(&mut self, from: ServerId, zxid: Zxid, out: &mut Vec<Action>) {
        let Some(acked) = self.acked.get_mut(&from) else { return };
        assert!(
            zxid <= self.proposed,
            "flushed {zxid}, which was never proposed (last is {})",
            self.proposed
        );
        *acked = zxid.max(*acked);
        let Some(agreed) = self.quorum.highest_agreed(&self.acked) else { return };
        if self.committed < agreed {
            self.committed = agreed;
            out.push(Action::Commit { through: agreed });
        }
    }

    fn assert_invariants(&self) {
        assert!(
            self.committed <= self.proposed,
            "committed {} past proposed {}",
            self.committed,
            self.proposed
        );
        // A single server: nothing is committed before its own log has it.
        assert!(
            self.acked.values().any(|&acked| self.committed <= acked),
            "committed {} unlogged",
            self.committed
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    #[test]
    fn a_single_server_commits_what_its_log_holds() {
        let zxid = |n| Zxid::new(Epoch(0), n);
        let mut leader = Leader::new(ServerId(1), Majority::new([ServerId(1)]), zxid(5));
        let mut out = Vec::new();
        for n in [6, 7] {
            leader.step(Input::Propose { zxid: zxid(n), payload: Bytes::new() }, &mut out);
        }
        assert!(out.iter().all(|action| matches!(action, Action::Append { .. })), "{out:?}");
        out.clear();
        leader.step(Input::Flushed { through: zxid(6) }, &mut out);
        assert_eq!(out, [Action::Commit { through: zxid(6) }]);
        out.clear();
        leader.step(Input::Flushed { through: zxid(6) }, &mut out);
        assert_eq!(out, [], "a repeated flush commits nothing");
    }
}
