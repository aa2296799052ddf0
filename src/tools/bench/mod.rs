//! `oxkeeper bench`: puts load on ZooKeeper servers, ours or any other, and measures what comes back.
//!
//! What decides is pure and has its tests beside it: `mix` (which operation), `lane` (one connection), `record` and
//! `report` (what it came to), `picture` and `progress` (how it looks). `drive` and `prepare` move bytes.

mod drive;
mod figures;
mod lane;
mod mix;
mod picture;
mod prepare;
mod progress;
mod record;
mod report;
mod run;
mod znodes;

pub use mix::Mix;
pub use run::{BenchError, Ended, Options, run};
