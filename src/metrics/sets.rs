//! A summary for each key of a growing set.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::shard::Sharded;
use super::summary::SummaryValues;
use super::window::{KeyWindow, median};

/// The key of all samples whose own key is not counted.
const OTHER: &str = "other";
/// Limit on the keys that are counted. Keys are names of znodes, which clients choose, so that their number has to be bounded.
const KEYS_MAX: usize = 1000;

/// The sum of some samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Samples {
    pub count: u64,
    pub sum: i64,
    pub min: i64,
    pub max: i64,
}

impl Samples {
    pub const NONE: Self = Self { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };

    fn add(&mut self, more: &Self) {
        self.count = self.count.wrapping_add(more.count);
        self.sum = self.sum.wrapping_add(more.sum);
        self.min = self.min.min(more.min);
        self.max = self.max.max(more.max);
    }
}

/// Summaries by key. A thread's shard has a lock of its own, for which only readers of the whole set contend.
#[derive(Debug, Default)]
pub struct SummarySet {
    shards: Sharded<Mutex<Shard>>,
    /// Every key that is counted, of all shards.
    known: Mutex<BTreeMap<Box<str>, ()>>,
}

#[derive(Debug, Default)]
struct Shard {
    samples: BTreeMap<Box<str>, Kept>,
    /// The set is full and this shard has all its keys: other keys count as [`OTHER`].
    complete: bool,
}

/// What is known of one key.
#[derive(Debug)]
struct Kept {
    samples: Samples,
    window: KeyWindow,
}

impl Kept {
    fn new() -> Self {
        Self { samples: Samples::NONE, window: KeyWindow::default() }
    }

    fn add(&mut self, more: &Samples) {
        self.samples.add(more);
        // Up to three samples are known one by one from their sum, minimum and maximum. If there are more, the minimum, the
        // maximum and the mean of the others are recorded.
        let between = more.count.saturating_sub(2);
        if more.count > 0 {
            self.window.record(more.min, 1);
        }
        if more.count > 1 {
            self.window.record(more.max, 1);
        }
        if between > 0 {
            let rest = more.sum.wrapping_sub(more.min).wrapping_sub(more.max);
            self.window.record(rest / between as i64, between);
        }
    }
}

impl SummarySet {
    /// Adds samples under `key`; once there are 1000 keys, those of new ones go to the key `other`.
    pub fn record(&self, key: &str, samples: &Samples) {
        let mut shard = lock(self.shards.own());
        if let Some(found) = shard.samples.get_mut(key) {
            return found.add(samples);
        }
        if !shard.complete {
            let mut known = lock(&self.known);
            if known.len() < KEYS_MAX {
                known.insert(key.into(), ());
            } else {
                // From now on this thread does not look into the common table.
                for key in known.keys() {
                    shard.samples.entry(key.clone()).or_insert_with(Kept::new);
                }
                shard.complete = true;
            }
            if known.contains_key(key) {
                return shard.samples.entry(key.into()).or_insert_with(Kept::new).add(samples);
            }
        }
        shard.samples.entry(OTHER.into()).or_insert_with(Kept::new).add(samples);
    }

    /// Every key with the values of its samples.
    pub fn values(&self) -> Vec<(Box<str>, SummaryValues)> {
        let mut all: BTreeMap<Box<str>, Samples> = BTreeMap::new();
        for shard in self.shards.all() {
            for (key, kept) in &lock(shard).samples {
                match all.get_mut(key) {
                    Some(found) => found.add(&kept.samples),
                    None => _ = all.insert(key.clone(), kept.samples),
                }
            }
        }
        let values = |samples: Samples| {
            SummaryValues::of(samples.count, samples.sum, samples.min, samples.max)
        };
        all.into_iter().map(|(key, samples)| (key, values(samples))).collect()
    }

    /// The median of each key in the last minutes.
    pub fn medians(&self) -> BTreeMap<Box<str>, f64> {
        let mut all: BTreeMap<Box<str>, BTreeMap<u16, u64>> = BTreeMap::new();
        for shard in self.shards.all() {
            for (key, kept) in &lock(shard).samples {
                match all.get_mut(key) {
                    Some(found) => kept.window.add_to(found),
                    None => kept.window.add_to(all.entry(key.clone()).or_default()),
                }
            }
        }
        all.into_iter().map(|(key, counts)| (key, median(&counts))).collect()
    }

    pub(super) fn clear_part(&self, part: usize) {
        for shard in self.shards.all() {
            lock(shard).samples.values_mut().for_each(|kept| kept.window.clear(part));
        }
    }

    /// Forgets all samples; the keys stay, as in Java.
    pub fn reset(&self) {
        for shard in self.shards.all() {
            lock(shard).samples.values_mut().for_each(|kept| kept.samples = Samples::NONE);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic while it was held")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: i64) -> Samples {
        Samples { count: 1, sum: value, min: value, max: value }
    }

    #[test]
    fn samples_of_all_threads_are_joined_by_key() {
        let set = &SummarySet::default();
        set.record("a", &one(5));
        std::thread::scope(|scope| {
            scope.spawn(|| set.record("a", &one(8)));
            scope.spawn(|| set.record("b", &one(1)));
        });
        let values = set.values();
        assert_eq!(values.iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(values[0].1, SummaryValues { avg: 6.5, min: 5, max: 8, count: 2, sum: 13 });
        set.reset();
        assert_eq!(set.values()[1].1, SummaryValues::default());
    }

    // rows: M-33
    #[test]
    fn keys_beyond_the_limit_are_counted_together() {
        let set = &SummarySet::default();
        for number in 0..KEYS_MAX + 500 {
            set.record(&number.to_string(), &one(1));
        }
        // Another thread learns the known keys, and no others.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set.record("one too many", &one(1));
                set.record("0", &one(3));
            });
        });
        let values = set.values();
        assert_eq!(values.len(), KEYS_MAX + 1);
        let count = |wanted: &str| values.iter().find(|(key, _)| &**key == wanted).unwrap().1.count;
        assert_eq!(
            values.iter().map(|(_, values)| values.count).sum::<u64>(),
            KEYS_MAX as u64 + 502
        );
        assert_eq!((count(OTHER), count("0"), count("999")), (501, 2, 1));
        let first = values.iter().find(|(key, _)| &**key == "0").unwrap();
        assert_eq!(first.1.max, 3);
    }
}
