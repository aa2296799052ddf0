//! From a configuration to a serving server, and to its end.

use super::clock::{self, Clock};
use super::driver::{Driver, Ended, Event, chain};
use super::report::Desk;
use super::restore::{RestoreError, Restored, Restorer};
use super::snapshots;
use crate::admin::{EnvironmentInfo, Word};
use crate::auth::Schemes;
use crate::config::Config;
use crate::metrics::Registry;
use crate::model::ServerId;
use crate::net::{Link, ListenError, Listener};
use crate::replica::{Replica, Settings};
use crate::request::{Command, Conns, Limits, Shared};
use crate::store::decide::Start;
use crate::store::recover::{self, RecoverError};
use crate::store::{
    FailStop, Folders, Log, LogOptions, RealDisk, RecoverOptions, Recovered, SnapshotError, purge,
    worker,
};
use crate::tree::{Options, State, Tree};
use crate::zab::{Leader, Majority};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

type Disk = FailStop<RealDisk>;

/// A standalone server's number, where one is needed.
const STANDALONE: ServerId = ServerId(1);

/// Why a server did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("prepare data directories")]
    Folders(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("restore the data")]
    Recover(#[source] Box<RecoverError<RestoreError>>),
    #[error("write the first snapshot")]
    Snapshot(#[from] SnapshotError),
    #[error("{what}")]
    System { what: &'static str, source: io::Error },
    #[error("{reason}")]
    Failed { reason: String, exit: u8 },
}

impl ServerError {
    /// The process's exit code, from Java's list (P-87).
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Listen(_) => 14,
            Self::Folders(_) => 3,
            Self::Snapshot(_) => 10,
            Self::Failed { exit, .. } => *exit,
            Self::Recover(_) | Self::System { .. } => 1,
        }
    }

    /// The whole story on one line.
    pub fn line(&self) -> String {
        chain(self)
    }
}

/// Serves until TERM or INT, or until the disk fails.
///
/// * `seed`: of hashes and of what is drawn at random.
/// * `ready`: called once clients are served, with the address.
///
/// # Errors
/// [`ServerError`] with the process's exit code.
pub async fn run(
    config: Config,
    seed: u64,
    ready: impl FnOnce(std::net::SocketAddr),
) -> Result<(), ServerError> {
    let clock = Clock::start();
    super::limits::raise_open_files();
    // Bound before the data is loaded: a port in use must be known at once.
    let listener = Listener::bind(&config)?;
    let client_port = listener.address.port();
    let folders = Folders::new(&config.data_dir, &config.data_log_dir);
    let disk = FailStop::new(RealDisk);
    let metrics = Arc::new(Registry::default());
    let (tree, recovered) = restore(&disk, &folders, &config, &metrics, seed)?;

    let last = tree.last_zxid();
    let options = LogOptions {
        prealloc: config.pre_alloc_bytes,
        size_limit: config.txn_log_size_limit_bytes.unwrap_or(0),
        force_sync: config.force_sync,
    };
    let log = Log::new(disk.clone(), &folders.logs, options, Some(last));
    let shared = Arc::new(Shared {
        state: State::new(tree, seed),
        conns: Conns::default(),
        limits: limits(&config),
        clock_ms: Default::default(),
    });
    let leader = Leader::new(STANDALONE, Majority::new([STANDALONE]), last);
    let mut replica =
        Replica::standalone(shared.clone(), leader, settings(&config, seed), clock.now_ms());
    let mut actions = Vec::new();
    first_snapshot(&disk, &folders, &config, &shared, &recovered, &mut replica, &mut actions)?;

    let purging = start_purging(&config, &folders);
    let (command_sender, commands) = mpsc::unbounded_channel();
    let (sender, events) = mpsc::unbounded_channel();
    let log = start_log(&disk, log, &folders, &config, sender.clone())?;
    let driver = Driver {
        replica,
        shared: shared.clone(),
        commands,
        events,
        sender: sender.clone(),
        log,
        disk,
        folders,
        snapshot_style: snapshots::Style::of(&config),
        metrics: metrics.clone(),
        clock,
    };
    let link = link(config, &shared, metrics, command_sender, sender.clone(), clock, client_port);
    let address = listener.address;
    let stop = CancellationToken::new();
    let accepting = tokio::spawn(listener.run(shared, link, stop.clone()));
    let stop_signal = stop_on_signal(sender, stop)?;
    let driving = tokio::spawn(driver.run(actions));
    ready(address);
    let ended = driving.await.map_err(|error| ServerError::System {
        what: "run the driver",
        source: io::Error::other(error),
    })?;
    stop_signal.abort();
    purging.inspect(tokio::task::JoinHandle::abort);
    accepting.abort();
    match ended {
        Ended::Stopped => Ok(()),
        Ended::Failed { reason, exit } => Err(ServerError::Failed { reason, exit }),
    }
}

/// What connections need: where commands go, and a desk that answers words.
fn link(
    config: Config,
    shared: &Arc<Shared>,
    metrics: Arc<Registry>,
    commands: mpsc::UnboundedSender<Command>,
    events: mpsc::UnboundedSender<Event>,
    clock: Clock,
    client_port: u16,
) -> Link {
    let user_dir =
        std::env::current_dir().map_or_else(|_| String::new(), |dir| dir.display().to_string());
    let environment = EnvironmentInfo { user_dir, ..EnvironmentInfo::default() };
    let (shared, desk_metrics) = (shared.clone(), metrics.clone());
    let desk = Arc::new(Desk {
        config,
        shared,
        metrics: desk_metrics,
        events,
        clock,
        client_port,
        environment,
    });
    let words = Arc::new(move |word, _peer| -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        let desk = desk.clone();
        Box::pin(async move { desk.answer(word).await })
    });
    Link { commands, words, metrics, epoch: clock.epoch }
}

fn restore(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    metrics: &Registry,
    seed: u64,
) -> Result<(Tree, Recovered), ServerError> {
    recover::prepare_folders(disk, folders, config.data_dir_auto_create)
        .map_err(|error| ServerError::Folders(Box::new(error)))?;
    let options = Options {
        seed,
        digest: config.digest_enabled,
        extended_types: config.extended_types_enabled,
    };
    let wanted = RecoverOptions {
        trust_empty: config.trust_empty_snapshot,
        autocreate: config.db_auto_create,
    };
    let mut restorer = Restorer::new(options);
    let began = std::time::Instant::now();
    let recovered = recover::recover(disk, folders, wanted, &mut restorer, move || began.elapsed())
        .map_err(|error| ServerError::Recover(Box::new(error)))?;
    for skipped in &recovered.skipped {
        tracing::warn!(file = %skipped.path.display(), why = ?skipped.why, "file not used");
    }
    let Restored { tree, digest_mismatches, .. } = restorer.finish();
    metrics.digest_mismatches_count.add(digest_mismatches);
    metrics.dbinittime.record(began.elapsed().as_millis() as i64);
    metrics.startup_txns_loaded.record(recovered.txns as i64);
    metrics.startup_snap_load_time.record(recovered.snapshot_took.as_millis() as i64);
    metrics.startup_txns_load_time.record(recovered.replay_took.as_millis() as i64);
    tracing::info!(
        zxid = %tree.last_zxid(),
        znodes = tree.node_count(),
        sessions = tree.sessions().len(),
        snapshot = ?recovered.snapshot,
        txns = recovered.txns,
        ms = began.elapsed().as_millis() as u64,
        "data restored"
    );
    Ok((tree, recovered))
}

/// A fresh directory gets its `snapshot.0` before anybody is served; otherwise one is taken beside the work if
/// there is anything new to keep (D-33, D-60).
fn first_snapshot(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    shared: &Shared,
    recovered: &Recovered,
    replica: &mut Replica,
    actions: &mut Vec<crate::replica::Action>,
) -> Result<(), ServerError> {
    let consume = || {
        recover::consume_initialize(disk, folders)
            .map_err(|source| ServerError::System { what: "remove file initialize", source })
    };
    if recovered.start == Start::Empty {
        let frozen = shared.state.tree.write().freeze();
        if let Some(frozen) = frozen {
            let style = snapshots::Style::of(config);
            let written = snapshots::write(disk, &folders.snapshots, shared, frozen, style, false);
            shared.state.tree.write().thaw();
            written?;
        }
        consume()?;
        return Ok(());
    }
    consume()?;
    let last = shared.state.tree.read().last_zxid();
    if recovered.snapshot.is_none_or(|(zxid, _)| zxid != last) {
        replica.snapshot(actions);
    }
    Ok(())
}

fn limits(config: &Config) -> Limits {
    let words = Word::ALL.iter().filter_map(|word| word.name().as_bytes().first_chunk().copied());
    Limits {
        frame_max: config.jute_max_buffer_bytes as usize,
        min_session_timeout_ms: i32::try_from(config.min_session_timeout_ms).unwrap_or(i32::MAX),
        max_session_timeout_ms: i32::try_from(config.max_session_timeout_ms).unwrap_or(i32::MAX),
        outstanding_max: u64::from(config.global_outstanding_limit),
        skip_acl: config.skip_acl,
        schemes: Schemes {
            digest: config.digest_auth_enabled || config.providers.digest,
            algorithm: config.digest_algorithm,
            super_digest: config.super_digest.clone(),
            ensemble: config.providers.ensemble,
            ensemble_names: config.ensemble_names.clone(),
            key: config.providers.key,
        },
        // What telnet sends when its user closes it is no word, but no frame either (W-08).
        words: words.chain([[0xff, 0xf4, 0xff, 0xfd]]).collect(),
    }
}

fn settings(config: &Config, seed: u64) -> Settings {
    Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        first_session: clock::first_session(STANDALONE.0),
        snap_count: u64::from(config.snap_count),
        snap_size_bytes: config.snap_size_limit_bytes.unwrap_or(0),
        sessionless_timeout_ms: u64::from(config.sessionless_cnxn_timeout_ms),
        container_check_interval_ms: u64::from(config.container_check_interval_ms),
        container_max_per_minute: u64::from(config.container_max_per_minute),
        container_max_never_used_ms: config.container_max_never_used_ms,
        enforce_quota: config.enforce_quota,
        seed,
    }
}

fn start_log(
    disk: &Disk,
    log: Log<Disk>,
    folders: &Folders,
    config: &Config,
    sender: mpsc::UnboundedSender<Event>,
) -> Result<worker::WorkerHandle, ServerError> {
    let slow_after = Duration::from_millis(config.fsync_warning_threshold_ms);
    let report = move |event| {
        let event = match event {
            worker::Event::Flushed(report) => Event::Flushed(report),
            worker::Event::Failed(error) => Event::Failed {
                reason: format!("the log's disk failed: {}", chain(&error)),
                exit: 1,
            },
            // Only members of an ensemble truncate and keep epochs.
            worker::Event::Truncated { .. } | worker::Event::EpochSaved { .. } => return,
        };
        let _stopped = sender.send(event);
    };
    worker::spawn(disk.clone(), log, &folders.snapshots, slow_after, report)
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

fn stop_on_signal(
    sender: mpsc::UnboundedSender<Event>,
    stop: CancellationToken,
) -> Result<tokio::task::JoinHandle<()>, ServerError> {
    let fail = |source| ServerError::System { what: "listen for signals", source };
    let mut term = signal(SignalKind::terminate()).map_err(fail)?;
    let mut int = signal(SignalKind::interrupt()).map_err(fail)?;
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("stopping: what is under way is finished, sessions stay for the next start");
        stop.cancel();
        let _stopped = sender.send(Event::Stop);
    }))
}
