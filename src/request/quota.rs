//! Checks quotas before a write is proposed; `tree::quota` counts what is below a path.

use super::prep::Preparation;
use crate::model::Code;

impl Preparation<'_> {
    /// Refuses a write that would exceed a hard limit, if quotas are enforced at all, and logs a write that exceeds any
    /// limit.
    ///
    /// Limits that can't be read refuse writes too, with -5.
    pub(super) fn check_quota(&mut self, path: &str, count: i64, bytes: i64) -> Result<(), Code> {
        if !self.prep.rules.enforces_quota {
            return Ok(());
        }
        let exceeded = self.tree.check_quota(path, count, bytes);
        for exceeded in exceeded.map_err(|_| Code::MARSHALLING_ERROR)? {
            self.prep.quota_log.warn(&exceeded, self.asker.wall_ms);
            if exceeded.hard {
                self.prep.quota_log.refuse(path);
                return Err(Code::QUOTA_EXCEEDED);
            }
        }
        Ok(())
    }
}
