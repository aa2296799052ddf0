//! Service to read-only clients while there is no leader: `readonlymode.enabled`.
//!
//! Source: `ReadOnlyZooKeeperServer`, ZooKeeper 3.9.5.

use super::core::Core;
use super::inflight::Inflight;
use crate::model::{Code, op};
use crate::request::{Batch, Done, Owner, ReopenSession};

impl Core {
    /// A client came back with a session that is not local, while there is no leader to ask. It may live although this
    /// server's tree has it not, or no longer: the others can be ahead. Only a leader could renew it or say that it is over;
    /// until there is one its client reads on.
    pub fn reopen_read_only(&mut self, reopen: &ReopenSession) {
        let ReopenSession { conn, session, timeout_ms } = reopen;
        self.not_asked_for.insert(*session);
        self.locals.track(*session, *timeout_ms, Owner::Conn(conn.clone()), self.heard_at_ms());
        self.welcome_back(reopen, None, true);
    }

    /// Nothing can be written; only a local session of this server can be closed.
    pub fn refuse_writes(&mut self, batch: &Batch) {
        let is_local = !self.not_asked_for.contains(&batch.session);
        let mut done = Done::default();
        for asked in &batch.requests {
            let mut inflight = Inflight::asked(batch, asked);
            done.requests += 1;
            done.large_bytes += u64::from(asked.large_bytes);
            if asked.op != op::CLOSE_SESSION || !is_local {
                inflight.code = Code::NOT_READ_ONLY;
            }
            self.answer_now(&inflight);
        }
        self.shared.throttle.end(done, &mut self.wakers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sync::Arc;
    use crate::model::{Epochs, ServerId, SessionId, View, Zxid};
    use crate::replica::interface::Settings;
    use crate::request::{BatchedRequest, Conn, Limits, Shared};
    use crate::tree::{Options, State, Tree};
    use crate::zab::{self, Peer};

    #[test]
    fn session_that_the_tree_does_not_have_is_served_and_cannot_be_closed() {
        let state = State::new(Tree::new(Options::default()), 0);
        let shared = Arc::new(Shared::new(state, Limits::default()));
        let (view, settings) = (View::of_one(ServerId(1)), zab::Settings::DEFAULT);
        let peer = Peer::member(ServerId(1), settings, view, Epochs::default(), Some(Zxid::ZERO));
        let mut core = Core::new(shared.clone(), peer, Settings::DEFAULT, 0);
        let conn = shared.conns.add(|id| Conn::new(id, ([127, 0, 0, 1], 1).into(), 0));
        let session = SessionId(7);
        core.reopen_read_only(&ReopenSession { conn: conn.clone(), session, timeout_ms: 4000 });
        assert_eq!(conn.session(), Some(session));
        assert!(core.not_asked_for.contains(&session));
        let request = BatchedRequest {
            xid: 1,
            op: op::CLOSE_SESSION,
            end: 0,
            large_bytes: 0,
            is_silent: false,
        };
        let (who, requests) = (std::sync::Arc::default(), vec![request]);
        core.refuse_writes(&Batch { conn, session, who, bytes: vec![], requests, received_us: 0 });
        assert!(core.locals.contains(session), "it may live: no answer may say that it was closed");
        core.forget_locals();
        assert!(core.not_asked_for.is_empty());
    }
}
