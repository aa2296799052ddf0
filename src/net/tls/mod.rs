//! TLS of client ports and between servers.

mod fetch;
mod peer_check;
#[cfg(test)]
mod peer_check_tests;
mod revocation;
#[cfg(test)]
mod revocation_tests;
pub mod stores;
mod verifier;
#[cfg(test)]
mod verifier_tests;

pub use peer_check::{Peer, PeerCheck};
pub use verifier::{Refused, Verifier, of_clients, of_servers, refused};
