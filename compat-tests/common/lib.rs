//! Shared by the tests against real servers: scripts, the clients that run them, and the servers.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a runner starts servers, waits and counts"
)]
#![allow(clippy::print_stdout, reason = "the report of a runner is its output")]

pub mod choices;
pub mod decode;
pub mod encode;
pub mod generate;
pub mod java;
pub mod naming;
pub mod ports;
pub mod requests;
pub mod rng;
pub mod script;
pub mod script_text;
pub mod server;
pub mod side;
pub mod text;
pub mod tree;
