//! Which sessions are valid, which connections own them, and when they expire (P-21, P-22).

use super::ClientHandle;
use crate::model::sync::Arc;
use crate::model::{Code, SessionId};
use std::collections::{BTreeMap, BTreeSet};

/// The owner of a session, whose requests are accepted.
#[derive(Clone, Default)]
pub enum Owner {
    /// None yet: the first connection that sends a request becomes the owner.
    #[default]
    Nobody,
    /// The last connection, even after it has ended.
    Client(Arc<ClientHandle>),
    /// A client of another server; the number of that server's learner connection.
    AtLearner(u64),
}

impl Owner {
    /// The connection, if it is one of this server.
    pub fn conn(self) -> Option<Arc<ClientHandle>> {
        if let Self::Client(conn) = self { Some(conn) } else { None }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client(one), Self::Client(other)) => Arc::ptr_eq(one, other),
            (Self::AtLearner(one), Self::AtLearner(other)) => one == other,
            _ => false,
        }
    }
}

/// A session this server keeps.
pub struct Session {
    pub timeout_ms: i32,
    /// The owner, whose requests are accepted.
    owner: Owner,
    /// The connection to this server that owned it until it moved to another server. It may not write, and may ping: its
    /// client may be here after all, if the other server has read late that it came.
    left: Option<Arc<ClientHandle>>,
    /// Monotonic milliseconds; what the owner's connection heard later counts too.
    touched_ms: u64,
    /// When the session is checked next, in monotonic milliseconds; never after the time it is due.
    look_ms: u64,
    /// Its closeSession is on its way.
    closing: bool,
    /// It is closed because it was silent for too long; for the log alone.
    has_expired: bool,
}

impl Session {
    /// Whether it ends because it was silent for too long.
    pub const fn has_expired(&self) -> bool {
        self.has_expired
    }

    /// The connection to this server that keeps the session alive when it is heard.
    fn voice(&self) -> Option<&Arc<ClientHandle>> {
        match &self.owner {
            Owner::Client(conn) => Some(conn),
            Owner::Nobody | Owner::AtLearner(_) => self.left.as_ref(),
        }
    }
}

/// All sessions, in buckets by the time they are due.
///
/// Due times are rounded up to the next multiple of the tick time, as Java does. A session is in one bucket and is checked
/// when that falls due: if it was heard since, or has a longer timeout now, it moves to a later one. So a request costs a
/// store to the connection's clock and nothing here, and a peer that often names another timeout adds nothing.
///
/// Source: `ExpiryQueue`, `SessionTrackerImpl`.
pub struct Sessions {
    sessions: BTreeMap<SessionId, Session>,
    /// When each session is checked; sessions whose end was decided then are left out.
    due: BTreeSet<(u64, SessionId)>,
    interval_ms: u64,
}

impl Sessions {
    /// * `interval_ms`: width of a bucket: tickTime.
    pub fn new(interval_ms: u64) -> Self {
        Self { sessions: BTreeMap::new(), due: BTreeSet::new(), interval_ms: interval_ms.max(1) }
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub fn contains(&self, id: SessionId) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Every session with the time at which it expires unless it is heard before, in monotonic milliseconds. In no order.
    pub fn dues(&self) -> Vec<(u64, SessionId)> {
        self.sessions.keys().map(|&id| (self.due_ms(id), id)).collect()
    }

    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// Starts to track a session; a session that is tracked already goes on with the new timeout.
    pub fn track(&mut self, id: SessionId, timeout_ms: i32, owner: Owner, now_ms: u64) {
        let look_ms = self.bucket(now_ms, timeout_ms);
        let session = Session {
            timeout_ms,
            owner,
            left: None,
            touched_ms: now_ms,
            look_ms,
            closing: false,
            has_expired: false,
        };
        self.forget(id);
        self.sessions.insert(id, session);
        self.due.insert((look_ms, id));
    }

    /// The connection to this server that owned it last.
    pub fn owner(&self, id: SessionId) -> Option<&Arc<ClientHandle>> {
        match &self.sessions.get(&id)?.owner {
            Owner::Client(conn) => Some(conn),
            Owner::Nobody | Owner::AtLearner(_) => None,
        }
    }

    /// Forgets a session. Returns the connection to this server that owned it last.
    pub fn remove(&mut self, id: SessionId) -> Option<Arc<ClientHandle>> {
        self.forget(id).and_then(|session| session.owner.conn().or(session.left))
    }

    fn forget(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.due.remove(&(session.look_ms, id));
        Some(session)
    }

    /// Notes that another server touched the session. `false`: there is none, or it is closing.
    pub fn touch(&mut self, id: SessionId, timeout_ms: i32, now_ms: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.closing) else {
            return false;
        };
        (session.timeout_ms, session.touched_ms) = (timeout_ms, now_ms);
        self.settle(id);
        true
    }

    /// Sessions whose connection to this server was heard since `since_ms`, or has a request that waits for this server;
    /// with their timeouts in milliseconds.
    pub fn heard_since(&self, since_ms: u64) -> Vec<(SessionId, i32)> {
        let heard = |session: &Session| matches!(&session.owner, Owner::Client(conn) if conn.is_kept_waiting() || since_ms <= conn.heard_ms());
        let all = self.sessions.iter().filter(|(_, session)| heard(session));
        all.map(|(&id, session)| (id, session.timeout_ms)).collect()
    }

    /// Forgets a session if `conn` owns it.
    pub fn leave(&mut self, id: SessionId, conn: &Arc<ClientHandle>) {
        let leaves = |session: &Session| matches!(&session.owner, Owner::Client(owner) if Arc::ptr_eq(owner, conn));
        if self.sessions.get(&id).is_some_and(leaves) {
            self.forget(id);
        }
    }

    /// Whether `asker` may act for the session.
    ///
    /// # Errors
    /// -112 when there is no such session or it is closing, -118 when another connection has taken it over.
    ///
    /// Source: `SessionTrackerImpl.checkSession`.
    pub fn check(&mut self, id: SessionId, asker: &Owner) -> Result<(), Code> {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| !session.closing)
            .ok_or(Code::SESSION_EXPIRED)?;
        match &session.owner {
            Owner::Nobody => {
                session.owner = asker.clone();
                Ok(())
            }
            owner if owner.is(asker) => Ok(()),
            _ => Err(Code::SESSION_MOVED),
        }
    }

    /// Gives the session to another owner. Returns the connection to this server that owned it before, if another one to
    /// this server does now.
    ///
    /// # Errors
    /// -112 when there is no such session or it is closing.
    pub fn take_over(
        &mut self,
        id: SessionId,
        timeout_ms: i32,
        owner: Owner,
        now_ms: u64,
    ) -> Result<Option<Arc<ClientHandle>>, Code> {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| !session.closing)
            .ok_or(Code::SESSION_EXPIRED)?;
        session.timeout_ms = timeout_ms;
        session.touched_ms = now_ms;
        let old = std::mem::replace(&mut session.owner, owner);
        let mut old = old.conn().or_else(|| session.left.take());
        if matches!(session.owner, Owner::AtLearner(_)) {
            session.left = old.take();
        }
        self.settle(id);
        Ok(old)
    }

    /// Marks a session whose closeSession has been proposed.
    pub fn set_closing(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.closing = true;
        }
    }

    fn set_expired(&mut self, id: SessionId) {
        self.set_closing(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.has_expired = true;
        }
    }

    /// Monotonic milliseconds before which [`Self::expired`] has nothing to do.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|&(look_ms, _)| look_ms)
    }

    /// Sessions that have been silent for too long; each is marked as closing.
    pub fn expired(&mut self, now_ms: u64) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some(&(look_ms, id)) = self.due.first()
            && look_ms <= now_ms
        {
            self.due.pop_first();
            if self.sessions.get(&id).is_none_or(|session| session.closing) {
                continue;
            }
            let due_ms = self.due_ms(id);
            if look_ms < due_ms {
                self.place(id, due_ms);
            } else if self.ends(id) {
                self.set_expired(id);
                expired.push(id);
            } else {
                self.place(id, self.due_ms(id).max(look_ms + self.interval_ms)); // Heard just now.
            }
        }
        expired
    }

    /// Moves a session whose timeout or connection changed to an earlier bucket, if it is due earlier. A later time is found
    /// when it is checked.
    fn settle(&mut self, id: SessionId) {
        let due_ms = self.due_ms(id);
        if self.sessions.get(&id).is_some_and(|session| due_ms < session.look_ms) {
            self.place(id, due_ms);
        }
    }

    fn place(&mut self, id: SessionId, look_ms: u64) {
        if let Some(session) = self.sessions.get_mut(&id) {
            self.due.remove(&(session.look_ms, id));
            session.look_ms = look_ms;
            self.due.insert((look_ms, id));
        }
    }

    /// Decides the end of a session that is due, unless its connection is heard at this very moment, or this server keeps a
    /// request of its client waiting.
    fn ends(&self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get(&id) else { return true };
        let Some(conn) = session.voice() else { return true };
        if conn.is_kept_waiting() {
            return false;
        }
        let heard_ms = conn.heard_ms();
        let due_ms = self.bucket(session.touched_ms.max(heard_ms), session.timeout_ms);
        due_ms <= session.look_ms && conn.end_unless_heard(heard_ms)
    }

    fn due_ms(&self, id: SessionId) -> u64 {
        let Some(session) = self.sessions.get(&id) else { return 0 };
        let heard_ms = session.voice().map_or(0, |conn| conn.heard_ms());
        self.bucket(session.touched_ms.max(heard_ms), session.timeout_ms)
    }

    fn bucket(&self, from_ms: u64, timeout_ms: i32) -> u64 {
        let at_ms = from_ms + timeout_ms.max(0) as u64;
        (at_ms / self.interval_ms + 1) * self.interval_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_whose_timeout_changes_often_is_in_one_bucket() {
        let mut sessions = Sessions::new(2000);
        let id = SessionId(1);
        let entries = |sessions: &Sessions| sessions.due.len();
        sessions.track(id, 4000, Owner::AtLearner(1), 0);
        for timeout_ms in
            (0..i32::MAX).step_by(10_000_000).chain((0..1_000_000).rev().step_by(2000))
        {
            assert!(sessions.touch(id, timeout_ms, 0));
            assert!(sessions.take_over(id, timeout_ms + 10_000, Owner::AtLearner(2), 0).is_ok());
        }
        assert_eq!(entries(&sessions), 1);
        // Only the last timeout counts, whether it is longer or shorter than those before.
        assert!(sessions.touch(id, 1_000_000, 0));
        assert_eq!(sessions.expired(1_001_999), []);
        assert!(sessions.touch(id, 4000, 1_000_000));
        assert_eq!(sessions.expired(1_005_999), []);
        assert_eq!(sessions.expired(1_006_000), [id]);
        assert_eq!(entries(&sessions), 0);
    }

    #[test]
    fn expiry_buckets_forget_sessions_that_end() {
        let mut sessions = Sessions::new(2000);
        for round in 0..10 {
            sessions.track(SessionId(1), 4000 + round * 2000, Owner::Nobody, 0);
            sessions.track(SessionId(2), i32::MAX, Owner::Nobody, 0);
            sessions.remove(SessionId(2));
        }
        assert_eq!(sessions.due.len(), 1);
    }

    #[test]
    fn session_whose_client_is_kept_waiting_counts_as_heard() {
        let conn = || {
            let peer = "127.0.0.1:1".parse().expect("an address");
            Arc::new(ClientHandle::new(crate::tree::WatcherId(0), peer, 0))
        };
        let mut sessions = Sessions::new(2000);
        let (waits, silent, heard) = (conn(), conn(), conn());
        for (id, owner) in [(1, &waits), (2, &silent), (3, &heard)] {
            sessions.track(SessionId(id), 4000, Owner::Client(owner.clone()), 0);
        }
        waits.keep_waiting(true);
        assert!(heard.heard(3000));
        let mut heard = sessions.heard_since(2000);
        heard.sort_unstable();
        assert_eq!(heard, [(SessionId(1), 4000), (SessionId(3), 4000)]);
    }
}
