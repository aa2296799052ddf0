//! A follower as the master of observers (`observerMasterPort`): where their sessions are.
//!
//! The leader knows at which of its learners a session is, and to it an observer of a follower is that follower. Which of
//! follower and observers may speak for a session is known here only; Java's followers let every request through.
//!
//! Source: `ObserverMaster`, `LearnerHandler`, ZooKeeper 3.9.5.

use crate::model::{SessionId, op};
use crate::zab::{LearnerConnectionId, Request};
use bytes::Bytes;
use jute::Encode;
use jute::proto::DeleteRequest;
use std::collections::BTreeMap;

/// What a follower knows of the clients of its observers.
#[derive(Default)]
pub struct ObserverMaster {
    /// At which observer a session was last that came through this server, unless it has come to this server itself since.
    at: BTreeMap<SessionId, LearnerConnectionId>,
    /// Sessions that observers heard of since the leader was last told.
    touched: BTreeMap<SessionId, i32>,
}

impl ObserverMaster {
    /// A session is at an observer from here on.
    pub fn came(&mut self, session: SessionId, connection: LearnerConnectionId) {
        self.at.insert(session, connection);
    }

    /// A session has ended, or has come to this server itself.
    pub fn left(&mut self, session: SessionId) {
        self.at.remove(&session);
        self.touched.remove(&session);
    }

    /// The leader says that a session does not live which an observer has asked about. If another observer has asked about it
    /// since, that observer's answer is on its way.
    pub fn does_not_live(&mut self, session: SessionId, connection: LearnerConnectionId) {
        if self.at.get(&session) == Some(&connection) {
            self.left(session);
        }
    }

    pub fn has(&self, session: SessionId) -> bool {
        self.at.contains_key(&session)
    }

    /// Observers heard of sessions. Those that are at no observer were never asked for, or have ended or left.
    pub fn touch(&mut self, sessions: impl Iterator<Item = (SessionId, i32)>) {
        let at = &self.at;
        self.touched.extend(sessions.filter(|(session, _)| at.contains_key(session)));
    }

    /// Sessions that observers heard of since this was last asked.
    pub fn take_touched(&mut self) -> BTreeMap<SessionId, i32> {
        std::mem::take(&mut self.touched)
    }

    /// Whether a session that was at an observer has come to another one, or to this server itself. The session of an
    /// observer that is gone stays with it until it comes again: no other server may speak for it.
    ///
    /// * `is_here`: whether a client of this server has the session.
    pub fn has_left(
        &self,
        connection: LearnerConnectionId,
        session: SessionId,
        is_here: impl FnOnce() -> bool,
    ) -> bool {
        match self.at.get(&session) {
            Some(at) => *at != connection,
            None => is_here(),
        }
    }
}

/// The request that the leader gets in the place of one whose session has left its observer. An observer of ours ends the
/// connection when it hears of that. One of Java's waits for a transaction: it gets that of a request that no leader
/// carries out.
pub fn refused(request: &Request) -> Request {
    let mut body = Vec::new();
    DeleteRequest { path: Some("/zookeeper".into()), version: -1 }.encode(&mut body);
    Request { op: op::DELETE, body: Bytes::from(body), ..request.clone() }
}
