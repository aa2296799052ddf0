//! A server: a disk that outlives its processes, and, while a process lives, all that `server` would hold.

use super::check::{Durable, Standing};
use super::learner_stage::Stage;
use super::network::{EndId, ProcessId};
use super::plan::{Crash, Loss, MS, Micros};
use super::restored_tree::{RestoreAsked, SimRestoring};
use crate::member::configured::SnapshotStyle;
use crate::member::dial::{Dial, DialTimeouts};
use crate::member::election_connections::ConnectionId;
use crate::member::listening::ClientListening;
use crate::member::quorum_connection::QuorumConnection;
use crate::member::quorum_outbox::QuorumOutbox;
use crate::member::{Action, Input, Member, QuorumPeer};
use crate::model::{Epoch, ServerId, View, Zxid};
use crate::replica::Mode;
use crate::request::{self, ClientCommand, Need, Shared};
use crate::store::epoch::{self, EpochFile};
use crate::store::sim_disk::{Image, SimDisk};
use crate::store::{self, FailStop, Folders, RecoverOptions, Worker, names};
use crate::tree::Options;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub type Disk = FailStop<SimDisk>;
pub type Clock = fn() -> Duration;

pub const TICK_TIME_MS: u64 = 100;
pub const DATA_DIR: &str = "/data";
pub const LOG_DIR: &str = "/log";
/// Milliseconds since 1970 when a world begins.
const WALL_MS: i64 = 1_700_000_000_000;

/// A server's end of a client connection.
pub struct ClientConnection {
    pub machine: request::Connection,
    pub input: Vec<u8>,
    pub need: Need,
    pub is_due: bool,
}

/// One end of a learner connection.
pub struct SimLearnerConnection {
    /// `None`: the dial has not connected yet.
    pub end: Option<EndId>,
    /// At a learner: the server that it dials.
    pub dialing: Option<(usize, Dial)>,
    pub receiving: QuorumConnection,
    pub outbox: QuorumOutbox,
    /// Queued since the driver's last turn.
    pub unsent: Vec<Bytes>,
    /// The socket takes nothing until the other end has read.
    pub is_blocked: bool,
    /// The connection's task is not scheduled before this time.
    pub sleeps_until_us: Micros,
    /// The driver has closed the connection, which ends when its task is scheduled.
    pub is_closed: bool,
}

#[derive(Default)]
pub struct LearnerConnections {
    pub all: BTreeMap<QuorumPeer, SimLearnerConnection>,
    pub accepted: u64,
    /// Number of the dial of the current leader.
    pub leader_dial: Option<u64>,
    /// ACKs that a Java member keeps back until it serves.
    pub late_acks: Vec<u8>,
}

#[derive(Default)]
pub struct SimElectionConnections {
    pub ends: BTreeMap<ConnectionId, EndId>,
    pub dialing: BTreeSet<ConnectionId>,
    /// The servers that this process has dialed, or that have dialed it.
    pub met: BTreeSet<usize>,
}

/// Where a process serves clients.
pub struct SimClientPort {
    pub machine: ClientListening,
    /// The port that is bound; `None`: no client can connect.
    pub port: Option<u16>,
}

impl SimClientPort {
    /// The port of a start, which is bound.
    pub const fn bound(port: Option<u16>) -> Self {
        Self { machine: ClientListening::bound(), port }
    }
}

/// What the checks remember of a process.
#[derive(Default)]
pub struct Watched {
    /// The epoch in the LEADERINFO of the current leader.
    pub leader_epoch: Epoch,
    /// The version of the configuration that the last NEWLEADER named.
    pub named_view: Option<Zxid>,
    /// The zxid of the current leader's tree, if a Java leader would have named it by the beginning of its epoch.
    pub java_tree: Option<Zxid>,
    /// How far it is with its leader, by packets alone.
    pub stage: Stage,
    /// A leader to which the election connection has ended, the dial of it, and when the connection ended.
    pub replaced: Option<(usize, u64, Micros)>,
    pub has_looked: bool,
    /// When this server last looked for a leader again, after its first election.
    pub looked_again_us: Option<Micros>,
    /// For which leaders each server has voted in the notifications that came, in their order: the last before this process began to look
    /// for a leader, and all since.
    pub votes: BTreeMap<ServerId, Vec<ServerId>>,
    /// The leader that was elected here; `None` if a reconfiguration may have named it.
    pub elected: Option<ServerId>,
    /// When the election that is under way began.
    pub looks_us: Option<Micros>,
    /// The last zxid that the log thread was given.
    pub logged: Zxid,
}

pub struct Process {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub disk: Disk,
    pub folders: Folders,
    pub tree_options: Options,
    pub recovery: RecoverOptions,
    pub snapshot_style: SnapshotStyle,
    pub worker: Worker<Disk, Clock>,
    /// Commands for the log thread.
    pub log: Vec<store::Command>,
    pub log_is_due: bool,
    /// Number of snapshots that are being written.
    pub snapshots: usize,
    /// Reports of the process's own threads and inputs from other servers that the driver has not taken yet, in the order in which they
    /// came.
    pub events: Vec<Input>,
    pub commands: Vec<ClientCommand>,
    pub turn_is_due: bool,
    /// When the driver is woken for its `Member`'s next deadline.
    pub timer_us: Option<Micros>,
    pub actions: Vec<Action>,
    pub began_us: Micros,
    pub learner_connections: LearnerConnections,
    /// Time limits of a dial of the leader; `None`: standalone.
    pub patience: Option<DialTimeouts>,
    /// Limit on what a packet of a learner connection brings.
    pub entry_max: usize,
    pub election_connections: SimElectionConnections,
    pub clients: BTreeMap<EndId, ClientConnection>,
    pub client_port: SimClientPort,
    /// What the checks remember of it.
    pub watched: Watched,
    /// The last zxid of the tree when the process last served.
    pub served: Option<Zxid>,
    /// While the process leads: when its epoch was established, or a standalone server began to serve.
    pub leads_us: Option<Micros>,
    /// By session: when the process last took something from its client, which is connected here, or when the session began.
    pub heard: BTreeMap<i64, Micros>,
    /// Whether the process led, or served standalone, after its last step.
    pub is_leading: bool,
    pub standing: Option<Standing>,
    /// The last answer of the oracle: whether this server may go on without the other of two voters.
    pub may_go_alone: bool,
    /// The configuration that the files named at the start, until the actions of the first turn are performed. The process before this
    /// one may have ended between the rename of a file and the sync of its folder, and until this process has synced the folder
    /// (`ConfigChange::TestFolder`), a power cut gives the older file back. The process has sent nothing by then.
    pub found_view: Option<View>,
    pub restore_asked: Option<RestoreAsked>,
    pub restoring: Option<SimRestoring>,
}

impl Process {
    /// Monotonic time of the process.
    pub const fn own_us(&self, now_us: Micros) -> Micros {
        now_us - self.began_us
    }

    /// The configuration in force here.
    pub const fn view(&self) -> &View {
        &self.member.replica.peer().core.view
    }

    /// Versions of the configuration in force and of those to come, oldest first.
    pub fn counted_views(&self) -> Vec<i64> {
        self.member.replica.peer().core.all_views().map(|view| view.version).collect()
    }

    /// The epochs and zxids in memory, which checks compare while the process serves.
    pub fn standing(&self) -> Standing {
        let core = &self.member.replica.peer().core;
        Standing {
            accepted: core.accepted,
            current: core.current,
            committed: core.history.committed(),
            last: core.history.last(),
            flushed: core.flushed,
        }
    }

    /// Whether the process serves the history of a leader, which may be itself.
    pub fn is_serving(&self) -> bool {
        !matches!(self.member.replica.mode(), Mode::Resting | Mode::ReadOnly)
    }

    /// The last zxid of its tree.
    pub fn last(&self) -> Zxid {
        self.shared.state.tree.read().last_zxid()
    }

    /// Whether a leader may have handed over to another server with its last commit. A tree that it restores is not committed.
    pub fn has_handed_over(&self) -> bool {
        let last = self.last();
        let is_restored = self.restoring.as_ref().is_some_and(|it| it.zxid == last);
        !is_restored && self.served.is_some_and(|at| at < last)
    }

    /// Notes whether the process leads, or serves standalone, after a step. Returns whether it did before.
    pub fn note_mode(&mut self, mode: Mode, now_us: Micros) -> bool {
        let is_leading = matches!(mode, Mode::Leading | Mode::Standalone);
        let was_leading = std::mem::replace(&mut self.is_leading, is_leading);
        if mode == Mode::Standalone && !was_leading {
            self.leads_us = Some(now_us);
        }
        was_leading
    }

    /// Whether this input came from a leader whose connection the driver has closed since.
    pub fn is_stale(&self, input: &Input) -> bool {
        let dial = match input {
            Input::Packets { from: QuorumPeer::Leader { dial }, .. }
            | Input::Progress { from: QuorumPeer::Leader { dial } }
            | Input::Disconnected { from: QuorumPeer::Leader { dial }, .. }
            | Input::LeaderTree { dial, .. } => *dial,
            _ => return false,
        };
        self.learner_connections.leader_dial != Some(dial) && !self.member.is_stopping()
    }

    pub fn has_inputs(&self) -> bool {
        !self.events.is_empty() || !self.commands.is_empty()
    }

    /// Whether the process has nothing to do.
    pub fn is_quiet(&self) -> bool {
        self.events.is_empty()
            && self.commands.is_empty()
            && self.log.is_empty()
            && !self.log_is_due
            && self.snapshots == 0
            && self.member.replica.outstanding() == 0
    }
}

/// A copy of a server's disk.
pub struct Backup {
    pub disk: SimDisk,
    /// As in [`Server`], when the copy was made.
    pub tree: Zxid,
    pub view: Option<View>,
}

impl Backup {
    /// The epoch in one of the copy's epoch files, if it is there.
    pub fn newest(&self, which: EpochFile) -> Option<Epoch> {
        epoch::newest(&self.disk, &folders().snapshots, which).ok().flatten()
    }
}

/// Whether a disk says that a synchronisation is under way, or was when it was copied.
pub fn is_joining(disk: &SimDisk) -> bool {
    epoch::is_joining(disk, &folders().snapshots).unwrap_or(true)
}

#[derive(Default)]
pub struct Server {
    pub disk: SimDisk,
    pub process: Option<Process>,
    /// Number of the process, or of the next one.
    pub number: u64,
    pub durable: Durable,
    /// The newest leader's tree on its disk.
    pub tree: Zxid,
    /// How far its wall clock is off.
    pub wall_off_ms: i64,
    /// Its machine stands still until this time.
    pub stalled_us: Micros,
    /// Its next process starts at this time.
    pub starts_us: Micros,
    /// Its process was asked to stop, and the next one starts this long after its end.
    pub stop_us: Option<Micros>,
    /// The crash that is about to end its process.
    pub crash: Option<Crash>,
    /// Its disk is slow until this time.
    pub slow_us: Micros,
    /// Sectors of its disk came back wrong, and it has not served since.
    pub is_damaged: bool,
    /// The end of the history that was quarantined or lost, which its disk had when the server acknowledged it.
    pub lost: Zxid,
    /// Its data does not count until the server has served again.
    pub is_unsure: bool,
    /// Files were lost while it was down, and it has not served since.
    pub has_lost: bool,
    /// What its disk had before files were lost, if a server has to notice that: it starts with as much, or it does not vote.
    pub owed: Option<Durable>,
    /// The digests in its log are not those of its tree.
    pub has_other_digests: bool,
    /// Its machine is lost for good.
    pub is_gone: bool,
    /// Its operators have taken it out of their lines, or are yet to add it: it stays down.
    pub is_out: bool,
    /// Its configuration files can't be written from the first of these times until the second.
    pub locked_from_us: Micros,
    pub locked_us: Micros,
    /// Ports that other programs have, and until when.
    pub taken_ports: BTreeMap<u16, Micros>,
    /// Its operator starts it with `snapshot.trust.empty` until a start has succeeded.
    pub trusts_empty: bool,
    /// What is lost before its next process starts.
    pub losing: Option<Loss>,
    pub backup: Option<Backup>,
    /// The configuration that it had in force last.
    pub view: Option<View>,
    /// Its operator has written its configuration files again, and it has not served since.
    pub was_rewritten: bool,
    /// Versions of the proposed configurations that it has acknowledged, and that were neither committed nor forgotten since.
    pub acknowledged_views: BTreeSet<i64>,
    /// A planted fault: all that the next power cut leaves.
    pub lied: Option<Image>,
}

impl Server {
    /// A learner connection of a process that still lives.
    pub fn connection(
        &mut self,
        at: ProcessId,
        peer: QuorumPeer,
    ) -> Option<&mut SimLearnerConnection> {
        let process = self.process.as_mut().filter(|_| self.number == at.number)?;
        process.learner_connections.all.get_mut(&peer)
    }

    /// The end of the history that this server's disk has, or had when it acknowledged it.
    pub fn acknowledged(&self) -> Zxid {
        self.durable.last.max(self.lost)
    }

    /// Notes that the server serves, so that its data is whole again. `false`: it has no snapshot, and could not start again with what it
    /// logs next.
    pub fn becomes_whole(&mut self) -> bool {
        self.lost = Zxid::ZERO;
        self.was_rewritten = false;
        if !self.has_lost && !self.is_unsure {
            return true;
        }
        (self.is_unsure, self.has_lost, self.has_other_digests) = (false, false, false);
        names::snapshots(&self.disk, &folders().snapshots).is_ok_and(|files| !files.is_empty())
    }

    pub const fn wall_ms(&self, now_us: Micros) -> i64 {
        WALL_MS + (now_us / MS) as i64 + self.wall_off_ms
    }
}

/// Makes a change to a disk again if it is refused: a simulated disk that refuses a change refuses it once.
///
/// # Errors
/// Those of the second time.
pub fn tried_twice<T>(change: impl Fn() -> io::Result<T>) -> io::Result<T> {
    change().or_else(|_| change())
}

/// Where every server of a world keeps its files.
pub fn folders() -> Folders {
    Folders::new(Path::new(DATA_DIR), Path::new(LOG_DIR))
}

/// The server that has these addresses: hosts are named `host<server>`.
pub fn server_at(addresses: &[(String, u16)]) -> Option<usize> {
    addresses.first()?.0.strip_prefix("host")?.parse().ok()
}
