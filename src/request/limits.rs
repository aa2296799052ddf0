//! The settings that bound what clients may ask for and how they show who they are.

use super::blue_throttle::Connects;

/// What every connection is told.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest frame in bytes: `jute.maxbuffer`.
    pub frame_max: usize,
    pub min_session_timeout_ms: i32,
    pub max_session_timeout_ms: i32,
    /// Writes that may be under way before those who wait for one are read no further: `globalOutstandingLimit`.
    pub outstanding_max: u64,
    /// Writes under way above which every other one waits: `request_throttle_max_requests`; `None`: no limit.
    pub requests_max: Option<u64>,
    /// A write that has waited longer is refused with -127: `throttled_op_wait_time`; `None`: never.
    pub op_wait_max_us: Option<u64>,
    /// One that has waited longer than its session's timeout closes its connection: `request_throttle_drop_stale` with
    /// `request_stale_latency_check`.
    pub drops_late: bool,
    /// Frames above this many bytes are large: `largeRequestThreshold`.
    pub large_from: Option<usize>,
    /// Bytes of large writes that may be under way: `largeRequestMaxBytes`.
    pub large_bytes_max: u64,
    /// `connection_throttle_*`; `None`: clients may connect as fast as they like.
    pub connects: Option<Connects>,
    /// `skipACL`.
    pub skip_acl: bool,
    /// Reads wait until the leader has said what was committed before them: `oxkeeper.linearizableReads`.
    pub linearizable_reads: bool,
    /// How clients can show who they are.
    pub schemes: crate::auth::Schemes,
    /// Four-letter words this server knows: looked for in the first four bytes of a connection.
    pub words: Vec<[u8; 4]>,
}

impl Default for Limits {
    /// What Java has unless it is told otherwise; no words.
    fn default() -> Self {
        Self {
            frame_max: 0xf_ffff,
            min_session_timeout_ms: 6000,
            max_session_timeout_ms: 60_000,
            outstanding_max: 1000,
            requests_max: None,
            op_wait_max_us: None,
            drops_late: false,
            large_from: None,
            large_bytes_max: 100 << 20,
            connects: None,
            skip_acl: false,
            linearizable_reads: false,
            schemes: crate::auth::Schemes::default(),
            words: Vec::new(),
        }
    }
}

impl Limits {
    /// Whether a frame that is `len` bytes long counts against [`Limits::large_bytes_max`].
    pub(crate) fn is_large(&self, len: usize) -> bool {
        self.large_from.is_some_and(|from| len > from)
    }
}
