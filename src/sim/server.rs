//! One server: a disk that outlives it, and while its process lives all that `server` would hold.

use super::faults::Armed;
use super::membership;
use super::network::PipeId;
use super::peers::QuorumConnections;
use super::plan::{Climate, MS, Micros, Plant};
use super::wires::Wires;
use crate::member::restorer::Restorer;
use crate::member::start::Views;
use crate::member::{
    self, Action, EnsembleSettings, Input, LogReadLimit, Member, Now, SnapshotJob,
};
use crate::model::{Epoch, ServerId, SessionId, View, Zxid, chain};
use crate::replica::{self, Replica};
use crate::request::prep::Rules;
use crate::request::{ClientCommand, Connection, Conns, Limits, Need, Shared};
use crate::sim::check::{Durable, Standing};
use crate::store::decide::Start;
use crate::store::sim_disk::{Image, SimDisk};
use crate::store::start::Found;
use crate::store::{
    self, DigestTrailer, Draft, FailStop, Folders, Log, LogOptions, Packing, RecoverOptions,
    SnapshotError, SnapshotWriter, Trailers, Worker, quarantine, recover,
};
use crate::tree::digest::DIGEST_VERSION;
use crate::tree::freeze::Frozen;
use crate::tree::{Options, State, Tree};
use crate::zab::{self, Peer};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub type Disk = FailStop<SimDisk>;
type Clock = fn() -> Duration;

pub const TICK_TIME_MS: u64 = 100;
/// Where followers take observers, in worlds where they do.
pub const OBSERVER_PORT: u16 = 2889;
/// Bytes of log that are read for one learner at most.
const LOG_READ_MAX_BYTES: u64 = 20_000;
/// Milliseconds since 1970 when a world begins.
const WALL_MS: i64 = 1_700_000_000_000;

/// A snapshot that is being written.
pub struct Job {
    pub job: SnapshotJob,
    pub body: Vec<u8>,
}

/// A client's connection as its server holds it.
pub struct Side {
    pub machine: Connection,
    pub input: Vec<u8>,
    pub need: Need,
    pub is_due: bool,
}

/// The process.
pub struct Process {
    pub member: Member,
    pub shared: Arc<Shared>,
    pub disk: Disk,
    pub worker: Worker<Disk, Clock>,
    /// For the log thread.
    pub log: Vec<store::Command>,
    pub log_is_due: bool,
    pub jobs: Vec<Job>,
    /// Of its own threads, not taken up yet.
    pub reports: VecDeque<Input>,
    /// From other servers, in the order it came.
    pub incoming: VecDeque<Input>,
    pub commands: VecDeque<ClientCommand>,
    pub turn_is_due: bool,
    pub actions: Vec<Action>,
    pub began_us: Micros,
    pub quorum: QuorumConnections,
    pub wires: Wires,
    pub sides: BTreeMap<PipeId, Side>,
    /// The epoch its leader told of.
    pub told: Epoch,
    /// What of its tree was looked at while it served.
    pub served: Option<Zxid>,
    /// It led when it was last looked at.
    pub is_leading: bool,
    /// What it was last seen to believe.
    pub standing: Option<Standing>,
}

pub struct Server {
    pub disk: SimDisk,
    pub process: Option<Process>,
    /// Counts processes, so that what was meant for one does not reach the next.
    pub life: u64,
    pub durable: Durable,
    /// How far its wall clock is off.
    pub wall_off_ms: i64,
    /// Its machine stands still until then.
    pub stalled_us: Micros,
    /// Its process is to come again then.
    pub starts_us: Micros,
    /// What is about to end its process.
    pub armed: Option<Armed>,
    /// Its disk is slow until then.
    pub slow_us: Micros,
    /// Sectors of its disk came back wrong, and it has not served since.
    pub is_damaged: bool,
    /// What its disk had before that was put aside: it had it when it said so.
    pub lost: Zxid,
    /// A planted fault: all that the next power cut leaves.
    pub lied: Option<Image>,
}

impl Server {
    pub fn new() -> Self {
        Self {
            disk: SimDisk::new(),
            process: None,
            life: 0,
            durable: Durable::default(),
            wall_off_ms: 0,
            stalled_us: 0,
            starts_us: 0,
            armed: None,
            slow_us: 0,
            is_damaged: false,
            lost: Zxid::ZERO,
            lied: None,
        }
    }

    /// The end of the history that this server's disk has, or had when it acknowledged it.
    pub fn vouched(&self) -> Zxid {
        self.durable.last.max(self.lost)
    }

    pub const fn wall_ms(&self, now_us: Micros) -> i64 {
        WALL_MS + (now_us / MS) as i64 + self.wall_off_ms
    }
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

    /// What it believes while it serves.
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

    pub fn is_serving(&self) -> bool {
        self.member.replica.mode() != replica::Mode::Resting
    }

    pub fn last(&self) -> Zxid {
        self.shared.state.tree.read().last_zxid()
    }

    pub const fn now(&self, now_us: Micros, wall_ms: i64) -> Now {
        Now { us: self.own_us(now_us), wall_ms }
    }
}

pub fn folders() -> Folders {
    Folders::new(Path::new("/data"), Path::new("/log"))
}

pub fn tree_options(seed: u64) -> Options {
    Options { seed, ..Options::default() }
}

const fn peer_settings(climate: &Climate) -> zab::Settings {
    zab::Settings {
        tick_time_ms: TICK_TIME_MS,
        sync_limit: 5,
        always_sends_tree: climate.sends_trees,
        relays: climate.relays,
        reconfigs: climate.changes,
        resend_min_ms: 100,
        resend_max_ms: 800,
        observer_election_delay_ms: 100,
        observer_reconnect_delay_ms: 20,
        ..zab::Settings::DEFAULT
    }
}

fn limits() -> Limits {
    Limits {
        min_session_timeout_ms: 2 * TICK_TIME_MS as i32,
        max_session_timeout_ms: 40 * TICK_TIME_MS as i32,
        // Whoever may write may change the ensemble.
        skip_acl: true,
        ..Limits::default()
    }
}

/// Starts a server on what its disk holds, as `server::boot` does. Also tells whether that was put aside as damaged.
///
/// # Errors
/// In words, why it can't.
pub fn boot(
    server: &Server,
    me: usize,
    climate: &Climate,
    now_us: Micros,
) -> Result<(Process, Durable, bool), String> {
    let disk = FailStop::new(server.disk.clone());
    let (folders, seed) = (folders(), climate.seed ^ me as u64);
    recover::prepare_folders(&disk, &folders, true).map_err(|error| error.to_string())?;
    let mut restorer = Restorer::new(tree_options(seed));
    let found = restore(&disk, &folders, server.is_damaged, &mut restorer)?;
    let recovered = found.recovered;
    let (tree, mismatches) = restorer.finish();
    if mismatches > 0 {
        return Err(format!("{mismatches} digests differ in replay"));
    }
    let last = tree.last_zxid();
    let worker = worker(&disk, &folders, last);
    let shared = shared(tree, seed);
    let logged = match climate.plant {
        Some(Plant::UnmissedLoss) => Some(last),
        _ => recovered.last,
    };
    let views = membership::start_views(&server.disk, climate, me)
        .map_err(|error| format!("read the configuration: {error}"))?;
    let peer = peer(&disk, climate, me, views.clone(), logged)?;
    let (accepted, current) = (peer.core.accepted, peer.core.current);
    let settings = replica_settings(server, me, climate, now_us);
    let replica = Replica::member(shared.clone(), peer, settings, 0);
    if recovered.start == Start::Empty {
        write_first(&disk, &folders, &shared).map_err(|error| error.to_string())?;
    }
    recover::consume_initialize(&disk, &folders).map_err(|error| error.to_string())?;
    let start_view = views.in_force;
    let began = Now { us: 0, wall_ms: server.wall_ms(now_us) };
    let mut member = Member::new(replica, member_settings(me, climate, start_view.clone()), began);
    let mut actions = Vec::new();
    member.start(&mut actions);
    let process = Process {
        wires: Wires::new(ServerId(me as i64), &start_view),
        member,
        shared,
        disk,
        worker,
        log: Vec::new(),
        log_is_due: false,
        jobs: Vec::new(),
        reports: VecDeque::new(),
        incoming: VecDeque::new(),
        commands: VecDeque::new(),
        turn_is_due: false,
        actions,
        began_us: now_us,
        quorum: QuorumConnections::default(),
        sides: BTreeMap::new(),
        told: Epoch(0),
        served: None,
        is_leading: false,
        standing: None,
    };
    let knows_loss = found.was_quarantined && climate.plant != Some(Plant::UnmissedLoss);
    Ok((process, Durable { last, accepted, current }, knows_loss))
}

/// Fills `restorer` from a disk, as a member does.
///
/// * `is_damaged`: otherwise there is no reason for the data to be quarantined.
fn restore(
    disk: &Disk,
    folders: &Folders,
    is_damaged: bool,
    restorer: &mut Restorer,
) -> Result<Found, String> {
    let was_marked = quarantine::is_marked(disk, folders).map_err(|error| error.to_string())?;
    let wanted = RecoverOptions::default();
    let found = store::start::restore(disk, folders, true, wanted, restorer, || Duration::ZERO);
    let found = found.map_err(|error| chain(&error))?;
    if found.was_quarantined && !is_damaged && !was_marked {
        return Err("whole data was quarantined".to_owned());
    }
    Ok(found)
}

/// The machine of agreement, with the configurations that its files say.
fn peer(
    disk: &Disk,
    climate: &Climate,
    me: usize,
    views: Views,
    last: Option<Zxid>,
) -> Result<Peer, String> {
    let (me, settings, folders) = (ServerId(me as i64), peer_settings(climate), folders());
    member::start::peer(disk, &folders.snapshots, me, settings, views, last)
        .map_err(|error| error.to_string())
}

fn replica_settings(
    server: &Server,
    me: usize,
    climate: &Climate,
    now_us: Micros,
) -> replica::Settings {
    let seed = climate.seed ^ me as u64;
    replica::Settings {
        tick_time_ms: TICK_TIME_MS,
        first_session: SessionId::first(ServerId(me as i64), server.wall_ms(now_us)).0,
        snap_count: climate.snap_count,
        counter_max: climate.counter_max,
        snap_size_bytes: 0,
        seed: seed ^ server.life,
        local_sessions: climate.local_sessions,
        local_upgrades: climate.local_sessions,
        rules: Rules { reconfigs: climate.changes, ..Rules::DEFAULT },
        ..replica::Settings::DEFAULT
    }
}

fn member_settings(me: usize, climate: &Climate, view: View) -> member::Settings {
    let ensemble = EnsembleSettings {
        my_id: ServerId(me as i64),
        view,
        listen_on_all_addresses: false,
        observer_master_port: climate.relays.then_some(OBSERVER_PORT),
        backs_up_config: climate.changes,
        tracked_messages: None,
    };
    // Few bytes, so that a tree is sent now and then.
    let log_read = LogReadLimit::Bytes(LOG_READ_MAX_BYTES);
    member::Settings { ensemble: Some(ensemble), log_read }
}

fn worker(disk: &Disk, folders: &Folders, last: Zxid) -> Worker<Disk, Clock> {
    let options = LogOptions { prealloc: 1 << 16, ..LogOptions::default() };
    let log = Log::new(disk.clone(), &folders.logs, options, Some(last));
    let (clock, slow_after): (Clock, _) = (|| Duration::ZERO, Duration::from_secs(1));
    Worker::new(disk.clone(), log, &folders.snapshots, slow_after, clock)
}

fn shared(tree: Tree, seed: u64) -> Arc<Shared> {
    Arc::new(Shared {
        state: State::new(tree, seed),
        conns: Conns::default(),
        throttle: Default::default(),
        limits: limits(),
        clock_ms: Default::default(),
        at_rest: Default::default(),
        is_read_only: Default::default(),
    })
}

/// A new directory gets its first snapshot before anything else happens.
fn write_first(disk: &Disk, folders: &Folders, shared: &Shared) -> Result<(), SnapshotError> {
    let mut tree = shared.state.tree.write();
    let Some(frozen) = tree.freeze() else { return Ok(()) };
    let mut body = Vec::new();
    while !tree.freeze_piece(&mut body) {}
    tree.thaw();
    write_snapshot(disk, folders, frozen, &body)?.place(disk).map(drop)
}

/// Writes all that will be of a snapshot.
///
/// # Errors
/// Those of the disk.
pub fn write_snapshot(
    disk: &Disk,
    folders: &Folders,
    frozen: Frozen,
    body: &[u8],
) -> Result<Draft, SnapshotError> {
    let mut writer = SnapshotWriter::create(disk, &folders.snapshots, frozen.zxid, Packing::Plain)?;
    writer.body(body)?;
    let zxid = frozen.zxid.to_wire();
    let digest = frozen.digest.map(|digest| DigestTrailer {
        zxid,
        version: DIGEST_VERSION,
        digest: digest as i64,
    });
    writer.draft(Trailers { digest, zxid: Some(zxid) })
}
