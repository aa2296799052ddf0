//! Writes that are refused where they are asked, by the tree as it is there: `enableEagerACLCheck` (P-80, U-23).
//!
//! It takes no transaction and, on a learner, nothing of the leader. The answer has no zxid.
//!
//! Source: `ZooKeeperServer.authWriteRequest` and who calls it (`LeaderRequestProcessor`, `FollowerRequestProcessor`,
//! `ObserverRequestProcessor`), ZooKeeper 3.9.5.

use super::{Inflight, Replica};
use crate::model::{SessionId, Zxid};
use crate::request::{Batch, BatchedRequest, access};
use crate::tree::Tree;

impl Replica {
    /// `true`: the write was refused, and is answered.
    ///
    /// Behind an earlier write of its session it is not refused here: the answers would come in another order than what
    /// was asked (P-83), and what is under way may be what permits it.
    pub(super) fn refuses_early(
        &mut self,
        (batch, asked, body): (&Batch, &BatchedRequest, &[u8]),
        tree: &Tree,
    ) -> bool {
        let limits = &self.shared.limits;
        if !self.settings.eager_acl_check || limits.skip_acl {
            return false;
        }
        let refusal = access::refusal(tree, &limits.schemes, &batch.who, asked.op, body);
        let Some(code) = refusal.filter(|_| !self.has_under_way(batch.session)) else {
            return false;
        };
        let refused = Inflight { code, ..Inflight::asked(batch, asked) };
        self.answer_plain(Zxid::ZERO, &refused);
        self.shared.throttle.end(refused.weight, &mut self.wakers);
        true
    }

    /// Whether a client of this server waits for an answer to what it asked in this session.
    fn has_under_way(&self, session: SessionId) -> bool {
        let waits = |inflight: &Inflight| inflight.session == session && inflight.conn.is_some();
        self.learning.waits(session) || self.inflight.iter().any(waits)
    }
}
