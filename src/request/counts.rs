//! Counts of what a connection did in a turn.

/// What happened in a turn, for the metrics.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Frames.
    pub received: u64,
    /// Their bytes, lengths included.
    pub received_bytes: u64,
    /// Requests that the connection answered without `replica`, not counting authentication requests.
    pub answered: u64,
    /// The last of them: operation, xid, and the zxid of its answer.
    pub last: (i32, i32, i64),
    /// Connect requests.
    pub connects: u64,
    /// Connect requests that the connection throttle has refused.
    pub refused: u64,
    /// Tokens that were taken when this client connected.
    pub token_deficit: i64,
    /// Writes that had to wait because too many were outstanding.
    pub stalls: u64,
    /// Stalled writes that were refused because they waited for too long.
    pub throttled: u64,
    /// Stalled writes that waited for longer than their session's timeout.
    pub outlived: u64,
    /// Connect requests with an existing session.
    pub revalidations: u64,
    pub ensemble: EnsembleCounts,
}

/// Clients that authenticated with the name of their ensemble.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EnsembleCounts {
    pub succeeded: u64,
    /// Clients that named another ensemble.
    pub failed: u64,
    /// Clients without an ensemble name, or of a server that does not require one.
    pub skipped: u64,
}

impl Counts {
    /// Counts a frame of `len` bytes, its length left out.
    pub(super) const fn received(&mut self, len: usize) {
        self.received += 1;
        self.received_bytes += 4 + len as u64;
    }
}
