//! Global sessions where they are kept: a standalone server or a leader opens, renews and expires them.

use super::core::{Core, OutOfZxids};
use super::inflight::Inflight;
use super::request_processor::RequestProcessor;
use super::session_log;
use crate::model::{SessionId, op};
use crate::request::{OpenSession, Owner, ReopenSession};

impl RequestProcessor {
    /// A client of this server wants a new session.
    pub fn open(&mut self, core: &mut Core, open: OpenSession) -> Result<(), OutOfZxids> {
        let OpenSession { conn, timeout_ms, received_us } = open;
        let session = core.new_session(Some(&self.sessions));
        // Tracked from now on, not from its commit: a slow disk must not keep it from expiring.
        self.sessions.track(session, timeout_ms, Owner::Client(conn.clone()), core.heard_at_ms());
        let inflight = Inflight::of_server(session, op::CREATE_SESSION);
        let inflight = Inflight { conn: Some(conn), received_us, ..inflight };
        self.propose_own(core, inflight, &timeout_ms.to_be_bytes())
    }

    /// A client has reconnected to this server with its session.
    pub fn reopen(&mut self, core: &mut Core, reopen: &ReopenSession) {
        let owner = Owner::Client(reopen.conn.clone());
        match self.sessions.take_over(reopen.session, reopen.timeout_ms, owner, core.heard_at_ms())
        {
            Ok(old) => core.welcome_back(reopen, old, false),
            Err(_) => core.refuse_session(&reopen.conn),
        }
    }

    /// Expires silent sessions, and deletes containers and TTL znodes that are due.
    pub fn on_tick(&mut self, core: &mut Core) -> Result<(), OutOfZxids> {
        let mut proposed = Ok(());
        for session in self.sessions.expired(core.now_ms) {
            session_log::log_expired(&self.sessions, session, false);
            core.figures.stats.sessions_expired += 1;
            if proposed.is_ok() {
                let inflight = Inflight::of_server(session, op::CLOSE_SESSION);
                proposed = self.propose_own(core, inflight, &[]);
            }
        }
        proposed?;
        if !self.sweep.look(core) {
            return Ok(());
        }
        while let Some(path) = self.sweep.next(core) {
            tracing::info!(%path, "deleting a container without children or a znode past its TTL");
            let mut body = Vec::new();
            jute::put_string(&mut body, &path);
            let inflight = Inflight::of_server(SessionId(0), op::DELETE_CONTAINER);
            self.propose_own(core, inflight, &body)?;
        }
        Ok(())
    }
}
