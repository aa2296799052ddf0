//! A follower as the master of observers (`observerMasterPort`): where their sessions are.
//!
//! The leader knows at which of its learners a session is, and takes an observer of a follower for that follower. Whether
//! the follower or which of its observers owns a session is known here only; Java's followers let every request through.
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
    /// Where each session that an observer has created or revalidated through this server was last.
    at: BTreeMap<SessionId, SessionAt>,
    /// Sessions that were touched at observers since the last report to the leader, with their timeouts.
    touched: BTreeMap<SessionId, i32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionAt {
    Observer(LearnerConnectionId),
    /// Its client came to this server. Kept when that client is gone, because its older requests may still come from an observer.
    ThisServer,
}

impl ObserverMaster {
    /// A session is at an observer from here on.
    pub fn came(&mut self, session: SessionId, connection: LearnerConnectionId) {
        self.at.insert(session, SessionAt::Observer(connection));
    }

    /// A session's client has connected to this server.
    pub fn came_here(&mut self, session: SessionId) {
        if let Some(place) = self.at.get_mut(&session) {
            *place = SessionAt::ThisServer;
        }
        self.touched.remove(&session);
    }

    pub fn ended(&mut self, session: SessionId) {
        self.at.remove(&session);
        self.touched.remove(&session);
    }

    /// The leader says that a session is not valid. If it has been asked about it from another place since, that answer is on its way.
    ///
    /// * `connection`: the observer that asked, or none if this server did.
    pub fn does_not_live(&mut self, session: SessionId, connection: Option<LearnerConnectionId>) {
        let asker = connection.map_or(SessionAt::ThisServer, SessionAt::Observer);
        if self.at.get(&session) == Some(&asker) {
            self.ended(session);
        }
    }

    /// Whether a session was at an observer last.
    pub fn has(&self, session: SessionId) -> bool {
        matches!(self.at.get(&session), Some(SessionAt::Observer(_)))
    }

    /// Sessions were touched at an observer. Those that are at no observer were never revalidated, or have ended or left.
    pub fn touch(&mut self, sessions: impl Iterator<Item = (SessionId, i32)>) {
        let at = &self.at;
        let is_at_observer = |(session, _): &(SessionId, i32)| {
            matches!(at.get(session), Some(SessionAt::Observer(_)))
        };
        self.touched.extend(sessions.filter(is_at_observer));
    }

    /// Sessions that were touched at observers since the last call.
    pub fn take_touched(&mut self) -> BTreeMap<SessionId, i32> {
        std::mem::take(&mut self.touched)
    }

    /// Whether a session that was at an observer has moved to another observer or to this server. The session of an observer
    /// that has disconnected stays with it until its client reconnects: no other server may act for it.
    ///
    /// * `is_here`: whether a client of this server has the session.
    pub fn has_left(
        &self,
        connection: LearnerConnectionId,
        session: SessionId,
        is_here: impl FnOnce() -> bool,
    ) -> bool {
        match self.at.get(&session) {
            Some(at) => *at != SessionAt::Observer(connection),
            None => is_here(),
        }
    }
}

/// The request that the leader gets in place of a request whose session has left its observer. Our observers close the
/// client's connection when SessionMoved arrives. Java's observers wait for a transaction: they get that of a request which
/// no leader carries out.
pub fn refused(request: &Request) -> Request {
    let mut body = Vec::new();
    DeleteRequest { path: Some("/zookeeper".into()), version: -1 }.encode(&mut body);
    Request { op: op::DELETE, body: Bytes::from(body), ..request.clone() }
}
