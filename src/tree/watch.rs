//! The watches of all client connections (P-29..P-34, P-75..P-77).
//!
//! A watch is a record in two lists: that of its path and that of its watcher, so that firing costs in proportion to the
//! watchers fired, and closing a connection in proportion to its watches.
//! Tables are split into shards with a lock each: readers set watches concurrently under the shared tree lock.
//!
//! Java keeps two tables, of data and of child watches. Here a record has a bit for each way a watcher can be in
//! them: a persistent watch is in both, a recursive one in the data table only (P-76).

use super::key::hash_of;
use super::watch_kind::{FiredCounts, Trigger, WatchKind, WatcherId};
use super::watch_shard::Shard;
use crate::model::sync::{AtomicU64, Mutex, Ordering};
use foldhash::fast::FixedState;
use std::collections::BTreeSet;

const SHARDS: usize = 64;

/// Places of a shard that are looked at under one hold of its lock, for lists.
const LOOKS_MAX: usize = 1024;
/// Bytes of paths after which a hold for lists ends earlier.
const LOOK_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a watch takes in a list besides its path.
const LINE_BYTES: usize = 20;

/// A place among the watched paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct WatchedPlace {
    shard: usize,
    path: usize,
}

/// All watches of this server.
pub struct Watches {
    shards: Vec<Mutex<Shard>>,
    /// Number of recursive watches: while there are none, no ancestor is looked up. It changes under the tree's shared
    /// lock and is read by firing under the exclusive one, so nothing needs to be ordered by it.
    recursive: AtomicU64,
    hash: FixedState,
}

impl Watches {
    pub fn new(seed: u64) -> Self {
        let hash = FixedState::with_seed(seed ^ 0x77);
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(hash.clone()))).collect();
        Self { shards, recursive: AtomicU64::new(0), hash }
    }

    /// Sets a watch.
    pub fn add(&self, path: &str, watcher: WatcherId, kind: WatchKind) {
        let hash = self.hash(path);
        let had = self.shard(hash).lock().add(hash, path, watcher, kind.0);
        if kind.0 & !had & WatchKind::RECURSIVE.0 != 0 {
            self.recursive.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether `watcher` has a watch of one of these kinds on `path` itself.
    pub fn contains(&self, path: &str, watcher: WatcherId, kinds: WatchKind) -> bool {
        let hash = self.hash(path);
        self.shard(hash).lock().kinds(hash, path, watcher) & kinds.0 != 0
    }

    /// Removes the watches of these kinds that `watcher` has on `path`. `false`: it had none.
    pub fn remove(&self, path: &str, watcher: WatcherId, kinds: WatchKind) -> bool {
        let hash = self.hash(path);
        let had = self.shard(hash).lock().remove(hash, path, watcher, kinds.0);
        if had & WatchKind::RECURSIVE.0 != 0 {
            self.recursive.fetch_sub(1, Ordering::Relaxed);
        }
        had != 0
    }

    /// Appends the watchers that `trigger` at `path` concerns, each once; one-shot watches are removed.
    ///
    /// Source: `WatchManager.triggerWatch`.
    pub fn fire(&self, path: &str, trigger: Trigger, fired: &mut Vec<WatcherId>) -> FiredCounts {
        let fires = trigger.fires();
        let hash = self.hash(path);
        let used_up = fires & WatchKind::ONE_SHOT;
        let mut counts = FiredCounts::default();
        let looks_up = trigger != Trigger::Children && self.recursive.load(Ordering::Relaxed) > 0;
        let mut in_data_table = Vec::new();
        self.shard(hash).lock().fire(hash, path, fires, used_up, |watcher, kinds| {
            fired.push(watcher);
            let kinds = kinds & fires;
            counts.child +=
                u64::from(trigger != Trigger::Data && kinds & WatchKind::CHILD_TABLE != 0);
            if trigger != Trigger::Children && kinds & WatchKind::DATA_TABLE != 0 {
                counts.data += 1;
                if looks_up {
                    in_data_table.push(watcher);
                }
            }
        });
        if !looks_up {
            return counts;
        }
        let mut at = path;
        while let Some(above) = above(at) {
            let hash = self.hash(above);
            let mut push = |watcher, _| in_data_table.push(watcher);
            self.shard(hash).lock().fire(hash, above, WatchKind::RECURSIVE.0, 0, &mut push);
            at = above;
        }
        in_data_table.sort_unstable();
        in_data_table.dedup();
        counts.data = in_data_table.len() as u64;
        fired.append(&mut in_data_table);
        fired.sort_unstable();
        fired.dedup();
        counts
    }

    /// Removes all watches of a watcher whose connection was closed.
    pub fn remove_watcher(&self, watcher: WatcherId) {
        for shard in &self.shards {
            let recursive = shard.lock().remove_watcher(watcher, WatchKind::RECURSIVE.0);
            if recursive > 0 {
                self.recursive.fetch_sub(recursive, Ordering::Relaxed);
            }
        }
    }

    /// Approximate memory of all watches.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    /// Number of watches: entries of the data table and of the child table, as Java counts them.
    pub fn count(&self) -> usize {
        let entries = |kinds: u8| -> usize {
            [WatchKind::DATA_TABLE, WatchKind::CHILD_TABLE]
                .iter()
                .filter(|t| kinds & **t != 0)
                .count()
        };
        let of_shard = |shard: &Shard| -> usize { shard.iter().map(|(_, _, k)| entries(k)).sum() };
        self.shards.iter().map(|shard| of_shard(&shard.lock())).sum()
    }

    /// Counts watchers, paths and watches of the data table, not of the others, as `wchs` shows them.
    pub fn data_totals(&self) -> (u64, u64, u64) {
        let mut watchers = BTreeSet::new();
        let (mut paths, mut watches) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock();
            let mut of_shard = BTreeSet::new();
            for (path, watcher, _) in shard.iter().filter(|r| r.2 & WatchKind::DATA_TABLE != 0) {
                watchers.insert(watcher);
                of_shard.insert(path);
                watches += 1;
            }
            paths += of_shard.len() as u64;
        }
        (watchers.len() as u64, paths, watches)
    }

    /// Every path that is watched in the data table with its watcher, as `wchc` and `wchp` show them. In no order, and not a
    /// consistent view. `None` if the list is more than `bytes_max` long.
    pub fn data_watches(&self, bytes_max: usize) -> Option<Vec<(String, WatcherId)>> {
        let (mut all, mut len) = (Vec::new(), 0);
        for shard in &self.shards {
            let shard = shard.lock();
            for (path, watcher, _) in shard.iter().filter(|r| r.2 & WatchKind::DATA_TABLE != 0) {
                let path = shard.path(path);
                len += LINE_BYTES + path.len();
                if bytes_max < len {
                    return None;
                }
                all.push((path.to_owned(), watcher));
            }
        }
        Some(all)
    }

    /// Continues through the watched paths, under one hold of one shard's lock, and appends those of the data table with
    /// their watchers. `false`: there are no more. A path whose watches change meanwhile may be found twice.
    pub fn next_data_watches(
        &self,
        at: &mut WatchedPlace,
        to: &mut impl Extend<(String, Vec<WatcherId>)>,
    ) -> bool {
        let Some(shard) = self.shards.get(at.shard) else { return false };
        let shard = shard.lock();
        let (mut len, end) = (0, shard.path_places().min(at.path + LOOKS_MAX));
        while at.path < end && len < LOOK_BYTES_MAX {
            if let Some((path, watchers)) = shard.watchers(at.path, WatchKind::DATA_TABLE) {
                len += path.len() + 4 * watchers.len();
                to.extend([(path.to_owned(), watchers)]);
            }
            at.path += 1;
        }
        if at.path >= shard.path_places() {
            *at = WatchedPlace { shard: at.shard + 1, path: 0 };
        }
        at.shard < SHARDS
    }

    /// The watches of `watcher` in one of the shards, by their places there; `None` if there are no more shards.
    pub fn places_of(&self, shard: usize, watcher: WatcherId) -> Option<Vec<u32>> {
        Some(self.shards.get(shard)?.lock().places_of(watcher))
    }

    /// Takes places of a shard's watches, as many as one hold of its lock allows, and returns the paths of those in the
    /// data table that still belong to `watcher`.
    pub fn data_paths_at(
        &self,
        shard: usize,
        watcher: WatcherId,
        places: &mut Vec<u32>,
    ) -> Vec<String> {
        let (shard, mut paths, mut len) = (self.shards[shard].lock(), Vec::new(), 0);
        for _ in 0..LOOKS_MAX {
            if LOOK_BYTES_MAX <= len {
                break;
            }
            let Some(at) = places.pop() else { break };
            if let Some(path) = shard.path_of(at, watcher, WatchKind::DATA_TABLE) {
                len += path.len();
                paths.push(path.to_owned());
            }
        }
        paths
    }

    /// Number of watched paths.
    pub fn path_count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().path_count()).sum()
    }

    fn hash(&self, path: &str) -> u64 {
        hash_of(&self.hash, path.as_bytes())
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }
}

/// The parent path: `/` is above all others that begin with it.
fn above(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() > 1 => Some("/"),
        0 => None,
        end => Some(&path[..end]),
    }
}
