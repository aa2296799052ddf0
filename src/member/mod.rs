//! What one server decides around its `replica`: connections to other servers, which connections are TLS (`tls_detection`), the
//! order of disk work, configuration files.
//!
//! [`Member`] is a machine without IO: packets, reports of the log thread, clients' commands and the time go in as
//! [`Input`], what must happen comes out as [`Action`]. The server, the simulator and the tests perform the same actions,
//! so what is simulated is what ships. A standalone server is a `Member` that has no other servers.
//!
//! [`Member::step`] is the table of contents.
//!
//! # Invariants
//! 1. Log commands leave in the order in which `replica` asked for them; a truncation before an installed tree is marked.
//! 2. A packet counts only while its connection is the current one: packets of a leader's connection that was given up,
//!    or of a learner's connection that was closed, are discarded, also those read together with the packet that ended it.
//! 3. A snapshot of this server's own that was begun before a truncation gets no name after it.
//! 4. Configuration files are written before anything that `replica` asked for later is sent.
//!
//! # Not here
//! Election and broadcast (`zab`), requests (`request`) and the order between them (`replica`); sockets, files and threads
//! (`net`, `server`).

mod actions;
mod asked_snapshots;
pub mod auth_packet;
mod clock_watch;
pub mod config_files;
mod configuration;
pub mod configured;
pub mod dial;
mod disk_work;
pub mod duplicate_id;
mod election_actions;
pub mod election_connection;
pub mod election_connections;
pub mod election_hello;
pub mod election_listeners;
mod election_log;
mod election_peer;
mod election_settings;
mod elections;
pub mod failure;
mod inputs;
mod invariants;
pub mod listening;
mod machine;
mod message_tracker;
pub mod quorum_connection;
mod quorum_connections;
pub mod quorum_outbox;
pub mod quorum_sasl;
mod restoring;
pub mod sasl_exchange;
mod settings;
#[cfg(any(test, feature = "sim"))]
pub mod sim_exchange;
mod snapshot_job;
pub mod start;
mod stop;
pub mod tls_detection;
pub mod turn;
pub mod unfinished_packets;
mod unreachable;

pub use actions::{Action, Answer, ConfigChange, Ended};
pub use configuration::{election_address, election_addresses};
pub use inputs::{Input, Now};
pub use listening::ListenAddress;
pub use machine::Member;
pub use quorum_connection::QuorumPeer;
pub use quorum_connections::CLOSED_BY_PEER;
pub use settings::{EnsembleSettings, LogReadLimit, Settings};
pub use snapshot_job::{AskId, SnapshotJob, trailers};
pub use unreachable::{Reach, Unreachable};
