//! Building a tree from the stream inside a snapshot file (D-21..D-23, D-66).

use super::digest::StatPart;
use super::{AclId, NodeId, Options, Tree, acls};
use crate::model::{self, Identity, Zxid, path};
use hashbrown::HashMap;
use jute::data::{Acl, StatPersisted};
use jute::{Buffer, DecodeError, Reader, Ustring, Vector};

/// Why a stream is no tree.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadError {
    #[error("decode {what} of the snapshot: {source}")]
    Decode { what: &'static str, source: DecodeError },
    #[error("znode {path:?} comes before its parent")]
    Orphan { path: String },
    #[error("znode {path:?} comes twice")]
    Twice { path: String },
    #[error("access list {index} is null")]
    NullAcl { index: i64 },
    #[error("the snapshot holds no root")]
    NoRoot,
}

/// Scheme of the one entry of a list that is lost; no client can name it.
const LOST: &str = "lost";
const NULL_LIST: [u8; 4] = (-1i32).to_be_bytes();

/// How far a piece of the stream was understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taken {
    /// Bytes that need not be given again.
    pub bytes: usize,
    /// The stream has ended; what follows is the file's seal.
    pub ended: bool,
}

/// A tree being filled. Give it the stream piece by piece.
pub struct Loader {
    tree: Tree,
    left: Left,
    acls: HashMap<i64, AclId, foldhash::fast::FixedState>,
    /// The parent of the znode before: the next one is usually its sibling.
    parent: Option<NodeId>,
    nodes: u64,
}

enum Left {
    SessionCount,
    Sessions(i32),
    AclCount,
    Acls(i32),
    Nodes,
    Ended,
}

impl Loader {
    pub fn new(options: Options) -> Self {
        Self {
            tree: Tree::empty(options),
            left: Left::SessionCount,
            acls: HashMap::with_hasher(foldhash::fast::FixedState::with_seed(options.seed)),
            parent: None,
            nodes: 0,
        }
    }

    /// Znodes so far: for progress reports.
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Takes all whole items off the front of `bytes`. What is left must be given again with more behind it.
    ///
    /// # Errors
    /// [`LoadError`] when the bytes can't be a snapshot, however many more there are.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Taken, LoadError> {
        let mut from = Reader::new(bytes);
        loop {
            let start = from.at();
            if matches!(self.left, Left::Ended) {
                return Ok(Taken { bytes: start, ended: true });
            }
            match self.item(&mut from) {
                Ok(()) => {}
                Err(LoadError::Decode { source: DecodeError::Short { .. }, .. }) => {
                    return Ok(Taken { bytes: start, ended: false });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn item(&mut self, from: &mut Reader<'_>) -> Result<(), LoadError> {
        let fail = |what| move |source| LoadError::Decode { what, source };
        self.left = match self.left {
            Left::SessionCount => Left::Sessions(from.read().map_err(fail("session count"))?),
            Left::Sessions(left) if left > 0 => {
                let (id, timeout_ms) = (from.read(), from.read());
                let id = id.map_err(fail("session"))?;
                self.tree.sessions.insert(id, timeout_ms.map_err(fail("session"))?);
                Left::Sessions(left - 1)
            }
            Left::Sessions(_) => Left::AclCount,
            Left::AclCount => Left::Acls(from.read().map_err(fail("access list count"))?),
            Left::Acls(left) if left > 0 => {
                let index = from.read().map_err(fail("access list"))?;
                let start = from.at();
                from.read::<Vector<'_, Acl<'_>>>().map_err(fail("access list"))?;
                if from.since(start) == NULL_LIST {
                    return Err(LoadError::NullAcl { index });
                }
                let acl = self.tree.acls.acquire(from.since(start)).map_err(fail("access list"))?;
                self.acls.insert(index, acl);
                Left::Acls(left - 1)
            }
            Left::Acls(_) => Left::Nodes,
            Left::Nodes => {
                let path = from.read::<Ustring<'_>>().map_err(fail("path"))?.unwrap_or_default();
                if path == "/" {
                    Left::Ended
                } else {
                    self.node(&path, from)?;
                    Left::Nodes
                }
            }
            Left::Ended => Left::Ended,
        };
        Ok(())
    }

    fn node(&mut self, path: &str, from: &mut Reader<'_>) -> Result<(), LoadError> {
        let fail = |source| LoadError::Decode { what: "znode", source };
        let data = from.read::<Buffer<'_>>().map_err(fail)?;
        let index: i64 = from.read().map_err(fail)?;
        let stat: StatPersisted = from.read().map_err(fail)?;
        let acl = match index {
            -1 => AclId::OPEN,
            index => match self.acls.get(&index) {
                Some(&acl) => acl,
                None => self.lost_acl(index)?,
            },
        };
        let parent = match path::parent(path) {
            None => None, // The root, or a name without a slash, which `place` refuses.
            Some(parent) => {
                let known = self.parent.filter(|&id| self.tree.path(id) == parent);
                let id = known.or_else(|| self.tree.find(parent));
                Some(id.ok_or_else(|| LoadError::Orphan { path: path.into() })?)
            }
        };
        if parent.is_none() && !path.is_empty() {
            return Err(LoadError::Orphan { path: path.into() });
        }
        let hash = self.tree.hash_path(path);
        if self.tree.find_hashed(path, hash).is_some() {
            return Err(LoadError::Twice { path: path.into() });
        }
        self.parent = parent;
        let stat = StatPart {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            ctime: stat.ctime,
            mtime: stat.mtime,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            ephemeral_owner: stat.ephemeral_owner,
        };
        self.tree.acls.share(acl);
        self.tree.place(parent.unwrap_or(super::NO_NODE), (path, hash), data, acl, &stat);
        self.nodes += 1;
        Ok(())
    }

    /// Stands for an access list that the snapshot's table lacks: it lets nobody in.
    ///
    /// Java writes the table first and goes on changing znodes, so its snapshots name lists that only the log holds;
    /// replay brings them back (D-62). Lists that nothing brings back were lost by a Java of before 3.9.3.
    fn lost_acl(&mut self, index: i64) -> Result<AclId, LoadError> {
        let who = Identity::new(LOST, &format!("access list {index} of a snapshot"));
        let list = acls::encode(&[model::Acl { perms: 0, who }]);
        let acl = self.tree.acls.acquire(&list);
        let acl = acl.map_err(|source| LoadError::Decode { what: "access list", source })?;
        self.acls.insert(index, acl);
        Ok(acl)
    }

    /// The tree, at the zxid in the snapshot's file name.
    ///
    /// # Errors
    /// [`LoadError::NoRoot`] when the stream held no root.
    pub fn finish(mut self, zxid: Zxid) -> Result<Tree, LoadError> {
        if self.tree.root == super::NO_NODE {
            return Err(LoadError::NoRoot);
        }
        for &acl in self.acls.values() {
            self.tree.acls.release(acl); // The table's own use; znodes have theirs.
        }
        self.tree.acls.sweep();
        let root = self.tree.nodes.get(self.tree.root);
        self.tree.root_alias_size = 1 + self.tree.data_len(root) as u64;
        self.tree.set_up_quotas();
        self.tree.last_zxid = zxid;
        Ok(self.tree)
    }
}

impl Tree {
    /// Znodes whose access list was lost, at most `max` of them, and their number: only a superuser may touch them.
    pub fn znodes_without_acl(&self, max: usize) -> (Vec<String>, usize) {
        let is_lost = |acl: &[model::Acl]| acl.first().is_some_and(|acl| &*acl.who.scheme == LOST);
        let lost: Vec<AclId> =
            self.acls.iter().map(|(id, _)| id).filter(|&id| is_lost(self.acls.get(id))).collect();
        if lost.is_empty() {
            return (Vec::new(), 0);
        }
        let named = (0..self.nodes.places()).filter(|&id| {
            let node = self.nodes.get(id);
            node.is_live() && lost.contains(&AclId(node.acl))
        });
        let (mut paths, mut count) = (Vec::new(), 0);
        for id in named {
            count += 1;
            if paths.len() < max {
                paths.push(self.path(id).to_owned());
            }
        }
        (paths, count)
    }
}
