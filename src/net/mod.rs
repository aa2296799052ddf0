//! Sockets: received bytes are given to a state machine of `request` or `member`, and the bytes
//! that the machine produces are sent. Decides nothing but what ARCHITECTURE.md lists under "Rules
//! that only the server's IO has", and whether a TLS peer is accepted (`tls`).
//!
//! # Not here
//! What the bytes mean (`request`), the answers of four-letter words (`admin`).
#![allow(clippy::disallowed_methods, reason = "sockets and clocks are what this room is for")]
#![allow(clippy::disallowed_types, reason = "addresses are counted, never iterated over")]

mod bind;
mod client;
mod client_counts;
mod client_port;
mod client_slot;
mod descriptors;
mod dial;
pub mod election;
mod first_bytes;
pub mod gss;
pub mod gss_mechanism;
mod http;
mod http_stream;
mod http_tls;
#[cfg(test)]
mod http_tls_tests;
mod listener;
mod listening_socket;
mod nonce;
mod peer_security;
mod peer_stream;
pub mod quorum;
pub mod quorum_gss;
mod resolve;
mod sasl_steps;
mod sink;
mod step_places;
pub mod tls;
mod tls_port;
mod transport;
mod words;

pub use bind::{ListenError, bind};
pub use client::ServerHandles;
pub use client_slot::reply_at_once;
pub use http::{HttpAnswer, HttpAnswers, HttpBody, HttpRequest, serve_http};
pub use http_tls::{HttpTls, Plain};
pub use listener::{ClientPorts, Listener};
pub use nonce::nonce;
pub use peer_security::{PeerSecurity, PeerTls};
pub use peer_stream::PeerStream;
pub use resolve::resolve;
pub use sink::Sink;
pub use tls_port::TlsPort;
pub use words::{WordAnswer, WordRequest, Words};
