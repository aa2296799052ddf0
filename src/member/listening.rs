//! Listening at one address: when it is bound, when connections are accepted there, and what follows a failure.

use core::net::{IpAddr, SocketAddr};
use std::fmt;

/// Where connections are accepted.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ListenAddress {
    /// `None`: every address of the machine.
    pub host: Option<String>,
    pub port: u16,
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host.as_deref().unwrap_or("*"), self.port)
    }
}

/// File descriptors kept free for log and snapshots, and for reading them for learners.
const DESCRIPTORS_OF_FILES: u64 = 16;
/// File descriptors kept free for connections to the other servers of an ensemble of five, and for dials.
const DESCRIPTORS_OF_SERVERS: u64 = 16;

/// What connects to a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Port {
    Clients,
    Learners,
    Elections,
}

impl Port {
    /// The pause after which an address that can't be bound is tried again.
    const fn bind_pause_ms(self) -> u64 {
        match self {
            Self::Clients | Self::Elections => 1000,
            Self::Learners => 500,
        }
    }

    /// How long accepting pauses after it has failed (usually: no file descriptors left).
    const fn accept_pause_ms(self) -> u64 {
        match self {
            Self::Clients => 50,
            Self::Learners | Self::Elections => 500,
        }
    }

    /// File descriptors that a connection accepted here leaves to others: 16 for log and snapshots, without which the server ends,
    /// and for a client connection 16 more for servers.
    const fn descriptors_left(self) -> u64 {
        match self {
            Self::Clients => DESCRIPTORS_OF_FILES + DESCRIPTORS_OF_SERVERS,
            Self::Learners | Self::Elections => DESCRIPTORS_OF_FILES,
        }
    }

    /// Whether a connection that was accepted here may stay.
    ///
    /// * `descriptor`: its number. The system gives the lowest that is free, so all below are in use. `limit`: the process's
    ///   limit on open files.
    pub const fn may_keep(self, descriptor: u64, limit: u64) -> bool {
        descriptor + self.descriptors_left() < limit
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListenStep {
    /// Bind the address, and report the result.
    Bind,
    /// Accept connections at the address that is bound.
    Accept,
    /// Nothing before `until_ms`. `None`: until the attempt to bind has ended.
    Wait { until_ms: Option<u64> },
}

#[derive(Clone, Copy, Debug)]
enum ListenStage {
    /// The port is not bound; the next attempt is at `until_ms`.
    Closed {
        until_ms: u64,
    },
    Binding,
    /// Connections are accepted from `until_ms` on.
    Bound {
        until_ms: u64,
    },
}

/// One address. Binding is tried for ever, whatever the error.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    port: Port,
    stage: ListenStage,
    /// Attempts to bind that have failed since the last one that succeeded.
    failures: u32,
}

impl Listening {
    /// An address that is to be bound now.
    pub const fn new(port: Port) -> Self {
        Self { port, stage: ListenStage::Closed { until_ms: 0 }, failures: 0 }
    }

    /// The next step. To be called after each report, and at the `until_ms` of the last [`ListenStep::Wait`].
    pub fn next(&mut self, now_ms: u64) -> ListenStep {
        match self.stage {
            ListenStage::Closed { until_ms } if until_ms <= now_ms => {
                self.stage = ListenStage::Binding;
                ListenStep::Bind
            }
            ListenStage::Bound { until_ms } if until_ms <= now_ms => ListenStep::Accept,
            ListenStage::Closed { until_ms } | ListenStage::Bound { until_ms } => {
                ListenStep::Wait { until_ms: Some(until_ms) }
            }
            ListenStage::Binding => ListenStep::Wait { until_ms: None },
        }
    }

    /// The address is bound.
    pub const fn bound(&mut self) {
        (self.stage, self.failures) = (ListenStage::Bound { until_ms: 0 }, 0);
    }

    /// The address can't be bound. Returns how many attempts have failed in a row.
    pub const fn bind_failed(&mut self, now_ms: u64) -> u32 {
        self.stage = ListenStage::Closed { until_ms: now_ms + self.port.bind_pause_ms() };
        self.failures = self.failures.saturating_add(1);
        self.failures
    }

    /// A connection could not be accepted, or not be kept.
    pub const fn accept_failed(&mut self, now_ms: u64) {
        self.stage = ListenStage::Bound { until_ms: now_ms + self.port.accept_pause_ms() };
    }

    /// What connects to the address.
    pub const fn port(&self) -> Port {
        self.port
    }

    /// Whether the address is bound.
    pub const fn is_bound(&self) -> bool {
        matches!(self.stage, ListenStage::Bound { .. })
    }

    /// When the address is to be bound again.
    pub const fn retry_ms(&self) -> Option<u64> {
        match self.stage {
            ListenStage::Closed { until_ms } => Some(until_ms),
            ListenStage::Binding | ListenStage::Bound { .. } => None,
        }
    }
}

/// The address where clients are served, which a reconfiguration may move.
pub struct ClientListening {
    pub listening: Listening,
    /// The address that a configuration named last.
    pub wanted: Option<ListenAddress>,
}

impl ClientListening {
    /// Clients are served at the address of the start, which is bound.
    pub const fn bound() -> Self {
        let mut listening = Listening::new(Port::Clients);
        listening.bound();
        Self { listening, wanted: None }
    }

    /// A configuration names the client address of this server. Returns whether the old socket is to be closed: clients must
    /// not reach this server at the old address any more, whether the new one can be bound or not.
    ///
    /// * `at`: where the socket is bound. `resolved`: the address that the host stands for.
    ///
    /// Source: `NIOServerCnxnFactory.reconfigure`, ZooKeeper 3.9.5, which tries to bind once.
    pub fn move_to(
        &mut self,
        address: ListenAddress,
        at: Option<SocketAddr>,
        resolved: Option<IpAddr>,
    ) -> bool {
        if at.is_some_and(|at| is_served(at, &address, resolved)) {
            return false; // The first configuration that names the address of the start.
        }
        (self.listening, self.wanted) = (Listening::new(Port::Clients), Some(address));
        true
    }
}

/// Whether the socket that is bound `at` serves this address.
fn is_served(at: SocketAddr, address: &ListenAddress, resolved: Option<IpAddr>) -> bool {
    let is_there = match address.host {
        None => at.ip().is_unspecified(),
        Some(_) => resolved.is_some_and(|ip| ip.to_canonical() == at.ip().to_canonical()),
    };
    at.port() == address.port && is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files_and_client_connections_for_servers_too() {
        let kept =
            |port: Port| (0..64).take_while(|&descriptor| port.may_keep(descriptor, 64)).count();
        assert_eq!(kept(Port::Clients), 32);
        assert_eq!([Port::Learners, Port::Elections].map(kept), [48; 2]);
        assert!(!Port::Clients.may_keep(3, 10), "a limit below all reserves");
    }
}
