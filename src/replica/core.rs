//! What the replica has in every role: the tree it shares with connections, `zab`, the order of requests, time.

use super::digest_mismatches::DigestMismatches;
use super::ended_sessions::EndedSessions;
use super::inflight::Inflight;
use super::interface::{Action, Settings, TICK_MS};
use super::snapshot_schedule::SnapshotSchedule;
use super::stats::Figures;
use crate::model::sync::{Arc, Ordering};
use crate::model::{CONTAINER, Epoch, SessionId, Zxid};
use crate::request::{
    AuditedWrite, Batch, BatchedWrite, ClientHandle, Namespaces, ReopenSession, Sessions, Shared,
    reply,
};
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::zab::{self, LearnerConnectionId, Packet};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::task::Waker;

/// A write needs a zxid, and this epoch has none left.
#[derive(Debug)]
pub struct OutOfZxids;

/// Which clients the connections of this server accept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    None,
    ReadOnly,
    Full,
}

/// When containers and TTL znodes are checked and deleted next. The next leadership of this server goes on with these times.
#[derive(Clone, Copy, Debug)]
pub struct ContainerTimes {
    pub next_look_ms: u64,
    pub next_delete_us: u64,
}

/// What ended leaderships of this server leave to the next one.
#[derive(Debug)]
pub struct PastLeaderships {
    /// Changes to znodes that were processed in them. Changes that were not applied were given up with the leadership.
    pub changes: u64,
    /// Writes that exceeded a hard quota, by namespace, until they are published.
    pub quota_refusals: Namespaces,
    pub containers: ContainerTimes,
}

/// The part of the replica that stays when its role changes.
pub struct Core {
    pub shared: Arc<Shared>,
    pub zab: zab::Peer,
    pub settings: Settings,
    /// Monotonic milliseconds: the ticks that were counted.
    pub now_ms: u64,
    /// Monotonic microseconds of the last input. They can be later than the ticks.
    pub now_us: u64,
    /// Wall-clock milliseconds of the last input that had them.
    pub wall_ms: i64,
    /// Requests in the order in which they are applied and answered.
    pub inflight: VecDeque<Inflight>,
    /// Local sessions. They outlive an election: their clients reconnect to this server.
    pub locals: Sessions,
    /// Sessions in `locals` that are global: their clients reconnected while there was no leader to revalidate them.
    pub not_asked_for: BTreeSet<SessionId>,
    /// Global sessions that ended recently, in a leadership of this server.
    pub ended: EndedSessions,
    pub next_session: i64,
    pub schedule: SnapshotSchedule,
    /// The log has rolled, and the snapshot that goes with it has not begun.
    pub snapshot_due: bool,
    /// The tree that came with SNAP, until it is installed.
    pub arrived: Option<Box<Tree>>,
    /// A restored tree is in place, and its snapshot has no name yet. Whether this server is standalone.
    pub restoring: Option<bool>,
    /// The log thread's report of a truncation, while the tree is loaded again.
    pub rebuilding: Option<zab::Input>,
    pub mismatches: DigestMismatches,
    pub past: PastLeaderships,
    pub figures: Figures,
    /// Actions of `zab` that are not carried out yet; empty between two steps.
    pub zab_out: Vec<zab::Action>,
    /// Tasks to wake at the end of the step or between two holds of the lock; empty between two steps.
    pub wakers: Vec<Waker>,
}

impl Core {
    /// * `now_ms`: monotonic milliseconds; from here on ticks are counted.
    pub fn new(shared: Arc<Shared>, zab: zab::Peer, settings: Settings, now_ms: u64) -> Self {
        shared.clock_ms.store(now_ms, Ordering::Relaxed);
        let containers = ContainerTimes {
            next_look_ms: now_ms + settings.container_check_interval_ms,
            next_delete_us: 0,
        };
        Self {
            shared,
            zab,
            now_ms,
            now_us: 0,
            wall_ms: 0,
            inflight: VecDeque::new(),
            locals: Sessions::new(settings.tick_time_ms),
            not_asked_for: BTreeSet::new(),
            ended: EndedSessions::default(),
            next_session: settings.first_session,
            schedule: SnapshotSchedule::new(
                settings.snap_count,
                settings.snap_size_bytes,
                settings.seed,
            ),
            snapshot_due: false,
            arrived: None,
            restoring: None,
            rebuilding: None,
            mismatches: DigestMismatches::default(),
            past: PastLeaderships { changes: 0, quota_refusals: Namespaces::default(), containers },
            figures: Figures::default(),
            zab_out: Vec::new(),
            wakers: Vec::new(),
            settings,
        }
    }

    /// Counts a tick. Connections read this clock.
    pub fn advance_clock(&mut self) {
        self.now_ms += TICK_MS;
        self.shared.clock_ms.store(self.now_ms, Ordering::Relaxed);
    }

    /// Monotonic milliseconds at which a session was heard that this input touches.
    pub fn heard_at_ms(&self) -> u64 {
        self.shared.ms_at(self.now_us)
    }

    /// Number of ticks from now on before the tick that reaches `at_ms`.
    pub const fn ticks_before(&self, at_ms: u64) -> u64 {
        at_ms.saturating_sub(self.now_ms).div_ceil(TICK_MS).saturating_sub(1)
    }

    /// Sets the flags by which connections accept clients. Only changes of role call this, so the flags always are those of
    /// the role.
    pub fn set_service(&mut self, service: Service) {
        let is_read_only = service == Service::ReadOnly;
        // In this order, so that no client is accepted with the right to write when the server starts to be read-only.
        if is_read_only {
            self.shared.is_read_only.store(true, Ordering::Relaxed);
        }
        self.shared.at_rest.store(service == Service::None, Ordering::Relaxed);
        if !is_read_only {
            self.shared.is_read_only.store(false, Ordering::Relaxed);
        }
        if service != Service::Full {
            self.shared.epoch_begin.store(0, Ordering::Relaxed);
        }
        if service != Service::None {
            self.release_connects();
        }
    }

    /// This server begins to serve in an epoch, with [`Service::Full`].
    pub fn begin_epoch(&self, epoch: Epoch) {
        let begin = Zxid::new(epoch, 0).to_wire().cast_unsigned();
        self.shared.epoch_begin.store(begin, Ordering::Relaxed);
    }

    /// An election begins: connect requests wait for its end, at most for `connect_hold_ms`.
    pub fn hold_connects(&self) {
        let until_ms = match self.settings.connect_hold_ms {
            0 => 0,
            hold_ms => self.now_ms + hold_ms,
        };
        self.shared.connects_held_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Connect requests wait no longer: they are accepted or refused.
    pub fn release_connects(&mut self) {
        if self.shared.connects_held_until_ms.swap(0, Ordering::Relaxed) != 0 {
            self.shared.conns.all().iter().for_each(|conn| conn.wake(&mut self.wakers));
        }
    }

    /// Releases the connect requests that have waited for long enough. Called at each tick.
    pub fn release_late_connects(&mut self) {
        if self.shared.connects_held_until_ms.load(Ordering::Relaxed) <= self.now_ms {
            self.release_connects();
        }
    }

    /// What the audit log will show of a write that is on its way to a transaction.
    pub fn audited(&self, write: BatchedWrite<'_>) -> Option<Box<AuditedWrite>> {
        if self.settings.audits { AuditedWrite::of(write) } else { None }
    }

    /// Starts a snapshot of the tree as it is, unless another is still being written: as in Java, it is left out then.
    pub fn snapshot(&mut self, out: &mut Vec<Action>) {
        let frozen = self.shared.state.tree.write().freeze();
        match frozen {
            Some(frozen) => self.write_snapshot(frozen, out),
            None => {
                tracing::warn!(
                    target: crate::model::STRANGERS,
                    "snapshot skipped: the last one is still being written. If this repeats, raise snapCount"
                );
                self.figures.stats.snapshots_skipped += 1;
            }
        }
    }

    /// Ends a freeze: the frozen tree was written or sent, or never will be.
    pub fn end_snapshot(&mut self, frozen: Frozen) {
        let mut tree = self.shared.state.tree.write();
        let thawed = tree.thaw(frozen);
        let saved_bytes = tree.snapshot_saved_bytes();
        self.shared.throttle.note_snapshot_saved(saved_bytes, &mut self.wakers);
        drop(tree);
        drop(thawed);
    }

    /// Appends one entry to the log.
    pub fn append(&mut self, zxid: Zxid, entry: Bytes, out: &mut Vec<Action>) {
        let due = self.schedule.logged(entry.len() as u64);
        out.push(Action::Append { zxid, entry });
        if due {
            // The log rolls even when the snapshot has to be skipped, as Java's does.
            out.push(Action::Roll);
            self.snapshot_due = true;
        }
    }

    /// Hands a transaction to `zab`, which proposes it.
    pub fn propose(&mut self, zxid: Zxid, payload: Bytes) {
        self.zab.step(zab::Input::Propose { zxid, payload }, &mut self.zab_out);
    }

    /// The next free session id. Ids count up; an id that is still in the tree, from before a restart, is skipped (P-15).
    ///
    /// * `sessions`: the role's sessions.
    pub fn new_session(&mut self, sessions: Option<&Sessions>) -> SessionId {
        loop {
            let id = SessionId(self.next_session);
            self.next_session = self.next_session.wrapping_add(1);
            if id.0 != 0
                && id.0 != CONTAINER
                && !sessions.is_some_and(|sessions| sessions.contains(id))
                && !self.locals.contains(id)
                // A learner keeps the sessions of its own clients only.
                && !self.is_global(id)
            {
                return id;
            }
        }
    }

    /// Whether the tree knows the session.
    pub fn is_global(&self, session: SessionId) -> bool {
        self.shared.state.tree.read().sessions().contains_key(&session.0)
    }

    /// Answers a client that reconnects with its session.
    ///
    /// * `old`: the connection that owned the session until now.
    pub fn welcome_back(
        &mut self,
        reopen: &ReopenSession,
        old: Option<Arc<ClientHandle>>,
        is_read_only: bool,
    ) {
        let ReopenSession { conn, session, timeout_ms } = reopen;
        // Under the exclusive lock: a read of the old connection is before this, or finds its connection closed.
        let _tree = self.shared.state.tree.write();
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, conn)) {
            old.close(&mut self.wakers);
            // A connection that ended long ago has no watches left, and its number may be another connection's.
            if self.shared.conns.get(old.id).is_some_and(|now| Arc::ptr_eq(&now, &old)) {
                self.shared.state.watches.remove_watcher(old.id);
            }
        }
        conn.push_welcome(*session, &mut self.wakers, |out| {
            reply::welcome(out, *session, *timeout_ms, conn.wants_read_only(), is_read_only);
        });
    }

    /// Refuses a session: the answer has session id 0, and the client takes its session for expired.
    pub fn refuse_session(&mut self, conn: &ClientHandle) {
        conn.push_farewell(&mut self.wakers, |out| {
            reply::welcome(out, SessionId(0), 0, conn.wants_read_only(), false);
        });
    }

    /// Closes the connection that owned a session which ended, unless the connection has another session by now.
    pub fn close_owner(&mut self, owner: &ClientHandle, session: SessionId) {
        if owner.session() == Some(session) {
            owner.close(&mut self.wakers);
        }
    }

    /// Discards writes without an answer: they were sent before the leader was lost, or their session has another connection
    /// by now.
    pub fn drop_batch(&mut self, batch: &Batch) {
        self.shared.throttle.end(batch.load(), &mut self.wakers);
    }

    /// Closes the connection of a learner.
    pub fn close_learner(
        &mut self,
        connection: LearnerConnectionId,
        why: String,
        out: &mut Vec<Action>,
    ) {
        self.zab.step(zab::Input::LearnerGone { connection }, &mut self.zab_out);
        out.push(Action::Peer(zab::Action::CloseLearner { connection, why }));
    }

    /// Closes connections that got no session within `sessionless_timeout_ms`.
    pub fn close_sessionless(&mut self) {
        let limit_ms = self.settings.sessionless_timeout_ms;
        for conn in self.shared.conns.all() {
            if conn.session().is_none() && conn.heard_ms() + limit_ms < self.now_ms {
                tracing::info!(
                    target: crate::model::STRANGERS, peer = %conn.peer, limit_ms,
                    "client connection closed: no session within limit_ms"
                );
                conn.close(&mut self.wakers);
                self.figures.stats.sessionless_expired += 1;
            }
        }
    }

    /// Closes silent connections whose sessions are valid: the clients have moved to other connections, and the sockets may
    /// never end.
    ///
    /// * `spares_owners`: on a server that expires sessions, the connection that owns a session is closed when the session
    ///   expires.
    ///
    /// Source: `NIOServerCnxnFactory.ConnectionExpirerThread`, ZooKeeper 3.9.5.
    pub fn close_silent(&mut self, sessions: &Sessions, spares_owners: bool) {
        for conn in self.shared.conns.all() {
            let kept = conn.session().and_then(|id| Some((id, sessions.get(id)?)));
            let Some((session, kept)) = kept else { continue };
            let speaks = sessions.owner(session).is_some_and(|owner| Arc::ptr_eq(owner, &conn));
            let limit_ms = u64::from(kept.timeout_ms.unsigned_abs()) + self.settings.tick_time_ms;
            let is_silent = !conn.is_kept_waiting() && conn.heard_ms() + limit_ms < self.now_ms;
            if !(speaks && spares_owners) && is_silent {
                tracing::info!(
                    target: crate::model::STRANGERS, peer = %conn.peer, %session, limit_ms,
                    "client connection closed: nothing received within limit_ms"
                );
                conn.close(&mut self.wakers);
            }
        }
    }
}

/// A packet for the leader.
pub fn to_leader(packet: &Packet) -> Action {
    Action::Peer(zab::Action::ToLeader { bytes: packet.to_bytes() })
}

/// A member of an ensemble of one, for tests of this room.
#[cfg(test)]
pub fn test_member(settings: Settings) -> Core {
    use crate::model::{Epochs, ServerId, View};
    use crate::request::Limits;
    use crate::tree::{Options, State, Tree};
    let state = State::new(Tree::new(Options::default()), 0);
    let shared = Arc::new(Shared::new(state, Limits::default()));
    let (view, epochs) = (View::of_one(ServerId(1)), Epochs::default());
    let zab_settings = zab::Settings::DEFAULT;
    let peer = zab::Peer::member(ServerId(1), zab_settings, view, epochs, Some(Zxid::ZERO));
    Core::new(shared, peer, settings, 0)
}
