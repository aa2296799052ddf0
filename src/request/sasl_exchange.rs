//! How far the SASL exchange of a client connection is, and a step of it that another thread runs.

use crate::auth::sasl::{Mechanism, Refusal, Step};
use crate::model::sync::{Arc, Mutex};

/// How far the exchange is.
pub(super) enum Exchange {
    /// No step is running. A mechanism that has ended refuses every further token.
    Begun(Box<dyn Mechanism>),
    /// A step that may block is there for a thread to take.
    Asked { xid: i32, mechanism: Box<dyn Mechanism>, token: Vec<u8> },
    /// A thread has taken the step, which is given up at `until_us`.
    Running { xid: i32, place: StepPlace, until_us: u64 },
}

/// A step that may block, for a thread that may.
pub struct SaslStep {
    pub(super) mechanism: Box<dyn Mechanism>,
    pub(super) token: Vec<u8>,
    pub(super) place: StepPlace,
    /// Monotonic microseconds at which the connection gives the step up, if it is advanced then.
    pub until_us: u64,
}

impl SaslStep {
    /// Runs the step. The connection finds the outcome when it is woken.
    pub fn run(mut self) {
        let outcome = self.mechanism.step(&self.token);
        *self.place.0.lock() = Some((self.mechanism, outcome));
    }
}

/// The place of a step's outcome.
#[derive(Clone, Default)]
pub(super) struct StepPlace(Arc<Mutex<Option<Outcome>>>);

/// The mechanism, and its answer.
pub(super) type Outcome = (Box<dyn Mechanism>, Result<Step, Refusal>);

impl StepPlace {
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
