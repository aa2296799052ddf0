//! One shard per thread, each on cache lines of its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shards of every sharded metric; threads beyond this many have one in common, which costs speed and nothing else.
pub(super) const SHARDS: usize = 16;

/// Keeps neighbours off its cache line, and off the next one, which prefetchers load along with it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub T);

/// A value per shard; the thread's own is reached without any shared write.
#[derive(Debug, Default)]
pub(super) struct Sharded<T>([Padded<T>; SHARDS]);

impl<T> Sharded<T> {
    /// The shard of the calling thread.
    pub fn own(&self) -> &T {
        &self.0[index()].0
    }

    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|padded| &padded.0)
    }
}

/// Index of the calling thread's shard. Threads are numbered as they first ask.
fn index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const NONE: usize = usize::MAX;
    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(NONE) };
    }
    INDEX.with(|index| {
        if index.get() == NONE {
            index.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        index.get()
    })
}
