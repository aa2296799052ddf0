//! The sockets of election connections (port 3888): performs what `member::election_connections` decides.
//!
//! # Not here
//! Decisions about a connection or a message, and what a message means (`zab`).

mod listen;
mod socket;
mod sockets;

pub use socket::Report;
pub use sockets::ElectionSockets;
