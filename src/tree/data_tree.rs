//! The tree: what it consists of, and how a znode is found in it.
//!
//! Source: `DataTree`, ZooKeeper 3.9.5.

use super::acls::Acls;
use super::blob::Blobs;
use super::child_changes::ChildLog;
use super::config_origin::ConfigOrigin;
use super::digest;
use super::digest::StatPart;
use super::digests::Digests;
use super::index::Index;
use super::key::{hash_of, key};
use super::node::{Arena, NO_NODE, NewName, Node, NodeId};
use super::options::Options;
use super::owners::Owners;
use super::peaks::Peaks;
use super::quota_paths::QuotaPaths;
use super::scan::Freeze;
use crate::model::sync::{Arc, Mutex};
use crate::model::{OPEN_ACL, Owner, Zxid, path};
use bytes::Bytes;
use foldhash::fast::FixedState;
use std::collections::BTreeMap;

/// At most this many ephemeral znodes, with paths of at most this many bytes, are sorted under the tree's lock.
const SORTED_MAX: usize = 1024;
const SORTED_BYTES_MAX: usize = 64 * 1024;

/// Znodes, access lists and sessions at [`Tree::last_zxid`].
pub struct Tree {
    pub(super) nodes: Arena,
    pub(super) index: Index,
    pub(super) blobs: Blobs,
    pub(super) shared: Vec<Bytes>,
    pub(super) shared_free: Vec<u32>,
    pub(super) acls: Acls,
    pub(super) owners: Owners,
    pub(super) quotas: QuotaPaths,
    /// Session timeouts in ms, by session id.
    pub(super) sessions: BTreeMap<i64, i32>,
    pub(super) root: NodeId,
    pub(super) digest: u64,
    /// Size of all paths and data.
    pub(super) data_size: u64,
    /// What Java counts twice: see [`Tree::approximate_data_size`].
    pub(super) root_alias_size: u64,
    pub(super) ephemerals: u64,
    pub(super) peaks: Peaks,
    pub(super) last_zxid: Zxid,
    pub(super) digests: Digests,
    /// What `/zookeeper/config` held before the last reconfiguration applied.
    pub(super) config_before: Option<Vec<u8>>,
    pub(super) config_origin: ConfigOrigin,
    /// Freezes under way.
    pub(super) freezes: Vec<Freeze>,
    /// Freezes so far.
    pub(super) freezes_begun: u64,
    /// Lists of children under way.
    pub(super) lists: Mutex<Vec<Arc<ChildLog>>>,
    pub(super) hash: FixedState,
    pub(super) options: Options,
}

impl Tree {
    /// A fresh server's tree: the root, `/zookeeper`, `/zookeeper/config` and `/zookeeper/quota` (P-81).
    pub fn new(options: Options) -> Self {
        let mut tree = Self::empty(options);
        for (path, version) in [("", 0), ("/zookeeper", 0), ("/zookeeper/quota", 0)] {
            tree.insert_system(path, OPEN_ACL, version);
        }
        tree.add_config_node();
        tree
    }

    /// A tree without any znode, into which a snapshot is loaded.
    pub(super) fn empty(options: Options) -> Self {
        Self {
            nodes: Arena::new(),
            index: Index::new(),
            blobs: Blobs::new(),
            shared: Vec::new(),
            shared_free: Vec::new(),
            acls: Acls::new(options.seed),
            owners: Owners::new(options.seed),
            quotas: QuotaPaths::default(),
            sessions: BTreeMap::new(),
            root: NO_NODE,
            digest: 0,
            data_size: 0,
            root_alias_size: 1,
            ephemerals: 0,
            peaks: Peaks::default(),
            last_zxid: Zxid::ZERO,
            digests: Digests::default(),
            config_before: None,
            config_origin: ConfigOrigin::History,
            freezes: Vec::new(),
            freezes_begun: 0,
            lists: Mutex::new(Vec::new()),
            hash: FixedState::with_seed(options.seed),
            options,
        }
    }

    pub(super) fn insert_system(&mut self, path: &str, acl: &[u8], aversion: i32) {
        let acl = self.acls.acquire(acl).expect("our own list is well formed");
        let stat = StatPart { aversion, ..StatPart::default() };
        let parent = path::parent(path).and_then(|parent| self.find(parent)).unwrap_or(NO_NODE);
        let (hash, crc) = (self.hash_path(path), self.start_crc(path, Some(b"")));
        let name = NewName { path: path.as_bytes(), hash, crc };
        self.place(parent, name, Some(b""), acl, &stat);
    }

    pub const fn last_zxid(&self) -> Zxid {
        self.last_zxid
    }

    /// Moves the tree, whose snapshot is restored, to another place in the history.
    pub fn restamp(&mut self, zxid: Zxid) {
        self.last_zxid = zxid;
        self.forget_digests();
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

    /// Forgets the kept digests, if some were computed on a fuzzy tree, which was not yet that of its zxid.
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

    /// [`Self::data_size`] as Java counts it. There the root is in the table twice, as `` and as `/`: both count when a
    /// snapshot is loaded, and data that is set on the root later counts once.
    pub const fn approximate_data_size(&self) -> u64 {
        self.data_size + self.root_alias_size
    }

    pub const fn peaks(&self) -> Peaks {
        self.peaks
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
        let mut paths: Vec<String> = self.ephemeral_paths(session).map(str::to_owned).collect();
        paths.sort_unstable();
        paths
    }

    /// Paths of a session's ephemeral znodes, in no particular order.
    fn ephemeral_paths(&self, session: i64) -> impl Iterator<Item = &str> {
        self.owners.nodes(session).map(|id| self.path(id))
    }

    /// A copy of the ids of a session's ephemeral znodes, which can be walked in several holds of the tree's lock, with
    /// [`Self::ephemeral_path`]. Few are sorted by path; many are in no order, as in Java.
    pub fn ephemeral_ids(&self, session: i64) -> Vec<NodeId> {
        let mut ids: Vec<NodeId> = self.owners.nodes(session).collect();
        let len = |&id: &NodeId| self.nodes.get(id).path_len as usize;
        if ids.len() <= SORTED_MAX && ids.iter().map(len).sum::<usize>() <= SORTED_BYTES_MAX {
            ids.sort_unstable_by_key(|&id| self.path(id));
        }
        ids
    }

    /// The path of a session's ephemeral znode; `None` if the znode was deleted since its id was copied.
    pub fn ephemeral_path(&self, id: NodeId, session: i64) -> Option<&str> {
        let node = (id < self.nodes.places()).then(|| self.nodes.get(id))?;
        (node.is_live() && self.owners.value(node.owner) == session).then(|| self.path(id))
    }

    /// Sessions that own ephemeral znodes, in no order.
    pub fn ephemeral_owners(&self) -> Vec<i64> {
        self.owners.iter().map(|(owner, _)| owner).filter(|&o| self.is_ephemeral(o)).collect()
    }

    /// Owners that look like a session but are no living one: Java removes their znodes at start (D-67).
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
    pub(super) fn hash_path(&self, path: &str) -> u64 {
        hash_of(&self.hash, key(path))
    }

    pub(super) fn find_hashed(&self, path: &str, hash: u64) -> Option<NodeId> {
        self.find_bytes(key(path), hash)
    }

    /// Finds a path in its stored form.
    pub(super) fn find_bytes(&self, path: &[u8], hash: u64) -> Option<NodeId> {
        self.index.find(hash, |id| self.path_bytes(self.nodes.get(id)) == path)
    }

    /// The CRC from which the digest of a new znode continues.
    pub(super) fn start_crc(&self, path: &str, data: Option<&[u8]>) -> u32 {
        if self.options.digest { digest::start(path.as_bytes(), data) } else { 0 }
    }

    pub(super) fn path_bytes(&self, node: &Node) -> &[u8] {
        &self.blobs.get(node.blob, node.blob_len())[..node.path_len as usize]
    }

    /// The path of a living znode; the root's is ``.
    pub fn path(&self, id: NodeId) -> &str {
        str::from_utf8(self.path_bytes(self.nodes.get(id))).expect("paths are stored from strings")
    }
}
