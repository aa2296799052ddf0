//! A small blocking wire client, for the bench, the command line and tests.
//!
//! Low-level on purpose: the caller chooses xids, may send many requests before reading a reply, may send bytes that
//! are no request at all, and may drop the socket at any point. The client sends no pings and re-registers no watches.
//!
//! # Not here
//! What requests and replies mean (`jute::proto` has their records), and any retry or reconnect policy.

#![allow(clippy::disallowed_methods, reason = "a blocking client waits by the clock")]

mod frame;
mod wire;

pub use crate::model::{op, xid};
pub use frame::{Incoming, put_request};
pub use wire::{ClientError, ConnectRequest, ConnectResponse, Stream, Wire, dial, word};
