//! Clients' requests: which are allowed, when they are answered, and with what bytes.
//!
//! A connection is one pure machine ([`Connection`]): frames, handshake, outbox, and the gate that makes reads wait for writes. It answers reads itself under the
//! shared lock of the tree; writes become [`ClientCommand`]s to `replica`, which prepares them with [`prep`], and answers
//! through the connection's [`ClientHandle`]. `net` moves the bytes.
//!
//! # Invariants
//! 1. Replies leave in request order: a read waits until every earlier write and sync of its connection is answered,
//!    and everything after a waiting read waits with it. Writes follow writes without waiting.
//! 2. An event caused by a transaction comes in a connection's bytes before any reply that shows the change (P-33).
//! 3. No lock is held while another of an earlier kind is taken: tree, watch shard, outbox.

pub mod access;
mod audit;
mod auth_request;
mod blue_throttle;
mod commands;
mod conn_stats;
mod connect_request;
mod connection;
mod connection_table;
mod counts;
mod create;
mod expansion;
pub mod foreign;
mod frame_counts;
mod limits;
mod lookahead;
pub mod multi;
mod namespaces;
mod need;
mod outbox;
mod outstanding_changes;
mod password;
mod phase;
pub mod prep;
mod quota;
mod quota_log;
mod read;
mod reconfig;
pub mod reply;
mod sasl;
mod sasl_exchange;
mod session_tracker;
mod shared;
mod sliced_request;
mod throttle;
mod watches;
mod write_context;
mod write_request;

pub use audit::AuditedWrite;
pub use blue_throttle::Connects;
pub use commands::{
    Batch, BatchedRequest, BatchedWrite, ClientCommand, OpenSession, ReopenSession,
};
pub use conn_stats::{Answered, ConnFigures, ConnStats};
pub use connection::{Connection, identities_len};
pub use connection_table::ClientHandles;
pub use counts::{Counts, EnsembleCounts};
pub use expansion::expansion;
pub use frame_counts::{FrameKind, FrameSizes, Tally};
pub use limits::Limits;
pub use namespaces::{Namespace, Namespaces};
pub use need::Need;
pub use outbox::{ClientHandle, Outgoing};
pub use outstanding_changes::ChangeCounts;
pub use password::password;
pub use sasl_exchange::SaslStep;
pub use session_tracker::{Owner, Session, Sessions};
pub use shared::{Shared, SnapshotPiece};
pub use throttle::{AUDIT_WAITING_MAX, Load, SNAPSHOT_SAVED_MAX, Throttle};
pub use write_context::Ensemble;
