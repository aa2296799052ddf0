//! The last, largest and smallest of some sizes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::shard::Sharded;

/// No size was seen.
const NONE: i64 = -1;

/// The last, smallest and largest size in bytes; all -1 when there was none.
///
/// Source: `BufferStats`, ZooKeeper 3.9.5.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SizeValues {
    pub last: i64,
    pub min: i64,
    pub max: i64,
}

/// Keeps [`SizeValues`] without locks.
#[derive(Debug, Default)]
pub struct Sizes {
    shards: Sharded<Shard>,
}

#[derive(Debug)]
struct Shard {
    /// When `last` was seen: the latest of all threads' last sizes counts.
    at_us: AtomicU64,
    last: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
}

impl Default for Shard {
    fn default() -> Self {
        let none = || AtomicI64::new(NONE);
        Self { at_us: AtomicU64::new(0), last: none(), min: none(), max: none() }
    }
}

impl Sizes {
    /// * `at_us`: any monotonic microseconds, the same clock for all.
    pub fn record(&self, seen: SizeValues, at_us: u64) {
        let shard = self.shards.own();
        shard.at_us.store(at_us, Ordering::Relaxed);
        shard.last.store(seen.last, Ordering::Relaxed);
        let min = shard.min.load(Ordering::Relaxed);
        if min == NONE || seen.min < min {
            shard.min.store(seen.min, Ordering::Relaxed);
        }
        shard.max.fetch_max(seen.max, Ordering::Relaxed);
    }

    pub fn values(&self) -> SizeValues {
        let mut found = SizeValues { last: NONE, min: NONE, max: NONE };
        let mut latest_us = 0;
        for shard in self.shards.all() {
            let (last, min) =
                (shard.last.load(Ordering::Relaxed), shard.min.load(Ordering::Relaxed));
            let at_us = shard.at_us.load(Ordering::Relaxed);
            if last != NONE && latest_us <= at_us {
                (found.last, latest_us) = (last, at_us);
            }
            if min != NONE && (found.min == NONE || min < found.min) {
                found.min = min;
            }
            found.max = found.max.max(shard.max.load(Ordering::Relaxed));
        }
        found
    }

    /// Forgets all sizes; a concurrent size may be half forgotten.
    pub fn reset(&self) {
        for shard in self.shards.all() {
            for value in [&shard.last, &shard.min, &shard.max] {
                value.store(NONE, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_size_of_all_threads_is_the_last() {
        let sizes = &Sizes::default();
        assert_eq!(sizes.values(), SizeValues { last: -1, min: -1, max: -1 });
        sizes.record(SizeValues { last: 40, min: 16, max: 90 }, 7);
        std::thread::scope(|scope| {
            scope.spawn(|| sizes.record(SizeValues { last: 20, min: 20, max: 100 }, 5));
        });
        assert_eq!(sizes.values(), SizeValues { last: 40, min: 16, max: 100 });
        sizes.reset();
        assert_eq!(sizes.values().max, -1);
    }
}
