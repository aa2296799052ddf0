//! TLS of client ports and between servers.

mod verifier;

pub use verifier::{Refused, Verifier, of_clients, of_servers, refused};
