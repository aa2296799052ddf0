//! Which sets of servers decide.

use crate::model::{ServerId, Zxid};
use std::collections::{BTreeMap, BTreeSet};

/// A quorum is more than half of the voters.
#[derive(Clone, Debug)]
pub struct Majority {
    voters: BTreeSet<ServerId>,
}

impl Majority {
    pub fn new(voters: impl IntoIterator<Item = ServerId>) -> Self {
        Self { voters: voters.into_iter().collect() }
    }

    /// The highest zxid that a quorum has acknowledged; others than voters count nothing.
    pub fn highest_agreed(&self, acked: &BTreeMap<ServerId, Zxid>) -> Option<Zxid> {
        let mut zxids: Vec<Zxid> =
            self.voters.iter().filter_map(|id| acked.get(id).copied()).collect();
        zxids.sort_unstable();
        // With n voters, n/2 + 1 of them are a quorum: the one in that place from the top.
        zxids.len().checked_sub(self.voters.len() / 2 + 1).map(|at| zxids[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    #[test]
    fn more_than_half() {
        let zxid = |n| Zxid::new(Epoch(1), n);
        let three = Majority::new([1, 2, 3].map(ServerId));
        let mut acked = BTreeMap::from([(ServerId(1), zxid(9)), (ServerId(7), zxid(9))]);
        assert_eq!(three.highest_agreed(&acked), None);
        acked.insert(ServerId(2), zxid(4));
        assert_eq!(three.highest_agreed(&acked), Some(zxid(4)));
        acked.insert(ServerId(3), zxid(6));
        assert_eq!(three.highest_agreed(&acked), Some(zxid(6)));
    }
}
