//! Looks up many paths at once.
//!
//! With a million znodes a look-up waits for memory three times: for the index, for the znode, for its bytes, and each
//! wait has to end before the next can begin. The first waits of many look-ups can be under way together, then all
//! second ones: the processor does that by itself when it finds loads side by side that do not depend on each other.

use super::key::{hash_of, key, key_bytes};
use super::node::NO_NODE;
use super::{NodeId, Tree};
use std::hint::black_box;

/// As many look-ups as are worth having under way at once.
pub const AHEAD_MAX: usize = 16;

impl Tree {
    /// Brings into the cache what looking up these paths will touch, and returns the likely znode of each, which
    /// [`Tree::find_likely`] verifies; [`NO_NODE`] where there seems to be none.
    pub fn look_ahead(&self, paths: &[&[u8]; AHEAD_MAX], count: usize) -> [NodeId; AHEAD_MAX] {
        let mut hashes = [0; AHEAD_MAX];
        for (hash, path) in hashes.iter_mut().zip(paths).take(count) {
            *hash = hash_of(&self.hash, key_bytes(path));
        }
        let mut ids = [NO_NODE; AHEAD_MAX];
        for (id, hash) in ids.iter_mut().zip(hashes).take(count) {
            *id = self.index.likely(hash).unwrap_or(NO_NODE);
        }
        let mut blobs = [None; AHEAD_MAX];
        for (blob, id) in blobs.iter_mut().zip(ids).take(count) {
            if id != NO_NODE {
                let node = self.nodes.get(id);
                black_box(node.czxid); // A znode lies in more than one line of the cache: this is its other end.
                *blob = Some((node.blob, node.blob_len()));
            }
        }
        for (blob, len) in blobs.into_iter().flatten() {
            let bytes = self.blobs.get(blob, len);
            black_box((bytes.first(), bytes.last()));
        }
        ids
    }

    /// [`Tree::find`] with what [`Tree::look_ahead`] returned for the path; [`NO_NODE`] if it was not looked up ahead.
    pub fn find_likely(&self, path: &str, likely: NodeId) -> Option<NodeId> {
        if likely != NO_NODE && self.path_bytes(self.nodes.get(likely)) == key(path) {
            return Some(likely);
        }
        self.find(path)
    }
}
