//! What this server asks of its leader for its clients, and what becomes of it.

use super::local::Standing;
use super::relaying::Place;
use super::{Action, Inflight, Replica, WriteSample, refuse_session};
use crate::model::sync::Arc;
use crate::model::{Code, SessionId, Zxid, op};
use crate::request::{Batch, Conn, Done, Owner, prep};
use crate::zab::{self, LinkId, Packet, Request};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// One request of a client of this server, on its way to the leader.
struct Ask {
    inflight: Inflight,
    /// Answered by the leader's SYNC instead of by a transaction.
    by_sync: bool,
}

/// What was asked and is not answered.
#[derive(Default)]
pub(super) struct Learning {
    /// By session, in the order it was asked.
    asks: BTreeMap<SessionId, VecDeque<Ask>>,
    /// Whom the leader's next SYNC is for: it answers in order.
    pub(super) syncs: VecDeque<Asked>,
    /// Clients that came with a session, until the leader says whether it lives.
    pub(super) returning: BTreeMap<SessionId, (Arc<Conn>, i32)>,
    /// Who asks whether a session lives, in order: clients of this server, or of an observer.
    pub(super) revalidations: VecDeque<(SessionId, Option<LinkId>)>,
    /// At which observer a session was last that came through this server, unless it has come to this server itself since.
    pub(super) relayed: BTreeMap<SessionId, LinkId>,
    /// What observers heard of since the leader was last told.
    pub(super) touched: BTreeMap<SessionId, i32>,
    /// When the leader was last told whose clients were heard of, in monotonic milliseconds.
    told_ms: u64,
}

/// Whom an answer of the leader is for.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Client(SessionId),
    Observer(LinkId),
}

impl Learning {
    /// Forgets all of it; what it counted for.
    pub fn clear(&mut self) -> Done {
        let all = std::mem::take(self);
        let mut done = Done::default();
        for ask in all.asks.values().flatten() {
            done.requests += ask.inflight.weight.requests;
            done.large_bytes += ask.inflight.weight.large_bytes;
        }
        done
    }

    pub fn len(&self) -> usize {
        self.asks.values().map(VecDeque::len).sum()
    }

    /// Whether something of a session is not answered, nor proposed.
    pub fn waits(&self, session: SessionId) -> bool {
        self.asks.contains_key(&session)
    }

    fn push(&mut self, inflight: Inflight, by_sync: bool) {
        let session = inflight.session;
        if by_sync {
            self.syncs.push_back(Asked::Client(session));
        }
        self.asks.entry(session).or_default().push_back(Ask { inflight, by_sync });
    }

    /// The first of a session's requests that is, or is not, answered by SYNC.
    fn first(
        &mut self,
        session: SessionId,
        by_sync: bool,
        fits: impl Fn(&Inflight) -> bool,
    ) -> Option<Inflight> {
        let asks = self.asks.get_mut(&session)?;
        let at = asks.iter().position(|ask| ask.by_sync == by_sync)?;
        if !fits(&asks[at].inflight) {
            return None;
        }
        let ask = asks.remove(at)?;
        if asks.is_empty() {
            self.asks.remove(&session);
        }
        Some(ask.inflight)
    }

    /// What the transaction of `session` and `xid` answers, if it is a client of this server that asked for it.
    fn take(&mut self, session: SessionId, xid: i32) -> Option<Inflight> {
        self.first(session, false, |inflight| inflight.xid == xid)
    }
}

impl Replica {
    pub(super) fn ask_to_open(
        &mut self,
        conn: Arc<Conn>,
        timeout_ms: i32,
        received_us: u64,
        out: &mut Vec<Action>,
    ) {
        let session = self.new_session();
        self.sessions.track(session, timeout_ms, Owner::Conn(conn.clone()), self.now_ms);
        let ask = Inflight {
            zxid: None,
            entry: Bytes::new(),
            code: Code::OK,
            conn: Some(conn),
            session,
            xid: 0,
            op: op::CREATE_SESSION,
            received_us,
            is_silent: false,
            weight: Done::default(),
        };
        self.learning.push(ask, false);
        self.tell_leader(&create_session(session, timeout_ms), out);
    }

    pub(super) fn ask_to_reopen(
        &mut self,
        conn: Arc<Conn>,
        session: SessionId,
        timeout_ms: i32,
        out: &mut Vec<Action>,
    ) {
        let mut data = BytesMut::with_capacity(12);
        data.put_i64(session.0);
        data.put_i32(timeout_ms);
        // Before the leader gives the session to this server: what an older connection still asks would be taken for its.
        if let Some(old) = self.sessions.owner(session).filter(|old| !Arc::ptr_eq(old, &conn)) {
            old.close(&mut self.wakers);
        }
        if let Some((old, _)) = self.learning.returning.insert(session, (conn, timeout_ms)) {
            old.close(&mut self.wakers);
        }
        self.learning.relayed.remove(&session);
        self.learning.revalidations.push_back((session, None));
        self.tell_leader(&Packet::Revalidate { data: data.freeze() }, out);
    }

    pub(super) fn ask_writes(&mut self, batch: &Batch, out: &mut Vec<Action>) {
        let place = self.place_of(&batch.conn, batch.session);
        if place == Place::Left {
            return self.drop_batch(batch);
        }
        let mut bytes = Vec::with_capacity(batch.bytes.len() + batch.requests.len() * 64);
        let shared = self.shared.clone();
        let mut start = 0;
        for asked in &batch.requests {
            let body = &batch.bytes[start..asked.end];
            start = asked.end;
            if self.settings.eager_acl_check
                && self.refuses_early((batch, asked, body), &shared.state.tree.read())
            {
                continue;
            }
            let mut ask = Inflight::asked(batch, asked);
            // Its form is checked here: no client can use this server to harm a leader (G-01). The refusal takes its
            // place in the order as a sync does.
            let is_sound = asked.op == op::SYNC || prep::is_readable(asked.op, body);
            let closes_local = asked.op == op::CLOSE_SESSION && self.locals.contains(batch.session);
            let standing = self.standing_for(batch.session, asked.op, body);
            if place == Place::Moved {
                ask.code = Code::SESSION_MOVED;
            } else if !is_sound {
                ask.code = Code::MARSHALLING_ERROR;
            } else if standing == Standing::Bound {
                ask.code = Code::EPHEMERAL_ON_LOCAL_SESSION;
            } else if let Standing::Upgrade { timeout_ms } = standing {
                let owner = Owner::Conn(batch.conn.clone());
                self.give_up_local(batch.session, timeout_ms, owner);
                create_session(batch.session, timeout_ms).encode(&mut bytes);
            }
            let by_sync = asked.op == op::SYNC || closes_local || !ask.code.is_ok();
            if by_sync {
                ask.entry = Bytes::copy_from_slice(body);
            }
            Packet::Request(Request {
                session: batch.session,
                xid: asked.xid,
                op: if by_sync { op::SYNC } else { asked.op },
                body: Bytes::copy_from_slice(body),
                who: batch.who.to_vec(),
            })
            .encode(&mut bytes);
            self.learning.push(ask, by_sync);
        }
        if !bytes.is_empty() {
            out.push(Action::Peer(zab::Action::ToLeader { bytes: bytes.into() }));
        }
    }

    /// Takes a proposal of the leader into the order, with the client of this server that waits for it.
    pub(super) fn expect(&mut self, zxid: Zxid, entry: &Bytes) {
        let mut header = entry.clone();
        let asked = if header.remaining() >= 12 {
            let (session, xid) = (SessionId(header.get_i64()), header.get_i32());
            self.learning.take(session, xid)
        } else {
            None
        };
        let mut inflight = asked.unwrap_or_else(Inflight::of_others);
        (inflight.zxid, inflight.entry) = (Some(zxid), entry.clone());
        self.inflight.push_back(inflight);
    }

    pub(super) fn on_leader(&mut self, packet: Packet, out: &mut Vec<Action>) {
        match packet {
            Packet::Ping { zxid, .. } => {
                let mut touched = BytesMut::new();
                let own = self.sessions.heard_since(self.learning.told_ms);
                for (session, timeout_ms) in
                    own.into_iter().chain(std::mem::take(&mut self.learning.touched))
                {
                    touched.put_i64(session.0);
                    touched.put_i32(timeout_ms);
                }
                self.learning.told_ms = self.now_ms;
                let touched = Some(touched.freeze());
                self.tell_leader(&Packet::Ping { zxid, touched }, out);
            }
            Packet::Revalidate { data } if data.remaining() >= 9 => {
                let mut from = data.clone();
                let (session, lives) = (SessionId(from.get_i64()), from.get_u8() != 0);
                let asked = &mut self.learning.revalidations;
                let at = asked.iter().position(|(id, _)| *id == session);
                match at.and_then(|at| asked.remove(at)) {
                    Some((_, Some(link))) => {
                        let bytes = Packet::Revalidate { data }.to_bytes();
                        out.push(Action::Peer(zab::Action::ToLearner { link, bytes }));
                    }
                    _ => self.on_revalidated(session, lives),
                }
            }
            Packet::Sync => self.on_synced(out),
            _ => {}
        }
    }

    fn on_revalidated(&mut self, session: SessionId, lives: bool) {
        let Some((conn, timeout_ms)) = self.learning.returning.remove(&session) else {
            if let Some(owner) = self.sessions.owner(session).filter(|_| !lives) {
                owner.close(&mut self.wakers); // It went on elsewhere: the follower that we observe tells us so.
            }
            return;
        };
        if !lives {
            return refuse_session(&conn, &mut self.wakers);
        }
        let owner = Owner::Conn(conn.clone());
        let old = match self.sessions.take_over(session, timeout_ms, owner.clone(), self.now_ms) {
            Ok(old) => old,
            Err(_) => {
                self.sessions.track(session, timeout_ms, owner, self.now_ms);
                None
            }
        };
        self.welcome_back(&conn, session, timeout_ms, old);
    }

    /// All that was committed before is applied: the leader says this behind it.
    fn on_synced(&mut self, out: &mut Vec<Action>) {
        let session = match self.learning.syncs.pop_front() {
            Some(Asked::Client(session)) => session,
            Some(Asked::Observer(link)) => {
                let bytes = Packet::Sync.to_bytes();
                return out.push(Action::Peer(zab::Action::ToLearner { link, bytes }));
            }
            None => return,
        };
        let Some(ask) = self.learning.first(session, true, |_| true) else { return };
        self.answer_now(&ask);
        let took_us = Some(self.now_us.saturating_sub(ask.received_us));
        self.samples.writes.push(WriteSample { took_us, born_ms: None });
        self.shared.throttle.end(ask.weight, &mut self.wakers);
    }

    /// Answers what makes no transaction.
    pub(super) fn answer_now(&mut self, ask: &Inflight) {
        let last = self.shared.state.tree.read().last_zxid();
        let op = if ask.code.is_ok() { ask.op } else { 0 };
        self.note(ask, op, last.to_wire(), self.now_us);
        self.answer_plain(last, ask);
    }

    pub(super) fn tell_leader(&self, packet: &Packet, out: &mut Vec<Action>) {
        out.push(Action::Peer(zab::Action::ToLeader { bytes: packet.to_bytes() }));
    }
}

fn create_session(session: SessionId, timeout_ms: i32) -> Packet {
    let body = Bytes::copy_from_slice(&timeout_ms.to_be_bytes());
    Packet::Request(Request { session, xid: 0, op: op::CREATE_SESSION, body, who: Vec::new() })
}

impl Inflight {
    /// Somebody else's transaction.
    pub(super) fn of_others() -> Self {
        Self {
            zxid: None,
            entry: Bytes::new(),
            code: Code::OK,
            conn: None,
            session: SessionId(0),
            xid: 0,
            op: 0,
            received_us: 0,
            is_silent: false,
            weight: Done::default(),
        }
    }
}
