//! `jvm.pause.*`.

use super::checker::Checker;

/// The watch for pauses of the server. Signed, because Java takes any number: a pause is logged if it is longer than a threshold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PauseMonitor {
    /// `jvm.pause.monitor`.
    pub is_on: bool,
    /// `jvm.pause.sleep.time.ms`: time between two checks; at least 1.
    pub sleep_ms: u64,
    /// `jvm.pause.info-threshold.ms`.
    pub info_above_ms: i64,
    /// `jvm.pause.warn-threshold.ms`.
    pub warn_above_ms: i64,
}

pub(super) fn take(checker: &mut Checker) -> PauseMonitor {
    let is_on = checker.boolean("jvm.pause.monitor").is_some_and(|(on, _)| on);
    let sleep_ms = checker.long("jvm.pause.sleep.time.ms").unwrap_or(500);
    let info_above_ms = checker.long("jvm.pause.info-threshold.ms").unwrap_or(1000);
    let warn_above_ms = checker.long("jvm.pause.warn-threshold.ms").unwrap_or(10_000);
    let sleep_ms = u64::try_from(sleep_ms).unwrap_or(0).max(1);
    PauseMonitor { is_on, sleep_ms, info_above_ms, warn_above_ms }
}
