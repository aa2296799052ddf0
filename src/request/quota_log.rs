//! Logs writes that exceed a quota, at a limited rate, and counts refusals by namespace.

use super::namespaces::Namespaces;
use crate::tree::Exceeded;

/// The same excess is logged this often at the most.
const LOG_EVERY_MS: i64 = 60_000;

/// The last logged excess, so that a client that repeats a write does not fill the log.
#[derive(Default)]
pub(super) struct QuotaLog {
    last: Option<(Exceeded, i64)>,
    left_out: u64,
    /// Refusals since they were last published.
    refused: Namespaces,
}

impl QuotaLog {
    /// Counts a write to `path` that a hard limit refused.
    pub fn refuse(&mut self, path: &str) {
        self.refused.note(path, 0);
    }

    pub const fn refused(&mut self) -> &mut Namespaces {
        &mut self.refused
    }

    pub fn warn(&mut self, exceeded: &Exceeded, wall_ms: i64) {
        let Exceeded { path, what, used, limit, hard } = exceeded;
        let is_news = self.last.as_ref().is_none_or(|(last, at)| {
            (&last.path, last.what) != (path, *what) || wall_ms - at >= LOG_EVERY_MS
        });
        if !is_news {
            self.left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut self.left_out);
        self.last = Some((exceeded.clone(), wall_ms));
        let kind = if *hard { "hard" } else { "soft" };
        tracing::warn!(
            %path,
            left_out,
            "quota exceeded: {path} [{what}={used}, {kind} limit={limit}]; raise it with setquota or delete znodes"
        );
    }
}
