//! The snapshot of one zxid, taken while transactions go on.
//!
//! The tree is scanned in pieces under the shared lock. A znode that is about to change or to go and has not been
//! scanned yet is saved first, as it was; one that is younger is skipped. So the stream is exactly the tree at the
//! zxid it began at, where Java's is fuzzy and leans on replay to mend it (the ZOOKEEPER-3144 family).
//!
//! The stream is what stands in a snapshot file between its header and its seal (D-21..D-23): sessions, access lists,
//! znodes with parents before children, and the path `/`.

use super::node::{NULL_DATA, Node};
use super::read::Znode;
use super::scan::{Done, Freeze, Progress};
use super::{AclId, NO_NODE, NodeId, Tree};
use crate::model::Zxid;
use crate::model::sync::Mutex;
use jute::{Encode, put_buffer, put_i32, put_i64};

/// Places scanned in one go, so that the lock is held for well below a millisecond.
const SCAN_MAX: u32 = 4096;

/// What a freeze is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Frozen {
    pub zxid: Zxid,
    /// Of the tree at `zxid`; `None` when digests are off.
    pub digest: Option<u64>,
    /// Which freeze of this server's trees.
    pub number: u64,
}

impl Tree {
    /// Starts a snapshot at [`Tree::last_zxid`]. `None` while another is under way.
    pub fn freeze(&mut self) -> Option<Frozen> {
        if self.freeze.is_some() {
            return None;
        }
        let mut saved = Vec::new();
        put_i32(&mut saved, self.sessions.len() as i32);
        for (&id, &timeout_ms) in &self.sessions {
            put_i64(&mut saved, id);
            put_i32(&mut saved, timeout_ms);
        }
        put_i32(&mut saved, self.acls.iter().count() as i32);
        for (id, bytes) in self.acls.iter() {
            put_i64(&mut saved, i64::from(id.0));
            saved.extend_from_slice(bytes);
        }
        self.freezes += 1;
        let (places, number) = (self.nodes.places(), self.freezes);
        let done = Done::new(places);
        self.freeze = Some(Freeze {
            progress: Mutex::new(Progress { done, next: 0, saved, ended: false }),
            places,
            number,
        });
        let digest = self.options.digest.then_some(self.digest);
        Some(Frozen { zxid: self.last_zxid, digest, number })
    }

    /// Whether this freeze is the one under way: its tree may have been replaced.
    pub fn holds(&self, frozen: Frozen) -> bool {
        self.freeze.as_ref().is_some_and(|freeze| freeze.number == frozen.number)
    }

    /// Takes the place of `old`: what is frozen here is never taken for what was frozen there.
    pub fn succeed(&mut self, old: &Self) {
        self.freezes = self.freezes.max(old.freezes);
    }

    /// Appends the next piece of the stream; `true` once the last one has been given.
    pub fn freeze_piece(&self, to: &mut Vec<u8>) -> bool {
        let Some(freeze) = &self.freeze else { return true };
        let mut progress = freeze.progress.lock();
        if progress.ended {
            return true;
        }
        to.append(&mut progress.saved);
        let end = freeze.places.min(progress.next.saturating_add(SCAN_MAX));
        while progress.next < end {
            let id = progress.next;
            progress.next += 1;
            if self.nodes.get(id).is_live() {
                self.write_branch(freeze.places, &mut progress.done, id, to);
            }
        }
        if progress.next == freeze.places {
            progress.ended = true;
            put_buffer(to, b"/");
        }
        progress.ended
    }

    /// Ends the snapshot, finished or not.
    pub fn thaw(&mut self) {
        self.freeze = None;
    }

    /// Keeps a znode as it is now, before it changes.
    pub(super) fn save_for_freeze(&self, id: NodeId) {
        let Some(freeze) = &self.freeze else { return };
        let progress = &mut *freeze.progress.lock();
        if !progress.ended {
            self.write_branch(freeze.places, &mut progress.done, id, &mut progress.saved);
        }
    }

    /// Writes a znode and, before it, those of its ancestors that are not written yet.
    fn write_branch(&self, places: u32, done: &mut Done, id: NodeId, to: &mut Vec<u8>) {
        let is_done = |done: &Done, id: NodeId| places <= id || done.has(id);
        while !is_done(done, id) {
            let mut top = id;
            loop {
                let parent = self.nodes.get(top).parent;
                if parent == NO_NODE || is_done(done, parent) {
                    break;
                }
                top = parent;
            }
            done.set(top);
            write_node(self, self.nodes.get(top), to);
        }
    }
}

fn write_node(tree: &Tree, node: &Node, to: &mut Vec<u8>) {
    let znode = Znode::new(tree, node);
    put_buffer(to, tree.path_bytes(node));
    match znode.data().bytes() {
        Some(data) => put_buffer(to, data),
        None => {
            debug_assert_eq!(node.data_len, NULL_DATA);
            put_i32(to, -1);
        }
    }
    put_i64(to, if AclId(node.acl) == AclId::OPEN { -1 } else { i64::from(node.acl) });
    znode.stat_part().encode(to);
}
