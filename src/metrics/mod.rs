//! Counters and summaries, and the names they are published under.
//!
//! # Invariants
//! 1. Recording never locks, allocates (but for a thread's first sample) or touches a cache line
//!    that another core writes, as long as there are no more threads than slots (16).
//! 2. A name means here what it means in ZooKeeper 3.9.5. What this server does not measure has no
//!    field: a zero that nobody counts is worse than an absent line.
//!
//! # Not here
//! Gauges (`admin::Status` carries them), text forms of the dump (`admin`).

mod counter;
mod percentiles;
mod registry;
mod shard;
mod summary;

pub use counter::Counter;
pub use percentiles::{Percentiles, Quantiles};
pub use registry::{Registry, Value};
pub use summary::{Summary, SummaryValues};
