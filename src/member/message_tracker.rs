//! The last messages of each connection between a leader and a learner, logged when it ends (C-106, C-107).
//!
//! Source: `MessageTracker`, ZooKeeper 3.9.5.

use super::Now;
use crate::zab::{LearnerConnectionId, Packet};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// A message that was received or sent.
#[derive(Debug)]
struct Message {
    at_us: u64,
    name: &'static str,
}

type Ring = VecDeque<Message>;

/// The last messages of each connection, if messages are tracked.
#[derive(Debug, Default)]
pub struct MessageTracker {
    /// Messages kept for each direction; 0: none, at no cost.
    kept: usize,
    /// Received and sent messages by learner's connection; `None`: the connection to the leader.
    connections: BTreeMap<Option<LearnerConnectionId>, (Ring, Ring)>,
}

impl MessageTracker {
    /// * `kept`: `messageTracker.BufferSize`, if `messageTracker.Enabled`.
    pub fn new(kept: Option<u32>) -> Self {
        Self { kept: kept.unwrap_or(0) as usize, connections: BTreeMap::new() }
    }

    pub fn received(
        &mut self,
        connection: Option<LearnerConnectionId>,
        packets: &[Packet],
        now: Now,
    ) {
        if self.kept > 0 {
            let ring = &mut self.connections.entry(connection).or_default().0;
            packets.iter().for_each(|packet| push(ring, self.kept, packet, now));
        }
    }

    /// * `bytes`: of one packet or of several.
    pub fn sent(&mut self, connection: Option<LearnerConnectionId>, bytes: &[u8], now: Now) {
        if self.kept > 0 {
            let ring = &mut self.connections.entry(connection).or_default().1;
            let mut bytes = BytesMut::from(bytes);
            while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
                push(ring, self.kept, &packet, now);
            }
        }
    }

    /// The connection has ended: the messages received and those sent, oldest first. `None` where nothing is kept.
    pub fn end(
        &mut self,
        connection: Option<LearnerConnectionId>,
        now: Now,
    ) -> Option<(String, String)> {
        let (received, sent) = self.connections.remove(&connection)?;
        Some((listed(&received, now), listed(&sent, now)))
    }
}

fn push(ring: &mut Ring, kept: usize, packet: &Packet, now: Now) {
    if ring.len() == kept {
        ring.pop_front();
    }
    ring.push_back(Message { at_us: now.us, name: packet.name() });
}

fn listed(ring: &Ring, now: Now) -> String {
    let mut text = String::new();
    for Message { at_us, name } in ring {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string never fails.
        _ = write!(text, "{comma}{name} {} ms ago", now.us.saturating_sub(*at_us) / 1000);
    }
    if text.is_empty() { "nothing".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, Zxid};

    // rows: C-106 C-107
    #[test]
    fn last_messages_of_a_connection_are_listed_when_it_ends() {
        let zxid = Zxid::new(Epoch(1), 1);
        let now = Now { us: 7000, wall_ms: 0 };
        let names = |text: &str| {
            let of = |part: &str| part.split(' ').next().unwrap().to_owned();
            text.split(", ").map(of).collect::<Vec<_>>()
        };
        let (learner, other) = (Some(LearnerConnectionId(7)), Some(LearnerConnectionId(8)));
        for (kept, received, sent) in [
            (Some(2), Some(vec!["ACK", "SYNC"]), Some(vec!["DIFF", "COMMIT"])),
            (Some(3), Some(vec!["UPTODATE", "ACK", "SYNC"]), Some(vec!["DIFF", "COMMIT"])),
            (None, None, None),
        ] {
            let mut tracker = MessageTracker::new(kept);
            tracker.received(learner, &[Packet::UpToDate, Packet::Ack { zxid }], now);
            tracker.received(None, &[Packet::UpToDate], now);
            tracker.received(learner, &[Packet::Sync], now);
            let mut bytes = Vec::new();
            Packet::Diff { zxid }.encode(&mut bytes);
            Packet::Commit { zxid }.encode(&mut bytes);
            tracker.sent(learner, &bytes, now);
            let ended = tracker.end(learner, now);
            let strings = |list: Option<Vec<&str>>| {
                list.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>())
            };
            assert_eq!(ended.as_ref().map(|ended| names(&ended.0)), strings(received), "{kept:?}");
            assert_eq!(ended.as_ref().map(|ended| names(&ended.1)), strings(sent), "{kept:?}");
            assert_eq!((tracker.end(learner, now), tracker.end(other, now)), (None, None));
            let leader = tracker.end(None, now);
            assert_eq!(leader.is_some(), kept.is_some());
            assert!(leader.is_none_or(|(_, sent)| sent == "nothing"));
        }
    }
}
