//! The last messages of each connection between servers, told when it ends (C-106, C-107).
//!
//! Source: `MessageTracker`, ZooKeeper 3.9.5.

use crate::zab::{LinkId, Packet};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Instant;

/// Names of messages, each with when it came or went.
type Ring = VecDeque<(Instant, &'static str)>;

/// What was said over the connections that there are, if that is wanted.
#[derive(Debug, Default)]
pub struct Trace {
    /// So many are kept of each direction; 0: none, at no cost.
    kept: usize,
    /// By learner; `None`: the leader.
    links: BTreeMap<Option<LinkId>, (Ring, Ring)>,
}

impl Trace {
    /// * `kept`: `messageTracker.BufferSize`, if `messageTracker.Enabled`.
    pub fn new(kept: Option<u32>) -> Self {
        Self { kept: kept.unwrap_or(0) as usize, links: BTreeMap::new() }
    }

    pub fn received(&mut self, link: Option<LinkId>, packets: &[Packet]) {
        if self.kept > 0 {
            let ring = &mut self.links.entry(link).or_default().0;
            packets.iter().for_each(|packet| push(ring, self.kept, packet.name()));
        }
    }

    /// * `bytes`: of one packet or of several.
    pub fn sent(&mut self, link: Option<LinkId>, bytes: &[u8]) {
        if self.kept > 0 {
            let ring = &mut self.links.entry(link).or_default().1;
            let mut bytes = BytesMut::from(bytes);
            while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
                push(ring, self.kept, packet.name());
            }
        }
    }

    /// The connection has ended: what was received and what was sent, oldest first. `None` where nothing is kept.
    pub fn end(&mut self, link: Option<LinkId>) -> Option<(String, String)> {
        let (received, sent) = self.links.remove(&link)?;
        Some((told(&received), told(&sent)))
    }
}

fn push(ring: &mut Ring, kept: usize, name: &'static str) {
    if ring.len() == kept {
        ring.pop_front();
    }
    ring.push_back((Instant::now(), name));
}

fn told(ring: &Ring) -> String {
    let mut text = String::new();
    for (at, name) in ring {
        let comma = if text.is_empty() { "" } else { ", " };
        // A string never refuses.
        _ = write!(text, "{comma}{name} {} ms ago", at.elapsed().as_millis());
    }
    if text.is_empty() { "nothing".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, Zxid};

    // rows: C-106 C-107
    #[test]
    fn the_last_messages_of_a_connection_are_told_when_it_ends() {
        let zxid = Zxid::new(Epoch(1), 1);
        let names = |text: &str| {
            let of = |part: &str| part.split(' ').next().unwrap().to_owned();
            text.split(", ").map(of).collect::<Vec<_>>()
        };
        let (learner, other) = (Some(LinkId(7)), Some(LinkId(8)));
        for (kept, received, sent) in [
            (Some(2), Some(vec!["ACK", "SYNC"]), Some(vec!["DIFF", "COMMIT"])),
            (Some(3), Some(vec!["UPTODATE", "ACK", "SYNC"]), Some(vec!["DIFF", "COMMIT"])),
            (None, None, None),
        ] {
            let mut trace = Trace::new(kept);
            trace.received(learner, &[Packet::UpToDate, Packet::Ack { zxid }]);
            trace.received(None, &[Packet::UpToDate]);
            trace.received(learner, &[Packet::Sync]);
            let mut bytes = Vec::new();
            Packet::Diff { zxid }.encode(&mut bytes);
            Packet::Commit { zxid }.encode(&mut bytes);
            trace.sent(learner, &bytes);
            let told = trace.end(learner);
            let strings = |list: Option<Vec<&str>>| {
                list.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>())
            };
            assert_eq!(told.as_ref().map(|told| names(&told.0)), strings(received), "{kept:?}");
            assert_eq!(told.as_ref().map(|told| names(&told.1)), strings(sent), "{kept:?}");
            assert_eq!((trace.end(learner), trace.end(other)), (None, None));
            let leader = trace.end(None);
            assert_eq!(leader.is_some(), kept.is_some());
            assert!(leader.is_none_or(|(_, sent)| sent == "nothing"));
        }
    }
}
