//! Service to read-only clients while there is no leader: `readonlymode.enabled`.
//!
//! Source: `ReadOnlyZooKeeperServer`, ZooKeeper 3.9.5.

use super::core::Core;
use super::inflight::Inflight;
use crate::model::{Code, op};
use crate::request::{Batch, Done, Owner, ReopenSession};

impl Core {
    /// A client came back with a session that is not local, while there is no leader to ask.
    pub fn reopen_read_only(&mut self, reopen: &ReopenSession) {
        let ReopenSession { conn, session, timeout_ms } = reopen;
        if !self.is_global(*session) {
            return self.refuse_session(conn);
        }
        // Only a leader could renew it; until there is one its client reads on.
        self.locals.track(*session, *timeout_ms, Owner::Conn(conn.clone()), self.heard_at_ms());
        self.welcome_back(reopen, None, true);
    }

    /// Nothing can be written; only a local session of this server can be closed.
    pub fn refuse_writes(&mut self, batch: &Batch) {
        let is_global = self.is_global(batch.session);
        let mut done = Done::default();
        for asked in &batch.requests {
            let mut inflight = Inflight::asked(batch, asked);
            done.requests += 1;
            done.large_bytes += u64::from(asked.large_bytes);
            if asked.op != op::CLOSE_SESSION || is_global {
                inflight.code = Code::NOT_READ_ONLY;
            }
            self.answer_now(&inflight);
        }
        self.shared.throttle.end(done, &mut self.wakers);
    }
}
