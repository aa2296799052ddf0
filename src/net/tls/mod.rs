//! TLS of client ports and between servers.

mod fetch;
mod peer_check;
mod revocation;
pub mod stores;
mod verifier;

pub use peer_check::{Peer, PeerCheck};
pub use verifier::{Refused, Verifier, of_clients, of_servers, refused};
