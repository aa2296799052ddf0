//! The changes of znodes: each keeps the digest, the counts, the index and the freezes under way consistent.

use super::blob::Blobs;
use super::child_changes::ChildChange;
use super::digest::{self, StatPart};
use super::key::hash_of;
use super::node::{NULL_DATA, NewName, Node, SHARED_DATA_MIN};
use super::{AclId, NO_NODE, NodeId, Tree};
use crate::model::{Owner, path};
use bytes::Bytes;

impl Tree {
    pub(super) fn stat_part(&self, node: &Node) -> StatPart {
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
    pub(super) fn change(&mut self, id: NodeId, with: impl FnOnce(&mut Node)) {
        self.save_for_freeze(id);
        let before = self.node_digest(self.nodes.get(id));
        with(self.nodes.get_mut(id));
        let after = self.node_digest(self.nodes.get(id));
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
    }

    /// Adds a znode below a living parent ([`NO_NODE`] for the root). Takes over one user of `acl`.
    ///
    /// * `name`: it must not be in the tree yet.
    pub(super) fn place(
        &mut self,
        parent: NodeId,
        name: NewName<'_>,
        data: Option<&[u8]>,
        acl: AclId,
        stat: &StatPart,
    ) -> NodeId {
        let digest = if self.options.digest { digest::of(name.path, name.crc, stat) } else { 0 };
        self.place_counted(parent, name, digest, data, acl, stat)
    }

    /// Like [`Self::place`], when the znode's digest is known; 0 when digests are off.
    pub(super) fn place_counted(
        &mut self,
        parent: NodeId,
        name: NewName<'_>,
        digest: u64,
        data: Option<&[u8]>,
        acl: AclId,
        stat: &StatPart,
    ) -> NodeId {
        let NewName { path, hash, crc } = name;
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
        self.peaks.note_data(data);
        self.peaks.note_sequence(stat.cversion);
        self.digest = self.digest.wrapping_add(digest);
        self.data_size += (path::utf16_len(path) + data.map_or(0, <[u8]>::len)) as u64;
        let id = self.nodes.insert(node);
        for freeze in &self.freezes {
            freeze.skip(id); // Newer than the frozen tree.
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

    pub(super) fn is_ephemeral(&self, owner: i64) -> bool {
        matches!(self.options.owner(owner), Owner::Session(_))
    }

    /// Removes a znode without children from the tree. Its access list can be read until the next sweep.
    pub(super) fn remove(&mut self, id: NodeId) {
        self.save_for_freeze(id);
        let node = *self.nodes.get(id);
        debug_assert_eq!(node.children, 0);
        self.digest = self.digest.wrapping_sub(self.node_digest(&node));
        self.data_size -= (path::utf16_len(self.path(id)) + node.data_bytes()) as u64;
        let hash = hash_of(&self.hash, self.path_bytes(&node));
        self.index.remove(hash, id);
        if self.is_ephemeral(self.owners.value(node.owner)) {
            self.ephemerals -= 1;
        }
        self.owners.remove(node.owner, id);
        self.acls.release(AclId(node.acl));
        self.unlink(id, &node);
        self.free_blob(&node);
        self.nodes.remove(id);
    }

    fn link(&mut self, parent: NodeId, id: NodeId) {
        let first = self.nodes.get(parent).first_child;
        if first != NO_NODE {
            self.nodes.get_mut(first).prev = id;
        }
        self.nodes.get_mut(id).next = first;
        let above = self.nodes.get_mut(parent);
        above.first_child = id;
        above.children += 1;
        let (children, above_len) = (above.children, above.path_len);
        let name_len = self.nodes.get(id).path_len.saturating_sub(above_len + 1);
        self.peaks.note_children(children, name_len);
        self.note_child(parent, ChildChange::Created(id));
    }

    fn unlink(&mut self, id: NodeId, node: &Node) {
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
        self.note_child(node.parent, ChildChange::Deleted { id, next: node.next });
    }

    /// Replaces a znode's data and changes its fields, in one step because each change computes two digests.
    pub(super) fn set_data(
        &mut self,
        id: NodeId,
        data: Option<&[u8]>,
        with: impl FnOnce(&mut Node),
    ) {
        self.save_for_freeze(id);
        self.peaks.note_data(data);
        let mut node = *self.nodes.get(id);
        let before = self.node_digest(&node);
        self.data_size -= node.data_bytes() as u64;
        self.data_size += data.map_or(0, |data| data.len() as u64);
        let inline = data.is_none_or(|data| data.len() < SHARED_DATA_MIN);
        let (old_len, path_len) = (node.blob_len(), node.path_len as usize);
        let new_len = path_len + data.map_or(0, <[u8]>::len);
        if inline && !node.is_shared() && (old_len == new_len || Blobs::fits(old_len, new_len)) {
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
        if node.is_shared() {
            let at = self.shared_index(node);
            self.shared[at as usize] = Bytes::new();
            self.shared_free.push(at);
        }
        self.blobs.free(node.blob, node.blob_len());
    }

    pub(super) fn shared_index(&self, node: &Node) -> u32 {
        let tail = &self.blobs.get(node.blob, node.blob_len())[node.path_len as usize..];
        u32::from_ne_bytes(*tail.first_chunk().expect("shared data has its index after the path"))
    }
}
