//! Inputs that wait for the driver.

use super::operator_requests::OperatorRequest;
use super::replica_report::Report;
use crate::member::Input;
use crate::model::SessionId;
use crate::net::election;
use crate::net::quorum::PeerEvent;
use crate::request::ClientCommand;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

/// When each global session expires, and when each local session does, if local sessions are enabled.
pub type SessionExpiries = (Vec<(u64, SessionId)>, Option<Vec<(u64, SessionId)>>);

/// What reaches the driver besides the clients' commands.
pub enum Event {
    Input(Input),
    /// Something happened to a learner connection.
    Quorum(PeerEvent),
    /// A report of an election socket.
    Election(election::Report),
    /// Asks for the figures that only the driver knows.
    Report(oneshot::Sender<Report>),
    OperatorRequest(OperatorRequest),
    /// Begins the figures of connections to learners anew.
    ResetLearners,
    /// Asks when each session expires, in monotonic milliseconds.
    Sessions(oneshot::Sender<SessionExpiries>),
}

/// Inputs in the order in which they came.
#[derive(Default)]
pub struct Waiting {
    pub events: Vec<Event>,
    pub commands: Vec<ClientCommand>,
}

impl Waiting {
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty() && self.commands.is_empty()
    }
}

/// The driver's queue: many threads fill it, and the thread that runs a turn takes everything in it.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    waiting: Waiting,
    /// The driver has ended, so nothing more is queued.
    is_closed: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic aborts")
    }

    pub fn put_input(&self, input: Input) {
        self.put(Event::Input(input));
    }

    /// Queues an event and wakes the driver. After the driver's end the event is dropped.
    pub fn put(&self, event: Event) {
        self.fill(|waiting| waiting.events.push(event));
    }

    /// Queues a command and wakes the driver. After the driver's end the command is dropped.
    pub fn put_command(&self, command: ClientCommand) {
        self.fill(|waiting| waiting.commands.push(command));
    }

    /// Queues an event without waking the driver: for a thread that runs a turn itself right after.
    pub fn put_quietly(&self, event: Event) {
        let mut state = self.lock();
        if !state.is_closed {
            state.waiting.events.push(event);
        }
    }

    fn fill(&self, put: impl FnOnce(&mut Waiting)) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        let was_empty = state.waiting.is_empty();
        put(&mut state.waiting);
        drop(state);
        // The driver's task is awake as long as the inbox is not empty.
        if was_empty {
            self.wake();
        }
    }

    /// Moves all that waits to `to`, which must be empty.
    pub fn take(&self, to: &mut Waiting) {
        std::mem::swap(&mut self.lock().waiting, to);
    }

    pub fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Wakes the driver's task.
    pub fn wake(&self) {
        self.filled.notify_one();
    }

    /// Returns after [`Self::wake`], also after one that came before.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting = Waiting::default();
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}
