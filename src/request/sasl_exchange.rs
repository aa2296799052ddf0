//! How far the SASL exchange of a client connection is, and a step of it that another thread runs.

use crate::auth::sasl::{Mechanism, Refusal, Step};
use crate::model::sync::{Arc, Mutex};

/// How far the exchange is.
pub(super) enum Exchange {
    /// No step is running. A mechanism that has ended refuses every further token.
    Begun(Box<dyn Mechanism>),
    /// A step that may block: `step` is there until a thread has taken it, then the step is running.
    Stepping { xid: i32, step: Option<SaslStep>, place: StepPlace },
}

/// A step that may block, for a thread that may.
pub struct SaslStep {
    pub(super) mechanism: Box<dyn Mechanism>,
    pub(super) token: Vec<u8>,
    pub(super) place: StepPlace,
}

impl SaslStep {
    /// Runs the step. The connection finds the outcome when it is woken.
    pub fn run(mut self) {
        let outcome = self.mechanism.step(&self.token);
        self.place.put(Some(self.mechanism), outcome);
    }

    /// Where the outcome goes, so that a timeout can end the step.
    pub fn place(&self) -> StepPlace {
        self.place.clone()
    }
}

/// The place of a step's outcome.
#[derive(Clone, Default)]
pub struct StepPlace(Arc<Mutex<Option<Outcome>>>);

/// The mechanism, unless it was given up, and its answer.
pub(super) type Outcome = (Option<Box<dyn Mechanism>>, Result<Step, Refusal>);

impl StepPlace {
    /// Refuses the client because its step takes too long. Nothing if the step has ended.
    pub fn give_up(&self, reason: &'static str) {
        self.put(None, Err(Refusal::new(reason)));
    }

    pub(super) fn put(
        &self,
        mechanism: Option<Box<dyn Mechanism>>,
        outcome: Result<Step, Refusal>,
    ) {
        self.0.lock().get_or_insert((mechanism, outcome));
    }

    pub(super) fn is_filled(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(super) fn take(&self) -> Option<Outcome> {
        self.0.lock().take()
    }
}

/// A mechanism whose step was given up.
pub(super) struct GivenUp;

impl Mechanism for GivenUp {
    fn step(&mut self, _token: &[u8]) -> Result<Step, Refusal> {
        Err(Refusal::new("the exchange was given up"))
    }
}
