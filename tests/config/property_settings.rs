//! Settings that Java reads as system properties.

use crate::{BASE, of, with_flags};
use oxkeeper::config::{Environment, SnapshotCompression, Source, parse};

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
fn network_settings_are_read_and_unknown_words_are_warned_of() {
    let config = of("clientTcpKeepAlive=true\nnio.sessionlessCnxnTimeout=5\n\
        4lw.commands.whitelist=stat, ruok");
    assert!(config.client_tcp_keep_alive);
    assert_eq!(config.sessionless_cnxn_timeout_ms, 5);
    let words = config.four_letter_words;
    assert!(words.allows("ruok") && words.allows("srvr") && !words.allows("mntr"));
    assert_eq!(config.warnings, vec![]);
    let words_of = |list: &str| {
        let config = of(&format!("4lw.commands.whitelist={list}"));
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        words_of("stat, STAT,mntrr,*"),
        [
            "zoo.cfg:3: 4lw.commands.whitelist: no four-letter word is named STAT or mntrr; correct the list, with commas between words"
        ]
    );
    assert_eq!(words_of("*"), [""; 0]);
}

// rows: C-140 C-141 C-142 C-145
#[test]
fn log_settings_have_javas_defaults_and_bounds() {
    let config = of("");
    assert_eq!((config.snap_count, config.commit_log_count), (100_000, 500));
    assert_eq!(config.snap_size_limit_bytes, Some(4 << 30));
    assert_eq!((config.txn_log_size_limit_bytes, config.pre_alloc_bytes), (None, 64 << 20));
    assert!(config.force_sync && config.snapshot_size_factor == Some(0.33));
    assert_eq!(config.fsync_warning_threshold_ms, 1000);

    let config = of("snapCount=1\nsnapSizeLimitInKb=0\ntxnLogSizeLimitInKb=2\npreAllocSize=1\n\
        forceSync=no\nfsync.warningthresholdms=20\ncommitLogCount=3\nsnapshotSizeFactor=-1");
    assert_eq!((config.snap_count, config.commit_log_count), (2, 500));
    assert_eq!(config.snap_size_limit_bytes, None);
    assert_eq!((config.txn_log_size_limit_bytes, config.pre_alloc_bytes), (Some(2048), 1024));
    assert_eq!(config.snapshot_size_factor, None);
    assert_eq!(config.fsync_warning_threshold_ms, 20);
    assert!(!config.force_sync);
    let warned: Vec<String> = config.warnings[..2].iter().map(ToString::to_string).collect();
    let unsafe_writes =
        "zoo.cfg:7: forceSync=no: acknowledged writes can be lost; remove it if that is not meant";
    let low = "zoo.cfg:3: snapCount=1 is below 2, so 2 is used; write 2 or more";
    assert!([unsafe_writes, low].iter().all(|text| warned.iter().any(|w| w == text)), "{warned:?}");

    assert_eq!(of("preAllocSize=010").pre_alloc_bytes, 10 << 10, "never octal");
    assert_eq!(of("preAllocSize=0x10").pre_alloc_bytes, 64 << 20);
    assert!(of("forceSync=NO").force_sync, "only the lower-case word switches it off");
    assert_eq!(of("snapshotSizeFactor=1.5").snapshot_size_factor, Some(0.33));
    let bare = with_flags("", "-Dfsync.warningthresholdms=30").unwrap();
    assert_eq!(bare.fsync_warning_threshold_ms, 30);
    let both = with_flags("fsync.warningthresholdms=20", "-Dfsync.warningthresholdms=30").unwrap();
    assert_eq!(both.fsync_warning_threshold_ms, 20);
}

// rows: C-148 C-149 C-150 C-151
#[test]
fn snapshot_settings_have_javas_defaults_and_bounds() {
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
    let config = with_flags("", flags).unwrap();
    assert_eq!(config.jute_max_buffer_bytes, 4 << 20);
    assert_eq!(config.jute_max_buffer_extra_bytes, 4 << 20);
    assert!(config.read_only_mode_enabled && config.four_letter_words.allows("isro"));
    assert_eq!((config.container_check_interval_ms, config.container_max_per_minute), (1, 2));
    assert_eq!((config.container_max_never_used_ms, config.warnings), (3, vec![]));

    let config = of("jute.maxbuffer=4194304\nznode.container.maxPerMinute=2");
    assert_eq!(config.jute_max_buffer_bytes, 1_048_575);
    assert_eq!(config.container_check_interval_ms, 60_000);
    assert_eq!((config.container_max_per_minute, config.container_max_never_used_ms), (10_000, 0));
    let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    let first =
        "zoo.cfg:3: jute.maxbuffer=4194304 has no effect; only the flag -Djute.maxbuffer sets it";
    assert_eq!((warned.len(), warned[0].as_str()), (2, first));
}

// rows: C-03
#[test]
fn words_that_java_reads_as_something_else_are_warned_of() {
    let config = of("digest.enabled=yes\nsnapshot.compression.method=gzip\nskipACL=true\n\
        forceSync=yes\nenforceQuota=TRUE");
    assert!(!config.digest_enabled && config.enforce_quota && !config.skip_acl);
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    let ends = [
        "neither true nor false; write one of them",
        "write gz or snappy",
        "remove it, or write yes, with which ACLs are not checked",
    ];
    assert_eq!(warnings.len(), ends.len(), "{warnings:?}");
    for end in ends {
        assert!(warnings.iter().any(|warning| warning.ends_with(end)), "{end}: {warnings:?}");
    }
}

#[test]
fn numbers_that_java_ignores_in_silence_are_warned_of() {
    let config = of("snapCount=many\nglobalOutstandingLimit=-1");
    assert_eq!((config.snap_count, config.global_outstanding_limit), (100_000, 1000));
    let places: Vec<String> = config.warnings.iter().map(|w| w.place.to_string()).collect();
    assert_eq!(places, ["zoo.cfg:3", "zoo.cfg:4"]);
}
