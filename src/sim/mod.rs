//! A whole ensemble in one process: servers, their disks, their network, their clients and the time they live in.
//!
//! The very code that ships: `member` around `replica` with `zab`, `request` and `tree`, the connections of clients, and `store` on
//! virtual disks. What `server` and `net` do between them, moving values, is done here on one thread, one thing after the
//! other, so that a seed decides everything. A world has its faults for a while; then they end, and all has to come to
//! rest. [`check`] says what must hold.
//!
//! Reading order: `climate` (what a world is like), [`plan`] (what will happen), [`workload`] (what clients send), `world` (how it happens), `process`, `boot`,
//! `driver`, `disk` and the three kinds of connections (what a server's threads do), `client`, `client_requests`, `faults`,
//! `destruction` (a quorum's data is lost), `java` (what members running Java say otherwise), [`history`] (what was agreed on), [`check`], `lifecycle`, [`shrink`].
//!
//! # Not here
//! Sockets, threads, and the locks between threads: those are the business of the tests of `net`, and of `shuttle`.

mod adversary;
mod boot;
pub mod check;
mod client;
mod client_connections;
mod client_requests;
mod climate;
mod destruction;
mod disk;
mod driver;
mod election_connections;
mod faults;
pub mod history;
mod java;
mod learner_connections;
mod learner_dials;
pub mod lifecycle;
mod lost_data;
mod membership;
pub mod model;
pub mod network;
mod oracle;
pub mod plan;
mod planted_faults;
mod process;
mod restorer;
pub mod script;
pub mod shrink;
mod trace;
pub mod workload;
mod world;

pub use check::Failure;
pub use climate::{Climate, Plant};
pub use lifecycle::{Outcome, run};
pub use plan::Plan;
pub use trace::Tracing;
