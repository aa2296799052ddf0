//! The start of a server's process, as `server::boot` does it.

use super::membership;
use super::plan::{Climate, Micros, Plant};
use super::process::{Clock, Disk, LearnerConnections, Process, Server, SimElectionConnections};
use super::restorer::SimRestorer;
use crate::config::Config;
use crate::member::configured::{PartSettings, packing, patience};
use crate::member::start::{FirstSnapshot, RestoredHistory, Started, assemble};
use crate::member::{LogReadLimit, Now, trailers};
use crate::model::{Epoch, chain};
use crate::request::Shared;
use crate::sim::check::Durable;
use crate::store::start::{self, Found};
use crate::store::{
    Draft, FailStop, Folders, Packing, RecoverOptions, SnapshotError, SnapshotWriter, Worker,
    quarantine, recover,
};
use crate::tree::freeze::Frozen;
use crate::tree::{Options, Tree};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

/// Bytes of log that are read for one learner at most: few, so that a tree is sent now and then.
const LOG_READ_MAX_BYTES: u64 = 20_000;

/// A process that has started.
pub struct Booted {
    pub process: Process,
    pub durable: Durable,
    /// Damaged data was moved away.
    pub was_quarantined: bool,
    /// Its operator has written another configuration.
    pub forgets_view: bool,
}

/// Starts a server on what its disk holds.
///
/// # Errors
/// Why it can't start.
pub fn boot(
    server: &Server,
    me: usize,
    climate: &Climate,
    now_us: Micros,
) -> Result<Booted, Box<dyn Error>> {
    let disk = FailStop::new(server.disk.clone());
    let (config, forgets_view) = membership::load(&server.disk, climate, me)?;
    let ensemble = config.ensemble.as_ref().ok_or("a world has no standalone servers")?;
    let patience = patience(&config, ensemble);
    let folders = Folders::new(&config.data_dir, &config.data_log_dir);
    let began = Now { us: 0, wall_ms: server.wall_ms(now_us) };
    let parts = part_settings(server, me, climate, &config, began.wall_ms);
    let is_believed = climate.plant == Some(Plant::UnmissedLoss);
    recover::prepare_folders(&disk, &folders, true)?;
    let may_lack = server.is_damaged || server.has_lost;
    let (tree, found) = restore(&disk, &folders, &config, may_lack, parts.tree)?;
    let last = if is_believed { Some(tree.last_zxid()) } else { found.recovered.last };
    let last_zxid = tree.last_zxid();
    let tree_options = parts.tree;
    let packing = packing(&config);
    // Nothing is replayed where the data was put aside.
    let fits_digests = last.is_none() || !server.has_other_digests;
    let history = RestoredHistory { last, fits_digests };
    let started = assemble(&disk, &folders, &config, parts, tree, history, began);
    let Started { mut member, shared, log, mut actions } = started?;
    let core = &member.replica.peer().core;
    let durable = Durable { last: last_zxid, accepted: core.accepted, current: core.current };
    let snapshot = found.recovered.snapshot.map(|(zxid, _)| zxid);
    match FirstSnapshot::of(found.recovered.start, snapshot, last_zxid, true) {
        FirstSnapshot::BeforeServing => write_first(&disk, &folders, &shared, packing)?,
        FirstSnapshot::BesideServing => member.snapshot(began, &mut actions),
        FirstSnapshot::None => {}
    }
    recover::consume_initialize(&disk, &folders)?;
    let (clock, slow_after): (Clock, _) = (|| Duration::ZERO, Duration::from_secs(1));
    let worker = Worker::new(disk.clone(), log, &folders.snapshots, slow_after, clock);
    let process = Process {
        member,
        shared,
        disk,
        folders,
        tree_options,
        packing,
        worker,
        log: Vec::new(),
        log_is_due: false,
        snapshots: 0,
        events: Vec::new(),
        commands: Vec::new(),
        turn_is_due: false,
        timer_us: None,
        actions,
        began_us: now_us,
        learner_connections: LearnerConnections::default(),
        patience,
        election_connections: SimElectionConnections::default(),
        clients: BTreeMap::new(),
        leader_epoch: Epoch(0),
        served: None,
        leads_us: None,
        heard: BTreeMap::new(),
        is_leading: false,
        standing: None,
        may_go_alone: false,
    };
    let was_quarantined = found.was_quarantined && !is_believed;
    Ok(Booted { process, durable, was_quarantined, forgets_view })
}

/// The settings that a server takes from its configuration, with what is a world's own.
fn part_settings(
    server: &Server,
    me: usize,
    climate: &Climate,
    config: &Config,
    wall_ms: i64,
) -> PartSettings {
    let seed = climate.seed ^ me as u64;
    let mut parts = PartSettings::of(config, climate.openings(), seed, wall_ms);
    parts.replica.seed = seed ^ server.number;
    parts.replica.counter_max = climate.counter_max;
    parts.member.log_read = LogReadLimit::Bytes(LOG_READ_MAX_BYTES);
    parts
}

/// The tree on a disk, as a member restores it.
///
/// * `may_lack`: otherwise there is no reason for the data to be quarantined.
fn restore(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    may_lack: bool,
    options: Options,
) -> Result<(Tree, Found), Box<dyn Error>> {
    let was_marked = quarantine::is_marked(disk, folders)?;
    let autocreate = config.db_auto_create;
    let wanted = RecoverOptions { is_member: true, autocreate, ..RecoverOptions::default() };
    let mut restorer = SimRestorer::new(options);
    let found = start::restore(disk, folders, wanted, &mut restorer, || Duration::ZERO);
    let found = found.map_err(|error| chain(&error))?;
    if found.was_quarantined && !may_lack && !was_marked {
        return Err("whole data was quarantined".into());
    }
    match restorer.finish() {
        (tree, 0) => Ok((tree, found)),
        (_, mismatches) => Err(format!("{mismatches} digests differ in replay").into()),
    }
}

/// A new directory gets its first snapshot before anything else happens.
fn write_first(
    disk: &Disk,
    folders: &Folders,
    shared: &Shared,
    packing: Packing,
) -> Result<(), SnapshotError> {
    let mut tree = shared.state.tree.write();
    let Some(frozen) = tree.freeze() else { return Ok(()) };
    let mut body = Vec::new();
    while !tree.freeze_piece(&mut body) {}
    tree.thaw();
    write_snapshot(disk, folders, frozen, packing, &body)?.place(disk).map(drop)
}

/// Writes all that will be of a snapshot.
///
/// # Errors
/// Those of the disk.
pub fn write_snapshot(
    disk: &Disk,
    folders: &Folders,
    frozen: Frozen,
    packing: Packing,
    body: &[u8],
) -> Result<Draft, SnapshotError> {
    let mut writer = SnapshotWriter::create(disk, &folders.snapshots, frozen.zxid, packing)?;
    writer.body(body)?;
    writer.draft(trailers(frozen, true))
}
