//! oxkeeper: a ZooKeeper server. `ARCHITECTURE.md` is the map of the rooms below.

pub mod model;

pub mod admin;
pub mod config;
pub mod metrics;
