//! The settings that Java reads as system properties, wherever it needs them.

use super::admin_server;
use super::checker::Checker;
use super::file_settings::FileSettings;
use super::log_output::{LogFile, Rolling};
use super::property_reader::{INT, LONG, POSITIVE_INT, Reader, kilobytes};
use super::system_properties::{Property, SystemProperties, as_written, double};
use super::{
    Config, SnapshotCompression, Warning, Whitelist, auth_providers, metrics_provider, throttle,
};
use crate::model::DigestAlgorithm;
use std::path::PathBuf;
use tracing::level_filters::LevelFilter;

/// `snapshotSizeFactor` unless set.
const SNAPSHOT_SIZE_FACTOR: f64 = 0.33;

const PRE_ALLOC: &str = "zookeeper.preAllocSize";
const COMPRESSION: &str = "zookeeper.snapshot.compression.method";
const ENSEMBLE_NAMES: &str = "zookeeper.ensembleAuthName";
const DIGEST_ALGORITHM: &str = "zookeeper.DigestAuthenticationProvider.digestAlg";

const CNXN_FACTORIES: [&str; 2] = [
    "org.apache.zookeeper.server.NIOServerCnxnFactory",
    "org.apache.zookeeper.server.NettyServerCnxnFactory",
];

const WATCH_MANAGERS: [&str; 2] = [
    "org.apache.zookeeper.server.watch.WatchManager",
    "org.apache.zookeeper.server.watch.WatchManagerOptimized",
];

const AUDIT_LOGGER: &str = "org.apache.zookeeper.audit.Slf4jAuditLogger";

/// Refuses properties that name a class or an algorithm that this server does not have.
pub(super) fn refuse_unknown_names(checker: &mut Checker, system: &mut SystemProperties) {
    if let Some(factory) = system.take("zookeeper.serverCnxnFactory")
        && !CNXN_FACTORIES.contains(&factory.value.as_str())
    {
        let text = format!("serverCnxnFactory={} is not known here; remove it", factory.value);
        checker.problem(&factory.place, text);
    }
    if let Some(manager) = system.take("zookeeper.watchManagerName")
        && !WATCH_MANAGERS.contains(&manager.value.as_str())
    {
        let text = format!("watchManagerName={} is not known here; remove it", manager.value);
        checker.problem(&manager.place, text);
    }
    if let Some(provider) = system.take("zookeeper.ssl.sslProvider")
        && !["JDK", "OPENSSL", "OPENSSL_REFCNT"].contains(&provider.value.as_str())
    {
        let text = format!("ssl.sslProvider={} is not known here; remove it", provider.value);
        checker.problem(&provider.place, text);
    }
    if let Some(class) = system.take("zookeeper.audit.impl.class")
        && class.value != AUDIT_LOGGER
    {
        let text = format!(
            "audit.impl.class={} names a Java class, which can't be loaded here; remove it",
            class.value
        );
        checker.problem(&class.place, text);
    }
    if let Some(algorithm) = system.take(DIGEST_ALGORITHM) {
        if DigestAlgorithm::named(&algorithm.value).is_none() {
            let text = format!(
                "DigestAuthenticationProvider.digestAlg={} is not known here; name one such as SHA1, SHA-256 or SHA3-256",
                algorithm.value
            );
            checker.problem(&algorithm.place, text);
        }
        system.set(DIGEST_ALGORITHM, &algorithm.value, algorithm.place);
    }
}

/// Reads every system property that sets a field, and joins them with the settings of the file.
///
/// Nothing here is a problem: as in Java, the default takes the place of a value that can't be used,
/// but with a warning.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    from_file: FileSettings,
) -> Config {
    let force_sync =
        !takes_word(checker, system, "forceSync", "no", "acknowledged writes can be lost");
    let skip_acl = takes_word(checker, system, "skipACL", "yes", "ACLs are not checked");
    let snapshot_size_factor = take_size_factor(checker, system);
    let mut from = Reader::new(system, &mut checker.warnings);
    let read_only_mode_enabled = from.flag("readonlymode.enabled", false);
    let (jute_max, jute_extra) = frame_sizes(&mut from);
    let ((audit_enabled, audit_file), admin) = (audit(&mut from), admin_server::take(&mut from));
    Config {
        client_tls: None,
        quorum_tls: None,
        client_sasl: None,
        sasl_rules: crate::config::sasl::SaslRules::default(),
        quorum_sasl: None,
        data_dir: from_file.data_dir,
        data_log_dir: from_file.data_log_dir,
        client_host: from_file.client_host,
        client_port: from_file.client_port,
        client_port_listen_backlog: from_file.client_port_listen_backlog,
        tick_time_ms: from_file.tick_time_ms,
        min_session_timeout_ms: from_file.min_session_timeout_ms,
        max_session_timeout_ms: from_file.max_session_timeout_ms,
        max_client_cnxns: from_file.max_client_cnxns,
        purge_snap_retain_count: from_file.purge_snap_retain_count,
        purge_interval_hours: from_file.purge_interval_hours,
        pause_monitor: from_file.pause_monitor,
        max_cnxns: from.number("zookeeper.maxCnxns", INT, 0).max(0) as u32,
        client_tcp_keep_alive: from.flag("zookeeper.clientTcpKeepAlive", false),
        sessionless_cnxn_timeout_ms: from.int("zookeeper.nio.sessionlessCnxnTimeout", 10_000),
        global_outstanding_limit: from.int("zookeeper.globalOutstandingLimit", 1000),
        large_request_threshold_bytes: from.positive("zookeeper.largeRequestThreshold"),
        large_request_max_bytes: from.int("zookeeper.largeRequestMaxBytes", 100 << 20),
        throttle: throttle::take(&mut from),
        jute_max_buffer_bytes: jute_max as u32,
        jute_max_buffer_extra_bytes: jute_extra.max(1024) as u32,
        four_letter_words: from.words(read_only_mode_enabled),
        skip_acl,
        reconfig_enabled: from_file.reconfig_enabled,
        metrics: metrics_provider::with_stand_ins(from_file.metrics, &mut from),
        enforce_quota: from.flag("zookeeper.enforceQuota", false),
        digest_auth_enabled: from.flag("zookeeper.DigestAuthenticationProvider.enabled", true),
        super_digest: from.text("zookeeper.DigestAuthenticationProvider.superDigest"),
        digest_algorithm: from.named(DIGEST_ALGORITHM, DigestAlgorithm::named),
        providers: auth_providers::Providers::default(),
        ensemble_names: from.named(ENSEMBLE_NAMES, |it| Some(Some(auth_providers::names(it)))),
        extended_types_enabled: from.flag("zookeeper.extendedTypesEnabled", false),
        emulate_353_ttl_nodes: from.flag("zookeeper.emulate353TTLNodes", false),
        container_check_interval_ms: from.int("znode.container.checkIntervalMs", 60_000),
        container_max_per_minute: from.int("znode.container.maxPerMinute", 10_000),
        container_max_never_used_ms: from.long("znode.container.maxNeverUsedIntervalMs", 0),
        read_only_mode_enabled,
        quorum_sync: from.flag("oxkeeper.quorumSync", false),
        connect_hold_ms: from.number("oxkeeper.connectHold", 0..=i64::from(i32::MAX), 500) as u32,
        linearizable_reads: from.flag("oxkeeper.linearizableReads", false),
        snap_count: from.at_least("zookeeper.snapCount", 2, 100_000),
        snap_size_limit_bytes: from.kilobytes("zookeeper.snapSizeLimitInKb", 4 << 20),
        txn_log_size_limit_bytes: from.kilobytes("zookeeper.txnLogSizeLimitInKb", -1),
        pre_alloc_bytes: kilobytes(from.decimal(PRE_ALLOC, LONG, 65_536)).unwrap_or(0),
        force_sync,
        fsync_warning_threshold_ms: from.fsync_warning_ms(),
        commit_log_count: from.decimal("zookeeper.commitLogCount", INT, 500).max(500) as u32,
        snapshot_size_factor,
        trust_empty_snapshot: from.flag("zookeeper.snapshot.trust.empty", false),
        snapshot_compression: from.compression(),
        data_dir_auto_create: from.flag("zookeeper.datadir.autocreate", true),
        db_auto_create: from.flag("zookeeper.db.autocreate", true),
        digest_enabled: from.flag("zookeeper.digest.enabled", true),
        close_session_txn_enabled: from.flag("zookeeper.closeSessionTxn.enabled", true),
        serialize_last_processed_zxid: from
            .flag("zookeeper.serializeLastProcessedZxid.enabled", true),
        jaas_file: None,
        krb5_conf: from.path("java.security.krb5.conf"),
        audit_enabled,
        audit_file,
        admin,
        probes: from.flag("oxkeeper.admin.probes", true),
        ensemble: None,
        warnings: Vec::new(),
    }
}

/// `jute.maxbuffer` and its `extrasize`.
fn frame_sizes(from: &mut Reader<'_>) -> (i64, i64) {
    let jute_max = from.number("jute.maxbuffer", POSITIVE_INT, 0xf_ffff);
    (jute_max, from.number("zookeeper.jute.maxbuffer.extrasize", INT, jute_max))
}

/// Whether there is an audit log, and its file, which rolls as the `logback.xml` that comes with ZooKeeper has it.
pub(super) fn audit(from: &mut Reader<'_>) -> (bool, Option<LogFile>) {
    let log_dir = from.text("zookeeper.log.dir").unwrap_or_else(|| ".".to_owned());
    let file = from.text("zookeeper.auditlog.file").filter(|name| !name.is_empty());
    let file = file.map(|name| {
        let path = PathBuf::from(log_dir).join(name);
        let rolling = Some(Rolling::beside(&path, 10 << 20, 10));
        LogFile { path, threshold: LevelFilter::TRACE, rolling }
    });
    (from.flag("zookeeper.audit.enable", false), file)
}

impl Reader<'_> {
    /// A path that is not empty.
    fn path(&mut self, key: &str) -> Option<PathBuf> {
        self.text(key).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// The name may be in any case, and any other name means none.
    fn compression(&mut self) -> SnapshotCompression {
        let Some(Property { value, place }) = self.system.take(COMPRESSION) else {
            return SnapshotCompression::None;
        };
        match value.to_lowercase().as_str() {
            "gz" => return SnapshotCompression::Gzip,
            "snappy" => return SnapshotCompression::Snappy,
            "" | "checked" | "none" => {}
            _ => {
                let key = as_written(COMPRESSION, &place);
                let text = format!("{key}={value} counts as none; write gz or snappy");
                self.warnings.push(Warning::new(place, text));
            }
        }
        SnapshotCompression::None
    }

    /// The property without a prefix is the older one, and counts only without the other.
    fn fsync_warning_ms(&mut self) -> u64 {
        let bare = self.number("fsync.warningthresholdms", LONG, 1000);
        self.long("zookeeper.fsync.warningthresholdms", bare)
    }

    fn words(&mut self, read_only_mode: bool) -> Whitelist {
        const KEY: &str = "zookeeper.4lw.commands.whitelist";
        let Some(Property { value, place }) = self.system.take(KEY) else {
            return Whitelist::new(None, read_only_mode);
        };
        let list = Whitelist::new(Some(&value), read_only_mode);
        let unknown: Vec<&str> = list.unknown().collect();
        if !unknown.is_empty() {
            let text = format!(
                "4lw.commands.whitelist: no four-letter word is named {}; correct the list, with commas between words",
                unknown.join(" or ")
            );
            self.warnings.push(Warning::new(place, text));
        }
        list
    }
}

/// Whether `zookeeper.<key>` is exactly `word`, which gives up a guarantee, so it gives a warning.
fn takes_word(
    checker: &mut Checker,
    system: &mut SystemProperties,
    key: &str,
    word: &str,
    price: &str,
) -> bool {
    let found = system.take(&format!("zookeeper.{key}"));
    if let Some(Property { value, place }) = &found
        && !["yes", "no"].contains(&value.as_str())
    {
        checker.warn(
            place,
            format!("{key}={value} has no effect: only {word} has one; remove it, or write {word}, with which {price}"),
        );
    }
    let found = found.filter(|found| found.value == word);
    if let Some(found) = &found {
        checker
            .warn(&found.place, format!("{key}={word}: {price}; remove it if that is not meant"));
    }
    found.is_some()
}

/// The factor; `None` is off. Java takes the default for what it cannot use.
fn take_size_factor(checker: &mut Checker, system: &mut SystemProperties) -> Option<f64> {
    let Some(property) = system.take("zookeeper.snapshotSizeFactor") else {
        return Some(SNAPSHOT_SIZE_FACTOR);
    };
    match double(&property.value) {
        Some(factor) if factor <= 1.0 => Some(factor).filter(|&factor| 0.0 <= factor),
        _ => {
            let text = format!(
                "snapshotSizeFactor={} is not a factor, so {SNAPSHOT_SIZE_FACTOR} is used; write a number of at most 1",
                property.value
            );
            checker.warn(&property.place, text);
            Some(SNAPSHOT_SIZE_FACTOR)
        }
    }
}
