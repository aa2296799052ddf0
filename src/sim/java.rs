//! Members that send to others what a member running Java 3.8 or 3.9 sends, in Java's order.
//!
//! Java's leader names in NEWLEADER the newest configuration that it has seen, committed or not, and sends NEWLEADER after all that it
//! has queued meanwhile (`LearnerHandler.run`, ZooKeeper 3.9.5). Java's learner acknowledges NEWLEADER, then UPTODATE, and only then what
//! was proposed during the synchronisation (`Learner.syncWithLeader`). Only what such a member sends differs; what it logs, counts and
//! applies is as in every server. Two things are left out: Java's leader goes on counting the ACKs of a connection that has ended, and
//! Java's learners put in force what NEWLEADER names. Either loses transactions or splits an ensemble (docs/migration.md).
//!
//! A Java leader that has established its epoch names its tree by the zxid with which the epoch begins, as long as nothing is committed in
//! it (`Leader.startZkServer`, `LearnerHandler.run`), and so does the learner its snapshot (`Learner.syncWithLeader`). In some worlds a
//! learner's process ends when it has such a tree, and the snapshot gets that name and is damaged.

use super::network::ProcessId;
use super::plan::{Crash, CrashKind, MS};
use super::process::{folders, tried_twice};
use super::world::World;
use crate::member::QuorumPeer;
use crate::model::Zxid;
use crate::store::{Disk as _, names};
use crate::zab::Packet;
use bytes::{Bytes, BytesMut};
use std::path::Path;

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

    /// A leader's tree has come: keeps its zxid if a Java leader would have named it by the beginning of its epoch.
    pub fn note_leaders_tree(&mut self, at: ProcessId, zxid: Zxid) {
        let leaders: Vec<_> = self.checks.history.leaders.keys().copied().collect();
        let Some(process) = self.process(at) else { return };
        let epoch = process.watched.leader_epoch;
        let is_open = leaders.contains(&epoch) && zxid.epoch() < epoch;
        process.watched.java_tree = is_open.then_some(zxid);
    }

    /// A learner begins to serve: its process may end, and its leader's tree, under the name that a Java leader gives it, be damaged.
    pub fn leave_java_tree(&mut self, at: ProcessId) {
        let climate = self.climate();
        let is_over = self.is_healing || self.is_recovering || self.is_starting();
        if !climate.java_trees || climate.damaged != Some(at.server) || is_over {
            return;
        }
        let found = &self.servers[at.server];
        let (durable, is_whole) = (found.durable, !found.is_damaged && !found.has_lost);
        let Some(process) = self.process(at) else { return };
        let (tree, epoch) = (process.watched.java_tree.take(), process.watched.leader_epoch);
        if let Some(tree) = tree
            && durable.last == tree
            && durable.current == epoch
            && is_whole
        {
            self.do_at(self.now_us, move |world| {
                world.damage_java_tree(at, tree, Zxid::new(epoch, 0));
            });
        }
    }

    /// * `begin`: the zxid with which the leader's epoch begins.
    fn damage_java_tree(&mut self, at: ProcessId, tree: Zxid, begin: Zxid) {
        if self.process(at).is_none() {
            return;
        }
        let (place, down_us) = (self.rng.next(), self.rng.range(5, 300) * MS);
        self.crash(at.server, Crash { kind: CrashKind::Process, down_us });
        let (disk, dir) = (self.servers[at.server].disk.clone(), folders().snapshots);
        let files = names::snapshots(&disk, &dir).unwrap_or_default();
        let Some(file) = files.into_iter().find(|file| file.zxid == tree) else { return };
        let name = |zxid: Zxid| format!("snapshot.{:x}", zxid.to_wire());
        let old = dir.join(&file.name);
        let new = dir.join(file.name.replacen(&name(tree), &name(begin), 1));
        let len = disk.open(&old).and_then(|file| disk.len(&file)).unwrap_or_default();
        if len == 0 || !disk.flip(&old, place % len) {
            return;
        }
        let was_damaged = std::mem::replace(&mut self.servers[at.server].is_damaged, true);
        let rename = |from: &Path, to: &Path| {
            let _tried = tried_twice(|| disk.rename(from, to));
            let _tried = tried_twice(|| disk.sync_dir(&dir));
        };
        rename(&old, &new);
        let booted = self.start_on_copy(at.server, true, |_| {});
        if booted.is_some_and(|booted| booted.durable.last == begin) {
            // No checksum is over the versions in the head of a packed snapshot. All is as it was again: the checks know no history that
            // ends with the beginning of an epoch.
            rename(&new, &old);
            disk.flip(&old, place % len);
            self.servers[at.server].is_damaged = was_damaged;
            return self.trace.count("trees of Java leaders damaged without effect");
        }
        self.note(at.server, || format!("! {} is damaged", new.display()));
        self.trace.count("trees of Java leaders damaged");
    }
}
