//! The tree of one zxid, written out while transactions go on: for a snapshot, or for a learner.
//!
//! The tree is scanned in pieces under the shared lock. A znode that is about to change or to be removed and has not been
//! scanned yet is saved first, as it was; a newer znode is skipped. So the stream is exactly the tree at the zxid at
//! which it began, where Java's is fuzzy and relies on replay to correct it (the ZOOKEEPER-3144 family).
//!
//! Freezes are independent of each other, so that a snapshot never waits for a learner's connection.
//!
//! The stream is what a snapshot file has between its header and its seal (D-21..D-23): sessions, access lists,
//! znodes with parents before children, and the path `/`.

use super::node::{NULL_DATA, Node};
use super::read::{Data, Znode};
use super::saved::{Saved, Target};
use super::scan::{Done, Freeze, Progress, Purpose};
use super::{AclId, NO_NODE, NodeId, Tree};
use crate::model::Zxid;
use crate::model::sync::Mutex;
use jute::{Encode, put_buffer, put_i32, put_i64};

/// Places scanned at once, so that the lock is held for well below a millisecond.
const SCAN_MAX: u32 = 4096;
/// A piece ends with the znode that reaches this many bytes.
const PIECE_BYTES: usize = 1 << 20;
/// The capacity that a buffer for pieces keeps: most pieces fit.
pub const PIECE_CAPACITY: usize = 2 << 20;
/// Freezes under way at once, one of them reserved for a snapshot of this server's own.
const FREEZES_MAX: usize = 32;
/// Limit on the bytes saved for a learner that is in no configuration; above it that learner's freeze is given up.
const STRANGER_SAVED_MAX: u64 = 64 << 20;

/// The frozen tree: its zxid and its digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Frozen {
    pub zxid: Zxid,
    /// Digest of the tree at `zxid`; `None` when digests are off.
    pub digest: Option<u64>,
    /// Number of the freeze, counted over all trees of this server.
    pub number: u64,
}

/// The memory of a freeze that has ended.
pub struct Thawed(#[expect(dead_code, reason = "for its drop")] Option<Freeze>);

impl Tree {
    /// Starts a snapshot at [`Tree::last_zxid`]. `None` while another snapshot is under way.
    pub fn freeze(&mut self) -> Option<Frozen> {
        (!self.is_snapshot_under_way()).then(|| self.begin_freeze(Purpose::Snapshot))
    }

    pub fn is_snapshot_under_way(&self) -> bool {
        self.freezes.iter().any(|freeze| freeze.purpose == Purpose::Snapshot)
    }

    /// Starts the stream of a learner's tree at [`Tree::last_zxid`]. `None` while too many are under way.
    ///
    /// * `is_member`: the learner is in a configuration.
    pub fn freeze_for_learner(&mut self, is_member: bool) -> Option<Frozen> {
        let has_room = self.freezes.len() < FREEZES_MAX - 1;
        has_room.then(|| self.begin_freeze(Purpose::Learner { is_member }))
    }

    fn begin_freeze(&mut self, purpose: Purpose) -> Frozen {
        let mut saved = Saved::default();
        saved.copy(|to| {
            put_i32(to, self.sessions.len() as i32);
            for (&id, &timeout_ms) in &self.sessions {
                put_i64(to, id);
                put_i32(to, timeout_ms);
            }
            put_i32(to, self.acls.iter().count() as i32);
        });
        for (id, bytes) in self.acls.iter() {
            saved.copy(|to| put_i64(to, i64::from(id.0)));
            saved.share(bytes);
        }
        self.freezes_begun += 1;
        let (places, number) = (self.nodes.places(), self.freezes_begun);
        let done = Done::new(places);
        let progress = Progress { done, next: 0, saved, ended: false, is_given_up: false };
        self.freezes.push(Freeze { progress: Mutex::new(progress), places, number, purpose });
        let digest = self.options.digest.then_some(self.digest);
        Frozen { zxid: self.last_zxid, digest, number }
    }

    fn freeze_of(&self, frozen: Frozen) -> Option<&Freeze> {
        self.freezes.iter().find(|freeze| freeze.number == frozen.number)
    }

    /// Whether this freeze is under way: its tree may have been replaced, or the freeze given up.
    pub fn holds(&self, frozen: Frozen) -> bool {
        self.freeze_of(frozen).is_some_and(|freeze| !freeze.progress.lock().is_given_up)
    }

    /// Replaces `old`, and continues its numbers: a freeze of this tree is never taken for one of the old tree.
    pub fn succeed(&mut self, old: &Self) {
        self.freezes_begun = self.freezes_begun.max(old.freezes_begun);
    }

    /// Appends the next piece of the stream; `true` after the last one.
    pub fn freeze_piece(&self, frozen: Frozen, to: &mut Vec<u8>) -> bool {
        let Some(freeze) = self.freeze_of(frozen) else { return true };
        let mut progress = freeze.progress.lock();
        let progress = &mut *progress;
        let is_full = |to: &Vec<u8>, began: usize| PIECE_BYTES <= to.len() - began;
        let began = to.len();
        while !is_full(to, began) && progress.saved.take(to) {}
        let end = freeze.places.min(progress.next.saturating_add(SCAN_MAX));
        while progress.next < end && !is_full(to, began) {
            let id = progress.next;
            let is_to_write = self.nodes.get(id).is_live() && !progress.done.has(id);
            // Its ancestors come first, one at a time.
            if !is_to_write || self.write_next(freeze.places, &mut progress.done, id, to) == id {
                progress.next += 1;
            }
        }
        // A full piece leaves saved znodes to the next one.
        if progress.next == freeze.places && progress.saved.bytes() == 0 && !progress.ended {
            progress.ended = true;
            put_buffer(to, b"/");
        }
        progress.ended
    }

    /// Bytes saved for the snapshot under way that its thread has not taken.
    pub fn snapshot_saved_bytes(&self) -> u64 {
        let mut freezes = self.freezes.iter();
        let own = freezes.find(|freeze| freeze.purpose == Purpose::Snapshot);
        own.map_or(0, |freeze| freeze.progress.lock().saved.bytes())
    }

    /// Ends a freeze, finished or not. What it has saved may be large: drop it after the tree's lock.
    pub fn thaw(&mut self, frozen: Frozen) -> Thawed {
        let at = self.freezes.iter().position(|freeze| freeze.number == frozen.number);
        Thawed(at.map(|at| self.freezes.swap_remove(at)))
    }

    /// Keeps a znode as it is now, before it changes.
    pub(super) fn save_for_freeze(&self, id: NodeId) {
        for freeze in &self.freezes {
            let progress = &mut *freeze.progress.lock();
            if progress.ended {
                continue;
            }
            while id < freeze.places && !progress.done.has(id) {
                self.write_next(freeze.places, &mut progress.done, id, &mut progress.saved);
            }
            let is_strangers = freeze.purpose == Purpose::Learner { is_member: false };
            if is_strangers && STRANGER_SAVED_MAX < progress.saved.bytes() {
                (progress.ended, progress.is_given_up) = (true, true);
            }
        }
    }

    /// Writes a znode that is not written yet, or the uppermost of its ancestors that are not, and says which.
    fn write_next(&self, places: u32, done: &mut Done, id: NodeId, to: &mut impl Target) -> NodeId {
        let mut top = id;
        loop {
            let parent = self.nodes.get(top).parent;
            if parent == NO_NODE || places <= parent || done.has(parent) {
                break;
            }
            top = parent;
        }
        done.set(top);
        write_node(self, self.nodes.get(top), to);
        top
    }
}

fn write_node(tree: &Tree, node: &Node, to: &mut impl Target) {
    let znode = Znode::new(tree, node);
    to.copy(|to| put_buffer(to, tree.path_bytes(node)));
    match znode.data() {
        Data::Large(data) => {
            to.copy(|to| put_i32(to, data.len() as i32));
            to.share(data);
        }
        Data::Small(data) => to.copy(|to| put_buffer(to, data)),
        Data::Null => {
            debug_assert_eq!(node.data_len, NULL_DATA);
            to.copy(|to| put_i32(to, -1));
        }
    }
    to.copy(|to| {
        put_i64(to, if AclId(node.acl) == AclId::OPEN { -1 } else { i64::from(node.acl) });
        znode.stat_part().encode(to);
    });
}
