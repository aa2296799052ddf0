//! The children of a znode that has very many, listed without holding the lock for long (P-43).
//!
//! The list is that of the moment at which it ends: a child that is created or deleted between two holds is noted by the
//! tree, and the list follows. Nothing of it grows in a hold by more than a few hundred KiB, and what takes time for the whole
//! list, [`Listing::finish`] and its end, comes after the last hold.

use super::child_changes::{ChildChange, ChildLog};
use super::{NO_NODE, NodeId, Tree};
use crate::model::path::utf16_len;
use crate::model::sync::Arc;
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use jute::put_string;
use std::collections::BTreeSet;

/// Work of a child in the list, beside the bytes of its name; the caller says how much a hold may do.
const CHILD_WORK: usize = 300;
/// Work of a change.
const CHANGE_WORK: usize = 20;
/// Room for the names of a hold at first, in bytes.
const PIECE_ROOM: usize = 16 << 10;

/// The names that one hold listed.
struct Piece {
    ids: Vec<NodeId>,
    /// As jute strings, in the same order.
    names: Bytes,
}

/// A list of children under way.
pub struct Listing {
    log: Arc<ChildLog>,
    /// Number of the next change that the list has to follow.
    change: usize,
    /// The child to be listed next; those that were created meanwhile are before it.
    next: NodeId,
    /// Children created meanwhile. Those that are in `to_come` are still to be listed.
    created: Vec<NodeId>,
    to_come: BTreeSet<NodeId>,
    pieces: Vec<Piece>,
    /// Number of names in all pieces.
    count: usize,
    /// Length of all pieces.
    len: usize,
    /// Length of the names as Java counts it.
    chars: usize,
    /// Children that were deleted meanwhile, each with the number of names that were listed before. If the child is among
    /// them, it is to be left out. Its place in the tree may be another child's later.
    /// A part for each hold: a long vector takes long to grow.
    deleted: Vec<Vec<(NodeId, usize)>>,
}

/// A whole list.
pub struct ChildNames {
    /// Number of the children.
    pub count: usize,
    /// Length of the names as jute strings.
    pub len: usize,
    /// Length of the names as Java counts it.
    pub chars: usize,
    /// The names as jute strings.
    pub pieces: Vec<Bytes>,
}

impl Tree {
    /// Begins to list the children of `parent`. What changes them from now on is noted until the list is dropped.
    pub fn begin_list(&self, parent: NodeId) -> Listing {
        let mut lists = self.lists.lock();
        lists.retain(ChildLog::is_used);
        let known = lists.iter().find(|log| log.parent == parent).cloned();
        let log = known.unwrap_or_else(|| {
            let log = Arc::new(ChildLog::new(parent));
            lists.push(log.clone());
            log
        });
        let change = log.changes.lock().count();
        Listing {
            log,
            change,
            next: self.nodes.get(parent).first_child,
            created: Vec::new(),
            to_come: BTreeSet::new(),
            pieces: Vec::new(),
            count: 0,
            len: 0,
            chars: 0,
            deleted: Vec::new(),
        }
    }

    /// Whether a list goes on: it is one of `parent` in this tree, and every change was noted.
    pub fn continues(&self, list: &Listing, parent: NodeId) -> bool {
        let is_known = self.lists.lock().iter().any(|log| Arc::ptr_eq(log, &list.log));
        is_known && list.log.parent == parent && list.log.changes.lock().reach_back_to(list.change)
    }

    /// Lists more children until `goes_on`, which gets the amount of work, returns false. `true`: all are listed.
    pub fn list_more(&self, list: &mut Listing, mut goes_on: impl FnMut(usize) -> bool) -> bool {
        let log = list.log.clone();
        let changes = log.changes.lock();
        list.deleted.push(Vec::new());
        let (mut ids, mut names) = (Vec::new(), Vec::with_capacity(PIECE_ROOM));
        let is_all = loop {
            // Changes come first: the place of a child may be another znode's by now.
            if let Some(change) = changes.get(list.change) {
                list.change += 1;
                list.follow(change);
                if !goes_on(CHANGE_WORK) {
                    break false;
                }
                continue;
            }
            let id = if let Some(id) = list.created.pop() {
                if !list.to_come.remove(&id) {
                    continue;
                }
                id
            } else if list.next != NO_NODE {
                let id = list.next;
                list.next = self.nodes.get(id).next;
                id
            } else {
                break true;
            };
            let name = self.child_name(log.parent, id);
            ids.push(id);
            put_string(&mut names, name);
            list.chars += utf16_len(name);
            list.count += 1;
            if !goes_on(CHILD_WORK + name.len()) {
                break false;
            }
        };
        list.deleted.pop_if(|part| part.is_empty());
        if !ids.is_empty() {
            list.len += names.len();
            list.pieces.push(Piece { ids, names: names.into() });
        }
        is_all
    }

    fn child_name(&self, parent: NodeId, id: NodeId) -> &str {
        &self.path(id)[self.nodes.get(parent).path_len as usize + 1..]
    }

    /// Notes a change for the lists of `parent` that are under way.
    pub(super) fn note_child(&mut self, parent: NodeId, change: ChildChange) {
        let lists = self.lists.get_mut();
        let Some(at) = lists.iter().position(|log| log.parent == parent) else { return };
        if lists[at].is_used() {
            lists[at].changes.lock().push(change);
        } else {
            lists.swap_remove(at);
        }
    }
}

impl Listing {
    /// Length of the names so far as jute strings, with those of children that were deleted meanwhile.
    pub const fn len_so_far(&self) -> usize {
        self.len
    }

    /// Length of these names as Java counts it.
    pub const fn chars_so_far(&self) -> usize {
        self.chars
    }

    /// The list, once [`Tree::list_more`] has said that it has all children. The time it takes grows with the list if children
    /// were deleted meanwhile: call it after the last hold.
    pub fn finish(self) -> ChildNames {
        let Self { pieces, count, len, chars, deleted, .. } = self;
        let mut names = ChildNames { count, len, chars, pieces: Vec::with_capacity(pieces.len()) };
        if deleted.is_empty() {
            names.pieces.extend(pieces.into_iter().map(|piece| piece.names));
            return names;
        }
        let deleted = Deleted::new(deleted.concat());
        let mut listed = 0;
        for piece in pieces {
            let (mut from, mut at) = (0, 0);
            for (place, id) in (listed..).zip(&piece.ids) {
                let end = piece.names[at..]
                    .first_chunk::<4>()
                    .map_or(at, |len| at + 4 + u32::from_be_bytes(*len) as usize);
                if deleted.has(*id, place) {
                    names.count -= 1;
                    names.len -= end - at;
                    names.chars -= str::from_utf8(&piece.names[at + 4..end]).map_or(0, utf16_len);
                    names.pieces.push(piece.names.slice(from..at));
                    from = end;
                }
                at = end;
            }
            listed += piece.ids.len();
            names.pieces.push(piece.names.slice(from..));
        }
        names.pieces.retain(|piece| !piece.is_empty());
        names
    }

    fn follow(&mut self, change: ChildChange) {
        match change {
            ChildChange::Created(id) => {
                self.to_come.insert(id);
                self.created.push(id);
            }
            ChildChange::Deleted { id, next } => {
                if id == self.next {
                    self.next = next;
                }
                if !self.to_come.remove(&id) {
                    self.deleted.last_mut().expect("of this hold").push((id, self.count));
                }
            }
        }
    }
}

/// Children that were deleted while they were listed.
struct Deleted {
    /// For each the number of names that were listed before its last deletion.
    places: HashMap<NodeId, usize, FixedState>,
    /// A bit for each, by the lower bits of its id: most children in a list are not deleted.
    bits: Vec<u64>,
}

/// Number of these bits.
const BITS: usize = 1 << 18;

impl Deleted {
    fn new(deleted: Vec<(NodeId, usize)>) -> Self {
        let mut bits = vec![0; BITS / 64];
        for (id, _) in &deleted {
            bits[*id as usize % BITS / 64] |= 1 << (id % 64);
        }
        // A later deletion replaces an earlier one, and is after all names that are to be left out.
        Self { places: deleted.into_iter().collect(), bits }
    }

    /// Whether a child was deleted after its name came to that place.
    fn has(&self, id: NodeId, place: usize) -> bool {
        self.bits[id as usize % BITS / 64] >> (id % 64) & 1 == 1
            && self.places.get(&id).is_some_and(|before| place < *before)
    }
}
