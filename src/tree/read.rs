//! Reading znodes.

use super::digest::StatPart;
use super::node::{NULL_DATA, Node};
use super::{AclId, NO_NODE, NodeId, Tree, digest};
use crate::model::{AccessList, Owner};
use bytes::Bytes;
use jute::data::Stat;

/// A znode's data.
#[derive(Clone, Copy, Debug)]
pub enum Data<'t> {
    Null,
    /// Data that a reply copies.
    Small(&'t [u8]),
    /// Data that a reply shares: at least [`super::SHARED_DATA_MIN`] bytes.
    Large(&'t Bytes),
}

impl<'t> Data<'t> {
    pub fn bytes(self) -> Option<&'t [u8]> {
        match self {
            Self::Null => None,
            Self::Small(bytes) => Some(bytes),
            Self::Large(bytes) => Some(bytes),
        }
    }

    /// In bytes; 0 for null.
    pub fn len(self) -> usize {
        self.bytes().map_or(0, <[u8]>::len)
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A living znode, seen under the tree's lock.
#[derive(Clone, Copy)]
pub struct Znode<'t> {
    tree: &'t Tree,
    node: &'t Node,
}

impl Tree {
    /// A living znode, for reading.
    pub fn znode(&self, id: NodeId) -> Znode<'_> {
        Znode { tree: self, node: self.nodes.get(id) }
    }

    /// Entries of an access list.
    pub fn acl(&self, id: AclId) -> &AccessList {
        self.acls.get(id)
    }

    /// An access list as a jute vector, count included.
    pub fn acl_bytes(&self, id: AclId) -> &[u8] {
        self.acls.bytes(id)
    }
}

/// Containers and TTL znodes, which the server deletes when they are no longer needed (P-74).
impl Tree {
    /// All containers and TTL znodes, ordered by id.
    pub fn transients(&self) -> Vec<NodeId> {
        let options = self.options;
        let is_transient =
            |owner: i64| matches!(options.owner(owner), Owner::Container | Owner::Ttl(_));
        let owners = self.owners.iter().map(|(owner, _)| owner).filter(|&o| is_transient(o));
        let mut ids: Vec<NodeId> = owners.flat_map(|owner| self.owners.nodes(owner)).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether a znode has no children and is to be deleted: a container that had children, or that was never used for
    /// longer than `never_used_ms` (0: it is kept then); a TTL znode that was not changed for longer than its TTL.
    ///
    /// `id` may belong to another znode by now, or to none.
    ///
    /// Source: `ContainerManager.getCandidates`.
    pub fn has_outlived(&self, id: NodeId, wall_ms: i64, never_used_ms: u64) -> bool {
        if id >= self.nodes.places() || !self.nodes.get(id).is_live() {
            return false;
        }
        let node = self.nodes.get(id);
        let unchanged_ms = wall_ms.saturating_sub(node.mtime);
        let owner = self.owners.value(node.owner);
        node.children == 0
            && match self.options.owner(owner) {
                Owner::Container if node.cversion > 0 => true,
                Owner::Container => {
                    let never_used_ms = i64::try_from(never_used_ms).unwrap_or(i64::MAX);
                    never_used_ms > 0 && unchanged_ms > never_used_ms
                }
                Owner::Ttl(ttl_ms) => ttl_ms > 0 && unchanged_ms > ttl_ms,
                Owner::Nobody | Owner::Session(_) => false,
            }
    }
}

impl<'t> Znode<'t> {
    pub(super) const fn new(tree: &'t Tree, node: &'t Node) -> Self {
        Self { tree, node }
    }

    pub fn data(self) -> Data<'t> {
        if self.node.data_len == NULL_DATA {
            return Data::Null;
        }
        if self.node.is_shared() {
            return Data::Large(&self.tree.shared[self.tree.shared_index(self.node) as usize]);
        }
        let blob = self.tree.blobs.get(self.node.blob, self.node.blob_len());
        Data::Small(&blob[self.node.path_len as usize..])
    }

    pub const fn acl(self) -> AclId {
        AclId(self.node.acl)
    }

    pub const fn children(self) -> u32 {
        self.node.children
    }

    /// The stat as stored.
    pub fn stat_part(self) -> StatPart {
        self.tree.stat_part(self.node)
    }

    /// CRC of path and data: [`digest::start`].
    pub const fn crc(self) -> u32 {
        self.node.crc
    }

    /// The stat as clients see it (P-72).
    pub fn stat(self) -> Stat {
        let owner = self.tree.owners.value(self.node.owner);
        let is_session = matches!(self.tree.options.owner(owner), Owner::Session(_));
        let children = self.node.children as i32;
        Stat {
            czxid: self.node.czxid,
            mzxid: self.node.mzxid,
            ctime: self.node.ctime,
            mtime: self.node.mtime,
            version: self.node.version,
            cversion: self.node.cversion.wrapping_mul(2).wrapping_sub(children),
            aversion: self.node.aversion,
            ephemeral_owner: if is_session { owner } else { 0 },
            data_length: self.node.data_bytes() as i32,
            num_children: children,
            pzxid: self.node.pzxid,
        }
    }

    /// Names of the children, in no particular order.
    pub fn child_names(self) -> impl Iterator<Item = &'t str> {
        let tree = self.tree;
        let skip = self.node.path_len as usize + 1;
        let mut next = self.node.first_child;
        std::iter::from_fn(move || {
            if next == NO_NODE {
                return None;
            }
            let node = tree.nodes.get(next);
            let name = &tree.path(next)[skip..];
            next = node.next;
            Some(name)
        })
    }

    /// The digest from scratch, for checks: nothing cached goes into it.
    pub fn fresh_digest(self, path: &str) -> u64 {
        digest::node(digest::start(path.as_bytes(), self.data().bytes()), &self.stat_part())
    }
}
