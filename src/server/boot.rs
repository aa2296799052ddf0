//! Starts a server from its configuration, and shuts it down.

use super::admin_server::HttpEnd;
use super::audit_log::{AuditLog, AuditQueue};
use super::client_ports::Ports;
use super::clock::Clock;
use super::data_dir_lock::DataDirLock;
use super::driver::{Driver, Loader, Parts};
use super::error::ServerError;
use super::inbox::Inbox;
use super::load_tree::{self, RestoreError, Restored, Restorer};
use super::metrics_port::HttpPorts;
use super::quorum_sasl::exchanges;
use super::ready::Ready;
use super::report::FourLetterWords;
use super::role_log::Roles;
use super::service_manager::ServiceManager;
use super::shared_driver::{LogReports, SharedDriver};
use super::tls::Tls;
use super::{client_schemes, member, pause_monitor, purging, snapshots, stop};
use crate::admin::Word;
use crate::config::sasl::Login;
use crate::config::{Audit, Config, Ensemble};
use crate::member::configured::{PartSettings, SnapshotStyle};
use crate::member::sasl_exchange::SaslExchanges;
use crate::member::start::{RestoredHistory, Started, assemble};
use crate::member::{Ended, Now};
use crate::metrics::Registry;
use crate::model::{AuditResult, AuditedOperation, chain};
use crate::net::{ClientPorts, ServerHandles, Sink, WordAnswer};
use crate::request::Shared;
use crate::store::decide::Start;
use crate::store::log_folder;
use crate::store::log_thread::{self, LogQueue, LogThread};
use crate::store::quarantine;
use crate::store::recover::{self, RecoverError};
use crate::store::start::{self, StartError};
use crate::store::{FailStop, Folders, Log, RealDisk, RecoverOptions, Recovered};
use crate::tree::freeze::Frozen;
use crate::tree::{Options, Tree};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

type Disk = FailStop<RealDisk>;

/// Serves until TERM or INT, or until the disk fails.
///
/// * `seed`: of hash tables and random choices.
/// * `manager`: notified when the server has started, and when it stops.
/// * `ready`: called once clients are served, with the address.
///
/// # Errors
/// [`ServerError`] with the process's exit code.
pub async fn run(
    config: Config,
    seed: u64,
    manager: ServiceManager,
    ready: impl FnOnce(&Ready),
) -> Result<(), ServerError> {
    super::limits::raise_open_files();
    super::limits::survive_file_limit()?;
    let audit = Audit::of(&config).map(|audit| AuditLog::start(&audit, principal(&config)));
    let audit = audit.transpose()?;
    let queue = audit.as_ref().map(AuditLog::queue);
    let mut is_started = false;
    let served = serve(config, seed, queue.clone(), manager.clone(), |state| {
        is_started = true;
        ready(state);
        manager.started();
        queue.inspect(|queue| queue.put_own(AuditedOperation::ServerStart, AuditResult::Success));
    });
    let served = served.await;
    if let Some(audit) = audit {
        audit.end_server(served.is_ok() || is_started);
    }
    served
}

async fn serve(
    config: Config,
    seed: u64,
    audit: Option<AuditQueue>,
    manager: ServiceManager,
    ready: impl FnOnce(&Ready),
) -> Result<(), ServerError> {
    let (clock, metrics) = (Clock::start(), Arc::new(Registry::default()));
    let (tls, ports) = open_ports(&config, &metrics)?;
    let http = HttpPorts::open(&config, &tls.http)?;
    let folders = Folders::new(&config.data_dir, &config.data_log_dir);
    let (disk, exchanges) = (FailStop::new(RealDisk), exchanges(&config)?);
    let parts = part_settings(&config, exchanges.clone(), seed, clock)?;
    let RestoredData { lock: _lock, tree, recovered, history, has_data } =
        restore(&disk, &folders, &config, &metrics, &parts)?;
    let state = Ready::new(&ports, &config, &tree, &recovered, clock);
    let (options, recovery) = (parts.tree, parts.recovery);
    let now = Now { us: clock.now_us(), wall_ms: clock.wall_ms() };
    let started = assemble(&disk, &folders, &config, parts, tree, history, now)?;
    let purging = purge_and_note(&folders, &config, &recovered, options.seed)?;
    let started =
        started.take_first_snapshot(&disk, &folders, &recovered, now, |shared, frozen| {
            write_first_snapshot(&disk, &folders, &config, &metrics, shared, frozen)
        })?;
    recover::consume_initialize(&disk, &folders)
        .map_err(|source| ServerError::System { what: "remove the file initialize", source })?;
    let Started { member, shared, log, actions } = started;
    audit.as_ref().inspect(|audit| audit.slow_down(&shared));

    let loader = loader(&disk, &folders, recovery, options);
    let (inbox, queue) = (Arc::<Inbox>::default(), LogQueue::default());
    let (client_ports, moves) = mpsc::unbounded_channel();
    let peers = member::connect(&config, &shared, options, exchanges, tls.servers.clone(), &inbox)?;
    let roles = config.ensemble.is_some().then(|| Roles::new(metrics.clone(), has_data));
    let parts = Parts {
        member,
        shared: shared.clone(),
        inbox: inbox.clone(),
        log: queue.clone(),
        disk: disk.clone(),
        folders: folders.clone(),
        snapshot_style: SnapshotStyle::of(&config),
        metrics: metrics.clone(),
        clock,
        peers,
        roles,
        client_ports,
        loader,
        audit,
    };
    let driver = SharedDriver::new(Driver::new(parts, actions), inbox.clone(), clock.epoch);
    let driver = Arc::new(driver);
    let log_thread = start_log(queue, &disk, log, &folders, &config, driver.clone())?;
    pause_monitor::start(config.pause_monitor, &inbox, &metrics);
    let words = words_of(config, &shared, metrics.clone(), inbox.clone(), clock, &ports);
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    http.start(&words, &metrics, &HttpEnd { stop: stop.clone(), tasks: tasks.clone() })?;
    let server = connection(words, metrics, inbox.clone(), clock);
    let stop_signal = stop::on_signal(inbox, stop.clone(), manager)?;
    let accepting =
        ports.accept(ClientPorts { shared: shared.clone(), server, tasks, stop }, moves);
    let _watching = tls.watch();
    let driving = tokio::spawn(async move { driver.run().await });
    ready(&state);
    let ended = driving.await.map_err(io::Error::other);
    drop(log_thread);
    stop_signal.abort();
    purging.inspect(tokio::task::JoinHandle::abort);
    finish(ended, accepting, &shared).await
}

fn part_settings(
    config: &Config,
    exchanges: Arc<dyn SaslExchanges>,
    seed: u64,
    clock: Clock,
) -> Result<PartSettings, ServerError> {
    let mut parts = PartSettings::of(config, exchanges, seed, clock.wall_ms());
    (parts.limits.words, parts.limits.schemes) = (words(), client_schemes::schemes(config));
    parts.limits.sasl = client_schemes::mechanisms(config)?;
    Ok(parts)
}

fn write_first_snapshot(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    metrics: &Registry,
    shared: &Shared,
    frozen: Frozen,
) -> Result<(), ServerError> {
    let (began, style) = (std::time::Instant::now(), SnapshotStyle::of(config));
    let draft = snapshots::draft(disk, &folders.snapshots, shared, frozen, style, false)?;
    draft.map(|draft| draft.place(disk)).transpose()?;
    metrics.snapshottime.record(began.elapsed().as_millis() as i64);
    Ok(())
}

/// The stores are read and the ports bound before the data is loaded, so that what is wrong there is reported at once.
fn open_ports(config: &Config, metrics: &Arc<Registry>) -> Result<(Tls, Ports), ServerError> {
    let tls = Tls::start(config, metrics)?;
    let ports = Ports::bind(config, tls.clients.as_ref())?;
    Ok((tls, ports))
}

/// Ends the server after the driver: an error if the disk failed, else connections get their last replies.
async fn finish(
    ended: io::Result<Ended>,
    accepting: tokio::task::JoinHandle<io::Result<TaskTracker>>,
    shared: &Shared,
) -> Result<(), ServerError> {
    let ended = ended.map_err(|source| ServerError::System { what: "run the driver", source })?;
    if let Ended::Failed { reason, exit, cause } = ended {
        return Err(ServerError::Failed { reason, exit, cause });
    }
    if let Ok(Ok(tasks)) = accepting.await {
        stop::close_connections(shared, &tasks).await;
    }
    Ok(())
}

/// What answers four-letter words and HTTP commands.
fn words_of(
    config: Config,
    shared: &Arc<Shared>,
    metrics: Arc<Registry>,
    inbox: Arc<Inbox>,
    clock: Clock,
    ports: &Ports,
) -> Arc<FourLetterWords> {
    let (port, secure) = (ports.plain_port.clone(), ports.secure_address());
    let secure = secure.map(|address| address.port());
    let shared = shared.clone();
    Arc::new(FourLetterWords::new(config, shared, metrics, inbox, clock, port, secure))
}

/// What client connections need: where their commands go, and what answers four-letter words.
fn connection(
    four_letter_words: Arc<FourLetterWords>,
    metrics: Arc<Registry>,
    inbox: Arc<Inbox>,
    clock: Clock,
) -> ServerHandles {
    let commands = Sink::new(move |command| inbox.put_command(command));
    let words = Arc::new(move |asked| -> Pin<Box<dyn Future<Output = WordAnswer> + Send>> {
        let four_letter_words = four_letter_words.clone();
        Box::pin(async move { four_letter_words.answer(asked).await })
    });
    ServerHandles { commands, words, metrics, epoch: clock.epoch }
}

/// The principal of this server in the JAAS file, by which the audit log names it.
fn principal(config: &Config) -> Option<String> {
    match &config.client_sasl.as_ref()?.login {
        Login::Kerberos(login) => login.principal.clone(),
        Login::Digest(_) => None,
    }
}

fn start_error(error: StartError<RestoreError>, is_member: bool) -> ServerError {
    match error {
        StartError::Recover(error) => ServerError::Recover { source: error, is_member },
        StartError::Epoch(error) => ServerError::Epoch(error),
        StartError::Unsure { mark } => ServerError::Unsure { mark },
        StartError::Disk { what, source } => ServerError::System { what, source },
    }
}

/// What a start has locked and loaded.
pub struct RestoredData {
    /// Kept until the server ends: no other server may use the data directory.
    lock: DataDirLock,
    tree: Tree,
    pub recovered: Recovered,
    pub history: RestoredHistory,
    /// Whether data was there, which need not count.
    has_data: bool,
}

/// Creates the data folders if need be, locks them, and loads what is in them.
pub fn restore(
    disk: &Disk,
    folders: &Folders,
    config: &Config,
    metrics: &Registry,
    parts: &PartSettings,
) -> Result<RestoredData, ServerError> {
    recover::prepare_folders(disk, folders, config.data_dir_auto_create)
        .map_err(|error| ServerError::Folders(Box::new(error)))?;
    let lock = DataDirLock::acquire(&folders.snapshots, &folders.logs)?;
    let mut restorer = restorer(config, parts.tree);
    let began = std::time::Instant::now();
    let found = start::restore(disk, folders, parts.recovery, &mut restorer, || began.elapsed())
        .map_err(|error| start_error(error, config.ensemble.is_some()))?;
    let has_data = found.was_quarantined || found.recovered.start != Start::Unsure;
    let recovered = found.recovered;
    let Restored { tree, comparison, .. } = restorer.finish();
    metrics.digest_mismatches_count.add(comparison.mismatches);
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
        snapshot_zxid = recovered.snapshot.map(|(zxid, _)| display(zxid)),
        txns = recovered.txns,
        took_ms = began.elapsed().as_millis() as u64,
        "data loaded"
    );
    if !has_data && config.ensemble.is_some() {
        warn_of_no_data(disk, folders);
    }
    load_tree::warn_of_large_znodes(&tree, config.jute_max_buffer_bytes as usize);
    let history = RestoredHistory::judge(disk, folders, recovered.last, comparison);
    if !history.fits_digests && config.ensemble.as_ref().is_some_and(Ensemble::has_other_voters) {
        tracing::error!(
            mismatches = comparison.mismatches,
            "the data does not match the digests in its log: this server votes for no server until \
             a leader has sent its tree, or until no server has led for initLimit; compare the \
             znodes of the members"
        );
    }
    Ok(RestoredData { lock, tree, recovered, history, has_data })
}

/// Starts the purging, and notes the log folder: not before the start, which the note of the last one may refuse, and after the first purge,
/// since on a full disk the note needs the room.
fn purge_and_note(
    folders: &Folders,
    config: &Config,
    recovered: &Recovered,
    start: u64,
) -> Result<Option<JoinHandle<()>>, ServerError> {
    let purging = purging::start(config, folders, &recovered.skipped);
    // What fails here says nothing of the disk of a server that ends at its first error.
    log_folder::note(&RealDisk, folders, start).map_err(|source| {
        let path = folders.snapshots.clone();
        ServerError::Folders(Box::new(RecoverError::NotWritable { path, source }))
    })?;
    Ok(purging)
}

/// Says why a member without data does not vote, and what to do: less if its data was quarantined once.
fn warn_of_no_data(disk: &Disk, folders: &Folders) {
    let path = recover::initialize_path(folders);
    let path = path.display();
    if quarantine::has_quarantined(disk, folders) {
        tracing::warn!(
            "this server has no data but damaged.*, and db.autocreate=false: it does not vote until a leader has sent its tree; nothing \
             to do while a majority of the other members runs"
        );
    } else {
        tracing::warn!(
            %path,
            "this server has no data, and db.autocreate=false: it does not vote until a leader has sent its tree; nothing to do unless the \
             ensemble is new: then make the empty file initialize on each server, and start them again"
        );
    }
}

fn restorer(config: &Config, options: Options) -> Restorer {
    let restorer = Restorer::new(options);
    if config.ensemble.is_some() { restorer.keep_orphans() } else { restorer }
}

/// Loads the tree from disk again after the log was truncated below the tree's last zxid.
pub fn loader(
    disk: &Disk,
    folders: &Folders,
    recovery: RecoverOptions,
    options: Options,
) -> Arc<Loader> {
    let (disk, folders, wanted) = (disk.clone(), folders.clone(), recovery.while_running());
    Arc::new(move || {
        let mut restorer = Restorer::new(options).keep_orphans();
        let began = std::time::Instant::now();
        recover::recover(&disk, &folders, wanted, &mut restorer, move || began.elapsed())
            .map_err(|error| format!("load the tree again: {}", chain(&error)))?;
        let Restored { tree, comparison, .. } = restorer.finish();
        Ok((tree, comparison))
    })
}

/// First four bytes of a connection that are a four-letter word, not the length of a frame.
fn words() -> Vec<[u8; 4]> {
    let words = Word::ALL.iter().filter_map(|word| word.name().as_bytes().first_chunk().copied());
    // Telnet sends these bytes when its user interrupts it: no four-letter word, but no frame either (W-08).
    words.chain([[0xff, 0xf4, 0xff, 0xfd]]).collect()
}

fn start_log(
    queue: LogQueue,
    disk: &Disk,
    log: Log<Disk>,
    folders: &Folders,
    config: &Config,
    driver: Arc<SharedDriver<Disk>>,
) -> Result<LogThread, ServerError> {
    let slow_after = Duration::from_millis(config.fsync_warning_threshold_ms);
    let reports = LogReports { driver, runtime: Handle::current() };
    log_thread::spawn(queue, disk.clone(), log, &folders.snapshots, slow_after, reports)
        .map_err(|source| ServerError::Thread { what: "the log thread", source })
}
