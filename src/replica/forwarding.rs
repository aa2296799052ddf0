//! A follower or an observer: the requests of its clients that it forwards to its leader, and the leader's answers.

use super::core::{Core, to_leader};
use super::forwarded::{ForwardedRequests, SyncAsker};
use super::inflight::Inflight;
use super::interface::Action;
use super::learner_packets::{
    LearnerPacket, create_session, pongs, revalidate, sessions_in, to_learner,
};
use super::local_sessions::Upgrade;
use super::observer_master::{ObserverMaster, refused};
use super::observer_questions::ObserverQuestions;
use super::observers_requests::ObserversRequests;
use super::stats::WriteSample;
use crate::model::sync::Arc;
use crate::model::{Code, SessionId, Zxid, op};
use crate::request::{
    Batch, BatchedWrite, ClientHandle, OpenSession, Owner, ReopenSession, Sessions, expansion,
    identities_len, prep,
};
use crate::zab::{self, LearnerConnectionId, Packet, Request};
use bytes::{Buf, Bytes};
use std::collections::{BTreeMap, VecDeque};

/// The role of a learner that serves. It is built when the role begins and dropped when it ends.
pub struct Forwarding {
    /// Global sessions of this server's clients.
    pub sessions: Sessions,
    pub requests: ForwardedRequests,
    /// Clients that reconnected with a session, until the leader says whether the session is valid.
    returning: BTreeMap<SessionId, ReopenSession>,
    /// Unanswered revalidations, in order: of this server's clients, or of an observer.
    revalidations: VecDeque<(SessionId, Option<LearnerConnectionId>)>,
    /// Empty unless this is a follower.
    pub observers: ObserverMaster,
    /// Counts of the observers' unanswered syncs and revalidations.
    observer_questions: ObserverQuestions,
    /// Bytes of the observers' requests that are not committed.
    observers_requests: ObserversRequests,
    /// Monotonic milliseconds at which the leader was last sent the sessions that were touched.
    sent_ms: u64,
}

/// Where the session of one of this server's connections is now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SessionPlace {
    /// With the connection, as far as is known here.
    Here,
    /// The session is at a newer connection to this server.
    NewerConnection,
    /// The session is at an observer of this server.
    AtObserver,
}

impl Forwarding {
    /// * `tick_time_ms`: width of session buckets.
    pub fn new(tick_time_ms: u64) -> Self {
        Self {
            sessions: Sessions::new(tick_time_ms),
            requests: ForwardedRequests::default(),
            returning: BTreeMap::new(),
            revalidations: VecDeque::new(),
            observers: ObserverMaster::default(),
            observer_questions: ObserverQuestions::default(),
            observers_requests: ObserversRequests::default(),
            sent_ms: 0,
        }
    }

    /// A client of this server wants a new session.
    pub fn open(&mut self, core: &mut Core, open: OpenSession, out: &mut Vec<Action>) {
        let OpenSession { conn, timeout_ms, received_us } = open;
        let session = core.new_session(Some(&self.sessions));
        self.sessions.track(session, timeout_ms, Owner::Client(conn.clone()), core.heard_at_ms());
        let inflight = Inflight::of_server(session, op::CREATE_SESSION);
        self.requests.push(Inflight { conn: Some(conn), received_us, ..inflight }, false);
        out.push(to_leader(&create_session(session, timeout_ms)));
    }

    /// A client has reconnected to this server with its session.
    pub fn reopen(&mut self, core: &mut Core, reopen: ReopenSession, out: &mut Vec<Action>) {
        let (session, timeout_ms) = (reopen.session, reopen.timeout_ms);
        // Closed before the leader gives the session to this server: requests of the older connection would be taken for the
        // new connection's.
        if let Some(old) =
            self.sessions.owner(session).filter(|old| !Arc::ptr_eq(old, &reopen.conn))
        {
            old.close(&mut core.wakers);
        }
        if let Some(older) = self.returning.insert(session, reopen) {
            older.conn.close(&mut core.wakers);
        }
        self.observers.came_here(session);
        self.revalidations.push_back((session, None));
        out.push(to_leader(&revalidate(session, timeout_ms)));
    }

    /// The connection of a client ended. Its session goes on without it until the leader expires it; the answer to the last
    /// PING has sent the leader the time at which the client was last heard.
    pub fn gone(&mut self, conn: &Arc<ClientHandle>) {
        if let Some(session) = conn.session() {
            self.sessions.leave(session, conn);
        }
    }

    /// Writes and syncs of a client of this server.
    pub fn on_writes(&mut self, core: &mut Core, batch: &Batch, out: &mut Vec<Action>) {
        let place = self.place_of(&batch.conn, batch.session);
        if place == SessionPlace::NewerConnection {
            return core.drop_batch(batch);
        }
        let mut bytes = Vec::with_capacity(batch.bytes.len() + batch.requests.len() * 64);
        for write in batch.writes() {
            if core.settings.eager_acl_check && self.refuses_early(core, write) {
                continue;
            }
            self.forward(core, write, place, &mut bytes);
        }
        if !bytes.is_empty() {
            out.push(Action::Peer(zab::Action::ToLeader { bytes: bytes.into() }));
        }
    }

    fn refuses_early(&self, core: &mut Core, write: BatchedWrite<'_>) -> bool {
        let shared = core.shared.clone();
        let tree = shared.state.tree.read();
        core.refuses_early(write, &tree, || self.requests.waits(write.batch.session))
    }

    /// Appends the packets for one write or sync to `bytes`.
    fn forward(
        &mut self,
        core: &mut Core,
        write: BatchedWrite<'_>,
        place: SessionPlace,
        bytes: &mut Vec<u8>,
    ) {
        let BatchedWrite { batch, request: asked, body } = write;
        let mut inflight = Inflight::asked(batch, asked);
        // The body is decoded here, so that no client can use this server to harm a leader (G-01). The refusal is forwarded
        // as a sync, which keeps its place in the order.
        let is_sound = asked.op == op::SYNC || prep::is_readable(asked.op, body);
        let closes_local = asked.op == op::CLOSE_SESSION && core.locals.contains(batch.session);
        let upgrade = core.upgrade_for(batch.session, asked.op, body);
        if place == SessionPlace::AtObserver {
            inflight.code = Code::SESSION_MOVED;
        } else if !is_sound {
            inflight.code = Code::MARSHALLING_ERROR;
        } else if upgrade == Upgrade::Forbidden {
            inflight.code = Code::EPHEMERAL_ON_LOCAL_SESSION;
        } else if let Upgrade::Needed { timeout_ms } = upgrade {
            let owner = Owner::Client(batch.conn.clone());
            core.locals.remove(batch.session);
            self.sessions.track(batch.session, timeout_ms, owner, core.heard_at_ms());
            create_session(batch.session, timeout_ms).encode(bytes);
        }
        let by_sync = asked.op == op::SYNC || closes_local || !inflight.code.is_ok();
        if by_sync {
            inflight.entry = Bytes::copy_from_slice(body);
        } else {
            inflight.audited = core.audited(write);
        }
        Packet::Request(Request {
            session: batch.session,
            xid: asked.xid,
            op: if by_sync { op::SYNC } else { asked.op },
            body: Bytes::copy_from_slice(body),
            identities: batch.identities.to_vec(),
        })
        .encode(bytes);
        self.requests.push(inflight, by_sync);
    }

    /// Where the session of one of this server's connections is.
    fn place_of(&self, conn: &Arc<ClientHandle>, session: SessionId) -> SessionPlace {
        let is_other = |owner: &Arc<ClientHandle>| !Arc::ptr_eq(owner, conn);
        if self.returning.get(&session).is_some_and(|reopen| is_other(&reopen.conn))
            || self.sessions.owner(session).is_some_and(is_other)
        {
            SessionPlace::NewerConnection
        } else if self.observers.has(session) {
            SessionPlace::AtObserver
        } else {
            SessionPlace::Here
        }
    }

    /// The request that a proposal of the leader answers, if a client of this server sent it.
    pub fn expected(&mut self, entry: &Bytes) -> Option<Inflight> {
        let mut header = entry.clone();
        if header.remaining() < 12 {
            return None;
        }
        let (session, xid) = (SessionId(header.get_i64()), header.get_i32());
        self.requests.take_proposed(session, xid)
    }

    /// Answers the leader's ping with the sessions that were touched.
    pub fn on_ping(&mut self, core: &Core, zxid: i64, out: &mut Vec<Action>) {
        let own = self.sessions.heard_since(self.sent_ms);
        let touched = own.into_iter().chain(self.observers.take_touched());
        self.sent_ms = core.now_ms;
        out.extend(pongs(zxid, touched).iter().map(to_leader));
    }

    /// The leader says whether a session is valid: {long session, boolean valid}.
    pub fn on_revalidated(&mut self, core: &mut Core, data: &Bytes, out: &mut Vec<Action>) {
        if data.remaining() < 9 {
            return;
        }
        let mut from = data.clone();
        let (session, is_valid) = (SessionId(from.get_i64()), from.get_u8() != 0);
        let at = self.revalidations.iter().position(|(id, _)| *id == session);
        match at.and_then(|at| self.revalidations.remove(at)) {
            Some((_, Some(connection))) => {
                self.observer_questions.answered(connection);
                if !is_valid {
                    self.observers.does_not_live(session, Some(connection));
                }
                out.push(to_learner(connection, &Packet::Revalidate { data: data.clone() }));
            }
            // The answer is to the revalidation of an older connection: the client has reconnected since. If this answer
            // accepted the newer connection: 1. the client could move on to another server; 2. the leader, when it gets to
            // the newer revalidation, perhaps late, would give the session back to this server; 3. requests the client sent
            // here would be processed after requests it sent there.
            Some((_, None)) if is_valid && self.revalidations.contains(&(session, None)) => {}
            Some((_, None)) => self.on_own_revalidated(core, session, is_valid),
            None => {
                tracing::warn!(target: crate::model::STRANGERS, %session, is_valid, "REVALIDATE ignored: no client or observer waits for it; report it if it repeats")
            }
        }
    }

    /// The follower that is this observer's master reports that a session has moved. If its client has reconnected here
    /// since, the connection that the report is about was closed then.
    pub fn on_session_moved(&mut self, core: &mut Core, session: SessionId) {
        if self.returning.contains_key(&session) {
            return;
        }
        if let Some(owner) = self.sessions.owner(session) {
            owner.close(&mut core.wakers);
        }
    }

    fn on_own_revalidated(&mut self, core: &mut Core, session: SessionId, is_valid: bool) {
        let Some(reopen) = self.returning.remove(&session) else { return };
        if !is_valid {
            self.observers.does_not_live(session, None);
            return core.refuse_session(&reopen.conn);
        }
        let (owner, timeout_ms) = (Owner::Client(reopen.conn.clone()), reopen.timeout_ms);
        let old =
            match self.sessions.take_over(session, timeout_ms, owner.clone(), core.heard_at_ms()) {
                Ok(old) => old,
                Err(_) => {
                    self.sessions.track(session, timeout_ms, owner, core.heard_at_ms());
                    None
                }
            };
        core.welcome_back(&reopen, old, false);
    }

    /// The leader's SYNC: all that was committed before the sync is applied, since the leader sends SYNC after it.
    pub fn on_synced(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let session = match self.requests.next_sync() {
            Some(SyncAsker::Client(session)) => session,
            Some(SyncAsker::Observer(connection)) => {
                self.observer_questions.answered(connection);
                return out.push(to_learner(connection, &Packet::Sync));
            }
            Some(SyncAsker::ThisServer) => return self.observers_requests.committed(),
            None => return,
        };
        let Some(synced) = self.requests.take_synced(session) else { return };
        core.answer_now(&synced);
        let took_us = Some(core.now_us.saturating_sub(synced.received_us));
        core.figures.samples.writes.push(WriteSample { took_us, born_ms: None });
        core.shared.throttle.end(synced.load, &mut core.wakers);
    }

    /// A packet of an observer of this follower, for the leader.
    pub fn on_observer(
        &mut self,
        core: &mut Core,
        connection: LearnerConnectionId,
        packet: LearnerPacket,
        out: &mut Vec<Action>,
    ) {
        let asks = match &packet {
            LearnerPacket::Touched(_) => false,
            LearnerPacket::Revalidate { .. } => true,
            LearnerPacket::Request(request) => request.op == op::SYNC,
        };
        if asks && let Err(why) = self.observer_questions.asked(connection) {
            return core.close_learner(connection, why, out);
        }
        match packet {
            LearnerPacket::Touched(touched) => self.observers.touch(sessions_in(touched)),
            LearnerPacket::Revalidate { session, timeout_ms } => {
                self.observers.came(session, connection);
                self.revalidations.push_back((session, Some(connection)));
                out.push(to_leader(&revalidate(session, timeout_ms)));
            }
            LearnerPacket::Request(request) => {
                self.on_observers_request(core, connection, request, out);
            }
        }
    }

    fn on_observers_request(
        &mut self,
        core: &mut Core,
        connection: LearnerConnectionId,
        request: Request,
        out: &mut Vec<Action>,
    ) {
        let is_member = match core.zab.role() {
            zab::Role::Learning(learner) => learner.has_member_at(&core.zab.core, connection),
            zab::Role::Looking(_) | zab::Role::Leading(_) => false,
        };
        let len = request.body.len()
            + identities_len(&request.identities)
            + expansion(&core.shared.limits, request.op, &request.body, &request.identities);
        let is_sync_due = match self.observers_requests.admit(is_member, len) {
            Ok(is_due) => is_due,
            Err(why) => return core.close_learner(connection, why, out),
        };
        self.forward_observers(core, connection, request, out);
        if is_sync_due {
            self.requests.push_sync(SyncAsker::ThisServer);
            out.push(to_leader(&Packet::Request(sync_of_this_server())));
        }
    }

    fn forward_observers(
        &mut self,
        core: &Core,
        connection: LearnerConnectionId,
        request: Request,
        out: &mut Vec<Action>,
    ) {
        let session = request.session;
        // A client that waits here with an observer's local session will be refused, because the leader does not know that
        // session. It may be back at the observer before that.
        let returns = || self.returning.contains_key(&session) && core.is_global(session);
        let is_here = || returns() || self.sessions.owner(session).is_some();
        if request.op == op::SYNC {
            self.requests.push_sync(SyncAsker::Observer(connection));
        } else if request.op == op::CREATE_SESSION {
            self.observers.came(session, connection);
        } else if self.observers.has_left(connection, session, is_here) {
            out.push(to_learner(connection, &Packet::SessionMoved { session }));
            return out.push(to_leader(&Packet::Request(refused(&request))));
        }
        out.push(to_leader(&Packet::Request(request)));
    }

    /// # Panics
    /// When the records of unanswered requests contradict each other.
    #[cfg(any(debug_assertions, feature = "sim"))]
    pub fn assert_invariants(&self) {
        self.requests.assert_invariants();
        for session in self.returning.keys() {
            assert!(
                self.revalidations.contains(&(*session, None)),
                "a client waits for the revalidation of {session}, which the leader was not asked for"
            );
        }
    }
}

/// A sync that no client asked for.
const fn sync_of_this_server() -> Request {
    Request {
        session: SessionId(0),
        xid: 0,
        op: op::SYNC,
        body: Bytes::new(),
        identities: Vec::new(),
    }
}

/// Appends a proposal of the leader to the order of transactions.
///
/// * `asked`: the request it answers.
pub fn expect(core: &mut Core, asked: Option<Inflight>, zxid: Zxid, entry: Bytes) {
    let inflight = asked.unwrap_or_else(Inflight::of_others);
    core.inflight.push_back(Inflight { zxid: Some(zxid), entry, ..inflight });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Identity;
    use crate::replica::core::test_member;
    use crate::replica::interface::Settings;
    use crate::request::ClientHandle;

    const SESSION: SessionId = SessionId(7);

    fn connection(core: &Core) -> Arc<ClientHandle> {
        core.shared.conns.add(|id| ClientHandle::new(id, ([127, 0, 0, 1], 1).into(), 0))
    }

    /// The session's client reconnects.
    fn comes_back(
        forwarding: &mut Forwarding,
        core: &mut Core,
        out: &mut Vec<Action>,
    ) -> Arc<ClientHandle> {
        let conn = connection(core);
        let reopen = ReopenSession { conn: conn.clone(), session: SESSION, timeout_ms: 4000 };
        forwarding.reopen(core, reopen, out);
        conn
    }

    /// A request of the session comes from an observer that the session has left.
    #[track_caller]
    fn assert_late_request_is_refused(
        forwarding: &mut Forwarding,
        core: &mut Core,
        observer: LearnerConnectionId,
    ) {
        let (body, identities, mut out) = (Bytes::new(), Vec::new(), Vec::new());
        let late = Request { session: SESSION, xid: 3, op: op::SET_DATA, body, identities };
        forwarding.on_observer(core, observer, LearnerPacket::Request(late.clone()), &mut out);
        let moved = to_learner(observer, &Packet::SessionMoved { session: SESSION });
        let instead = to_leader(&Packet::Request(refused(&late)));
        assert_eq!(format!("{out:?}"), format!("{:?}", [moved, instead]));
    }

    fn answer(is_valid: bool) -> Bytes {
        [&SESSION.0.to_be_bytes()[..], &[u8::from(is_valid)]].concat().into()
    }

    #[test]
    fn client_that_reconnects_before_session_moved_arrives_keeps_its_session() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let first = comes_back(&mut forwarding, &mut core, &mut out);
        forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        assert_eq!(first.session(), Some(SESSION));
        // The client goes to another observer and returns, while the SessionMoved of its first move is on its way here.
        let second = comes_back(&mut forwarding, &mut core, &mut out);
        forwarding.on_session_moved(&mut core, SESSION);
        forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        assert_eq!(second.session(), Some(SESSION));
        assert!(forwarding.sessions.owner(SESSION).is_some_and(|at| Arc::ptr_eq(at, &second)));
        // An answer that no client waits for is ignored.
        forwarding.on_revalidated(&mut core, &answer(false), &mut out);
        assert!(!second.stats.is_gone());
        forwarding.on_session_moved(&mut core, SESSION);
        assert!(second.stats.is_gone(), "it has left now");
    }

    #[test]
    fn refused_session_of_a_client_that_reconnected_twice_waits_for_no_second_answer() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        for _ in 0..2 {
            comes_back(&mut forwarding, &mut core, &mut out);
        }
        assert!(forwarding.returning.contains_key(&SESSION));
        forwarding.on_revalidated(&mut core, &answer(false), &mut out);
        assert!(!forwarding.returning.contains_key(&SESSION));
    }

    #[test]
    fn request_of_a_moved_session_gets_session_moved_and_no_answer_from_observer_master() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let [one, two] = [1, 2].map(LearnerConnectionId);
        for connection in [one, two] {
            let question = LearnerPacket::Revalidate { session: SESSION, timeout_ms: 4000 };
            forwarding.on_observer(&mut core, connection, question, &mut out);
            forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        }
        assert_late_request_is_refused(&mut forwarding, &mut core, one);
    }

    #[test]
    fn late_request_of_an_observer_is_refused_after_its_client_came_to_observer_master_and_left() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let observer = LearnerConnectionId(1);
        let question = LearnerPacket::Revalidate { session: SESSION, timeout_ms: 4000 };
        forwarding.on_observer(&mut core, observer, question, &mut out);
        forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        let conn = comes_back(&mut forwarding, &mut core, &mut out);
        forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        forwarding.gone(&conn);
        assert_late_request_is_refused(&mut forwarding, &mut core, observer);
    }

    #[test]
    fn observer_master_forgets_sessions_that_are_not_valid() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let [one, two] = [1, 2].map(LearnerConnectionId);
        let question = || LearnerPacket::Revalidate { session: SESSION, timeout_ms: 4000 };
        forwarding.on_observer(&mut core, one, question(), &mut out);
        assert!(forwarding.observers.has(SESSION));
        forwarding.on_revalidated(&mut core, &answer(false), &mut out);
        assert!(!forwarding.observers.has(SESSION));
        // The client has gone from the first observer to the second one before the leader answers.
        forwarding.on_observer(&mut core, one, question(), &mut out);
        forwarding.on_observer(&mut core, two, question(), &mut out);
        forwarding.on_revalidated(&mut core, &answer(false), &mut out);
        assert!(forwarding.observers.has(SESSION), "the second observer waits for its answer");
        forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        assert!(forwarding.observers.has(SESSION));
    }

    #[test]
    fn observer_master_passes_on_touches_only_of_sessions_at_its_observers() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let connection = LearnerConnectionId(1);
        let question = LearnerPacket::Revalidate { session: SESSION, timeout_ms: 4000 };
        forwarding.on_observer(&mut core, connection, question, &mut out);
        let sessions = [SESSION, SessionId(8)];
        let touched =
            sessions.iter().flat_map(|id| [&id.0.to_be_bytes()[..], &[0, 0, 8, 0]].concat());
        let touched = LearnerPacket::Touched(touched.collect());
        forwarding.on_observer(&mut core, connection, touched, &mut out);
        assert!(forwarding.observers.take_touched().into_iter().eq([(SESSION, 2048)]));
    }

    #[test]
    fn observer_that_asks_without_waiting_for_answers_is_disconnected() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let one = LearnerConnectionId(1);
        let (body, identities) = (Bytes::new(), Vec::new());
        let sync = Request { session: SESSION, xid: 1, op: op::SYNC, body, identities };
        let is_closed = |out: &[Action]| matches!(out.last(), Some(Action::Peer(zab::Action::CloseLearner { connection, .. })) if *connection == one);
        for _ in 0..1 << 15 {
            for question in [
                LearnerPacket::Request(sync.clone()),
                LearnerPacket::Revalidate { session: SESSION, timeout_ms: 4000 },
            ] {
                forwarding.on_observer(&mut core, one, question, &mut out);
            }
        }
        // With two syncs of this server's own.
        assert!(!is_closed(&out) && out.len() == (1 << 16) + 2);
        // Each answer of the leader makes room for one more question.
        for _ in 0..10 {
            forwarding.on_synced(&mut core, &mut out);
            forwarding.on_revalidated(&mut core, &answer(true), &mut out);
        }
        out.clear();
        for _ in 0..20 {
            forwarding.on_observer(&mut core, one, LearnerPacket::Request(sync.clone()), &mut out);
            assert!(!is_closed(&out));
        }
        forwarding.on_observer(&mut core, one, LearnerPacket::Request(sync), &mut out);
        assert!(is_closed(&out) && out.len() == 21, "it is not forwarded either");
    }

    #[test]
    fn requests_of_strangers_at_observer_master_are_bounded_until_the_leader_answers_a_sync() {
        let (mut core, mut forwarding, mut out) =
            (test_member(Settings::DEFAULT), Forwarding::new(2000), Vec::new());
        let [one, two] = [1, 2].map(LearnerConnectionId);
        let request = |op| {
            let (body, identities) = (vec![0; 1 << 20].into(), vec![Identity::new("ip", "x")]);
            LearnerPacket::Request(Request { session: SESSION, xid: 1, op, body, identities })
        };
        let is_closed = |out: &[Action]| {
            matches!(out.last(), Some(Action::Peer(zab::Action::CloseLearner { .. })))
        };
        // A sync's bytes, which the leader does not need, count as others do.
        for op in [op::SET_DATA, op::SYNC].repeat(15) {
            forwarding.on_observer(&mut core, one, request(op), &mut out);
        }
        let own = format!("{:?}", to_leader(&Packet::Request(sync_of_this_server())));
        let is_own = |action: &&Action| format!("{action:?}") == own;
        assert_eq!((out.len(), out.iter().filter(is_own).count()), (37, 7), "one for 4 MiB");
        forwarding.on_observer(&mut core, one, request(op::SET_DATA), &mut out);
        assert!(!is_closed(&out));
        // Those of the first connection count still.
        forwarding.on_observer(&mut core, two, request(op::SET_DATA), &mut out);
        assert!(is_closed(&out) && out.len() == 39, "it is not forwarded either");
        // The observer's syncs before the own one, and the own one.
        for _ in 0..3 {
            forwarding.on_synced(&mut core, &mut out);
        }
        forwarding.on_observer(&mut core, two, request(op::SET_DATA), &mut out);
        assert!(!is_closed(&out), "the leader has committed 4 MiB");
    }
}
