//! The owners of znodes: sessions, containers and TTLs, each with its znodes.

use super::node::NodeId;
use hashbrown::{HashMap, HashSet};

/// The owners with their znodes. A znode names its owner by index, so that the many without one pay four bytes.
pub(super) struct Owners {
    entries: Vec<Entry>,
    by_value: HashMap<i64, u32, foldhash::fast::FixedState>,
    free: Vec<u32>,
    seed: u64,
}

struct Entry {
    /// ephemeralOwner as stored: a session id or an encoding of container or TTL.
    value: i64,
    nodes: HashSet<NodeId, foldhash::fast::FixedState>,
}

impl Owners {
    pub fn new(seed: u64) -> Self {
        let state = foldhash::fast::FixedState::with_seed(seed);
        let nobody = Entry { value: 0, nodes: HashSet::with_hasher(state.clone()) };
        Self {
            entries: vec![nobody],
            by_value: HashMap::with_hasher(state),
            free: Vec::new(),
            seed,
        }
    }

    /// The ephemeralOwner that an index stands for.
    pub fn value(&self, owner: u32) -> i64 {
        self.entries[owner as usize].value
    }

    /// The index of `value`, which is added if it is missing; 0 for 0.
    pub fn intern(&mut self, value: i64) -> u32 {
        if value == 0 {
            return 0;
        }
        if let Some(&at) = self.by_value.get(&value) {
            return at;
        }
        let entry = Entry {
            value,
            nodes: HashSet::with_hasher(foldhash::fast::FixedState::with_seed(self.seed)),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.by_value.insert(value, at);
        at
    }

    pub fn add(&mut self, owner: u32, node: NodeId) {
        if owner != 0 {
            self.entries[owner as usize].nodes.insert(node);
        }
    }

    pub fn remove(&mut self, owner: u32, node: NodeId) {
        if owner == 0 {
            return;
        }
        let entry = &mut self.entries[owner as usize];
        entry.nodes.remove(&node);
        if entry.nodes.is_empty() {
            self.by_value.remove(&entry.value);
            entry.nodes.shrink_to_fit();
            self.free.push(owner);
        }
    }

    /// The znodes of one owner, in no particular order.
    pub fn nodes(&self, value: i64) -> impl Iterator<Item = NodeId> {
        let entry = self.by_value.get(&value).map(|&at| &self.entries[at as usize]);
        entry.into_iter().flat_map(|entry| entry.nodes.iter().copied())
    }

    /// Every owner with the number of its znodes.
    pub fn iter(&self) -> impl Iterator<Item = (i64, usize)> {
        self.by_value.iter().map(|(&value, &at)| (value, self.entries[at as usize].nodes.len()))
    }
}
