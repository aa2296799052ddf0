//! Builds a tree from the stream inside a snapshot file (D-21..D-23, D-66).
//!
//! In two halves, so that two threads can share the work: a [`Parser`] turns bytes into a [`Batch`], with all that can
//! be computed without the tree; a [`Builder`] puts batches into a tree. [`Loader`] is both, one after the other.

use super::digest::{self, StatPart};
use super::key::hash_of;
use super::node::NewName;
use super::{AclId, NO_NODE, NodeId, Options, Tree, acls};
use crate::model::{self, Identity, Zxid};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use jute::data::Acl;
use jute::{Buffer, DecodeError, Reader, Ustring, Vector};
use std::borrow::Cow;
use std::ops::Range;

/// Why a stream is no tree.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadError {
    #[error("decode {what} of the snapshot: {source}")]
    Decode { what: &'static str, source: DecodeError },
    #[error("znode \"{}\" comes before its parent", path.escape_debug())]
    Orphan { path: String },
    #[error("znode \"{}\" comes twice", path.escape_debug())]
    Twice { path: String },
    #[error("access list {index} is null")]
    NullAcl { index: i64 },
    #[error("the snapshot holds no root")]
    NoRoot,
}

/// How far a piece of the stream was decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taken {
    /// Bytes that need not be given again.
    pub bytes: usize,
    /// The stream has ended; what follows is the file's seal.
    pub ended: bool,
}

/// Scheme of the only entry of an access list that is lost; no client can have it.
const LOST: &str = "lost";
const NULL_LIST: [u8; 4] = (-1i32).to_be_bytes();

/// Whole items of the stream, and what is known of them without a tree.
#[derive(Default)]
pub struct Batch {
    /// The items as in the stream; after them, the decoded paths that differ from their bytes in the stream.
    bytes: Vec<u8>,
    sessions: Vec<(i64, i32)>,
    /// Access lists: index, place of the jute vector.
    acls: Vec<(i64, Range<usize>)>,
    nodes: Vec<Item>,
}

struct Item {
    path: Range<usize>,
    /// Bytes of `path` that name the parent; `None`: the root, or no path at all.
    parent_len: Option<usize>,
    /// `None`: the parent is that of the znode before.
    parent_hash: Option<u64>,
    data: Option<Range<usize>>,
    hash: u64,
    crc: u32,
    digest: u64,
    acl: i64,
    stat: StatPart,
}

impl Batch {
    /// Number of znodes in it, the rest not counted.
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when there is nothing in it for a [`Builder`].
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.sessions.is_empty() && self.acls.is_empty()
    }

    /// Sessions: id and timeout in milliseconds.
    pub fn sessions(&self) -> &[(i64, i32)] {
        &self.sessions
    }

    /// The znodes, in the order of the stream, for tools that build no tree.
    pub fn znodes(&self) -> impl Iterator<Item = Seen<'_>> {
        self.nodes.iter().map(|item| Seen {
            path: String::from_utf8_lossy(&self.bytes[item.path.clone()]),
            data: item.data.clone().map(|data| &self.bytes[data]),
            stat: &item.stat,
        })
    }

    /// Makes room for other items, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sessions.clear();
        self.acls.clear();
        self.nodes.clear();
    }
}

/// A znode as a snapshot holds it.
pub struct Seen<'b> {
    /// The root's is empty.
    pub path: Cow<'b, str>,
    pub data: Option<&'b [u8]>,
    pub stat: &'b StatPart,
}

/// Splits a stream into items.
pub struct Parser {
    section: Section,
    hash: FixedState,
    digest: bool,
    /// The parent path of the znode before: the next znode is usually its sibling.
    parent: Vec<u8>,
}

/// The part of a snapshot that comes next, and how many items of it are left.
enum Section {
    SessionCount,
    Sessions(i32),
    AclCount,
    Acls(i32),
    Nodes,
    Ended,
}

impl Parser {
    pub fn new(options: Options) -> Self {
        Self {
            section: Section::SessionCount,
            hash: FixedState::with_seed(options.seed),
            digest: options.digest,
            parent: Vec::new(),
        }
    }

    /// Takes all whole items off the front of `bytes` and puts them into `batch`, which is empty. What is left must be
    /// given again with more bytes after it.
    ///
    /// # Errors
    /// [`LoadError`] when the bytes can't be a snapshot, however many more there are.
    pub fn take(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<Taken, LoadError> {
        debug_assert!(batch.is_empty() && batch.bytes.is_empty());
        let mut from = Reader::new(bytes);
        let mut odd = Vec::new();
        let taken = loop {
            let start = from.at();
            if matches!(self.section, Section::Ended) {
                break Taken { bytes: start, ended: true };
            }
            match self.item(&mut from, batch, bytes.len(), &mut odd) {
                Ok(()) => {}
                Err(LoadError::Decode { source: DecodeError::Short { .. }, .. }) => {
                    break Taken { bytes: start, ended: false };
                }
                Err(error) => return Err(error),
            }
        };
        if 0 < taken.bytes {
            batch.bytes.extend_from_slice(bytes);
            batch.bytes.append(&mut odd);
        }
        Ok(taken)
    }

    /// * `end`: offset in the batch where the paths of `odd` will begin.
    fn item(
        &mut self,
        from: &mut Reader<'_>,
        batch: &mut Batch,
        end: usize,
        odd: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        let fail = |what| move |source| LoadError::Decode { what, source };
        self.section = match self.section {
            Section::SessionCount => Section::Sessions(from.read().map_err(fail("session count"))?),
            Section::Sessions(left) if left > 0 => {
                let (id, timeout_ms) = (from.read(), from.read());
                let id = id.map_err(fail("session"))?;
                batch.sessions.push((id, timeout_ms.map_err(fail("session"))?));
                Section::Sessions(left - 1)
            }
            Section::Sessions(_) => Section::AclCount,
            Section::AclCount => Section::Acls(from.read().map_err(fail("access list count"))?),
            Section::Acls(left) if left > 0 => {
                let index = from.read().map_err(fail("access list"))?;
                let start = from.at();
                from.read::<Vector<'_, Acl<'_>>>().map_err(fail("access list"))?;
                if from.since(start) == NULL_LIST {
                    return Err(LoadError::NullAcl { index });
                }
                batch.acls.push((index, start..from.at()));
                Section::Acls(left - 1)
            }
            Section::Acls(_) => Section::Nodes,
            Section::Nodes => {
                let path = from.read::<Ustring<'_>>().map_err(fail("path"))?.unwrap_or_default();
                if path == "/" {
                    Section::Ended
                } else {
                    let after = from.at();
                    let item = self.node(&path, from).map_err(fail("znode"))?;
                    let path = match path {
                        Cow::Borrowed(path) => after - path.len()..after,
                        // Bytes that are not UTF-8 are decoded to other ones (P-08).
                        Cow::Owned(path) => {
                            odd.extend_from_slice(path.as_bytes());
                            end + odd.len() - path.len()..end + odd.len()
                        }
                    };
                    batch.nodes.push(Item { path, ..item });
                    Section::Nodes
                }
            }
            Section::Ended => Section::Ended,
        };
        Ok(())
    }

    fn node(&mut self, path: &str, from: &mut Reader<'_>) -> Result<Item, DecodeError> {
        let data: Buffer<'_> = from.read()?;
        let after = from.at();
        let acl = from.read()?;
        let stat: StatPart = from.read()?;
        let path = path.as_bytes();
        let parent_len = path.iter().rposition(|&byte| byte == b'/');
        let parent = &path[..parent_len.unwrap_or(0)];
        let is_sibling = self.parent == parent;
        if !is_sibling {
            self.parent.clear();
            self.parent.extend_from_slice(parent);
        }
        let crc = if self.digest { digest::start(path, data) } else { 0 };
        Ok(Item {
            path: 0..0,
            parent_len,
            parent_hash: (!is_sibling).then(|| hash_of(&self.hash, parent)),
            data: data.map(|data| after - data.len()..after),
            hash: hash_of(&self.hash, path),
            crc,
            digest: if self.digest { digest::of(path, crc, &stat) } else { 0 },
            acl,
            stat,
        })
    }
}

/// A tree being filled.
pub struct Builder {
    tree: Tree,
    acls: HashMap<i64, AclId, FixedState>,
    parent: NodeId,
}

impl Builder {
    pub fn new(options: Options) -> Self {
        Self {
            tree: Tree::empty(options),
            acls: HashMap::with_hasher(FixedState::with_seed(options.seed)),
            parent: NO_NODE,
        }
    }

    /// Adds a batch; batches come in the order of their stream.
    ///
    /// # Errors
    /// [`LoadError`] when it does not fit what came before.
    pub fn add(&mut self, batch: &Batch) -> Result<(), LoadError> {
        self.tree.sessions.extend(batch.sessions.iter().copied());
        for (index, list) in &batch.acls {
            let acl = self.tree.acls.acquire(&batch.bytes[list.clone()]);
            let acl = acl.map_err(|source| LoadError::Decode { what: "access list", source })?;
            self.acls.insert(*index, acl);
        }
        // Looks up each index slot first: these cache misses overlap, and the second look-up finds
        // the slot in the cache.
        let mut collisions = 0;
        for item in &batch.nodes {
            collisions += u32::from(self.tree.index.find(item.hash, |_| true).is_some());
        }
        if collisions > 0 {
            tracing::debug!(collisions, "path hashes collide");
        }
        batch.nodes.iter().try_for_each(|item| self.node(batch, item))
    }

    fn node(&mut self, batch: &Batch, item: &Item) -> Result<(), LoadError> {
        let path = &batch.bytes[item.path.clone()];
        let text = || String::from_utf8_lossy(path).into_owned();
        let acl = match item.acl {
            -1 => AclId::OPEN,
            index => match self.acls.get(&index) {
                Some(&acl) => acl,
                None => self.lost_acl(index)?,
            },
        };
        match (item.parent_len, item.parent_hash) {
            (None, _) if !path.is_empty() => return Err(LoadError::Orphan { path: text() }),
            (Some(len), Some(hash)) => {
                let parent = self.tree.find_bytes(&path[..len], hash);
                self.parent = parent.ok_or_else(|| LoadError::Orphan { path: text() })?;
            }
            // The root is no sibling of its children, although its own parent path and theirs are both empty.
            (Some(len), None) if self.parent == NO_NODE => {
                let hash = hash_of(&self.tree.hash, &path[..len]);
                let parent = self.tree.find_bytes(&path[..len], hash);
                self.parent = parent.ok_or_else(|| LoadError::Orphan { path: text() })?;
            }
            _ => {}
        }
        if self.tree.find_bytes(path, item.hash).is_some() {
            return Err(LoadError::Twice { path: text() });
        }
        let parent = if item.parent_len.is_some() { self.parent } else { NO_NODE };
        let data = item.data.clone().map(|data| &batch.bytes[data]);
        self.tree.acls.share(acl);
        let name = NewName { path, hash: item.hash, crc: item.crc };
        self.tree.place_counted(parent, name, item.digest, data, acl, &item.stat);
        Ok(())
    }

    /// Adds an access list without permissions in place of one that the snapshot's table lacks.
    ///
    /// Java writes the table first and goes on changing znodes, so its snapshots name lists that only the log holds;
    /// replay brings them back (D-62). Lists that replay does not bring back were lost by a Java server before 3.9.3.
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
        if self.tree.root == NO_NODE {
            return Err(LoadError::NoRoot);
        }
        for &acl in self.acls.values() {
            self.tree.acls.release(acl); // The table's own use; znodes have theirs.
        }
        self.tree.acls.sweep();
        let root = self.tree.nodes.get(self.tree.root);
        self.tree.root_alias_size = 1 + root.data_bytes() as u64;
        self.tree.set_up_quotas();
        self.tree.last_zxid = zxid;
        self.tree.set_config_origin(zxid);
        Ok(self.tree)
    }
}

/// Both halves on one thread. Give it the stream piece by piece.
pub struct Loader {
    parser: Parser,
    batch: Batch,
    builder: Builder,
}

impl Loader {
    pub fn new(options: Options) -> Self {
        let (parser, builder) = (Parser::new(options), Builder::new(options));
        Self { parser, batch: Batch::default(), builder }
    }

    /// Takes all whole items off the front of `bytes`. What is left must be given again with more bytes after it.
    ///
    /// # Errors
    /// [`LoadError`] when the bytes can't be a snapshot, however many more there are.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Taken, LoadError> {
        self.batch.clear();
        let taken = self.parser.take(bytes, &mut self.batch)?;
        self.builder.add(&self.batch)?;
        Ok(taken)
    }

    /// The tree, at the zxid in the snapshot's file name.
    ///
    /// # Errors
    /// [`LoadError::NoRoot`] when the stream held no root.
    pub fn finish(self, zxid: Zxid) -> Result<Tree, LoadError> {
        self.builder.finish(zxid)
    }
}

impl Tree {
    /// Znodes with more than `limit` bytes of data, at most `max` of their paths, and their number.
    pub fn znodes_above(&self, limit: usize, max: usize) -> (Vec<String>, usize) {
        let (mut paths, mut count) = (Vec::new(), 0);
        // Nothing is looked at unless there was one.
        if self.peaks.data_bytes as usize <= limit {
            return (paths, count);
        }
        for id in 0..self.nodes.places() {
            if self.nodes.get(id).is_live() && limit < self.znode(id).data().len() {
                count += 1;
                if paths.len() < max {
                    paths.push(self.path(id).to_owned());
                }
            }
        }
        (paths, count)
    }

    /// The newest of the tree's own zxid and those of its znodes. They may be newer than the tree's: a tree of another ensemble that was
    /// restored got a zxid of this one.
    pub fn newest_zxid(&self) -> Zxid {
        let live =
            (0..self.nodes.places()).map(|id| self.nodes.get(id)).filter(|node| node.is_live());
        let zxids = live.flat_map(|node| [node.czxid, node.mzxid, node.pzxid]);
        zxids.filter_map(Zxid::from_wire).fold(self.last_zxid(), Zxid::max)
    }

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
