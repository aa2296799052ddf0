//! Sessions that only this server knows: `localSessionsEnabled`.
//!
//! Source: `UpgradeableSessionTracker`, `LearnerSessionTracker`, `LeaderSessionTracker`, ZooKeeper 3.9.5.

use super::core::Core;
use super::session_log;
use crate::model::SessionId;
use crate::request::{OpenSession, Owner, ReopenSession, Sessions, prep, reply};

/// Whether a write needs its session to become a global one before it can be processed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Upgrade {
    /// The session is global, or the write does not create an ephemeral znode.
    NotNeeded,
    /// The session is local, and an ephemeral znode needs an owner that all servers know.
    Needed { timeout_ms: i32 },
    /// As `Needed`, but local sessions may not become global.
    Forbidden,
}

impl Core {
    /// Opens a local session.
    pub fn open_local(
        &mut self,
        open: &OpenSession,
        sessions: Option<&Sessions>,
        is_read_only: bool,
    ) {
        let OpenSession { conn, timeout_ms, .. } = open;
        let session = self.new_session(sessions);
        self.locals.track(session, *timeout_ms, Owner::Client(conn.clone()), self.heard_at_ms());
        conn.push_welcome(session, &mut self.wakers, |out| {
            reply::welcome(out, session, *timeout_ms, conn.wants_read_only(), is_read_only);
        });
    }

    /// A client reconnected with a local session of this server.
    pub fn reopen_local(&mut self, reopen: &ReopenSession, is_read_only: bool) {
        let owner = Owner::Client(reopen.conn.clone());
        match self.locals.take_over(reopen.session, reopen.timeout_ms, owner, self.heard_at_ms()) {
            Ok(old) => self.welcome_back(reopen, old, is_read_only),
            Err(_) => self.refuse_session(&reopen.conn),
        }
    }

    /// What has to be done before this write of a session is processed or forwarded.
    pub fn upgrade_for(&self, session: SessionId, kind: i32, body: &[u8]) -> Upgrade {
        let Some(local) = self.locals.get(session) else { return Upgrade::NotNeeded };
        if !prep::creates_ephemeral(kind, body) {
            return Upgrade::NotNeeded;
        }
        match self.settings.local_upgrades {
            true => Upgrade::Needed { timeout_ms: local.timeout_ms },
            false => Upgrade::Forbidden,
        }
    }

    /// Ends local sessions that have been silent for too long.
    pub fn expire_locals(&mut self) {
        for session in self.locals.expired(self.now_ms) {
            session_log::log_expired(&self.locals, session, true);
            self.figures.stats.sessions_expired += 1;
            self.not_asked_for.remove(&session);
            if let Some(owner) = self.locals.remove(session) {
                self.close_owner(&owner, session);
            }
        }
    }

    /// Forgets all local sessions.
    pub fn forget_locals(&mut self) {
        self.locals = Sessions::new(self.settings.tick_time_ms);
        self.not_asked_for.clear();
    }

    /// Notes the end of a global session.
    pub fn note_end_of(&mut self, session: SessionId) {
        // A learner that is silent for syncLimit is disconnected, and its requests are dropped with the connection.
        let settings = &self.zab.core.settings;
        let kept_ms = 2 * settings.sync_limit * settings.tick_time_ms;
        self.ended.add(session, self.now_ms, self.now_ms.saturating_sub(kept_ms));
    }
}
