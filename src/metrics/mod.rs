//! Counters and summaries, and the names they are published under.
//!
//! # Invariants
//! 1. Recording never waits for another thread (but for a reader of a set), allocates (but for a thread's first sample,
//!    and a set's new key) or touches a cache line that another core writes, as long as there are no more threads than
//!    shards (16).
//! 2. A name means here what it means in ZooKeeper 3.9.5. A zero says that there was no such event, never that the event is
//!    not counted: events without a field cannot happen, and `names` says why.
//!
//! # Not here
//! Gauges (`admin::Status` carries them), text forms of the dump (`admin`).

mod counter;
mod families;
mod histogram;
mod names;
mod percentiles;
mod registry;
mod sets;
mod shard;
mod sizes;
mod summary;
mod tls_figures;
mod window;

pub use counter::Counter;
pub use families::{Family, SetValues};
pub use histogram::{Histogram, HistogramValues};
pub use percentiles::{Percentiles, Quantiles};
pub use registry::{Queues, Registry, Value};
pub use sets::{Samples, SummarySet};
pub use sizes::{SizeValues, Sizes};
pub use summary::{Summary, SummaryValues};
pub use tls_figures::TlsFigures;
pub use window::PART_LASTS;
