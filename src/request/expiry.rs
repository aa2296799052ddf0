//! Which sessions live, who speaks for them, and when they expire (P-21, P-22).

use super::Conn;
use crate::model::sync::Arc;
use crate::model::{Code, SessionId};
use std::collections::BTreeMap;

/// A session this server keeps.
pub struct Session {
    pub timeout_ms: i32,
    /// Whose requests count; the last connection even after it went.
    conn: Option<Arc<Conn>>,
    /// Monotonic milliseconds; what `conn` heard later counts too.
    touched_ms: u64,
    due_ms: u64,
    /// Its closeSession is on its way.
    closing: bool,
}

/// All sessions, in buckets by the time they are due.
///
/// Due times are rounded up to the next multiple of the tick time, as Java does. A session is looked at once per
/// bucket it falls due in: if it was heard from since, it moves to a later one. So a request costs a store to the
/// connection's clock and nothing here.
///
/// Source: `ExpiryQueue`, `SessionTrackerImpl`.
pub struct Sessions {
    sessions: BTreeMap<SessionId, Session>,
    due: BTreeMap<u64, Vec<SessionId>>,
    interval_ms: u64,
}

impl Sessions {
    /// * `interval_ms`: width of a bucket: tickTime.
    pub fn new(interval_ms: u64) -> Self {
        Self { sessions: BTreeMap::new(), due: BTreeMap::new(), interval_ms: interval_ms.max(1) }
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

    /// Every session with the time it expires at unless it is heard from before, in monotonic milliseconds.
    pub fn dues(&self) -> Vec<(u64, SessionId)> {
        let mut dues: Vec<_> = self.sessions.keys().map(|&id| (self.due_ms(id), id)).collect();
        dues.sort_unstable();
        dues
    }

    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// Starts to keep a session; one that is kept already goes on with the new timeout.
    pub fn track(&mut self, id: SessionId, timeout_ms: i32, conn: Option<Arc<Conn>>, now_ms: u64) {
        let due_ms = self.bucket(now_ms, timeout_ms);
        let session = Session { timeout_ms, conn, touched_ms: now_ms, due_ms, closing: false };
        self.sessions.insert(id, session);
        self.due.entry(due_ms).or_default().push(id);
    }

    /// Whoever spoke for it last.
    pub fn owner(&self, id: SessionId) -> Option<&Arc<Conn>> {
        self.sessions.get(&id)?.conn.as_ref()
    }

    pub fn remove(&mut self, id: SessionId) -> Option<Arc<Conn>> {
        self.sessions.remove(&id).and_then(|session| session.conn)
    }

    /// Whether `conn` may act for the session.
    ///
    /// # Errors
    /// -112 when there is no such session or it is closing, -118 when another connection has taken it over.
    ///
    /// Source: `SessionTrackerImpl.checkSession`.
    pub fn check(&mut self, id: SessionId, conn: &Arc<Conn>) -> Result<(), Code> {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| !session.closing)
            .ok_or(Code::SESSION_EXPIRED)?;
        match &session.conn {
            Some(owner) if !Arc::ptr_eq(owner, conn) => Err(Code::SESSION_MOVED),
            Some(_) => Ok(()),
            None => {
                session.conn = Some(conn.clone());
                Ok(())
            }
        }
    }

    /// Gives the session to another connection. Returns the old one.
    ///
    /// # Errors
    /// -112 when there is no such session or it is closing.
    pub fn take_over(
        &mut self,
        id: SessionId,
        timeout_ms: i32,
        conn: &Arc<Conn>,
        now_ms: u64,
    ) -> Result<Option<Arc<Conn>>, Code> {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| !session.closing)
            .ok_or(Code::SESSION_EXPIRED)?;
        session.timeout_ms = timeout_ms;
        session.touched_ms = now_ms;
        let old = session.conn.replace(conn.clone());
        self.settle(id);
        Ok(old)
    }

    /// Marks a session whose closeSession has been proposed.
    pub fn set_closing(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.closing = true;
        }
    }

    /// Sessions that have been silent for too long; each is marked as closing.
    pub fn expired(&mut self, now_ms: u64) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some(bucket) = self.due.first_entry()
            && *bucket.key() <= now_ms
        {
            let (due_ms, ids) = bucket.remove_entry();
            for id in ids {
                // Only the entry that the session itself names counts: others were left behind when it moved.
                if self
                    .sessions
                    .get(&id)
                    .is_none_or(|session| session.due_ms != due_ms || session.closing)
                {
                    continue;
                }
                let later_ms = self.due_ms(id);
                if due_ms < later_ms {
                    self.place(id, later_ms);
                } else {
                    self.set_closing(id);
                    expired.push(id);
                }
            }
        }
        expired
    }

    /// Puts a session whose timeout or connection changed into the bucket it now belongs in.
    fn settle(&mut self, id: SessionId) {
        let due_ms = self.due_ms(id);
        if self.sessions.get(&id).is_some_and(|session| session.due_ms != due_ms) {
            self.place(id, due_ms);
        }
    }

    fn place(&mut self, id: SessionId, due_ms: u64) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.due_ms = due_ms;
            self.due.entry(due_ms).or_default().push(id);
        }
    }

    fn due_ms(&self, id: SessionId) -> u64 {
        let Some(session) = self.sessions.get(&id) else { return 0 };
        let heard_ms = session.conn.as_ref().map_or(0, |conn| conn.heard_ms());
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
    use crate::tree::WatcherId;

    fn conn(now_ms: u64) -> Arc<Conn> {
        Arc::new(Conn::new(WatcherId(0), "127.0.0.1:1".parse().unwrap(), now_ms))
    }

    // rows: P-21 P-22
    #[test]
    fn silence_expires_in_buckets() {
        let mut sessions = Sessions::new(2000);
        let (a, b) = (conn(100), conn(100));
        sessions.track(SessionId(1), 4000, Some(a.clone()), 100);
        sessions.track(SessionId(2), 4000, Some(b.clone()), 100);
        assert_eq!(sessions.expired(5999), []);
        b.heard(5000);
        assert_eq!(sessions.dues(), [(6000, SessionId(1)), (10_000, SessionId(2))]);
        assert_eq!(sessions.expired(6000), [SessionId(1)]);
        assert_eq!(sessions.check(SessionId(1), &a), Err(Code::SESSION_EXPIRED), "it is closing");
        assert_eq!(sessions.expired(9999), []);
        assert_eq!(sessions.expired(10_000), [SessionId(2)]);
    }

    #[test]
    fn a_session_belongs_to_its_last_connection() {
        let mut sessions = Sessions::new(2000);
        let (a, b) = (conn(0), conn(0));
        sessions.track(SessionId(1), 4000, None, 0);
        assert_eq!(sessions.check(SessionId(1), &a), Ok(()));
        let old = sessions.take_over(SessionId(1), 10_000, &b, 1000).unwrap();
        assert!(Arc::ptr_eq(&old.unwrap(), &a));
        assert_eq!(sessions.check(SessionId(1), &a), Err(Code::SESSION_MOVED));
        assert_eq!(sessions.expired(11_999), []);
        assert_eq!(sessions.expired(12_000), [SessionId(1)]);
        assert!(sessions.take_over(SessionId(9), 1, &b, 0).is_err());
    }
}
