//! The settings that limit clients' requests, and the authentication schemes.

use super::blue_throttle::Connects;

/// Settings that every client connection follows.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest frame in bytes: `jute.maxbuffer`.
    pub frame_max: usize,
    /// Largest body of a reply that is made of many names, paths or entries; a longer one is answered -5. The data of one
    /// znode may be as long as [`Self::frame_max`] lets a client write it.
    pub reply_max: usize,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    /// Outstanding writes of all connections; above it, a connection that waits for a write is not read:
    /// `globalOutstandingLimit`.
    pub outstanding_max: u64,
    /// The same in bytes; above twice of it, every further write waits: `oxkeeper.outstandingBytes`.
    pub outstanding_bytes_max: u64,
    /// Outstanding writes above which every further write waits: `request_throttle_max_requests`; `None`: no limit.
    pub requests_max: Option<u64>,
    /// A write that has waited longer is refused with -127: `throttled_op_wait_time`; `None`: never.
    pub op_wait_max_us: Option<u64>,
    /// Whether a write that has waited longer than its session's timeout closes its connection:
    /// `request_throttle_drop_stale` with `request_stale_latency_check`.
    pub drops_late: bool,
    /// Frames above this many bytes are large: `largeRequestThreshold`.
    pub large_from: Option<usize>,
    /// Largest sum of bytes of outstanding large writes: `largeRequestMaxBytes`.
    pub large_bytes_max: u64,
    /// `connection_throttle_*`; `None`: clients may connect as fast as they like.
    pub connects: Option<Connects>,
    /// `skipACL`.
    pub skip_acl: bool,
    /// Whether a read waits until the leader has confirmed what was committed before it: `oxkeeper.linearizableReads`.
    pub linearizable_reads: bool,
    /// Authentication schemes that clients can use.
    pub schemes: crate::auth::Schemes,
    /// Begins the clients' SASL exchanges; `None`: no mechanism is offered.
    pub sasl: Option<std::sync::Arc<dyn crate::auth::sasl::Mechanisms>>,
    /// The four-letter words of this server, expected in the first four bytes of a connection.
    pub words: Vec<[u8; 4]>,
}

impl Default for Limits {
    /// Java's defaults, and no four-letter words.
    fn default() -> Self {
        Self {
            frame_max: 0xf_ffff,
            reply_max: 256 << 20,
            min_session_timeout_ms: 6000,
            max_session_timeout_ms: 60_000,
            outstanding_max: 1000,
            outstanding_bytes_max: 32 << 20,
            requests_max: None,
            op_wait_max_us: None,
            drops_late: false,
            large_from: None,
            large_bytes_max: 100 << 20,
            connects: None,
            skip_acl: false,
            linearizable_reads: false,
            schemes: crate::auth::Schemes::default(),
            sasl: None,
            words: Vec::new(),
        }
    }
}

impl Limits {
    /// Whether a frame of `len` bytes counts against [`Limits::large_bytes_max`].
    pub(crate) fn is_large(&self, len: usize) -> bool {
        self.large_from.is_some_and(|from| len > from)
    }
}
