//! One znode in memory, and the arena that holds them all.

use super::blob::BlobId;

/// The path of a znode to create.
#[derive(Clone, Copy)]
pub(super) struct NewName<'a> {
    /// The path in the form in which the tree stores it.
    pub path: &'a [u8],
    pub hash: u64,
    /// See `Tree::start_crc`.
    pub crc: u32,
}

/// Index of a znode in the arena. Valid while the znode lives; places are reused.
pub type NodeId = u32;
/// No znode.
pub const NO_NODE: NodeId = u32::MAX;
/// `data_len` of a znode whose data is null, which is not the same as empty (G-11).
pub(super) const NULL_DATA: u32 = u32::MAX;
/// Data from this many bytes on is kept apart and shared with replies instead of copied into them.
pub const SHARED_DATA_MIN: usize = 4096;
const CHUNK_NODES: usize = 4096;

/// A znode. 96 bytes; path and data are at `blob`. Children are a list through `next` and `prev`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub czxid: i64,
    pub mzxid: i64,
    pub pzxid: i64,
    /// Milliseconds since 1970.
    pub ctime: i64,
    pub mtime: i64,
    pub version: i32,
    /// Number of creations below it, as stored; clients are shown `2 * cversion - children` (P-72).
    pub cversion: i32,
    pub aversion: i32,
    /// Index in the table of owners; 0 is none.
    pub owner: u32,
    /// Index in the table of access lists.
    pub acl: u32,
    /// CRC-32 of path and data: the digest of the znode continues it (see [`super::digest`]).
    pub crc: u32,
    pub parent: NodeId,
    pub first_child: NodeId,
    pub next: NodeId,
    pub prev: NodeId,
    pub children: u32,
    pub blob: BlobId,
    pub path_len: u32,
    pub data_len: u32,
}

impl Node {
    /// Whether the data is kept apart from the path.
    pub const fn is_shared(&self) -> bool {
        self.data_len != NULL_DATA && self.data_len as usize >= SHARED_DATA_MIN
    }

    /// Bytes of data, 0 for null.
    pub const fn data_bytes(&self) -> usize {
        if self.data_len == NULL_DATA { 0 } else { self.data_len as usize }
    }

    /// Length of the blob: path, then data or the index of shared data.
    pub const fn blob_len(&self) -> usize {
        let data = if self.is_shared() { size_of::<u32>() } else { self.data_bytes() };
        self.path_len as usize + data
    }

    pub(super) const EMPTY: Self = Self {
        czxid: 0,
        mzxid: 0,
        pzxid: 0,
        ctime: 0,
        mtime: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        owner: 0,
        acl: 0,
        crc: 0,
        parent: NO_NODE,
        first_child: NO_NODE,
        next: NO_NODE,
        prev: NO_NODE,
        children: 0,
        blob: BlobId::NONE,
        path_len: 0,
        data_len: NULL_DATA,
    };

    pub fn is_live(&self) -> bool {
        self.blob != BlobId::NONE
    }
}

/// All znodes, in chunks that never move.
pub(super) struct Arena {
    chunks: Vec<Box<[Node]>>,
    /// First free place; free places are linked through `next`.
    free: NodeId,
    /// Places ever used: scans go from 0 to here.
    used: u32,
    live: usize,
}

impl Arena {
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), free: NO_NODE, used: 0, live: 0 }
    }

    /// Number of living znodes.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// One more than the highest place ever used.
    pub const fn places(&self) -> u32 {
        self.used
    }

    pub fn get(&self, id: NodeId) -> &Node {
        &self.chunks[id as usize / CHUNK_NODES][id as usize % CHUNK_NODES]
    }

    pub fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.chunks[id as usize / CHUNK_NODES][id as usize % CHUNK_NODES]
    }

    pub fn insert(&mut self, node: Node) -> NodeId {
        debug_assert!(node.is_live());
        let id = if self.free == NO_NODE {
            let id = self.used;
            assert!(id < NO_NODE - 1, "the tree holds 2^32 znodes");
            self.used += 1;
            if id as usize / CHUNK_NODES == self.chunks.len() {
                self.chunks.push(vec![Node::EMPTY; CHUNK_NODES].into_boxed_slice());
            }
            id
        } else {
            let id = self.free;
            self.free = self.get(id).next;
            id
        };
        *self.get_mut(id) = node;
        self.live += 1;
        id
    }

    pub fn remove(&mut self, id: NodeId) {
        let free = self.free;
        *self.get_mut(id) = Node { next: free, ..Node::EMPTY };
        self.free = id;
        self.live -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_znode_takes_96_bytes() {
        assert_eq!(size_of::<Node>(), 96);
    }
}
