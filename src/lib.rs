//! oxkeeper: a ZooKeeper server. `ARCHITECTURE.md` is the map of the rooms below.

pub mod auth;
pub mod config;
pub mod model;
pub mod replica;
pub mod request;
pub mod store;
pub mod tree;
pub mod zab;
