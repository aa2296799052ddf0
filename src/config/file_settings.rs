//! The keys that `QuorumPeerConfig` reads by name, except those of ensembles.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::checker::Checker;
use super::members::OwnLine;
use super::metrics_provider::{self, MetricsSettings};
use super::pause_monitor::{self, PauseMonitor};
use super::{SettingPlace, client_address};

/// Ticks of the default session timeouts.
const MIN_SESSION_TICKS: i64 = 2;
const MAX_SESSION_TICKS: i64 = 20;
/// A shorter tick was hardly meant in ms.
const LEAST_USUAL_TICK_MS: i32 = 50;

const ANY: RangeInclusive<i32> = i32::MIN..=i32::MAX;

/// The part of [`super::Config`] that Java reads from the file alone.
pub(super) struct FileSettings {
    pub data_dir: PathBuf,
    pub data_log_dir: PathBuf,
    pub client_host: Option<String>,
    pub client_port: Option<u16>,
    pub client_port_listen_backlog: i32,
    pub tick_time_ms: u32,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    pub max_client_cnxns: i32,
    pub purge_snap_retain_count: u32,
    pub purge_interval_hours: Option<u32>,
    pub reconfig_enabled: bool,
    pub metrics: MetricsSettings,
    pub pause_monitor: PauseMonitor,
}

/// The setting `dataDir`; `None` if it is wrong or not set; a problem says so.
pub(super) fn take_data_dir(checker: &mut Checker) -> Option<PathBuf> {
    let problems = checker.problems.len();
    let data_dir = checker.directory("dataDir");
    if data_dir.is_none() && checker.problems.len() == problems {
        let whole = checker.whole.clone();
        checker.problem(&whole, "dataDir is not set; add dataDir=/a/directory");
    }
    data_dir
}

/// `None` if a setting was wrong; a problem says which.
///
/// * `data_dir`: see [`take_data_dir`].
/// * `own_line`: the client address in this server's own `server.N` line.
/// * `secure`: where clients connect with TLS, which may be the only port for clients. `secure_is_wrong`: it is set to what is no port.
pub(super) fn take(
    checker: &mut Checker,
    data_dir: Option<PathBuf>,
    own_line: OwnLine,
    secure: Option<&client_address::SecureAddress>,
    secure_is_wrong: bool,
) -> Option<FileSettings> {
    let data_log_dir = checker.directory("dataLogDir").or_else(|| data_dir.clone());
    let client = client_address::take(checker, own_line, secure, secure_is_wrong);
    let client_port_listen_backlog =
        checker.number("clientPortListenBacklog", ANY).map_or(-1, |(n, _)| n);
    let timeouts = take_timeouts(checker);
    let max_client_cnxns = checker.number("maxClientCnxns", ANY).map_or(60, |(count, place)| {
        if count < -1 {
            let text = format!("maxClientCnxns={count} means no limit; write 0 if that is meant");
            checker.warn_of_use(&place, 0, text);
        }
        count
    });
    let mut retain = 3;
    if let Some((count, place)) = checker.number("autopurge.snapRetainCount", ANY) {
        retain = count.max(3);
        if count < 3 {
            let text = format!(
                "autopurge.snapRetainCount={count} is below 3, so 3 is used; write 3 or more"
            );
            checker.warn_of_use(&place, 3, text);
        }
    }
    let purge_hours = checker.number("autopurge.purgeInterval", ANY).map_or(0, |(n, _)| n);

    let reconfig_enabled = checker.boolean("reconfigEnabled").is_some_and(|(on, _)| on);
    let metrics = metrics_provider::take(checker);
    let pause_monitor = pause_monitor::take(checker);

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
        metrics,
        pause_monitor,
    })
}

/// Tick, minimum and maximum session timeout, all in ms.
///
/// Values below 0 mean what they mean in Java: the minimum forbids nothing, and with such a maximum sessions end at once.
fn take_timeouts(checker: &mut Checker) -> Option<(u32, i32, i32)> {
    let problems = checker.problems.len();
    let tick = checker.number("tickTime", 1..=i32::MAX);
    let tick_ms = tick.as_ref().map_or(3000, |(n, _)| i64::from(*n));
    let min = checker.number("minSessionTimeout", ANY);
    let max = checker.number("maxSessionTimeout", ANY);
    if checker.problems.len() > problems {
        // If both timeouts are set they can be compared, even if `tickTime` is wrong.
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
    if let Some((ms, place)) = tick.as_ref().filter(|(ms, _)| *ms < LEAST_USUAL_TICK_MS) {
        let text =
            format!("tickTime={ms} makes ticks of {ms} ms: is it meant in ms? 2000 is usual");
        checker.warn(place, text);
    }
    let whole = checker.whole.clone();
    let place = |setting: Option<&(i32, SettingPlace)>| {
        setting.map_or_else(|| whole.clone(), |(_, place)| place.clone())
    };
    let is_set = |setting: &Option<(i32, SettingPlace)>| {
        setting.as_ref().map(|(n, _)| i64::from(*n)).filter(|&n| n != -1)
    };
    let (set_min, set_max) = (is_set(&min), is_set(&max));
    let min_ms = set_min.unwrap_or(tick_ms * MIN_SESSION_TICKS);
    let max_ms = set_max.unwrap_or(tick_ms * MAX_SESSION_TICKS);
    if max_ms < min_ms {
        let text = match (set_min, set_max) {
            (Some(_), Some(_)) => format!(
                "minSessionTimeout {min_ms} ms is above maxSessionTimeout {max_ms} ms; correct one of them"
            ),
            (_, None) => format!(
                "minSessionTimeout={min_ms} is above the default of maxSessionTimeout, {MAX_SESSION_TICKS} ticks ({max_ms} ms); \
                 set maxSessionTimeout too"
            ),
            (None, _) => format!(
                "maxSessionTimeout={max_ms} is below the default of minSessionTimeout, {MIN_SESSION_TICKS} ticks ({min_ms} ms); \
                 set minSessionTimeout too"
            ),
        };
        checker.problem(&place(max.as_ref().or(min.as_ref())), text);
    } else if i64::from(i32::MAX) < max_ms {
        let text = format!(
            "tickTime={tick_ms} makes the default of maxSessionTimeout, {MAX_SESSION_TICKS} ticks, {max_ms} ms, above {}; \
             lower tickTime, or set maxSessionTimeout",
            i32::MAX
        );
        checker.problem(&place(tick.as_ref()), text);
    }
    Some((tick_ms as u32, i32::try_from(min_ms).ok()?, i32::try_from(max_ms).ok()?))
}
