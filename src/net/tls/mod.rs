//! TLS of client ports and between servers.

mod alerts;
mod engine;
mod fetch;
mod handshake;
mod handshake_places;
mod peer_check;
#[cfg(test)]
mod peer_check_tests;
mod refusal;
mod reload;
mod revocation;
#[cfg(test)]
mod revocation_tests;
mod store_warnings;
pub mod stores;
mod stream;
mod suites;
#[cfg(test)]
pub mod test_certificates;
mod tool_client;
mod verifier;
#[cfg(test)]
mod verifier_tests;

pub use alerts::text_of;
pub use engine::{Engine, EngineError, EngineRole, Stores};
pub use handshake::{HandshakeError, Handshakes};
pub use refusal::Refusal;
pub use reload::Watch;
pub use store_warnings::Used;
pub use stream::TlsStream;
pub use suites::unfit_key;
pub use tool_client::{ToolClientError, tool_client, tool_client_of_stores};
pub use verifier::{Verifier, refused};
