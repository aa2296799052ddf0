//! Digests at earlier zxids, for the four-letter word `hash`: operators compare servers by them.

use crate::model::Zxid;
use std::collections::VecDeque;

/// Digests are kept at the multiples of this zxid.
const EVERY: i64 = 128;
/// The most digests that are kept.
const KEPT_MAX: usize = 1024;

/// The tree's digest at zxids that are multiples of 128: the last 1024 of them.
///
/// Source: `DataTree.logZxidDigest`, ZooKeeper 3.9.5.
#[derive(Debug, Default)]
pub(super) struct Digests {
    kept: VecDeque<(Zxid, u64)>,
}

impl Digests {
    /// Called after each transaction.
    pub fn note(&mut self, zxid: Zxid, digest: u64) {
        if zxid.to_wire() % EVERY != 0 {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((zxid, digest));
    }

    pub fn iter(&self) -> impl Iterator<Item = (Zxid, u64)> {
        self.kept.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_128th_digest_is_kept_and_the_oldest_is_dropped() {
        let mut digests = Digests::default();
        for raw in 1..=128 * 1025 {
            digests.note(Zxid::from_wire(raw).unwrap(), raw as u64 * 10);
        }
        let kept: Vec<_> = digests.iter().collect();
        assert_eq!(kept.len(), KEPT_MAX);
        assert_eq!(kept[0], (Zxid::from_wire(256).unwrap(), 2560));
        assert_eq!(kept[1023].0, Zxid::from_wire(128 * 1025).unwrap());
    }
}
