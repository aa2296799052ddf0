//! Looking at znodes.

use super::digest::StatPart;
use super::node::{NULL_DATA, Node};
use super::{AclId, NO_NODE, NodeId, Tree, blob_len, digest, is_shared};
use crate::model::{Acl, Owner};
use bytes::Bytes;
use jute::data::Stat;
use std::sync::Arc;

/// A znode's data.
#[derive(Clone, Copy, Debug)]
pub enum Data<'t> {
    Null,
    /// To be copied.
    Small(&'t [u8]),
    /// To be shared: at least [`super::SHARED_DATA_MIN`] bytes.
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
}

/// A living znode, seen under the tree's lock.
#[derive(Clone, Copy)]
pub struct Znode<'t> {
    tree: &'t Tree,
    node: &'t Node,
}

impl Tree {
    /// A look at a living znode.
    pub fn znode(&self, id: NodeId) -> Znode<'_> {
        Znode { tree: self, node: self.nodes.get(id) }
    }

    /// Entries of an access list.
    pub fn acl(&self, id: AclId) -> &Arc<[Acl]> {
        self.acls.get(id)
    }

    /// An access list as a jute vector, count included.
    pub fn acl_bytes(&self, id: AclId) -> &[u8] {
        self.acls.bytes(id)
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
        if is_shared(self.node) {
            return Data::Large(&self.tree.shared[self.tree.shared_index(self.node) as usize]);
        }
        let blob = self.tree.blobs.get(self.node.blob, blob_len(self.node));
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
        let is_session =
            matches!(Owner::decode(owner, self.tree.options.extended_types), Owner::Session(_));
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
            data_length: self.tree.data_len(self.node) as i32,
            num_children: children,
            pzxid: self.node.pzxid,
        }
    }

    /// Names of the children, in no order that means anything.
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
