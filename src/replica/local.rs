//! Sessions that only this server knows, and service to those who only read while there is no leader.
//!
//! Source: `UpgradeableSessionTracker`, `LearnerSessionTracker`, `LeaderSessionTracker`, `ReadOnlyZooKeeperServer`,
//! ZooKeeper 3.9.5.

use super::apply::close_owner;
use super::{Mode, Replica, refuse_session};
use crate::model::sync::{Arc, Ordering};
use crate::model::{Code, SessionId, op};
use crate::request::{Batch, Conn, Done, Owner, prep, reply};
use crate::zab;
use std::collections::{BTreeSet, VecDeque};

/// Without a leader for so long, or for a tick if that is longer, those who only read are served.
const READ_ONLY_AFTER_MS: u64 = 2000;

/// What a write of a session needs before it can be judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// Everybody knows the session, or it does not matter.
    Known,
    /// It is this server's own; the write makes an ephemeral znode, so all have to hear of it first.
    Upgrade { timeout_ms: i32 },
    /// It is this server's own, and has to stay that.
    Bound,
}

/// Sessions that all knew and that ended a moment ago, where a session that nobody knows may be a learner's own. What a
/// learner was asked for one of these before it heard of the end must not be taken for the request of such a session.
#[derive(Default)]
pub(super) struct Ended {
    ids: BTreeSet<SessionId>,
    /// With the monotonic milliseconds of their ends, in that order.
    since: VecDeque<(u64, SessionId)>,
}

impl Ended {
    /// * `from_ms`: what ended before that is forgotten.
    fn add(&mut self, session: SessionId, now_ms: u64, from_ms: u64) {
        while let Some((_, old)) = self.since.pop_front_if(|(at_ms, _)| *at_ms < from_ms) {
            self.ids.remove(&old);
        }
        if self.ids.insert(session) {
            self.since.push_back((now_ms, session));
        }
    }
}

impl Replica {
    pub(super) fn note_end_of(&mut self, session: SessionId) {
        if !self.judges() || !self.keeps_sessions_local() {
            return;
        }
        // A learner that is silent for syncLimit is cut off, and what it was asked with it.
        let settings = &self.zab.core.settings;
        let kept_ms = 2 * settings.sync_limit * settings.tick_time_ms;
        self.ended.add(session, self.now_ms, self.now_ms.saturating_sub(kept_ms));
    }

    /// Whether new sessions are known to this server only.
    pub(super) fn keeps_sessions_local(&self) -> bool {
        self.settings.local_sessions && self.mode != Mode::Standalone
    }

    /// A session that nobody else hears of.
    pub(super) fn open_local(&mut self, conn: &Arc<Conn>, timeout_ms: i32) {
        let session = self.new_session();
        self.locals.track(session, timeout_ms, Owner::Conn(conn.clone()), self.now_ms);
        let read_only = self.mode == Mode::ReadOnly;
        conn.push_welcome(session, &mut self.wakers, |out| {
            reply::welcome(out, session, timeout_ms, conn.wants_read_only(), read_only);
        });
    }

    /// `false`: the session is none of this server's own.
    pub(super) fn reopen_local(
        &mut self,
        conn: &Arc<Conn>,
        session: SessionId,
        timeout_ms: i32,
    ) -> bool {
        if !self.locals.contains(session) {
            return false;
        }
        let owner = Owner::Conn(conn.clone());
        match self.locals.take_over(session, timeout_ms, owner, self.now_ms) {
            Ok(old) => self.welcome_back(conn, session, timeout_ms, old),
            Err(_) => refuse_session(conn, &mut self.wakers),
        }
        true
    }

    /// What has to be done before this write of a session is judged or passed on.
    pub(super) fn standing_for(&self, session: SessionId, kind: i32, body: &[u8]) -> Standing {
        let Some(local) = self.locals.get(session) else { return Standing::Known };
        if !prep::creates_ephemeral(kind, body) {
            return Standing::Known;
        }
        match self.settings.local_upgrades {
            true => Standing::Upgrade { timeout_ms: local.timeout_ms },
            false => Standing::Bound,
        }
    }

    /// From here on the leader keeps the session.
    pub(super) fn give_up_local(&mut self, session: SessionId, timeout_ms: i32, owner: Owner) {
        self.locals.remove(session);
        self.sessions.track(session, timeout_ms, owner, self.now_ms);
    }

    /// Whether the asker may act for a session, and whether it may own ephemeral znodes.
    ///
    /// * `owner`: who asks.
    pub(super) fn check_session(
        &mut self,
        session: SessionId,
        owner: &Owner,
    ) -> (Result<(), Code>, Result<(), Code>) {
        if self.locals.contains(session) {
            return (self.locals.check(session, owner), Err(Code::EPHEMERAL_ON_LOCAL_SESSION));
        }
        let standing = self.sessions.check(session, owner);
        // One that only another server knows: its number says whose it is.
        let is_others = session.0 >> 56 != self.zab.core.me.0;
        let is_known = self.sessions.contains(session) || self.ended.ids.contains(&session);
        if self.keeps_sessions_local() && is_others && !is_known {
            return (Ok(()), Err(Code::SESSION_EXPIRED));
        }
        (standing, Ok(()))
    }

    /// Ends those that have been silent for too long.
    pub(super) fn expire_locals(&mut self) {
        for session in self.locals.expired(self.now_ms) {
            tracing::info!(%session, "session expired, which only this server knew");
            self.stats.sessions_expired += 1;
            if let Some(owner) = self.locals.remove(session) {
                close_owner(&owner, session, &mut self.wakers);
            }
        }
    }

    /// Serves those who only read, when nobody has led for long enough.
    pub(super) fn consider_read_only(&mut self) {
        let is_looking = matches!(self.zab.role(), zab::Role::Looking(_));
        if self.mode != Mode::Resting || !is_looking || !self.settings.read_only {
            self.looking_ms = None;
            return;
        }
        let since_ms = *self.looking_ms.get_or_insert(self.now_ms);
        if since_ms + READ_ONLY_AFTER_MS.max(self.settings.tick_time_ms) <= self.now_ms {
            tracing::info!("nobody leads: those who only read are served");
            self.mode = Mode::ReadOnly;
            self.locals = crate::request::Sessions::new(self.settings.tick_time_ms);
            self.shared.is_read_only.store(true, Ordering::Relaxed);
            self.shared.at_rest.store(false, Ordering::Relaxed);
        }
    }

    /// The election is over: its clients come again, as those of a server that does everything.
    pub(super) fn end_read_only(&mut self) {
        if self.mode == Mode::ReadOnly && !matches!(self.zab.role(), zab::Role::Looking(_)) {
            tracing::info!("somebody leads: those who only read go");
            self.rest();
            self.locals = crate::request::Sessions::new(self.settings.tick_time_ms);
            self.shared.is_read_only.store(false, Ordering::Relaxed);
        }
    }

    /// A client came back with a session while there is no leader to ask.
    pub(super) fn reopen_read_only(
        &mut self,
        conn: &Arc<Conn>,
        session: SessionId,
        timeout_ms: i32,
    ) {
        if self.reopen_local(conn, session, timeout_ms) {
            return;
        }
        let is_global = self.shared.state.tree.read().sessions().contains_key(&session.0);
        if !is_global {
            return refuse_session(conn, &mut self.wakers);
        }
        // Only its leader could renew it; until there is one it reads on.
        self.locals.track(session, timeout_ms, Owner::Conn(conn.clone()), self.now_ms);
        self.welcome_back(conn, session, timeout_ms, None);
    }

    /// Nothing can be written; the end of a session of this server can.
    pub(super) fn refuse_writes(&mut self, batch: &Batch) {
        let is_global = self.shared.state.tree.read().sessions().contains_key(&batch.session.0);
        let mut done = Done::default();
        for asked in &batch.requests {
            let mut inflight = super::Inflight::asked(batch, asked);
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
