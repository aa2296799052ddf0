//! Figures of client connections and TLS that the four-letter word `srst` leaves as they are.

use super::Counter;
use std::sync::atomic::{AtomicU64, Ordering};

/// Source: `ServerStats`, ZooKeeper 3.9.5, and the handshakes under way of its client ports.
#[derive(Debug, Default)]
pub struct TlsFigures {
    /// Handshakes of clients that are under way or wait for their turn.
    pub handshakes: AtomicU64,
    /// Handshakes that failed, and client certificates that were refused.
    pub auth_failed: Counter,
    /// Connections from other machines to a client port that accepts plain connections, alone or as well as TLS.
    pub non_mtls_remote: Counter,
    /// The same from this machine.
    pub non_mtls_local: Counter,
}

impl TlsFigures {
    pub fn handshakes_under_way(&self) -> u64 {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// Java's `srst` leaves them as they are.
    pub(super) const fn reset(&self) {}
}
