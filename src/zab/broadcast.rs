//! What a leader does once its epoch is open: propose, count acknowledgements, commit in order.
//!
//! Source: `Leader.propose`, `Leader.processAck`, `Leader.tryToCommit`, ZooKeeper 3.9.5.

use super::leader::Phase;
use super::learner_handlers::Activation;
use super::waiting_syncs::WAITING_SYNCS_MAX;
use super::{Action, Core, Leader, LearnerConnectionId, Packet};
use crate::model::{Epoch, ServerId, Zxid};
use bytes::Bytes;

impl Leader {
    pub(super) fn propose(
        &mut self,
        core: &mut Core,
        zxid: Zxid,
        payload: Bytes,
        out: &mut Vec<Action>,
    ) {
        assert!(self.proposed < zxid, "propose {zxid} after {}", self.proposed);
        assert!(self.is_broadcasting(), "propose {zxid} while {:?}", self.phase);
        let (epoch, is_alone) = (self.epoch, self.epoch == Epoch(0));
        assert!(is_alone || zxid.epoch() == epoch, "propose {zxid} as leader of epoch {}", epoch.0);
        self.proposed = zxid;
        core.stats.proposals += 1;
        core.history.append(zxid, payload.clone());
        if core.see_payload(&payload, true) {
            self.reconfig = Some(zxid);
        }
        self.handlers.propose(zxid, &payload, out);
        out.push(Action::Append { zxid, payload });
    }

    /// Counts an ACK of a learner, or the leader's own flush: that server's log is durable through
    /// `zxid`. An ACK of a zxid that was never proposed does not get here: its learner was
    /// disconnected.
    pub(super) fn on_ack(
        &mut self,
        core: &mut Core,
        from: ServerId,
        zxid: Zxid,
        out: &mut Vec<Action>,
    ) {
        let last = core.history.last();
        assert!(zxid <= last, "server {} flushed {zxid}, and the last is {last}", from.0);
        // ACKs before that of NEWLEADER do not count.
        let Some(acked) = self.acked.get_mut(&from) else { return };
        *acked = zxid.max(*acked);
        self.try_commit(core, out);
    }

    /// Commits the proposals that have a quorum. Proposals after a reconfiguration need a quorum of the new
    /// configuration only.
    pub(super) fn try_commit(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        while self.is_broadcasting()
            && !self.waits_for_lagging(core)
            && let Some(agreed) = core.highest_agreed(&self.acked, self.without_other(core))
            && core.history.committed() < agreed
        {
            match self.reconfig.filter(|at| *at <= agreed) {
                Some(at) => self.commit_reconfig(core, at, out),
                None => self.commit(core, agreed, None, out),
            }
        }
    }

    fn commit_reconfig(&mut self, core: &mut Core, at: Zxid, out: &mut Vec<Action>) {
        self.reconfig = None;
        let found = core.history.tail().iter().find(|(zxid, _)| *zxid == at);
        let view = found.and_then(|(_, entry)| (core.finds_view)(entry));
        let view = view.expect("a reconfiguration is what it was when it was proposed");
        let before =
            core.history.tail().iter().map(|(zxid, _)| *zxid).take_while(|zxid| *zxid < at);
        if let Some(before) = before.last() {
            self.commit(core, before, None, out);
        }
        let leader = self.named(core, &view);
        // The configuration is kept for the next start before a COMMITANDACTIVATE is sent.
        core.activate(view, out);
        self.commit(core, at, Some(Activation { zxid: at, leader }), out);
        // Learners that were left behind would get neither the configuration nor the leader that it names.
        self.handlers.close_all_left_behind(out);
        if leader != core.me {
            self.phase = Phase::Leaving { to: leader };
            self.ticks = 0;
            out.push(Action::StopServing);
        }
    }

    /// Answers a sync between the commits that it came between: Java's learners answer their clients in the order of the requests,
    /// and a learner that gets a later COMMIT before the SYNC never answers any client again.
    pub(super) fn on_sync(
        &mut self,
        core: &Core,
        connection: LearnerConnectionId,
        out: &mut Vec<Action>,
    ) {
        if !self.is_broadcasting() {
            return; // The learner is about to look for a leader, and asks again.
        }
        if self.handlers.is_behind(connection) {
            return; // The learner lacks commits before the answer. Its clients ask again once it has synchronised.
        }
        if core.history.committed() < core.history.last() {
            let is_connected = |id| self.handlers.get(id).is_some();
            if !self.syncs.push(core.history.last(), connection, is_connected) {
                let why = format!("{WAITING_SYNCS_MAX} of its syncs wait for a commit");
                self.handlers.close(connection, why, out);
            }
        } else if let Some(to) = self.handlers.get_mut(connection) {
            to.say(connection, &Packet::Sync, out);
        }
    }

    /// * `activation`: see [`LearnerHandlers::commit`](super::learner_handlers::LearnerHandlers::commit).
    fn commit(
        &mut self,
        core: &mut Core,
        agreed: Zxid,
        activation: Option<Activation>,
        out: &mut Vec<Action>,
    ) {
        while let Some((zxid, id)) = self.syncs.pop_through(agreed) {
            if core.history.committed() < zxid {
                core.stats.commits += self.handlers.commit(core, zxid, activation, out);
            }
            let handler = self.handlers.get_mut(id);
            if let Some(handler) = handler.filter(|handler| handler.lag.left_at.is_none()) {
                handler.say(id, &Packet::Sync, out);
            }
        }
        if core.history.committed() < agreed {
            core.stats.commits += self.handlers.commit(core, agreed, activation, out);
        }
    }
}
