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
    /// The observer at which a session was last, of those that came through this server, unless its client has connected to
    /// this server since.
    at: BTreeMap<SessionId, LearnerConnectionId>,
    /// Sessions that were touched at observers since the last report to the leader, with their timeouts.
    touched: BTreeMap<SessionId, i32>,
}

impl ObserverMaster {
    /// A session is at an observer from here on.
    pub fn came(&mut self, session: SessionId, connection: LearnerConnectionId) {
        self.at.insert(session, connection);
    }

    /// A session has ended, or its client has connected to this server.
    pub fn left(&mut self, session: SessionId) {
        self.at.remove(&session);
        self.touched.remove(&session);
    }

    /// The leader says that a session which an observer asked about is not valid. If another observer has asked about it
    /// since, that observer's answer is on its way.
    pub fn does_not_live(&mut self, session: SessionId, connection: LearnerConnectionId) {
        if self.at.get(&session) == Some(&connection) {
            self.left(session);
        }
    }

    pub fn has(&self, session: SessionId) -> bool {
        self.at.contains_key(&session)
    }

    /// Sessions were touched at an observer. Those that are at no observer were never revalidated, or have ended or left.
    pub fn touch(&mut self, sessions: impl Iterator<Item = (SessionId, i32)>) {
        let at = &self.at;
        self.touched.extend(sessions.filter(|(session, _)| at.contains_key(session)));
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
            Some(at) => *at != connection,
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
