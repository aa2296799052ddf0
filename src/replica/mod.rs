//! `zab`, `request` and `tree` as one machine: the order between logging, applying, telling and answering.
//!
//! [`Replica::step`] is the table of contents. Nothing here blocks, reads a clock or touches a socket; whatever must
//! happen outside is an [`Action`].
//!
//! # Invariants
//! 1. A transaction is applied only once `zab` has committed it, and `zab` commits only what the log holds.
//! 2. Applying, its events and its answer are one critical section under the exclusive lock; tasks are woken after it.
//! 3. What takes the write path without a transaction (sync, a refused body) is answered in its place in the order.

mod apply;
mod containers;
mod eager;
mod epochs;
mod judging;
mod leading;
mod learning;
mod local;
mod relaying;
mod roles;
mod rolls;
mod sessions;

use crate::model::sync::{Arc, Ordering};
use crate::model::{Code, EventKind, ServerId, SessionId, Zxid, op};
use crate::request::prep::{Prep, Rules};
use crate::request::{Asked, Batch, Command, Conn, Done, Namespaces, Sessions, Shared, reply};
use crate::tree::freeze::Frozen;
use crate::tree::{Tree, txn};
use crate::zab::{self, LinkId};
use bytes::Bytes;
use std::collections::VecDeque;
use std::task::Waker;

/// Milliseconds of one [`Input::Tick`].
pub const TICK_MS: u64 = 5;

/// All that can happen to the replica.
pub enum Input {
    /// 5 ms of monotonic time have passed.
    Tick {
        wall_ms: i64,
    },
    Command {
        command: Command,
        wall_ms: i64,
    },
    /// The log is durable through `through`. `now_us`: monotonic microseconds.
    Flushed {
        through: Zxid,
        now_us: u64,
    },
    /// The snapshot under way has ended, well or badly.
    SnapshotEnded(Frozen),
    /// From the other servers, or from the disk about what was asked for them. `now_us`: monotonic microseconds.
    Peer {
        input: zab::Input,
        now_us: u64,
    },
    /// SNAP came from the leader, and this is its tree.
    LeaderTree {
        zxid: Zxid,
        tree: Box<Tree>,
    },
    /// The tree as the log on disk has it, after [`Action::Rebuild`].
    Rebuilt {
        tree: Box<Tree>,
    },
}

impl Input {
    /// Whether it came over the connection to the leader.
    const fn is_of_leader(&self) -> bool {
        match self {
            Self::LeaderTree { .. } => true,
            Self::Peer { input, .. } => matches!(
                input,
                zab::Input::Leader { .. }
                    | zab::Input::LeaderGone
                    | zab::Input::Progress { link: None }
            ),
            _ => false,
        }
    }
}

/// All the replica can ask for, in this order.
#[derive(Debug)]
pub enum Action {
    Append {
        zxid: Zxid,
        entry: Bytes,
    },
    /// The next entry starts a new log file.
    Roll,
    /// Write the frozen tree; report [`Input::SnapshotEnded`].
    Snapshot(Frozen),
    /// Write the frozen tree, start a new log file; report [`Input::SnapshotEnded`], then [`zab::Input::Installed`].
    Install(Frozen),
    /// Send the frozen tree to a learner, in order with what else it is sent; report [`Input::SnapshotEnded`].
    SendTree {
        link: LinkId,
        frozen: Frozen,
    },
    /// Load the tree anew from the disk, whose log was cut; report [`Input::Rebuilt`].
    Rebuild,
    /// What the other servers or the disk get to do for them. Never `Append` or `Commit`.
    Peer(zab::Action),
    Wake(Waker),
    /// This server can go no further; the process ends with this reason.
    Stop(&'static str),
}

/// What the replica is told at start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Width of session buckets: tickTime.
    pub tick_time_ms: u64,
    /// First session id to try; later ones count up from it (P-15).
    pub first_session: i64,
    /// Transactions and log bytes after which a snapshot is due, at the most; half of each is random.
    pub snap_count: u64,
    pub snap_size_bytes: u64,
    /// Connections without a session are closed after this long.
    pub sessionless_timeout_ms: u64,
    /// `znode.container.checkIntervalMs`: containers and TTL znodes are looked through this often.
    pub container_check_interval_ms: u64,
    /// `znode.container.maxPerMinute`: at most so many of them are deleted, evenly over the minute.
    pub container_max_per_minute: u64,
    /// `znode.container.maxNeverUsedIntervalMs`; 0: a container that never had children stays.
    pub container_max_never_used_ms: u64,
    /// `leaderServes`: whether a leader has clients of its own.
    pub leader_serves: bool,
    /// `localSessionsEnabled`, of a member: new sessions are known to their server only.
    pub local_sessions: bool,
    /// `localSessionsUpgradingEnabled`: until they make an ephemeral znode.
    pub local_upgrades: bool,
    /// `enableEagerACLCheck`, of a member: what the tree as it is forbids needs no leader to be refused.
    pub eager_acl_check: bool,
    /// `oxkeeper.quorumSync`: a sync is answered behind a transaction of its own, which a quorum has acknowledged.
    pub quorum_sync: bool,
    /// `readonlymode.enabled`: those who only read are served without a leader.
    pub read_only: bool,
    /// Counter of the last zxid that a leader gives out in its epoch.
    pub counter_max: u32,
    pub rules: Rules,
    pub seed: u64,
}

impl Settings {
    /// What Java has unless it is told otherwise.
    pub const DEFAULT: Self = Self {
        tick_time_ms: 3000,
        first_session: 1,
        snap_count: 100_000,
        snap_size_bytes: 4 << 30,
        sessionless_timeout_ms: 10_000,
        container_check_interval_ms: 60_000,
        container_max_per_minute: 10_000,
        container_max_never_used_ms: 0,
        leader_serves: true,
        local_sessions: false,
        local_upgrades: false,
        eager_acl_check: false,
        quorum_sync: false,
        read_only: false,
        counter_max: Zxid::COUNTER_MAX,
        rules: Rules::DEFAULT,
        seed: 1,
    };
}

/// Plain counters; `server` publishes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub digest_mismatches: u64,
    pub sessions_expired: u64,
    pub snapshots_skipped: u64,
    pub sessionless_expired: u64,
    /// Writes judged, and answers made, although their connection was gone.
    pub stale_requests: u64,
    pub stale_replies: u64,
    /// Of a learner's clients that came with a session they had.
    pub revalidations: u64,
    /// Syncs that clients of this server asked for, and that were answered.
    pub syncs: u64,
    /// Of a learner's clients: likewise, when they came to this leader.
    pub learners_syncs: u64,
}

/// Single measurements since they were last taken; `server` publishes and empties them.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// What took the write path and ended.
    pub writes: Vec<WriteSample>,
    /// Watchers told of one event.
    pub told: Vec<(EventKind, u64)>,
    /// What was written, by namespace.
    pub spaces: Namespaces,
    /// Wall-clock milliseconds at which transactions were born, of a member of an ensemble that serves: as a
    /// follower hears of them, and as they are applied.
    pub heard: Vec<i64>,
    pub committed: Vec<i64>,
}

/// One write, sync or end of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteSample {
    /// From frame to answer, in microseconds; `None` for what nobody asked for.
    pub took_us: Option<u64>,
    /// Wall-clock milliseconds at which it became a transaction; `None` when it is none.
    pub born_ms: Option<i64>,
}

/// What this server is to its clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Nobody is served.
    Resting,
    /// Nobody leads, and those who only read are served.
    ReadOnly,
    Standalone,
    Leading,
    Following,
    Observing,
}

/// What was seen of a tree that came with SNAP.
#[derive(Clone, Copy, Debug, Default)]
struct Fuzzy {
    /// Digests that were not those predicted.
    mismatches: u64,
}

/// A write or sync on its way: proposed, or waiting for what was proposed before it.
struct Inflight {
    /// `None`: takes no zxid and is answered once all before it is.
    zxid: Option<Zxid>,
    entry: Bytes,
    /// For what takes no zxid: the answer, and the body that sync gives back.
    code: Code,
    /// Who waits for the answer; nobody for what the server itself proposed.
    conn: Option<Arc<Conn>>,
    session: SessionId,
    xid: i32,
    op: i32,
    received_us: u64,
    /// A sync of the connection itself: its client is not told.
    is_silent: bool,
    /// What it counts for in [`crate::request::Throttle`].
    weight: Done,
}

/// The machine.
pub struct Replica {
    shared: Arc<Shared>,
    zab: zab::Peer,
    mode: Mode,
    prep: Prep,
    /// Changes that were judged in earlier leaderships.
    changes_before: u64,
    /// All of them where they are judged; where they are not, those of this server's clients.
    sessions: Sessions,
    /// Those that only this server knows.
    locals: Sessions,
    /// Those that all knew and that ended a moment ago.
    ended: local::Ended,
    learning: learning::Learning,
    /// Monotonic milliseconds since which nobody leads, where that matters.
    looking_ms: Option<u64>,
    /// The tree that came with SNAP, until it is installed.
    arrived: Option<Box<Tree>>,
    /// What the log thread made of a cut, while the tree is being loaded anew.
    rebuilding: Option<zab::Input>,
    /// The tree came with SNAP. Java writes its tree while it goes on changing it, so this one may hold what comes next:
    /// until this server follows, digests are not expected to be those predicted.
    fuzzy: Option<Fuzzy>,
    /// Digests that were not those predicted since that was told last, and the monotonic milliseconds of then.
    mismatches: (u64, Option<u64>),
    /// A committed transaction could not be read.
    unreadable: bool,
    wall_ms: i64,
    /// Monotonic, of the last input that told it.
    now_us: u64,
    inflight: VecDeque<Inflight>,
    settings: Settings,
    next_session: i64,
    now_ms: u64,
    rolls: rolls::Rolls,
    /// The log has rolled, and the snapshot that goes with it is not begun.
    snapshot_due: bool,
    sweep: containers::Sweep,
    quiet: epochs::Quiet,
    pub stats: Stats,
    pub samples: Samples,
    zab_out: Vec<zab::Action>,
    wakers: Vec<Waker>,
}

impl Replica {
    /// A server that is alone, whose tree is what its disk held.
    ///
    /// * `now_ms`: monotonic milliseconds; sessions found on disk get their whole timeout from here.
    pub fn standalone(shared: Arc<Shared>, settings: Settings, now_ms: u64) -> Self {
        let last = shared.state.tree.read().last_zxid();
        let zab = zab::Peer::alone(ServerId(1), last);
        let mut replica = Self::new(shared, zab, Mode::Standalone, settings, now_ms);
        replica.adopt_sessions();
        replica
    }

    /// A member of an ensemble, whose tree is what its disk held. It rests until its first election is over.
    pub fn member(
        shared: Arc<Shared>,
        mut zab: zab::Peer,
        settings: Settings,
        now_ms: u64,
    ) -> Self {
        roles::adopt_view_finder(&mut zab, &shared.state.tree.read());
        shared.at_rest.store(true, Ordering::Relaxed);
        Self::new(shared, zab, Mode::Resting, settings, now_ms)
    }

    fn new(
        shared: Arc<Shared>,
        zab: zab::Peer,
        mode: Mode,
        settings: Settings,
        now_ms: u64,
    ) -> Self {
        let prep = Prep::new(&shared.state.tree.read(), settings.seed, settings.rules);
        shared.clock_ms.store(now_ms, Ordering::Relaxed);
        Self {
            shared,
            zab,
            mode,
            prep,
            changes_before: 0,
            sessions: Sessions::new(settings.tick_time_ms),
            locals: Sessions::new(settings.tick_time_ms),
            ended: local::Ended::default(),
            learning: learning::Learning::default(),
            looking_ms: None,
            arrived: None,
            rebuilding: None,
            fuzzy: None,
            mismatches: (0, None),
            unreadable: false,
            wall_ms: 0,
            now_us: 0,
            inflight: VecDeque::new(),
            next_session: settings.first_session,
            sweep: containers::Sweep::new(now_ms + settings.container_check_interval_ms),
            quiet: Default::default(),
            rolls: rolls::Rolls::new(settings.snap_count, settings.snap_size_bytes, settings.seed),
            snapshot_due: false,
            settings,
            now_ms,
            stats: Stats::default(),
            samples: Samples::default(),
            zab_out: Vec::new(),
            wakers: Vec::new(),
        }
    }

    pub const fn mode(&self) -> Mode {
        self.mode
    }

    pub const fn peer(&self) -> &zab::Peer {
        &self.zab
    }

    /// What has happened among the servers since this was last asked.
    pub fn notes(&mut self) -> Vec<zab::Note> {
        std::mem::take(&mut self.zab.core.notes)
    }

    /// What was put into the machine of agreement since this was last asked; from the first time on.
    #[cfg(feature = "sim")]
    pub fn tape(&mut self) -> Vec<zab::Input> {
        self.zab.core.tape.replace(Vec::new()).unwrap_or_default()
    }

    /// Syncs that wait for what was proposed before them.
    pub fn pending_syncs(&self) -> usize {
        let is_sync = |inflight: &&Inflight| inflight.zxid.is_none() && inflight.op == op::SYNC;
        self.inflight.iter().filter(is_sync).count()
    }

    /// Whether sessions and writes are judged here.
    pub fn judges(&self) -> bool {
        matches!(self.mode, Mode::Standalone | Mode::Leading)
    }

    /// Number of sessions kept.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Writes that passed a hard limit, by namespace.
    pub const fn quota_refusals(&mut self) -> &mut Namespaces {
        self.prep.quota_refusals()
    }

    /// Changes to znodes that were judged so far, and those of them that were applied, or were given up with the leadership
    /// in which they were judged.
    pub const fn changes(&self) -> (u64, u64) {
        let (judged, applied) = self.prep.changes();
        (self.changes_before + judged, self.changes_before + applied)
    }

    /// Every session with the monotonic milliseconds at which it expires, the next to expire first.
    pub fn session_dues(&self) -> Vec<(u64, SessionId)> {
        self.sessions.dues()
    }

    /// Likewise those that only this server knows; `None` where there are none such.
    pub fn local_dues(&self) -> Option<Vec<(u64, SessionId)>> {
        self.keeps_sessions_local().then(|| self.locals.dues())
    }

    /// Number of sessions that only this server knows.
    pub fn local_count(&self) -> usize {
        self.locals.len()
    }

    /// Requests on their way.
    pub fn outstanding(&self) -> usize {
        if self.mode == Mode::Standalone {
            return self.inflight.len();
        }
        let asked = self.inflight.iter().filter(|inflight| inflight.conn.is_some()).count();
        asked + self.learning.len()
    }

    /// Applies inputs that came in together, and pushes what must happen next.
    ///
    /// What the leader said stands among them as of one connection. One of them may end it, and begin another: what stands
    /// behind that is of a leader that is none any more, and would be taken for the next one's word.
    pub fn step_all(&mut self, inputs: impl IntoIterator<Item = Input>, out: &mut Vec<Action>) {
        let mut is_given_up = false;
        for input in inputs {
            if is_given_up && input.is_of_leader() {
                continue;
            }
            let first = out.len();
            self.step(input, out);
            is_given_up |= out[first..].iter().any(|action| {
                matches!(action, Action::Peer(zab::Action::HangUp | zab::Action::Connect { .. }))
            });
        }
    }

    /// Applies one input and pushes what must happen next.
    pub fn step(&mut self, input: Input, out: &mut Vec<Action>) {
        if let Input::Tick { wall_ms } | Input::Command { wall_ms, .. } = &input {
            self.wall_ms = *wall_ms;
        }
        match input {
            Input::Tick { wall_ms } => self.on_tick(wall_ms, out),
            Input::Command { command, wall_ms } => match command {
                // What was asked before the leader was lost: the connection is closed, and knows that nothing is sure.
                Command::Open { .. } | Command::Reopen { .. } if self.mode == Mode::Resting => {}
                Command::Writes(batch) if self.mode == Mode::Resting => self.drop_batch(&batch),
                Command::Writes(batch) if self.mode == Mode::ReadOnly => self.refuse_writes(&batch),
                Command::Reopen { conn, session, timeout_ms } if self.mode == Mode::ReadOnly => {
                    self.reopen_read_only(&conn, session, timeout_ms);
                }
                Command::Open { conn, timeout_ms, .. } if self.keeps_sessions_local() => {
                    self.open_local(&conn, timeout_ms);
                }
                Command::Reopen { conn, session, timeout_ms }
                    if self.reopen_local(&conn, session, timeout_ms) => {}
                // A new one that all know needs a leader; Java answers it with what no client can read.
                Command::Open { conn, .. } if self.mode == Mode::ReadOnly => {
                    conn.close(&mut self.wakers);
                }
                Command::Open { conn, timeout_ms, received_us } if self.judges() => {
                    self.open((conn, received_us), timeout_ms, wall_ms, out);
                }
                Command::Open { conn, timeout_ms, received_us } => {
                    self.ask_to_open(conn, timeout_ms, received_us, out);
                }
                Command::Reopen { conn, session, timeout_ms } if self.judges() => {
                    self.reopen(&conn, session, timeout_ms)
                }
                Command::Reopen { conn, session, timeout_ms } => {
                    self.ask_to_reopen(conn, session, timeout_ms, out);
                }
                Command::Writes(batch) if self.judges() => self.on_writes(&batch, wall_ms, out),
                Command::Writes(batch) => self.ask_writes(&batch, out),
                Command::Gone { conn } => self.gone(&conn),
            },
            Input::Peer { input, now_us } => {
                self.now_us = now_us;
                self.on_peer(input, out);
            }
            Input::LeaderTree { zxid, tree } => self.on_leader_tree(zxid, tree, out),
            Input::Rebuilt { tree } => self.on_rebuilt(tree, out),
            Input::Flushed { through, now_us } => {
                self.now_us = now_us;
                self.zab.step(zab::Input::Flushed { through }, &mut self.zab_out);
                self.on_zab(now_us, out);
            }
            Input::SnapshotEnded(frozen) => {
                let mut tree = self.shared.state.tree.write();
                if tree.holds(frozen) {
                    tree.thaw();
                }
            }
        }
        out.extend(self.wakers.drain(..).map(Action::Wake));
    }

    /// Starts a snapshot of the tree as it is, unless one is under way.
    pub fn snapshot(&mut self, out: &mut Vec<Action>) {
        match self.shared.state.tree.write().freeze() {
            Some(frozen) => out.push(Action::Snapshot(frozen)),
            None => {
                tracing::warn!("the last snapshot is still being written: none is taken now");
                self.stats.snapshots_skipped += 1;
            }
        }
    }

    fn on_zab(&mut self, now_us: u64, out: &mut Vec<Action>) {
        self.end_read_only();
        // What an action leads to comes behind those that were there before it.
        while !self.zab_out.is_empty() {
            let mut actions = std::mem::take(&mut self.zab_out);
            for action in actions.drain(..) {
                match action {
                    zab::Action::Append { zxid, payload } => self.append(zxid, payload, out),
                    zab::Action::Commit { through } => self.commit(Some(through), now_us, out),
                    action => self.on_role_action(action, out),
                }
            }
            if self.zab_out.is_empty() {
                self.zab_out = actions; // Its memory.
            }
        }
        if self.inflight.front().is_some_and(|inflight| inflight.zxid.is_none()) {
            self.commit(None, now_us, out);
        }
    }

    fn append(&mut self, zxid: Zxid, entry: Bytes, out: &mut Vec<Action>) {
        if !self.judges() {
            if self.mode == Mode::Following {
                self.samples.heard.extend(txn::born_ms(&entry));
            }
            self.expect(zxid, &entry);
        }
        let due = self.rolls.logged(entry.len() as u64);
        out.push(Action::Append { zxid, entry });
        if due {
            // The log rolls even when the snapshot has to be skipped, as Java's does.
            out.push(Action::Roll);
            self.snapshot_due = true;
        }
    }
}

impl Inflight {
    /// As it is, for nobody to hear of.
    fn unanswered(self) -> Self {
        Self { conn: None, ..self }
    }

    /// What a client of this server asked, before it is judged.
    fn asked(batch: &Batch, asked: &Asked) -> Self {
        Self {
            zxid: None,
            entry: Bytes::new(),
            code: Code::OK,
            conn: Some(batch.conn.clone()),
            session: batch.session,
            xid: asked.xid,
            op: asked.op,
            received_us: batch.received_us,
            is_silent: asked.is_silent,
            weight: Done { requests: 1, large_bytes: u64::from(asked.large_bytes) },
        }
    }
}

/// Answers one that is not served: the session is gone.
fn refuse_session(conn: &Conn, wakers: &mut Vec<Waker>) {
    conn.push_farewell(wakers, |out| {
        reply::welcome(out, SessionId(0), 0, conn.wants_read_only(), false);
    });
}
