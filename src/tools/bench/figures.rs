//! Throughput and latencies as numbers: of a whole run, or of a piece of its time.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Latencies in microseconds, to one percent.
pub type Latencies = Histogram<u64>;

/// Throughput and latencies of some operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Operations answered without an error.
    pub count: u64,
    pub ops_s: f64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

impl Figures {
    /// * `secs`: the time in which the operations were sent.
    pub fn of(latencies: &Latencies, secs: f64) -> Self {
        Self {
            count: latencies.len(),
            ops_s: if secs > 0.0 { latencies.len() as f64 / secs } else { 0.0 },
            mean_us: latencies.mean(),
            p50_us: latencies.value_at_quantile(0.5),
            p99_us: latencies.value_at_quantile(0.99),
            p999_us: latencies.value_at_quantile(0.999),
            max_us: latencies.max(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "count": self.count,
            "ops_per_s": (self.ops_s * 10.0).round() / 10.0,
            "mean_us": (self.mean_us * 10.0).round() / 10.0,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "p999_us": self.p999_us,
            "max_us": self.max_us,
        })
    }
}

/// A piece of the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub from_s: f64,
    pub until_s: f64,
    pub figures: Figures,
}
