//! What to do with what a start finds on disk: pure, total tables.

use super::record::{Head, StopKind};
use crate::model::Zxid;

/// The most bytes one flush writes, one larger record aside; so the most that one crash can tear.
pub const FLUSH_MAX: u64 = 4 << 20;

/// What became of the snapshots.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SnapshotFact {
    /// No file that passes the quick check (D-30).
    None,
    /// One is loaded.
    Loaded,
    /// Some passed the quick check and none could be loaded.
    AllBad,
}

/// What the log holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFact {
    /// No whole record.
    Empty,
    /// Zxid 1 and all that follow it, without a gap and in epoch 0: the whole life of a standalone server.
    Whole,
    /// Txns that continue something that is not here, or may.
    Rest,
}

/// All that the choice at start depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartFacts {
    pub snapshot: SnapshotFact,
    pub log: LogFact,
    /// `zookeeper.snapshot.trust.empty`.
    pub trust_empty: bool,
    /// `zookeeper.db.autocreate`.
    pub autocreate: bool,
    /// The file `initialize` is there (D-02).
    pub initialize: bool,
}

/// How a server starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// Replay the log onto the loaded snapshot.
    Replay,
    /// Replay the whole log onto an empty tree.
    ReplayOntoEmpty,
    /// A new server: zxid 0; the caller writes `snapshot.0` before anything else.
    Empty,
    /// Nothing here, and nobody said that this is right: zxid -1, no vote until synced.
    Unsure,
    /// Txns without the snapshot they continue.
    RefuseNoSnapshot,
    /// Snapshots, and all of them damaged.
    RefuseBadSnapshots,
}

/// A row of [`start`]'s table; `None` in a cell matches anything.
struct StartRow(SnapshotFact, Option<LogFact>, Option<bool>, Option<bool>, Option<bool>, Start);

const ANY: Option<bool> = None;
const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

#[rustfmt::skip]
const START: [StartRow; 10] = [
    StartRow(SnapshotFact::Loaded, None,                 ANY, ANY, ANY, Start::Replay),
    StartRow(SnapshotFact::AllBad, Some(LogFact::Whole), ANY, ANY, ANY, Start::ReplayOntoEmpty),
    StartRow(SnapshotFact::AllBad, Some(LogFact::Rest),  ANY, ANY, ANY, Start::RefuseBadSnapshots),
    StartRow(SnapshotFact::AllBad, Some(LogFact::Empty), ANY, ANY, ANY, Start::RefuseBadSnapshots),
    StartRow(SnapshotFact::None,   Some(LogFact::Whole), ANY, ANY, ANY, Start::ReplayOntoEmpty),
    StartRow(SnapshotFact::None,   Some(LogFact::Rest),  YES, ANY, ANY, Start::ReplayOntoEmpty),
    StartRow(SnapshotFact::None,   Some(LogFact::Rest),  NO,  ANY, ANY, Start::RefuseNoSnapshot),
    StartRow(SnapshotFact::None,   Some(LogFact::Empty), ANY, YES, ANY, Start::Empty),
    StartRow(SnapshotFact::None,   Some(LogFact::Empty), ANY, NO,  YES, Start::Empty),
    StartRow(SnapshotFact::None,   Some(LogFact::Empty), ANY, NO,  NO,  Start::Unsure),
];

impl StartRow {
    fn matches(&self, facts: StartFacts) -> bool {
        let fits = |cell: Option<bool>, fact| cell.is_none_or(|cell| cell == fact);
        self.0 == facts.snapshot
            && self.1.is_none_or(|log| log == facts.log)
            && fits(self.2, facts.trust_empty)
            && fits(self.3, facts.autocreate)
            && fits(self.4, facts.initialize)
    }
}

/// Chooses how to start. Total: exactly one row matches any facts.
///
/// ```text
/// snapshot   log     trust.empty  autocreate  initialize   start
/// loaded      -          -            -           -         replay                    D-31
/// all bad    whole       -            -           -         replay onto empty
/// all bad    rest        -            -           -         refuse                    D-31
/// all bad    empty       -            -           -         refuse                    D-31
/// none       whole       -            -           -         replay onto empty
/// none       rest       yes           -           -         replay onto empty         D-61
/// none       rest       no            -           -         refuse                    D-61
/// none       empty       -           yes          -         empty, zxid 0             D-60
/// none       empty       -           no          yes        empty, zxid 0             D-60
/// none       empty       -           no          no         unsure, zxid -1           D-60
/// ```
///
/// Source: `FileTxnSnapLog.restore`, ZooKeeper 3.9. Two differences: a log file without a record is no reason to refuse,
/// Java judges by the name; and a log that holds everything needs no snapshot, as when the power went while Java's first
/// one was not on disk yet.
pub fn start(facts: StartFacts) -> Start {
    let row = START.iter().find(|row| row.matches(facts));
    row.expect("the table is total: tests try every combination").5
}

/// True when a txn with this zxid may come right after `before` without another one missing between them.
///
/// Repeats and steps back are no gap (D-48). Of how an earlier epoch ended a zxid says nothing, so any first txn of a
/// later epoch follows.
pub fn follows(before: Option<Zxid>, zxid: i64) -> bool {
    let Some(zxid) = Zxid::from_wire(zxid) else { return true };
    let before = before.unwrap_or(Zxid::ZERO);
    zxid <= before
        || before.to_wire() + 1 == zxid.to_wire()
        || (before.epoch() < zxid.epoch() && zxid.counter() == 1)
}

/// The record before and the one behind a place where records of one epoch are missing.
///
/// * `highest`: of the records so far.
///
/// Source: `ZKDatabase.addCommittedProposal`, ZooKeeper 3.9.5, which ends a start there.
pub fn hole(highest: Option<Zxid>, zxid: i64) -> Option<(Zxid, Zxid)> {
    let (before, behind) = (highest?, Zxid::from_wire(zxid)?);
    let is_hole =
        before < behind && before.epoch() == behind.epoch() && Some(behind) != before.plus_one();
    is_hole.then_some((before, behind))
}

/// A snapshot that could not be loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadSnapshot {
    pub zxid: Zxid,
    /// It may have been complete once. Otherwise it has no end, and this server has acknowledged none to a leader.
    pub may_count: bool,
    /// The log has the txn that the snapshot ends with. It has not when a leader sent the snapshot: what such a tree
    /// covered need not leave a gap, since of how an epoch ended the next one's zxids say nothing.
    pub ends_in_log: bool,
}

/// True when a state holds all that a snapshot held which could not be loaded.
///
/// * `last`: where the state ends. `gap`: the zxid before the first txns that the log lacks, if it lacks any.
///
/// A snapshot with an end was complete once, and this server may have acknowledged all of it, to a leader that sent it.
/// Java starts on the older state all the same, and over a gap. One without an end need not be made up for, unless the log
/// goes on from it: then it was complete too, and its end is damaged. Counter 0 is the name that a new leader's snapshot
/// has before its first txn: it stands for all of the epoch before, whose end no zxid tells. Only that of a new server
/// holds nothing.
pub fn makes_up_for(last: Option<Zxid>, gap: Option<Option<Zxid>>, snapshot: BadSnapshot) -> bool {
    let BadSnapshot { zxid, may_count, ends_in_log } = snapshot;
    let held = gap.unwrap_or(last).min(last);
    match (ends_in_log, may_count) {
        _ if zxid == Zxid::ZERO => true,
        (true, true) => Some(zxid) <= held,
        (true, false) => true,
        (false, true) => false,
        (false, false) => last <= Some(zxid),
    }
}

/// Whole records behind the place where a file's records end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Behind {
    Nothing,
    /// All within [`FLUSH_MAX`] of the end: one torn flush may have left them.
    Near,
    Far,
}

/// All that the meaning of a file's end depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EndFacts {
    pub kind: StopKind,
    /// No newer file holds a header: only this one can have been open when the power went.
    pub newest: bool,
    pub behind: Behind,
    /// A sector of the damaged record holds nothing but zeros: [`super::record::Records::has_zero_sector`].
    pub zero_sector: bool,
    /// [`super::record::Records::is_whole_otherwise`], where there is no end mark in its place.
    pub whole: bool,
}

/// What the end of a file's records means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileEnd {
    /// As every crash and every clean stop leaves it: go on with the next file.
    Quiet,
    /// A flush that the power cut into, so nothing of it was acknowledged: go on, and cut it off, since once there
    /// is a newer file it could no longer be told from damage.
    Torn,
    /// Acknowledged records may be lost here: refuse to start.
    Corrupt,
}

/// Tells a torn flush from damage. What a crash leaves unwritten is whole sectors of zeros, or zeros to the end.
///
/// ```text
/// records end with           newest  whole records behind  zero sector   means
/// end of file or zeros         -          nothing              -         quiet     D-45
///   "                         no           near                -         quiet     a hole in a flush, of an older start
///   "                         yes          near                -         torn      a hole in a flush
///   "                          -           far                 -         corrupt
/// no 0x42                      -          nothing              -         quiet     D-45
///   "                         no           near               yes        quiet     a hole in a flush, of an older start
///   "                         yes          near               yes        torn      a hole in a flush
///   "                          -           near               no         corrupt
///   "                          -           far                 -         corrupt
/// more bytes than there are    -          nothing              -         quiet     D-45
///   "                          -          near, far            -         corrupt   its length is wrong: D-46
/// any of these, but whole      -             -                 -         corrupt   its length or its 0x42 is wrong
/// bad checksum                no             -                 -         corrupt   D-46
///   "                         yes       nothing, near         yes        torn      a hole in a flush
///   "                         yes       nothing, near         no         corrupt   D-46
///   "                         yes          far                 -         corrupt   D-46
/// a length below 0             -             -                 -         corrupt   D-46
/// ```
///
/// Java refuses in every case of a bad checksum, and so cannot start after some power cuts; where it sees an end it never
/// looks behind it or twice at it, and so goes on without what stands there.
pub fn end(facts: EndFacts) -> FileEnd {
    use StopKind::{Checksum, Clean, Length, NoEndMark, Truncated};
    let is_hole = facts.zero_sector || facts.kind == Clean;
    match (facts.kind, facts.newest, facts.behind) {
        (Clean | NoEndMark { .. } | Truncated { .. }, _, _) if facts.whole => FileEnd::Corrupt,
        (Clean | NoEndMark { .. } | Truncated { .. }, _, Behind::Nothing) => FileEnd::Quiet,
        (Clean | NoEndMark { .. }, newest, Behind::Near) if is_hole => {
            if newest {
                FileEnd::Torn
            } else {
                FileEnd::Quiet
            }
        }
        (Clean | NoEndMark { .. } | Truncated { .. }, _, Behind::Near | Behind::Far) => {
            FileEnd::Corrupt
        }
        (Checksum { .. }, true, Behind::Nothing | Behind::Near) if is_hole => FileEnd::Torn,
        (Checksum { .. } | Length { .. }, _, _) => FileEnd::Corrupt,
    }
}

/// What to do with a file after a look at its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opening {
    Read,
    /// Made by a server that went before its header was durable; no record was ever written to it.
    Remove,
    Refuse,
}

/// ```text
/// header                                newest   do
/// good                                    -      read
/// short, or the file is all zeros        yes     remove   D-47
///   "                                    no      refuse   D-47
/// another magic, or data behind zeros     -      refuse   D-46
/// ```
pub fn opening(head: Head, newest: bool) -> Opening {
    match (head, newest) {
        (Head::Good, _) => Opening::Read,
        (Head::Unwritten, true) => Opening::Remove,
        (Head::Unwritten, false) | (Head::Bad { .. }, _) => Opening::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [bool; 2] = [false, true];

    // rows: D-60 D-61 D-31
    #[test]
    fn exactly_one_row_for_every_start() {
        let mut hits = [0; START.len()];
        let snapshots = [SnapshotFact::None, SnapshotFact::Loaded, SnapshotFact::AllBad];
        for (log, snapshot) in [LogFact::Empty, LogFact::Whole, LogFact::Rest]
            .into_iter()
            .flat_map(|log| snapshots.map(|snapshot| (log, snapshot)))
        {
            for bits in 0..8 {
                let bit = |n: u32| bits >> n & 1 == 1;
                let (trust_empty, autocreate, initialize) = (bit(0), bit(1), bit(2));
                let facts = StartFacts { snapshot, log, trust_empty, autocreate, initialize };
                let rows: Vec<usize> =
                    (0..START.len()).filter(|&row| START[row].matches(facts)).collect();
                let [row] = rows[..] else { panic!("{facts:?} matches rows {rows:?}") };
                hits[row] += 1;
                assert_eq!(start(facts), START[row].5);
                // Never a fresh database beside data, whatever the settings.
                if start(facts) == Start::Empty {
                    assert!(snapshot == SnapshotFact::None && log == LogFact::Empty);
                }
            }
        }
        assert!(hits.iter().all(|&hits| 0 < hits), "a row is never used: {hits:?}");
    }

    #[test]
    fn what_follows_what() {
        let zxid = |epoch, counter| Zxid::new(crate::model::Epoch(epoch), counter);
        let follows = |before, next: Zxid| follows(Some(before), next.to_wire());
        assert!(follows(zxid(0, 4), zxid(0, 5)) && !follows(zxid(0, 4), zxid(0, 6)));
        assert!(follows(zxid(0, 4), zxid(0, 4)) && follows(zxid(0, 4), zxid(0, 2)));
        assert!(follows(zxid(3, 9), zxid(5, 1)) && !follows(zxid(3, 9), zxid(5, 2)));
        assert!(super::follows(None, 1) && !super::follows(None, 2));
    }

    // rows: D-31 D-48
    #[test]
    fn what_makes_up_for_a_damaged_snapshot() {
        let zxid = Zxid::from_wire;
        let check = |last, gap: Option<i64>, snapshot| {
            let of = |ends_in_log| {
                let zxid = zxid(snapshot).unwrap();
                let bad = BadSnapshot { zxid, may_count: true, ends_in_log };
                makes_up_for(Zxid::from_wire(last), gap.map(Zxid::from_wire), bad)
            };
            assert!(snapshot == 0 || !of(false), "a txn that the log never had");
            of(true)
        };
        assert!(check(7, None, 7) && check(9, None, 7) && !check(6, None, 7));
        assert!(!check(9, Some(5), 7) && check(9, Some(7), 7));
        assert!(check(3, Some(1), 0), "a new server's holds nothing");
        assert!(!check(3, None, 1 << 32), "it stands for all of the epoch before");
        let without_end = |last, snapshot, ends_in_log| {
            let bad = BadSnapshot { zxid: zxid(snapshot).unwrap(), may_count: false, ends_in_log };
            makes_up_for(zxid(last), None, bad)
        };
        assert!(without_end(5, 7, false), "it was never complete");
        assert!(without_end(9, 7, true));
        assert!(!without_end(9, 7, false), "what came after it was logged");
        let bad = BadSnapshot { zxid: zxid(7).unwrap(), may_count: false, ends_in_log: false };
        assert!(
            !makes_up_for(zxid(9), Some(zxid(3)), bad),
            "nor where the log has a gap before the snapshot"
        );
    }

    // rows: D-45 D-46 G-12
    #[test]
    fn every_end() {
        let len = 5;
        let kinds = [
            StopKind::Clean,
            StopKind::Truncated { len },
            StopKind::NoEndMark { len },
            StopKind::Length { len: -2 },
            StopKind::Checksum { len, stored: 1, actual: 2 },
        ];
        let mut counts = [0; 3];
        for kind in kinds {
            for newest in BOTH {
                for behind in [Behind::Nothing, Behind::Near, Behind::Far] {
                    for (zero_sector, whole) in
                        [(false, false), (false, true), (true, false), (true, true)]
                    {
                        let end = end(EndFacts { kind, newest, behind, zero_sector, whole });
                        let damaged =
                            matches!(kind, StopKind::Length { .. } | StopKind::Checksum { .. });
                        let hidden = whole || behind != Behind::Nothing;
                        match end {
                            // Nothing is passed over in silence but what a flush may have left, before this start.
                            FileEnd::Quiet => {
                                assert!(!damaged && (!hidden || !newest && behind == Behind::Near));
                            }
                            FileEnd::Torn => assert!(newest && behind != Behind::Far),
                            FileEnd::Corrupt => assert!(damaged || hidden),
                        }
                        counts[end as usize] += 1;
                    }
                }
            }
        }
        assert_eq!(counts, [15, 7, 98]);
    }

    // rows: D-47
    #[test]
    fn every_opening() {
        for newest in BOTH {
            assert_eq!(opening(Head::Good, newest), Opening::Read);
            assert_eq!(opening(Head::Bad { magic: 1 }, newest), Opening::Refuse);
        }
        assert_eq!(opening(Head::Unwritten, true), Opening::Remove);
        assert_eq!(opening(Head::Unwritten, false), Opening::Refuse);
    }
}
