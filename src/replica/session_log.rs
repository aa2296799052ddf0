//! Log lines about sessions that end: an expiry at INFO when it is found, each end at DEBUG when it is applied.

use crate::model::SessionId;
use crate::model::sync::Arc;
use crate::request::{ClientHandle, Sessions};

/// Whether ends of sessions are lines of the log.
pub fn is_on() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// Why a session has ended, as far as this server knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    Closed,
    Expired,
    /// The transaction came from the leader, and this server's client has not asked for it.
    Leader,
}

/// A session that a transaction has ended, until its line is written.
pub struct EndedSession {
    session: SessionId,
    timeout_ms: i32,
    /// The connection to this server that owned it last.
    owner: Option<Arc<ClientHandle>>,
    ephemerals: usize,
    cause: Cause,
}

impl EndedSession {
    /// `None`: this server does not keep the session.
    ///
    /// * `is_asked`: a client's closeSession is known here; else the server itself, or the leader, has ended the session.
    /// * `ephemerals`: znodes that were deleted with it.
    pub fn of(
        sessions: &Sessions,
        session: SessionId,
        is_asked: bool,
        ephemerals: usize,
    ) -> Option<Self> {
        let kept = sessions.get(session)?;
        let cause = match (kept.has_expired(), is_asked) {
            (true, _) => Cause::Expired,
            (false, true) => Cause::Closed,
            (false, false) => Cause::Leader,
        };
        let owner = sessions.owner(session).cloned();
        Some(Self { session, timeout_ms: kept.timeout_ms, owner, ephemerals, cause })
    }

    pub fn log(&self) {
        let Self { session, timeout_ms, owner, ephemerals, cause } = self;
        let peer = owner.as_ref().map(|owner| owner.peer);
        let text = match cause {
            Cause::Closed => "session closed by its client",
            Cause::Expired => "expired session closed",
            Cause::Leader => {
                "session closed by the leader: it has expired, or its client is at another server"
            }
        };
        tracing::debug!(%session, peer = peer.map(tracing::field::display), timeout_ms, ephemerals, "{text}");
    }
}

/// A local session has ended, which owns no znodes.
pub fn log_closed_local(locals: &Sessions, session: SessionId) {
    if is_on()
        && let Some(ended) = EndedSession::of(locals, session, true, 0)
    {
        ended.log();
    }
}

/// Sessions that have been silent for too long are about to be closed.
pub fn log_expired(sessions: &Sessions, session: SessionId, is_local: bool) {
    let timeout_ms = sessions.get(session).map(|kept| kept.timeout_ms);
    let peer = sessions.owner(session).map(|owner| owner.peer);
    let text = if is_local { "local session expired" } else { "session expired" };
    tracing::info!(target: crate::model::STRANGERS, %session, peer = peer.map(tracing::field::display), timeout_ms, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Owner;

    #[test]
    fn causes_are_distinguished_by_expiry_and_by_the_asker() {
        let conn =
            Arc::new(ClientHandle::new(crate::tree::WatcherId(0), ([127, 0, 0, 1], 7).into(), 0));
        let mut sessions = Sessions::new(2000);
        for (id, timeout_ms) in [(1, 4000), (2, 90_000)] {
            sessions.track(SessionId(id), timeout_ms, Owner::Client(conn.clone()), 0);
        }
        assert_eq!(sessions.expired(10_000), [SessionId(1)]);
        let of = |id, is_asked| EndedSession::of(&sessions, SessionId(id), is_asked, 3);
        // The leader's own closeSession of an expired session looks like that of a client.
        assert_eq!(of(1, true).map(|ended| ended.cause), Some(Cause::Expired));
        let closed = of(2, true).expect("it is kept");
        assert_eq!(
            (closed.cause, closed.timeout_ms, closed.ephemerals),
            (Cause::Closed, 90_000, 3)
        );
        assert!(closed.owner.is_some_and(|owner| Arc::ptr_eq(&owner, &conn)));
        assert_eq!(of(2, false).map(|ended| ended.cause), Some(Cause::Leader));
        assert!(of(3, true).is_none());
    }
}
