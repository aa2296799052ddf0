//! Which sessions live, who speaks for them, and when they expire (P-21, P-22).

use super::Conn;
use crate::model::sync::Arc;
use crate::model::{Code, SessionId};
use std::collections::BTreeMap;

/// Who speaks for a session.
#[derive(Clone, Default)]
pub enum Owner {
    /// Whoever asks first.
    #[default]
    Nobody,
    /// The last connection even after it went.
    Conn(Arc<Conn>),
    /// A client of another server; that server's link to this one.
    Elsewhere(u64),
}

impl Owner {
    /// The connection, if it is one of this server.
    pub fn conn(self) -> Option<Arc<Conn>> {
        if let Self::Conn(conn) = self { Some(conn) } else { None }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Conn(one), Self::Conn(other)) => Arc::ptr_eq(one, other),
            (Self::Elsewhere(one), Self::Elsewhere(other)) => one == other,
            _ => false,
        }
    }
}

/// A session this server keeps.
pub struct Session {
    pub timeout_ms: i32,
    /// Whose requests count.
    owner: Owner,
    /// The connection here that spoke for it until it went to another server. It may not write, and may ping: its client may
    /// be here after all, and the other server have read late that it came.
    left: Option<Arc<Conn>>,
    /// Monotonic milliseconds; what `conn` heard later counts too.
    touched_ms: u64,
    due_ms: u64,
    /// Its closeSession is on its way.
    closing: bool,
}

impl Session {
    /// The connection of this server whose being heard of keeps the session alive.
    fn voice(&self) -> Option<&Arc<Conn>> {
        match &self.owner {
            Owner::Conn(conn) => Some(conn),
            Owner::Nobody | Owner::Elsewhere(_) => self.left.as_ref(),
        }
    }
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
    pub fn track(&mut self, id: SessionId, timeout_ms: i32, owner: Owner, now_ms: u64) {
        let due_ms = self.bucket(now_ms, timeout_ms);
        let session =
            Session { timeout_ms, owner, left: None, touched_ms: now_ms, due_ms, closing: false };
        self.sessions.insert(id, session);
        self.due.entry(due_ms).or_default().push(id);
    }

    /// Whoever spoke for it last.
    pub fn owner(&self, id: SessionId) -> Option<&Arc<Conn>> {
        match &self.sessions.get(&id)?.owner {
            Owner::Conn(conn) => Some(conn),
            Owner::Nobody | Owner::Elsewhere(_) => None,
        }
    }

    /// Forgets a session. Returns the connection of this server that spoke for it last.
    pub fn remove(&mut self, id: SessionId) -> Option<Arc<Conn>> {
        self.sessions.remove(&id).and_then(|session| session.owner.conn().or(session.left))
    }

    /// Notes that another server heard of the session. `false`: there is none, or it is closing.
    pub fn touch(&mut self, id: SessionId, timeout_ms: i32, now_ms: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.closing) else {
            return false;
        };
        (session.timeout_ms, session.touched_ms) = (timeout_ms, now_ms);
        self.settle(id);
        true
    }

    /// Sessions whose connection here was heard of since `since_ms`, with their timeouts in milliseconds.
    pub fn heard_since(&self, since_ms: u64) -> Vec<(SessionId, i32)> {
        let heard = |session: &Session| matches!(&session.owner, Owner::Conn(conn) if since_ms <= conn.heard_ms());
        let all = self.sessions.iter().filter(|(_, session)| heard(session));
        all.map(|(&id, session)| (id, session.timeout_ms)).collect()
    }

    /// Forgets a session if `conn` speaks for it.
    pub fn leave(&mut self, id: SessionId, conn: &Arc<Conn>) {
        let leaves = |session: &Session| matches!(&session.owner, Owner::Conn(owner) if Arc::ptr_eq(owner, conn));
        if self.sessions.get(&id).is_some_and(leaves) {
            self.sessions.remove(&id);
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

    /// Gives the session to another owner. Returns the connection of this server that spoke for it before, if another one of
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
    ) -> Result<Option<Arc<Conn>>, Code> {
        let session = self
            .sessions
            .get_mut(&id)
            .filter(|session| !session.closing)
            .ok_or(Code::SESSION_EXPIRED)?;
        session.timeout_ms = timeout_ms;
        session.touched_ms = now_ms;
        let old = std::mem::replace(&mut session.owner, owner);
        let mut old = old.conn().or_else(|| session.left.take());
        if matches!(session.owner, Owner::Elsewhere(_)) {
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

    /// Monotonic milliseconds before which [`Self::expired`] has nothing to do.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.first_key_value().map(|(&due_ms, _)| due_ms)
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
                } else if self.ends(id) {
                    self.set_closing(id);
                    expired.push(id);
                } else {
                    self.place(id, self.due_ms(id).max(due_ms + self.interval_ms)); // Heard of just now.
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

    /// Decides the end of a session that is due, unless its connection is heard of at this very moment.
    fn ends(&self, id: SessionId) -> bool {
        let Some(session) = self.sessions.get(&id) else { return true };
        let Some(conn) = session.voice() else { return true };
        let heard_ms = conn.heard_ms();
        let due_ms = self.bucket(session.touched_ms.max(heard_ms), session.timeout_ms);
        due_ms <= session.due_ms && conn.end_unless_heard(heard_ms)
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
