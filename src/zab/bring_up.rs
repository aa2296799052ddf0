//! What a leader does to bring one learner up to date: DIFF, TRUNC or SNAP, what follows it, and NEWLEADER.
//!
//! Source: `LearnerHandler.syncFollower` and `startForwarding`, ZooKeeper 3.9.5.

use super::history::Logged;
use super::learner_handler::{LearnerHandler, Stage, put_committed};
use super::packet::Packet;
use super::sync::{self, LogRead, Plan};
use super::{Action, Core, How, Leader, LearnerConnectionId, Note, Sync};
use crate::model::Zxid;
use bytes::Bytes;

impl Leader {
    pub(super) fn synchronise(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        out: &mut Vec<Action>,
    ) {
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        // It may have to give up what it had acknowledged.
        self.acked.remove(&connection.id);
        let plan = match connection.last {
            _ if core.settings.always_sends_tree => Plan::Snap,
            last => sync::plan(&core.history, last),
        };
        if plan == Plan::ReadLog {
            connection.stage = Stage::Reading;
            connection.start = core.history.committed();
            let from = connection.last.unwrap_or(Zxid::ZERO);
            self.forward_tail(core, id, out);
            return out.push(Action::ReadLog {
                connection: id,
                from,
                through: core.history.committed(),
            });
        }
        self.carry_out(core, id, &plan, None, out);
    }

    pub(super) fn on_log_read(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        read: LogRead,
        out: &mut Vec<Action>,
    ) {
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        if connection.stage != Stage::Reading {
            return;
        }
        let through = connection.start;
        let last = connection.last.unwrap_or(Zxid::ZERO);
        let is_whole = read.entries.last().is_some_and(|(zxid, _)| *zxid == through);
        let plan = sync::around(read.before.filter(|_| is_whole), last);
        self.carry_out(core, id, &plan, Some(read), out);
    }

    /// Sends what a learner gets first, what follows, and NEWLEADER.
    ///
    /// * `read`: the transactions that follow; `None`: those of the window.
    pub(super) fn carry_out(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        plan: &Plan,
        read: Option<LogRead>,
        out: &mut Vec<Action>,
    ) {
        let is_tree = matches!(plan, Plan::Snap | Plan::ReadLog);
        let under_way = self.syncs_waited_for(is_tree);
        let max = if is_tree { core.settings.trees_max } else { core.settings.differences_max };
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        if connection.is_observer && u64::from(max) <= under_way {
            let why =
                format!("{under_way} others are being synchronised, and {max} at a time may be");
            return self.close(id, why, out);
        }
        let committed = core.history.committed();
        let held = std::mem::take(&mut connection.held);
        let was_read = read.is_some();
        let through = if was_read { connection.start } else { committed };
        let (how, first, after) = match *plan {
            Plan::Nothing => (How::Diff, Packet::Diff { zxid: committed }, committed),
            Plan::Diff { after } => (How::Diff, Packet::Diff { zxid: through }, after),
            Plan::Trunc { to } => (How::Trunc { to }, Packet::Trunc { zxid: to }, to),
            Plan::Snap | Plan::ReadLog => {
                connection.stage = Stage::WantsSnapshot;
                return out.push(Action::SendSnapshot { connection: id });
            }
        };
        connection.stage = Stage::Synchronising;
        // So much of it stands before NEWLEADER, and is acknowledged with it.
        connection.start = through;
        let mut bytes = Vec::new();
        first.encode(&mut bytes);
        let mut txns = 0;
        let mut put = |logged: &Logged| {
            if after < logged.0 {
                put_committed(logged, &mut bytes);
                txns += 1;
            }
        };
        match &read {
            Some(read) => read.entries.iter().for_each(&mut put),
            None => core.history.window().iter().for_each(&mut put),
        }
        out.push(Action::ToLearner { connection: id, bytes: bytes.into() });
        self.say_new_leader(core, id, out);
        if was_read {
            // What was proposed and committed since, in order.
            out.extend(held.into_iter().map(|bytes| Action::ToLearner { connection: id, bytes }));
        } else {
            self.forward_tail(core, id, out);
        }
        self.note_sync(core, id, how, txns);
    }

    pub(super) fn note_sync(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        how: How,
        txns: u64,
    ) {
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        let sync = Sync { learner: connection.id, is_observer: connection.is_observer, how, txns };
        connection.sync = Some(sync);
        let under_way = self.syncs_under_way(how);
        core.notes.push(Note::SyncBegun { sync, under_way });
    }

    /// Followers' and observers', begun or about to.
    fn syncs_waited_for(&self, is_tree: bool) -> u64 {
        let is_alike = |connection: &&LearnerHandler| match connection.stage {
            Stage::WantsSnapshot => is_tree,
            Stage::Synchronising => {
                connection.sync.is_some_and(|sync| sync.how.is_tree() == is_tree)
            }
            _ => false,
        };
        self.handlers.values().filter(is_alike).count() as u64
    }

    pub(super) fn syncs_under_way(&self, how: How) -> u64 {
        let is_alike = |connection: &&LearnerHandler| {
            let way = connection.sync.map(|sync| sync.how.is_tree());
            connection.stage == Stage::Synchronising && way == Some(how.is_tree())
        };
        self.handlers.values().filter(is_alike).count() as u64
    }

    /// The tree at `zxid` is on its way to a learner: what follows it goes behind it.
    pub(super) fn on_snapshot(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        zxid: Zxid,
        out: &mut Vec<Action>,
    ) {
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        if connection.stage != Stage::WantsSnapshot {
            return;
        }
        connection.stage = Stage::Synchronising;
        connection.start = core.history.committed();
        let mut bytes = Vec::new();
        let missing = core.history.window().iter().filter(|logged| zxid < logged.0);
        let txns = missing.map(|logged| put_committed(logged, &mut bytes)).count() as u64;
        if !bytes.is_empty() {
            out.push(Action::ToLearner { connection: id, bytes: bytes.into() });
        }
        self.say_new_leader(core, id, out);
        self.forward_tail(core, id, out);
        self.note_sync(core, id, How::Snap { zxid }, txns);
    }

    /// What is proposed and not committed: observers hear of it once it is.
    pub(super) fn forward_tail(
        &mut self,
        core: &Core,
        id: LearnerConnectionId,
        out: &mut Vec<Action>,
    ) {
        let Some(connection) =
            self.handlers.get_mut(&id).filter(|connection| !connection.is_observer)
        else {
            return;
        };
        for (zxid, entry) in core.history.tail() {
            connection.say(id, &Packet::Proposal { zxid: *zxid, entry: entry.clone() }, out);
        }
    }

    /// Behind it goes what is not committed yet: a learner of Java's before 3.9 forgets what it was proposed before
    /// NEWLEADER, and dies of its COMMIT (ZOOKEEPER-4394).
    pub(super) fn say_new_leader(
        &mut self,
        core: &Core,
        id: LearnerConnectionId,
        out: &mut Vec<Action>,
    ) {
        // One that is proposed and not decided follows as a proposal; Java's leaders tell it as if it were decided.
        let view = match self.is_open() {
            true => core.view.to_string(),
            false => core.next_view(self.epoch).to_string(),
        };
        let Some(connection) = self.handlers.get_mut(&id) else { return };
        let view = Bytes::from(view);
        connection.say(id, &Packet::NewLeader { epoch: self.epoch, view }, out);
    }
}
