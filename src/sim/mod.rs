//! The simulator: a whole ensemble in one process, with its servers, their disks, the network, the clients and virtual time.
//!
//! It runs the code that ships: `member` around `replica` with `zab`, `request` and `tree`, the machines of client connections, and
//! `store` on virtual disks. What `server` and `net` do, moving values between these, is done here on one thread, one task after the
//! other, so that a seed decides everything. One simulated run is a *world*: for a while servers, disks, clocks and the network have
//! faults; then the faults end, and the ensemble has to settle. [`check`] has the properties that must hold. A few worlds have a
//! standalone server in place of an ensemble, whose data an operator restores.
//!
//! Reading order: `climate` (the settings of a world), [`plan`] (its faults and client actions), [`workload`] (requests and replies),
//! `world` (the scheduler), `process`, `boot`, `driver`, `disk`, `client_ports` and the three kinds of connections (what a server's threads do), `client`,
//! `client_requests`, `faults`, `destruction` (a quorum loses its data), `returns` (a server comes back with data that the others have lost), `restores` (a tree is restored over all of it), `java` (what members running Java send otherwise), `hurry` (faults that reconfigurations time), `other_peers` (strangers' packets, first connections that end), `rivals` (observers that have promised more than their leader), `rescales` (operators that write `server.N` lines anew at each start), `joins` (a reconfiguration in these worlds), [`history`]
//! (what was proposed and committed), [`check`], `lifecycle`, [`shrink`].
//!
//! # Not here
//! Sockets, threads, and the locks between threads: the tests of `net` and of `shuttle` have those.

mod adversary;
mod boot;
pub mod check;
mod client;
mod client_connections;
mod client_ports;
mod client_requests;
mod climate;
mod destruction;
mod disk;
mod driver;
mod election_connections;
mod faults;
mod growth;
pub mod history;
mod hurry;
mod java;
mod joins;
mod known_views;
mod learner_connections;
mod learner_dials;
mod learner_stage;
pub mod lifecycle;
mod lost_data;
mod membership;
pub mod model;
pub mod network;
mod observation;
mod oracle;
mod other_peers;
pub mod plan;
mod planted_faults;
mod process;
mod rescales;
pub mod restored_tree;
mod restorer;
mod restores;
mod returns;
mod rivals;
mod sasl;
mod saved_views;
pub mod script;
pub mod shrink;
mod trace;
pub mod workload;
mod world;

pub use check::Failure;
pub use climate::{Climate, PlantedFault};
pub use lifecycle::{Outcome, run};
pub use plan::Plan;
pub use trace::Tracing;
