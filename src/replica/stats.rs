//! Counters and samples that `server` publishes.

use crate::model::{AuditEvent, EventKind};
use crate::request::Namespaces;

/// What the replica publishes. The fields of both parts can be used as if they were its own.
#[derive(Debug, Default)]
pub struct Figures {
    pub stats: Stats,
    pub samples: Samples,
    /// For the audit log, in their order; `server` takes them. Empty without [`audits`](super::Settings::audits).
    pub audit: Vec<AuditEvent>,
}

/// Plain counters; `server` publishes them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    pub digest_mismatches: u64,
    pub sessions_expired: u64,
    pub snapshots_skipped: u64,
    pub sessionless_expired: u64,
    /// Writes that were processed, and answers that were made, after their connection had ended.
    pub stale_requests: u64,
    pub stale_replies: u64,
    /// Revalidations of sessions that learners asked for.
    pub revalidations: u64,
    /// Syncs of this server's clients that were answered.
    pub syncs: u64,
    /// Syncs of learners' clients that came to this leader.
    pub learners_syncs: u64,
}

/// Single measurements since they were last taken; `server` publishes and empties them.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Requests that took the write path and have ended.
    pub writes: Vec<WriteSample>,
    /// Watchers that one event has fired, for each event.
    pub fired: Vec<(EventKind, u64)>,
    /// Bytes written, by namespace.
    pub spaces: Namespaces,
    /// Wall-clock milliseconds at which transactions were created, on an ensemble member that serves: `heard` for proposals
    /// that a follower receives, `committed` for transactions that are applied.
    pub heard: Vec<i64>,
    pub committed: Vec<i64>,
}

/// One write, sync or end of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteSample {
    /// From frame to answer, in microseconds; `None` when no client asked for it.
    pub took_us: Option<u64>,
    /// Wall-clock milliseconds at which the transaction was created; `None` for requests without one.
    pub born_ms: Option<i64>,
}
