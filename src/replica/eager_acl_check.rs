//! `enableEagerACLCheck`: the server that receives a write refuses it by its own tree (P-80, U-23).
//!
//! Such a refusal takes no transaction and, on a learner, no request to the leader. The answer has no zxid.
//!
//! Source: `ZooKeeperServer.authWriteRequest` and its callers (`LeaderRequestProcessor`, `FollowerRequestProcessor`,
//! `ObserverRequestProcessor`), ZooKeeper 3.9.5.

use super::core::Core;
use super::inflight::Inflight;
use crate::model::Zxid;
use crate::request::{BatchedWrite, access};
use crate::tree::Tree;

impl Core {
    /// `true`: the write was refused, and is answered.
    ///
    /// A write after an unanswered one of its session is not refused here: the answers would come in another order than
    /// the requests, and the earlier write may be what permits it.
    ///
    /// * `is_forwarding`: whether this server has forwarded a request of the session that is not proposed yet.
    pub fn refuses_early(
        &mut self,
        write: BatchedWrite<'_>,
        tree: &Tree,
        is_forwarding: impl FnOnce() -> bool,
    ) -> bool {
        let BatchedWrite { batch, request: asked, body } = write;
        let limits = &self.shared.limits;
        if !self.settings.eager_acl_check || limits.skip_acl {
            return false;
        }
        let refusal = access::refusal(tree, &limits.schemes, &batch.identities, asked.op, body);
        let waits =
            |inflight: &Inflight| inflight.session == batch.session && inflight.conn.is_some();
        let is_under_way = || is_forwarding() || self.inflight.iter().any(waits);
        let Some(code) = refusal.filter(|_| !is_under_way()) else { return false };
        let refused = Inflight { code, ..Inflight::asked(batch, asked) };
        self.answer_plain(Zxid::ZERO, &refused);
        self.shared.throttle.end(refused.load, &mut self.wakers);
        true
    }
}
