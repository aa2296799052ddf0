//! Who wants to hear of which paths (P-29..P-34, P-75..P-77).
//!
//! A watch is a record in two lists: that of its path and that of its watcher, so that firing is in proportion to the
//! watchers fired, and a connection that goes takes its watches with it at a cost in proportion to their number.
//! Tables are split into shards with a lock each: readers leave watches side by side under the shared tree lock.

use super::hash_of;
use crate::model::sync::Mutex;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

const SHARDS: usize = 64;
const NONE: u32 = u32::MAX;

/// A connection that watches; chosen by `request`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WatcherId(pub u32);

/// Kinds of watches, as bits: one watcher may have several on a path (P-76).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WatchKind(u8);

impl WatchKind {
    /// Left by getData and exists; fires once on creation, change and deletion.
    pub const DATA: Self = Self(1);
    /// Left by getChildren; fires once on a change of children and on deletion.
    pub const CHILD: Self = Self(2);
}

/// What happens to a path, as the tables see it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trigger {
    /// Created or changed.
    Data,
    Children,
    /// Concerns watchers of either kind, once each.
    Deleted,
}

impl Trigger {
    const fn fires(self) -> u8 {
        match self {
            Self::Data => WatchKind::DATA.0,
            Self::Children => WatchKind::CHILD.0,
            Self::Deleted => WatchKind::DATA.0 | WatchKind::CHILD.0,
        }
    }
}

/// All watches of this server.
pub struct Watches {
    shards: Vec<Mutex<Shard>>,
    hash: FixedState,
}

struct Shard {
    index: HashTable<u32>,
    paths: Slots<PathEntry>,
    records: Slots<Record>,
    /// Records by path and watcher, so that watching again costs the same however many watch the path.
    by_pair: HashTable<u32>,
    /// First record of each watcher in this shard.
    by_watcher: HashMap<WatcherId, u32, FixedState>,
    hash: FixedState,
}

struct PathEntry {
    path: Box<str>,
    first: u32,
}

#[derive(Clone, Copy)]
struct Record {
    path: u32,
    watcher: WatcherId,
    kinds: u8,
    next_of_path: u32,
    prev_of_path: u32,
    next_of_watcher: u32,
    prev_of_watcher: u32,
}

/// A vector whose places are used again.
struct Slots<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    fn add(&mut self, item: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.items[at as usize] = Some(item);
            return at;
        }
        self.items.push(Some(item));
        self.items.len() as u32 - 1
    }

    fn get(&self, at: u32) -> &T {
        self.items[at as usize].as_ref().expect("lists name living entries only")
    }

    fn get_mut(&mut self, at: u32) -> &mut T {
        self.items[at as usize].as_mut().expect("lists name living entries only")
    }

    fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        self.items[at as usize].take().expect("lists name living entries only")
    }

    fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl Watches {
    pub fn new(seed: u64) -> Self {
        let hash = FixedState::with_seed(seed ^ 0x77);
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(hash.clone()))).collect();
        Self { shards, hash }
    }

    /// Leaves a watch.
    pub fn add(&self, path: &str, watcher: WatcherId, kind: WatchKind) {
        let hash = hash_of(&self.hash, path.as_bytes());
        self.shard(hash).lock().add(hash, path, watcher, kind);
    }

    /// Takes the watchers of `path` that `trigger` concerns, each once; one-shot watches are used up.
    pub fn fire(&self, path: &str, trigger: Trigger, mut fired: impl FnMut(WatcherId)) {
        let hash = hash_of(&self.hash, path.as_bytes());
        self.shard(hash).lock().fire(hash, path, trigger, &mut fired);
    }

    /// Forgets every watch of a watcher that went.
    pub fn remove_watcher(&self, watcher: WatcherId) {
        for shard in &self.shards {
            shard.lock().remove_watcher(watcher);
        }
    }

    /// Number of watches: paths times watchers, data and child watches apart, as Java counts them.
    pub fn count(&self) -> usize {
        let kinds = |shard: &Shard| -> usize {
            shard
                .records
                .items
                .iter()
                .flatten()
                .map(|record| record.kinds.count_ones() as usize)
                .sum()
        };
        self.shards.iter().map(|shard| kinds(&shard.lock())).sum()
    }

    /// Watchers, paths and watches of the data table alone: what `wchs` shows.
    pub fn data_totals(&self) -> (u64, u64, u64) {
        let mut watchers = std::collections::BTreeSet::new();
        let (mut paths, mut watches) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            let mut of_shard = std::collections::BTreeSet::new();
            for record in
                shard.records.items.iter().flatten().filter(|r| r.kinds & WatchKind::DATA.0 != 0)
            {
                watchers.insert(record.watcher);
                of_shard.insert(record.path);
                watches += 1;
            }
            paths += of_shard.len() as u64;
        }
        (watchers.len() as u64, paths, watches)
    }

    /// Number of watched paths.
    pub fn path_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().paths.len()).sum()
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }
}

impl Shard {
    fn new(hash: FixedState) -> Self {
        Self {
            index: HashTable::new(),
            paths: Slots::new(),
            records: Slots::new(),
            by_pair: HashTable::new(),
            by_watcher: HashMap::with_hasher(hash.clone()),
            hash,
        }
    }

    fn find(&self, hash: u64, path: &str) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        self.index.find(hash, |&at| &*self.paths.get(at).path == path).copied()
    }

    fn add(&mut self, hash: u64, path: &str, watcher: WatcherId, kind: WatchKind) {
        let entry = self.find(hash, path).unwrap_or_else(|| {
            let at = self.paths.add(PathEntry { path: path.into(), first: NONE });
            let (paths, state) = (&self.paths, &self.hash);
            self.index.insert_unique(hash, at, |&at| hash_of(state, paths.get(at).path.as_bytes()));
            at
        });
        let first = self.paths.get(entry).first;
        let pair = pair_hash(&self.hash, entry, watcher);
        let is_pair = |record: &Record| record.path == entry && record.watcher == watcher;
        if let Some(&at) = self.by_pair.find(pair, |&at| is_pair(self.records.get(at))) {
            self.records.get_mut(at).kinds |= kind.0;
            return;
        }
        let first_of_watcher = self.by_watcher.get(&watcher).copied().unwrap_or(NONE);
        let at = self.records.add(Record {
            path: entry,
            watcher,
            kinds: kind.0,
            next_of_path: first,
            prev_of_path: NONE,
            next_of_watcher: first_of_watcher,
            prev_of_watcher: NONE,
        });
        if first != NONE {
            self.records.get_mut(first).prev_of_path = at;
        }
        self.paths.get_mut(entry).first = at;
        if first_of_watcher != NONE {
            self.records.get_mut(first_of_watcher).prev_of_watcher = at;
        }
        self.by_watcher.insert(watcher, at);
        let (records, state) = (&self.records, &self.hash);
        self.by_pair.insert_unique(pair, at, |&at| {
            let record = records.get(at);
            pair_hash(state, record.path, record.watcher)
        });
    }

    fn fire(&mut self, hash: u64, path: &str, trigger: Trigger, fired: &mut impl FnMut(WatcherId)) {
        let Some(entry) = self.find(hash, path) else { return };
        let mut at = self.paths.get(entry).first;
        while at != NONE {
            let record = self.records.get_mut(at);
            let next = record.next_of_path;
            if record.kinds & trigger.fires() != 0 {
                fired(record.watcher);
                record.kinds &= !trigger.fires();
                if record.kinds == 0 {
                    self.remove_record(at);
                }
            }
            at = next;
        }
    }

    fn remove_watcher(&mut self, watcher: WatcherId) {
        while let Some(&at) = self.by_watcher.get(&watcher) {
            self.remove_record(at);
        }
    }

    fn remove_record(&mut self, at: u32) {
        let record = self.records.remove(at);
        let pair = pair_hash(&self.hash, record.path, record.watcher);
        if let Ok(found) = self.by_pair.find_entry(pair, |&other| other == at) {
            found.remove();
        }
        if record.prev_of_path == NONE {
            self.paths.get_mut(record.path).first = record.next_of_path;
        } else {
            self.records.get_mut(record.prev_of_path).next_of_path = record.next_of_path;
        }
        if record.next_of_path != NONE {
            self.records.get_mut(record.next_of_path).prev_of_path = record.prev_of_path;
        }
        if record.prev_of_watcher != NONE {
            self.records.get_mut(record.prev_of_watcher).next_of_watcher = record.next_of_watcher;
        } else if record.next_of_watcher == NONE {
            self.by_watcher.remove(&record.watcher);
        } else {
            self.by_watcher.insert(record.watcher, record.next_of_watcher);
        }
        if record.next_of_watcher != NONE {
            self.records.get_mut(record.next_of_watcher).prev_of_watcher = record.prev_of_watcher;
        }
        if self.paths.get(record.path).first == NONE {
            let entry = self.paths.remove(record.path);
            let hash = hash_of(&self.hash, entry.path.as_bytes());
            if let Ok(found) = self.index.find_entry(hash, |&other| other == record.path) {
                found.remove();
            }
        }
    }
}

fn pair_hash(state: &FixedState, path: u32, watcher: WatcherId) -> u64 {
    hash_of(state, &(u64::from(path) << 32 | u64::from(watcher.0)).to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire(watches: &Watches, path: &str, trigger: Trigger) -> Vec<u32> {
        let mut fired = Vec::new();
        watches.fire(path, trigger, |watcher| fired.push(watcher.0));
        fired.sort_unstable();
        fired
    }

    // rows: P-34 P-76 P-77
    #[test]
    fn watches_fire_once_and_go_with_their_watcher() {
        let watches = Watches::new(1);
        for watcher in [1, 2, 3] {
            watches.add("/a", WatcherId(watcher), WatchKind::DATA);
        }
        watches.add("/a", WatcherId(1), WatchKind::CHILD);
        watches.add("/b", WatcherId(3), WatchKind::DATA);
        assert_eq!((watches.count(), watches.path_count()), (5, 2));
        assert_eq!(fire(&watches, "/a", Trigger::Children), [1]);
        watches.remove_watcher(WatcherId(2));
        assert_eq!(fire(&watches, "/a", Trigger::Deleted), [1, 3]);
        assert_eq!(fire(&watches, "/a", Trigger::Deleted), []);
        watches.remove_watcher(WatcherId(3));
        assert_eq!((watches.count(), watches.path_count()), (0, 0));
    }

    #[test]
    fn both_kinds_hear_of_a_deletion_once() {
        let watches = Watches::new(1);
        watches.add("/a", WatcherId(7), WatchKind::DATA);
        watches.add("/a", WatcherId(7), WatchKind::CHILD);
        assert_eq!(fire(&watches, "/a", Trigger::Deleted), [7]);
        assert_eq!(watches.count(), 0);
    }
}
