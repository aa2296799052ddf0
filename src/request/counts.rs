//! What happens in the turns of a connection, in numbers.

/// What happened in a turn, for the metrics.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Frames.
    pub received: u64,
    /// Their bytes, lengths included.
    pub received_bytes: u64,
    /// Requests answered here, without `replica`, authentication requests left out.
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
    /// Writes that waited in this way for too long and were refused.
    pub throttled: u64,
    /// Writes that waited in this way for longer than their session's timeout.
    pub outlived: u64,
    /// Connect requests with an existing session.
    pub revalidations: u64,
    pub ensemble: EnsembleCounts,
}

/// Clients that authenticated with the name of their ensemble.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EnsembleCounts {
    pub found: u64,
    /// Clients that named another ensemble.
    pub astray: u64,
    /// Clients without an ensemble name, or of a server that does not require one.
    pub unasked: u64,
}

impl Counts {
    /// Counts a frame of `len` bytes, its length left out.
    pub(super) const fn received(&mut self, len: usize) {
        self.received += 1;
        self.received_bytes += 4 + len as u64;
    }
}
