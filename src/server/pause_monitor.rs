//! Watches for pauses of the server (`jvm.pause.monitor`): of its process, its machine, its timer, or its main loop.
//!
//! Java's monitor sleeps, and takes what the sleep took too long for a pause. Here the main loop has to answer after each sleep, too.

use super::inbox::{Event, Inbox};
use crate::config::PauseMonitor;
use crate::metrics::Registry;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tracing::Level;

/// Starts the watch, if the settings want it.
pub fn start(settings: PauseMonitor, inbox: &Arc<Inbox>, metrics: &Arc<Registry>) {
    if settings.is_on {
        tokio::spawn(watch(settings, inbox.clone(), metrics.clone()));
    }
}

/// Watches until the driver has ended.
async fn watch(settings: PauseMonitor, inbox: Arc<Inbox>, metrics: Arc<Registry>) {
    let PauseMonitor { sleep_ms, info_above_ms, warn_above_ms, .. } = settings;
    tracing::info!(sleep_ms, info_above_ms, warn_above_ms, "watching for pauses");
    let interval = Duration::from_millis(sleep_ms);
    let mut pauses = Pauses::default();
    while !inbox.is_closed() {
        let began = Instant::now();
        sleep(interval).await;
        let (to, from) = oneshot::channel();
        inbox.put(Event::Report(to));
        if from.await.is_err() {
            return; // The driver has ended.
        }
        let pause_ms = began.elapsed().saturating_sub(interval).as_millis() as i64;
        metrics.jvm_pause_time_ms.record(pause_ms);
        let level = pauses.note(settings, pause_ms);
        let Pauses { infos, warns } = pauses;
        match level {
            Some(Level::WARN) => tracing::warn!(
                pause_ms,
                infos,
                warns,
                "this server has paused: check whether the machine swaps, is suspended, or has too little CPU"
            ),
            Some(_) => tracing::info!(pause_ms, infos, warns, "this server has paused"),
            None => {}
        }
    }
}

/// How many pauses were logged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Pauses {
    infos: u64,
    warns: u64,
}

impl Pauses {
    /// Counts a pause. Returns the level at which it is logged.
    fn note(&mut self, settings: PauseMonitor, pause_ms: i64) -> Option<Level> {
        if settings.warn_above_ms < pause_ms {
            self.warns += 1;
            return Some(Level::WARN);
        }
        let is_info = settings.info_above_ms < pause_ms;
        self.infos += u64::from(is_info);
        is_info.then_some(Level::INFO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-49 C-50
    #[test]
    fn pause_is_logged_above_the_threshold() {
        let (info_above_ms, warn_above_ms) = (10, 20);
        let settings = PauseMonitor { is_on: true, sleep_ms: 500, info_above_ms, warn_above_ms };
        let mut pauses = Pauses::default();
        let levels = [0, 10, 11, 20, 21, 5000].map(|pause_ms| pauses.note(settings, pause_ms));
        let (info, warn) = (Some(Level::INFO), Some(Level::WARN));
        assert_eq!(levels, [None, None, info, info, warn, warn]);
        assert_eq!(pauses, Pauses { infos: 2, warns: 2 });
    }
}
