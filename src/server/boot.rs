//! From a configuration to a serving server, and to its end.

use super::clock::{self, Clock};
use super::data_dir_lock::DataDirLock;
use super::driver::{Driver, Loader, Parts};
use super::error::ServerError;
use super::inbox::Inbox;
use super::ready::Ready;
use super::report::Desk;
use super::restore::{RestoreError, Restored, Restorer};
use super::role_log::Roles;
use super::shared_driver::{LogReports, SharedDriver};
use super::{member, snapshots, stop};
use crate::admin::Word;
use crate::auth::Schemes;
use crate::config::{Config, Throttle};
use crate::member::{Action, Ended, Member, Now};
use crate::metrics::Registry;
use crate::model::{ServerId, SessionId, chain};
use crate::net::{Listener, ServerHandles, Sink};
use crate::replica::{Replica, Settings};
use crate::request::prep::Rules;
use crate::request::{Connects, Limits, Shared};
use crate::store::decide::Start;
use crate::store::recover::{self};
use crate::store::start::{self, StartError};
use crate::store::worker::{self, LogQueue, LogThread};
use crate::store::{
    FailStop, Folders, Log, LogOptions, RealDisk, RecoverOptions, Recovered, purge,
};
use crate::tree::{Options, State, Tree};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

type Disk = FailStop<RealDisk>;

/// A standalone server's number, where one is needed.
const STANDALONE: ServerId = ServerId(1);

/// Serves until TERM or INT, or until the disk fails.
///
/// * `seed`: of hashes and of what is drawn at random.
/// * `ready`: called once clients are served, with the address.
///
/// # Errors
/// [`ServerError`] with the process's exit code.
pub async fn run(config: Config, seed: u64, ready: impl FnOnce(&Ready)) -> Result<(), ServerError> {
    let clock = Clock::start();
    super::limits::raise_open_files();
    super::limits::survive_file_limit()?;
    // Bound before the data is loaded: a port in use must be known at once.
    let listener = Listener::bind(&config)?;
    let folders = Folders::new(&config.data_dir, &config.data_log_dir);
    let disk = FailStop::new(RealDisk);
    let metrics = Arc::new(Registry::default());
    let (_claim, tree, recovered) = restore(&disk, &folders, &config, &metrics, seed)?;
    let state = Ready::new(listener.address, &config, &tree, &recovered, clock);

    let last = tree.last_zxid();
    let log = Log::new(disk.clone(), &folders.logs, log_options(&config), Some(last));
    let shared = share(tree, &config, seed);

    let peer = member::peer(&config, (&disk, folders.snapshots.as_path()), recovered.last)?;
    let settings = settings(&config, seed);
    let replica = match peer {
        None => Replica::standalone(shared.clone(), settings, clock.now_ms()),
        Some(peer) => Replica::member(shared.clone(), peer, settings, clock.now_ms()),
    };
    let now = Now { us: clock.now_us(), wall_ms: clock.wall_ms() };
    let mut member = Member::new(replica, member::member_settings(&config), now);
    let mut actions = Vec::new();
    member.start(now, &mut actions);
    let first = FirstSnapshot { disk: &disk, folders: &folders, config: &config };
    first.take(&shared, &metrics, &recovered, &mut member, now, &mut actions)?;

    let loader = loader(&disk, &folders, &config, seed);
    let purging = start_purging(&config, &folders);
    let (inbox, queue) = (Arc::<Inbox>::default(), LogQueue::default());
    let (client_ports, moves) = mpsc::unbounded_channel();
    let options = tree_options(&config, seed);
    let peers = member::connect(&config, &shared, options, &inbox)?;
    let roles = config.ensemble.is_some().then(|| Roles::new(metrics.clone()));
    let parts = Parts {
        member,
        shared: shared.clone(),
        inbox: inbox.clone(),
        log: queue.clone(),
        disk: disk.clone(),
        folders: folders.clone(),
        snapshot_style: snapshots::Style::of(&config),
        metrics: metrics.clone(),
        clock,
        peers,
        roles,
        client_ports,
        loader,
    };
    let driver = SharedDriver::new(Driver::new(parts, actions), inbox.clone(), clock.epoch);
    let driver = Arc::new(driver);
    let log_thread = start_log(queue, (&disk, log), &folders, &config, driver.clone())?;
    let port = Arc::new(AtomicU16::new(listener.address.port()));
    let connection = connection(config, &shared, metrics, inbox.clone(), clock, port.clone());
    let stopping = CancellationToken::new();
    let accepting =
        tokio::spawn(listener.run(shared.clone(), connection, moves, port, stopping.clone()));
    let stop_signal = stop::on_signal(inbox, stopping)?;
    let driving = tokio::spawn(async move { driver.run().await });
    ready(&state);
    let ended = driving.await.map_err(io::Error::other);
    drop(log_thread);
    stop_signal.abort();
    purging.inspect(tokio::task::JoinHandle::abort);
    finish(ended, accepting, &shared).await
}

/// What connections and the driver have in common.
fn share(tree: Tree, config: &Config, seed: u64) -> Arc<Shared> {
    Arc::new(Shared::new(State::new(tree, seed), limits(config, seed)))
}

/// What is left to do once the driver has ended.
async fn finish(
    ended: io::Result<Ended>,
    accepting: tokio::task::JoinHandle<io::Result<TaskTracker>>,
    shared: &Shared,
) -> Result<(), ServerError> {
    let ended = ended.map_err(|source| ServerError::System { what: "run the driver", source })?;
    if let Ended::Failed { reason, exit } = ended {
        return Err(ServerError::Failed { reason, exit });
    }
    if let Ok(Ok(tasks)) = accepting.await {
        stop::say_goodbye(shared, &tasks).await;
    }
    Ok(())
}

/// What connections need: where commands go, and a desk that answers words.
fn connection(
    config: Config,
    shared: &Arc<Shared>,
    metrics: Arc<Registry>,
    inbox: Arc<Inbox>,
    clock: Clock,
    client_port: Arc<AtomicU16>,
) -> ServerHandles {
    let commands = inbox.clone();
    let commands = Sink::new(move |command| commands.put_command(command));
    let desk = Desk::new(config, shared.clone(), metrics.clone(), inbox, clock, client_port);
    let desk = Arc::new(desk);
    let words = Arc::new(move |asked| -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        let desk = desk.clone();
        Box::pin(async move { desk.answer(asked).await })
    });
    ServerHandles { commands, words, metrics, epoch: clock.epoch }
}

fn start_error(error: StartError<RestoreError>) -> ServerError {
    match error {
        StartError::Recover(error) => ServerError::Recover(error),
        StartError::Epoch(error) => ServerError::System {
            what: "read the epochs promised to",
            source: io::Error::other(error),
        },
        StartError::Unsure { mark } => ServerError::Unsure { mark },
        StartError::Disk { what, source } => ServerError::System { what, source },
    }
}

/// Makes the folders, makes them this server's, and loads what is in them.
fn restore(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    metrics: &Registry,
    seed: u64,
) -> Result<(DataDirLock, Tree, Recovered), ServerError> {
    recover::prepare_folders(disk, folders, config.data_dir_auto_create)
        .map_err(|error| ServerError::Folders(Box::new(error)))?;
    let lock = DataDirLock::acquire(&folders.snapshots, &folders.logs)?;
    let wanted = RecoverOptions {
        trust_empty: config.trust_empty_snapshot,
        autocreate: config.db_auto_create,
        running: false,
    };
    let mut restorer = restorer(config, seed);
    let began = std::time::Instant::now();
    let is_member = config.ensemble.is_some();
    let found = start::restore(disk, folders, is_member, wanted, &mut restorer, || began.elapsed())
        .map_err(start_error)?;
    let recovered = found.recovered;
    for skipped in &recovered.skipped {
        tracing::warn!(file = %skipped.path.display(), why = ?skipped.why, "file not used");
    }
    let Restored { tree, digest_mismatches, .. } = restorer.finish();
    metrics.digest_mismatches_count.add(digest_mismatches);
    metrics.dbinittime.record(began.elapsed().as_millis() as i64);
    metrics.startup_snap_load_time.record(recovered.snapshot_took.as_millis() as i64);
    if recovered.start != Start::Empty {
        metrics.startup_txns_loaded.record(recovered.txns as i64);
        metrics.startup_txns_load_time.record(recovered.replay_took.as_millis() as i64);
    }
    tracing::info!(
        zxid = %tree.last_zxid(),
        znodes = tree.node_count(),
        sessions = tree.sessions().len(),
        snapshot = recovered.snapshot.map(|(zxid, _)| zxid.to_string()),
        txns = recovered.txns,
        ms = began.elapsed().as_millis() as u64,
        "data restored"
    );
    Ok((lock, tree, recovered))
}

fn restorer(config: &Config, seed: u64) -> Restorer {
    let restorer = Restorer::new(tree_options(config, seed));
    if config.ensemble.is_some() { restorer.keep_orphans() } else { restorer }
}

fn tree_options(config: &Config, seed: u64) -> Options {
    Options {
        seed,
        digest: config.digest_enabled,
        extended_types: config.extended_types_enabled,
        emulate_353: config.emulate_353_ttl_nodes,
    }
}

/// Loads the tree once more, when the log was cut behind what the tree holds.
fn loader(disk: &Disk, folders: &Folders, config: &Config, seed: u64) -> Arc<Loader> {
    let (disk, folders) = (disk.clone(), folders.clone());
    let options = tree_options(config, seed);
    let trust_empty = config.trust_empty_snapshot;
    let wanted = RecoverOptions { trust_empty, autocreate: true, running: true };
    Arc::new(move || {
        let mut restorer = Restorer::new(options).keep_orphans();
        let began = std::time::Instant::now();
        recover::recover(&disk, &folders, wanted, &mut restorer, move || began.elapsed())
            .map_err(|error| format!("load the tree again: {}", chain(&error)))?;
        Ok(restorer.finish().tree)
    })
}

struct FirstSnapshot<'a> {
    disk: &'a Disk,
    folders: &'a Folders,
    config: &'a Config,
}

impl FirstSnapshot<'_> {
    /// A fresh directory gets its `snapshot.0` before anybody is served; otherwise one is taken beside the work if
    /// there is anything new to keep (D-33, D-60).
    fn take(
        &self,
        shared: &Shared,
        metrics: &Registry,
        recovered: &Recovered,
        member: &mut Member,
        now: Now,
        actions: &mut Vec<Action>,
    ) -> Result<(), ServerError> {
        let is_empty = recovered.start == Start::Empty;
        let frozen = if is_empty { shared.state.tree.write().freeze() } else { None };
        if let Some(frozen) = frozen {
            let began = std::time::Instant::now();
            let style = snapshots::Style::of(self.config);
            let dir = &self.folders.snapshots;
            let written = snapshots::write(self.disk, dir, shared, frozen, style, false);
            shared.state.tree.write().thaw();
            written?;
            metrics.snapshottime.record(began.elapsed().as_millis() as i64);
        }
        recover::consume_initialize(self.disk, self.folders)
            .map_err(|source| ServerError::System { what: "remove file initialize", source })?;
        let last = shared.state.tree.read().last_zxid();
        // A member's history may yet be cut.
        let is_alone = self.config.ensemble.is_none();
        if is_alone && !is_empty && recovered.snapshot.is_none_or(|(zxid, _)| zxid != last) {
            member.snapshot(now, actions);
        }
        Ok(())
    }
}

pub(super) fn limits(config: &Config, seed: u64) -> Limits {
    let on = |number: u32| Some(u64::from(number)).filter(|&number| number > 0);
    let words = Word::ALL.iter().filter_map(|word| word.name().as_bytes().first_chunk().copied());
    Limits {
        frame_max: config.jute_max_buffer_bytes as usize,
        min_session_timeout_ms: config.min_session_timeout_ms,
        max_session_timeout_ms: config.max_session_timeout_ms,
        outstanding_max: u64::from(config.global_outstanding_limit),
        requests_max: on(config.throttle.requests_max),
        op_wait_max_us: on(config.throttle.op_wait_ms).map(|ms| ms * 1000),
        drops_late: config.throttle.drops_stale && config.throttle.late_is_stale,
        large_from: config.large_request_threshold_bytes.map(|bytes| bytes as usize),
        large_bytes_max: u64::from(config.large_request_max_bytes),
        connects: connects(&config.throttle, seed),
        skip_acl: config.skip_acl,
        // A server that is alone has applied what it acknowledges, and nobody else acknowledges anything.
        linearizable_reads: config.linearizable_reads && config.ensemble.is_some(),
        schemes: Schemes {
            digest: config.digest_auth_enabled || config.providers.digest,
            algorithm: config.digest_algorithm,
            super_digest: config.super_digest.clone(),
            ensemble: config.providers.ensemble,
            ensemble_names: config.ensemble_names.clone(),
            key: config.providers.key,
            required: config.providers.required.clone(),
        },
        // What telnet sends when its user closes it is no word, but no frame either (W-08).
        words: words.chain([[0xff, 0xf4, 0xff, 0xfd]]).collect(),
    }
}

fn log_options(config: &Config) -> LogOptions {
    LogOptions {
        prealloc: config.pre_alloc_bytes,
        size_limit: config.txn_log_size_limit_bytes.unwrap_or(0),
        force_sync: config.force_sync,
    }
}

fn connects(throttle: &Throttle, seed: u64) -> Option<Connects> {
    let weights = (i64::from(throttle.new_weight), i64::from(throttle.renew_weight));
    let (new_weight, renew_weight) = if throttle.weighed { weights } else { (1, 1) };
    (throttle.tokens > 0).then(|| Connects {
        // Both are meant for new sessions, which may take several tokens each.
        tokens_max: i64::from(throttle.tokens) * new_weight,
        fill_count: i64::from(throttle.fill_count) * new_weight,
        fill_time_ms: i64::from(throttle.fill_time_ms),
        freeze_time_ms: throttle.freeze_time_ms.map(u64::from),
        drop_increase: throttle.drop_increase,
        drop_decrease: throttle.drop_decrease,
        decrease_ratio: throttle.decrease_ratio,
        new_weight,
        renew_weight,
        seed,
    })
}

pub(super) fn settings(config: &Config, seed: u64) -> Settings {
    Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        first_session: SessionId::first(my_id(config), clock::wall_ms()).0,
        snap_count: u64::from(config.snap_count),
        snap_size_bytes: config.snap_size_limit_bytes.unwrap_or(0),
        sessionless_timeout_ms: u64::from(config.sessionless_cnxn_timeout_ms),
        container_check_interval_ms: u64::from(config.container_check_interval_ms),
        container_max_per_minute: u64::from(config.container_max_per_minute),
        container_max_never_used_ms: config.container_max_never_used_ms,
        leader_serves: config.ensemble.as_ref().is_none_or(|ensemble| ensemble.leader_serves),
        local_sessions: config.ensemble.as_ref().is_some_and(|of| of.local_sessions_enabled),
        local_upgrades: config
            .ensemble
            .as_ref()
            .is_some_and(|of| of.local_sessions_upgrading_enabled),
        eager_acl_check: config.ensemble.as_ref().is_some_and(|of| of.eager_acl_check),
        quorum_sync: (config.quorum_sync || config.linearizable_reads) && config.ensemble.is_some(),
        read_only: config.ensemble.is_some() && config.read_only_mode_enabled,
        counter_max: Settings::DEFAULT.counter_max,
        rules: Rules {
            enforces_quota: config.enforce_quota,
            reconfigs: config.reconfig_enabled,
            needs_two_voters: config.ensemble.as_ref().is_none_or(|of| of.standalone_enabled),
            many_addresses: config.ensemble.as_ref().is_some_and(|of| of.many_addresses),
            lists_closed: config.close_session_txn_enabled,
            entry_max: config.jute_max_buffer_bytes as usize
                + config.jute_max_buffer_extra_bytes as usize,
        },
        seed,
    }
}

fn my_id(config: &Config) -> ServerId {
    config.ensemble.as_ref().map_or(STANDALONE, |ensemble| ensemble.my_id)
}

fn start_log(
    queue: LogQueue,
    (disk, log): (&Disk, Log<Disk>),
    folders: &Folders,
    config: &Config,
    driver: Arc<SharedDriver<Disk>>,
) -> Result<LogThread, ServerError> {
    let slow_after = Duration::from_millis(config.fsync_warning_threshold_ms);
    let reports = LogReports { driver, runtime: Handle::current() };
    worker::spawn(queue, disk.clone(), log, &folders.snapshots, slow_after, reports)
        .map_err(|source| ServerError::System { what: "start the log thread", source })
}

fn start_purging(config: &Config, folders: &Folders) -> Option<tokio::task::JoinHandle<()>> {
    let (hours, keep) = (config.purge_interval_hours?, config.purge_snap_retain_count as usize);
    Some(tokio::spawn(purge_often(folders.clone(), hours, keep)))
}

/// Removes old snapshots and logs: once now, then every so many hours (`autopurge`).
async fn purge_often(folders: Folders, hours: u32, keep: usize) {
    let mut timer = tokio::time::interval(Duration::from_secs(u64::from(hours) * 3600));
    loop {
        timer.tick().await;
        let folders = folders.clone();
        // Not through the latching disk: a file that can't be removed is no reason to stop.
        match tokio::task::spawn_blocking(move || purge::purge(&RealDisk, &folders, keep)).await {
            Ok(Ok(removed)) => tracing::info!(files = removed.len(), keep, "old files purged"),
            Ok(Err(error)) => tracing::warn!("purge old files: {}", chain(&error)),
            Err(error) => tracing::warn!(%error, "purge old files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};
    use crate::model::Zxid;
    use crate::store::disk::Disk as _;
    use crate::store::sim_disk::SimDisk;
    use std::path::Path;

    /// * `flags`: what start scripts hand over, as in `-Dzookeeper.forceSync=no`.
    fn configured(lines: &str, flags: &str) -> Config {
        let text = format!("dataDir=/d\nclientPort=0\n{lines}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        let environment = Environment::from([("SERVER_JVMFLAGS".to_owned(), flags.to_owned())]);
        parse(source, &environment, &[]).unwrap()
    }

    // rows: C-143 C-144
    #[test]
    fn the_log_is_kept_as_file_and_flags_say() {
        for (lines, flags, grown_kib, syncs) in [
            ("", "", 65536, true),
            ("preAllocSize=16", "", 16, true),
            ("", "-Dzookeeper.preAllocSize=32", 32, true),
            ("forceSync=no", "", 65536, false),
            ("", "-Dzookeeper.forceSync=no -Dzookeeper.preAllocSize=8", 8, false),
            // What the file says is set last.
            ("preAllocSize=16\nforceSync=yes", "-Dzookeeper.forceSync=no", 16, true),
        ] {
            let disk = SimDisk::new();
            let options = log_options(&configured(lines, flags));
            let mut log = Log::new(disk.clone(), Path::new("/log"), options, None);
            let mut entry = [0; 40];
            entry[19] = 1;
            log.append(Zxid::from_wire(1).unwrap(), &entry);
            log.flush().unwrap();
            let file = disk.open(Path::new("/log/log.1")).unwrap();
            let len = disk.len(&file).unwrap();
            assert_eq!(len, 16 + grown_kib * 1024, "{lines} {flags}");
            assert_eq!(disk.counts().syncs > 0, syncs, "{lines} {flags}");
        }
    }

    // rows: C-117
    #[test]
    fn connections_wait_for_a_session_as_long_as_file_and_flags_say() {
        let limit_ms = |lines, flags| settings(&configured(lines, flags), 0).sessionless_timeout_ms;
        assert_eq!(limit_ms("", ""), 10_000);
        assert_eq!(limit_ms("nio.sessionlessCnxnTimeout=700", ""), 700);
        assert_eq!(limit_ms("", "-Dzookeeper.nio.sessionlessCnxnTimeout=800"), 800);
    }
}
