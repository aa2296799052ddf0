//! Bringing one learner up to date: DIFF, TRUNC or SNAP, the transactions after it, and NEWLEADER.
//!
//! Source: `LearnerHandler.syncFollower` and `startForwarding`, ZooKeeper 3.9.5.

use super::history::Logged;
use super::lag::Lag;
use super::learner_handler::{LearnerHandler, Stage, put_committed};
use super::learner_handlers::LearnerHandlers;
use super::packet::Packet;
use super::sync::{self, LogRead, Plan};
use super::{Action, Core, LearnerConnectionId, Note, Sync, SyncType};
use crate::model::Zxid;

/// Limit on trees sent at a time to servers in no configuration. Such a server may hold a tree's memory for as long as it likes.
const STRANGERS_TREES_MAX: usize = 2;

/// Limit on ends of the log read and sent at a time to servers in no configuration; above it they get the tree. Each may take as
/// much memory as `snapshotSizeFactor` allows, until such a server acknowledges it.
const STRANGERS_READ_MAX: usize = 2;

impl LearnerHandlers {
    /// Chooses DIFF, TRUNC or SNAP for a learner, and begins to send the history.
    ///
    /// * `new_leader`: the NEWLEADER packet after the history.
    pub fn synchronise(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        new_leader: &Packet,
        out: &mut Vec<Action>,
    ) {
        let strangers_read = self.strangers_read(core);
        let Some(handler) = self.get_mut(id) else { return };
        handler.lag = Lag::from(core.history.committed());
        let mut plan = match handler.last {
            _ if core.settings.always_sends_tree => Plan::Snap,
            last => sync::plan(&core.history, last),
        };
        if plan == Plan::ReadLog
            && STRANGERS_READ_MAX <= strangers_read
            && !core.is_member(handler.id)
        {
            plan = Plan::Snap;
        }
        if plan == Plan::ReadLog {
            (handler.stage, handler.was_read_for) = (Stage::Reading, true);
            handler.start = core.history.committed();
            let from = handler.last.unwrap_or(Zxid::ZERO);
            self.forward_tail(core, id, out);
            return out.push(Action::ReadLog {
                connection: id,
                from,
                through: core.history.committed(),
            });
        }
        self.carry_out(core, id, &plan, None, new_leader, out);
    }

    /// The log on disk was read for a learner whose log ends before the window.
    pub fn on_log_read(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        read: LogRead,
        new_leader: &Packet,
        out: &mut Vec<Action>,
    ) {
        let Some(handler) = self.get_mut(id) else { return };
        if handler.stage != Stage::Reading {
            return;
        }
        let through = handler.start;
        let last = handler.last.unwrap_or(Zxid::ZERO);
        let is_whole = read.entries.last().is_some_and(|(zxid, _)| *zxid == through);
        let plan = sync::around(read.before.filter(|_| is_whole), last);
        self.carry_out(core, id, &plan, Some(read), new_leader, out);
    }

    /// Sends DIFF, TRUNC or SNAP, the transactions after it, and NEWLEADER.
    ///
    /// * `read`: these transactions; `None`: those of the window.
    fn carry_out(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        plan: &Plan,
        read: Option<LogRead>,
        new_leader: &Packet,
        out: &mut Vec<Action>,
    ) {
        let is_tree = matches!(plan, Plan::Snap | Plan::ReadLog);
        let is_member = self.get(id).is_some_and(|handler| core.is_member(handler.id));
        let under_way = self.syncs_waited_for(core, id, is_tree, is_member);
        let max = if is_tree { core.settings.trees_max } else { core.settings.differences_max };
        let may_begin = is_member || self.strangers_trees(core) < STRANGERS_TREES_MAX;
        let Some(handler) = self.get_mut(id) else { return };
        if handler.is_observer && u64::from(max) <= under_way {
            let why =
                format!("{under_way} others are being synchronised already, the limit is {max}");
            return self.close(id, why, out);
        }
        let committed = core.history.committed();
        let held = std::mem::take(&mut handler.held);
        let was_read = read.is_some();
        let through = if was_read { handler.start } else { committed };
        let (sync_type, first, after) = match *plan {
            Plan::Nothing => (SyncType::Diff, Packet::Diff { zxid: committed }, committed),
            Plan::Diff { after } => (SyncType::Diff, Packet::Diff { zxid: through }, after),
            Plan::Trunc { to } => (SyncType::Trunc { to }, Packet::Trunc { zxid: to }, to),
            Plan::Snap | Plan::ReadLog => {
                handler.stage = Stage::WantsSnapshot;
                if may_begin {
                    out.push(Action::SendSnapshot { connection: id, is_member });
                }
                return;
            }
        };
        handler.stage = Stage::Synchronising;
        // Transactions through this one are sent before NEWLEADER, and acknowledged with it.
        handler.start = through;
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
        handler.say(id, new_leader, out);
        if was_read {
            // Proposals and commits since the log was read, in order.
            out.extend(held.into_iter().map(|bytes| Action::ToLearner { connection: id, bytes }));
        } else {
            self.forward_tail(core, id, out);
        }
        self.note_sync(core, id, sync_type, txns);
    }

    fn note_sync(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        sync_type: SyncType,
        txns: u64,
    ) {
        let Some(handler) = self.get_mut(id) else { return };
        let sync = Sync { learner: handler.id, is_observer: handler.is_observer, sync_type, txns };
        handler.sync = Some(sync);
        let under_way = self.syncs_under_way(sync_type);
        core.notes.push(Note::SyncBegun { sync, under_way });
    }

    /// Asks for the trees that learners wait for: members first, and few at a time for servers in no configuration.
    pub fn send_waiting_trees(&self, core: &Core, out: &mut Vec<Action>) {
        let waiting = self.connections_at(Stage::WantsSnapshot).into_iter();
        let is_member = |&id: &LearnerConnectionId| {
            self.get(id).is_some_and(|handler| core.is_member(handler.id))
        };
        let (members, strangers): (Vec<_>, Vec<_>) = waiting.partition(is_member);
        let send = |is_member| move |connection| Action::SendSnapshot { connection, is_member };
        let places = STRANGERS_TREES_MAX.saturating_sub(self.strangers_trees(core));
        out.extend(members.into_iter().map(send(true)));
        out.extend(strangers.into_iter().take(places).map(send(false)));
    }

    /// Trees on their way to servers in no configuration.
    fn strangers_trees(&self, core: &Core) -> usize {
        let takes_tree = |handler: &&LearnerHandler| {
            handler.stage == Stage::Synchronising
                && handler.sync.is_some_and(|sync| sync.sync_type.is_tree())
                && !core.is_member(handler.id)
        };
        self.iter().filter(takes_tree).count()
    }

    /// Servers in no configuration for which the log is read, or to which what was read is being sent.
    fn strangers_read(&self, core: &Core) -> usize {
        let is_read_for = |handler: &&LearnerHandler| match handler.stage {
            Stage::Reading => true,
            Stage::Synchronising => {
                handler.was_read_for && handler.sync.is_some_and(|sync| !sync.sync_type.is_tree())
            }
            _ => false,
        };
        self.iter().filter(is_read_for).filter(|handler| !core.is_member(handler.id)).count()
    }

    /// How many learners other than `id` are being synchronised or wait for it: by a tree, or without one.
    ///
    /// * `is_for_member`: servers in no configuration are left out, so that no number of them turns a member away.
    fn syncs_waited_for(
        &self,
        core: &Core,
        id: LearnerConnectionId,
        is_tree: bool,
        is_for_member: bool,
    ) -> u64 {
        let is_alike = |handler: &&LearnerHandler| match handler.stage {
            Stage::WantsSnapshot => is_tree,
            Stage::Reading => !is_tree,
            Stage::Synchronising => {
                handler.sync.is_some_and(|sync| sync.sync_type.is_tree() == is_tree)
            }
            Stage::InfoReceived
            | Stage::LeaderInfoSent
            | Stage::Promised
            | Stage::Synchronised
            | Stage::Active => false,
        };
        let counts = |handler: &&LearnerHandler| !is_for_member || core.is_member(handler.id);
        self.others(id).filter(is_alike).filter(counts).count() as u64
    }

    pub fn syncs_under_way(&self, sync_type: SyncType) -> u64 {
        let is_alike = |handler: &&LearnerHandler| {
            let way = handler.sync.map(|sync| sync.sync_type.is_tree());
            handler.stage == Stage::Synchronising && way == Some(sync_type.is_tree())
        };
        self.iter().filter(is_alike).count() as u64
    }

    /// The tree at `zxid` is on its way to a learner: later transactions and NEWLEADER are sent after it.
    pub fn on_snapshot(
        &mut self,
        core: &mut Core,
        id: LearnerConnectionId,
        zxid: Zxid,
        new_leader: &Packet,
        out: &mut Vec<Action>,
    ) {
        let Some(handler) = self.get_mut(id) else { return };
        if handler.stage != Stage::WantsSnapshot {
            return;
        }
        handler.stage = Stage::Synchronising;
        handler.start = core.history.committed();
        handler.lag = Lag::from(handler.start);
        let mut bytes = Vec::new();
        let missing = core.history.window().iter().filter(|logged| zxid < logged.0);
        let txns = missing.map(|logged| put_committed(logged, &mut bytes)).count() as u64;
        if !bytes.is_empty() {
            out.push(Action::ToLearner { connection: id, bytes: bytes.into() });
        }
        handler.say(id, new_leader, out);
        self.forward_tail(core, id, out);
        self.note_sync(core, id, SyncType::Snap { zxid }, txns);
    }

    /// Sends a follower the proposals that are not committed; an observer gets a transaction when it is committed.
    ///
    /// They are sent after NEWLEADER: Java's learners before 3.9 forget at NEWLEADER what was proposed before it, and fail at
    /// its COMMIT (ZOOKEEPER-4394).
    fn forward_tail(&mut self, core: &Core, id: LearnerConnectionId, out: &mut Vec<Action>) {
        let Some(handler) = self.get_mut(id).filter(|handler| !handler.is_observer) else {
            return;
        };
        for (zxid, entry) in core.history.tail() {
            handler.say(id, &Packet::Proposal { zxid: *zxid, entry: entry.clone() }, out);
        }
    }
}
