//! One shard of the watch tables: records in two lists, that of their path and that of their watcher.

use super::key::hash_of;
use super::watch_kind::WatcherId;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

const NONE: u32 = u32::MAX;
/// An entry of a hash table, with its share of the free places.
const INDEX_BYTES: usize = 8;

pub(super) struct Shard {
    index: HashTable<u32>,
    paths: Slots<PathEntry>,
    /// Bytes of all paths.
    path_bytes: usize,
    records: Slots<Record>,
    /// Records by path and watcher, so that setting a watch again costs the same however many watchers the path has.
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

/// A vector whose places are reused.
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

impl Shard {
    pub fn new(hash: FixedState) -> Self {
        Self {
            index: HashTable::new(),
            paths: Slots::new(),
            path_bytes: 0,
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

    /// Adds `kinds`; returns those the watcher had on the path before.
    pub fn add(&mut self, hash: u64, path: &str, watcher: WatcherId, kinds: u8) -> u8 {
        let entry = self.find(hash, path).unwrap_or_else(|| {
            self.path_bytes += path.len();
            let at = self.paths.add(PathEntry { path: path.into(), first: NONE });
            let (paths, state) = (&self.paths, &self.hash);
            self.index.insert_unique(hash, at, |&at| hash_of(state, paths.get(at).path.as_bytes()));
            at
        });
        let first = self.paths.get(entry).first;
        let pair = pair_hash(&self.hash, entry, watcher);
        if let Some(at) = self.find_pair(entry, pair, watcher) {
            let record = self.records.get_mut(at);
            let had = record.kinds;
            record.kinds |= kinds;
            return had;
        }
        let first_of_watcher = self.by_watcher.get(&watcher).copied().unwrap_or(NONE);
        let at = self.records.add(Record {
            path: entry,
            watcher,
            kinds,
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
        0
    }

    /// The kinds of watches that `watcher` has on `path`.
    pub fn kinds(&self, hash: u64, path: &str, watcher: WatcherId) -> u8 {
        self.record(hash, path, watcher).map_or(0, |at| self.records.get(at).kinds)
    }

    /// Removes `kinds` from what `watcher` has on `path`; returns those of them that it had.
    pub fn remove(&mut self, hash: u64, path: &str, watcher: WatcherId, kinds: u8) -> u8 {
        let Some(at) = self.record(hash, path, watcher) else { return 0 };
        let record = self.records.get_mut(at);
        let had = record.kinds & kinds;
        record.kinds &= !kinds;
        if record.kinds == 0 {
            self.remove_record(at);
        }
        had
    }

    fn record(&self, hash: u64, path: &str, watcher: WatcherId) -> Option<u32> {
        let entry = self.find(hash, path)?;
        self.find_pair(entry, pair_hash(&self.hash, entry, watcher), watcher)
    }

    fn find_pair(&self, entry: u32, pair: u64, watcher: WatcherId) -> Option<u32> {
        let is_pair = |record: &Record| record.path == entry && record.watcher == watcher;
        self.by_pair.find(pair, |&at| is_pair(self.records.get(at))).copied()
    }

    /// Every watched path with its watcher and kinds; the paths' numbers mean something in this shard only.
    pub fn iter(&self) -> impl Iterator<Item = (u32, WatcherId, u8)> {
        self.records
            .items
            .iter()
            .flatten()
            .map(|record| (record.path, record.watcher, record.kinds))
    }

    /// Places of watched paths, free ones included.
    pub const fn path_places(&self) -> usize {
        self.paths.items.len()
    }

    /// The path at a place with its watchers that have one of `kinds`; `None` if there is no path or none has.
    pub fn watchers(&self, at: usize, kinds: u8) -> Option<(&str, Vec<WatcherId>)> {
        let entry = self.paths.items.get(at)?.as_ref()?;
        let (mut watchers, mut at) = (Vec::new(), entry.first);
        while at != NONE {
            let record = self.records.get(at);
            if record.kinds & kinds != 0 {
                watchers.push(record.watcher);
            }
            at = record.next_of_path;
        }
        (!watchers.is_empty()).then_some((&entry.path, watchers))
    }

    /// Places of a watcher's records.
    pub fn places_of(&self, watcher: WatcherId) -> Vec<u32> {
        let (mut places, mut at) = (Vec::new(), self.by_watcher.get(&watcher).copied());
        while let Some(place) = at {
            places.push(place);
            at = Some(self.records.get(place).next_of_watcher).filter(|&next| next != NONE);
        }
        places
    }

    /// The path of the record at a place, if it is one of `watcher` with one of `kinds`.
    pub fn path_of(&self, at: u32, watcher: WatcherId, kinds: u8) -> Option<&str> {
        let record = self.records.items.get(at as usize)?.as_ref()?;
        (record.watcher == watcher && record.kinds & kinds != 0).then(|| self.path(record.path))
    }

    /// A watched path by its number.
    pub fn path(&self, at: u32) -> &str {
        &self.paths.get(at).path
    }

    /// Number of watched paths.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Memory that its watches take, or about that.
    pub const fn bytes(&self) -> usize {
        let (paths, records) = (self.paths.items.capacity(), self.records.items.capacity());
        // Besides its place a path has one in an index, and a record two.
        let of_paths = paths * (size_of::<Option<PathEntry>>() + INDEX_BYTES);
        self.path_bytes + of_paths + records * (size_of::<Option<Record>>() + 2 * INDEX_BYTES)
    }

    /// Calls `fired` for the watchers that have one of `kinds` on `path`, with all their kinds, and removes those of `used_up`
    /// from them.
    pub fn fire(
        &mut self,
        hash: u64,
        path: &str,
        kinds: u8,
        used_up: u8,
        mut fired: impl FnMut(WatcherId, u8),
    ) {
        let Some(entry) = self.find(hash, path) else { return };
        let mut at = self.paths.get(entry).first;
        while at != NONE {
            let record = self.records.get_mut(at);
            let next = record.next_of_path;
            if record.kinds & kinds != 0 {
                fired(record.watcher, record.kinds);
                record.kinds &= !used_up;
                if record.kinds == 0 {
                    self.remove_record(at);
                }
            }
            at = next;
        }
    }

    /// Removes a watcher; returns how many of its records had one of `kinds`.
    pub fn remove_watcher(&mut self, watcher: WatcherId, kinds: u8) -> u64 {
        let mut had = 0;
        while let Some(&at) = self.by_watcher.get(&watcher) {
            had += u64::from(self.records.get(at).kinds & kinds != 0);
            self.remove_record(at);
        }
        had
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
            self.path_bytes -= entry.path.len();
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
