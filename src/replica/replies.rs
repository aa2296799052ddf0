//! Answers to requests that take no zxid, and what `cons` shows of every answer.

use super::core::Core;
use super::inflight::Inflight;
use super::session_log;
use crate::model::{Code, Zxid, op};
use crate::request::{Answered, Outgoing, reply};
use jute::proto::SyncRequest;
use jute::{Encode, Reader};

impl Core {
    /// Notes what `cons` shows of the answer, before the client can receive it. A refused write has no op there.
    pub fn note(&mut self, inflight: &Inflight, op: i32, zxid: i64, now_us: u64) {
        let Some(conn) = inflight.conn.as_ref().filter(|_| !inflight.is_silent) else { return };
        // Source: `Request.isStale` and its callers.
        if conn.stats.is_gone() && !matches!(op, 0 | op::CLOSE_SESSION) {
            self.figures.stats.stale_replies += 1;
        }
        conn.stats.note(Answered {
            op,
            xid: inflight.xid,
            zxid,
            count: 1,
            began_us: inflight.received_us,
            ended_us: now_us,
        });
    }

    /// Answers a request that makes no transaction, at once.
    pub fn answer_now(&mut self, inflight: &Inflight) {
        let last = self.shared.state.tree.read().last_zxid();
        let op = if inflight.code.is_ok() { inflight.op } else { 0 };
        self.note(inflight, op, last.to_wire(), self.now_us);
        self.answer_plain(last, inflight);
    }

    /// Answers a request that takes no zxid: a sync, the end of a local session, or a body that could not be read.
    pub fn answer_plain(&mut self, last: Zxid, inflight: &Inflight) {
        let Some(conn) = &inflight.conn else { return };
        if inflight.op == op::CLOSE_SESSION && inflight.code.is_ok() {
            session_log::log_closed_local(&self.locals, inflight.session);
            // Only this server knew the session.
            self.locals.remove(inflight.session);
            return conn.push_farewell(&mut self.wakers, |out: &mut Outgoing| {
                reply::reply(out, reply::header(inflight.xid, last.to_wire(), Code::OK), |_| {});
            });
        }
        if inflight.is_silent {
            // Reads that wait for this sync may not be answered when the session has moved.
            return match inflight.code {
                Code::OK => conn.push_answer(&mut self.wakers, |_| {}),
                _ => conn.close(&mut self.wakers),
            };
        }
        let decoded = Reader::new(&inflight.entry).read::<SyncRequest<'_>>();
        let code = match (inflight.code, &decoded) {
            (Code::SESSION_MOVED, _) => return conn.close(&mut self.wakers),
            (Code::OK, Err(_)) => Code::MARSHALLING_ERROR,
            (code, _) => code,
        };
        self.figures.stats.syncs += u64::from(code.is_ok());
        let header = reply::header(inflight.xid, last.to_wire(), code);
        conn.push_answer(&mut self.wakers, |out| {
            reply::reply(out, header, |to| {
                if let Ok(sync) = &decoded {
                    sync.encode(to);
                }
            });
        });
    }
}
