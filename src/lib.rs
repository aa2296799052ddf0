//! oxkeeper: a ZooKeeper server. `ARCHITECTURE.md` is the map of the rooms below.

pub mod admin;
pub mod auth;
pub mod client;
pub mod config;
pub mod member;
pub mod metrics;
pub mod model;
pub mod net;
pub mod replica;
pub mod request;
pub mod server;
#[cfg(feature = "sim")]
pub mod sim;
pub mod store;
pub mod tools;
pub mod tree;
pub mod zab;
