//! Writes of this server's own clients, where they are judged.

use super::local::Standing;
use super::{Action, Inflight, Mode, Replica};
use crate::model::sync::Arc;
use crate::model::{Code, SessionId, Zxid, op};
use crate::request::prep::{Asker, Prepared};
use crate::request::{Batch, BatchedRequest, Conn, Done, Owner, Shared};
use crate::tree::{AHEAD_MAX, Tree};
use crate::zab;
use bytes::Bytes;
use std::ops::Range;

/// The transactions of one batch, behind each other.
struct Drafts {
    entries: Vec<u8>,
    proposals: Vec<(Zxid, Range<usize>)>,
}

/// Who asks for a batch, as it stands.
struct Standings {
    owner: Owner,
    /// Whether the session lives and is the asker's.
    acts: Result<(), Code>,
    /// Whether it may own ephemeral znodes.
    may_own: Result<(), Code>,
    wall_ms: i64,
}

impl Replica {
    pub(super) fn on_writes(&mut self, batch: &Batch, wall_ms: i64, out: &mut Vec<Action>) {
        let owner = Owner::Conn(batch.conn.clone());
        let (acts, may_own) = self.check_session(batch.session, &owner);
        let mut by = Standings { owner, acts, may_own, wall_ms };
        self.stats.stale_requests += stale_requests(batch);
        let mut drafts = Drafts {
            entries: Vec::with_capacity(batch.bytes.len() + batch.requests.len() * 160),
            proposals: Vec::with_capacity(batch.requests.len()),
        };
        let first = self.inflight.len();
        {
            let shared = self.shared.clone();
            let tree = shared.state.tree.read();
            let mut start = 0;
            for (at, asked) in batch.requests.iter().enumerate() {
                if at.is_multiple_of(AHEAD_MAX) {
                    batch.look_ahead(&tree, at);
                }
                let body = &batch.bytes[start..asked.end];
                start = asked.end;
                if self
                    .judge_one((batch, asked, body), &mut by, (&shared, &tree), &mut drafts)
                    .is_none()
                {
                    break;
                }
            }
        }
        let entries = Bytes::from(drafts.entries);
        let mut proposed =
            self.inflight.range_mut(first..).filter(|inflight| inflight.zxid.is_some());
        for (zxid, range) in drafts.proposals {
            let entry = entries.slice(range);
            if let Some(inflight) = proposed.next() {
                inflight.entry = entry.clone();
            }
            self.zab.step(zab::Input::Propose { zxid, payload: entry }, &mut self.zab_out);
        }
        self.on_zab(batch.received_us, out);
        if self.prep.is_used_up() {
            self.out_of_zxids(out);
        }
    }

    /// `None`: there are no zxids left. What was asked is not answered: the role ends, and the connection with it.
    fn judge_one(
        &mut self,
        (batch, asked, body): (&Batch, &BatchedRequest, &[u8]),
        by: &mut Standings,
        (shared, tree): (&Shared, &Tree),
        drafts: &mut Drafts,
    ) -> Option<()> {
        if by.acts.is_ok() && self.refuses_early((batch, asked, body), tree) {
            return Some(());
        }
        let mut inflight = Inflight::asked(batch, asked);
        if asked.op == op::CLOSE_SESSION && self.locals.contains(batch.session) {
            // Nobody else knows it.
            self.locals.set_closing(batch.session);
            inflight.code = by.acts.err().unwrap_or(Code::OK);
        } else if asked.op == op::SYNC {
            // No transaction: answered once all before it is, with the path it came with.
            if !self.confirm(drafts, by.wall_ms) {
                self.inflight.push_back(inflight.unanswered());
                return None;
            }
            inflight.code = by.acts.err().unwrap_or(Code::OK);
            inflight.entry = Bytes::copy_from_slice(body);
        } else {
            let judged = self.judge_write((batch, asked, body), by, (shared, tree), drafts);
            match judged {
                Some(Prepared::Proposal(zxid)) => inflight.zxid = Some(zxid),
                Some(Prepared::Refused(code)) => inflight.code = code,
                None => {
                    self.inflight.push_back(inflight.unanswered());
                    return None;
                }
            }
        }
        self.inflight.push_back(inflight);
        Some(())
    }

    fn judge_write(
        &mut self,
        (batch, asked, body): (&Batch, &BatchedRequest, &[u8]),
        by: &mut Standings,
        (shared, tree): (&Shared, &Tree),
        drafts: &mut Drafts,
    ) -> Option<Prepared> {
        let standing = self.standing_for(batch.session, asked.op, body);
        if let Standing::Upgrade { timeout_ms } = standing {
            by.may_own = Ok(());
            self.give_up_local(batch.session, timeout_ms, by.owner.clone());
            let asker = Asker::of_server(batch.session, by.wall_ms, &shared.limits.schemes);
            self.draft_session(&asker, timeout_ms, tree, drafts)?;
        }
        let asker = Asker {
            session: batch.session,
            xid: asked.xid,
            who: &batch.who,
            standing: by.acts,
            may_own: by.may_own,
            wall_ms: by.wall_ms,
            skip_acl: shared.limits.skip_acl,
            schemes: &shared.limits.schemes,
            ensemble: self.ensemble(asked.op),
        };
        let from = drafts.entries.len();
        let prepared = self.prep.prepare(tree, &asker, asked.op, body, &mut drafts.entries)?;
        if let Prepared::Proposal(zxid) = prepared {
            drafts.proposals.push((zxid, from..drafts.entries.len()));
        }
        if asked.op == op::CLOSE_SESSION {
            self.sessions.set_closing(batch.session);
        }
        Some(prepared)
    }

    /// In front of a sync: a transaction that changes nothing, so that the answer tells that this server still leads. A
    /// leader that was cut off answers what it knows otherwise, as Java's does. `false`: there are no zxids left.
    fn confirm(&mut self, drafts: &mut Drafts, wall_ms: i64) -> bool {
        if !self.settings.quorum_sync || self.mode != Mode::Leading {
            return true;
        }
        let from = drafts.entries.len();
        let Some(zxid) = self.prep.nothing(wall_ms, &mut drafts.entries) else { return false };
        drafts.proposals.push((zxid, from..drafts.entries.len()));
        self.inflight.push_back(Inflight { zxid: Some(zxid), ..Inflight::of_others() });
        true
    }

    /// Likewise for a sync that a learner passes on.
    pub(super) fn confirm_for_learner(&mut self) -> bool {
        let mut drafts = Drafts { entries: Vec::new(), proposals: Vec::new() };
        let wall_ms = self.wall_ms;
        if !self.confirm(&mut drafts, wall_ms) {
            return false;
        }
        if let Some((zxid, _)) = drafts.proposals.pop() {
            let entry = Bytes::from(drafts.entries);
            if let Some(inflight) = self.inflight.back_mut() {
                inflight.entry = entry.clone();
            }
            self.zab.step(zab::Input::Propose { zxid, payload: entry }, &mut self.zab_out);
        }
        true
    }

    /// The transaction that lets all servers know of a session; `None` when there are no zxids left.
    fn draft_session(
        &mut self,
        asker: &Asker<'_>,
        timeout_ms: i32,
        tree: &Tree,
        drafts: &mut Drafts,
    ) -> Option<()> {
        let (from, body) = (drafts.entries.len(), timeout_ms.to_be_bytes());
        let prepared =
            self.prep.prepare(tree, asker, op::CREATE_SESSION, &body, &mut drafts.entries)?;
        if let Prepared::Proposal(zxid) = prepared {
            drafts.proposals.push((zxid, from..drafts.entries.len()));
            let mut inflight = Inflight::of_others();
            (inflight.zxid, inflight.session) = (Some(zxid), asker.session);
            inflight.op = op::CREATE_SESSION;
            self.inflight.push_back(inflight);
        }
        Some(())
    }

    /// Proposes what the server itself wants, or a connection wants before it has a session.
    ///
    /// * `asked`: the connection that wants it, and the monotonic microseconds at which its frame was read.
    pub(super) fn propose(
        &mut self,
        session: SessionId,
        kind: i32,
        body: &[u8],
        asked: Option<(Arc<Conn>, u64)>,
        wall_ms: i64,
    ) -> bool {
        let (conn, received_us) = asked.map_or((None, 0), |(conn, us)| (Some(conn), us));
        let mut entry = Vec::new();
        let shared = self.shared.clone();
        let asker = Asker::of_server(session, wall_ms, &shared.limits.schemes);
        let prepared = {
            let tree = self.shared.state.tree.read();
            self.prep.prepare(&tree, &asker, kind, body, &mut entry)
        };
        let Some(Prepared::Proposal(zxid)) = prepared else { return false };
        let entry = Bytes::from(entry);
        self.inflight.push_back(Inflight {
            zxid: Some(zxid),
            entry: entry.clone(),
            code: Code::OK,
            conn,
            session,
            xid: 0,
            op: kind,
            received_us,
            is_silent: false,
            weight: Done::default(),
        });
        self.zab.step(zab::Input::Propose { zxid, payload: entry }, &mut self.zab_out);
        true
    }
}

/// Requests whose connection is gone. Source: `Request.isStale`.
fn stale_requests(batch: &Batch) -> u64 {
    if !batch.conn.stats.is_gone() {
        return 0;
    }
    batch.requests.iter().filter(|asked| asked.op != op::CLOSE_SESSION).count() as u64
}
