//! Minimum, maximum, count and sum of samples.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::shard::Sharded;
use super::window::Window;

/// The values of some samples.
///
/// Source: `AvgMinMaxCounter`, ZooKeeper 3.9.5; all zero when there was no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SummaryValues {
    /// Rounded half up to four decimals.
    pub avg: f64,
    pub min: i64,
    pub max: i64,
    pub count: u64,
    pub sum: i64,
}

impl SummaryValues {
    /// * `min`, `max`: `i64::MAX` and `i64::MIN` if there was no sample.
    pub(super) fn of(count: u64, sum: i64, min: i64, max: i64) -> Self {
        let exact = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        Self {
            avg: (exact * 10_000.0 + 0.5).floor() / 10_000.0,
            min: if min == i64::MAX { 0 } else { min },
            max: if max == i64::MIN { 0 } else { max },
            count,
            sum,
        }
    }
}

/// Keeps [`SummaryValues`] without locks.
///
/// A reader may see a sample in the count and not yet in the sum, as in Java.
#[derive(Debug, Default)]
pub struct Summary {
    shards: Sharded<Shard>,
    window: Window,
}

#[derive(Debug)]
struct Shard {
    count: AtomicU64,
    sum: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
}

impl Default for Shard {
    fn default() -> Self {
        let (count, sum) = (AtomicU64::new(0), AtomicI64::new(0));
        Self { count, sum, min: AtomicI64::new(i64::MAX), max: AtomicI64::new(i64::MIN) }
    }
}

impl Summary {
    /// Adds one sample, in the unit of the metric.
    pub fn record(&self, sample: i64) {
        self.record_many(sample, 1);
    }

    /// Adds the same sample `count` times, at the cost of once.
    pub fn record_many(&self, sample: i64, count: u64) {
        self.window.record(sample, count);
        let shard = self.shards.own();
        shard.count.fetch_add(count, Ordering::Relaxed);
        shard.sum.fetch_add(sample.wrapping_mul(count as i64), Ordering::Relaxed);
        // Extremes are rare: reading first keeps the usual case to two writes.
        if sample < shard.min.load(Ordering::Relaxed) {
            shard.min.fetch_min(sample, Ordering::Relaxed);
        }
        if shard.max.load(Ordering::Relaxed) < sample {
            shard.max.fetch_max(sample, Ordering::Relaxed);
        }
    }

    /// The samples of the last minutes.
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub fn values(&self) -> SummaryValues {
        let (mut count, mut sum, mut min, mut max) = (0u64, 0i64, i64::MAX, i64::MIN);
        for shard in self.shards.all() {
            count = count.wrapping_add(shard.count.load(Ordering::Relaxed));
            sum = sum.wrapping_add(shard.sum.load(Ordering::Relaxed));
            min = min.min(shard.min.load(Ordering::Relaxed));
            max = max.max(shard.max.load(Ordering::Relaxed));
        }
        SummaryValues::of(count, sum, min, max)
    }

    /// Forgets all samples; a concurrent sample may be half forgotten.
    pub fn reset(&self) {
        for shard in self.shards.all() {
            shard.count.store(0, Ordering::Relaxed);
            shard.sum.store(0, Ordering::Relaxed);
            shard.min.store(i64::MAX, Ordering::Relaxed);
            shard.max.store(i64::MIN, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: M-34
    #[test]
    fn average_is_rounded_to_four_decimals() {
        let summary = Summary::default();
        assert_eq!(summary.values(), SummaryValues::default());
        [12, 7, 1].into_iter().for_each(|sample| summary.record(sample));
        let expected = SummaryValues { avg: 6.6667, min: 1, max: 12, count: 3, sum: 20 };
        assert_eq!(summary.values(), expected);
        summary.reset();
        assert_eq!(summary.values(), SummaryValues::default());
    }

    #[test]
    fn summary_joins_the_samples_of_all_threads() {
        let summary = &Summary::default();
        std::thread::scope(|scope| {
            for base in 0..20 {
                scope.spawn(move || (0..100).for_each(|i| summary.record(base * 100 + i)));
            }
        });
        let values = summary.values();
        assert_eq!((values.min, values.max, values.count), (0, 1999, 2000));
        assert_eq!(values.sum, 1999 * 1000);
    }
}
