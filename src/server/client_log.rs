//! One line a minute that sums up what clients did; each single connection is a line at DEBUG.

use crate::metrics::Registry;

const PAUSE_US: u64 = 60_000_000;

/// The counters as the last line had them.
#[derive(Default)]
pub struct ClientLog {
    due_us: u64,
    last_line: Counts,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Counts {
    /// Sessions that were asked for: new ones, and sessions whose client came back.
    connects: u64,
    /// Connections that this server closed because of an error.
    dropped: u64,
    expired: u64,
}

impl ClientLog {
    /// Writes the line if it is due and there is something to say.
    ///
    /// * `connections`: that clients have now.
    pub fn log_if_due(&mut self, metrics: &Registry, connections: usize, now_us: u64) {
        let counts = Counts {
            connects: metrics.connection_request_count.get(),
            dropped: metrics.connection_drop_count.get(),
            expired: metrics.stale_sessions_expired.get(),
        };
        if let Some(Counts { connects, dropped, expired }) = self.due(counts, now_us) {
            tracing::info!(connects, dropped, expired, connections, "clients in the last minute");
        }
    }

    /// What happened since the last line, if a line is due.
    fn due(&mut self, counts: Counts, now_us: u64) -> Option<Counts> {
        if now_us < self.due_us || counts == self.last_line {
            return None;
        }
        if self.due_us == 0 {
            self.due_us = now_us + PAUSE_US; // The first line sums up a minute too.
            return None;
        }
        let before = std::mem::replace(&mut self.last_line, counts);
        self.due_us = now_us + PAUSE_US;
        Some(Counts {
            connects: counts.connects.saturating_sub(before.connects),
            dropped: counts.dropped.saturating_sub(before.dropped),
            expired: counts.expired.saturating_sub(before.expired),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_comes_once_a_minute_while_clients_come_and_go() {
        let mut log = ClientLog::default();
        let counts = |connects, expired| Counts { connects, dropped: 0, expired };
        assert_eq!(log.due(counts(0, 0), 1), None);
        assert_eq!(log.due(counts(3, 0), 1), None);
        assert_eq!(log.due(counts(5, 1), PAUSE_US), None);
        assert_eq!(log.due(counts(5, 1), PAUSE_US + 1), Some(counts(5, 1)));
        assert_eq!(log.due(counts(5, 1), 9 * PAUSE_US), None, "nothing happened");
        assert_eq!(log.due(counts(6, 1), 9 * PAUSE_US), Some(counts(1, 0)));
        assert_eq!(log.due(counts(1, 0), 20 * PAUSE_US), Some(counts(0, 0)), "srst set them back");
    }
}
