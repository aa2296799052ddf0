//! The keys that `QuorumPeerConfig` reads by name, as far as a standalone server uses them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Place;
use super::check::Checker;
use super::members;

/// Ticks of the default session timeouts.
const MIN_SESSION_TICKS: i64 = 2;
const MAX_SESSION_TICKS: i64 = 20;

const ANY: (i32, i32) = (i32::MIN, i32::MAX);

const METRICS_PROVIDERS: [&str; 2] = [
    "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
    "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
];

/// The part of [`super::Config`] that Java reads from the file alone.
pub(super) struct Explicit {
    pub data_dir: PathBuf,
    pub data_log_dir: PathBuf,
    pub client_host: Option<String>,
    pub client_port: u16,
    pub client_port_listen_backlog: Option<u32>,
    pub tick_time_ms: u32,
    pub min_session_timeout_ms: u32,
    pub max_session_timeout_ms: u32,
    pub max_client_cnxns: u32,
    pub purge_snap_retain_count: u32,
    pub purge_interval_hours: Option<u32>,
    pub metrics_provider: BTreeMap<String, String>,
}

/// `None` when something was wrong; a problem says what.
pub(super) fn take(checker: &mut Checker, my_id: Option<&str>) -> Option<Explicit> {
    let whole = checker.whole.clone();
    let problems = checker.problems.len();
    let data_dir = checker.directory("dataDir");
    if data_dir.is_none() && checker.problems.len() == problems {
        checker.problem(&whole, "dataDir is not set");
    }
    let data_log_dir = checker.directory("dataLogDir").or_else(|| data_dir.clone());
    let client = take_client_address(checker, my_id);
    let backlog = checker.number("clientPortListenBacklog", ANY).map_or(-1, |(n, _)| n);
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
    let metrics_provider = take_metrics_provider(checker);

    let (client_host, client_port) = client?;
    let (tick_time_ms, min_session_timeout_ms, max_session_timeout_ms) = timeouts?;
    Some(Explicit {
        data_dir: data_dir?,
        data_log_dir: data_log_dir?,
        client_host,
        client_port,
        client_port_listen_backlog: u32::try_from(backlog).ok().filter(|&n| n > 0),
        tick_time_ms,
        min_session_timeout_ms,
        max_session_timeout_ms,
        max_client_cnxns: u32::try_from(max_client_cnxns).unwrap_or(0),
        purge_snap_retain_count: retain as u32,
        purge_interval_hours: u32::try_from(purge_hours).ok().filter(|&n| n > 0),
        metrics_provider,
    })
}

/// Host and port for clients, from `clientPort` or from this server's own `server.N` line.
fn take_client_address(
    checker: &mut Checker,
    my_id: Option<&str>,
) -> Option<(Option<String>, u16)> {
    let problems = checker.problems.len();
    let port = checker.number("clientPort", (0, i32::from(u16::MAX)));
    let port_was_wrong = checker.problems.len() > problems;
    let host = checker.take("clientPortAddress");
    let own_line = members::take(checker, my_id);
    let whole = checker.whole.clone();
    match (port, host, own_line) {
        (None, Some(host), _) if !port_was_wrong => {
            let text = format!("clientPortAddress={} is set but clientPort is not", host.value);
            checker.problem(&host.place, text);
            None
        }
        (None, None, None) if !port_was_wrong => {
            // Java stays up and serves nobody; that helps nobody either.
            checker.problem(&whole, "clientPort is not set");
            None
        }
        (None, None, Some(own)) if !port_was_wrong => Some(own),
        (None, ..) => None,
        (Some((port, place)), host, own) => {
            let fixed = (host.map(|host| host.value), port as u16);
            let Some(own) = own else { return Some(fixed) };
            if fixed.1 != own.1 || (fixed.0.is_some() && fixed.0 != own.0) {
                let text = format!("clientPort={port} differs from this server's own server line");
                checker.problem(&place, text);
            }
            Some(own)
        }
    }
}

/// Tick, minimum and maximum session timeout, all in ms.
fn take_timeouts(checker: &mut Checker) -> Option<(u32, u32, u32)> {
    let problems = checker.problems.len();
    let tick_ms = checker.number("tickTime", (1, i32::MAX)).map_or(3000, |(n, _)| i64::from(n));
    let min = checker.number("minSessionTimeout", ANY);
    let max = checker.number("maxSessionTimeout", ANY);
    if checker.problems.len() > problems {
        return None;
    }
    let whole = checker.whole.clone();
    let place = max.as_ref().or(min.as_ref()).map_or(whole, |(_, place)| place.clone());
    let set = |setting: Option<(i32, Place)>| setting.map(|(n, _)| n).filter(|&n| n != -1);
    let min_ms = set(min).map_or(tick_ms * MIN_SESSION_TICKS, i64::from);
    let max_ms = set(max).map_or(tick_ms * MAX_SESSION_TICKS, i64::from);
    if max_ms < min_ms {
        let text = format!("minSessionTimeout {min_ms} ms is above maxSessionTimeout {max_ms} ms");
        checker.problem(&place, text);
    } else if max_ms < 0 || i64::from(i32::MAX) < max_ms {
        checker.problem(&place, format!("maxSessionTimeout {max_ms} ms is not a session timeout"));
    }
    // A negative minimum forbids nothing, just as 0.
    Some((tick_ms as u32, min_ms.max(0) as u32, u32::try_from(max_ms).ok()?))
}

fn take_metrics_provider(checker: &mut Checker) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for (key, setting) in checker.take_all(|key| key.starts_with("metricsProvider.")) {
        let name = &key["metricsProvider.".len()..];
        if name == "className" && !METRICS_PROVIDERS.contains(&setting.value.as_str()) {
            let text = format!("{key}={} is no metrics provider known here", setting.value);
            checker.problem(&setting.place, text);
        }
        settings.insert(name.to_owned(), setting.value);
    }
    settings
}
