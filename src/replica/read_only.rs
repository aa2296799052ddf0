//! Service to read-only clients while there is no leader: `readonlymode.enabled`.
//!
//! Source: `ReadOnlyZooKeeperServer`, ZooKeeper 3.9.5.

use super::core::Core;
use super::inflight::Inflight;
use crate::model::{Code, op};
use crate::request::{Batch, Owner, ReopenSession};

impl Core {
    /// A client reconnected with a global session while there is no leader to ask. The session may be valid although this
    /// server's tree does not have it, or no longer has it: other servers can be ahead. Only a leader could renew it or say
    /// that it has expired; until there is a leader the client may read.
    pub fn reopen_read_only(&mut self, reopen: &ReopenSession) {
        let ReopenSession { conn, session, timeout_ms } = reopen;
        self.not_asked_for.insert(*session);
        self.locals.track(*session, *timeout_ms, Owner::Client(conn.clone()), self.heard_at_ms());
        self.welcome_back(reopen, None, true);
    }

    /// Refuses writes and syncs; only a local session of this server can be closed.
    pub fn refuse_writes(&mut self, batch: &Batch) {
        let is_local = !self.not_asked_for.contains(&batch.session);
        for asked in &batch.requests {
            let mut inflight = Inflight::asked(batch, asked);
            if asked.op != op::CLOSE_SESSION || !is_local {
                inflight.code = Code::NOT_READ_ONLY;
            }
            self.answer_now(&inflight);
        }
        self.shared.throttle.end(batch.load(), &mut self.wakers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionId;
    use crate::replica::core::test_member;
    use crate::replica::interface::Settings;
    use crate::request::{BatchedRequest, ClientHandle};

    #[test]
    fn expired_local_session_leaves_nothing() {
        let mut core = test_member(Settings::DEFAULT);
        let conn = core.shared.conns.add(|id| ClientHandle::new(id, ([127, 0, 0, 1], 1).into(), 0));
        let session = SessionId(7);
        core.reopen_read_only(&ReopenSession { conn, session, timeout_ms: 4000 });
        core.now_ms = 100_000;
        core.expire_locals();
        assert!(!core.locals.contains(session) && core.not_asked_for.is_empty());
    }

    #[test]
    fn session_that_the_tree_does_not_have_is_served_and_cannot_be_closed() {
        let mut core = test_member(Settings::DEFAULT);
        let conn = core.shared.conns.add(|id| ClientHandle::new(id, ([127, 0, 0, 1], 1).into(), 0));
        let session = SessionId(7);
        core.reopen_read_only(&ReopenSession { conn: conn.clone(), session, timeout_ms: 4000 });
        assert_eq!(conn.session(), Some(session));
        assert!(core.not_asked_for.contains(&session));
        let request = BatchedRequest {
            xid: 1,
            op: op::CLOSE_SESSION,
            end: 0,
            bytes: 0,
            large_bytes: 0,
            is_silent: false,
        };
        let mut batch = Batch::new(conn, session, std::sync::Arc::default(), 0);
        batch.push(request);
        core.refuse_writes(&batch);
        assert!(core.locals.contains(session), "it may be valid: no answer may say it was closed");
        core.forget_locals();
        assert!(core.not_asked_for.is_empty());
    }
}
