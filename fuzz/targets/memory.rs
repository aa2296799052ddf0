//! A limit on memory. A process that would exceed it ends at once, with what it was given still in its file.

use cap::Cap;
use std::alloc::System;

/// libFuzzer's own limit on an allocation works with a sanitizer only.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, PROCESS_MAX);

/// Limit on the memory of a process.
const PROCESS_MAX: usize = 2 << 30;

/// Limit on the memory that may be allocated at one time beyond what was before an input, which has at most 4096 bytes.
const MEMORY_MAX: usize = 8 << 20;

/// Runs something, and aborts if that has more than [`MEMORY_MAX`] allocated at one time.
pub fn within_memory<T>(run: impl FnOnce() -> T) -> T {
    within_memory_of(MEMORY_MAX, run)
}

/// The same with another limit.
pub fn within_memory_of<T>(max: usize, run: impl FnOnce() -> T) -> T {
    let limit = ALLOCATOR.allocated() + max;
    ALLOCATOR.set_limit(limit).expect("a limit above what is allocated");
    let result = run();
    ALLOCATOR.set_limit(PROCESS_MAX).expect("it was kept");
    result
}
