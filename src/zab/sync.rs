//! How a learner gets the leader's history: a total table (Q-65..Q-69).
//!
//! Source: `LearnerHandler.syncFollower` and `queueCommittedProposals`, ZooKeeper 3.9.5. Where Java's answer can leave a
//! learner with a hole, this table sends the tree:
//! * TRUNC across epochs beyond the leader's last transaction (Java checks the epochs only inside its window).

use super::History;
use super::history::Logged;
use crate::model::Zxid;

/// What a learner is sent first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Plan {
    /// The learner has all that is committed, and nothing else.
    Nothing,
    /// DIFF, then the transactions after `after`.
    Diff { after: Zxid },
    /// The learner has uncommitted transactions: TRUNC, then the transactions after `to`.
    Trunc { to: Zxid },
    /// The window does not reach back so far: read the log on disk.
    ReadLog,
    /// The whole tree.
    Snap,
}

/// What the log on disk holds around a learner's last zxid.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LogRead {
    /// The last entry at or before the learner's last zxid; `None`: the log does not reach back so far, or it is too much to send.
    pub before: Option<Zxid>,
    /// All entries after the learner's last zxid, through the last one asked for.
    pub entries: Vec<Logged>,
}

/// What to send to a learner whose log ends at `last`.
///
/// * `last`: `None` when it has nothing that counts.
pub fn plan(history: &History, last: Option<Zxid>) -> Plan {
    let Some(last) = last else { return Plan::Snap };
    let committed = history.committed();
    if last == committed {
        return Plan::Nothing;
    }
    // The zxid of an old leader without a transaction in its epoch: its history is that of the epoch before (see `around`).
    let is_fresh = last.counter() == 0;
    if committed < last {
        return match last.epoch() == committed.epoch() && !is_fresh {
            true => Plan::Trunc { to: committed },
            false => Plan::Snap,
        };
    }
    if last < history.floor() {
        return Plan::ReadLog;
    }
    let before = history.window().iter().map(|(zxid, _)| *zxid).take_while(|zxid| *zxid <= last);
    around(Some(before.last().unwrap_or(history.floor())), last)
}

/// What to send when `before` is the last entry at or before `last`.
pub fn around(before: Option<Zxid>, last: Zxid) -> Plan {
    match before {
        Some(before) if before == last => Plan::Diff { after: last },
        // Only an established leader has such a zxid, and its history was committed as it was.
        Some(_) if last.counter() == 0 && last != Zxid::ZERO => Plan::Diff { after: last },
        Some(before) if before.epoch() == last.epoch() => Plan::Trunc { to: before },
        // The end of the learner's history does not show where it diverges from the leader's.
        Some(_) | None => Plan::Snap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;
    use bytes::Bytes;

    fn zxid(epoch: u32, n: u32) -> Zxid {
        Zxid::new(Epoch(epoch), n)
    }

    /// Floor 1:2, then 1:3, 1:4, 3:1, 3:2, 5:1, all committed, and 5:2 that is not.
    fn history() -> History {
        let mut history = History::new(zxid(1, 2));
        for (epoch, n) in [(1, 3), (1, 4), (3, 1), (3, 2), (5, 1), (5, 2)] {
            history.append(zxid(epoch, n), Bytes::new());
        }
        history.commit(zxid(5, 1), |_| {});
        history
    }

    // rows: Q-65 Q-66 Q-67 Q-68 Q-69 Q-70
    #[test]
    fn synchronisation_follows_from_where_the_learners_log_ends() {
        let table = [
            (None, Plan::Snap),
            (Some(zxid(5, 1)), Plan::Nothing),
            // Beyond what is committed: of this epoch, of a newer one, a leader without transactions.
            (Some(zxid(5, 2)), Plan::Trunc { to: zxid(5, 1) }),
            (Some(zxid(5, 9)), Plan::Trunc { to: zxid(5, 1) }),
            (Some(zxid(6, 1)), Plan::Snap),
            (Some(zxid(6, 0)), Plan::Snap),
            // Inside the window, at both of its ends, and beside what is in it.
            (Some(zxid(1, 2)), Plan::Diff { after: zxid(1, 2) }),
            (Some(zxid(1, 3)), Plan::Diff { after: zxid(1, 3) }),
            (Some(zxid(3, 2)), Plan::Diff { after: zxid(3, 2) }),
            (Some(zxid(1, 9)), Plan::Trunc { to: zxid(1, 4) }),
            (Some(zxid(2, 7)), Plan::Snap),
            (Some(zxid(3, 0)), Plan::Diff { after: zxid(3, 0) }),
            (Some(zxid(4, 0)), Plan::Diff { after: zxid(4, 0) }),
            (Some(zxid(4, 1)), Plan::Snap),
            // Older than the window.
            (Some(zxid(1, 1)), Plan::ReadLog),
            (Some(zxid(0, 0)), Plan::ReadLog),
        ];
        for (last, wanted) in table {
            assert_eq!(plan(&history(), last), wanted, "{last:?}");
        }
    }

    // rows: Q-68 Q-69
    #[test]
    fn synchronisation_by_the_log_on_disk_follows_from_the_entry_before() {
        assert_eq!(around(None, zxid(1, 1)), Plan::Snap);
        assert_eq!(around(Some(zxid(1, 1)), zxid(1, 1)), Plan::Diff { after: zxid(1, 1) });
        assert_eq!(around(Some(zxid(1, 1)), zxid(1, 5)), Plan::Trunc { to: zxid(1, 1) });
        assert_eq!(around(Some(zxid(1, 1)), zxid(2, 5)), Plan::Snap);
        assert_eq!(around(Some(zxid(1, 1)), zxid(2, 0)), Plan::Diff { after: zxid(2, 0) });
        assert_eq!(around(None, Zxid::ZERO), Plan::Snap, "an empty directory");
    }
}
