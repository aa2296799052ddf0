//! The limit on packets of learner connections that have begun to come and are not complete.

use crate::model::ServerId;
use crate::zab::LearnerConnectionId;
use std::collections::{BTreeMap, BTreeSet};

/// Limit on the bytes of all such packets together: enough for 16 learners that each send the largest request.
pub const UNFINISHED_BYTES_MAX: usize = 64 << 20;

struct Unfinished {
    bytes: usize,
    /// Number of the packet among all that have begun.
    began: u64,
    /// The learner's id, as its hello names it.
    learner: Option<ServerId>,
}

/// The packets of accepted connections that are not complete.
pub struct UnfinishedPackets {
    bytes_max: usize,
    bytes: usize,
    begun: u64,
    by_connection: BTreeMap<LearnerConnectionId, Unfinished>,
    /// Servers in a configuration that counts.
    members: BTreeSet<ServerId>,
}

impl Default for UnfinishedPackets {
    fn default() -> Self {
        Self::with_limit(UNFINISHED_BYTES_MAX)
    }
}

impl UnfinishedPackets {
    pub const fn with_limit(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            begun: 0,
            by_connection: BTreeMap::new(),
            members: BTreeSet::new(),
        }
    }

    pub fn set_members(&mut self, members: BTreeSet<ServerId>) {
        self.members = members;
    }

    /// Notes how many bytes of an incomplete packet a connection has. Returns the connection that is to be closed because
    /// the limit is exceeded: that of a server in no configuration, if there is one; of several the connection whose packet
    /// began first. Servers that are no members may begin packet after packet, so that a member's packet on a slow network
    /// would be the oldest. A member's packet comes within the time that its network needs, a packet that never ends grows
    /// old.
    ///
    /// * `learner`: the id in the learner's hello. `is_another`: packets were completed since the last call, so that these
    ///   bytes belong to a later packet.
    pub fn note(
        &mut self,
        connection: LearnerConnectionId,
        learner: Option<ServerId>,
        bytes: usize,
        is_another: bool,
    ) -> Option<LearnerConnectionId> {
        if bytes == 0 {
            self.forget(connection);
            return None;
        }
        let begun = &mut self.begun;
        let mut next = || {
            *begun += 1;
            *begun
        };
        let new = || Unfinished { bytes: 0, began: 0, learner: None };
        let packet = self.by_connection.entry(connection).or_insert_with(new);
        if is_another || packet.began == 0 {
            packet.began = next();
        }
        self.bytes = self.bytes + bytes - packet.bytes;
        (packet.bytes, packet.learner) = (bytes, learner);
        if self.bytes <= self.bytes_max {
            return None;
        }
        let is_member =
            |packet: &Unfinished| packet.learner.is_some_and(|id| self.members.contains(&id));
        let all = self.by_connection.iter();
        let first = all.min_by_key(|(_, packet)| (is_member(packet), packet.began));
        let first = first.map(|(&connection, _)| connection);
        first.inspect(|&first| self.forget(first))
    }

    /// The connection has ended.
    pub fn forget(&mut self, connection: LearnerConnectionId) {
        if let Some(packet) = self.by_connection.remove(&connection) {
            self.bytes -= packet.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_with_the_oldest_unfinished_packet_is_closed_above_the_limit() {
        let mut packets = UnfinishedPackets::with_limit(100);
        let [a, b, c] = [1, 2, 3].map(LearnerConnectionId);
        assert_eq!(packets.note(a, None, 40, false), None);
        assert_eq!(packets.note(b, None, 40, false), None);
        // The packet of the first connection is complete, and another one has begun.
        assert_eq!(packets.note(a, None, 50, true), None);
        assert_eq!(packets.note(c, None, 20, false), Some(b));
        assert_eq!((packets.bytes, packets.by_connection.len()), (70, 2));
        assert_eq!(packets.note(c, None, 0, true), None);
        packets.forget(a);
        packets.forget(a);
        assert_eq!((packets.bytes, packets.by_connection.len()), (0, 0));
        assert_eq!(packets.note(a, None, 101, false), Some(a), "one packet alone is bounded too");
    }

    #[test]
    fn strangers_with_unfinished_packets_are_closed_before_members_with_older_ones() {
        let mut packets = UnfinishedPackets::with_limit(100);
        let [member, stranger, unknown] = [1, 2, 3].map(LearnerConnectionId);
        packets.set_members([ServerId(7)].into());
        assert_eq!(packets.note(member, Some(ServerId(7)), 40, false), None);
        for _ in 0..10 {
            assert_eq!(packets.note(unknown, None, 10, true), None);
            assert_eq!(packets.note(stranger, Some(ServerId(8)), 40, true), None);
        }
        assert_eq!(packets.note(member, Some(ServerId(7)), 60, false), Some(unknown));
        assert_eq!(packets.note(member, Some(ServerId(7)), 70, false), Some(stranger));
        // The configuration has changed: the packet is older than that of the new member.
        packets.set_members([ServerId(8)].into());
        assert_eq!(packets.note(stranger, Some(ServerId(8)), 40, true), Some(member));
    }
}
