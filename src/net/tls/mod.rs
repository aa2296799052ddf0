//! TLS of client ports and between servers.

pub mod stores;
mod verifier;

pub use verifier::{Refused, Verifier, of_clients, of_servers, refused};
