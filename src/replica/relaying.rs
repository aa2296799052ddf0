//! What a follower asks of its leader for the observers that came to it.
//!
//! The leader knows at which of its learners a session is, and an observer behind a follower is to it that follower. Who of
//! them may speak for a session is known here only; Java's followers let everything through.
//!
//! Source: `ObserverMaster`, `LearnerHandler`, ZooKeeper 3.9.5.

use super::leading::{pairs, revalidated};
use super::learning::Asked;
use super::{Action, Replica};
use crate::model::SessionId;
use crate::model::op;
use crate::model::sync::Arc;
use crate::request::Conn;
use crate::zab::{self, LinkId, Packet, Request};
use bytes::{Buf, Bytes};
use jute::Encode;
use jute::proto::DeleteRequest;

/// Where a session is, to one who speaks for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// With the one who asks, as far as is known here.
    Here,
    /// It has come to this server again, with another connection.
    Left,
    /// At an observer that came to this server.
    Moved,
}

impl Replica {
    /// Where the session of one of this server's connections is.
    pub(super) fn place_of(&self, conn: &Arc<Conn>, session: SessionId) -> Place {
        let is_other = |owner: &Arc<Conn>| !Arc::ptr_eq(owner, conn);
        if self.learning.returning.get(&session).is_some_and(|(owner, _)| is_other(owner))
            || self.sessions.owner(session).is_some_and(is_other)
        {
            return Place::Left;
        }
        if self.learning.relayed.contains_key(&session) { Place::Moved } else { Place::Here }
    }

    /// What an observer asks of the leader, whose follower this server is.
    pub(super) fn relay_up(&mut self, link: LinkId, packet: Packet, out: &mut Vec<Action>) {
        match &packet {
            Packet::Ping { touched, .. } => {
                return self.learning.touched.extend(pairs(touched.clone().unwrap_or_default()));
            }
            Packet::Revalidate { data } if data.len() >= 12 => {
                let session = SessionId(data.clone().get_i64());
                self.learning.relayed.insert(session, link);
                self.learning.revalidations.push_back((session, Some(link)));
            }
            Packet::Request(request) => match request.op {
                op::SYNC => self.learning.syncs.push_back(Asked::Observer(link)),
                op::CREATE_SESSION => {
                    self.learning.relayed.insert(request.session, link);
                }
                _ if self.has_left(link, request.session) => {
                    return self.refuse_left(link, request, out);
                }
                _ => {}
            },
            _ => return,
        }
        self.tell_leader(&packet, out);
    }

    /// Whether a session that was at an observer has come to another one, or to this server itself. That of an observer that is
    /// gone stays with it until it comes again: nobody else may speak for it.
    fn has_left(&self, link: LinkId, session: SessionId) -> bool {
        match self.learning.relayed.get(&session) {
            Some(at) => *at != link,
            None => {
                self.learning.returning.contains_key(&session)
                    || self.sessions.owner(session).is_some()
            }
        }
    }

    /// An observer of ours ends the connection. One of Java's waits for a transaction: it gets that of a request that no
    /// leader carries out.
    fn refuse_left(&self, link: LinkId, request: &Request, out: &mut Vec<Action>) {
        let bytes = revalidated(request.session, false).to_bytes();
        out.push(Action::Peer(zab::Action::ToLearner { link, bytes }));
        let mut body = Vec::new();
        DeleteRequest { path: Some("/zookeeper".into()), version: -1 }.encode(&mut body);
        let body = Bytes::from(body);
        let refused = Request { op: op::DELETE, body, ..request.clone() };
        self.tell_leader(&Packet::Request(refused), out);
    }
}
