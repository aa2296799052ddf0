//! What tests, benches and fuzz targets share: virtual disks, connections and clocks, and what performs the actions of the server's
//! machines on them.
//!
//! What servers decide, the machines that ship decide, with the exceptions that ARCHITECTURE.md lists under "What is written twice": for
//! `zab` peers without a `Member` and a `Replica` [`ensemble`], [`ensemble_turns`] and [`peer`] decide what `member` and `replica` decide for a
//! server, and [`elector`] decides what `zab::Peer` does with another server's notification. Each file uses only those above it in this
//! list:
//!
//! * Values: [`views`], configurations with their members; [`txns`], transactions as a log has them; [`packets`], packets read from
//!   the bytes of learner connections; [`bodies`], requests as an operation and a body; [`requests`], requests and replies as the
//!   bytes of a connection; [`configured`], configuration as text, and the settings that come of it; [`builders`], `zab` peers, trees,
//!   limits and settings; [`trees`], trees as a leader sends them; [`exchanges`], the bytes that the two ends of a SASL exchange send;
//!   [`moves`], choices that a fuzzer makes.
//! * What other servers send: [`election`], votes that end an election as a test wants; [`stranger`], random packets and notifications.
//! * Checks of worlds: [`planted_faults`], faults that one check finds and no other check does; [`quorums`], which servers are a quorum.
//! * Disks: [`epoch_files`], files that may be gone; [`disk`], a list of entries and epochs that a search can copy; [`store`], the store that ships, on a disk with sectors.
//! * One machine: [`elector`], a server in an election; [`peer`] and [`replica`], on a [`disk`]; [`client`], a client with the
//!   server's machine for its connection; [`standalone`], a replica with one client; [`member`], a whole member on a [`store`]; [`sockets`], what a
//!   member's sockets report.
//! * Several servers: [`connections`], [`server`], [`ensemble`], [`ensemble_turns`] and [`ensemble_election`], `zab` peers whose worlds a search can copy;
//!   [`virtual_election_net`], the election connections that ship, in virtual time.
//! * One member and what its peers send: [`ensemble_member`], its disk and sockets; [`learner_streams`] and [`election_streams`], its
//!   connections as bytes; [`phases`], the same in each phase of each role; [`peer_bytes`] and [`hello_bytes`], what a fuzzer sends it.
//! * [`election_net`], the election connections that ship, on real sockets.
//! * [`written`], pages that a test writes.

pub mod bodies;
pub mod builders;
pub mod client;
pub mod configured;
pub mod connections;
pub mod disk;
pub mod election;
pub mod election_net;
pub mod election_streams;
pub mod elector;
pub mod ensemble;
pub mod ensemble_election;
pub mod ensemble_member;
pub mod ensemble_turns;
pub mod epoch_files;
pub mod exchanges;
pub mod hello_bytes;
pub mod learner_streams;
pub mod member;
pub mod moves;
pub mod packets;
pub mod peer;
pub mod peer_bytes;
pub mod phases;
pub mod planted_faults;
pub mod quorums;
pub mod replica;
pub mod requests;
pub mod server;
pub mod sockets;
pub mod standalone;
pub mod store;
pub mod stranger;
pub mod trees;
pub mod txns;
pub mod views;
pub mod virtual_election_net;
pub mod written;
