//! The start of a server's process, as `server::boot` does it.

use super::membership;
use super::plan::{Climate, Micros, PlantedFault};
use super::process::{
    Clock, Disk, LearnerConnections, Process, Server, SimClientPort, SimElectionConnections,
    Watched,
};
use super::restorer::SimRestorer;
use crate::config::Config;
use crate::member::configured::{PartSettings, SnapshotStyle, entry_max, patience};
use crate::member::start::{RestoredHistory, Started, assemble};
use crate::member::{LogReadLimit, Now, trailers};
use crate::model::{Zxid, chain};
use crate::request::Shared;
use crate::sim::check::Durable;
use crate::store::start::{self, Found};
use crate::store::{
    Draft, FailStop, Folders, SnapshotError, SnapshotWriter, Worker, quarantine, recover,
};
use crate::tree::Tree;
use crate::tree::freeze::Frozen;
use crate::tree::rebuild::Comparison;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

/// Limit on the bytes of log that are read for one learner: small, so that a leader sometimes sends its tree (SNAP).
const LOG_READ_MAX_BYTES: u64 = 20_000;

/// A process that has started.
pub struct Booted {
    pub process: Process,
    pub durable: Durable,
    /// Damaged data was quarantined.
    pub was_quarantined: bool,
    /// The operator has rewritten the server's configuration file.
    pub forgets_view: bool,
    /// The tree does not fit the digests of the log: transactions are missing in it.
    pub has_other_tree: bool,
}

/// Starts a server on what its disk holds.
///
/// # Errors
/// Why the server can't start.
pub fn boot(
    server: &Server,
    me: usize,
    climate: &Climate,
    now_us: Micros,
) -> Result<Booted, Box<dyn Error>> {
    let disk = FailStop::new(server.disk.clone());
    let (config, forgets_view) = membership::load(&server.disk, climate, me, server.trusts_empty)?;
    let patience = config.ensemble.as_ref().map(|ensemble| patience(&config, ensemble));
    let folders = Folders::new(&config.data_dir, &config.data_log_dir);
    let began = Now { us: 0, wall_ms: server.wall_ms(now_us) };
    let parts = part_settings(server, me, climate, &config, began.wall_ms);
    let is_believed = climate.plant == Some(PlantedFault::UnmissedLoss);
    recover::prepare_folders(&disk, &folders, config.data_dir_auto_create)?;
    let may_lack = server.is_damaged || server.has_lost || server.is_unsure;
    let (tree, comparison, found) = restore(&disk, &folders, may_lack, &parts)?;
    let last_zxid = tree.last_zxid();
    let (tree_options, recovery) = (parts.tree, parts.recovery);
    let (style, believed) = (SnapshotStyle::of(&config), is_believed.then_some(last_zxid));
    let history = history(server, &found, &disk, &folders, comparison, believed);
    let started = assemble(&disk, &folders, &config, parts, tree, history, began)?;
    let write = |shared: &_, frozen| write_first_snapshot(&disk, &folders, style, shared, frozen);
    let started = started.take_first_snapshot(&disk, &folders, &found.recovered, began, write)?;
    recover::consume_initialize(&disk, &folders)?;
    let Started { member, shared, log, actions } = started;
    let core = &member.replica.peer().core;
    let durable = Durable { last: last_zxid, accepted: core.accepted, current: core.current };
    let (clock, slow_after): (Clock, _) = (|| Duration::ZERO, Duration::from_secs(1));
    let worker = Worker::new(disk.clone(), log, &folders.snapshots, slow_after, clock);
    let process = Process {
        found_view: config.ensemble.as_ref().map(|_| member.replica.peer().core.view.clone()),
        member,
        shared,
        disk,
        folders,
        tree_options,
        recovery,
        snapshot_style: style,
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
        entry_max: entry_max(&config),
        election_connections: SimElectionConnections::default(),
        clients: BTreeMap::new(),
        client_port: SimClientPort::bound(config.client_port),
        watched: Watched { logged: last_zxid, ..Watched::default() },
        served: None,
        leads_us: climate.alone.then_some(now_us),
        heard: BTreeMap::new(),
        is_leading: climate.alone,
        standing: None,
        may_go_alone: false,
        restore_asked: None,
        restoring: None,
    };
    let has_other_tree = 0 < comparison.mismatches;
    let was_quarantined = found.was_quarantined && !is_believed;
    Ok(Booted { process, durable, was_quarantined, forgets_view, has_other_tree })
}

/// The settings that a server takes from its configuration, and those that only worlds set.
fn part_settings(
    server: &Server,
    me: usize,
    climate: &Climate,
    config: &Config,
    wall_ms: i64,
) -> PartSettings {
    let seed = climate.seed ^ me as u64;
    let mut parts = PartSettings::of(config, climate.exchanges(), seed, wall_ms);
    parts.replica.seed = seed ^ server.number;
    parts.replica.counter_max = climate.counter_max;
    if climate.requires_sasl() {
        super::sasl::require(&mut parts.limits, seed ^ server.number);
    }
    if let (Some(agreement), Some(bytes)) = (&mut parts.agreement, climate.lag_bytes) {
        agreement.lag_bytes_max = bytes;
    }
    parts.member.log_read = LogReadLimit::Bytes(LOG_READ_MAX_BYTES);
    parts
}

/// The loaded history, as `member` gets it.
///
/// * `comparison`: with the digests in the log. `believed`: a planted fault: the last zxid of quarantined data, which counts
///   nevertheless.
fn history(
    server: &Server,
    found: &Found,
    disk: &Disk,
    folders: &Folders,
    mut comparison: Comparison,
    believed: Option<Zxid>,
) -> RestoredHistory {
    // Quarantined data is not replayed.
    let is_replayed = found.recovered.last.or(believed).is_some();
    if is_replayed && server.has_other_digests {
        comparison.differs_since = Some(Zxid::ZERO);
    }
    let history = RestoredHistory::judge(disk, folders, found.recovered.last, comparison);
    RestoredHistory { last: believed.or(history.last), ..history }
}

/// The tree on a disk, as a member loads it, and how it compared with the digests in the log.
///
/// * `may_lack`: data may be damaged or missing; otherwise it must not be quarantined, and no digest differs.
fn restore(
    disk: &Disk,
    folders: &Folders,
    may_lack: bool,
    parts: &PartSettings,
) -> Result<(Tree, Comparison, Found), Box<dyn Error>> {
    let was_marked = quarantine::is_marked(disk, folders)?;
    let mut restorer = SimRestorer::new(parts.tree);
    let found = start::restore(disk, folders, parts.recovery, &mut restorer, || Duration::ZERO);
    let found = found.map_err(|error| chain(&error))?;
    if found.was_quarantined && !may_lack && !was_marked {
        return Err("undamaged data was quarantined".into());
    }
    match restorer.finish() {
        (tree, comparison) if comparison.mismatches == 0 || may_lack => {
            Ok((tree, comparison, found))
        }
        (_, Comparison { mismatches, .. }) => {
            Err(format!("{mismatches} digests differ in replay").into())
        }
    }
}

fn write_first_snapshot(
    disk: &Disk,
    folders: &Folders,
    style: SnapshotStyle,
    shared: &Shared,
    frozen: Frozen,
) -> Result<(), Box<dyn Error>> {
    let body = stream_of(&shared.state.tree.read(), frozen);
    write_snapshot(disk, folders, frozen, style, &body)?.place(disk)?;
    Ok(())
}

/// The stream of a frozen tree, as a snapshot has it.
pub fn stream_of(tree: &Tree, frozen: Frozen) -> Vec<u8> {
    let mut body = Vec::new();
    while !tree.freeze_piece(frozen, &mut body) {}
    body
}

/// Writes the whole file of a snapshot, which gets its name later.
///
/// # Errors
/// If the simulated disk fails: the process ends, as the server does.
pub fn write_snapshot(
    disk: &Disk,
    folders: &Folders,
    frozen: Frozen,
    style: SnapshotStyle,
    body: &[u8],
) -> Result<Draft, SnapshotError> {
    let mut writer = SnapshotWriter::create(disk, &folders.snapshots, frozen.zxid, style.packing)?;
    writer.body(body)?;
    writer.draft(trailers(frozen, style.with_zxid))
}
