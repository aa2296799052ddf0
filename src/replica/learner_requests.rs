//! A leader, and the requests of its learners' clients.

use super::core::{Core, OutOfZxids};
use super::inflight::Inflight;
use super::interface::Action;
use super::learner_packets::{LearnerPacket, revalidated, sessions_in, to_learner};
use super::request_processor::RequestProcessor;
use super::unapplied_requests::UnappliedRequests;
use super::zxid_rollover::QuietMoment;
use crate::model::{SessionId, op};
use crate::request::Owner;
use crate::request::prep::{Asker, Prepared};
use crate::zab::{self, LearnerConnectionId, Request};
use bytes::Bytes;

/// The role of a leader.
pub struct Leading {
    pub processor: RequestProcessor,
    quiet: QuietMoment,
    unapplied: UnappliedRequests,
}

impl Leading {
    pub fn new(processor: RequestProcessor) -> Self {
        Self { processor, quiet: QuietMoment::default(), unapplied: UnappliedRequests::default() }
    }

    /// Whether each tick has to call [`Self::stands_down`].
    pub fn nears_its_end(&self, core: &Core) -> bool {
        let last = self.processor.prep.last();
        QuietMoment::is_late(core.settings.counter_max.saturating_sub(last.counter()))
    }

    /// The reason to stand down now, so that the next epoch begins. Clients have to reconnect, as after every election, so
    /// the leader stands down when no request is unanswered.
    pub fn stands_down(&mut self, core: &Core) -> Option<String> {
        let last = self.processor.prep.last();
        let left = core.settings.counter_max.saturating_sub(last.counter());
        let is_time = self.quiet.is_time(last, left, core.now_ms);
        // An epoch without transactions is not replaced by another one.
        let is_used = 0 < last.counter();
        let stands_down = is_time && is_used && core.inflight.is_empty();
        stands_down.then(|| format!("{left} zxids of this epoch are left, and no client writes"))
    }

    pub fn on_learner(
        &mut self,
        core: &mut Core,
        connection: LearnerConnectionId,
        packet: LearnerPacket,
        out: &mut Vec<Action>,
    ) -> Result<(), OutOfZxids> {
        match packet {
            LearnerPacket::Touched(touched) => {
                for (session, timeout_ms) in sessions_in(touched) {
                    self.processor.sessions.touch(session, timeout_ms, core.heard_at_ms());
                }
                Ok(())
            }
            LearnerPacket::Revalidate { session, timeout_ms } => {
                self.revalidate(core, connection, session, timeout_ms, out);
                Ok(())
            }
            LearnerPacket::Request(request) if request.op == op::SYNC => {
                core.figures.stats.learners_syncs += 1;
                self.processor.confirm(core)?;
                core.zab.step(zab::Input::Sync { connection }, &mut core.zab_out);
                Ok(())
            }
            LearnerPacket::Request(request) => self.on_request(core, connection, &request, out),
        }
    }

    /// A client has reconnected to a learner with its session.
    fn revalidate(
        &mut self,
        core: &mut Core,
        connection: LearnerConnectionId,
        session: SessionId,
        timeout_ms: i32,
        out: &mut Vec<Action>,
    ) {
        core.figures.stats.revalidations += 1;
        let owner = Owner::AtLearner(connection.0);
        // A connection to this server that owned the session stays until it writes or falls silent, as it would at another
        // server (G-23).
        let taken =
            self.processor.sessions.take_over(session, timeout_ms, owner, core.heard_at_ms());
        out.push(to_learner(connection, &revalidated(session, taken.is_ok())));
    }

    fn on_request(
        &mut self,
        core: &mut Core,
        connection: LearnerConnectionId,
        request: &Request,
        out: &mut Vec<Action>,
    ) -> Result<(), OutOfZxids> {
        let zab::Role::Leading(leader) = core.zab.role() else { return Ok(()) };
        let member = leader.member_at(&core.zab.core, connection);
        if let Err(why) = self.unapplied.admit(member, core.zab.core.history.committed()) {
            core.close_learner(connection, why, out);
            return Ok(());
        }
        let processor = &mut self.processor;
        let owner = Owner::AtLearner(connection.0);
        if request.op == op::CREATE_SESSION
            && let Some(timeout_ms) = request.body.first_chunk::<4>()
        {
            let timeout_ms = i32::from_be_bytes(*timeout_ms);
            processor.sessions.track(
                request.session,
                timeout_ms,
                owner.clone(),
                core.heard_at_ms(),
            );
        }
        let (standing, may_own) = processor.check_session(core, request.session, &owner);
        let shared = core.shared.clone();
        let asker = Asker {
            session: request.session,
            xid: request.xid,
            identities: &request.identities,
            standing,
            may_own,
            wall_ms: core.wall_ms,
            skip_acl: shared.limits.skip_acl,
            schemes: &shared.limits.schemes,
            ensemble: processor.ensemble(core, request.op),
        };
        let mut entry = Vec::new();
        let tree = shared.state.tree.read();
        let prepared = processor.prep.prepare(&tree, &asker, request.op, &request.body, &mut entry);
        drop(tree);
        let zxid = match prepared {
            Some(Prepared::Proposal(zxid)) => Some(zxid),
            // The learner waits for a transaction as the answer, and has no other way to get one.
            Some(Prepared::Refused(code)) => processor.prep.refuse(&asker, code, &mut entry),
            None => None,
        };
        let zxid = zxid.ok_or(OutOfZxids)?;
        if request.op == op::CLOSE_SESSION {
            processor.sessions.set_closing(request.session);
        }
        let entry = Bytes::from(entry);
        self.unapplied.note(member, zxid, entry.len());
        core.inflight.push_back(Inflight {
            zxid: Some(zxid),
            entry: entry.clone(),
            xid: request.xid,
            ..Inflight::of_server(request.session, request.op)
        });
        core.propose(zxid, entry);
        Ok(())
    }
}
