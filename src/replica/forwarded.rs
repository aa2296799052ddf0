//! Requests that were forwarded to the leader and are not answered.

use super::inflight::Inflight;
use crate::model::SessionId;
use crate::request::Load;
use crate::zab::LearnerConnectionId;
use std::collections::{BTreeMap, VecDeque};

/// One request of a client of this server, on its way to the leader.
struct Forwarded {
    inflight: Inflight,
    /// Answered by the leader's SYNC instead of by a transaction.
    by_sync: bool,
}

/// The asker of a sync, which the leader answers by SYNC.
#[derive(Clone, Copy)]
pub enum SyncAsker {
    Client(SessionId),
    Observer(LearnerConnectionId),
    /// This server, to learn which of its observers' requests are committed.
    ThisServer,
}

/// Requests of this server's clients until they are proposed or answered, and syncs of its observers.
#[derive(Default)]
pub struct ForwardedRequests {
    /// By session, in the order they were forwarded.
    requests: BTreeMap<SessionId, VecDeque<Forwarded>>,
    /// Unanswered syncs, in order: the leader answers them in this order.
    syncs: VecDeque<SyncAsker>,
}

impl ForwardedRequests {
    pub fn len(&self) -> usize {
        self.requests.values().map(VecDeque::len).sum()
    }

    /// Their load in [`crate::request::Throttle`].
    pub fn load(&self) -> Load {
        let mut load = Load::default();
        self.requests.values().flatten().for_each(|request| load += request.inflight.load);
        load
    }

    /// Whether a request of a session is neither answered nor proposed.
    pub fn waits(&self, session: SessionId) -> bool {
        self.requests.contains_key(&session)
    }

    /// * `by_sync`: the leader answers with SYNC instead of a transaction.
    pub fn push(&mut self, inflight: Inflight, by_sync: bool) {
        let session = inflight.session;
        if by_sync {
            self.syncs.push_back(SyncAsker::Client(session));
        }
        self.requests.entry(session).or_default().push_back(Forwarded { inflight, by_sync });
    }

    /// Notes a sync that no client of this server waits for.
    pub fn push_sync(&mut self, asker: SyncAsker) {
        self.syncs.push_back(asker);
    }

    /// The request of this server's client that the transaction of `session` and `xid` answers, if there is one.
    pub fn take_proposed(&mut self, session: SessionId, xid: i32) -> Option<Inflight> {
        self.first(session, false, |inflight| inflight.xid == xid)
    }

    /// The asker of the sync that the next SYNC of the leader answers.
    pub fn next_sync(&mut self) -> Option<SyncAsker> {
        self.syncs.pop_front()
    }

    /// The request of a session that a SYNC of the leader answers.
    pub fn take_synced(&mut self, session: SessionId) -> Option<Inflight> {
        self.first(session, true, |_| true)
    }

    /// The first of a session's requests that is, or is not, answered by SYNC.
    fn first(
        &mut self,
        session: SessionId,
        by_sync: bool,
        fits: impl Fn(&Inflight) -> bool,
    ) -> Option<Inflight> {
        let requests = self.requests.get_mut(&session)?;
        let at = requests.iter().position(|request| request.by_sync == by_sync)?;
        if !fits(&requests[at].inflight) {
            return None;
        }
        let request = requests.remove(at)?;
        if requests.is_empty() {
            self.requests.remove(&session);
        }
        Some(request.inflight)
    }

    /// # Panics
    /// When the two queues contradict each other.
    #[cfg(any(debug_assertions, feature = "sim"))]
    pub fn assert_invariants(&self) {
        let mut waiting: BTreeMap<SessionId, usize> = BTreeMap::new();
        for asker in &self.syncs {
            if let SyncAsker::Client(session) = asker {
                *waiting.entry(*session).or_default() += 1;
            }
        }
        for (session, requests) in &self.requests {
            assert!(!requests.is_empty(), "{session} has an empty queue of forwarded requests");
            assert!(
                requests.iter().all(|request| request.inflight.session == *session
                    && request.inflight.zxid.is_none()),
                "a forwarded request of {session} is another session's, or has a zxid already"
            );
            let by_sync = requests.iter().filter(|request| request.by_sync).count();
            let syncs = waiting.remove(session).unwrap_or(0);
            assert_eq!(by_sync, syncs, "{session}: requests that SYNC answers, and SYNCs awaited");
        }
        assert!(waiting.is_empty(), "a SYNC is awaited that no request needs: {waiting:?}");
    }
}
