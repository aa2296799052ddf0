//! Compares this server's clock with its leader's, whose time stands in each transaction.

use super::Now;

/// Clocks may differ by this much: TTLs, times of znodes and lines of logs are compared by people.
const APART_MAX_MS: i64 = 10_000;
/// The pause between two warnings.
const PAUSE_US: u64 = 3_600_000_000;
/// Where a transaction's time begins: after the session, the cxid and the zxid.
const TIME_AT: usize = 8 + 4 + 8;

/// When a warning was due last.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockWatch {
    warned_us: Option<u64>,
}

impl ClockWatch {
    /// By how many seconds the leader's clock is ahead of this server's, if a warning is due. A leader's clock that is late does
    /// not show: a transaction may be old, as in a synchronisation.
    ///
    /// * `entry`: a transaction as it stands in the log.
    pub fn ahead_s(&mut self, entry: &[u8], now: Now) -> Option<i64> {
        let time = i64::from_be_bytes(*entry.get(TIME_AT..)?.first_chunk()?);
        let ahead_ms = time.saturating_sub(now.wall_ms);
        let is_due = self.warned_us.is_none_or(|warned_us| warned_us + PAUSE_US <= now.us);
        if ahead_ms <= APART_MAX_MS || !is_due {
            return None;
        }
        self.warned_us = Some(now.us);
        Some(ahead_ms / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jute::Encode as _;

    #[test]
    fn leader_whose_clock_is_ahead_is_reported_once_an_hour() {
        let entry = |time| {
            let mut entry = Vec::new();
            jute::txn::TxnHeader { client_id: 7, cxid: 1, zxid: 5, time, kind: 1 }
                .encode(&mut entry);
            entry
        };
        let mut watch = ClockWatch::default();
        let mut at = |us, time| watch.ahead_s(&entry(time), Now { us, wall_ms: 100_000 });
        assert_eq!(at(0, 110_000), None, "the difference is small");
        assert_eq!(at(0, 1000), None, "an old transaction");
        assert_eq!(at(0, 112_000), Some(12));
        assert_eq!(at(PAUSE_US - 1, 112_000), None);
        assert_eq!(at(PAUSE_US, 113_000), Some(13));
        assert_eq!(watch.ahead_s(&[1; 27], Now { us: 0, wall_ms: 0 }), None, "too short");
    }
}
