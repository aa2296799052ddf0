//! Quotas are checked when a write is judged; what is below a path is counted by `tree::quota`.

use super::Namespaces;
use super::prep::Judging;
use crate::model::Code;
use crate::tree::Exceeded;

/// The same line is logged this often at the most.
const LOG_EVERY_MS: i64 = 60_000;

/// What was last logged, so that a client in a loop does not fill the log.
#[derive(Default)]
pub(super) struct QuotaLog {
    last: Option<(Exceeded, i64)>,
    suppressed: u64,
    /// Refusals since they were last published.
    refused: Namespaces,
}

impl QuotaLog {
    pub const fn refused(&mut self) -> &mut Namespaces {
        &mut self.refused
    }

    fn warn(&mut self, exceeded: &Exceeded, wall_ms: i64) {
        let Exceeded { path, what, used, limit, hard } = exceeded;
        let is_news = self.last.as_ref().is_none_or(|(last, at)| {
            (&last.path, last.what) != (path, *what) || wall_ms - at >= LOG_EVERY_MS
        });
        if !is_news {
            self.suppressed += 1;
            return;
        }
        let suppressed = std::mem::take(&mut self.suppressed);
        self.last = Some((exceeded.clone(), wall_ms));
        let kind = if *hard { "hard" } else { "soft" };
        tracing::warn!(suppressed, "quota exceeded: {path} [{what}={used}, {kind} limit={limit}]");
    }
}

impl Judging<'_> {
    /// Refuses what would pass a hard limit, if quotas are enforced at all, and logs what passes any.
    ///
    /// Limits that can't be read refuse too, with -5.
    pub(super) fn check_quota(&mut self, path: &str, count: i64, bytes: i64) -> Result<(), Code> {
        if !self.prep.rules.enforces_quota {
            return Ok(());
        }
        let exceeded = self.tree.check_quota(path, count, bytes);
        for exceeded in exceeded.map_err(|_| Code::MARSHALLING_ERROR)? {
            self.prep.quota_log.warn(&exceeded, self.asker.wall_ms);
            if exceeded.hard {
                self.prep.quota_log.refused.note(path, 0);
                return Err(Code::QUOTA_EXCEEDED);
            }
        }
        Ok(())
    }
}

/// Bytes of data in a request; null has none.
pub(super) fn data_len(data: jute::Buffer<'_>) -> usize {
    data.map_or(0, <[u8]>::len)
}
