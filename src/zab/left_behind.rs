//! Learners that lag: the committed transactions that a learner has not acknowledged are bounded in bytes.
//!
//! A leader commits nothing more while a follower that still acknowledges lacks more than `lag_bytes_max` of what was
//! committed. Clients' outstanding writes are bounded, so their writes go no faster than followers log them. The leader waits
//! like this for syncLimit at most, and for a quarter of it if the follower acknowledges nothing.
//!
//! A learner that lags and is not waited for is *left behind*: it is sent no more proposals and commits, so that what is kept
//! for it stays bounded. Its connection is closed once it has acknowledged all that it was sent; it connects again and is
//! synchronised from the log. Commits never wait for observers, nor for learners that are being synchronised: these may lack four
//! times as much. An observer acknowledges by its answers to PING.
//!
//! A quorum is never left behind: only what a quorum has acknowledged is committed, and lag counts nothing else.

use super::leader::Leader;
use super::learner_handler::{LearnerHandler, Stage};
use super::learner_handlers::LearnerHandlers;
use super::notes::PeerLag;
use super::{Action, Core, LearnerConnectionId, Packet};
use crate::model::{ServerId, Zxid};
use std::collections::BTreeSet;

/// A follower that lags is not waited for after this part of syncLimit without an ACK. A flush of what it lacks may take long: a
/// follower of Java's acknowledges only after all that it has read.
const STALLED_PART: u64 = 4;
/// Learners that are not waited for may lack this many times `lag_bytes_max`.
const UNAWAITED_FACTOR: u64 = 4;

impl LearnerHandler {
    /// Whether commits wait for the learner if it lags.
    fn is_awaited(&self, core: &Core) -> bool {
        Stage::Synchronised <= self.stage && !self.is_observer && core.is_member(self.id)
    }

    fn lag_max(&self, core: &Core) -> u64 {
        let max = core.settings.lag_bytes_max;
        if self.is_awaited(core) { max } else { max.saturating_mul(UNAWAITED_FACTOR) }
    }

    const fn is_behind(&self) -> bool {
        self.lag.left_at.is_some()
    }
}

impl LearnerHandlers {
    /// Whether a learner is sent no more proposals and commits.
    pub fn is_behind(&self, id: LearnerConnectionId) -> bool {
        self.get(id).is_some_and(LearnerHandler::is_behind)
    }

    /// A learner has logged, or an observer has read, everything through `zxid`. Closes its connection if it was left behind and
    /// that was all.
    pub fn acknowledge(&mut self, id: LearnerConnectionId, zxid: Zxid, out: &mut Vec<Action>) {
        let Some(handler) = self.get_mut(id) else { return };
        let lag = &mut handler.lag;
        if lag.acked < zxid {
            (lag.acked, lag.stalled_ticks) = (zxid, 0);
        }
        if lag.left_at.is_some_and(|last| last <= lag.acked) {
            self.close_left_behind(id, out);
        }
    }

    /// A learner's answer to PING has the PING's zxid: the learner has read everything through it.
    ///
    /// An observer sends no other ACK. Nor does a follower for what was committed before it acknowledged NEWLEADER: that was on
    /// its disk then.
    pub fn read_ping(
        &mut self,
        core: &Core,
        id: LearnerConnectionId,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) {
        let (Some(handler), Packet::Ping { zxid, .. }) = (self.get_mut(id), packet) else { return };
        let read = Zxid::from_wire(*zxid).unwrap_or_default();
        if handler.lag.left_at.is_some_and(|last| last <= read) {
            return self.close_left_behind(id, out);
        }
        // What was proposed before the PING may have been committed, and sent, after it: a few transactions too many.
        let max =
            if handler.is_observer { core.history.committed() } else { handler.lag.joined_at };
        self.acknowledge(id, read.min(max), out);
    }

    /// A learner has acknowledged NEWLEADER.
    pub fn join(&mut self, core: &Core, id: LearnerConnectionId) {
        let Some(handler) = self.get_mut(id) else { return };
        handler.lag.acked = handler.lag.acked.max(handler.start);
        handler.lag.joined_at = core.history.last();
    }

    /// Asks a learner that has just been sent UPTODATE how far it has read, if commits would wait for it otherwise.
    pub fn ask_if_lagging(&mut self, core: &Core, id: LearnerConnectionId, out: &mut Vec<Action>) {
        let Self { by_connection, sizes, .. } = self;
        let handler = by_connection.get_mut(&id);
        let lags = |it: &&mut LearnerHandler| core.settings.lag_bytes_max < sizes.lag(it.lag.acked);
        if let Some(handler) = handler.filter(lags) {
            let zxid = core.history.last().to_wire();
            handler.say(id, &Packet::Ping { zxid, touched: None }, out);
        }
    }

    /// Closes the connection of a learner that was left behind, so that it is synchronised again.
    pub fn close_left_behind(&mut self, id: LearnerConnectionId, out: &mut Vec<Action>) {
        let why = "it lacks too much of what was committed meanwhile, and is to synchronise again";
        self.close(id, why.to_owned(), out);
    }

    /// Closes the connections of all learners that serve and were left behind. A learner that is being synchronised is disconnected
    /// when it acknowledges NEWLEADER.
    pub fn close_all_left_behind(&mut self, out: &mut Vec<Action>) {
        let serving = self.connections_at(Stage::Synchronised).into_iter();
        for id in serving.chain(self.connections_at(Stage::Active)) {
            if self.is_behind(id) {
                self.close_left_behind(id, out);
            }
        }
    }

    /// Whether a learner may lack so much that its lag has to be looked at.
    pub fn may_lag(&self, core: &Core) -> bool {
        self.sizes.may_exceed(core.settings.lag_bytes_max)
    }

    /// Whether commits wait for a follower.
    fn waits_for_follower(&self, core: &Core) -> bool {
        self.may_lag(core)
            && self.iter().any(|handler| {
                let lags = || handler.lag_max(core) < self.sizes.lag(handler.lag.acked);
                !handler.is_behind() && handler.is_awaited(core) && lags()
            })
    }

    /// Marks learners as left behind that lack too much and are not waited for, and forgets what all have acknowledged.
    ///
    /// * `own`: what this server's own disk has.
    pub fn look_after_lag(&mut self, core: &Core, own: Zxid) {
        let Self { by_connection, sizes, .. } = self;
        for handler in by_connection.values_mut().filter(|handler| handler.receives()) {
            if sizes.lag(handler.lag.acked) <= handler.lag_max(core) {
                (handler.lag.ticks, handler.lag.stalled_ticks) = (0, 0);
                continue;
            }
            let is_awaited = handler.is_awaited(core);
            let lag = &mut handler.lag;
            (lag.ticks, lag.stalled_ticks) = (lag.ticks + 1, lag.stalled_ticks + 1);
            let sync_ticks = core.settings.sync_ticks();
            let is_over = sync_ticks / STALLED_PART < lag.stalled_ticks || sync_ticks < lag.ticks;
            if lag.left_at.is_none() && (!is_awaited || is_over) {
                let is_sent_proposals = !handler.is_observer;
                let history = &core.history;
                let last = if is_sent_proposals { history.last() } else { history.committed() };
                lag.left_at = Some(last);
            }
        }
        let waited_for = by_connection.values().filter(|it| it.receives() && !it.is_behind());
        sizes.forget(waited_for.map(|handler| handler.lag.acked).fold(own, Zxid::min));
    }
}

impl Leader {
    /// Whether nothing is committed for now: a follower that acknowledges, or this server's own disk, lacks too much.
    pub(super) fn waits_for_lagging(&self, core: &Core) -> bool {
        self.own_disk_lags(core) || self.handlers.waits_for_follower(core)
    }

    fn own_disk_lags(&self, core: &Core) -> bool {
        let own = self.own_acked(core);
        self.handlers.may_lag(core) && core.settings.lag_bytes_max < self.handlers.sizes.lag(own)
    }

    fn own_acked(&self, core: &Core) -> Zxid {
        self.acked.get(&core.me).copied().unwrap_or_default()
    }

    pub(super) fn look_after_lag(&mut self, core: &mut Core, out: &mut Vec<Action>) {
        let may_lag = self.handlers.may_lag(core);
        self.own_lag_ticks = if self.own_disk_lags(core) { self.own_lag_ticks + 1 } else { 0 };
        if core.settings.sync_ticks() < self.own_lag_ticks {
            let why = "its own disk has lacked too much of what was committed for syncLimit";
            return core.end_role(why.to_owned());
        }
        self.handlers.look_after_lag(core, self.own_acked(core));
        if may_lag {
            self.try_commit(core, out);
        }
    }
}

impl Leader {
    /// The other members, and servers in no configuration that learn from this one.
    pub fn peers(&self, core: &Core) -> Vec<PeerLag> {
        let of = |id: ServerId| {
            let handler = self.handlers.iter().find(|handler| handler.id == id);
            PeerLag {
                id,
                is_connected: handler.is_some(),
                lag_bytes: handler.map(|handler| self.handlers.sizes.lag(handler.lag.acked)),
            }
        };
        let members = core.view.members.keys().copied();
        let all: BTreeSet<ServerId> =
            members.chain(self.handlers.iter().map(|handler| handler.id)).collect();
        all.into_iter().filter(|id| *id != core.me).map(of).collect()
    }
}
