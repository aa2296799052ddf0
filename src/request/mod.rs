//! What a client may ask, when it may be answered, and with what bytes.
//!
//! A connection is one pure machine ([`Connection`]): frames, handshake, gate, outbox. It answers reads itself under the
//! shared lock of the tree; writes become [`Command`]s to `replica`, which has them judged by [`prep`], and answers
//! through the connection's [`Conn`]. `net` moves the bytes.
//!
//! # Invariants
//! 1. Replies leave in request order: a read waits until every earlier write and sync of its connection is answered,
//!    and everything behind a waiting read waits with it. Writes follow writes without waiting (P-83).
//! 2. An event caused by a transaction stands in a connection's bytes before any reply that shows the change (P-33).
//! 3. No lock is held while another of an earlier kind is taken: tree, watch shard, outbox.

pub mod access;
mod ahead;
mod blue;
mod commands;
mod conn_stats;
mod connection;
mod conns;
mod create;
mod expiry;
pub mod foreign;
mod greet;
mod identify;
#[cfg(test)]
mod identify_tests;
mod limits;
pub mod multi;
mod namespaces;
mod outbox;
mod password;
mod pending;
pub mod prep;
mod quota;
mod quota_log;
mod read;
mod reconfig;
pub mod reply;
mod shared;
mod tally;
mod throttle;
mod watches;
mod write_context;
mod writes;

pub use blue::Connects;
pub use commands::{Asked, Batch, Command};
pub use conn_stats::{Answered, ConnFigures, ConnStats};
pub use connection::{Connection, Counts, EnsembleCounts, Need};
pub use conns::Conns;
pub use expiry::{Owner, Session, Sessions};
pub use limits::Limits;
pub use namespaces::{Namespace, Namespaces};
pub use outbox::{Conn, Outgoing};
pub use password::password;
pub use shared::Shared;
pub use tally::{FrameSizes, Tally};
pub use throttle::{Done, Throttle};
pub use write_context::Ensemble;
