//! The table of all settings: its rows, its names, and whether a setting does what its class says.

use crate::{BASE, of};
use oxkeeper::config::keys::{Class, Form, KEYS, Key, Scope, in_file, in_flag, nearest};
use oxkeeper::config::{Config, ConfigError, Environment, Source, parse};
use std::collections::BTreeSet;

/// Rows about the file as a whole, and about setters of the JVM.
const RULES: [&str; 12] = [
    "C-01", "C-02", "C-03", "C-05", "C-06", "C-07", "C-08", "C-09", "C-10", "C-11", "C-67", "C-270",
];
/// Rows whose first word is no key.
const LISTS: [&str; 3] = ["C-267", "C-268", "C-269"];
/// Settings that work without a trace in [`Config`]: they decide whether there is a configuration, or set the log, or need
/// another setting beside them.
const CHECKS: [&str; 25] = [
    "metricsProvider.ssl.want.client.auth",
    "enforce.auth.enabled",
    "enforce.auth.schemes",
    "oxkeeper.log.level",
    "oxkeeper.log.format",
    "dynamicConfigFile",
    "multiAddress.enabled",
    "serverCnxnFactory",
    "audit.impl.class",
    "zookeeper.log.dir",
    "zookeeper.log.file",
    "zookeeper.log.threshold",
    "zookeeper.log.maxfilesize",
    "zookeeper.log.maxbackupindex",
    "zookeeper.root.logger",
    "zookeeper.console.threshold",
    "zookeeper.tracelog.dir",
    "zookeeper.tracelog.file",
    "logback.configurationFile",
    "ssl.handshakeDetectionTimeoutMillis",
    "ssl.sslProvider",
    "sasl.serverconfig",
    "SASLAuthenticationProvider.superPassword",
    "java.security.auth.login.config",
    "DigestAuthenticationProvider.digestAlg",
];

#[test]
fn every_row_is_in_the_table_under_its_name() {
    let mut rows = BTreeSet::new();
    for line in include_str!("../../docs/parity-rows.tsv").lines() {
        let mut fields = line.split('\t');
        let (Some(row), Some(what)) = (fields.next(), fields.next()) else { continue };
        if !row.starts_with("C-") || RULES.contains(&row) {
            continue;
        }
        rows.insert(row);
        let mut keys = KEYS.iter().filter(|key| key.row == row).peekable();
        assert!(keys.peek().is_some(), "{row} {what} is not in keys.txt");
        // Java's own row names leave the prefix out, or not.
        let what = what.trim_start_matches("zookeeper.");
        let bare = |key: &Key| key.name.trim_start_matches("zookeeper.").trim_end_matches('*');
        let named = |key: &Key| what.starts_with(bare(key));
        assert!(LISTS.contains(&row) || keys.any(named), "{row} is {what}, not so in keys.txt");
    }
    for key in KEYS.iter() {
        let is_ours = key.row == "own";
        assert!(is_ours || rows.contains(key.row), "{} {} has no row", key.row, key.name);
    }
    let names: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len(), "a key stands there twice");
}

#[test]
fn keys_are_found_where_they_may_be_made() {
    let name = |key: Option<&'static Key>| key.map(|key| key.name);
    assert_eq!(name(in_file("tickTime")), Some("tickTime"));
    assert_eq!(name(in_file("ssl.quorum.crl")), Some("ssl.crl"));
    assert_eq!(name(in_file("ssl.quorum.new")), None);
    assert_eq!(name(in_file("server.12")), Some("server.*"));
    // In a file Java takes it for a server's line.
    assert_eq!(name(in_file("server.realm")), Some("server.*"));
    assert_eq!(name(in_flag("zookeeper.server.realm")), Some("zookeeper.server.realm"));
    assert_eq!(name(in_flag("zookeeper.snapCount")), Some("snapCount"));
    assert_eq!(name(in_flag("snapCount")), None);
    assert_eq!(name(in_flag("jute.maxbuffer")), Some("jute.maxbuffer"));
    assert_eq!(name(in_flag("zookeeper.jute.maxbuffer")), None);
    for own in [in_file, in_flag] {
        assert_eq!(name(own("oxkeeper.quorumSync")), Some("oxkeeper.quorumSync"));
    }
    assert_eq!(name(in_flag("zookeeper.oxkeeper.quorumSync")), None);
    for (wrong, right) in [
        ("oxkeeper.quorumsync", "oxkeeper.quorumSync"),
        ("ticktime", "tickTime"),
        ("ssl.keystore.location", "ssl.keyStore.location"),
        ("ssl.quorum.clientauth", "ssl.quorum.clientAuth"),
    ] {
        assert_eq!(nearest(wrong).as_deref(), Some(right));
    }
    assert_eq!((nearest("x"), nearest("frobnicate")), (None, None));
}

/// The stores that TLS of clients needs, and a port.
const TLS: &str = "secureClientPort=2281\nssl.keyStore.location=/k\nssl.trustStore.location=/t\n";
const PROMETHEUS: &str =
    "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
const METRICS_TLS: &str = "metricsProvider.httpsPort=7443\nmetricsProvider.ssl.keyStore.location=/k\n\
    metricsProvider.ssl.trustStore.location=/t\n\
    metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
const ADMIN_TLS: &str = "admin.portUnification=true\nssl.quorum.keyStore.location=/k\nssl.quorum.trustStore.location=/t\n";
const SASL: &str =
    "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";
const QUORUM_SASL: &str = "quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n";
const QUORUM_STORES: &str = "ssl.quorum.keyStore.location=/k\nssl.quorum.trustStore.location=/t\n";

/// The lines without which the key has no effect.
fn base(key: &Key) -> &'static str {
    let needs_tls = ["ssl.", "secureClientPort", "client.portUnification", "netty.server.", "X509"];
    match key.name {
        "sessionRequireClientSASLAuth" => SASL,
        "metricsProvider.httpHost"
        | "metricsProvider.httpPort"
        | "metricsProvider.exportJvmInfo" => PROMETHEUS,
        name if name.starts_with("metricsProvider.ssl.") => METRICS_TLS,
        "metricsProvider.httpsPort" => METRICS_TLS,
        "admin.portUnification" => QUORUM_STORES,
        "admin.forceHttps" | "admin.needClientAuth" => ADMIN_TLS,
        name if name.starts_with("quorum.auth.") => QUORUM_SASL,
        name if needs_tls.iter().any(|start| name.starts_with(start)) => TLS,
        _ => "",
    }
}

fn with(key: &Key, value: &str) -> Result<Config, ConfigError> {
    let name = match key.name {
        "superUser*" => "superUser.1".to_owned(),
        name => name.replace('*', "1"),
    };
    let (line, flag) = match key.scope {
        Scope::Flag => (String::new(), format!("-D{name}={value}")),
        _ => (format!("{name}={value}"), String::new()),
    };
    let text = format!("{BASE}{}{line}\n", base(key));
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
    parse(source, &Environment::new(), &[flag])
}

/// The configuration without any key but those that are needed.
fn plain(key: &Key) -> Config {
    of(base(key))
}

/// A value that is not the default.
fn example(key: &Key) -> &'static str {
    match (key.name, key.form) {
        ("skipACL", _) => "yes",
        ("admin.enableServer", _) => "false",
        ("ssl.protocol" | "ssl.enabledProtocols", _) => "TLSv1.2",
        ("ssl.ciphersuites", _) => "TLS_AES_128_GCM_SHA256",
        ("ssl.keyStore.type" | "ssl.trustStore.type", _) => "PEM",
        ("ssl.clientAuth", _) => "none",
        ("version", _) => "1f",
        ("watchManagerName", _) => "org.apache.zookeeper.server.watch.WatchManagerOptimized",
        ("maxSessionTimeout", _) => "70000",
        ("forceSync", _) => "no",
        ("security.auth_to_local", _) => "RULE:[1:$1]",
        ("snapshot.compression.method", _) => "gz",
        ("metricsProvider.className", _) => "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
        ("metricsProvider.httpPort", _) => "700",
        ("metricsProvider.ssl.keyStore.type" | "metricsProvider.ssl.trustStore.type", _) => "PEM",
        ("metricsProvider.ssl.need.client.auth", _) => "false",
        ("metricsProvider.ssl.enabledProtocols", _) => "TLSv1.2",
        ("metricsProvider.ssl.ciphersuites", _) => "TLS_AES_128_GCM_SHA256",
        ("pathStats.sampleRate" | "snapshotSizeFactor", _) => "0.7",
        (name, Form::Text) if name.starts_with("connection_throttle_") => "0.7",
        (_, Form::Int | Form::Long) => "700",
        (_, Form::Bool) if key.default == "true" => "false",
        (_, Form::Bool) => "true",
        (_, Form::Three) => "3",
        (_, Form::Role) => "observer",
        (_, Form::Text | Form::Provider) => "/other",
    }
}

#[test]
fn a_key_does_what_its_class_says() {
    let same = |config: Config, key: &Key| Config { warnings: vec![], ..config } == plain(key);
    for key in KEYS.iter().filter(|key| key.scope != Scope::Variable) {
        let value = example(key);
        let result = with(key, value);
        match key.class {
            Class::Works if CHECKS.contains(&key.name) => {}
            Class::Works => {
                let config = result.unwrap_or_else(|error| panic!("{error}"));
                assert!(!same(config, key), "{}={value} changes nothing", key.name);
            }
            Class::Tunes | Class::Member if key.asks_nothing(value) => {
                assert_eq!(result.unwrap().warnings, vec![], "{}", key.name);
            }
            Class::Tunes | Class::Member => {
                let warned = format!("{:?}", result.unwrap().warnings);
                assert!(warned.contains(key.name.trim_end_matches('*')), "{}: {warned}", key.name);
                assert!(warned.contains("no effect"), "{}: {warned}", key.name);
            }
            Class::Guards => {
                let harmless = key.harmless.map_or("false", |harmless| harmless);
                let refused = if harmless == value { with(key, "x") } else { result };
                let error = refused.expect_err(key.name).to_string();
                assert!(error.contains(key.text), "{error}");
            }
            // Only some values make an ensemble; tests of `server.N` lines have them.
            Class::Ensemble => {}
        }
    }
}

#[test]
fn settings_that_members_use_change_their_configuration() {
    let ensemble = |line: &str| {
        let is_other = |limit: &&str| line.split('=').next() != limit.split('=').next();
        let limits = ["initLimit=5\n", "syncLimit=2\n"].into_iter().filter(is_other);
        let limits: String = limits.collect();
        let text = format!(
            "dataDir=/d\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n{limits}{line}\n"
        );
        let source = Source { name: "z", text: text.as_bytes(), my_id: Some("1") };
        let config = parse(source, &Environment::new(), &[]).unwrap();
        let warnings = config.warnings.clone();
        (Config { warnings: vec![], ..config }, warnings)
    };
    // SASL between servers needs a JAAS file: tests/config/sasl.rs has it.
    let in_member = |key: &&Key| {
        key.class == Class::Member
            && key.scope != Scope::Flag
            && !["quorum.auth.", "kerberos."].iter().any(|start| key.name.starts_with(start))
    };
    for key in KEYS.iter().filter(in_member) {
        let name = key.name;
        let value = if name == "leaderServes" { "no" } else { example(key) };
        let base = match name {
            "sslQuorum" | "portUnification" => QUORUM_STORES.to_owned(),
            "sslQuorumReloadCertFiles" | "fips-mode" => format!("{QUORUM_STORES}sslQuorum=true\n"),
            _ => String::new(),
        };
        let ensemble = |line: &str| ensemble(&format!("{base}{line}"));
        let (plain, _) = ensemble("");
        let (changed, warnings) = ensemble(&format!("{name}={value}"));
        if name == "peerType" {
            // It only repeats the role in the server's own line.
            assert!(format!("{warnings:?}").contains("server.1 is a participant"));
            continue;
        }
        assert!(changed != plain, "{name}={value} changes nothing");
        let is_idle = |w: &oxkeeper::config::Warning| w.text.starts_with("ssl.quorum.");
        let others: Vec<_> = warnings.iter().filter(|warning| !is_idle(warning)).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
        if !["none", "-1"].contains(&key.default) {
            let (same, _) = ensemble(&format!("{name}={}", key.default));
            assert!(same == plain, "{name}={} changes something", key.default);
        }
    }
}

#[test]
fn defaults_are_what_the_table_says() {
    let words = [
        "required",
        "none",
        "dataDir",
        "all addresses",
        "jute.maxbuffer",
        "ssl.protocol",
        "built in",
        "by extension",
        "false, quorum true",
        "Server", // Written out, the section has to be there.
    ];
    for key in KEYS.iter().filter(|key| key.class == Class::Works) {
        if key.scope != Scope::Variable && !words.contains(&key.default) {
            let config = with(key, key.default).unwrap_or_else(|error| panic!("{error}"));
            let config = Config { warnings: vec![], ..config };
            // Stores without the setting that uses them are warned of.
            let plain = Config { warnings: vec![], ..plain(key) };
            assert_eq!(config, plain, "{}={}", key.name, key.default);
        }
    }
}
