//! A number that only grows, until it is reset.

use std::sync::atomic::{AtomicU64, Ordering};

use super::shard::Sharded;

/// Counts events or bytes; one uncontended atomic add per call.
#[derive(Debug, Default)]
pub struct Counter {
    shards: Sharded<AtomicU64>,
}

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, amount: u64) {
        self.shards.own().fetch_add(amount, Ordering::Relaxed);
    }

    /// Sum over all threads; concurrent adds may or may not be included.
    pub fn get(&self) -> u64 {
        let counts = self.shards.all().map(|shard| shard.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }

    /// Sets the counter to 0; concurrent adds may be lost.
    pub fn reset(&self) {
        self.shards.all().for_each(|shard| shard.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_sums_the_adds_of_all_threads() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| (0..1000).for_each(|_| counter.increment()));
            }
        });
        assert_eq!(counter.get(), 40_000);
        counter.reset();
        assert_eq!(counter.get(), 0);
    }
}
