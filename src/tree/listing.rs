//! The children of a znode that has very many, listed without holding the lock for long (P-43).
//!
//! The list is that of the moment at which it ends: a child that is created or deleted between two holds is noted by the
//! tree, and the list follows.

use super::child_changes::{ChildChange, Noted};
use super::{NO_NODE, NodeId, Tree};
use crate::model::path::utf16_len;
use crate::model::sync::{Arc, Mutex};
use bytes::Bytes;
use hashbrown::HashTable;
use jute::{Reader, Ustring, put_string};
use std::collections::VecDeque;
use std::ops::Range;

/// Changes noted for one list; with more it begins again. They come between two holds, so this is never seen in practice.
const CHANGES_MAX: usize = 1 << 20;
/// Work of a child in the list; the caller says how much a hold may do.
const CHILD_WORK: usize = 80;
/// Work of a change.
const CHANGE_WORK: usize = 10;
/// In place of where a name begins: the child was created meanwhile.
const NOT_YET: u32 = u32::MAX;

/// The name of a child in the list.
#[derive(Clone, Copy)]
struct Place {
    id: NodeId,
    /// Where its encoding begins, counted over all pieces.
    at: u32,
}

/// A list of children under way.
pub struct Listing {
    noted: Arc<Mutex<Noted>>,
    parent: NodeId,
    /// Changes that were taken from `noted`, in order.
    changes: VecDeque<ChildChange>,
    /// Children created meanwhile. Those that are in `places` with [`NOT_YET`] are still to be listed.
    created: Vec<NodeId>,
    places: HashTable<Place>,
    /// The names as jute strings, a piece for each hold, each with where it begins.
    pieces: Vec<(usize, Bytes)>,
    /// Length of all pieces.
    len: usize,
    /// Where the names of deleted children are in the pieces.
    deleted: Vec<Range<usize>>,
    deleted_len: usize,
    /// Length of the names of living children as Java counts it.
    chars: usize,
}

const fn spread(id: NodeId) -> u64 {
    (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Tree {
    /// Begins to list the children of `parent`. What changes them from now on is noted until the list is dropped.
    pub fn begin_list(&self, parent: NodeId) -> Listing {
        let node = self.nodes.get(parent);
        let noted = Noted { parent, next: node.first_child, changes: Vec::new(), is_lost: false };
        let noted = Arc::new(Mutex::new(noted));
        let mut lists = self.lists.lock();
        lists.retain(is_under_way);
        lists.push(noted.clone());
        Listing {
            noted,
            parent,
            changes: VecDeque::new(),
            created: Vec::new(),
            places: HashTable::with_capacity(node.children as usize),
            pieces: Vec::new(),
            len: 0,
            deleted: Vec::new(),
            deleted_len: 0,
            chars: 0,
        }
    }

    /// Whether a list goes on: it is one of `parent` in this tree, and every change was noted.
    pub fn continues(&self, list: &Listing, parent: NodeId) -> bool {
        let is_known = self.lists.lock().iter().any(|noted| Arc::ptr_eq(noted, &list.noted));
        is_known && list.parent == parent && !list.noted.lock().is_lost
    }

    /// Lists more children until `goes_on`, which gets the amount of work, returns false. `true`: all are listed.
    pub fn list_more(&self, list: &mut Listing, mut goes_on: impl FnMut(usize) -> bool) -> bool {
        let noted = list.noted.clone();
        let mut noted = noted.lock();
        list.changes.extend(noted.changes.drain(..));
        let mut piece = Vec::new();
        let is_all = loop {
            // Changes come first: the place of a child may be another znode's by now.
            if let Some(change) = list.changes.pop_front() {
                list.follow(change);
                if !goes_on(CHANGE_WORK) {
                    break false;
                }
                continue;
            }
            let id = if let Some(id) = list.created.pop() {
                if !list.is_to_come(id) {
                    continue;
                }
                id
            } else if noted.next != NO_NODE {
                let id = noted.next;
                noted.next = self.nodes.get(id).next;
                id
            } else {
                break true;
            };
            list.put(id, self.child_name(list.parent, id), &mut piece);
            if !goes_on(CHILD_WORK) {
                break false;
            }
        };
        if !piece.is_empty() {
            let at = list.len;
            list.len += piece.len();
            list.pieces.push((at, piece.into()));
        }
        is_all
    }

    fn child_name(&self, parent: NodeId, id: NodeId) -> &str {
        &self.path(id)[self.nodes.get(parent).path_len as usize + 1..]
    }

    /// Notes a change for the lists of `parent` that are under way.
    ///
    /// * `next`: the child after it.
    pub(super) fn note_child(&mut self, parent: NodeId, change: ChildChange, next: NodeId) {
        let lists = self.lists.get_mut();
        if lists.is_empty() {
            return;
        }
        lists.retain(is_under_way);
        for noted in lists.iter() {
            let mut noted = noted.lock();
            if noted.parent != parent {
                continue;
            }
            if matches!(change, ChildChange::Deleted(id) if id == noted.next) {
                noted.next = next;
            }
            if noted.changes.len() < CHANGES_MAX {
                noted.changes.push(change);
            } else {
                noted.is_lost = true;
            }
        }
    }
}

/// Whether this list has a user other than the tree.
fn is_under_way(noted: &Arc<Mutex<Noted>>) -> bool {
    1 < Arc::strong_count(noted)
}

impl Listing {
    /// Number of the children.
    pub fn children(&self) -> usize {
        self.places.len()
    }

    /// Length of the names as jute strings.
    pub const fn encoded_len(&self) -> usize {
        self.len - self.deleted_len
    }

    /// Length of the names as Java counts it.
    pub const fn chars(&self) -> usize {
        self.chars
    }

    /// The names as jute strings, in pieces: all of them once [`Tree::list_more`] has said so.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        self.deleted.sort_unstable_by_key(|name| name.start);
        let mut deleted = self.deleted.into_iter().peekable();
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for (begin, piece) in self.pieces {
            let mut from = 0;
            while let Some(name) = deleted.next_if(|name| name.start < begin + piece.len()) {
                pieces.push(piece.slice(from..name.start - begin));
                from = name.end - begin;
            }
            pieces.push(piece.slice(from..));
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    fn follow(&mut self, change: ChildChange) {
        match change {
            ChildChange::Created(id) => {
                let place = Place { id, at: NOT_YET };
                self.places.insert_unique(spread(id), place, |place| spread(place.id));
                self.created.push(id);
            }
            ChildChange::Deleted(id) => {
                // A child that the list had not come to is in no place.
                let found = self.places.find_entry(spread(id), |place| place.id == id);
                if let Ok(found) = found
                    && let (Place { at, .. }, _) = found.remove()
                    && at != NOT_YET
                {
                    self.delete(at as usize);
                }
            }
        }
    }

    /// Leaves out the name that begins at `at`.
    fn delete(&mut self, at: usize) {
        let piece = self.pieces.partition_point(|(begin, _)| *begin <= at) - 1;
        let (begin, piece) = &self.pieces[piece];
        let name: Ustring<'_> =
            Reader::new(&piece[at - begin..]).read().expect("a name is encoded in one piece");
        let name = name.as_deref().unwrap_or_default();
        self.chars -= utf16_len(name);
        self.deleted_len += 4 + name.len();
        self.deleted.push(at..at + 4 + name.len());
    }

    /// Whether a child that was created meanwhile is there, and not in the list yet.
    fn is_to_come(&self, id: NodeId) -> bool {
        let place = self.places.find(spread(id), |place| place.id == id);
        place.is_some_and(|place| place.at == NOT_YET)
    }

    /// Appends the name of a child.
    fn put(&mut self, id: NodeId, name: &str, piece: &mut Vec<u8>) {
        let at = (self.len + piece.len()) as u32;
        match self.places.find_mut(spread(id), |place| place.id == id) {
            Some(place) => place.at = at,
            None => {
                let place = Place { id, at };
                self.places.insert_unique(spread(id), place, |place| spread(place.id));
            }
        }
        put_string(piece, name);
        self.chars += utf16_len(name);
    }
}
