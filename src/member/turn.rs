//! One turn of a driver: the order in which waiting inputs go into the `Member`, and when its actions are performed.
//!
//! The drivers of the server and of the simulator take their turns by this function.

use super::{Action, Ended};
use crate::request::ClientCommand;

/// Steps a `Member` and performs its actions.
pub trait TurnDriver {
    /// Something that happened, and becomes an input of the `Member`.
    type Event;

    /// Whether an event asks the server to stop.
    fn is_stop(event: &Self::Event) -> bool;

    /// `false`: the server is stopping, and drops clients' commands from now on.
    fn takes_commands(&self) -> bool;

    /// Reads the time at which the next inputs happen.
    fn read_clock(&mut self);

    fn on_event(&mut self, event: Self::Event);

    fn on_commands(&mut self, commands: &mut dyn Iterator<Item = ClientCommand>);

    /// Steps the `Member` with the time.
    fn on_time(&mut self);

    /// Performs what the `Member` has asked for since the last call.
    fn perform(&mut self);
}

/// Takes all events in the order in which they came, then all commands, then the time; leaves both lists empty.
///
/// * `batch_max`: inputs stepped before their actions are performed, so that one flush covers every append in them.
pub fn run<D: TurnDriver>(
    driver: &mut D,
    events: &mut Vec<D::Event>,
    commands: &mut Vec<ClientCommand>,
    batch_max: usize,
) {
    driver.read_clock();
    for (at, event) in events.drain(..).enumerate() {
        if at > 0 && at.is_multiple_of(batch_max) {
            driver.perform();
            driver.read_clock();
        }
        if D::is_stop(&event) {
            // Commands that came before the stop are still performed.
            take_commands(driver, commands, batch_max);
        }
        driver.on_event(event);
    }
    take_commands(driver, commands, batch_max);
    driver.on_time();
    driver.perform();
}

/// Performs actions in their order, none after one with which the server ends by a failure: what follows may depend on it.
///
/// * `ended`: how the server has ended. * `perform`: performs an action; returns how the server ends because of it.
pub fn perform_in_order(
    actions: impl IntoIterator<Item = Action>,
    ended: &mut Option<Ended>,
    mut perform: impl FnMut(Action) -> Option<Ended>,
) {
    for action in actions {
        if matches!(ended, Some(Ended::Failed { .. })) {
            return;
        }
        let end = match action {
            Action::End(end) => Some(end),
            action => perform(action),
        };
        *ended = end.or(ended.take());
    }
}

fn take_commands<D: TurnDriver>(
    driver: &mut D,
    commands: &mut Vec<ClientCommand>,
    batch_max: usize,
) {
    let mut commands = commands.drain(..).peekable();
    while driver.takes_commands() && commands.peek().is_some() {
        driver.on_commands(&mut commands.by_ref().take(batch_max));
        if commands.peek().is_some() {
            driver.perform();
        }
    }
}
