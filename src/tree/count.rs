//! Counts the znodes below a znode, without holding the lock for long (P-60c).

use super::{NO_NODE, NodeId, Tree};

/// Znodes looked at under one hold of the lock: well below a millisecond's worth.
const LOOKS_MAX: u32 = 4096;

/// A count that takes the lock several times. Like Java's, it may or may not see what changes meanwhile.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Count {
    /// The place from which the count continues.
    next: NodeId,
    found: u32,
}

impl Tree {
    /// The number of all znodes below `path`, whose znode is `id`. `None`: `count` holds the number so far; release the
    /// lock and call again. `count` is `None` at first.
    ///
    /// A small subtree is walked. A large one is not, because a walk cannot be interrupted and continued while znodes
    /// are created and deleted; instead all znodes are scanned, as Java always does.
    pub fn count_below(&self, id: NodeId, path: &str, count: &mut Option<Count>) -> Option<u32> {
        match path {
            "/" => return Some(self.nodes.len() as u32 - 1),
            // Java has the root under two names, and for the empty one the other counts as below it.
            "" => return Some(self.nodes.len() as u32),
            _ => {}
        }
        if count.is_none()
            && let Some(found) = self.walk_below(id)
        {
            return Some(found);
        }
        let count = count.get_or_insert_default();
        let end = self.nodes.places().min(count.next.saturating_add(LOOKS_MAX));
        for at in count.next..end {
            let node = self.nodes.get(at);
            let is_below = |path: &[u8], other: &[u8]| {
                other.strip_prefix(path).is_some_and(|rest| rest.starts_with(b"/"))
            };
            if node.is_live() && is_below(path.as_bytes(), self.path_bytes(node)) {
                count.found += 1;
            }
        }
        count.next = end;
        (end == self.nodes.places()).then_some(count.found)
    }

    /// Depth first; `None` when there are too many.
    fn walk_below(&self, top: NodeId) -> Option<u32> {
        let mut found = 0;
        let mut at = self.nodes.get(top).first_child;
        if at == NO_NODE {
            return Some(0);
        }
        loop {
            found += 1;
            if found > LOOKS_MAX {
                return None;
            }
            let mut node = self.nodes.get(at);
            if node.first_child != NO_NODE {
                at = node.first_child;
                continue;
            }
            while node.next == NO_NODE {
                if node.parent == top {
                    return Some(found);
                }
                node = self.nodes.get(node.parent);
            }
            at = node.next;
        }
    }
}
