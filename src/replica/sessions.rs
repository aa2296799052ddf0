//! Sessions begin, move between connections, and expire.

use super::{Action, Mode, Replica, TICK_MS, refuse_session};
use crate::model::sync::{Arc, Ordering};
use crate::model::{SessionId, op};
use crate::request::{Conn, Owner, reply};
use crate::zab;

/// Connections that nobody is behind are looked for this often.
const SWEEP_MS: u64 = 1000;

impl Replica {
    pub(super) fn on_tick(&mut self, wall_ms: i64, out: &mut Vec<Action>) {
        self.now_ms += TICK_MS;
        self.shared.clock_ms.store(self.now_ms, Ordering::Relaxed);
        self.zab.step(zab::Input::Tick, &mut self.zab_out);
        self.on_zab(0, out);
        self.consider_read_only();
        if self.mode == Mode::Resting {
            return;
        }
        self.expire_locals();
        if self.now_ms % SWEEP_MS < TICK_MS {
            self.close_sessionless();
            self.close_left();
        }
        if !self.judges() {
            return;
        }
        for session in self.sessions.expired(self.now_ms) {
            tracing::info!(%session, "session expired");
            self.stats.sessions_expired += 1;
            self.close(session, wall_ms, out);
        }
        self.sweep_containers(wall_ms, out);
        self.consider_next_epoch(out);
    }

    /// Proposes the end of a session that nobody asked to close.
    pub fn close(&mut self, session: SessionId, wall_ms: i64, out: &mut Vec<Action>) {
        if !self.propose(session, op::CLOSE_SESSION, &[], None, wall_ms) {
            return self.out_of_zxids(out);
        }
        self.on_zab(0, out);
    }

    pub(super) fn open(
        &mut self,
        asked: (Arc<Conn>, u64),
        timeout_ms: i32,
        wall_ms: i64,
        out: &mut Vec<Action>,
    ) {
        let session = self.new_session();
        // From now, not from its commit: a slow disk must not make it immortal.
        self.sessions.track(session, timeout_ms, Owner::Conn(asked.0.clone()), self.now_ms);
        if !self.propose(
            session,
            op::CREATE_SESSION,
            &timeout_ms.to_be_bytes(),
            Some(asked),
            wall_ms,
        ) {
            return self.out_of_zxids(out);
        }
        self.on_zab(0, out);
    }

    /// Ids count up; one that is still in the database, from before a reboot, is passed over (P-15).
    pub(super) fn new_session(&mut self) -> SessionId {
        loop {
            let id = SessionId(self.next_session);
            self.next_session = self.next_session.wrapping_add(1);
            if id.0 != 0
                && id.0 != crate::model::CONTAINER
                && !self.sessions.contains(id)
                && !self.locals.contains(id)
                // A learner keeps those of its own clients only.
                && !self.shared.state.tree.read().sessions().contains_key(&id.0)
            {
                return id;
            }
        }
    }

    pub(super) fn reopen(&mut self, conn: &Arc<Conn>, session: SessionId, timeout_ms: i32) {
        let owner = Owner::Conn(conn.clone());
        match self.sessions.take_over(session, timeout_ms, owner, self.now_ms) {
            Ok(old) => self.welcome_back(conn, session, timeout_ms, old),
            Err(_) => refuse_session(conn, &mut self.wakers),
        }
    }

    /// * `old`: the connection that spoke for the session until now.
    pub(super) fn welcome_back(
        &mut self,
        conn: &Arc<Conn>,
        session: SessionId,
        timeout_ms: i32,
        old: Option<Arc<Conn>>,
    ) {
        // Exclusively: a read of the old connection is either before this, or finds itself closed.
        let _tree = self.shared.state.tree.write();
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, conn)) {
            old.close(&mut self.wakers);
            // One that ended long ago has no watches left, and its number may be somebody else's.
            if self.shared.conns.get(old.id).is_some_and(|now| Arc::ptr_eq(&now, &old)) {
                self.shared.state.watches.remove_watcher(old.id);
            }
        }
        conn.push_welcome(session, &mut self.wakers, |out| {
            let read_only = self.mode == Mode::ReadOnly;
            reply::welcome(out, session, timeout_ms, conn.wants_read_only(), read_only);
        });
    }

    pub(super) fn gone(&mut self, conn: &Arc<Conn>) {
        // The session goes on without it until it expires; what it was last heard of stays known through it. Where the
        // leader keeps the sessions, it was told of that by the last ping's answer.
        if !self.judges()
            && let Some(session) = conn.session()
        {
            self.sessions.leave(session, conn);
        }
        tracing::debug!(peer = %conn.peer, "connection ended");
    }

    fn close_sessionless(&mut self) {
        let limit_ms = self.settings.sessionless_timeout_ms;
        for conn in self.shared.conns.all() {
            if conn.session().is_none() && conn.heard_ms() + limit_ms < self.now_ms {
                tracing::info!(peer = %conn.peer, limit_ms, "connection closed: no session in time");
                conn.close(&mut self.wakers);
                self.stats.sessionless_expired += 1;
            }
        }
    }

    /// Closes connections that are silent while their sessions live: those have gone on elsewhere, and the sockets may
    /// never end. Where sessions are judged, one that still speaks for its session ends with it instead.
    ///
    /// Source: `NIOServerCnxnFactory.ConnectionExpirerThread`, ZooKeeper 3.9.5.
    fn close_left(&mut self) {
        for conn in self.shared.conns.all() {
            let kept = conn.session().and_then(|id| Some((id, self.sessions.get(id)?)));
            let Some((session, kept)) = kept else { continue };
            let speaks =
                self.sessions.owner(session).is_some_and(|owner| Arc::ptr_eq(owner, &conn));
            let limit_ms = u64::from(kept.timeout_ms.unsigned_abs()) + self.settings.tick_time_ms;
            if !(speaks && self.judges()) && conn.heard_ms() + limit_ms < self.now_ms {
                tracing::info!(peer = %conn.peer, %session, limit_ms, "connection closed: it is silent");
                conn.close(&mut self.wakers);
            }
        }
    }
}
