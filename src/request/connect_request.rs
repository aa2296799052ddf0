//! The first bytes of a connection: a four-letter word, the connect request, or another protocol.

use super::foreign::Foreign;
use super::phase::Phase;
use super::{ClientCommand, Connection, Need, OpenSession, ReopenSession, password, reply};
use crate::model::SessionId;
use crate::model::sync::Ordering;
use jute::{Decode, Reader};

/// With more connections than this no connect request is held.
const HELD_MAX: usize = 10_000;

impl Connection {
    /// Reads a four-letter word or the connect request (P-02, P-13).
    pub(super) fn first(&mut self, bytes: &[u8], now_us: u64) -> Result<usize, Need> {
        if let Some(word) = bytes.first_chunk::<4>()
            && self.shared.limits.words.contains(word)
        {
            return Err(Need::Word(*word));
        }
        let frame = self.frame(bytes).map_err(|need| self.recognise(bytes, need))?;
        self.is_held = self.waits_for_a_leader(now_us);
        if self.is_held {
            return Err(Need::Answer);
        }
        self.counts.received(frame.len());
        self.connect(frame, now_us)?;
        Ok(4 + frame.len())
    }

    /// Whether a connect request is held because an election has just begun: a client that is refused sleeps for up to a
    /// second before it tries another server.
    fn waits_for_a_leader(&self, now_us: u64) -> bool {
        let now_ms = self.shared.ms_at(now_us);
        self.shared.at_rest.load(Ordering::Relaxed)
            && now_ms < self.shared.connects_held_until_ms.load(Ordering::Relaxed)
            && self.shared.conns.count() <= HELD_MAX
    }

    /// Whether a held connect request is to be processed again.
    pub(super) fn is_released(&self) -> bool {
        let holds = self.shared.connects_held_until_ms.load(Ordering::Relaxed) != 0;
        self.is_held && !(holds && self.shared.at_rest.load(Ordering::Relaxed))
    }

    /// Answers a client of another protocol in that protocol, unless the bytes may still become a frame.
    fn recognise(&mut self, bytes: &[u8], need: Need) -> Need {
        let head = bytes.first_chunk::<4>().filter(|_| matches!(need, Need::Close(_)));
        let Some(foreign) = head.and_then(|head| Foreign::recognise(*head)) else { return need };
        self.unsent.bytes.extend_from_slice(foreign.answer());
        Need::Close(foreign.reason().to_owned())
    }

    fn connect(&mut self, frame: &[u8], now_us: u64) -> Result<(), Need> {
        let mut from = Reader::new(frame);
        let fail =
            |error| Need::Close(format!("undecodable connect request: {error}; check that client"));
        let _protocol_version = i32::decode(&mut from).map_err(fail)?;
        let last_zxid = i64::decode(&mut from).map_err(fail)?;
        let timeout_ms = i32::decode(&mut from).map_err(fail)?;
        let session = SessionId(i64::decode(&mut from).map_err(fail)?);
        let secret = <Option<&[u8]>>::decode(&mut from).map_err(fail)?;
        // Very old clients leave the byte out, and then must not get one back (G-10).
        self.conn.set_wants_read_only(!from.rest().is_empty());
        let is_too_little =
            self.shared.is_read_only.load(Ordering::Relaxed) && from.rest().first() != Some(&1);
        if is_too_little || self.shared.at_rest.load(Ordering::Relaxed) {
            // Not a warning: clients try every server again and again until there is a leader.
            tracing::debug!(peer = %self.conn.peer, "client connection closed: no leader is known");
            return Err(Need::Close(String::new()));
        }
        let now_ms = self.shared.ms_at(now_us);
        if !self.shared.throttle.lets_in(&self.shared.limits, session.0 != 0, now_ms) {
            self.counts.refused += 1;
            return Err(Need::Close(
                "clients connect too fast; find one in a loop, or raise connection_throttle_tokens"
                    .into(),
            ));
        }
        self.counts.connects += 1;
        self.counts.token_deficit = self.shared.throttle.connects(&self.shared.limits).0;
        let ours = self.shared.state.tree.read().last_zxid();
        let epoch_begin = self.shared.epoch_begin.load(Ordering::Relaxed).cast_signed();
        if ours.to_wire().max(epoch_begin) < last_zxid {
            // The client has seen a transaction that this server has not applied: another server can serve it. A transaction
            // of an earlier epoch that the client has seen, and that is not applied here, was never committed: a read-only
            // server showed it.
            return Err(Need::Close(format!(
                "client has seen zxid {last_zxid:#x}, ours is {ours}; restart the client if this server was restored"
            )));
        }
        let limits = &self.shared.limits;
        let timeout_ms =
            timeout_ms.max(limits.min_session_timeout_ms).min(limits.max_session_timeout_ms);
        self.timeout_ms = timeout_ms;
        let _open = self.conn.heard(now_ms);
        self.conn.stats.set_timeout_ms(timeout_ms);
        let conn = self.conn.clone();
        self.phase = Phase::Connecting { resumes: session.0 != 0 };
        self.counts.revalidations += u64::from(session.0 != 0);
        if session.0 == 0 {
            let open = OpenSession { conn, timeout_ms, received_us: now_us };
            self.commands.push(ClientCommand::Open(open));
        } else if secret == Some(&password(session)) {
            let reopen = ReopenSession { conn, session, timeout_ms };
            self.commands.push(ClientCommand::Reopen(reopen));
        } else {
            // Checked before anything happens to the connection that owns the session now (P-18).
            let flag = self.conn.wants_read_only();
            reply::welcome(&mut self.unsent, SessionId(0), 0, flag, false);
            return Err(Need::Close(format!(
                "wrong password for session {session}; restart that client"
            )));
        }
        Ok(())
    }
}
