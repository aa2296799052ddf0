//! The settings of each part of a server, taken from its configuration.

use super::dial::DialTimeouts;
use super::sasl_exchange::SaslExchanges;
use super::settings::{EnsembleSettings, LogReadLimit, Settings};
use super::{election_address, election_connections};
use crate::config::{Config, Ensemble, SnapshotCompression, Throttle};
use crate::model::{ServerId, SessionId};
use crate::request::prep::Rules;
use crate::request::{Connects, Limits};
use crate::store::{LogOptions, Packing, RecoverOptions};
use crate::tree::Options;
use crate::{replica, zab};
use std::sync::Arc;
use std::time::Duration;

/// The server id of a standalone server, where one is needed.
const STANDALONE: ServerId = ServerId(1);
/// Number of times that Java dials a leader that refuses connections.
const CONNECT_TRIES: u32 = 5;

/// The settings of each part.
pub struct PartSettings {
    pub recovery: RecoverOptions,
    pub tree: Options,
    pub log: LogOptions,
    /// Without four-letter words and authentication schemes, which `admin` and `auth` know.
    pub limits: Limits,
    /// `None`: standalone.
    pub agreement: Option<zab::Settings>,
    pub replica: replica::Settings,
    pub member: Settings,
}

impl PartSettings {
    /// * `exchanges`: of the connections to other members. `seed`: of hashes and random numbers. `wall_ms`: time of
    ///   the start, since 1970.
    pub fn of(config: &Config, exchanges: Arc<dyn SaslExchanges>, seed: u64, wall_ms: i64) -> Self {
        Self {
            recovery: recovery(config),
            tree: tree(config, seed),
            log: log(config),
            limits: limits(config, seed),
            agreement: config.ensemble.as_ref().map(|ensemble| agreement(config, ensemble)),
            replica: replica(config, seed, wall_ms),
            member: member(config, exchanges),
        }
    }
}

const fn recovery(config: &Config) -> RecoverOptions {
    RecoverOptions {
        trust_empty: config.trust_empty_snapshot,
        autocreate: config.db_auto_create,
        running: false,
        is_member: config.ensemble.is_some(),
        forces_sync: config.force_sync,
    }
}

fn tree(config: &Config, seed: u64) -> Options {
    Options {
        seed,
        digest: config.digest_enabled,
        extended_types: config.extended_types_enabled,
        emulate_353: config.emulate_353_ttl_nodes,
    }
}

fn log(config: &Config) -> LogOptions {
    LogOptions {
        prealloc: config.pre_alloc_bytes,
        size_limit: config.txn_log_size_limit_bytes.unwrap_or(0),
        force_sync: config.force_sync,
    }
}

fn limits(config: &Config, seed: u64) -> Limits {
    let on = |number: u32| Some(u64::from(number)).filter(|&number| number > 0);
    Limits {
        frame_max: config.jute_max_buffer_bytes as usize,
        min_session_timeout_ms: config.min_session_timeout_ms,
        max_session_timeout_ms: config.max_session_timeout_ms,
        outstanding_max: u64::from(config.global_outstanding_limit),
        outstanding_bytes_max: u64::from(config.throttle.outstanding_bytes),
        requests_max: on(config.throttle.requests_max),
        op_wait_max_us: on(config.throttle.op_wait_ms).map(|ms| ms * 1000),
        drops_late: config.throttle.drops_stale && config.throttle.late_is_stale,
        large_from: config.large_request_threshold_bytes.map(|bytes| bytes as usize),
        large_bytes_max: u64::from(config.large_request_max_bytes),
        connects: connects(&config.throttle, seed),
        skip_acl: config.skip_acl,
        // A standalone server has applied what it acknowledges, and no other server acknowledges anything.
        linearizable_reads: config.linearizable_reads && config.ensemble.is_some(),
        ..Limits::default()
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

fn agreement(config: &Config, ensemble: &Ensemble) -> zab::Settings {
    zab::Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        init_limit: u64::from(ensemble.init_limit_ticks),
        sync_limit: u64::from(ensemble.sync_limit_ticks),
        always_sends_tree: ensemble.force_snapshot_sync,
        trees_max: ensemble.concurrent_snaps_max,
        differences_max: ensemble.concurrent_diffs_max,
        window_txns: config.commit_log_count as usize,
        lag_bytes_max: u64::from(config.throttle.lag_bytes),
        reconfigs: config.reconfig_enabled,
        relays: ensemble.observer_master_port.is_some(),
        resend_min_ms: ensemble.notification_interval_min_ms,
        resend_max_ms: ensemble.notification_interval_max_ms,
        observer_election_delay_ms: ensemble.observer_election_delay_ms,
        observer_reconnect_delay_ms: ensemble.observer_reconnect_delay_ms,
    }
}

fn replica(config: &Config, seed: u64, wall_ms: i64) -> replica::Settings {
    let my_id = config.ensemble.as_ref().map_or(STANDALONE, |ensemble| ensemble.my_id);
    replica::Settings {
        tick_time_ms: u64::from(config.tick_time_ms),
        first_session: SessionId::first(my_id, wall_ms).0,
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
        connect_hold_ms: u64::from(config.connect_hold_ms),
        read_only: config.ensemble.is_some() && config.read_only_mode_enabled,
        audits: config.audit_enabled,
        counter_max: replica::Settings::DEFAULT.counter_max,
        rules: Rules {
            enforces_quota: config.enforce_quota,
            reconfigs: config.reconfig_enabled,
            needs_two_voters: config.ensemble.as_ref().is_none_or(|of| of.standalone_enabled),
            many_addresses: config.ensemble.as_ref().is_some_and(|of| of.many_addresses),
            lists_closed: config.close_session_txn_enabled,
            entry_max: entry_max(config),
        },
        seed,
    }
}

fn member(config: &Config, exchanges: Arc<dyn SaslExchanges>) -> Settings {
    let ensemble = config.ensemble.as_ref().map(|ensemble| EnsembleSettings {
        my_id: ensemble.my_id,
        view: ensemble.view.clone(),
        decided: ensemble.view.clone(),
        own: ensemble.own().cloned(),
        election: election(ensemble, exchanges),
        listen_on_all_addresses: ensemble.listen_on_all_addresses,
        observer_master_port: ensemble.observer_master_port,
        backs_up_config: config.reconfig_enabled && ensemble.dynamic_file.is_none(),
        writes_config: config.reconfig_enabled,
        tracked_messages: ensemble.tracks_messages.then_some(ensemble.tracked_messages_max),
    });
    let log_read = LogReadLimit::Factor(config.snapshot_size_factor);
    Settings { ensemble, log_read }
}

fn election(
    ensemble: &Ensemble,
    exchanges: Arc<dyn SaslExchanges>,
) -> election_connections::Settings {
    let own = ensemble.own();
    let reach_timeout = reach_timeout(ensemble).filter(|_| ensemble.many_addresses);
    election_connections::Settings {
        me: ensemble.my_id,
        addresses: own.map(election_address).unwrap_or_default(),
        on_all_addresses: ensemble.listen_on_all_addresses,
        multi_address: ensemble.many_addresses,
        connect_timeout_ms: u64::from(ensemble.election_connect_timeout_ms),
        hello_timeout_ms: u64::from(ensemble.election_read_timeout_ms),
        reach_timeout_ms: reach_timeout.map(|timeout| timeout.as_millis() as u64),
        bind_tries_max: ensemble.election_bind_tries.unwrap_or(0),
        exchanges,
    }
}

/// How snapshots are written.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotStyle {
    /// `serializeLastProcessedZxid.enabled`.
    pub with_zxid: bool,
    pub packing: Packing,
}

impl SnapshotStyle {
    pub const fn of(config: &Config) -> Self {
        let packing = match config.snapshot_compression {
            SnapshotCompression::None => Packing::Plain,
            SnapshotCompression::Gzip => Packing::Gzip,
            SnapshotCompression::Snappy => Packing::Snappy,
        };
        Self { with_zxid: config.serialize_last_processed_zxid, packing }
    }
}

/// How long a leader is dialed.
pub fn patience(config: &Config, ensemble: &Ensemble) -> DialTimeouts {
    let silence_ms = u64::from(ensemble.connect_limit_ticks) * u64::from(config.tick_time_ms);
    DialTimeouts {
        silence: Duration::from_millis(silence_ms),
        refusals: Duration::from_millis(u64::from(ensemble.connect_retry_delay_ms)) * CONNECT_TRIES,
        others: reach_timeout(ensemble),
    }
}

/// Limit on an entry of the log, and on what a packet between leader and learner brings: `jute.maxbuffer` and its `extrasize`
/// together.
pub const fn entry_max(config: &Config) -> usize {
    config.jute_max_buffer_bytes as usize + config.jute_max_buffer_extra_bytes as usize
}

/// The time after which one of several addresses counts as unreachable; `None`: never.
fn reach_timeout(ensemble: &Ensemble) -> Option<Duration> {
    let timeout = Duration::from_millis(u64::from(ensemble.reachability_timeout_ms));
    ensemble.reachability_check.then_some(timeout)
}
