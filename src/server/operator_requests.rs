//! Requests of operators at AdminServer (`snapshot`, `restore`), and where the `Member`'s answers go.

use crate::member::{Answer, AskId, Input};
use crate::model::Zxid;
use crate::replica::{RestorePlan, RestoreQuestion, RestoreRefusal};
use crate::store::Draft;
use crate::tree::Tree;
use std::collections::BTreeMap;
use tokio::sync::oneshot::Sender;

/// What an operator wants, and where the answer goes.
pub enum OperatorRequest {
    /// A snapshot; the answer has its zxid and its length.
    Snapshot(Sender<Option<(Zxid, u64)>>),
    /// How a snapshot can be restored.
    Plan { question: RestoreQuestion, to: Sender<Result<RestorePlan, RestoreRefusal>> },
    /// To restore a tree, all of which is in the draft.
    Restore {
        plan: RestorePlan,
        tree: Box<Tree>,
        draft: Draft,
        to: Sender<Result<(), RestoreRefusal>>,
    },
}

enum ReplyTo {
    Snapshot(Sender<Option<(Zxid, u64)>>),
    Plan(Sender<Result<RestorePlan, RestoreRefusal>>),
    Restore(Sender<Result<(), RestoreRefusal>>),
}

/// Requests that are not answered yet.
#[derive(Default)]
pub struct PendingRequests {
    last: AskId,
    waiting: BTreeMap<AskId, ReplyTo>,
}

impl PendingRequests {
    /// The `Member`'s input for a request.
    pub fn put(&mut self, request: OperatorRequest) -> Input {
        self.last += 1;
        let ask = self.last;
        let (reply_to, input) = match request {
            OperatorRequest::Snapshot(to) => (ReplyTo::Snapshot(to), Input::TakeSnapshot { ask }),
            OperatorRequest::Plan { question, to } => {
                (ReplyTo::Plan(to), Input::PlanRestore { ask, question })
            }
            OperatorRequest::Restore { plan, tree, draft, to } => {
                (ReplyTo::Restore(to), Input::Restore { ask, plan, tree, draft })
            }
        };
        self.waiting.insert(ask, reply_to);
        input
    }

    /// Hands an answer over, unless the connection that asked is closed.
    pub fn answer(&mut self, ask: AskId, answer: Answer) {
        match (self.waiting.remove(&ask), answer) {
            (Some(ReplyTo::Snapshot(to)), Answer::Snapshot(taken)) => drop(to.send(taken)),
            (Some(ReplyTo::Plan(to)), Answer::Plan(plan)) => drop(to.send(plan)),
            (Some(ReplyTo::Restore(to)), Answer::Restore(result)) => drop(to.send(result)),
            _ => {}
        }
    }
}
