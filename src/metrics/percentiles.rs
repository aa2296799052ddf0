//! A summary that also knows its quantiles.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::shard::Sharded;
use super::summary::{Summary, SummaryValues};

/// Samples kept in each shard; Java keeps this many in all.
const RESERVOIR_LEN: usize = 4096;

/// Four quantiles of a metric, rounded to whole units as Java's `Math.round` does; all zero without samples.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Quantiles {
    pub p50: i64,
    pub p95: i64,
    pub p99: i64,
    pub p999: i64,
}

/// A [`Summary`] plus a uniform random choice of its samples.
///
/// Every shard has a reservoir of its own, allocated at its first sample (32 KiB). The weight of a kept sample is the number of
/// samples that its shard has seen, divided by the number that the shard keeps, so a busy thread counts for more than an idle
/// one. Up to 4096 samples in each shard nothing is left out and the result is exact.
///
/// Source: `AvgMinMaxPercentileCounter`, ZooKeeper 3.9.5 (a uniform reservoir of 4096).
#[derive(Debug, Default)]
pub struct Percentiles {
    summary: Summary,
    shards: Sharded<Reservoir>,
}

/// The samples of one shard.
#[derive(Debug, Default)]
struct Reservoir {
    /// Samples seen, kept or not.
    seen: AtomicU64,
    kept: OnceLock<Box<[AtomicI64]>>,
}

impl Percentiles {
    /// Adds one sample, in the unit of the metric.
    pub fn record(&self, sample: i64) {
        self.record_many(sample, 1);
    }

    /// Adds the same sample `count` times.
    pub fn record_many(&self, sample: i64, count: u64) {
        self.summary.record_many(sample, count);
        for _ in 0..count {
            self.sample(sample);
        }
    }

    fn sample(&self, sample: i64) {
        let shard = self.shards.own();
        let kept =
            shard.kept.get_or_init(|| (0..RESERVOIR_LEN).map(|_| AtomicI64::new(0)).collect());
        let seen = shard.seen.fetch_add(1, Ordering::Relaxed);
        // Sample number n is kept with probability RESERVOIR_LEN / n, and replaces a random other one.
        let place = if seen < RESERVOIR_LEN as u64 { seen } else { random_below(seen + 1) };
        if let Some(cell) = kept.get(place as usize) {
            cell.store(sample, Ordering::Relaxed);
        }
    }

    pub(super) fn summary(&self) -> &Summary {
        &self.summary
    }

    pub fn values(&self) -> SummaryValues {
        self.summary.values()
    }

    pub fn quantiles(&self) -> Quantiles {
        let mut weighted: Vec<(i64, f64)> = Vec::new();
        let mut total = 0.0;
        for shard in self.shards.all() {
            let Some(kept) = shard.kept.get() else { continue };
            let seen = shard.seen.load(Ordering::Relaxed);
            let len = seen.min(RESERVOIR_LEN as u64);
            let weight = seen as f64 / len.max(1) as f64;
            total += seen as f64;
            let samples = kept[..len as usize].iter();
            weighted.extend(samples.map(|cell| (cell.load(Ordering::Relaxed), weight)));
        }
        weighted.sort_unstable_by_key(|&(sample, _)| sample);
        let at = |quantile| (quantile_of(&weighted, total, quantile) + 0.5).floor() as i64;
        Quantiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), p999: at(0.999) }
    }

    /// Forgets all samples; a concurrent sample may be half forgotten.
    pub fn reset(&self) {
        self.summary.reset();
        self.shards.all().for_each(|shard| shard.seen.store(0, Ordering::Relaxed));
    }
}

/// The quantile of sorted samples, each standing for `weight` of `total`.
///
/// With weights of 1 this is the formula of Dropwizard's `UniformSnapshot`: position
/// `quantile * (n + 1)`, interpolated between the two samples around it.
fn quantile_of(sorted: &[(i64, f64)], total: f64, quantile: f64) -> f64 {
    let position = quantile * (total + 1.0);
    let sample_at = |rank: f64| {
        let mut reached = 0.0;
        // A rank past the end is the largest sample: the sum of the weights may differ in its last digit.
        let found = sorted.iter().find(|&&(_, weight)| {
            reached += weight;
            rank <= reached
        });
        found.or(sorted.last()).map_or(0, |&(sample, _)| sample) as f64
    };
    let rank = position.floor();
    if rank < 1.0 || total <= rank {
        return sample_at(rank.max(1.0));
    }
    let (lower, upper) = (sample_at(rank), sample_at(rank + 1.0));
    lower + (position - rank) * (upper - lower)
}

/// A number below `bound`, uniform enough for sampling; each thread has its own sequence.
fn random_below(bound: u64) -> u64 {
    static SEED: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    let state = STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            // An odd multiple is never zero; xorshift would stay at zero.
            x = SEED.fetch_add(2, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        x
    });
    // The high half of the product: no division, and a bias too small to show in a reservoir.
    ((u128::from(state) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: impl IntoIterator<Item = i64>) -> Percentiles {
        let percentiles = Percentiles::default();
        samples.into_iter().for_each(|sample| percentiles.record(sample));
        percentiles
    }

    // rows: M-32
    #[test]
    fn quantiles_of_few_samples_are_exact() {
        // From a Java server: 1 and 7 gave p50 4; 0, 0 and 4 gave p50 0 and p95 4.
        let pair = Quantiles { p50: 4, p95: 7, p99: 7, p999: 7 };
        assert_eq!(of([7, 1]).quantiles(), pair);
        assert_eq!(of([0, 4, 0]).quantiles(), Quantiles { p50: 0, p95: 4, p99: 4, p999: 4 });
        assert_eq!(of([]).quantiles(), Quantiles::default());
        let thousand = Quantiles { p50: 501, p95: 951, p99: 991, p999: 1000 };
        assert_eq!(of(1..=1000).quantiles(), thousand);
    }

    #[test]
    fn quantiles_of_many_samples_are_close_until_reset() {
        let percentiles = of((0..200_000).map(|i| i % 1000));
        let Quantiles { p50, p95, p99, .. } = percentiles.quantiles();
        assert!((460..540).contains(&p50) && (930..970).contains(&p95), "{p50} {p95}");
        assert!((980..1000).contains(&p99), "{p99}");
        percentiles.reset();
        assert_eq!(percentiles.quantiles(), Quantiles::default());
    }

    #[test]
    fn threads_weigh_by_the_samples_they_have_seen() {
        let percentiles = &Percentiles::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|_| percentiles.record(1)));
            scope.spawn(|| (0..4_000).for_each(|_| percentiles.record(100)));
        });
        // About as many of each kind are kept, but one in 26 is 100.
        let Quantiles { p50, p95, p99, .. } = percentiles.quantiles();
        assert_eq!((p50, p95, p99), (1, 1, 100));
    }
}
