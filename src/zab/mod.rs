//! Agreement: in which order transactions are committed, and when.
//!
//! Payloads are opaque bytes. So far the leader of a single server: its own disk is the quorum, and a proposal takes
//! the same way it will take among several: append, flush, count, commit.
//!
//! # Invariants
//! 1. `committed <= acked by a quorum <= proposed`.
//! 2. Nothing is committed before the local log is durable through it.
//!
//! # Not here
//! What a payload means (`tree`), what it answers (`request`), how it is stored (`store`).

mod leader;
mod quorum;

pub use leader::Leader;
pub use quorum::Majority;

use crate::model::Zxid;
use bytes::Bytes;

/// All that can happen to a peer. Closed on purpose: the simulator and the fuzzer enumerate it.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A transaction that `request::prep` has accepted.
    Propose { zxid: Zxid, payload: Bytes },
    /// The local log is durable through `through`.
    Flushed { through: Zxid },
}

/// All a peer can ask for. The driver performs actions in the order they were pushed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Append { zxid: Zxid, payload: Bytes },
    Commit { through: Zxid },
}
