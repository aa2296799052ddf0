//! Writes of this server's own clients, where they are processed: on a standalone server and on a leader.

use super::containers::ContainerSweep;
use super::core::{Core, OutOfZxids};
use super::inflight::Inflight;
use super::local_sessions::Upgrade;
use crate::model::{Code, Epoch, SessionId, Zxid, op};
use crate::request::prep::{Asker, Prep, Prepared};
use crate::request::{Batch, BatchedWrite, Ensemble, Owner, Sessions};
use crate::tree::{AHEAD_MAX, Tree};
use crate::zab;
use bytes::Bytes;
use std::ops::Range;

/// What a standalone server and a leader have in common. It is built when the role begins and dropped when it ends.
pub struct RequestProcessor {
    pub prep: Prep,
    /// All global sessions.
    pub sessions: Sessions,
    pub sweep: ContainerSweep,
    /// Whether it is a leader's. A standalone server has no ensemble to reconfigure.
    is_leader: bool,
}

/// The transactions of one batch, one after the other.
pub struct Drafts {
    entries: Vec<u8>,
    proposals: Vec<(Zxid, Range<usize>)>,
}

/// The rights of the client that has sent a batch.
struct Rights {
    owner: Owner,
    /// Whether the session is valid and the asker owns it.
    acts: Result<(), Code>,
    /// Whether it may own ephemeral znodes.
    may_own: Result<(), Code>,
}

impl RequestProcessor {
    pub fn standalone(core: &mut Core) -> Self {
        let prep =
            Prep::new(&core.shared.state.tree.read(), core.settings.seed, core.settings.rules);
        Self::new(core, prep, false)
    }

    pub fn leading(core: &mut Core, epoch: Epoch) -> Self {
        let prep = Prep::leading(
            &core.shared.state.tree.read(),
            epoch,
            core.settings.counter_max,
            core.settings.seed,
            core.settings.rules,
        );
        Self::new(core, prep, true)
    }

    fn new(core: &mut Core, mut prep: Prep, is_leader: bool) -> Self {
        *prep.quota_refusals() = std::mem::take(&mut core.past.quota_refusals);
        let mut sessions = Sessions::new(core.settings.tick_time_ms);
        // Every session of the tree gets its whole timeout from here.
        for (&id, &timeout_ms) in core.shared.state.tree.read().sessions() {
            sessions.track(SessionId(id), timeout_ms, Owner::Nobody, core.heard_at_ms());
        }
        Self { prep, sessions, sweep: ContainerSweep::new(core.past.containers), is_leader }
    }

    /// The role ends.
    pub fn leave(mut self, core: &mut Core) {
        core.past.changes += self.prep.changes().noted;
        core.past.quota_refusals = std::mem::take(self.prep.quota_refusals());
        core.past.containers = self.sweep.times();
    }

    /// Writes and syncs of a client of this server.
    pub fn on_writes(&mut self, core: &mut Core, batch: &Batch) -> Result<(), OutOfZxids> {
        let owner = Owner::Client(batch.conn.clone());
        let (acts, may_own) = self.check_session(core, batch.session, &owner);
        let mut by = Rights { owner, acts, may_own };
        core.figures.stats.stale_requests += stale_requests(batch);
        let mut drafts = Drafts {
            entries: Vec::with_capacity(batch.bytes.len() + batch.requests.len() * 160),
            proposals: Vec::with_capacity(batch.requests.len()),
        };
        let first = core.inflight.len();
        {
            let shared = core.shared.clone();
            let tree = shared.state.tree.read();
            for (at, write) in batch.writes().enumerate() {
                if at.is_multiple_of(AHEAD_MAX) {
                    batch.look_ahead(&tree, at);
                }
                if self.process(core, write, &mut by, &tree, &mut drafts).is_err() {
                    break;
                }
            }
        }
        propose(core, first, drafts);
        if self.prep.is_used_up() { Err(OutOfZxids) } else { Ok(()) }
    }

    /// # Errors
    /// There are no zxids left. The request is not answered: the role ends, and the connection with it.
    fn process(
        &mut self,
        core: &mut Core,
        write: BatchedWrite<'_>,
        by: &mut Rights,
        tree: &Tree,
        drafts: &mut Drafts,
    ) -> Result<(), OutOfZxids> {
        let BatchedWrite { batch, request: asked, body } = write;
        if by.acts.is_ok() && core.refuses_early(write, tree, || false) {
            return Ok(());
        }
        let mut inflight = Inflight::asked(batch, asked);
        if asked.op == op::CLOSE_SESSION && core.locals.contains(batch.session) {
            // No other server knows it.
            core.locals.set_closing(batch.session);
            inflight.code = by.acts.err().unwrap_or(Code::OK);
        } else if asked.op == op::SYNC {
            // A sync takes no transaction: it is answered once all requests before it are, with its own path.
            if let Err(error) = self.draft_confirmation(core, drafts) {
                core.inflight.push_back(inflight.unanswered());
                return Err(error);
            }
            inflight.code = by.acts.err().unwrap_or(Code::OK);
            inflight.entry = Bytes::copy_from_slice(body);
        } else {
            match self.draft_write(core, write, by, tree, drafts) {
                Ok(Prepared::Proposal(zxid)) => {
                    inflight.zxid = Some(zxid);
                    inflight.audited = core.audited(write);
                }
                Ok(Prepared::Refused(code)) => inflight.code = code,
                Err(error) => {
                    core.inflight.push_back(inflight.unanswered());
                    return Err(error);
                }
            }
        }
        core.inflight.push_back(inflight);
        Ok(())
    }

    fn draft_write(
        &mut self,
        core: &mut Core,
        write: BatchedWrite<'_>,
        by: &mut Rights,
        tree: &Tree,
        drafts: &mut Drafts,
    ) -> Result<Prepared, OutOfZxids> {
        let BatchedWrite { batch, request: asked, body } = write;
        let shared = core.shared.clone();
        let upgrade = core.upgrade_for(batch.session, asked.op, body);
        if let Upgrade::Needed { timeout_ms } = upgrade {
            by.may_own = Ok(());
            core.locals.remove(batch.session);
            self.sessions.track(batch.session, timeout_ms, by.owner.clone(), core.heard_at_ms());
            let asker = Asker::of_server(batch.session, core.wall_ms, &shared.limits.schemes);
            self.draft_session(core, &asker, timeout_ms, tree, drafts)?;
        }
        let asker = Asker {
            session: batch.session,
            xid: asked.xid,
            identities: &batch.identities,
            standing: by.acts,
            may_own: by.may_own,
            wall_ms: core.wall_ms,
            skip_acl: shared.limits.skip_acl,
            schemes: &shared.limits.schemes,
            ensemble: self.ensemble(core, asked.op),
        };
        let from = drafts.entries.len();
        let prepared = self
            .prep
            .prepare(tree, &asker, asked.op, body, &mut drafts.entries)
            .ok_or(OutOfZxids)?;
        if let Prepared::Proposal(zxid) = prepared {
            drafts.proposals.push((zxid, from..drafts.entries.len()));
        }
        if asked.op == op::CLOSE_SESSION {
            self.sessions.set_closing(batch.session);
        }
        Ok(prepared)
    }

    /// Drafts a transaction before a sync that changes nothing, so that the answer shows that this server still leads.
    /// Without it a leader that was cut off answers from its own tree, as Java's does.
    fn draft_confirmation(
        &mut self,
        core: &mut Core,
        drafts: &mut Drafts,
    ) -> Result<(), OutOfZxids> {
        if !core.settings.quorum_sync {
            return Ok(());
        }
        let from = drafts.entries.len();
        let zxid = self.prep.nothing(core.wall_ms, &mut drafts.entries).ok_or(OutOfZxids)?;
        drafts.proposals.push((zxid, from..drafts.entries.len()));
        core.inflight.push_back(Inflight { zxid: Some(zxid), ..Inflight::of_others() });
        Ok(())
    }

    /// Proposes the same transaction for a sync that a learner forwards.
    pub fn confirm(&mut self, core: &mut Core) -> Result<(), OutOfZxids> {
        let mut drafts = Drafts { entries: Vec::new(), proposals: Vec::new() };
        let first = core.inflight.len();
        self.draft_confirmation(core, &mut drafts)?;
        propose(core, first, drafts);
        Ok(())
    }

    /// Drafts the createSession transaction that makes a local session global.
    fn draft_session(
        &mut self,
        core: &mut Core,
        asker: &Asker<'_>,
        timeout_ms: i32,
        tree: &Tree,
        drafts: &mut Drafts,
    ) -> Result<(), OutOfZxids> {
        let (from, body) = (drafts.entries.len(), timeout_ms.to_be_bytes());
        let prepared = self
            .prep
            .prepare(tree, asker, op::CREATE_SESSION, &body, &mut drafts.entries)
            .ok_or(OutOfZxids)?;
        if let Prepared::Proposal(zxid) = prepared {
            drafts.proposals.push((zxid, from..drafts.entries.len()));
            let inflight = Inflight::of_server(asker.session, op::CREATE_SESSION);
            core.inflight.push_back(Inflight { zxid: Some(zxid), ..inflight });
        }
        Ok(())
    }

    /// Proposes a request of the server itself, or of a connection before it has a session.
    ///
    /// * `inflight`: what will be answered.
    pub fn propose_own(
        &mut self,
        core: &mut Core,
        inflight: Inflight,
        body: &[u8],
    ) -> Result<(), OutOfZxids> {
        let mut entry = Vec::new();
        let shared = core.shared.clone();
        let asker = Asker::of_server(inflight.session, core.wall_ms, &shared.limits.schemes);
        let tree = shared.state.tree.read();
        let prepared = self.prep.prepare(&tree, &asker, inflight.op, body, &mut entry);
        drop(tree);
        let Some(Prepared::Proposal(zxid)) = prepared else { return Err(OutOfZxids) };
        let entry = Bytes::from(entry);
        core.inflight.push_back(Inflight { zxid: Some(zxid), entry: entry.clone(), ..inflight });
        core.propose(zxid, entry);
        Ok(())
    }

    /// The members by which a leader processes a reconfiguration; `None` for other requests and on a standalone server.
    pub fn ensemble(&self, core: &Core, asked: i32) -> Option<Ensemble> {
        let zab::Role::Leading(leader) = core.zab.role() else { return None };
        let zab = &core.zab.core;
        (asked == op::RECONFIG && self.is_leader).then(|| Ensemble {
            view: zab.view.clone(),
            is_changing: zab.next.is_some(),
            synced: leader.synced(zab),
        })
    }

    /// Whether the asker may act for a session, and whether it may own ephemeral znodes.
    ///
    /// * `owner`: the asker.
    pub fn check_session(
        &mut self,
        core: &mut Core,
        session: SessionId,
        owner: &Owner,
    ) -> (Result<(), Code>, Result<(), Code>) {
        if core.locals.contains(session) {
            return (core.locals.check(session, owner), Err(Code::EPHEMERAL_ON_LOCAL_SESSION));
        }
        let acts = self.sessions.check(session, owner);
        // A local session of another server: the first byte of a session id names its server.
        let is_others = session.0 >> 56 != core.zab.core.me.0;
        let is_known = self.sessions.contains(session) || core.ended.contains(session);
        if core.settings.local_sessions && is_others && !is_known {
            return (Ok(()), Err(Code::SESSION_EXPIRED));
        }
        (acts, Ok(()))
    }
}

/// Proposes the drafts of a batch, and hands each entry to the request that waits for it.
///
/// * `first`: the first request of the batch in `inflight`.
fn propose(core: &mut Core, first: usize, drafts: Drafts) {
    let entries = Bytes::from(drafts.entries);
    let mut proposed = core.inflight.range_mut(first..).filter(|inflight| inflight.zxid.is_some());
    for (zxid, range) in drafts.proposals {
        let entry = entries.slice(range);
        if let Some(inflight) = proposed.next() {
            inflight.entry = entry.clone();
        }
        let input = zab::Input::Propose { zxid, payload: entry };
        core.zab.step(input, &mut core.zab_out);
    }
}

/// Requests whose connection is gone. Source: `Request.isStale`.
fn stale_requests(batch: &Batch) -> u64 {
    if !batch.conn.stats.is_gone() {
        return 0;
    }
    batch.requests.iter().filter(|asked| asked.op != op::CLOSE_SESSION).count() as u64
}
