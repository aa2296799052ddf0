//! oxkeeper: a ZooKeeper server. `ARCHITECTURE.md` is the map of the rooms below.

pub mod client;
pub mod model;
