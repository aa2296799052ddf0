//! One slot per thread, each on cache lines of its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slots of every sharded metric; threads beyond this many share slots, which costs speed and nothing else.
pub(super) const SLOTS: usize = 16;

/// Keeps neighbours off its cache line, and off the next one, which prefetchers load along with it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub T);

/// A value per slot; the thread's own is reached without any shared write.
#[derive(Debug, Default)]
pub(super) struct Sharded<T>([Padded<T>; SLOTS]);

impl<T> Sharded<T> {
    /// The slot of the calling thread.
    pub fn own(&self) -> &T {
        &self.0[slot()].0
    }

    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|padded| &padded.0)
    }
}

/// Index of the calling thread's slot. Threads are numbered as they first ask.
fn slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const NONE: usize = usize::MAX;
    thread_local! {
        static SLOT: Cell<usize> = const { Cell::new(NONE) };
    }
    SLOT.with(|slot| {
        if slot.get() == NONE {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS);
        }
        slot.get()
    })
}
