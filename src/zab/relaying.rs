//! What a learner asks its observer master, if it has one.

use super::{Action, Core, Input, Learner, LearnerConnectionId, Packet};

impl Learner {
    /// Whether a packet of a connection to this server is for the observer master.
    pub(super) fn takes(&self, connection: LearnerConnectionId, packet: Option<&Packet>) -> bool {
        self.observer_master.as_ref().is_some_and(|master| master.takes(connection, packet))
    }

    /// Whether the observer of a connection to this server is in a configuration.
    pub fn has_member_at(&self, core: &Core, connection: LearnerConnectionId) -> bool {
        let master = self.observer_master.as_ref();
        master
            .and_then(|master| master.handlers.get(connection))
            .is_some_and(|handler| core.is_member(handler.id))
    }

    /// Connections of its observers.
    pub fn connections(&self) -> impl Iterator<Item = LearnerConnectionId> {
        self.observer_master.iter().flat_map(|master| master.handlers.connections())
    }

    pub(super) fn serve_observers(&mut self, core: &mut Core, input: Input, out: &mut Vec<Action>) {
        if let Some(master) = &mut self.observer_master {
            master.step(core, input, out);
        }
    }
}
