//! What a learner that has not reached its leader knows of the election connection to it.

use super::Input;
use crate::model::ServerId;

/// How long an ended connection may take to be replaced before the leader's election port is dialed: 200 ms. Earlier, a dial may meet the
/// one that replaces it: Java's server with the larger id then ends both.
const LOST_TICKS: u64 = 40;
/// How long after that it is dialed again: its process may have ended after it was reached, and before it has connected.
const REDIAL_TICKS: u64 = 200;
/// How long a leader has to be in an earlier round until it counts as restarted: 150 ms. It notifies again after 200 ms.
const RESTARTED_TICKS: u64 = 30;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeaderLink {
    /// The connection has ended, or was replaced: the leader may have restarted.
    is_new: bool,
    /// The connection is gone: ticks until the leader's election port is dialed.
    lost_ticks: Option<u64>,
    /// It was dialed since the connection is gone.
    is_dialed: bool,
    /// Ticks since the leader was first heard to look for a leader, or to follow one, in an earlier round than the one that has elected it.
    earlier_ticks: Option<u64>,
}

impl LeaderLink {
    /// Notes what an input says about the connection to `leader`.
    ///
    /// Returns whether the leader is gone: its election port can't be reached. If it can, both servers may have dialed at once, and one
    /// connection replaces the other. That takes a second with TLS on a busy machine, and a leader of Java's that is left waits for this
    /// server until initLimit ends.
    pub fn note(&mut self, leader: ServerId, input: &Input) -> bool {
        match input {
            Input::ElectionConnected { to } if *to == leader => self.change(None),
            Input::ElectionDisconnected { to } if *to == leader => self.change(Some(LOST_TICKS)),
            Input::ElectionUnreached { to } if *to == leader => return self.is_dialed,
            _ => {}
        }
        false
    }

    fn change(&mut self, lost_ticks: Option<u64>) {
        (self.is_new, self.lost_ticks, self.is_dialed) = (true, lost_ticks, false);
    }

    /// Returns whether the leader's election port is to be dialed.
    pub fn on_tick(&mut self) -> bool {
        self.earlier_ticks = self.earlier_ticks.map(|ticks| ticks + 1);
        let Some(left) = &mut self.lost_ticks else { return false };
        *left -= 1;
        let is_due = *left == 0;
        if is_due {
            (*left, self.is_dialed) = (REDIAL_TICKS, true);
        }
        is_due
    }

    /// Notes whether the leader is heard to be in an earlier round than the one that has elected it.
    pub fn note_round(&mut self, is_earlier: bool) {
        self.earlier_ticks = is_earlier.then_some(self.earlier_ticks.unwrap_or(0));
    }

    /// Whether the leader has restarted, if it is heard to be in an earlier round: it says so again. Once may mean that a message, or a
    /// connection, is late (world 3084000005553 of the simulator).
    pub fn has_restarted(&self) -> bool {
        self.is_new && self.earlier_ticks.is_some_and(|ticks| RESTARTED_TICKS <= ticks)
    }
}
