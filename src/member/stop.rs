//! The end of a server that was asked to stop.

use super::{Action, Ended, Now};

/// A member of an ensemble that stops has this long to finish its clients' requests: they may depend on other members, which
/// may be gone. A request that is not finished by then may still be committed, as at any server to which a client loses its
/// connection.
const MEMBER_STOP_MAX_US: u64 = 3_000_000;

/// Whether the server is stopping, and since when.
#[derive(Default)]
pub struct Stop {
    since_us: Option<u64>,
}

impl Stop {
    pub fn begin(&mut self, now: Now) {
        self.since_us.get_or_insert(now.us);
    }

    pub const fn is_begun(&self) -> bool {
        self.since_us.is_some()
    }

    /// * `outstanding`: requests under way.
    pub fn end_if_done(
        &self,
        now: Now,
        outstanding: usize,
        is_member: bool,
        out: &mut Vec<Action>,
    ) {
        let since_us = self.since_us.unwrap_or(now.us);
        let is_late = is_member && since_us + MEMBER_STOP_MAX_US < now.us;
        if is_late && outstanding > 0 {
            tracing::warn!(
                requests = outstanding,
                "stopping: the other members did not finish these requests in time; if every stop says so, check that they run"
            );
        }
        if outstanding == 0 || is_late {
            out.push(Action::End(Ended::Stopped));
        }
    }
}
