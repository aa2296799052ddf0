//! Assembles the [`Config`] of a standalone server.

use std::collections::BTreeMap;

use super::check::Checker;
use super::explicit::Explicit;
use super::system::{SystemProperties, trim};
use super::{
    Config, ConfigError, Environment, Place, Problem, PropertiesError, SnapshotCompression,
    Whitelist, explicit, keys, properties,
};

/// What is served when no file is named: one server on the usual port, data in `./data`.
pub const DEFAULT_CONFIG: &str = "tickTime=2000\nclientPort=2181\ndataDir=./data\n";

const INT: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
const POSITIVE_INT: (i64, i64) = (1, i32::MAX as i64);
const LONG: (i64, i64) = (i64::MIN, i64::MAX);

/// `snapshotSizeFactor` unless set.
const SNAPSHOT_SIZE_FACTOR: f64 = 0.33;

const CNXN_FACTORIES: [&str; 2] = [
    "org.apache.zookeeper.server.NIOServerCnxnFactory",
    "org.apache.zookeeper.server.NettyServerCnxnFactory",
];

/// A configuration file, already read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
    /// First line of the file `myid` in its `dataDir`, if that exists.
    pub my_id: Option<&'a str>,
}

/// Reads a configuration file's text.
///
/// * `env`: environment variables; `SERVER_JVMFLAGS` and `JVMFLAGS` may hold `-D` flags.
/// * `flags`: further `-D` flags, which win over those.
///
/// # Errors
/// Every [`Problem`] there is, not only the first.
///
/// Source: `QuorumPeerConfig.parseProperties` and the classes that read each system property,
/// ZooKeeper 3.9.5.
pub fn parse(
    source: Source<'_>,
    env: &Environment,
    flags: &[String],
) -> Result<Config, ConfigError> {
    let entries = properties::parse(source.text).map_err(|error| {
        let PropertiesError::Unicode { line } = error;
        let place = Place::Line { file: source.name.to_owned(), line };
        Problem { place, text: error.to_string() }
    })?;
    let checker = Checker::of_file(source.name, entries);
    assemble(checker, SystemProperties::from_flags(env, flags), source.my_id)
}

/// Reads the command-line form `port dataDir [tickTime] [maxClientCnxns]`.
///
/// * `arguments`: two to four of them; others are not looked at.
///
/// # Errors
/// Every [`Problem`] there is.
///
/// Source: `ServerConfig.parse(String[])`, ZooKeeper 3.9.5: no limit on connections unless given.
pub fn parse_positional(
    arguments: &[String],
    env: &Environment,
    flags: &[String],
) -> Result<Config, ConfigError> {
    let names = ["clientPort", "dataDir", "tickTime", "maxClientCnxns"];
    let mut settings: BTreeMap<_, _> = names.into_iter().zip(arguments.iter().cloned()).collect();
    settings.entry("maxClientCnxns").or_insert_with(|| "0".to_owned());
    let checker = Checker::of_arguments(settings.into_iter());
    assemble(checker, SystemProperties::from_flags(env, flags), None)
}

fn assemble(
    mut checker: Checker,
    mut system: SystemProperties,
    my_id: Option<&str>,
) -> Result<Config, ConfigError> {
    let explicit = explicit::take(&mut checker, my_id);
    keys::take_unused(&mut checker);
    keys::pass_through(&mut checker, &mut system);
    let config = take_system(&mut checker, &mut system, explicit);
    keys::judge_leftovers(&mut checker, &mut system);
    match config {
        Some(config) if checker.problems.is_empty() => {
            Ok(Config { warnings: checker.warnings, ..config })
        }
        _ => {
            assert!(!checker.problems.is_empty(), "no config and no problem");
            Err(ConfigError { problems: checker.problems })
        }
    }
}

/// Reads every system property that sets a field.
///
/// It runs even if the file had problems, so that wrong properties are reported along with them.
fn take_system(
    checker: &mut Checker,
    system: &mut SystemProperties,
    explicit: Option<Explicit>,
) -> Option<Config> {
    if let Some(factory) = system.take("zookeeper.serverCnxnFactory")
        && !CNXN_FACTORIES.contains(&factory.value.as_str())
    {
        let text = format!("serverCnxnFactory={} is not known here", factory.value);
        checker.problem(&factory.place, text);
    }
    if let Some(algorithm) = system.take("zookeeper.DigestAuthenticationProvider.digestAlg")
        && !["SHA1", "SHA-1", "SHA"].contains(&algorithm.value.to_uppercase().as_str())
    {
        let text = format!(
            "DigestAuthenticationProvider.digestAlg={} is not known here, only SHA1",
            algorithm.value
        );
        checker.problem(&algorithm.place, text);
    }
    let skip_acl = system.take("zookeeper.skipACL").filter(|property| property.value == "yes");
    if let Some(skip) = &skip_acl {
        checker.warn(&skip.place, "skipACL=yes: everybody may do everything");
    }
    let snapshot_size_factor = take_size_factor(checker, system);
    // From here on nothing is a problem; what is left untaken only misses its warning.
    let explicit = explicit?;
    let read_only = system.take_bool("readonlymode.enabled", false);
    let words = system.take("zookeeper.4lw.commands.whitelist").map(|property| property.value);
    let force_sync = system.take("zookeeper.forceSync");
    if let Some(no) = force_sync.as_ref().filter(|property| property.value == "no") {
        checker.warn(&no.place, "forceSync=no: acknowledged writes can be lost");
    }
    let compression = system.take("zookeeper.snapshot.compression.method").map(|p| p.value);

    let mut number = |key: &str, range, default: i64| {
        system.take_number(key, range, &mut checker.warnings).unwrap_or(default)
    };
    let fsync_ms = number("fsync.warningthresholdms", LONG, 1000);
    let fsync_ms = number("zookeeper.fsync.warningthresholdms", LONG, fsync_ms);
    let jute_max = number("jute.maxbuffer", POSITIVE_INT, 0xf_ffff);
    let jute_extra = number("zookeeper.jute.maxbuffer.extrasize", INT, jute_max).max(1024);
    let snap_count = number("zookeeper.snapCount", INT, 100_000).max(2);
    let snap_kb = number("zookeeper.snapSizeLimitInKb", LONG, 4_194_304);
    let log_kb = number("zookeeper.txnLogSizeLimitInKb", LONG, -1);
    let pre_alloc_kb = number("zookeeper.preAllocSize", LONG, 65_536);
    let commit_log = number("zookeeper.commitLogCount", INT, 500).max(500);
    let max_cnxns = number("zookeeper.maxCnxns", INT, 0).max(0);
    let sessionless_ms = number("zookeeper.nio.sessionlessCnxnTimeout", POSITIVE_INT, 10_000);
    let outstanding = number("zookeeper.globalOutstandingLimit", POSITIVE_INT, 1000);
    let large_threshold = number("zookeeper.largeRequestThreshold", INT, -1);
    let large_max = number("zookeeper.largeRequestMaxBytes", POSITIVE_INT, 100 << 20);
    let container_ms = number("znode.container.checkIntervalMs", POSITIVE_INT, 60_000);
    let container_rate = number("znode.container.maxPerMinute", POSITIVE_INT, 10_000);
    let container_unused_ms = number("znode.container.maxNeverUsedIntervalMs", LONG, 0);

    let mut flag = |key: &str, default| system.take_bool(&format!("zookeeper.{key}"), default);
    Some(Config {
        data_dir: explicit.data_dir,
        data_log_dir: explicit.data_log_dir,
        client_host: explicit.client_host,
        client_port: explicit.client_port,
        client_port_listen_backlog: explicit.client_port_listen_backlog,
        tick_time_ms: explicit.tick_time_ms,
        min_session_timeout_ms: explicit.min_session_timeout_ms,
        max_session_timeout_ms: explicit.max_session_timeout_ms,
        max_client_cnxns: explicit.max_client_cnxns,
        purge_snap_retain_count: explicit.purge_snap_retain_count,
        purge_interval_hours: explicit.purge_interval_hours,
        metrics_provider: explicit.metrics_provider,
        max_cnxns: max_cnxns as u32,
        client_tcp_keep_alive: flag("clientTcpKeepAlive", false),
        sessionless_cnxn_timeout_ms: sessionless_ms as u32,
        global_outstanding_limit: outstanding as u32,
        large_request_threshold_bytes: u32::try_from(large_threshold).ok().filter(|&n| n > 0),
        large_request_max_bytes: large_max as u32,
        jute_max_buffer_bytes: jute_max as u32,
        jute_max_buffer_extra_bytes: jute_extra as u32,
        four_letter_words: Whitelist::new(words.as_deref(), read_only),
        skip_acl: skip_acl.is_some(),
        enforce_quota: flag("enforceQuota", false),
        digest_auth_enabled: flag("DigestAuthenticationProvider.enabled", true),
        extended_types_enabled: flag("extendedTypesEnabled", false),
        emulate_353_ttl_nodes: flag("emulate353TTLNodes", false),
        container_check_interval_ms: container_ms as u32,
        container_max_per_minute: container_rate as u32,
        container_max_never_used_ms: u64::try_from(container_unused_ms).unwrap_or(0),
        read_only_mode_enabled: read_only,
        snap_count: snap_count as u32,
        snap_size_limit_bytes: kilobytes(snap_kb),
        txn_log_size_limit_bytes: kilobytes(log_kb),
        pre_alloc_bytes: kilobytes(pre_alloc_kb).unwrap_or(0),
        force_sync: force_sync.is_none_or(|property| property.value != "no"),
        fsync_warning_threshold_ms: u64::try_from(fsync_ms).unwrap_or(0),
        commit_log_count: commit_log as u32,
        snapshot_size_factor,
        trust_empty_snapshot: flag("snapshot.trust.empty", false),
        snapshot_compression: match trim(&compression.unwrap_or_default()).to_lowercase().as_str() {
            "gz" => SnapshotCompression::Gzip,
            "snappy" => SnapshotCompression::Snappy,
            _ => SnapshotCompression::None,
        },
        data_dir_auto_create: flag("datadir.autocreate", true),
        db_auto_create: flag("db.autocreate", true),
        digest_enabled: flag("digest.enabled", true),
        close_session_txn_enabled: flag("closeSessionTxn.enabled", true),
        serialize_last_processed_zxid: flag("serializeLastProcessedZxid.enabled", true),
        super_digest: system
            .take("zookeeper.DigestAuthenticationProvider.superDigest")
            .map(|property| property.value),
        warnings: Vec::new(),
    })
}

/// The factor; `None` is off. Java takes the default for what it cannot use.
fn take_size_factor(checker: &mut Checker, system: &mut SystemProperties) -> Option<f64> {
    let Some(property) = system.take("zookeeper.snapshotSizeFactor") else {
        return Some(SNAPSHOT_SIZE_FACTOR);
    };
    match trim(&property.value).parse::<f64>() {
        Ok(factor) if factor <= 1.0 => Some(factor).filter(|&factor| 0.0 <= factor),
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

/// Kilobytes as bytes; `None` for what Java takes as "off".
fn kilobytes(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|&n| n > 0).map(|n| n.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((config.max_cnxns, config.warnings), (0, vec![]));
    }

    // rows: C-112 C-117 C-134
    #[test]
    fn network_settings() {
        let config = of("clientTcpKeepAlive=true\nnio.sessionlessCnxnTimeout=5\n\
            4lw.commands.whitelist=stat, ruok");
        assert!(config.client_tcp_keep_alive);
        assert_eq!(config.sessionless_cnxn_timeout_ms, 5);
        let words = config.four_letter_words;
        assert!(words.allows("ruok") && words.allows("srvr") && !words.allows("mntr"));
    }

    // rows: C-140 C-141 C-142 C-143 C-144 C-145 C-146 C-147
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
        assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);

        assert!(of("forceSync=NO").force_sync, "only the lower-case word switches it off");
        assert_eq!(of("snapshotSizeFactor=1.5").snapshot_size_factor, Some(0.33));
        let bare = with("", "-Dfsync.warningthresholdms=30").unwrap();
        assert_eq!(bare.fsync_warning_threshold_ms, 30);
        let both = with("fsync.warningthresholdms=20", "-Dfsync.warningthresholdms=30").unwrap();
        assert_eq!(both.fsync_warning_threshold_ms, 20);
    }

    // rows: C-148 C-149 C-150 C-151 C-154
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

    // rows: C-02 C-05
    #[test]
    fn the_file_wins_over_flags_with_its_prefix_only() {
        let config = with("snapCount=10", "-Dzookeeper.snapCount=20 -DsnapCount=30").unwrap();
        assert_eq!(config.snap_count, 10);
        assert_eq!(with("", "-Dzookeeper.snapCount=20").unwrap().snap_count, 20);
        let doubled = of("zookeeper.snapCount=20");
        assert_eq!((doubled.snap_count, doubled.warnings.len()), (100_000, 1));
        // Explicit keys never read a flag.
        let config = with("tickTime=2000", "-Dzookeeper.tickTime=5").unwrap();
        assert_eq!((config.tick_time_ms, config.warnings.len()), (2000, 1));
    }

    #[test]
    fn numbers_java_would_drop_in_silence_are_warned_of() {
        let config = of("snapCount=many\nglobalOutstandingLimit=-1");
        assert_eq!((config.snap_count, config.global_outstanding_limit), (100_000, 1000));
        let places: Vec<String> = config.warnings.iter().map(|w| w.place.to_string()).collect();
        assert_eq!(places, ["zoo.cfg:3", "zoo.cfg:4"]);
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let error = with(
            "tickTime=0\nmaxClientCnxns=x\n\nreconfigEnabled=yes\nssl.keyStore.password=s3\n\
            secureClientPort=2281\nserverCnxnFactory=Mine",
            "-Dzookeeper.authProvider.1=A",
        )
        .unwrap_err()
        .to_string();
        let mut lines: Vec<&str> = error.lines().collect();
        lines.sort_unstable();
        let starts = [
            "-D flag in JVMFLAGS: zookeeper.authProvider.1=A guards",
            "zoo.cfg:3: tickTime=0 is not within 1 and",
            "zoo.cfg:4: maxClientCnxns=x is not a number",
            "zoo.cfg:6: reconfigEnabled=yes is neither true nor false",
            "zoo.cfg:7: ssl.keyStore.password guards",
            "zoo.cfg:8: secureClientPort=2281 guards",
            "zoo.cfg:9: serverCnxnFactory=Mine is not known",
        ];
        assert_eq!(lines.len(), starts.len(), "{error}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
        let source = Source { name: "z", text: b"a=1\nb=\\u", my_id: None };
        let error = parse(source, &Environment::new(), &[]).unwrap_err();
        assert_eq!(error.to_string(), "z:2: malformed \\uxxxx encoding");
    }

    #[test]
    fn the_command_line_form_has_no_limit_on_connections() {
        let arguments = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let parse = |words| parse_positional(&arguments(words), &Environment::new(), &[]);
        let config = parse("2181 /d").unwrap();
        assert_eq!((config.client_port, config.tick_time_ms), (2181, 3000));
        assert_eq!((config.max_client_cnxns, config.max_session_timeout_ms), (0, 60_000));
        let config = parse("2181 /d 500 9").unwrap();
        assert_eq!((config.min_session_timeout_ms, config.max_client_cnxns), (1000, 9));
        let error = parse("x /d").unwrap_err().to_string();
        assert_eq!(error, "command line: clientPort=x is not a number");
    }

    #[test]
    fn the_defaults_are_a_valid_file() {
        let source = Source { name: "d", text: DEFAULT_CONFIG.as_bytes(), my_id: None };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        assert_eq!((config.client_port, config.warnings), (2181, vec![]));
    }
}
