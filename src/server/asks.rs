//! Questions of operators, and the places where the member's answers go.

use crate::member::{Answer, AskId, Input};
use crate::model::Zxid;
use crate::replica::{RestorePlan, RestoreRefusal};
use crate::store::Draft;
use crate::tree::Tree;
use std::collections::BTreeMap;
use tokio::sync::oneshot::Sender;

/// What an operator wants, and where the answer goes.
pub enum Question {
    /// A snapshot; the answer has its zxid and its length.
    Snapshot(Sender<Option<(Zxid, u64)>>),
    /// How a snapshot of this zxid can be restored.
    Plan { zxid: Zxid, to: Sender<Result<RestorePlan, RestoreRefusal>> },
    /// To restore a tree, all of which is in the draft.
    Restore {
        plan: RestorePlan,
        tree: Box<Tree>,
        draft: Draft,
        to: Sender<Result<(), RestoreRefusal>>,
    },
}

enum Asker {
    Snapshot(Sender<Option<(Zxid, u64)>>),
    Plan(Sender<Result<RestorePlan, RestoreRefusal>>),
    Restore(Sender<Result<(), RestoreRefusal>>),
}

/// Questions that are not answered yet.
#[derive(Default)]
pub struct Asks {
    last: AskId,
    waiting: BTreeMap<AskId, Asker>,
}

impl Asks {
    /// The member's input for a question.
    pub fn put(&mut self, question: Question) -> Input {
        self.last += 1;
        let ask = self.last;
        let (asker, input) = match question {
            Question::Snapshot(to) => (Asker::Snapshot(to), Input::TakeSnapshot { ask }),
            Question::Plan { zxid, to } => (Asker::Plan(to), Input::PlanRestore { ask, zxid }),
            Question::Restore { plan, tree, draft, to } => {
                (Asker::Restore(to), Input::Restore { ask, plan, tree, draft })
            }
        };
        self.waiting.insert(ask, asker);
        input
    }

    /// Hands an answer over, unless the connection that asked is closed.
    pub fn answer(&mut self, ask: AskId, answer: Answer) {
        match (self.waiting.remove(&ask), answer) {
            (Some(Asker::Snapshot(to)), Answer::Snapshot(taken)) => drop(to.send(taken)),
            (Some(Asker::Plan(to)), Answer::Plan(plan)) => drop(to.send(plan)),
            (Some(Asker::Restore(to)), Answer::Restore(result)) => drop(to.send(result)),
            _ => {}
        }
    }
}
