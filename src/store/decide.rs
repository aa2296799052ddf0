//! The decisions of recovery as pure, total tables: how to start, and what the end and the header of a log file mean.

use super::record::{Head, StopKind, WholeAfter};
use crate::model::Zxid;
use std::fmt;

/// The most bytes that one flush writes, unless a single record is larger; so the most that one crash can tear.
pub const FLUSH_MAX: u64 = 4 << 20;
/// The times of the transactions of one flush are less than this apart, in milliseconds: they came while the flush before it ran. A slower
/// disk is one that fsync.warningthresholdms warns of at its default; what such a disk leaves is taken for damage. So is what a learner leaves
/// that has logged older transactions of its leader at once: it is quarantined, and the leader sends its tree.
pub const FLUSH_SPAN_MS_MAX: u64 = 1000;

/// The outcome of loading a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SnapshotFact {
    /// No file passes the quick check (D-30).
    None,
    /// A snapshot is loaded.
    Loaded,
    /// Snapshots passed the quick check, but none could be loaded.
    AllBad,
}

/// What the log holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFact {
    /// No whole record.
    Empty,
    /// Zxid 1 and all that follow it, without a gap and in epoch 0: the whole life of a standalone server.
    Whole,
    /// Transactions that continue a history that is not in this log, or may do so.
    Rest,
}

/// Everything that the choice of a [`Start`] depends on.
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
    /// No data, and neither a setting nor the file `initialize` allows that: zxid -1, no vote until synchronised.
    Unsure,
    /// Transactions without the snapshot that they continue.
    RefuseNoSnapshot,
    /// All snapshots are damaged.
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
/// Source: `FileTxnSnapLog.restore`, ZooKeeper 3.9. Two differences: a log file without a record is no reason to refuse
/// (Java only looks at its name); and a log that holds everything needs no snapshot, as after a power cut before Java's
/// first snapshot was on disk.
pub fn start(facts: StartFacts) -> Start {
    let row = START.iter().find(|row| row.matches(facts));
    row.expect("the table is total: tests try every combination").5
}

/// True when a transaction with this zxid may come right after `before`, with none missing between them.
///
/// Repeats and steps back are no gap (D-48). A zxid does not show where an earlier epoch ended, so the first transaction
/// of any later epoch follows.
pub fn follows(before: Option<Zxid>, zxid: i64) -> bool {
    let Some(zxid) = Zxid::from_wire(zxid) else { return true };
    let before = before.unwrap_or(Zxid::ZERO);
    zxid <= before
        || before.to_wire() + 1 == zxid.to_wire()
        || (before.epoch() < zxid.epoch() && zxid.counter() == 1)
}

/// The zxids before and after a hole, where records of one epoch are missing.
///
/// * `highest`: the highest zxid of the records so far.
///
/// Source: `ZKDatabase.addCommittedProposal`, ZooKeeper 3.9.5, where Java refuses to start.
pub fn hole(highest: Option<Zxid>, zxid: i64) -> Option<(Zxid, Zxid)> {
    let (before, after) = (highest?, Zxid::from_wire(zxid)?);
    let is_hole =
        before < after && before.epoch() == after.epoch() && Some(after) != before.plus_one();
    is_hole.then_some((before, after))
}

/// A snapshot that could not be loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadSnapshot {
    pub zxid: Zxid,
    /// The snapshot may have been complete once. Otherwise its end is missing, and this server has acknowledged no snapshot
    /// to a leader.
    pub may_count: bool,
    /// The log has the transaction that the snapshot ends with. It does not when a leader sent the snapshot; the
    /// transactions of such a snapshot need not show as a gap, since the zxids of an epoch don't show where the epoch before it ended.
    pub ends_in_log: bool,
}

/// True when the recovered state holds everything that a snapshot which could not be loaded held.
///
/// * `last`: where the state ends. `gap`: the zxid before the first gap of the log, if it has one.
///
/// A snapshot with an end was complete once, and this server may have acknowledged all of it to the leader that sent it.
/// Java starts on the older state anyway, even over a gap. A snapshot without an end may be missing, unless the log
/// continues from it: then it was complete too, and its end is damaged. A zxid with counter 0 names the snapshot that a new
/// leader takes before its first transaction: it stands for all of the epoch before, whose last zxid is not known. Only
/// `snapshot.0`, that of a new server, holds nothing.
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

/// Whole records after the place where a file's records end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecordsAfter {
    Nothing,
    /// All within [`FLUSH_MAX`] of the end, and their times within [`FLUSH_SPAN_MS_MAX`]: one torn flush may have left them.
    Near,
    Far,
}

impl RecordsAfter {
    /// * `at`: where the records end, in the file.
    pub const fn of(after: Option<WholeAfter>, at: u64) -> Self {
        match after {
            None => Self::Nothing,
            Some(WholeAfter { end, times_ms, .. })
                if end - at <= FLUSH_MAX && times_ms.0.abs_diff(times_ms.1) < FLUSH_SPAN_MS_MAX =>
            {
                Self::Near
            }
            Some(_) => Self::Far,
        }
    }
}

impl fmt::Display for RecordsAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "none",
            Self::Near => "within the same flush",
            Self::Far => "beyond one flush",
        })
    }
}

/// Everything that the meaning of a file's end depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EndFacts {
    pub kind: StopKind,
    /// No newer file holds a header: only this one can have been open when the power failed.
    pub newest: bool,
    pub records_after: RecordsAfter,
    /// A sector of the damaged record holds nothing but zeros: [`super::record::Records::has_zero_sector`].
    pub zero_sector: bool,
    /// [`super::disk::Disk::may_have_lost_writes`].
    pub may_have_lost_writes: bool,
    /// [`super::record::Records::is_whole_otherwise`], where there is no end mark in its place. Or another record begins within the bytes
    /// that the record claims. What a crash leaves unwritten makes a length smaller, never greater.
    pub whole: bool,
}

/// What the end of a file's records means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileEnd {
    /// The end that a crash or a clean stop leaves: go on with the next file.
    Quiet,
    /// A torn flush: a power cut interrupted it, so nothing of it was acknowledged. Go on, and truncate the file there,
    /// since after a newer file exists this end could no longer be distinguished from damage.
    Torn,
    /// Acknowledged records may be lost here: refuse to start.
    Corrupt,
}

/// Distinguishes a torn flush from damage. What a power cut leaves unwritten is whole sectors of zeros, or zeros to the end. A lost
/// sector is one of zeros in a file that was not changed since the machine started.
///
/// ```text
/// records end with           newest  whole records after   lost sector   means
/// end of file or zeros         -          nothing              -         quiet     D-45
///   "                         no           near               yes        quiet     a hole in a flush, of an older start
///   "                         yes          near               yes        torn      a hole in a flush
///   "                          -           near               no         corrupt   no sector is missing
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
///   " , but whole              -             -                 -         corrupt   its length is wrong
/// a length below 0             -             -                 -         corrupt   D-46
/// ```
///
/// Java refuses on every bad checksum, and so cannot start after some power cuts; where it sees an end it does not look
/// further, and so goes on without the records after it.
pub fn end(facts: EndFacts) -> FileEnd {
    use StopKind::{Checksum, Clean, Length, NoEndMark, Truncated};
    let is_hole = facts.zero_sector && facts.may_have_lost_writes;
    match (facts.kind, facts.newest, facts.records_after) {
        _ if facts.whole => FileEnd::Corrupt,
        (Clean | NoEndMark { .. } | Truncated { .. }, _, RecordsAfter::Nothing) => FileEnd::Quiet,
        (Clean | NoEndMark { .. }, newest, RecordsAfter::Near) if is_hole => {
            if newest {
                FileEnd::Torn
            } else {
                FileEnd::Quiet
            }
        }
        (
            Clean | NoEndMark { .. } | Truncated { .. },
            _,
            RecordsAfter::Near | RecordsAfter::Far,
        ) => FileEnd::Corrupt,
        (Checksum { .. }, true, RecordsAfter::Nothing | RecordsAfter::Near) if is_hole => {
            FileEnd::Torn
        }
        (Checksum { .. } | Length { .. }, _, _) => FileEnd::Corrupt,
    }
}

/// What to do with a file after a look at its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opening {
    Read,
    /// Created by a server that crashed before the header was durable; no record was ever written to it.
    Remove,
    Refuse,
}

/// * `newest`: no file has a later name. A file's header is durable before the next file is made, unless `forceSync=no`.
/// * `may_have_lost_writes`: see [`EndFacts::may_have_lost_writes`]. Java writes a header before the zeros after it.
///
/// ```text
/// header                                newest   lost writes   do
/// good                                    -           -        read
/// short                                  yes          -        remove   D-47
/// the file is all zeros                  yes         yes       remove   D-47
///   "                                    yes         no        refuse
/// short, or the file is all zeros        no           -        refuse   D-47
/// another magic, or data after zeros      -           -        refuse   D-46
/// ```
pub fn opening(head: Head, newest: bool, may_have_lost_writes: bool) -> Opening {
    match head {
        Head::Good => Opening::Read,
        Head::Short if newest => Opening::Remove,
        Head::Zeros if newest && may_have_lost_writes => Opening::Remove,
        Head::Short | Head::Zeros | Head::Bad { .. } => Opening::Refuse,
    }
}

/// What the name of a newest log file without a record says: the zxid of the first transaction that was about to be written to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EmptyLog {
    /// It was about to be written after all others, as a crash leaves it.
    Next,
    /// Transactions before it are missing. Each of them was durable before this server made the file. Java makes a file before it flushes the
    /// one before; where a power cut came in between, what is missing was not acknowledged.
    AfterGap,
    /// A snapshot holds its first transaction. This server names a snapshot after that is durable, so the records were lost.
    Lost,
}

/// Says nothing where `forceSync=no`.
///
/// * `last`: where the history ends. `first`: the zxid in the file's name. `has_header`: without one this server removes the file at the first
///   start after the crash; with one it stays, and a leader's tree may have come since.
pub fn empty_log(last: Option<Zxid>, first: Zxid, has_header: bool) -> EmptyLog {
    if !follows(last, first.to_wire()) {
        EmptyLog::AfterGap
    } else if !has_header && Some(first) <= last {
        EmptyLog::Lost
    } else {
        EmptyLog::Next
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
                // Never an empty database if there is data, whatever the settings.
                if start(facts) == Start::Empty {
                    assert!(snapshot == SnapshotFact::None && log == LogFact::Empty);
                }
            }
        }
        assert!(hits.iter().all(|&hits| 0 < hits), "a row is never used: {hits:?}");
    }

    #[test]
    fn first_transaction_of_any_later_epoch_is_no_gap() {
        let zxid = |epoch, counter| Zxid::new(crate::model::Epoch(epoch), counter);
        let follows = |before, next: Zxid| follows(Some(before), next.to_wire());
        assert!(follows(zxid(0, 4), zxid(0, 5)) && !follows(zxid(0, 4), zxid(0, 6)));
        assert!(follows(zxid(0, 4), zxid(0, 4)) && follows(zxid(0, 4), zxid(0, 2)));
        assert!(follows(zxid(3, 9), zxid(5, 1)) && !follows(zxid(3, 9), zxid(5, 2)));
        assert!(super::follows(None, 1) && !super::follows(None, 2));
    }

    // rows: D-31 D-48
    #[test]
    fn damaged_snapshot_needs_a_log_that_reaches_its_zxid() {
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
        assert!(check(3, Some(1), 0), "snapshot.0 holds nothing");
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
    fn torn_flush_is_distinguished_from_damage_at_every_end() {
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
                for records_after in [RecordsAfter::Nothing, RecordsAfter::Near, RecordsAfter::Far]
                {
                    for bits in 0..8 {
                        let bit = |n: u32| bits >> n & 1 == 1;
                        let (zero_sector, whole, may_have_lost_writes) = (bit(0), bit(1), bit(2));
                        let end = end(EndFacts {
                            kind,
                            newest,
                            records_after,
                            zero_sector,
                            may_have_lost_writes,
                            whole,
                        });
                        let is_hole = zero_sector && may_have_lost_writes;
                        let damaged =
                            matches!(kind, StopKind::Length { .. } | StopKind::Checksum { .. });
                        let hidden = whole || records_after != RecordsAfter::Nothing;
                        match end {
                            // A quiet end skips whole records only if a torn flush of an earlier process may have left them.
                            FileEnd::Quiet => {
                                assert!(
                                    !damaged
                                        && (!hidden
                                            || !newest && records_after == RecordsAfter::Near)
                                );
                            }
                            FileEnd::Torn => {
                                assert!(is_hole && newest && records_after != RecordsAfter::Far);
                            }
                            FileEnd::Corrupt => assert!(damaged || hidden),
                        }
                        counts[end as usize] += 1;
                    }
                }
            }
        }
        assert_eq!(counts, [26, 4, 210]);
        let after = |end, times_ms| Some(WholeAfter { first_at: 100, end, times_ms });
        let span = FLUSH_SPAN_MS_MAX as i64;
        assert_eq!(RecordsAfter::of(None, 50), RecordsAfter::Nothing);
        assert_eq!(
            RecordsAfter::of(after(FLUSH_MAX + 50, (-9, span - 10)), 50),
            RecordsAfter::Near
        );
        assert_eq!(RecordsAfter::of(after(FLUSH_MAX + 51, (0, 0)), 50), RecordsAfter::Far);
        assert_eq!(RecordsAfter::of(after(200, (7, span + 7)), 50), RecordsAfter::Far);
        assert_eq!(RecordsAfter::of(after(200, (i64::MIN, i64::MAX)), 50), RecordsAfter::Far);
    }

    // rows: D-47
    #[test]
    fn file_without_a_header_is_removed_only_if_newest() {
        for (newest, lost_writes) in [(true, true), (true, false), (false, true), (false, false)] {
            let does = |head| opening(head, newest, lost_writes);
            let removed_if = |is_left| if is_left { Opening::Remove } else { Opening::Refuse };
            assert_eq!(does(Head::Good), Opening::Read);
            assert_eq!(does(Head::Bad { magic: 1 }), Opening::Refuse);
            assert_eq!(does(Head::Short), removed_if(newest));
            assert_eq!(does(Head::Zeros), removed_if(newest && lost_writes));
        }
    }

    // rows: D-47 D-48
    #[test]
    fn log_file_without_a_record_follows_the_history_or_something_is_lost() {
        let zxid = |raw: i64| Zxid::from_wire(raw).unwrap();
        for has_header in BOTH {
            let says =
                |last: i64, first: i64| empty_log(Zxid::from_wire(last), zxid(first), has_header);
            assert_eq!(says(-1, 1), EmptyLog::Next);
            assert_eq!(says(70, 71), EmptyLog::Next);
            assert_eq!(says(70, 0x1_0000_0001), EmptyLog::Next);
            assert_eq!(says(54, 71), EmptyLog::AfterGap);
            assert_eq!(says(-1, 71), EmptyLog::AfterGap);
            assert_eq!(says(70, 0x1_0000_0002), EmptyLog::AfterGap);
            let is_old = if has_header { EmptyLog::Next } else { EmptyLog::Lost };
            assert_eq!(says(70, 70), is_old);
            assert_eq!(says(70, 55), is_old);
        }
    }
}
