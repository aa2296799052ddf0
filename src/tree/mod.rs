//! The replicated state: znodes, sessions, access lists, and what a transaction does to them.
//!
//! `Tree` knows nothing of who agreed on a transaction, who asked for it, or where it is stored. It is filled by
//! [`apply`](Tree::apply) and by [`load`], read under the shared lock of [`State`], and streamed out by [`freeze`].
//!
//! # Invariants
//! 1. `digest` is the wrapping sum of the digests of all znodes that count; every change goes through
//!    `Tree::change`, `Tree::place`, `Tree::set_data` or `Tree::remove`, which keep it so.
//! 2. Every znode but the root has a living parent whose path is its own without the last name.
//! 3. `apply` is total: a transaction is foreign bytes, and what cannot be done is a result, equal on every server.
//! 4. While a freeze is on, a znode is saved before it changes or goes: the snapshot is of one zxid, not fuzzy.
//!
//! # Not here
//! Zxids are not chosen here (`request::prep`), nor is anything compared with what was predicted (`replica`).

mod acls;
mod ahead;
mod apply;
mod blob;
mod count;
pub mod digest;
mod digests;
pub mod freeze;
mod index;
pub mod load;
mod node;
mod owners;
mod quota;
mod read;
pub mod rebuild;
mod state;
#[cfg(test)]
mod tests;
pub mod txn;
mod watch;
mod watch_kind;
mod watch_shard;
#[cfg(test)]
mod watch_tests;

pub use acls::{AclId, decode as decode_acl, encode as encode_acl, to_owned as own_acl};
pub use ahead::AHEAD_MAX;
pub use apply::{Applied, Change, Effects};
pub use count::Count;
pub use node::{NO_NODE, NodeId};
pub use quota::{Exceeded, QuotaTotals, Unreadable};
pub use read::{Data, Znode};
pub use state::State;
pub use watch::Watches;
pub use watch_kind::{Told, Trigger, WatchKind, WatcherId};

use crate::model::{CONTAINER, Owner, TTL_MAX_MS, Zxid, path};
use acls::Acls;
use blob::Blobs;
use bytes::Bytes;
use digest::StatPart;
use digests::Digests;
use foldhash::fast::FixedState;
use index::Index;
use node::{Arena, NULL_DATA, Node};
use owners::Owners;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

/// Data from this many bytes on is kept apart and shared with replies instead of copied into them.
pub const SHARED_DATA_MIN: usize = 4096;

/// Hash of some bytes under one seeded state.
fn hash_of(state: &FixedState, bytes: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// What a server is told about its tree at start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of all hashes: random in a server, fixed in a simulation.
    pub seed: u64,
    /// `zookeeper.digest.enabled`.
    pub digest: bool,
    /// `zookeeper.extendedTypesEnabled`.
    pub extended_types: bool,
    /// `zookeeper.emulate353TTLNodes`: TTL znodes of release 3.5.3 are known too. Counts with extended types only.
    pub emulate_353: bool,
}

impl Options {
    /// Whose a znode is, by its stored ephemeralOwner.
    pub const fn owner(&self, raw: i64) -> Owner {
        let is_353 = self.extended_types && self.emulate_353 && raw < 0 && raw != CONTAINER;
        if is_353 { Owner::Ttl(raw & TTL_MAX_MS) } else { Owner::decode(raw, self.extended_types) }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, digest: true, extended_types: false, emulate_353: false }
    }
}

/// Znodes, access lists and sessions at [`Tree::last_zxid`].
pub struct Tree {
    nodes: Arena,
    index: Index,
    blobs: Blobs,
    shared: Vec<Bytes>,
    shared_free: Vec<u32>,
    acls: Acls,
    owners: Owners,
    quotas: quota::Quotas,
    /// Session timeouts in ms, by session id.
    sessions: BTreeMap<i64, i32>,
    root: NodeId,
    digest: u64,
    /// Size of all paths and data.
    data_size: u64,
    /// What Java counts twice: see [`Tree::approximate_data_size`].
    root_alias_size: u64,
    ephemerals: u64,
    last_zxid: Zxid,
    digests: Digests,
    /// What `/zookeeper/config` held before the last reconfiguration applied.
    config_before: Option<Vec<u8>>,
    freeze: Option<freeze::Freeze>,
    /// Freezes so far.
    freezes: u64,
    hash: FixedState,
    options: Options,
}

impl Tree {
    /// A fresh server's tree: the root, `/zookeeper`, `/zookeeper/config` and `/zookeeper/quota` (P-81).
    pub fn new(options: Options) -> Self {
        let mut tree = Self::empty(options);
        for (path, version) in [("", 0), ("/zookeeper", 0), ("/zookeeper/quota", 0)] {
            tree.insert_system(path, crate::model::OPEN_ACL, version);
        }
        tree.add_config_node();
        tree
    }

    /// Without any znode: what a snapshot is loaded into.
    fn empty(options: Options) -> Self {
        Self {
            nodes: Arena::new(),
            index: Index::new(),
            blobs: Blobs::new(),
            shared: Vec::new(),
            shared_free: Vec::new(),
            acls: Acls::new(options.seed),
            owners: Owners::new(options.seed),
            quotas: quota::Quotas::default(),
            sessions: BTreeMap::new(),
            root: NO_NODE,
            digest: 0,
            data_size: 0,
            root_alias_size: 1,
            ephemerals: 0,
            last_zxid: Zxid::ZERO,
            digests: Digests::default(),
            config_before: None,
            freeze: None,
            freezes: 0,
            hash: FixedState::with_seed(options.seed),
            options,
        }
    }

    fn insert_system(&mut self, path: &str, acl: &[u8], aversion: i32) {
        let acl = self.acls.acquire(acl).expect("our own list is well formed");
        let stat = StatPart { aversion, ..StatPart::default() };
        let parent = crate::model::path::parent(path)
            .and_then(|parent| self.find(parent))
            .unwrap_or(NO_NODE);
        let named = (path.as_bytes(), self.hash_path(path), self.start_crc(path, Some(b"")));
        self.place(parent, named, Some(b""), acl, &stat);
    }

    /// Writes down in `/zookeeper/config` who the members are: no transaction, and every server does it for itself.
    ///
    /// * `version`: of the configuration, which is a zxid.
    ///
    /// Source: `ZKDatabase.initConfigInZKDatabase`, ZooKeeper 3.9.5.
    pub fn set_config(&mut self, text: &[u8], version: i64, wall_ms: i64) {
        let Some(id) = self.find("/zookeeper/config") else { return };
        self.set_data(id, Some(text), |node| {
            (node.version, node.mzxid, node.mtime) = (-1, version, wall_ms);
        });
    }

    /// What `/zookeeper/config` holds.
    pub fn config(&self) -> Option<&[u8]> {
        self.znode(self.find("/zookeeper/config")?).data().bytes()
    }

    /// What it held before the last reconfiguration that was applied here; `None`: none was.
    pub fn config_before(&self) -> Option<&[u8]> {
        self.config_before.as_deref()
    }

    /// Adds `/zookeeper/config` if it is missing, as Java does after every load (`DataTree.addConfigNode`).
    fn add_config_node(&mut self) {
        if self.find("/zookeeper/config").is_none() && self.find("/zookeeper").is_some() {
            // world:anyone:r
            let acl = acls::encode(&[crate::model::Acl {
                perms: 1,
                who: crate::model::Identity::new("world", "anyone"),
            }]);
            self.insert_system("/zookeeper/config", &acl, -1);
        }
    }

    pub const fn last_zxid(&self) -> Zxid {
        self.last_zxid
    }

    /// The digest of the whole tree; 0 when digests are off.
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    pub const fn options(&self) -> Options {
        self.options
    }

    /// Number of znodes as Java counts them: the root twice (P-81).
    pub const fn node_count(&self) -> usize {
        self.nodes.len() + 1
    }

    /// As if none had been kept: some were of a tree that was not yet what its zxid said.
    pub fn forget_digests(&mut self) {
        self.digests = Digests::default();
    }

    /// Digests of the tree as it was at some zxids, the oldest first.
    pub fn digests(&self) -> impl Iterator<Item = (Zxid, u64)> {
        self.digests.iter()
    }

    /// Units of UTF-16 of all paths and bytes of all data.
    pub const fn data_size(&self) -> u64 {
        self.data_size
    }

    /// The same as Java counts it. There the root stands in the table twice, as `` and as `/`: both count when a snapshot
    /// is loaded, and what is set on it later counts once.
    pub const fn approximate_data_size(&self) -> u64 {
        self.data_size + self.root_alias_size
    }

    pub const fn ephemeral_count(&self) -> u64 {
        self.ephemerals
    }

    /// Session timeouts in ms, by session id.
    pub const fn sessions(&self) -> &BTreeMap<i64, i32> {
        &self.sessions
    }

    /// Paths of the ephemeral znodes of one session, sorted.
    pub fn ephemerals_of(&self, session: i64) -> Vec<String> {
        let mut paths: Vec<String> =
            self.owners.nodes(session).map(|id| self.path(id).to_owned()).collect();
        paths.sort_unstable();
        paths
    }

    /// Ephemeral znodes by session, both sorted.
    pub fn ephemerals(&self) -> Vec<(i64, Vec<String>)> {
        let sessions = self.owners.iter().map(|(owner, _)| owner);
        let mut all: Vec<_> = sessions
            .filter(|&owner| self.is_ephemeral(owner))
            .map(|session| (session, self.ephemerals_of(session)))
            .collect();
        all.sort_unstable();
        all
    }

    /// Owners that are no living session although they look like one: what Java sweeps at start (D-67).
    pub fn orphan_sessions(&self) -> Vec<i64> {
        let is_orphan = |owner: i64| {
            matches!(self.options.owner(owner), Owner::Session(_))
                && !self.sessions.contains_key(&owner)
        };
        let mut orphans: Vec<i64> =
            self.owners.iter().map(|(owner, _)| owner).filter(|&o| is_orphan(o)).collect();
        orphans.sort_unstable();
        orphans
    }

    /// The znode at `path`; `/` and `` both name the root.
    pub fn find(&self, path: &str) -> Option<NodeId> {
        self.find_hashed(path, self.hash_path(path))
    }

    /// The hash under which a path is looked up.
    fn hash_path(&self, path: &str) -> u64 {
        hash_of(&self.hash, key(path))
    }

    fn find_hashed(&self, path: &str, hash: u64) -> Option<NodeId> {
        self.find_bytes(key(path), hash)
    }

    /// The same for a path as it is stored.
    fn find_bytes(&self, path: &[u8], hash: u64) -> Option<NodeId> {
        self.index.find(hash, |id| self.path_bytes(self.nodes.get(id)) == path)
    }

    /// What a new znode's digest goes on from.
    fn start_crc(&self, path: &str, data: Option<&[u8]>) -> u32 {
        if self.options.digest { digest::start(path.as_bytes(), data) } else { 0 }
    }

    fn path_bytes(&self, node: &Node) -> &[u8] {
        &self.blobs.get(node.blob, blob_len(node))[..node.path_len as usize]
    }

    /// The path of a living znode; the root's is ``.
    pub fn path(&self, id: NodeId) -> &str {
        str::from_utf8(self.path_bytes(self.nodes.get(id))).expect("paths are stored from strings")
    }

    fn stat_part(&self, node: &Node) -> StatPart {
        StatPart {
            czxid: node.czxid,
            mzxid: node.mzxid,
            pzxid: node.pzxid,
            ctime: node.ctime,
            mtime: node.mtime,
            version: node.version,
            cversion: node.cversion,
            aversion: node.aversion,
            ephemeral_owner: self.owners.value(node.owner),
        }
    }

    fn node_digest(&self, node: &Node) -> u64 {
        if !self.options.digest {
            return 0;
        }
        digest::of(self.path_bytes(node), node.crc, &self.stat_part(node))
    }

    /// Changes a znode's fields; not its path, data or place among its siblings.
    fn change(&mut self, id: NodeId, with: impl FnOnce(&mut Node)) {
        self.save_for_freeze(id);
        let before = self.node_digest(self.nodes.get(id));
        with(self.nodes.get_mut(id));
        let after = self.node_digest(self.nodes.get(id));
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
    }

    /// Adds a znode below a living parent ([`NO_NODE`] for the root). Takes over one user of `acl`.
    ///
    /// * `path`: as it is stored, its hash, and its [`Tree::start_crc`]. It must not be in the tree yet.
    fn place(
        &mut self,
        parent: NodeId,
        (path, hash, crc): (&[u8], u64, u32),
        data: Option<&[u8]>,
        acl: AclId,
        stat: &StatPart,
    ) -> NodeId {
        let digest = if self.options.digest { digest::of(path, crc, stat) } else { 0 };
        self.place_counted(parent, (path, hash, crc, digest), data, acl, stat)
    }

    /// The same when the znode's digest is known, 0 when digests are off.
    fn place_counted(
        &mut self,
        parent: NodeId,
        (path, hash, crc, digest): (&[u8], u64, u32, u64),
        data: Option<&[u8]>,
        acl: AclId,
        stat: &StatPart,
    ) -> NodeId {
        let owner = self.owners.intern(stat.ephemeral_owner);
        let mut node = Node {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            ctime: stat.ctime,
            mtime: stat.mtime,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            owner,
            acl: acl.0,
            crc,
            parent,
            path_len: path.len() as u32,
            ..Node::EMPTY
        };
        self.put_blob(&mut node, path, data);
        self.digest = self.digest.wrapping_add(digest);
        self.data_size += (path::utf16_len(path) + data.map_or(0, <[u8]>::len)) as u64;
        let id = self.nodes.insert(node);
        if let Some(freeze) = &self.freeze {
            freeze.skip(id); // Younger than the snapshot.
        }
        if parent == NO_NODE {
            self.root = id;
        } else {
            self.link(parent, id);
        }
        self.owners.add(owner, id);
        if self.is_ephemeral(stat.ephemeral_owner) {
            self.ephemerals += 1;
        }
        self.index.insert(hash, id);
        id
    }

    fn is_ephemeral(&self, owner: i64) -> bool {
        matches!(self.options.owner(owner), Owner::Session(_))
    }

    /// Takes a znode without children out of the tree. Its access list can be read until the next sweep.
    fn remove(&mut self, id: NodeId) {
        self.save_for_freeze(id);
        let node = *self.nodes.get(id);
        debug_assert_eq!(node.children, 0);
        self.digest = self.digest.wrapping_sub(self.node_digest(&node));
        self.data_size -= (path::utf16_len(self.path(id)) + self.data_len(&node)) as u64;
        let hash = hash_of(&self.hash, self.path_bytes(&node));
        self.index.remove(hash, id);
        if self.is_ephemeral(self.owners.value(node.owner)) {
            self.ephemerals -= 1;
        }
        self.owners.remove(node.owner, id);
        self.acls.release(AclId(node.acl));
        self.unlink(&node);
        self.free_blob(&node);
        self.nodes.remove(id);
    }

    fn link(&mut self, parent: NodeId, id: NodeId) {
        let first = self.nodes.get(parent).first_child;
        if first != NO_NODE {
            self.nodes.get_mut(first).prev = id;
        }
        self.nodes.get_mut(id).next = first;
        let parent = self.nodes.get_mut(parent);
        parent.first_child = id;
        parent.children += 1;
    }

    fn unlink(&mut self, node: &Node) {
        if node.parent == NO_NODE {
            return;
        }
        if node.prev == NO_NODE {
            self.nodes.get_mut(node.parent).first_child = node.next;
        } else {
            self.nodes.get_mut(node.prev).next = node.next;
        }
        if node.next != NO_NODE {
            self.nodes.get_mut(node.next).prev = node.prev;
        }
        self.nodes.get_mut(node.parent).children -= 1;
    }

    /// Replaces a znode's data, and changes fields with it: in one go, because each change costs two digests.
    fn set_data(&mut self, id: NodeId, data: Option<&[u8]>, with: impl FnOnce(&mut Node)) {
        self.save_for_freeze(id);
        let mut node = *self.nodes.get(id);
        let before = self.node_digest(&node);
        self.data_size -= self.data_len(&node) as u64;
        self.data_size += data.map_or(0, |data| data.len() as u64);
        let inline = data.is_none_or(|data| data.len() < SHARED_DATA_MIN);
        let (old_len, path_len) = (blob_len(&node), node.path_len as usize);
        let new_len = path_len + data.map_or(0, <[u8]>::len);
        if inline && !is_shared(&node) && (old_len == new_len || Blobs::fits(old_len, new_len)) {
            let at = self.blobs.get_mut(node.blob, new_len);
            at[path_len..].copy_from_slice(data.unwrap_or_default());
            node.data_len = data.map_or(NULL_DATA, |data| data.len() as u32);
        } else {
            let path = self.path_bytes(&node).to_vec();
            self.free_blob(&node);
            self.put_blob(&mut node, &path, data);
        }
        if self.options.digest {
            node.crc = digest::start(self.path_bytes(&node), data);
        }
        with(&mut node);
        *self.nodes.get_mut(id) = node;
        let after = self.node_digest(&node);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
    }

    /// Stores path and data of a node whose `path_len` is set.
    fn put_blob(&mut self, node: &mut Node, path: &[u8], data: Option<&[u8]>) {
        node.data_len = data.map_or(NULL_DATA, |data| data.len() as u32);
        let reference;
        let tail = match data {
            Some(data) if data.len() >= SHARED_DATA_MIN => {
                let bytes = Bytes::copy_from_slice(data);
                let at = match self.shared_free.pop() {
                    Some(at) => {
                        self.shared[at as usize] = bytes;
                        at
                    }
                    None => {
                        self.shared.push(bytes);
                        self.shared.len() as u32 - 1
                    }
                };
                reference = at.to_ne_bytes();
                &reference[..]
            }
            other => other.unwrap_or_default(),
        };
        let len = path.len() + tail.len();
        node.blob = self.blobs.alloc(len);
        let blob = self.blobs.get_mut(node.blob, len);
        blob[..path.len()].copy_from_slice(path);
        blob[path.len()..].copy_from_slice(tail);
    }

    fn free_blob(&mut self, node: &Node) {
        if is_shared(node) {
            let at = self.shared_index(node);
            self.shared[at as usize] = Bytes::new();
            self.shared_free.push(at);
        }
        self.blobs.free(node.blob, blob_len(node));
    }

    fn shared_index(&self, node: &Node) -> u32 {
        let tail = &self.blobs.get(node.blob, blob_len(node))[node.path_len as usize..];
        u32::from_ne_bytes(
            *tail.first_chunk().expect("shared data leaves its index behind the path"),
        )
    }

    fn data_len(&self, node: &Node) -> usize {
        if node.data_len == NULL_DATA { 0 } else { node.data_len as usize }
    }

    fn save_for_freeze(&self, id: NodeId) {
        if let Some(freeze) = &self.freeze {
            freeze.save(self, id);
        }
    }
}

/// A path as it is stored: the root's is empty.
const fn key(path: &str) -> &[u8] {
    key_bytes(path.as_bytes())
}

const fn key_bytes(path: &[u8]) -> &[u8] {
    match path {
        b"/" => b"",
        path => path,
    }
}

const fn is_shared(node: &Node) -> bool {
    node.data_len != NULL_DATA && node.data_len as usize >= SHARED_DATA_MIN
}

/// Length of a znode's blob: path, then data or the index of shared data.
const fn blob_len(node: &Node) -> usize {
    let data = if node.data_len == NULL_DATA {
        0
    } else if is_shared(node) {
        4
    } else {
        node.data_len as usize
    };
    node.path_len as usize + data
}
