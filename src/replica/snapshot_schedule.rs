//! The schedule of log rolls and snapshots (D-33).

use crate::model::Rng;

/// Counts the transactions and bytes logged since the last roll, and says when the next one is due.
///
/// The limit is drawn again after each roll, from half of the setting to all of it, so that the servers of an
/// ensemble don't take their snapshots together.
///
/// Source: `SyncRequestProcessor.shouldSnapshot`, ZooKeeper 3.9. Java's size also counts what a file is padded with, so
/// that a limit below preAllocSize snapshots after every transaction; here only entries count.
pub struct SnapshotSchedule {
    txns_limit: u64,
    /// 0: no limit.
    bytes_limit: u64,
    txns: u64,
    bytes: u64,
    txns_max: u64,
    bytes_max: u64,
    rng: Rng,
}

impl SnapshotSchedule {
    /// * `snap_count`: `zookeeper.snapCount`, 2 or more. `snap_size_bytes`: `zookeeper.snapSizeLimitInKb` in bytes; 0:
    ///   no limit.
    /// * `seed`: of the random numbers.
    pub fn new(snap_count: u64, snap_size_bytes: u64, seed: u64) -> Self {
        let mut schedule = Self {
            txns_limit: snap_count.max(2),
            bytes_limit: snap_size_bytes,
            txns: 0,
            bytes: 0,
            txns_max: 0,
            bytes_max: 0,
            rng: Rng::seeded(seed),
        };
        schedule.draw();
        schedule
    }

    /// Counts one entry of `bytes`; `true`: the log is to roll after it, and a snapshot to be taken.
    pub fn logged(&mut self, bytes: u64) -> bool {
        self.txns += 1;
        self.bytes += bytes;
        let due = self.txns_max < self.txns || self.bytes_max < self.bytes;
        if due {
            self.draw();
        }
        due
    }

    fn draw(&mut self) {
        let (txns, bytes) = (self.txns_limit / 2, self.bytes_limit / 2);
        (self.txns, self.bytes) = (0, 0);
        self.txns_max = txns + self.rng.below(txns);
        self.bytes_max = if bytes == 0 { u64::MAX } else { bytes + self.rng.below(bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The numbers of entries of `entry` bytes between two rolls, in 300 rolls.
    fn gaps(snap_count: u64, snap_size_bytes: u64, entry: u64) -> BTreeSet<u64> {
        let mut schedule = SnapshotSchedule::new(snap_count, snap_size_bytes, 7);
        let gap = |_| {
            1 + std::iter::repeat_with(|| schedule.logged(entry)).position(|due| due).unwrap()
                as u64
        };
        (0..300).map(gap).collect()
    }

    // rows: D-33 C-140 C-141
    #[test]
    fn log_rolls_between_half_of_each_limit_and_the_whole_limit() {
        assert_eq!(gaps(2, 0, 1 << 40), [2].into());
        assert_eq!(gaps(3, 0, 1), [2].into());
        assert_eq!(gaps(10, 0, 1), (6..=10).collect());
        // The limit that is reached first counts; a limit is passed, not met.
        assert_eq!(gaps(1000, 1024, 64), (9..=16).collect());
        assert_eq!(gaps(4, 1024, 64), [3, 4].into());
        assert_eq!(gaps(1000, 1024, 5000), [1].into());
    }

    // rows: D-33
    #[test]
    fn servers_take_their_snapshots_at_different_times() {
        let first = |seed| {
            let mut schedule = SnapshotSchedule::new(100_000, 0, seed);
            std::iter::repeat_with(|| schedule.logged(1)).position(|due| due)
        };
        let drawn: BTreeSet<_> = (1..20).map(|server| first(server * 2)).collect();
        assert_eq!(drawn.len(), 19);
    }
}
