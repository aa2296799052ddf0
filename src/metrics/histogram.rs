//! How many times took how long, for Prometheus' histograms.

use super::shard::Sharded;
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds in microseconds; there is one more bucket for all above. Ascending.
const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 10_000_000,
];

/// Counts times since the start; two uncontended atomic adds per call. `srst` leaves it as it is.
#[derive(Debug, Default)]
pub struct Histogram {
    shards: Sharded<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramValues {
    /// Upper bounds in seconds with the number of times up to each, those below included.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum_seconds: f64,
}

impl Histogram {
    pub fn record(&self, took_us: u64, count: u64) {
        let shard = self.shards.own();
        let bucket = BOUNDS_US.partition_point(|&bound| bound < took_us);
        shard.counts[bucket].fetch_add(count, Ordering::Relaxed);
        shard.sum_us.fetch_add(took_us.saturating_mul(count), Ordering::Relaxed);
    }

    pub fn values(&self) -> HistogramValues {
        let (mut counts, mut sum_us) = ([0u64; BOUNDS_US.len() + 1], 0u64);
        for shard in self.shards.all() {
            for (sum, count) in counts.iter_mut().zip(&shard.counts) {
                *sum += count.load(Ordering::Relaxed);
            }
            sum_us = sum_us.wrapping_add(shard.sum_us.load(Ordering::Relaxed));
        }
        let mut reached = 0;
        let buckets = BOUNDS_US.iter().zip(counts).map(|(&bound, count)| {
            reached += count;
            (bound as f64 / 1e6, reached)
        });
        let buckets = buckets.collect();
        HistogramValues { buckets, count: counts.iter().sum(), sum_seconds: sum_us as f64 / 1e6 }
    }

    /// A histogram of Prometheus never shrinks.
    pub(super) const fn reset(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_counts_all_up_to_it() {
        let histogram = Histogram::default();
        histogram.record(100, 1);
        histogram.record(101, 2);
        histogram.record(3_000_000_000, 1);
        let HistogramValues { buckets, count, sum_seconds } = histogram.values();
        assert_eq!(buckets[..3], [(0.0001, 1), (0.00025, 3), (0.0005, 3)]);
        assert_eq!((buckets.last(), count), (Some(&(10.0, 3)), 4));
        assert_eq!(sum_seconds, 3000.000302);
    }
}
