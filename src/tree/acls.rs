//! Access lists, each kept once however many znodes share it.

use super::key::hash_of;
use crate::model::{AccessList, Acl, Identity, OPEN_ACL};
use bytes::Bytes;
use hashbrown::HashTable;
use jute::{DecodeError, Encode, Items, Reader, Vector};

/// Index of an access list.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AclId(pub(super) u32);

impl AclId {
    /// `world:anyone:cdrwa`, which nearly every znode has. Never freed.
    pub const OPEN: Self = Self(0);
}

struct Entry {
    acl: AccessList,
    /// The jute vector, count included, as it goes into logs, snapshots and replies.
    bytes: Bytes,
    users: u64,
}

/// The table of access lists in use.
pub(super) struct Acls {
    entries: Vec<Option<Entry>>,
    by_bytes: HashTable<u32>,
    free: Vec<u32>,
    /// Lists without users, which the effects of the transaction being applied may still name.
    unused: Vec<u32>,
    hash: foldhash::fast::FixedState,
}

/// Reads a jute vector of access entries into owned ones. A null list is an empty one.
///
/// # Errors
/// When the bytes are no such vector.
pub fn decode(bytes: &[u8]) -> Result<Vec<Acl>, DecodeError> {
    let list: Vector<'_, jute::data::Acl<'_>> = Reader::new(bytes).read()?;
    Ok(to_owned(list.iter()))
}

/// Owned entries of a decoded list. A null scheme or id reads as empty: such a list can only come from a foreign log.
pub fn to_owned<'a>(list: Items<'_, 'a, jute::data::Acl<'a>>) -> Vec<Acl> {
    list.map(|acl| Acl {
        perms: acl.perms,
        who: Identity::new(
            acl.id.scheme.as_deref().unwrap_or(""),
            acl.id.id.as_deref().unwrap_or(""),
        ),
    })
    .collect()
}

/// The jute bytes of a list.
pub fn encode(acl: &[Acl]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Vector::Owned(acl.iter().map(Acl::to_record).collect()).encode(&mut bytes);
    bytes
}

impl Acls {
    pub fn new(seed: u64) -> Self {
        let mut acls = Self {
            entries: Vec::new(),
            by_bytes: HashTable::new(),
            free: Vec::new(),
            unused: Vec::new(),
            hash: foldhash::fast::FixedState::with_seed(seed),
        };
        let open = acls.acquire(OPEN_ACL).expect("the open list is well formed");
        debug_assert_eq!(open, AclId::OPEN);
        acls
    }

    /// The list with these jute bytes, with one more user.
    ///
    /// # Errors
    /// When the bytes are no list of access entries.
    pub fn acquire(&mut self, bytes: &[u8]) -> Result<AclId, DecodeError> {
        // A null list is Java's way to say "open" (ReferenceCountedACLCache.convertAcls).
        let bytes = if bytes == (-1i32).to_be_bytes() { OPEN_ACL } else { bytes };
        if bytes == OPEN_ACL && !self.entries.is_empty() {
            return Ok(AclId::OPEN);
        }
        let hash = hash_of(&self.hash, bytes);
        if let Some(&at) = self.by_bytes.find(hash, |&at| &*self.entry(at).bytes == bytes) {
            self.entry_mut(at).users += 1;
            return Ok(AclId(at));
        }
        let acl = decode(bytes)?.into();
        let entry = Entry { acl, bytes: Bytes::copy_from_slice(bytes), users: 1 };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = Some(entry);
                at
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() as u32 - 1
            }
        };
        let (entries, state) = (&self.entries, &self.hash);
        self.by_bytes.insert_unique(hash, at, |&at| {
            hash_of(state, entries[at as usize].as_ref().map_or(&[][..], |entry| &entry.bytes))
        });
        Ok(AclId(at))
    }

    /// One more user of a list in use.
    pub fn share(&mut self, id: AclId) {
        if id != AclId::OPEN {
            self.entry_mut(id.0).users += 1;
        }
    }

    /// Takes one user away. The list can still be read until [`Self::sweep`].
    pub fn release(&mut self, id: AclId) {
        if id == AclId::OPEN {
            return;
        }
        let entry = self.entry_mut(id.0);
        entry.users -= 1;
        if entry.users == 0 {
            self.unused.push(id.0);
        }
    }

    /// Removes the lists without users.
    pub fn sweep(&mut self) {
        while let Some(at) = self.unused.pop() {
            if self.entries[at as usize].as_ref().is_none_or(|entry| entry.users > 0) {
                continue; // Used again, or listed twice.
            }
            let hash = hash_of(&self.hash, &self.entry(at).bytes);
            if let Ok(found) = self.by_bytes.find_entry(hash, |&other| other == at) {
                found.remove();
            }
            self.entries[at as usize] = None;
            self.free.push(at);
        }
    }

    pub fn get(&self, id: AclId) -> &AccessList {
        &self.entry(id.0).acl
    }

    pub fn bytes(&self, id: AclId) -> &[u8] {
        &self.entry(id.0).bytes
    }

    /// All lists in use but the open one, with their index.
    pub fn iter(&self) -> impl Iterator<Item = (AclId, &Bytes)> {
        let entries = self.entries.iter().enumerate().skip(1);
        entries
            .filter_map(|(at, entry)| entry.as_ref().map(|entry| (AclId(at as u32), &entry.bytes)))
    }

    fn entry(&self, at: u32) -> &Entry {
        self.entries[at as usize].as_ref().expect("an access list named by a znode is in the table")
    }

    fn entry_mut(&mut self, at: u32) -> &mut Entry {
        self.entries[at as usize].as_mut().expect("an access list named by a znode is in the table")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // multi {delete /a, create /b with the same list}
    #[test]
    fn a_list_that_is_used_again_before_it_is_swept_stays() {
        let mut acls = Acls::new(1);
        let bytes = encode(&[Acl { perms: 1, who: Identity::new("world", "anyone") }]);
        let first = acls.acquire(&bytes).unwrap();
        acls.release(first);
        let again = acls.acquire(&bytes).unwrap();
        acls.sweep();
        assert_eq!((acls.bytes(again), acls.iter().count()), (&bytes[..], 1));
        // Listed as unused twice, once for each time that its last user went.
        acls.release(again);
        let last = acls.acquire(&bytes).unwrap();
        acls.release(last);
        acls.sweep();
        assert_eq!(acls.iter().count(), 0);
        let other = acls.acquire(&bytes).unwrap();
        acls.sweep();
        assert_eq!(acls.bytes(other), bytes);
    }

    #[test]
    fn lists_are_shared_and_removed_after_their_last_user() {
        let mut acls = Acls::new(1);
        let bytes = encode(&[Acl { perms: 1, who: Identity::new("world", "anyone") }]);
        let (a, b) = (acls.acquire(&bytes).unwrap(), acls.acquire(&bytes).unwrap());
        assert_eq!(a, b);
        assert_ne!(a, AclId::OPEN);
        acls.release(a);
        acls.sweep();
        assert_eq!(acls.bytes(b), bytes);
        acls.release(b);
        assert_eq!(acls.get(b)[0].perms, 1, "readable until swept");
        acls.sweep();
        assert_eq!(acls.iter().count(), 0);
        assert_eq!(acls.acquire(OPEN_ACL).unwrap(), AclId::OPEN);
        assert_eq!(acls.acquire(&(-1i32).to_be_bytes()).unwrap(), AclId::OPEN);
    }
}
