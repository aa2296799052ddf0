//! The index of znodes by path.
//!
//! The table is split into parts, so that growing one of them never blocks writes for long, and keeps half of each
//! hash, so that growing reads no paths.

use super::node::NodeId;
use hashbrown::HashTable;

const PARTS: usize = 1024;

/// Znodes by the hash of their path.
pub(super) struct Index {
    parts: Vec<HashTable<Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    id: NodeId,
    hash: u32,
}

impl Entry {
    /// The hash for the table: the half that is kept, spread over 64 bits.
    const fn spread(self) -> u64 {
        (self.hash as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// The part a hash belongs to, by the half that is not kept.
const fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

impl Index {
    pub fn new() -> Self {
        Self { parts: (0..PARTS).map(|_| HashTable::new()).collect() }
    }

    /// The znode with this hash for which `is_it`.
    pub fn find(&self, hash: u64, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let wanted = Entry { id: 0, hash: hash as u32 };
        let found = self.parts[part_of(hash)]
            .find(wanted.spread(), |entry| entry.hash == wanted.hash && is_it(entry.id));
        found.map(|entry| entry.id)
    }

    /// A znode whose hash has the same kept half: most likely the wanted one, but its path was not compared.
    #[inline]
    pub fn likely(&self, hash: u64) -> Option<NodeId> {
        self.find(hash, |_| true)
    }

    /// Adds a znode that is not there yet.
    pub fn insert(&mut self, hash: u64, id: NodeId) {
        let entry = Entry { id, hash: hash as u32 };
        self.parts[part_of(hash)].insert_unique(entry.spread(), entry, |entry| entry.spread());
    }

    pub fn remove(&mut self, hash: u64, id: NodeId) {
        let entry = Entry { id, hash: hash as u32 };
        if let Ok(found) =
            self.parts[part_of(hash)].find_entry(entry.spread(), |other| other.id == id)
        {
            found.remove();
        }
    }
}
