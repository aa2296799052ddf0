//! A whole ensemble in one process: servers, their disks, their network, their clients and the time they live in.
//!
//! The very code that ships: `replica` with `zab`, `request` and `tree`, the connections of clients, and `store` on
//! virtual disks. What `server` and `net` do between them, moving values, is done here on one thread, one thing after the
//! other, so that a seed decides everything. A world has its faults for a while; then they end, and all has to come to
//! rest. [`check`] says what must hold.
//!
//! Reading order: [`plan`] (what will happen), `world` (how it happens), `turns`, `disk`, `peers`, `wires`, `sides` (what a
//! server's threads do), `client`, `talk`, `faults`, `truth` (what was agreed on), [`check`], [`shrink`].
//!
//! # Not here
//! Sockets, threads, and the locks between threads: those are the business of the tests of `net`, and of `shuttle`.

pub mod ask;
pub mod check;
mod client;
mod damage;
mod disk;
mod driver;
mod faults;
pub mod life;
mod membership;
mod model;
mod network;
mod peers;
pub mod plan;
mod plant;
mod rng;
pub mod script;
mod server;
pub mod shrink;
mod sides;
mod talk;
mod trace;
mod truth;
mod wires;
mod world;

pub use check::Failure;
pub use life::{Lived, live, live_taped};
pub use plan::{Climate, Plan, Plant};
pub use trace::Tracing;
