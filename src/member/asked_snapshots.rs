//! Snapshots that an operator has asked for (`AdminServer`).

use super::snapshot_job::AskId;
use super::{Action, Answer, SnapshotJob};
use crate::model::Zxid;
use crate::tree::freeze::Frozen;

/// The questions that wait for a snapshot, and the snapshot that is under way for some of them.
///
/// A snapshot answers the questions that came before it began. Only one snapshot is written at a time
/// (trees for learners are not counted), so a question may wait for the end of a snapshot that was due anyway.
#[derive(Debug, Default)]
pub struct AskedSnapshots {
    waiting: Vec<AskId>,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    frozen: Frozen,
    asks: Vec<AskId>,
}

impl AskedSnapshots {
    pub fn ask(&mut self, ask: AskId) {
        self.waiting.push(ask);
    }

    /// Whether a snapshot is to be begun as soon as there can be one.
    pub const fn wants_one(&self) -> bool {
        !self.waiting.is_empty() && self.under_way.is_none()
    }

    /// A snapshot for all who wait has begun.
    pub fn begun(&mut self, frozen: Frozen) {
        self.under_way = Some(UnderWay { frozen, asks: std::mem::take(&mut self.waiting) });
    }

    /// This server can take none now.
    pub fn refuse(&mut self, out: &mut Vec<Action>) {
        let waiting = std::mem::take(&mut self.waiting);
        out.extend(waiting.into_iter().map(|ask| taken(ask, None)));
    }

    /// A snapshot was not written, or will get no name.
    pub fn lost(&mut self, job: &SnapshotJob, out: &mut Vec<Action>) {
        self.answer(|under_way| under_way.frozen == job.frozen, None, out);
    }

    /// A snapshot of this server's own has its name.
    pub fn placed(&mut self, zxid: Zxid, bytes: u64, out: &mut Vec<Action>) {
        self.answer(|under_way| under_way.frozen.zxid == zxid, Some((zxid, bytes)), out);
    }

    fn answer(
        &mut self,
        is_meant: impl Fn(&UnderWay) -> bool,
        found: Option<(Zxid, u64)>,
        out: &mut Vec<Action>,
    ) {
        if let Some(under_way) = self.under_way.take_if(|under_way| is_meant(under_way)) {
            let asks = under_way.asks.into_iter();
            out.extend(asks.map(|ask| taken(ask, found)));
        }
    }
}

const fn taken(ask: AskId, found: Option<(Zxid, u64)>) -> Action {
    Action::Answer { ask, answer: Answer::Snapshot(found) }
}
