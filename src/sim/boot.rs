//! The start of a server's process, as `server::boot` does it.

use super::membership;
use super::plan::{Climate, Micros, Plant};
use super::process::{
    Clock, Disk, ElectionConnections, LearnerConnections, Process, Server, TICK_TIME_MS, folders,
    tree_options,
};
use crate::member::restorer::Restorer;
use crate::member::{self, EnsembleSettings, LogReadLimit, Member, Now, election_connections};
use crate::model::{Epoch, ServerId, SessionId, View, Zxid, chain};
use crate::replica::{self, Replica};
use crate::request::prep::Rules;
use crate::request::{Limits, Shared};
use crate::sim::check::Durable;
use crate::store::decide::Start;
use crate::store::start::{self, Found};
use crate::store::{
    DigestTrailer, Draft, FailStop, Folders, Log, LogOptions, Packing, RecoverOptions,
    SnapshotError, SnapshotWriter, Trailers, Worker, quarantine, recover,
};
use crate::tree::digest::DIGEST_VERSION;
use crate::tree::freeze::Frozen;
use crate::tree::{Options, State, Tree};
use crate::zab;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Where followers accept observers, in worlds where they do.
const OBSERVER_PORT: u16 = 2889;
/// Bytes of log that are read for one learner at most: few, so that a tree is sent now and then.
const LOG_READ_MAX_BYTES: u64 = 20_000;

/// Starts a server on what its disk holds. Also tells whether damaged data was quarantined.
///
/// # Errors
/// Why it can't start.
pub fn boot(
    server: &Server,
    me: usize,
    climate: &Climate,
    now_us: Micros,
) -> Result<(Process, Durable, bool), Box<dyn Error>> {
    let disk = FailStop::new(server.disk.clone());
    let (folders, seed, id) = (folders(), climate.seed ^ me as u64, ServerId(me as i64));
    let is_believed = climate.plant == Some(Plant::UnmissedLoss);
    recover::prepare_folders(&disk, &folders, true)?;
    let (tree, found) = restore(&disk, &folders, server.is_damaged, tree_options(seed))?;
    let last = tree.last_zxid();
    let worker = worker(&disk, &folders, last);
    let shared = shared(tree, seed);
    let logged = if is_believed { Some(last) } else { found.recovered.last };
    let views = membership::start_views(&server.disk, climate, me)?;
    let view = views.in_force.clone();
    let settings = peer_settings(climate);
    let peer = member::start::peer(&disk, &folders.snapshots, id, settings, views, logged)?;
    let durable = Durable { last, accepted: peer.core.accepted, current: peer.core.current };
    let began = Now { us: 0, wall_ms: server.wall_ms(now_us) };
    let settings = replica_settings(climate, id, seed ^ server.number, began.wall_ms);
    let replica = Replica::member(shared.clone(), peer, settings, 0);
    if found.recovered.start == Start::Empty {
        write_first(&disk, &folders, &shared)?;
    }
    recover::consume_initialize(&disk, &folders)?;
    let mut member = Member::new(replica, member_settings(climate, id, view), began);
    let mut actions = Vec::new();
    member.start(began, &mut actions);
    let process = Process {
        member,
        shared,
        disk,
        worker,
        log: Vec::new(),
        log_is_due: false,
        snapshots: VecDeque::new(),
        events: Vec::new(),
        commands: Vec::new(),
        turn_is_due: false,
        timer_us: None,
        actions,
        began_us: now_us,
        learner_connections: LearnerConnections::default(),
        election_connections: ElectionConnections::default(),
        clients: BTreeMap::new(),
        leader_epoch: Epoch(0),
        served: None,
        is_leading: false,
        standing: None,
    };
    Ok((process, durable, found.was_quarantined && !is_believed))
}

/// The tree on a disk, as a member restores it.
///
/// * `is_damaged`: otherwise there is no reason for the data to be quarantined.
fn restore(
    disk: &Disk,
    folders: &Folders,
    is_damaged: bool,
    options: Options,
) -> Result<(Tree, Found), Box<dyn Error>> {
    let was_marked = quarantine::is_marked(disk, folders)?;
    let (wanted, mut restorer) = (RecoverOptions::default(), Restorer::new(options));
    let found = start::restore(disk, folders, true, wanted, &mut restorer, || Duration::ZERO);
    let found = found.map_err(|error| chain(&error))?;
    if found.was_quarantined && !is_damaged && !was_marked {
        return Err("whole data was quarantined".into());
    }
    match restorer.finish() {
        (tree, 0) => Ok((tree, found)),
        (_, mismatches) => Err(format!("{mismatches} digests differ in replay").into()),
    }
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

fn replica_settings(climate: &Climate, me: ServerId, seed: u64, wall_ms: i64) -> replica::Settings {
    replica::Settings {
        tick_time_ms: TICK_TIME_MS,
        first_session: SessionId::first(me, wall_ms).0,
        snap_count: climate.snap_count,
        counter_max: climate.counter_max,
        snap_size_bytes: 0,
        seed,
        local_sessions: climate.local_sessions,
        local_upgrades: climate.local_sessions,
        rules: Rules { reconfigs: climate.changes, ..Rules::DEFAULT },
        ..replica::Settings::DEFAULT
    }
}

fn member_settings(climate: &Climate, my_id: ServerId, view: View) -> member::Settings {
    let election = election_connections::Settings {
        me: my_id,
        addresses: vec![(format!("host{}", my_id.0), 3888)],
        on_all_addresses: false,
        multi_address: false,
        connect_timeout_ms: 1000,
        hello_timeout_ms: 200,
        reach_timeout_ms: None,
        bind_tries_max: 0,
    };
    let ensemble = EnsembleSettings {
        my_id,
        view,
        election,
        listen_on_all_addresses: false,
        observer_master_port: climate.relays.then_some(OBSERVER_PORT),
        backs_up_config: climate.changes,
        tracked_messages: None,
    };
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
    let limits = Limits {
        min_session_timeout_ms: 2 * TICK_TIME_MS as i32,
        max_session_timeout_ms: 40 * TICK_TIME_MS as i32,
        // Every client that may write may change the ensemble.
        skip_acl: true,
        ..Limits::default()
    };
    Arc::new(Shared::new(State::new(tree, seed), limits))
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
    let (zxid, version) = (frozen.zxid.to_wire(), DIGEST_VERSION);
    let digest = frozen.digest.map(|digest| DigestTrailer { zxid, version, digest: digest as i64 });
    writer.draft(Trailers { digest, zxid: Some(zxid) })
}
