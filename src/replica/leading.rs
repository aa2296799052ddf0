//! What the clients of learners ask of their leader.

use super::{Action, Inflight, Replica};
use crate::model::{Code, SessionId, op};
use crate::request::prep::{Asker, Prepared};
use crate::request::{Done, Owner};
use crate::zab::{self, LinkId, Packet, Request};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The answer to a server whose client has come with a session: {long session, boolean lives}.
pub(super) fn revalidated(session: SessionId, lives: bool) -> Packet {
    let mut data = BytesMut::with_capacity(9);
    data.put_i64(session.0);
    data.put_u8(u8::from(lives));
    Packet::Revalidate { data: data.freeze() }
}

/// Sessions that were heard of, each {long session, int timeout}.
pub(super) fn pairs(mut touched: Bytes) -> impl Iterator<Item = (SessionId, i32)> {
    std::iter::from_fn(move || {
        (12 <= touched.remaining()).then(|| (SessionId(touched.get_i64()), touched.get_i32()))
    })
}

impl Replica {
    pub(super) fn on_learner(&mut self, link: LinkId, packet: Packet, out: &mut Vec<Action>) {
        match packet {
            Packet::Ping { touched, .. } => self.touch(touched.unwrap_or_default()),
            Packet::Revalidate { data } => self.revalidate(link, data, out),
            Packet::Request(request) => self.on_request(link, &request, out),
            // `zab` lets nothing else through.
            _ => {}
        }
    }

    /// Sessions their servers heard of.
    fn touch(&mut self, touched: Bytes) {
        for (session, timeout_ms) in pairs(touched) {
            self.sessions.touch(session, timeout_ms, self.now_ms);
        }
    }

    /// A client has come to another server with a session it has.
    fn revalidate(&mut self, link: LinkId, mut data: Bytes, out: &mut Vec<Action>) {
        self.stats.revalidations += 1;
        if data.remaining() < 12 {
            return;
        }
        let (session, timeout_ms) = (SessionId(data.get_i64()), data.get_i32());
        let owner = Owner::Elsewhere(link.0);
        // A connection here that spoke for it stays until it writes or falls silent, as it would at another server (G-23).
        let taken = self.sessions.take_over(session, timeout_ms, owner, self.now_ms);
        let bytes = revalidated(session, taken.is_ok()).to_bytes();
        out.push(Action::Peer(zab::Action::ToLearner { link, bytes }));
    }

    fn on_request(&mut self, link: LinkId, request: &Request, out: &mut Vec<Action>) {
        if request.op == op::SYNC {
            self.stats.learners_syncs += 1;
            if !self.confirm_for_learner() {
                return self.out_of_zxids(out);
            }
            self.zab.step(zab::Input::Sync { link }, &mut self.zab_out);
            return self.on_zab(self.now_us, out);
        }
        let owner = Owner::Elsewhere(link.0);
        let mut inflight = Inflight {
            zxid: None,
            entry: Bytes::new(),
            code: Code::OK,
            conn: None,
            session: request.session,
            xid: request.xid,
            op: request.op,
            received_us: 0,
            is_silent: false,
            weight: Done::default(),
        };
        if request.op == op::CREATE_SESSION
            && let Some(timeout_ms) = request.body.first_chunk::<4>()
        {
            let timeout_ms = i32::from_be_bytes(*timeout_ms);
            self.sessions.track(request.session, timeout_ms, owner.clone(), self.now_ms);
        }
        let (standing, may_own) = self.check_session(request.session, &owner);
        let shared = self.shared.clone();
        let asker = Asker {
            session: request.session,
            xid: request.xid,
            who: &request.who,
            standing,
            may_own,
            wall_ms: self.wall_ms,
            skip_acl: shared.limits.skip_acl,
            schemes: &shared.limits.schemes,
            ensemble: self.ensemble(request.op),
        };
        let mut entry = Vec::new();
        let prepared = {
            let tree = shared.state.tree.read();
            self.prep.prepare(&tree, &asker, request.op, &request.body, &mut entry)
        };
        let zxid = match prepared {
            Some(Prepared::Proposal(zxid)) => Some(zxid),
            // Its server waits for an answer in the history, and has no other way to get one.
            Some(Prepared::Refused(code)) => self.prep.refuse(&asker, code, &mut entry),
            None => None,
        };
        let Some(zxid) = zxid else { return self.out_of_zxids(out) };
        if request.op == op::CLOSE_SESSION {
            self.sessions.set_closing(request.session);
        }
        let entry = Bytes::from(entry);
        (inflight.zxid, inflight.entry) = (Some(zxid), entry.clone());
        self.inflight.push_back(inflight);
        self.zab.step(zab::Input::Propose { zxid, payload: entry }, &mut self.zab_out);
        self.on_zab(self.now_us, out);
    }
}
