//! Members that send to others what a member running Java 3.8 or 3.9 sends, in Java's order.
//!
//! Java's leader names in NEWLEADER the newest configuration that it has seen, committed or not, and sends NEWLEADER after all that it
//! has queued meanwhile (`LearnerHandler.run`, ZooKeeper 3.9.5). Java's learner acknowledges NEWLEADER, then UPTODATE, and only then what
//! was proposed during the synchronisation (`Learner.syncWithLeader`). Only what such a member sends differs; what it logs, counts and
//! applies is as in every server. Two things are left out: Java's leader goes on counting the ACKs of a connection that has ended, and
//! Java's learners put in force what NEWLEADER names. Either loses transactions or splits an ensemble (docs/migration.md).

use super::network::ProcessId;
use super::world::World;
use crate::member::QuorumPeer;
use crate::zab::Packet;
use bytes::{Bytes, BytesMut};

fn packets(bytes: &Bytes) -> Vec<Packet> {
    let mut bytes = BytesMut::from(&bytes[..]);
    let next = || Packet::decode(&mut bytes).ok().flatten();
    std::iter::from_fn(next).collect()
}

fn acknowledges_proposal(packet: &Packet) -> bool {
    matches!(packet, Packet::Ack { zxid } if 0 < zxid.counter())
}

impl World {
    pub fn is_java(&self, server: usize) -> bool {
        self.climate().java.contains(&server)
    }

    /// The bytes that a Java member sends in place of these.
    pub fn say_as_java(&mut self, at: ProcessId, peer: QuorumPeer, bytes: Bytes) -> Bytes {
        if !self.is_java(at.server) {
            return bytes;
        }
        match peer {
            QuorumPeer::Leader { .. } => self.keep_acks(at, bytes),
            QuorumPeer::Learner(_) => self.name_last_seen(at, bytes),
        }
    }

    /// A learner that does not serve yet keeps its ACKs of proposals back.
    fn keep_acks(&mut self, at: ProcessId, bytes: Bytes) -> Bytes {
        let Some(process) = self.process(at).filter(|process| !process.is_serving()) else {
            return bytes;
        };
        let (late, said): (Vec<_>, Vec<_>) =
            packets(&bytes).into_iter().partition(acknowledges_proposal);
        if late.is_empty() {
            return bytes;
        }
        late.iter().for_each(|ack| ack.encode(&mut process.learner_connections.late_acks));
        self.trace.count("acknowledgements kept until UPTODATE");
        let mut bytes = Vec::new();
        said.iter().for_each(|packet| packet.encode(&mut bytes));
        bytes.into()
    }

    fn name_last_seen(&mut self, at: ProcessId, bytes: Bytes) -> Bytes {
        let Some(process) = self.process(at) else { return bytes };
        let Some(next) = &process.member.replica.peer().core.next else { return bytes };
        match packets(&bytes)[..] {
            [Packet::NewLeader { epoch, .. }] => {
                let view = next.to_string().into();
                self.trace.count("configurations named before they are committed");
                Packet::NewLeader { epoch, view }.to_bytes()
            }
            _ => bytes,
        }
    }

    /// Puts the packets of one turn into Java's order, before they are sent.
    pub fn order_as_java(&mut self, at: ProcessId, peer: QuorumPeer, batch: &mut Vec<Bytes>) {
        if !self.is_java(at.server) {
            return;
        }
        let is_new_leader =
            |bytes: &Bytes| matches!(packets(bytes)[..], [Packet::NewLeader { .. }]);
        let Some(process) = self.process(at) else { return };
        match peer {
            QuorumPeer::Leader { .. } if process.is_serving() => {
                let late = std::mem::take(&mut process.learner_connections.late_acks);
                // After the ACK of UPTODATE, and before the ACKs of later proposals.
                let before =
                    batch.iter().position(|bytes| packets(bytes).iter().all(acknowledges_proposal));
                if !late.is_empty() {
                    let late = Bytes::from(late);
                    self.see_packets(at, peer, &late);
                    batch.insert(before.unwrap_or(batch.len()), late);
                }
            }
            QuorumPeer::Learner(_) => {
                if let Some(from) = batch.iter().position(is_new_leader)
                    && from + 1 < batch.len()
                {
                    batch[from..].rotate_left(1);
                    self.trace.count("proposals before NEWLEADER");
                }
            }
            QuorumPeer::Leader { .. } => {}
        }
    }
}
