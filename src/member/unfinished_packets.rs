//! The limit on packets of learner connections that have begun to come and are not whole.

use crate::zab::LearnerConnectionId;
use std::collections::BTreeMap;

/// Limit on the bytes of all such packets together: enough for 16 learners that each send the largest request.
pub const UNFINISHED_BYTES_MAX: usize = 64 << 20;

struct Unfinished {
    bytes: usize,
    /// Number of the packet among all that have begun.
    began: u64,
}

/// The packets that accepted connections have begun to send.
pub struct UnfinishedPackets {
    bytes_max: usize,
    bytes: usize,
    begun: u64,
    by_connection: BTreeMap<LearnerConnectionId, Unfinished>,
}

impl Default for UnfinishedPackets {
    fn default() -> Self {
        Self::with_limit(UNFINISHED_BYTES_MAX)
    }
}

impl UnfinishedPackets {
    pub const fn with_limit(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: 0, begun: 0, by_connection: BTreeMap::new() }
    }

    /// A connection has so many bytes of a packet that is not whole. Returns the connection that is to be closed: the one
    /// whose packet has been coming for the longest time. A member's packet comes within the time that its network needs, a
    /// packet that never ends grows old.
    ///
    /// * `is_another`: packets were whole since the last call, so that these bytes belong to a later one.
    pub fn note(
        &mut self,
        connection: LearnerConnectionId,
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
        let new = || Unfinished { bytes: 0, began: 0 };
        let packet = self.by_connection.entry(connection).or_insert_with(new);
        if is_another || packet.began == 0 {
            packet.began = next();
        }
        self.bytes = self.bytes + bytes - packet.bytes;
        packet.bytes = bytes;
        if self.bytes <= self.bytes_max {
            return None;
        }
        let oldest = self.by_connection.iter().min_by_key(|(_, packet)| packet.began);
        let oldest = oldest.map(|(&connection, _)| connection);
        oldest.inspect(|&oldest| self.forget(oldest))
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
    fn packet_that_has_come_for_the_longest_time_makes_room() {
        let mut packets = UnfinishedPackets::with_limit(100);
        let [a, b, c] = [1, 2, 3].map(LearnerConnectionId);
        assert_eq!(packets.note(a, 40, false), None);
        assert_eq!(packets.note(b, 40, false), None);
        // The packet of the first connection was whole, and another one has begun.
        assert_eq!(packets.note(a, 50, true), None);
        assert_eq!(packets.note(c, 20, false), Some(b));
        assert_eq!((packets.bytes, packets.by_connection.len()), (70, 2));
        assert_eq!(packets.note(c, 0, true), None);
        packets.forget(a);
        packets.forget(a);
        assert_eq!((packets.bytes, packets.by_connection.len()), (0, 0));
        assert_eq!(packets.note(a, 101, false), Some(a), "one packet alone is bounded too");
    }
}
