//! Quantiles of the last minutes, for the provider of Prometheus.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use super::shard::Sharded;

/// Parts of a window.
const PARTS: usize = 5;
/// Java's window of 10 minutes has five parts as well.
pub const PART_LASTS: Duration = Duration::from_secs(120);

/// Values below this have a bucket each...
const EXACT: u64 = 64;
/// ...and each power of two above has this many buckets: a value is off by 1.6 % at most.
const STEPS: u64 = 32;
/// Values from 2^40 on count as the largest below.
const BITS_MAX: u64 = 40;
const BUCKETS: usize = (EXACT + (BITS_MAX - 6) * STEPS) as usize;

/// The part that samples go to; `OFF`: no window is kept, since only that provider shows it.
static PART: AtomicUsize = AtomicUsize::new(OFF);
const OFF: usize = usize::MAX;

/// Begins the next part, and forgets what the oldest held.
///
/// * `windows`: all there are. Samples that come meanwhile may be forgotten. `clear_sets`: clears a part of the windows of sets.
pub(super) fn turn<'a>(windows: impl Iterator<Item = &'a Window>, clear_sets: impl FnOnce(usize)) {
    let part = match PART.load(Ordering::Relaxed) {
        OFF => 0,
        part => (part + 1) % PARTS,
    };
    windows.for_each(|window| window.clear(part));
    clear_sets(part);
    PART.store(part, Ordering::Relaxed);
}

/// A window of one key of a set, whose lock is held: few values, so each that comes has a place of its own.
#[derive(Debug, Default)]
pub(super) struct KeyWindow {
    parts: [BTreeMap<u16, u64>; PARTS],
}

/// Values that differ, in one part of such a window; further ones count as the nearest that is known.
const KEY_VALUES_MAX: usize = 64;

impl KeyWindow {
    pub fn record(&mut self, sample: i64, count: u64) {
        let Some(counts) = self.parts.get_mut(PART.load(Ordering::Relaxed)) else { return };
        let mut at = bucket(sample) as u16;
        if counts.len() >= KEY_VALUES_MAX && !counts.contains_key(&at) {
            let below = counts.range(..at).next_back().map(|(at, _)| *at);
            at = below.or_else(|| counts.keys().next().copied()).unwrap_or(at);
        }
        *counts.entry(at).or_insert(0) += count;
    }

    pub fn clear(&mut self, part: usize) {
        self.parts[part].clear();
    }

    pub fn add_to(&self, sums: &mut BTreeMap<u16, u64>) {
        for (at, count) in self.parts.iter().flatten() {
            *sums.entry(*at).or_insert(0) += count;
        }
    }
}

/// The middle one of samples by their buckets; `NaN` without any.
pub(super) fn median(counts: &BTreeMap<u16, u64>) -> f64 {
    let rank = counts.values().sum::<u64>().div_ceil(2).max(1);
    let mut reached = 0;
    let found = counts.iter().find(|(_, count)| {
        reached += **count;
        rank <= reached
    });
    found.map_or(f64::NAN, |(at, _)| middle(usize::from(*at)))
}

/// How often each value came, by thread and part of time. Memory is taken at a thread's first sample in a part.
#[derive(Debug, Default)]
pub struct Window {
    shards: Sharded<[OnceLock<Box<[AtomicU32]>>; PARTS]>,
}

impl Window {
    pub fn record(&self, sample: i64, count: u64) {
        let part = PART.load(Ordering::Relaxed);
        let Some(counts) = self.shards.own().get(part) else { return };
        let counts = counts.get_or_init(|| (0..BUCKETS).map(|_| AtomicU32::new(0)).collect());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        counts[bucket(sample)].fetch_add(count, Ordering::Relaxed);
    }

    fn clear(&self, part: usize) {
        let counts = self.shards.all().filter_map(|parts| parts[part].get());
        counts.flat_map(|counts| counts.iter()).for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// The sample at each of `quantiles`, which ascend; `NaN` without samples.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [f64; N] {
        let mut sums = vec![0u64; BUCKETS];
        for counts in self.shards.all().flatten().filter_map(OnceLock::get) {
            for (sum, count) in sums.iter_mut().zip(counts.iter()) {
                *sum += u64::from(count.load(Ordering::Relaxed));
            }
        }
        let total: u64 = sums.iter().sum();
        quantiles.map(|quantile| {
            let rank = ((quantile * total as f64).ceil() as u64).max(1);
            let mut reached = 0;
            let found = sums.iter().position(|sum| {
                reached += sum;
                rank <= reached
            });
            found.map_or(f64::NAN, middle)
        })
    }
}

fn bucket(sample: i64) -> usize {
    let value = (sample.max(0) as u64).min((1 << BITS_MAX) - 1);
    if value < EXACT {
        return value as usize;
    }
    let bits = u64::from(value.ilog2());
    (EXACT + (bits - 6) * STEPS + ((value >> (bits - 5)) & (STEPS - 1))) as usize
}

/// The middle of the values of a bucket.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket as f64;
    }
    let (power, step) = ((bucket - EXACT) / STEPS + 6, (bucket - EXACT) % STEPS);
    let width = 1u64 << (power - 5);
    ((STEPS + step) * width) as f64 + (width - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_near_the_middle_of_its_bucket() {
        let values = (0..5000).chain([1 << 20, (1 << 30) + 12_345, (1 << 40) - 1]);
        for value in values {
            let shown = middle(bucket(value));
            let off = (shown - value as f64).abs();
            assert!(off <= value as f64 * 0.016 && (off == 0.0 || 64 <= value), "{value} {shown}");
        }
        assert_eq!((bucket(-5), bucket(i64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn windows_of_keys_hold_few_values_and_find_the_middle_one() {
        let counts = |values: &[(u16, u64)]| values.iter().copied().collect::<BTreeMap<u16, u64>>();
        assert!(median(&counts(&[])).is_nan());
        assert_eq!(median(&counts(&[(3, 1), (7, 1), (9, 1)])), 7.0);
        assert_eq!(median(&counts(&[(3, 5), (7, 4)])), 3.0);
        let mut window = KeyWindow::default();
        let mut sums = BTreeMap::new();
        (0..50).for_each(|value| *window.parts[0].entry(value).or_insert(0) += 1);
        window.add_to(&mut sums);
        assert_eq!(median(&sums), 24.0);
        window.clear(0);
        assert!(window.parts[0].is_empty());
    }

    // rows: M-44
    #[test]
    fn quantiles_are_those_of_the_last_parts() {
        let window = Window::default();
        let now = |window: &Window| window.quantiles([0.5, 0.9, 0.99]);
        window.record(7, 1);
        assert!(now(&window).iter().all(|value| value.is_nan()), "nothing was kept");
        turn([&window].into_iter(), |_| {});
        (1..=50).for_each(|value| window.record(value, 2));
        assert_eq!(now(&window), [25.0, 45.0, 50.0]);
        for _ in 0..PARTS - 1 {
            turn([&window].into_iter(), |_| {});
            assert_eq!(now(&window), [25.0, 45.0, 50.0]);
        }
        turn([&window].into_iter(), |_| {});
        assert!(now(&window)[0].is_nan(), "after five parts they are gone");
    }
}
