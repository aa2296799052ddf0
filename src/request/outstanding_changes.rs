//! The tree as it will be once everything proposed is applied: the next write is checked against it (P-66).

use crate::model::{AccessList, Zxid};
use crate::tree::digest::{self, StatPart};
use crate::tree::{AclId, Tree};
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// The access list of a znode that may not be in the tree yet.
#[derive(Clone, Debug)]
pub(super) enum AclOf {
    Table(AclId),
    Own(Arc<AccessList>),
}

/// A znode as the next write will find it.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub stat: StatPart,
    pub acl: AclOf,
    pub children: u32,
    /// CRC of path and data: [`digest::start`].
    pub crc: u32,
    pub data_len: usize,
}

impl View {
    /// What the znode adds to the tree digest.
    pub fn digest(&self, path: &str) -> u64 {
        if digest::counts(path.as_bytes()) { digest::node(self.crc, &self.stat) } else { 0 }
    }

    pub fn acl<'a>(&'a self, tree: &'a Tree) -> &'a AccessList {
        match &self.acl {
            AclOf::Table(id) => tree.acl(*id),
            AclOf::Own(acl) => acl,
        }
    }
}

/// Changes proposed and not applied yet, by path.
pub(super) struct Pending {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// What each proposal changed, in zxid order.
    order: VecDeque<(Zxid, u32)>,
    /// While a multi is prepared: each change with what its slot held before, `None` for a new slot.
    undo: Option<Vec<(u32, Option<Before>)>>,
    counts: ChangeCounts,
    hash: foldhash::fast::FixedState,
}

/// Changes to znodes so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ChangeCounts {
    pub noted: u64,
    /// Changes that were applied, or dropped because this server stopped leading.
    pub forgotten: u64,
}

#[derive(Default)]
struct Slot {
    path: String,
    hash: u64,
    /// The last proposal that changes the path.
    zxid: Zxid,
    /// `None`: deleted.
    view: Option<View>,
}

/// What a slot held before a change: the proposal that put it there, and the znode.
type Before = (Zxid, Option<View>);

impl Pending {
    pub fn new(seed: u64) -> Self {
        Self {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: VecDeque::new(),
            undo: None,
            counts: ChangeCounts::default(),
            hash: foldhash::fast::FixedState::with_seed(seed),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub const fn counts(&self) -> ChangeCounts {
        self.counts
    }

    /// The znode at `path`, with all that was proposed; `None` if there is or will be none.
    pub fn view(&self, tree: &Tree, path: &str) -> Option<View> {
        let path = if path == "/" { "" } else { path };
        if !self.index.is_empty() {
            let hash = self.hash_of(path);
            if let Some(&at) = self.index.find(hash, |&at| self.slots[at as usize].path == path) {
                return self.slots[at as usize].view.clone();
            }
        }
        let znode = tree.znode(tree.find(path)?);
        Some(View {
            stat: znode.stat_part(),
            acl: AclOf::Table(znode.acl()),
            children: znode.children(),
            crc: znode.crc(),
            data_len: znode.data().len(),
        })
    }

    /// Notes what the proposal `zxid` makes of `path`; `None`: deleted.
    pub fn put(&mut self, path: &str, zxid: Zxid, view: Option<View>) {
        let path = if path == "/" { "" } else { path };
        let hash = self.hash_of(path);
        let found = self.index.find(hash, |&at| self.slots[at as usize].path == path).copied();
        let at = match found {
            Some(at) => at,
            None => {
                let at = self.free.pop().unwrap_or_else(|| {
                    self.slots.push(Slot::default());
                    self.slots.len() as u32 - 1
                });
                let slot = &mut self.slots[at as usize];
                slot.path.push_str(path);
                slot.hash = hash;
                self.index.insert_unique(hash, at, |&at| self.slots[at as usize].hash);
                at
            }
        };
        let slot = &mut self.slots[at as usize];
        let before =
            (std::mem::replace(&mut slot.zxid, zxid), std::mem::replace(&mut slot.view, view));
        self.order.push_back((zxid, at));
        self.counts.noted += 1;
        if let Some(undo) = &mut self.undo {
            undo.push((at, found.map(|_| before)));
        }
    }

    /// From here on changes can be undone, until [`keep`](Self::keep) or [`take_back`](Self::take_back).
    pub fn mark(&mut self) {
        self.undo = Some(Vec::new());
    }

    pub fn keep(&mut self) {
        self.undo = None;
    }

    /// Undoes every change since the mark, the last one first.
    pub fn take_back(&mut self) {
        for (at, before) in self.undo.take().into_iter().flatten().rev() {
            self.order.pop_back();
            match before {
                Some((zxid, view)) => {
                    let slot = &mut self.slots[at as usize];
                    (slot.zxid, slot.view) = (zxid, view);
                }
                None => self.free_slot(at),
            }
        }
    }

    fn free_slot(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        if let Ok(found) = self.index.find_entry(slot.hash, |&other| other == at) {
            found.remove();
            slot.path.clear();
            slot.view = None;
            self.free.push(at);
        }
    }

    /// Forgets the changes of proposals through `through`, which the tree has applied.
    pub fn applied(&mut self, through: Zxid) {
        while let Some(&(zxid, at)) = self.order.front()
            && zxid <= through
        {
            self.order.pop_front();
            self.counts.forgotten += 1;
            let slot = &self.slots[at as usize];
            // A later proposal may have changed the path again; the slot is then freed with that one. A path
            // that one proposal changed twice is twice in `order`; the second time, its slot is empty or belongs to
            // another path.
            if slot.zxid == zxid && !slot.path_is_free() {
                self.free_slot(at);
            }
        }
    }

    /// Paths with something proposed; `true` for those that `owner` will own once everything proposed is applied. A
    /// znode that was its ephemeral may be deleted by then, and may be created again as another session's, or as a
    /// persistent one.
    pub fn owned_by(&self, owner: i64) -> impl Iterator<Item = (&str, bool)> {
        let live = self.index.iter().map(|&at| &self.slots[at as usize]);
        let is_owned = move |view: &View| view.stat.ephemeral_owner == owner;
        live.map(move |slot| (&*slot.path, slot.view.as_ref().is_some_and(is_owned)))
    }

    fn hash_of(&self, path: &str) -> u64 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(path.as_bytes());
        hasher.finish()
    }
}

impl Slot {
    /// Whether the slot was freed for an earlier entry of the same proposal. (The root's path is empty too, but the root keeps its view.)
    const fn path_is_free(&self) -> bool {
        self.path.is_empty() && self.view.is_none()
    }
}
