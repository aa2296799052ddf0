//! Settings that are read from zoo.cfg only.

use crate::{BASE, file};
use oxkeeper::config::tls::{ClientAuth, TlsVersion};
use oxkeeper::config::{Config, Environment, Prometheus, Provider, Source, parse};
use oxkeeper::model::golden::bytes_of;
use std::path::Path;

fn of(text: &str) -> Config {
    file(text, None).unwrap()
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let error = file(text, None).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

// rows: C-12 C-13 C-14 C-15 C-19
#[test]
fn directories_and_client_address_are_read() {
    let config = of(" dataDir = /d \nclientPort=2181\n");
    assert_eq!(config.data_dir, Path::new("/d"));
    assert_eq!(config.data_log_dir, Path::new("/d"));
    assert_eq!((config.client_host, config.client_port), (None, Some(2181)));
    assert_eq!(config.client_port_listen_backlog, -1);

    let config = of("dataDir=/d\ndataLogDir=/l\nclientPort=0\nclientPortAddress=::1\n\
        clientPortListenBacklog=7");
    assert_eq!(config.data_log_dir, Path::new("/l"));
    assert_eq!(
        (config.client_host.as_deref(), config.client_port),
        (Some("0:0:0:0:0:0:0:1"), Some(0))
    );
    assert_eq!(config.client_port_listen_backlog, 7);
    assert_eq!(of(&format!("{BASE}clientPortListenBacklog=0")).client_port_listen_backlog, 0);
}

// rows: C-09
#[test]
fn relative_path_without_a_leading_dot_is_warned_of() {
    let warned = |dir: &str| {
        let config = of(&format!("dataDir={dir}  \nclientPort=2181"));
        assert_eq!(config.data_dir, Path::new(dir), "taken from the working directory");
        config.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warned("/d"), [""; 0]);
    assert_eq!(warned("./d"), [""; 0]);
    assert_eq!(warned("d"), ["zoo.cfg:1: dataDir=d is relative; write ./d if it is meant"]);
}

// rows: C-10
#[test]
fn settings_that_cannot_be_honoured_are_refused() {
    refused("clientPort=2181", "zoo.cfg: dataDir is not set");
    refused("clientPort=2181\ndataDir=", "zoo.cfg:2: dataDir is empty");
    refused("dataDir=/d", "zoo.cfg: clientPort is not set");
    let secure = file("dataDir=/d\nsecureClientPort=x", None).unwrap_err().to_string();
    assert!(secure.contains("secureClientPort=x") && secure.lines().count() == 1, "{secure}");
    refused("dataDir=/d\nclientPortAddress=h", "clientPortAddress=h is set but clientPort is not");
    refused("dataDir=/d\nclientPort=65536", "clientPort=65536 is not within 0 and 65535");
    refused(&format!("{BASE}tickTime=0"), "tickTime=0");
    refused(&format!("{BASE}minSessionTimeout=9\nmaxSessionTimeout=8"), "9 ms is above");
    let three = "tickTime=x\nminSessionTimeout=9\nmaxSessionTimeout=3";
    refused(&format!("{BASE}{three}"), "tickTime=x is not a number");
    refused(&format!("{BASE}{three}"), "minSessionTimeout 9 ms is above maxSessionTimeout 3 ms");
    refused(
        &format!("{BASE}maxSessionTimeout=5"),
        "zoo.cfg:3: maxSessionTimeout=5 is below the default of minSessionTimeout, 2 ticks (6000 ms); set minSessionTimeout too",
    );
    let long = "minSessionTimeout=70000";
    refused(&format!("{BASE}{long}"), "20 ticks (60000 ms); set maxSessionTimeout too");
    refused(
        &format!("{BASE}tickTime=2000000000"),
        "zoo.cfg:3: tickTime=2000000000 makes the default of maxSessionTimeout, 20 ticks, 40000000000 ms",
    );
    refused(&format!("{BASE}electionAlg=a\\nb"), "electionAlg=a\\nb is not a number");
    refused(&format!("{BASE}watchManagerName=Mine"), "watchManagerName=Mine is not known");
}

// rows: C-20 C-21 C-22 C-23
#[test]
fn timeouts_follow_the_tick() {
    let timeouts = |config: Config| {
        (config.tick_time_ms, config.min_session_timeout_ms, config.max_session_timeout_ms)
    };
    assert_eq!(timeouts(of(BASE)), (3000, 6000, 60_000));
    assert_eq!(timeouts(of(&format!("{BASE}tickTime=2000"))), (2000, 4000, 40_000));
    let set = format!("{BASE}minSessionTimeout=-1\nmaxSessionTimeout=70000");
    assert_eq!(timeouts(of(&set)), (3000, 6000, 70_000));
    assert_eq!(of(BASE).max_client_cnxns, 60);
    assert_eq!(of(&format!("{BASE}maxClientCnxns=0")).max_client_cnxns, 0);
    assert_eq!(of(&format!("{BASE}maxClientCnxns=-5")).max_client_cnxns, -5);
    assert_eq!(timeouts(of(&format!("{BASE}minSessionTimeout=-5"))), (3000, -5, 60_000));
    let both = format!("{BASE}minSessionTimeout=-5\nmaxSessionTimeout=-3");
    assert_eq!(timeouts(of(&both)), (3000, -5, -3));
}

// rows: C-04 C-52 C-53 C-54 C-55
#[test]
fn metrics_go_where_the_provider_says() {
    let of = |name: &str| {
        let class = format!("metricsProvider.className=org.apache.zookeeper.metrics.{name}");
        let config = of(&format!("{BASE}{class}"));
        let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        (config.metrics.provider, config.metrics.prometheus, warned.join(" "))
    };
    assert_eq!(of("impl.DefaultMetricsProvider"), (Provider::Default, None, String::new()));
    assert_eq!(of("impl.NullMetricsProvider"), (Provider::Null, None, String::new()));
    let defaults = Prometheus { host: None, port: Some(7000), https: None, exports_process: true };
    let (provider, port, warned) = of("prometheus.PrometheusMetricsProvider");
    assert_eq!((provider, port, &*warned), (Provider::Prometheus, Some(defaults), ""));
    let idle = of("impl.NullMetricsProvider\nmetricsProvider.httpPort=x").2;
    assert!(idle.contains("metricsProvider.httpPort=x: no effect"), "{idle}");
    refused(
        &format!(
            "{BASE}metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\nmetricsProvider.httpPort=x"
        ),
        "metricsProvider.httpPort=x",
    );
    refused(&format!("{BASE}metricsProvider.className=x.Y"), "is not a known metrics provider");
}

#[test]
fn metrics_are_served_over_tls_as_in_310() {
    const CLASS: &str = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n";
    const PORT: &str = "metricsProvider.httpsPort=7443\n";
    const STORES: &str = "metricsProvider.ssl.keyStore.location=/k.jks\nmetricsProvider.ssl.trustStore.location=/t\n";
    let of = |lines: &str| of(&format!("{BASE}{CLASS}{lines}"));
    let https = |lines: &str| of(&format!("{PORT}{STORES}{lines}")).metrics.prometheus.unwrap();
    let alone = https("");
    assert_eq!(alone.port, None);
    let tls = alone.https.unwrap();
    assert_eq!((tls.port, tls.settings.client_auth), (7443, ClientAuth::Need));
    assert_eq!(tls.settings.versions, [TlsVersion::V12, TlsVersion::V13]);
    let both = https("metricsProvider.httpPort=70");
    assert_eq!((both.port, both.is_shared()), (Some(70), false));
    assert!(https("metricsProvider.httpPort=7443").is_shared());
    let auth = |lines: &str| https(lines).https.unwrap().settings.client_auth;
    let need = "metricsProvider.ssl.need.client.auth=false\n";
    assert_eq!(auth(need), ClientAuth::Want);
    assert_eq!(
        auth(&format!("{need}metricsProvider.ssl.want.client.auth=false")),
        ClientAuth::None
    );
    refused(&format!("{BASE}{CLASS}{PORT}"), "set metricsProvider.ssl.keyStore.location");
    refused(
        &format!("{BASE}{CLASS}{PORT}metricsProvider.ssl.keyStore.location=/k"),
        "set metricsProvider.ssl.trustStore.location",
    );
    let idle = of(STORES);
    assert_eq!(idle.metrics.prometheus.unwrap().port, Some(7000));
    assert!(format!("{:?}", idle.warnings).contains("metricsProvider.httpsPort is not set"));
}

// rows: C-32 C-33
#[test]
fn purge_keeps_at_least_three_snapshots() {
    let config = of(BASE);
    assert_eq!((config.purge_snap_retain_count, config.purge_interval_hours), (3, None));
    let config = of(&format!("{BASE}autopurge.snapRetainCount=2\nautopurge.purgeInterval=24\n"));
    assert_eq!((config.purge_snap_retain_count, config.purge_interval_hours), (3, Some(24)));
    assert_eq!(config.warnings.len(), 1);
}

/// One line of what `Conf.java` prints.
fn outcome(config: &Config) -> String {
    let host = config.client_host.as_deref().unwrap_or("*");
    format!(
        "{} {} {} {} {} {} {} {} {} {} {}",
        config.client_port.unwrap(),
        if host == "::%lo" { "*" } else { host }, // Any address, with a zone that must exist.
        config.tick_time_ms,
        config.min_session_timeout_ms,
        config.max_session_timeout_ms,
        config.max_client_cnxns,
        config.client_port_listen_backlog,
        config.purge_snap_retain_count,
        config.purge_interval_hours.unwrap_or(0),
        config.data_dir.display(),
        config.data_log_dir.display(),
    )
}

// rows: C-03 C-10 C-20 C-21 C-22 C-23
#[test]
fn every_standalone_file_has_the_outcome_it_has_in_java() {
    let cases = include_str!("../../compat-tests/golden/config/cases.txt");
    let expected = include_str!("../../compat-tests/golden/config/expected.txt");
    assert_eq!(cases.lines().count(), expected.lines().count());
    for (case, expected) in cases.lines().zip(expected.lines()) {
        let (my_id, text) = match case.split_once('!') {
            Some((id, text)) => (Some(id), text),
            None => (None, case),
        };
        if text.contains("&&") || expected.starts_with("ENSEMBLE") {
            continue; // See `src/config/ensemble_tests.rs`.
        }
        let source = Source { name: "zoo.cfg", text: &bytes_of(text), my_id };
        let config = parse(source, &Environment::new(), &[]);
        // Java also starts without a client port; and with several addresses only if a flag allows them.
        let expected = if expected.starts_with("none") { "REFUSED" } else { expected };
        let is_ours = case.contains("multiAddress.enabled=true%0aserver.4=d.invalid:1:2|e");
        assert_eq!(config.is_ok(), is_ours || expected != "REFUSED", "case {case}");
        if let (Ok(config), false) = (config, is_ours) {
            assert_eq!(outcome(&config), expected, "case {case}");
        }
    }
}

#[test]
fn the_official_container_file_runs() {
    let text = "dataDir=/data\ndataLogDir=/datalog\ntickTime=2000\ninitLimit=5\nsyncLimit=2\n\
        autopurge.snapRetainCount=3\nautopurge.purgeInterval=0\nmaxClientCnxns=60\n\
        standaloneEnabled=true\nadmin.enableServer=false\nserver.1=localhost:2888:3888;2181\n";
    let config = file(text, Some("1")).unwrap();
    assert_eq!((config.client_host, config.client_port), (None, Some(2181)));
    let error = file(text, Some("2")).unwrap_err().to_string();
    assert!(error.contains("clientPort is not set"), "{error}");
    let error = file(text, Some("one")).unwrap_err().to_string();
    assert!(error.contains("the file /data/myid has \"one\", which is not a number"), "{error}");
    let both = format!("{text}clientPort=2182");
    let error = file(&both, Some("1")).unwrap_err().to_string();
    assert!(
        error.contains("gives clients *:2182, and this server's own server.N line gives *:2181"),
        "{error}"
    );
}
