//! The keys that `QuorumPeerConfig` reads by name, those of ensembles aside.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::checker::{Checker, Setting};
use super::members::OwnLine;
use super::{SettingPlace, client_address};

/// Ticks of the default session timeouts.
const MIN_SESSION_TICKS: i64 = 2;
const MAX_SESSION_TICKS: i64 = 20;

const ANY: RangeInclusive<i32> = i32::MIN..=i32::MAX;

/// The part of [`super::Config`] that Java reads from the file alone.
pub(super) struct FileSettings {
    pub data_dir: PathBuf,
    pub data_log_dir: PathBuf,
    pub client_host: Option<String>,
    pub client_port: u16,
    pub client_port_listen_backlog: i32,
    pub tick_time_ms: u32,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    pub max_client_cnxns: i32,
    pub purge_snap_retain_count: u32,
    pub purge_interval_hours: Option<u32>,
    pub reconfig_enabled: bool,
    pub metrics_enabled: bool,
}

const PROVIDERS: &str = "org.apache.zookeeper.metrics";

/// `None` when something was wrong; a problem says what.
///
/// * `own_line`: what this server's own `server.N` line gives as the address for clients.
pub(super) fn take(checker: &mut Checker, own_line: OwnLine) -> Option<FileSettings> {
    let whole = checker.whole.clone();
    let problems = checker.problems.len();
    let data_dir = checker.directory("dataDir");
    if data_dir.is_none() && checker.problems.len() == problems {
        checker.problem(&whole, "dataDir is not set; add dataDir=/a/directory");
    }
    let data_log_dir = checker.directory("dataLogDir").or_else(|| data_dir.clone());
    let client = client_address::take(checker, own_line);
    let client_port_listen_backlog =
        checker.number("clientPortListenBacklog", ANY).map_or(-1, |(n, _)| n);
    let timeouts = take_timeouts(checker);
    let max_client_cnxns = checker.number("maxClientCnxns", ANY).map_or(60, |(n, _)| n);
    let mut retain = 3;
    if let Some((count, place)) = checker.number("autopurge.snapRetainCount", ANY) {
        retain = count.max(3);
        if count < 3 {
            checker
                .warn(&place, format!("autopurge.snapRetainCount={count} is below 3; 3 is used"));
        }
    }
    let purge_hours = checker.number("autopurge.purgeInterval", ANY).map_or(0, |(n, _)| n);

    let reconfig_enabled = checker.boolean("reconfigEnabled").is_some_and(|(on, _)| on);
    let metrics_enabled = take_metrics_provider(checker);

    let (client_host, client_port) = client?;
    let (tick_time_ms, min_session_timeout_ms, max_session_timeout_ms) = timeouts?;
    Some(FileSettings {
        data_dir: data_dir?,
        data_log_dir: data_log_dir?,
        client_host,
        client_port,
        client_port_listen_backlog,
        tick_time_ms,
        min_session_timeout_ms,
        max_session_timeout_ms,
        max_client_cnxns,
        purge_snap_retain_count: retain as u32,
        purge_interval_hours: u32::try_from(purge_hours).ok().filter(|&n| n > 0),
        reconfig_enabled,
        metrics_enabled,
    })
}

/// Whether metrics are kept for anybody to read.
fn take_metrics_provider(checker: &mut Checker) -> bool {
    let Some(Setting { value, place, .. }) = checker.take("metricsProvider.className") else {
        return true;
    };
    let shown = format!("metricsProvider.className={value}");
    match value.strip_prefix(PROVIDERS) {
        Some(".impl.DefaultMetricsProvider") => {}
        Some(".impl.NullMetricsProvider") => return false,
        Some(".prometheus.PrometheusMetricsProvider") => {
            let text = "metrics are read by mntr; there is no Prometheus endpoint yet";
            checker.warn(&place, format!("{shown}: no effect; {text}"));
        }
        _ => {
            checker.problem(&place, format!("{shown} is no metrics provider known here; remove it"))
        }
    }
    true
}

/// Tick, minimum and maximum session timeout, all in ms.
///
/// Below 0 is taken as Java takes it: a minimum that forbids nothing, a maximum of sessions that end at once.
fn take_timeouts(checker: &mut Checker) -> Option<(u32, i32, i32)> {
    let problems = checker.problems.len();
    let tick = checker.number("tickTime", 1..=i32::MAX);
    let tick_ms = tick.as_ref().map_or(3000, |(n, _)| i64::from(*n));
    let min = checker.number("minSessionTimeout", ANY);
    let max = checker.number("maxSessionTimeout", ANY);
    if checker.problems.len() > problems {
        // Two that are set explicitly can be compared whatever is wrong with the third.
        if let (Some((min_ms, _)), Some((max_ms, place))) = (&min, &max)
            && *max_ms != -1
            && max_ms < min_ms
        {
            let text = format!(
                "minSessionTimeout {min_ms} ms is above maxSessionTimeout {max_ms} ms; correct one of them"
            );
            checker.problem(&place.clone(), text);
        }
        return None;
    }
    let whole = checker.whole.clone();
    let place = max.as_ref().or(min.as_ref()).or(tick.as_ref());
    let place = place.map_or(whole, |(_, place)| place.clone());
    let set = |setting: Option<(i32, SettingPlace)>| setting.map(|(n, _)| n).filter(|&n| n != -1);
    let min_ms = set(min).map_or(tick_ms * MIN_SESSION_TICKS, i64::from);
    let max_ms = set(max).map_or(tick_ms * MAX_SESSION_TICKS, i64::from);
    if max_ms < min_ms {
        let text = format!(
            "minSessionTimeout {min_ms} ms is above maxSessionTimeout {max_ms} ms; set the other one too"
        );
        checker.problem(&place, text);
    } else if i64::from(i32::MAX) < max_ms {
        checker.problem(&place, format!("maxSessionTimeout {max_ms} ms is above {} ms", i32::MAX));
    }
    Some((tick_ms as u32, i32::try_from(min_ms).ok()?, i32::try_from(max_ms).ok()?))
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError, Environment, Source, parse};
    use crate::model::golden::bytes_of;
    use std::path::Path;

    fn with_id(text: &str, my_id: Option<&str>) -> Result<Config, ConfigError> {
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id };
        parse(source, &Environment::new(), &[])
    }

    fn of(text: &str) -> Config {
        with_id(text, None).unwrap()
    }

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let error = with_id(text, None).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    const BASE: &str = "dataDir=/d\nclientPort=2181\n";

    // rows: C-12 C-13 C-14 C-15 C-19
    #[test]
    fn where_to_keep_and_to_listen() {
        let config = of(" dataDir = /d \nclientPort=2181\n");
        assert_eq!(config.data_dir, Path::new("/d"));
        assert_eq!(config.data_log_dir, Path::new("/d"));
        assert_eq!((config.client_host, config.client_port), (None, 2181));
        assert_eq!(config.client_port_listen_backlog, -1);

        let config = of("dataDir=/d\ndataLogDir=/l\nclientPort=0\nclientPortAddress=::1\n\
            clientPortListenBacklog=7");
        assert_eq!(config.data_log_dir, Path::new("/l"));
        assert_eq!(
            (config.client_host.as_deref(), config.client_port),
            (Some("0:0:0:0:0:0:0:1"), 0)
        );
        assert_eq!(config.client_port_listen_backlog, 7);
        assert_eq!(of(&format!("{BASE}clientPortListenBacklog=0")).client_port_listen_backlog, 0);
    }

    // rows: C-09
    #[test]
    fn relative_paths_are_meant_or_warned_of() {
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
    fn what_cannot_be_run_is_refused() {
        refused("clientPort=2181", "zoo.cfg: dataDir is not set");
        refused("clientPort=2181\ndataDir=", "zoo.cfg:2: dataDir is empty");
        refused("dataDir=/d", "zoo.cfg: clientPort is not set");
        refused(
            "dataDir=/d\nclientPortAddress=h",
            "clientPortAddress=h is set but clientPort is not",
        );
        refused("dataDir=/d\nclientPort=65536", "clientPort=65536 is not within 0 and 65535");
        refused(&format!("{BASE}tickTime=0"), "tickTime=0");
        refused(&format!("{BASE}minSessionTimeout=9\nmaxSessionTimeout=8"), "9 ms is above");
        let three = "tickTime=x\nminSessionTimeout=9\nmaxSessionTimeout=3";
        refused(&format!("{BASE}{three}"), "tickTime=x is not a number");
        refused(
            &format!("{BASE}{three}"),
            "minSessionTimeout 9 ms is above maxSessionTimeout 3 ms",
        );
        refused(&format!("{BASE}maxSessionTimeout=5"), "zoo.cfg:3: minSessionTimeout 6000 ms");
        refused(&format!("{BASE}tickTime=2000000000"), "zoo.cfg:3: maxSessionTimeout 40000000000");
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

    #[test]
    fn metrics_go_where_the_provider_says() {
        let of = |name: &str| {
            let class = format!("metricsProvider.className=org.apache.zookeeper.metrics.{name}");
            let config = of(&format!("{BASE}{class}"));
            let warned: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
            (config.metrics_enabled, warned.join(" "))
        };
        assert_eq!(of("impl.DefaultMetricsProvider"), (true, String::new()));
        assert_eq!(of("impl.NullMetricsProvider"), (false, String::new()));
        let (enabled, warned) = of("prometheus.PrometheusMetricsProvider");
        assert!(enabled && warned.ends_with("there is no Prometheus endpoint yet"), "{warned}");
        refused(&format!("{BASE}metricsProvider.className=x.Y"), "is no metrics provider known");
    }

    // rows: C-32 C-33
    #[test]
    fn purging() {
        let config = of(BASE);
        assert_eq!((config.purge_snap_retain_count, config.purge_interval_hours), (3, None));
        let config =
            of(&format!("{BASE}autopurge.snapRetainCount=2\nautopurge.purgeInterval=24\n"));
        assert_eq!((config.purge_snap_retain_count, config.purge_interval_hours), (3, Some(24)));
        assert_eq!(config.warnings.len(), 1);
    }

    /// One line of what `Conf.java` prints.
    fn outcome(config: &Config) -> String {
        let host = config.client_host.as_deref().unwrap_or("*");
        format!(
            "{} {} {} {} {} {} {} {} {} {} {}",
            config.client_port,
            if host == "::%lo" { "*" } else { host }, // Any address, of a zone that must exist.
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
                continue; // See `ensemble`.
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
        let config = with_id(text, Some("1")).unwrap();
        assert_eq!((config.client_host, config.client_port), (None, 2181));
        let error = with_id(text, Some("2")).unwrap_err().to_string();
        assert!(error.contains("clientPort is not set"), "{error}");
        let error = with_id(text, Some("one")).unwrap_err().to_string();
        assert!(error.contains("myid \"one\" is not a number"), "{error}");
        let both = format!("{text}clientPort=2182");
        let error = with_id(&both, Some("1")).unwrap_err().to_string();
        assert!(error.contains("clientPort=2182 differs"), "{error}");
    }
}
