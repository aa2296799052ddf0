//! What holds after each step of a [`Member`]. A broken invariant ends the process: it is our own bug.

use super::machine::Member;
use super::restoring::Restoring;
use super::{QuorumPeer, quorum_connections::QuorumConnections};
use crate::replica::Mode;
use crate::zab::{LearnerConnectionId, Peer, Role};

impl Member {
    /// Asserts what holds after a step.
    ///
    /// # Panics
    /// When an invariant is broken.
    ///
    /// 1. What `replica` asked for was translated, and what the election connections reported was processed.
    /// 2. Only a server that learns has a connection to a leader.
    /// 3. Only a server without an ensemble is standalone; it rests while a restored snapshot waits for its name.
    ///
    /// In tests and in the simulator also: every learner that `zab` knows has a current connection.
    pub(super) fn assert_invariants(&self) {
        assert!(self.asked.is_empty(), "actions of the replica are left after a step");
        let peer = self.replica.peer();
        let Some(ensemble) = &self.ensemble else {
            let is_restoring = matches!(self.restoring, Restoring::Placing { .. });
            let wanted = if is_restoring { Mode::Resting } else { Mode::Standalone };
            assert_eq!(self.replica.mode(), wanted, "a server without an ensemble");
            return;
        };
        assert!(!ensemble.elections.has_reports(), "reports of election connections are left");
        let is_learning = matches!(peer.role(), Role::Learning(_));
        assert!(
            is_learning || !ensemble.quorum.has_leader(),
            "a connection to a leader is left on a server that is no learner"
        );
        if cfg!(any(debug_assertions, feature = "sim")) {
            assert_learners_are_connected(peer, &ensemble.quorum);
        }
    }
}

fn assert_learners_are_connected(peer: &Peer, quorum: &QuorumConnections) {
    let known: Vec<LearnerConnectionId> = match peer.role() {
        Role::Looking(_) => Vec::new(),
        Role::Leading(leader) => leader.connections().collect(),
        Role::Learning(learner) => learner.connections().collect(),
    };
    for connection in known {
        let is_current = quorum.is_current(QuorumPeer::Learner(connection));
        assert!(is_current, "`zab` knows {connection:?}, which was closed");
    }
}
