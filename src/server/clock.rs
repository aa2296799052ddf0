//! The machine's clocks, as numbers.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time since the process began to serve, and the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub epoch: Instant,
    /// Milliseconds since 1970 at `epoch`.
    epoch_wall_ms: u64,
}

impl Clock {
    pub fn start() -> Self {
        Self { epoch: Instant::now(), epoch_wall_ms: wall_ms() as u64 }
    }

    pub fn now_us(self) -> u64 {
        self.epoch.elapsed().as_micros() as u64
    }

    pub fn now_ms(self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    /// Milliseconds since 1970 at a monotonic millisecond, past or future, computed from the wall clock at the start.
    pub const fn wall_ms_at(self, at_ms: u64) -> u64 {
        self.epoch_wall_ms + at_ms
    }

    /// Milliseconds since 1970.
    pub fn wall_ms(self) -> i64 {
        wall_ms()
    }
}

/// Milliseconds since 1970.
pub fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
