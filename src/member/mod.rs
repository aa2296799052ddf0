//! What one server decides around its `replica`: connections to other servers, the order of disk work, configuration files.
//!
//! Everything here is a machine without IO: bytes, packets, reports and ticks go in, actions come out. The server, the
//! simulator and the tests perform the same actions, so what is simulated is what ships.
//!
//! # Not here
//! Agreement (`zab`), requests (`request`) and the order between them (`replica`); sockets, files and threads (`net`,
//! `server`).

pub mod awaiting_hello;
pub mod dial;
pub mod opening;
pub mod quorum_connection;
pub mod quorum_outbox;
