//! The settings of the election connections, and what they count.

use super::dial::HostPort;
use super::sasl_exchange::SaslExchanges;
use crate::model::ServerId;
use std::sync::Arc;

/// The settings of the election connections.
#[derive(Clone, Debug)]
pub struct Settings {
    pub me: ServerId,
    /// This server's addresses, as its hello names them.
    pub addresses: Vec<HostPort>,
    /// Listen on every address of the machine, at the ports of `addresses` (`quorumListenOnAllIPs`).
    pub on_all_addresses: bool,
    /// The hello names all addresses, which servers before 3.6 do not understand (`multiAddress.enabled`).
    pub multi_address: bool,
    /// Time for a connection to be made and the hello to be written (`cnxTimeout`).
    pub connect_timeout_ms: u64,
    /// Time for the hello of an accepted connection to come, and for the SASL exchange of each (`quorumCnxnTimeoutMs`).
    pub hello_timeout_ms: u64,
    /// How long a server with several addresses may leave bytes unacknowledged, and how long its other addresses are dialed
    /// after one has refused (`multiAddress.reachabilityCheckTimeoutMs`). `None`: no limit.
    pub reach_timeout_ms: Option<u64>,
    /// Failures to listen after which [`BindFailed`](super::election_connections::Event::BindFailed) is reported; 0 is never (`electionPortBindRetry`).
    pub bind_tries_max: u32,
    /// What is exchanged after the hello.
    pub exchanges: Arc<dyn SaslExchanges>,
}

/// Counts for metrics and the simulator.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Messages that were sent again over a new connection.
    pub resent: u64,
}
