//! The settings that Java reads as system properties, wherever it needs them.

use super::checker::Checker;
use super::file_settings::FileSettings;
use super::property_reader::{INT, LONG, POSITIVE_INT, Reader, kilobytes};
use super::system_properties::{Property, SystemProperties, double};
use super::{Config, SnapshotCompression, Warning, Whitelist, auth_providers, throttle};
use crate::model::DigestAlgorithm;

/// `snapshotSizeFactor` unless set.
const SNAPSHOT_SIZE_FACTOR: f64 = 0.33;

const COMPRESSION: &str = "zookeeper.snapshot.compression.method";
const DIGEST_ALGORITHM: &str = "zookeeper.DigestAuthenticationProvider.digestAlg";

const CNXN_FACTORIES: [&str; 2] = [
    "org.apache.zookeeper.server.NIOServerCnxnFactory",
    "org.apache.zookeeper.server.NettyServerCnxnFactory",
];

const WATCH_MANAGERS: [&str; 2] = [
    "org.apache.zookeeper.server.watch.WatchManager",
    "org.apache.zookeeper.server.watch.WatchManagerOptimized",
];

/// Refuses properties that name a class or an algorithm that is not here.
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
    if let Some(algorithm) = system.take(DIGEST_ALGORITHM) {
        if DigestAlgorithm::named(&algorithm.value).is_none() {
            let text = format!(
                "DigestAuthenticationProvider.digestAlg={} is not known here; name another",
                algorithm.value
            );
            checker.problem(&algorithm.place, text);
        }
        system.set(DIGEST_ALGORITHM, &algorithm.value, algorithm.place);
    }
}

/// Reads every system property that sets a field, and joins them with the settings of the file.
///
/// Nothing here is a problem: Java takes the default for what it cannot use, and so do we, with a
/// warning.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    from_file: FileSettings,
) -> Config {
    let force_sync =
        !takes_word(checker, system, "forceSync", "no", "acknowledged writes can be lost");
    let skip_acl = takes_word(checker, system, "skipACL", "yes", "everybody may do everything");
    let snapshot_size_factor = take_size_factor(checker, system);
    let mut from = Reader::new(system, &mut checker.warnings);
    let read_only_mode_enabled = from.flag("readonlymode.enabled", false);
    let jute_max = from.number("jute.maxbuffer", POSITIVE_INT, 0xf_ffff);
    let jute_extra = from.number("zookeeper.jute.maxbuffer.extrasize", INT, jute_max);
    Config {
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
        metrics_enabled: from_file.metrics_enabled,
        enforce_quota: from.flag("zookeeper.enforceQuota", false),
        digest_auth_enabled: from.flag("zookeeper.DigestAuthenticationProvider.enabled", true),
        super_digest: from.text("zookeeper.DigestAuthenticationProvider.superDigest"),
        digest_algorithm: from.named(DIGEST_ALGORITHM, DigestAlgorithm::named),
        providers: auth_providers::find(from.system),
        ensemble_names: from
            .named("zookeeper.ensembleAuthName", |names| Some(Some(auth_providers::names(names)))),
        extended_types_enabled: from.flag("zookeeper.extendedTypesEnabled", false),
        emulate_353_ttl_nodes: from.flag("zookeeper.emulate353TTLNodes", false),
        container_check_interval_ms: from.int("znode.container.checkIntervalMs", 60_000),
        container_max_per_minute: from.int("znode.container.maxPerMinute", 10_000),
        container_max_never_used_ms: from.long("znode.container.maxNeverUsedIntervalMs", 0),
        read_only_mode_enabled,
        quorum_sync: from.flag("oxkeeper.quorumSync", false),
        linearizable_reads: from.flag("oxkeeper.linearizableReads", false),
        snap_count: from.number("zookeeper.snapCount", INT, 100_000).max(2) as u32,
        snap_size_limit_bytes: from.kilobytes("zookeeper.snapSizeLimitInKb", 4 << 20),
        txn_log_size_limit_bytes: from.kilobytes("zookeeper.txnLogSizeLimitInKb", -1),
        pre_alloc_bytes: kilobytes(from.decimal("zookeeper.preAllocSize", LONG, 65_536))
            .unwrap_or(0),
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
        ensemble: None,
        warnings: Vec::new(),
    }
}

impl Reader<'_> {
    /// Any case will do, and any other name means none.
    fn compression(&mut self) -> SnapshotCompression {
        let Some(Property { value, place }) = self.system.take(COMPRESSION) else {
            return SnapshotCompression::None;
        };
        match value.to_lowercase().as_str() {
            "gz" => return SnapshotCompression::Gzip,
            "snappy" => return SnapshotCompression::Snappy,
            "" | "checked" | "none" => {}
            _ => {
                let text = format!("{COMPRESSION}={value} counts as none; write gz or snappy");
                self.warnings.push(Warning { place, text });
            }
        }
        SnapshotCompression::None
    }

    /// The bare name is the older one and counts only without the other.
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
                "4lw.commands.whitelist: no effect of {}; there is no such word",
                unknown.join(", ")
            );
            self.warnings.push(Warning { place, text });
        }
        list
    }
}

/// Whether `zookeeper.<key>` is exactly `word`, which gives up a promise and is worth a warning.
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
        checker.warn(place, format!("{key}={value} has no effect: only {word} has one"));
    }
    let found = found.filter(|found| found.value == word);
    if let Some(found) = &found {
        checker.warn(&found.place, format!("{key}={word}: {price}"));
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
                "snapshotSizeFactor={} is no factor; {SNAPSHOT_SIZE_FACTOR} is used",
                property.value
            );
            checker.warn(&property.place, text);
            Some(SNAPSHOT_SIZE_FACTOR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigError, Environment, Source, parse};

    const BASE: &str = "dataDir=/d\nclientPort=2181\n";

    fn with(lines: &str, flags: &str) -> Result<Config, ConfigError> {
        let text = format!("{BASE}{lines}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        let env = Environment::from([("JVMFLAGS".to_owned(), flags.to_owned())]);
        parse(source, &env, &[])
    }

    fn of(lines: &str) -> Config {
        with(lines, "").unwrap()
    }

    // rows: C-70 C-80 C-81 C-82 C-83 C-98 C-99 C-111
    #[test]
    fn defaults_of_requests_are_javas() {
        let config = of("");
        assert_eq!(config.global_outstanding_limit, 1000);
        assert!(config.digest_enabled && config.close_session_txn_enabled);
        assert!(config.serialize_last_processed_zxid);
        assert_eq!(config.large_request_max_bytes, 104_857_600);
        assert_eq!(config.large_request_threshold_bytes, None);
        assert!(!config.extended_types_enabled && !config.emulate_353_ttl_nodes);
        assert_eq!((config.max_cnxns, config.sessionless_cnxn_timeout_ms), (0, 10_000));
        assert_eq!((config.warnings.len(), config.client_tcp_keep_alive), (0, false));
        assert!(!config.skip_acl && !config.enforce_quota && config.digest_auth_enabled);

        let config = of("globalOutstandingLimit=7\ndigest.enabled=false\n\
            closeSessionTxn.enabled=no\nserializeLastProcessedZxid.enabled=FALSE\n\
            largeRequestMaxBytes=9\nextendedTypesEnabled=True\nemulate353TTLNodes=true\n\
            maxCnxns=-3\nlargeRequestThreshold=5\n");
        assert_eq!(config.global_outstanding_limit, 7);
        assert!(!config.digest_enabled && !config.close_session_txn_enabled);
        assert!(!config.serialize_last_processed_zxid);
        assert_eq!(config.large_request_max_bytes, 9);
        assert_eq!(config.large_request_threshold_bytes, Some(5));
        assert!(config.extended_types_enabled && config.emulate_353_ttl_nodes);
        assert_eq!(config.max_cnxns, 0);
    }

    // rows: C-112 C-134
    #[test]
    fn network_settings() {
        let config = of("clientTcpKeepAlive=true\nnio.sessionlessCnxnTimeout=5\n\
            4lw.commands.whitelist=stat, ruok");
        assert!(config.client_tcp_keep_alive);
        assert_eq!(config.sessionless_cnxn_timeout_ms, 5);
        let words = config.four_letter_words;
        assert!(words.allows("ruok") && words.allows("srvr") && !words.allows("mntr"));
        assert_eq!(config.warnings, vec![]);
        let told = |list: &str| {
            let config = of(&format!("4lw.commands.whitelist={list}"));
            config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            told("stat, STAT,mntrr,*"),
            ["zoo.cfg:3: 4lw.commands.whitelist: no effect of STAT, mntrr; there is no such word"]
        );
        assert_eq!(told("*"), [""; 0]);
    }

    // rows: C-140 C-141 C-142 C-145
    #[test]
    fn log_settings() {
        let config = of("");
        assert_eq!((config.snap_count, config.commit_log_count), (100_000, 500));
        assert_eq!(config.snap_size_limit_bytes, Some(4 << 30));
        assert_eq!((config.txn_log_size_limit_bytes, config.pre_alloc_bytes), (None, 64 << 20));
        assert!(config.force_sync && config.snapshot_size_factor == Some(0.33));
        assert_eq!(config.fsync_warning_threshold_ms, 1000);

        let config =
            of("snapCount=1\nsnapSizeLimitInKb=0\ntxnLogSizeLimitInKb=2\npreAllocSize=1\n\
            forceSync=no\nfsync.warningthresholdms=20\ncommitLogCount=3\nsnapshotSizeFactor=-1");
        assert_eq!((config.snap_count, config.commit_log_count), (2, 500));
        assert_eq!(config.snap_size_limit_bytes, None);
        assert_eq!((config.txn_log_size_limit_bytes, config.pre_alloc_bytes), (Some(2048), 1024));
        assert_eq!(config.snapshot_size_factor, None);
        assert_eq!(config.fsync_warning_threshold_ms, 20);
        assert!(!config.force_sync);
        let warned = config.warnings[0].to_string();
        assert_eq!(warned, "zoo.cfg:7: forceSync=no: acknowledged writes can be lost");

        assert_eq!(of("preAllocSize=010").pre_alloc_bytes, 10 << 10, "never octal");
        assert_eq!(of("preAllocSize=0x10").pre_alloc_bytes, 64 << 20);
        assert!(of("forceSync=NO").force_sync, "only the lower-case word switches it off");
        assert_eq!(of("snapshotSizeFactor=1.5").snapshot_size_factor, Some(0.33));
        let bare = with("", "-Dfsync.warningthresholdms=30").unwrap();
        assert_eq!(bare.fsync_warning_threshold_ms, 30);
        let both = with("fsync.warningthresholdms=20", "-Dfsync.warningthresholdms=30").unwrap();
        assert_eq!(both.fsync_warning_threshold_ms, 20);
    }

    // rows: C-148 C-149 C-150 C-151
    #[test]
    fn snapshot_settings() {
        let config = of("");
        assert!(!config.trust_empty_snapshot);
        assert!(config.data_dir_auto_create && config.db_auto_create);
        assert_eq!(config.snapshot_compression, SnapshotCompression::None);
        assert_eq!(config.jute_max_buffer_extra_bytes, 1_048_575);

        let config = of("snapshot.trust.empty=true\nsnapshot.compression.method=GZ\n\
            datadir.autocreate=false\ndb.autocreate=false\njute.maxbuffer.extrasize=10");
        assert!(config.trust_empty_snapshot);
        assert!(!config.data_dir_auto_create && !config.db_auto_create);
        assert_eq!(config.snapshot_compression, SnapshotCompression::Gzip);
        assert_eq!(config.jute_max_buffer_extra_bytes, 1024);
        let snappy = of("snapshot.compression.method=snappy").snapshot_compression;
        assert_eq!(snappy, SnapshotCompression::Snappy);
        let env = Environment::from([("ZOO_DATADIR_AUTOCREATE_DISABLE".into(), "1".into())]);
        let source = Source { name: "zoo.cfg", text: BASE.as_bytes(), my_id: None };
        assert!(!parse(source, &env, &[]).unwrap().data_dir_auto_create);
    }

    // rows: C-260 C-261 C-263 C-263a C-263b C-268
    #[test]
    fn some_settings_are_flags_only() {
        let flags = "-Xmx1g -Djute.maxbuffer=0x400000 -Dreadonlymode.enabled=true \
            -Dznode.container.checkIntervalMs=1 -Dznode.container.maxPerMinute=2 \
            -Dznode.container.maxNeverUsedIntervalMs=3";
        let config = with("", flags).unwrap();
        assert_eq!(config.jute_max_buffer_bytes, 4 << 20);
        assert_eq!(config.jute_max_buffer_extra_bytes, 4 << 20);
        assert!(config.read_only_mode_enabled && config.four_letter_words.allows("isro"));
        assert_eq!((config.container_check_interval_ms, config.container_max_per_minute), (1, 2));
        assert_eq!((config.container_max_never_used_ms, config.warnings), (3, vec![]));

        let config = of("jute.maxbuffer=4194304\nznode.container.maxPerMinute=2");
        assert_eq!(config.jute_max_buffer_bytes, 1_048_575);
        assert_eq!(config.container_check_interval_ms, 60_000);
        assert_eq!(
            (config.container_max_per_minute, config.container_max_never_used_ms),
            (10_000, 0)
        );
        let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        let first = "zoo.cfg:3: jute.maxbuffer=4194304 has no effect; only the flag -Djute.maxbuffer sets it";
        assert_eq!((warned.len(), warned[0].as_str()), (2, first));
    }

    // rows: C-03
    #[test]
    fn words_java_takes_for_something_else_are_warned_of() {
        let config = of("digest.enabled=yes\nsnapshot.compression.method=gzip\nskipACL=true\n\
            forceSync=yes\nenforceQuota=TRUE");
        assert!(!config.digest_enabled && config.enforce_quota && !config.skip_acl);
        let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        let ends = ["neither true nor false", "write gz or snappy", "only yes has one"];
        assert_eq!(warnings.len(), ends.len(), "{warnings:?}");
        for end in ends {
            assert!(warnings.iter().any(|warning| warning.ends_with(end)), "{end}: {warnings:?}");
        }
    }

    #[test]
    fn numbers_java_would_drop_in_silence_are_warned_of() {
        let config = of("snapCount=many\nglobalOutstandingLimit=-1");
        assert_eq!((config.snap_count, config.global_outstanding_limit), (100_000, 1000));
        let places: Vec<String> = config.warnings.iter().map(|w| w.place.to_string()).collect();
        assert_eq!(places, ["zoo.cfg:3", "zoo.cfg:4"]);
    }
}
