//! `oxkeeper bench`: puts load on ZooKeeper servers, oxkeeper or any other, and measures throughput and latencies.
//!
//! The pure parts have their tests beside them: `mix` (which operation), `connection_load` (what one connection asks), `record` and
//! `report` (the results), `picture` and `progress` (their display). `drive` and `prepare` move bytes, over what
//! `security` opens.

mod connection_load;
mod drive;
mod figures;
mod mix;
mod picture;
mod prepare;
mod progress;
mod record;
mod report;
mod run;
mod security;
mod znodes;

pub use mix::Mix;
pub use run::{BenchError, Ended, Options, run};
