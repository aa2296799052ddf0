//! A snapshot that is being restored: from the operator's question to the answer.

use super::snapshot_job::AskId;
use super::{Action, Answer};
use crate::model::Zxid;
use crate::replica::{self, Mode, Replica, RestorePlan, RestoreQuestion, RestoreRefusal};
use crate::store::{self, Draft};
use crate::tree::Tree;

/// What an operator wants restored.
pub struct Restore {
    pub ask: AskId,
    pub plan: RestorePlan,
    pub tree: Box<Tree>,
    pub draft: Draft,
}

/// How far the restore is.
#[derive(Default)]
pub enum Restoring {
    #[default]
    None,
    /// The tree is in place, and its snapshot waits for its name.
    Placing { ask: AskId, draft: Option<Draft> },
    /// The snapshot has its name: a member waits for the outcome of the election.
    Placed { ask: AskId, zxid: Zxid },
}

impl Restoring {
    /// Answers how a snapshot can be restored.
    pub fn plan(
        &self,
        replica: &Replica,
        ask: AskId,
        question: RestoreQuestion,
        out: &mut Vec<Action>,
    ) {
        let plan = match self {
            Self::None => replica.plan_restore(question),
            Self::Placing { .. } | Self::Placed { .. } => Err(RestoreRefusal::Busy),
        };
        out.push(Action::Answer { ask, answer: Answer::Plan(plan) });
    }

    /// Puts the tree in place, or answers why not.
    ///
    /// * `asked`: actions of `replica`.
    pub fn begin(
        &mut self,
        replica: &mut Replica,
        restore: Restore,
        asked: &mut Vec<replica::Action>,
        out: &mut Vec<Action>,
    ) {
        let Restore { ask, plan, tree, draft } = restore;
        let begun = match self {
            Self::None => replica.restore(&plan, tree, asked),
            Self::Placing { .. } | Self::Placed { .. } => Err(RestoreRefusal::Busy),
        };
        match begun {
            Ok(()) => *self = Self::Placing { ask, draft: Some(draft) },
            Err(refusal) => {
                out.push(Action::DiscardSnapshot(draft));
                out.push(Action::Answer { ask, answer: Answer::Restore(Err(refusal)) });
            }
        }
    }

    /// Asks for the snapshot's name.
    pub fn place(&mut self, out: &mut Vec<Action>) {
        if let Self::Placing { draft, .. } = self
            && let Some(draft) = draft.take()
        {
            out.push(Action::Log(store::Command::PlaceRestored { draft }));
        }
    }

    /// The snapshot has its name.
    pub fn placed(&mut self, zxid: Zxid) {
        if let Self::Placing { ask, .. } = *self {
            *self = Self::Placed { ask, zxid };
        }
    }

    /// Answers the operator once it is known which data counts.
    ///
    /// This server may lead and have lost the restored tree: 1. another server leads and replaces the history here; 2. it ends before
    /// UPTODATE; 3. this server is elected. A follower may also have kept the tree, if its
    /// leader had received it from this server. So the history decides, and not the role: it still begins with the restored tree.
    pub fn end(&mut self, replica: &Replica, out: &mut Vec<Action>) {
        let Self::Placed { ask, zxid } = *self else { return };
        let is_kept = replica.peer().core.history.floor() == zxid;
        let result = match replica.mode() {
            Mode::Resting | Mode::ReadOnly => return,
            Mode::Standalone => Ok(()),
            _ if is_kept => Ok(()),
            Mode::Leading | Mode::Following | Mode::Observing => Err(RestoreRefusal::Lost),
        };
        *self = Self::None;
        out.push(Action::Answer { ask, answer: Answer::Restore(result) });
    }
}
