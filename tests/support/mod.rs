//! What the tests share: virtual disks, connections, clocks and chance, and what performs the actions of peers and replicas on them.
//!
//! Nothing here decides anything. From the bottom up: [`views`], [`builders`], [`configured`], [`packets`], [`txns`], [`bodies`], [`requests`], [`stranger`]; [`disk`];
//! [`elector`], one server in an election; [`peer`] and [`replica`], one server each on its disk; [`store`] and [`member`], one on the store that ships; [`client`], a client's connection; [`standalone`], a server with one
//! client; [`connections`] and [`ensemble`], peers that talk to each other.

#![allow(dead_code, reason = "each test binary uses another part of it")]

pub mod bodies;
pub mod builders;
pub mod client;
pub mod configured;
pub mod connections;
pub mod disk;
pub mod election;
pub mod elector;
pub mod ensemble;
pub mod member;
pub mod packets;
pub mod peer;
pub mod replica;
pub mod requests;
pub mod server;
pub mod standalone;
pub mod store;
pub mod stranger;
pub mod txns;
pub mod views;
pub mod virtual_election_net;
