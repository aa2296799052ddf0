//! How the election connections of a server are set up.

use crate::member::election_connections as machine;
use crate::member::election_hello::Address;
use crate::model::ServerId;
use std::time::Duration;

/// How to take part.
#[derive(Clone, Debug)]
pub struct Settings {
    pub me: ServerId,
    /// Own addresses, as others are told them.
    pub addresses: Vec<Address>,
    /// Listen on every address of the machine, at the ports of `addresses` (`quorumListenOnAllIPs`).
    pub on_all_addresses: bool,
    /// All addresses are told, which servers before 3.6 do not understand (`multiAddress.enabled`).
    pub multi_address: bool,
    /// For a connection to be made (`cnxTimeout`).
    pub timeout: Duration,
    /// A server with several addresses: how long it is called at the others once it has refused at one, and how long it may
    /// leave what it was sent unacknowledged before a connection is given up for one to another address
    /// (`multiAddress.reachabilityCheckTimeoutMs`). `None`: addresses are not looked after.
    pub reach_timeout: Option<Duration>,
    /// For a caller to say who it is (`quorumCnxnTimeoutMs`).
    pub greet_timeout: Duration,
    pub keep_alive: bool,
    /// After so many failures to listen [`machine::Event::Deaf`] is told; 0 is never (`electionPortBindRetry`).
    pub bind_tries_max: u32,
}

impl Settings {
    /// What of it decides; the rest is the sockets'.
    pub fn of_machine(&self) -> machine::Settings {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        machine::Settings {
            me: self.me,
            addresses: self.addresses.clone(),
            on_all_addresses: self.on_all_addresses,
            multi_address: self.multi_address,
            connect_timeout_ms: ms(self.timeout),
            hello_timeout_ms: ms(self.greet_timeout),
            reach_timeout_ms: self.reach_timeout.map(ms),
            bind_tries_max: self.bind_tries_max,
        }
    }
}
