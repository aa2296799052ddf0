//! The watch tables, compared with a simple model of Java's two tables.

use oxkeeper::tree::{FiredCounts, Trigger, WatchKind, WatcherId, Watches};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const PATHS: [&str; 7] = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/a/c", "odd//"];
const KINDS: [WatchKind; 4] =
    [WatchKind::DATA, WatchKind::CHILD, WatchKind::PERSISTENT, WatchKind::RECURSIVE];

fn fire(watches: &Watches, path: &str, trigger: Trigger) -> Vec<u32> {
    fire_and_count(watches, path, trigger).0
}

fn fire_and_count(watches: &Watches, path: &str, trigger: Trigger) -> (Vec<u32>, FiredCounts) {
    let mut fired = Vec::new();
    let counts = watches.fire(path, trigger, &mut fired);
    let mut fired: Vec<u32> = fired.into_iter().map(|watcher| watcher.0).collect();
    fired.sort_unstable();
    (fired, counts)
}

// rows: P-34 P-76 P-77
#[test]
fn watches_fire_once_and_are_removed_with_their_watcher() {
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
    assert!(fire(&watches, "/a", Trigger::Deleted).is_empty());
    watches.remove_watcher(WatcherId(3));
    assert_eq!((watches.count(), watches.path_count()), (0, 0));
}

/// Java keeps an empty set, which counts as a connection until the connection ends.
// rows: W-22 W-23
#[test]
fn connection_without_a_watch_is_not_counted() {
    let watches = Watches::new(1);
    watches.add("/a", WatcherId(1), WatchKind::DATA);
    watches.add("/b", WatcherId(2), WatchKind::PERSISTENT);
    watches.add("/c", WatcherId(3), WatchKind::CHILD);
    assert_eq!(watches.data_totals(), (2, 2, 2));
    fire(&watches, "/a", Trigger::Data);
    fire(&watches, "/b", Trigger::Data);
    assert_eq!(watches.data_totals(), (1, 1, 1));
    assert_eq!(watches.data_watches(22), Some(vec![("/b".to_owned(), WatcherId(2))]));
    assert_eq!(watches.data_watches(21), None);
}

// rows: P-34
#[test]
fn watcher_of_data_and_children_gets_one_event_of_a_deletion() {
    let watches = Watches::new(1);
    watches.add("/a", WatcherId(7), WatchKind::DATA);
    watches.add("/a", WatcherId(7), WatchKind::CHILD);
    assert_eq!(fire(&watches, "/a", Trigger::Deleted), [7]);
    assert_eq!(watches.count(), 0);
}

// rows: P-34 P-76
#[test]
fn recursive_watches_fire_for_znodes_below_but_not_for_child_changes() {
    let watches = Watches::new(1);
    watches.add("/", WatcherId(1), WatchKind::RECURSIVE);
    watches.add("/a", WatcherId(1), WatchKind::RECURSIVE);
    watches.add("/a", WatcherId(2), WatchKind::PERSISTENT);
    for _ in 0..2 {
        assert_eq!(fire(&watches, "/a/b", Trigger::Data), [1]);
        assert_eq!(fire(&watches, "/a", Trigger::Children), [2]);
        assert_eq!(fire(&watches, "/a", Trigger::Deleted), [1, 2]);
    }
    // A recursive watch is in one table, a persistent one in both.
    assert_eq!((watches.count(), watches.data_totals()), (4, (2, 2, 3)));
}

/// Java's tables: modes by watcher and path, once for data and once for children.
#[derive(Default)]
struct Model {
    tables: [BTreeMap<(u32, String), u8>; 2],
}

const STANDARD: u8 = 1;
const PERSISTENT: u8 = 2;
const RECURSIVE: u8 = 4;

/// The tables that a kind of watch is in, and its mode there.
fn places(kind: WatchKind) -> Vec<(usize, u8)> {
    match kind {
        WatchKind::DATA => vec![(0, STANDARD)],
        WatchKind::CHILD => vec![(1, STANDARD)],
        WatchKind::PERSISTENT => vec![(0, PERSISTENT), (1, PERSISTENT)],
        WatchKind::RECURSIVE => vec![(0, RECURSIVE)],
        _ => KINDS.iter().flat_map(|kind| places(*kind)).collect(),
    }
}

impl Model {
    fn add(&mut self, path: &str, watcher: u32, kind: WatchKind) {
        for (table, mode) in places(kind) {
            *self.tables[table].entry((watcher, path.into())).or_default() |= mode;
        }
    }

    fn contains(&self, path: &str, watcher: u32, kind: WatchKind) -> bool {
        let key = (watcher, path.to_owned());
        places(kind)
            .iter()
            .any(|(table, mode)| self.tables[*table].get(&key).is_some_and(|m| m & mode != 0))
    }

    fn remove(&mut self, path: &str, watcher: u32, kind: WatchKind) -> bool {
        let had = self.contains(path, watcher, kind);
        for (table, mode) in places(kind) {
            if let Some(modes) = self.tables[table].get_mut(&(watcher, path.to_owned())) {
                *modes &= !mode;
            }
        }
        self.sweep();
        had
    }

    fn sweep(&mut self) {
        self.tables.iter_mut().for_each(|table| table.retain(|_, modes| *modes != 0));
    }

    fn trigger(&mut self, table: usize, path: &str) -> BTreeSet<u32> {
        let mut fired = BTreeSet::new();
        for ((watcher, watched), modes) in &mut self.tables[table] {
            let is_below = path.starts_with(&format!("{}/", watched.trim_end_matches('/')));
            if watched == path {
                fired.insert(*watcher);
                *modes &= !STANDARD;
            } else if is_below && *modes & RECURSIVE != 0 {
                fired.insert(*watcher);
            }
        }
        self.sweep();
        fired
    }

    fn fire(&mut self, path: &str, trigger: Trigger) -> (BTreeSet<u32>, FiredCounts) {
        let (mut data, mut child) = (BTreeSet::new(), BTreeSet::new());
        if trigger != Trigger::Children {
            data = self.trigger(0, path);
        }
        if trigger != Trigger::Data {
            child = self.trigger(1, path);
        }
        (&data | &child, FiredCounts { data: data.len() as u64, child: child.len() as u64 })
    }
}

#[derive(Clone, Debug)]
enum Act {
    Add(usize, u32, usize),
    Remove(usize, u32, usize),
    Fire(usize, Trigger),
    Gone(u32),
}

fn act() -> impl Strategy<Value = Act> {
    let trigger = prop::sample::select(vec![Trigger::Data, Trigger::Children, Trigger::Deleted]);
    prop_oneof![
        6 => (0..PATHS.len(), 0u32..4, 0..KINDS.len()).prop_map(|(p, w, k)| Act::Add(p, w, k)),
        2 => (0..PATHS.len(), 0u32..4, 0..=KINDS.len()).prop_map(|(p, w, k)| Act::Remove(p, w, k)),
        4 => (0..PATHS.len() - 1, trigger).prop_map(|(p, t)| Act::Fire(p, t)),
        1 => (0u32..4).prop_map(Act::Gone),
    ]
}

proptest! {
    // rows: P-34 P-76 M-03
    #[test]
    fn watches_behave_as_javas_two_tables(acts in prop::collection::vec(act(), 1..60)) {
        let (watches, mut model) = (Watches::new(7), Model::default());
        let any = |kind: usize| KINDS.get(kind).copied().unwrap_or(WatchKind::ANY);
        for act in acts {
            match act {
                Act::Add(path, watcher, kind) => {
                    watches.add(PATHS[path], WatcherId(watcher), KINDS[kind]);
                    model.add(PATHS[path], watcher, KINDS[kind]);
                }
                Act::Remove(path, watcher, kind) => prop_assert_eq!(
                    watches.remove(PATHS[path], WatcherId(watcher), any(kind)),
                    model.remove(PATHS[path], watcher, any(kind))
                ),
                Act::Fire(path, trigger) => {
                    let fired = fire_and_count(&watches, PATHS[path], trigger);
                    let (expected, counts) = model.fire(PATHS[path], trigger);
                    prop_assert_eq!(fired, (expected.into_iter().collect::<Vec<u32>>(), counts));
                }
                Act::Gone(watcher) => {
                    watches.remove_watcher(WatcherId(watcher));
                    model.tables.iter_mut().for_each(|table| table.retain(|key, _| key.0 != watcher));
                }
            }
            for (path, watcher, kind) in triples(PATHS.len(), 4, KINDS.len() + 1) {
                prop_assert_eq!(
                    watches.contains(PATHS[path], WatcherId(watcher), any(kind)),
                    model.contains(PATHS[path], watcher, any(kind))
                );
            }
            let paths: BTreeSet<&str> = model.tables[0].keys().map(|key| &*key.1).collect();
            let watchers: BTreeSet<u32> = model.tables[0].keys().map(|key| key.0).collect();
            let totals = (watchers.len() as u64, paths.len() as u64, model.tables[0].len() as u64);
            prop_assert_eq!(watches.data_totals(), totals);
            prop_assert_eq!(watches.count(), model.tables[0].len() + model.tables[1].len());
        }
    }
}

/// All triples below three bounds.
fn triples(a: usize, b: u32, c: usize) -> impl Iterator<Item = (usize, u32, usize)> {
    (0..a).flat_map(move |a| (0..b).flat_map(move |b| (0..c).map(move |c| (a, b, c))))
}
