//! One log file's bytes: header, records, padding.
//!
//! ```text
//! header   i32 "ZKLG"   i32 version 2   i64 dbid 0
//! record   i64 Adler-32 of the entry   i32 length   entry   byte 0x42
//! padding  zeros
//! ```
//!
//! Source: `FileTxnLog`, `Util.readTxnBytes`, ZooKeeper 3.9 (D-40, D-41, D-45, D-46).

use std::fmt;
use std::io;

use byteorder::{BE, ByteOrder};
use simd_adler32::Adler32;

/// "ZKLG".
pub const LOG_MAGIC: i32 = 0x5a4b_4c47;
pub const LOG_VERSION: i32 = 2;
/// Bytes before the first record.
pub const HEADER_LEN: u64 = 16;
/// Bytes of checksum and length before an entry.
const HEAD_LEN: usize = 12;
const END_MARK: u8 = 0x42;
/// How much is read at once: large enough to stream, small compared with a server's memory.
const CHUNK: usize = 1 << 20;

/// The header of a new log file.
pub fn header() -> [u8; HEADER_LEN as usize] {
    let mut bytes = [0; HEADER_LEN as usize];
    BE::write_i32(&mut bytes[..4], LOG_MAGIC);
    BE::write_i32(&mut bytes[4..8], LOG_VERSION);
    bytes
}

/// Appends one record to `to`.
///
/// # Panics
/// When the entry is empty, which readers take for the end of the log, or above 2 GiB: a bug of the caller.
pub fn put_record(entry: &[u8], to: &mut Vec<u8>) {
    let len = i32::try_from(entry.len()).expect("an entry fits its length field");
    assert!(len != 0, "an empty entry would end the log");
    to.reserve(HEAD_LEN + entry.len() + 1);
    to.extend_from_slice(&i64::from(adler32(entry)).to_be_bytes());
    to.extend_from_slice(&len.to_be_bytes());
    to.extend_from_slice(entry);
    to.push(END_MARK);
}

/// Bytes that an entry of `len` bytes takes in a file.
pub const fn record_len(len: usize) -> u64 {
    (HEAD_LEN + len + 1) as u64
}

pub fn adler32(bytes: &[u8]) -> u32 {
    simd_adler32::adler32(&bytes)
}

/// The zxid in an entry's TxnHeader (D-42), unchecked; `None` when the entry is too short to have one.
pub fn entry_zxid(entry: &[u8]) -> Option<i64> {
    // clientId i64, cxid i32, then the zxid.
    entry.get(12..20).map(BE::read_i64)
}

/// The time in an entry's TxnHeader (D-42), in milliseconds since 1970; 0 when the entry is too short to have one.
fn entry_time_ms(entry: &[u8]) -> i64 {
    entry.get(20..28).map_or(0, BE::read_i64)
}

/// Whole records after a place that is in none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WholeAfter {
    /// Offset of the first.
    pub first_at: u64,
    /// Offset after the last.
    pub end: u64,
    /// The least and the greatest time of theirs, in milliseconds since 1970.
    pub times_ms: (i64, i64),
}

/// Bytes that can be read at any place: a file, or a slice in tests and fuzzing.
pub trait Source {
    /// Length in bytes; fixed while it is read.
    fn len(&self) -> u64;
    /// Bytes from offset `at`; 0 only at the end.
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize>;
    /// An offset not before `at`; the bytes before it are zeros. It spares reading what was never written.
    fn written_from(&mut self, at: u64) -> io::Result<u64> {
        Ok(at)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// What a log file begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Head {
    /// A header; its dbid and version are not checked, as in Java.
    Good,
    /// Fewer bytes than a header, or as many zeros: the file was created, but its header never became durable.
    Short,
    /// Nothing but zeros, and more of them: Java makes a file longer before its header is durable.
    Zeros,
    /// Another magic number, or zeros where the header should be with data after them.
    Bad { magic: i32 },
}

/// Why the records of a file end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopKind {
    /// The file ends, or zeros begin, where a record would.
    Clean,
    /// The record asks for more bytes than the file has.
    Truncated { len: i32 },
    /// The byte after the entry is not 0x42.
    NoEndMark { len: i32 },
    /// A negative length.
    Length { len: i32 },
    /// The entry does not match its checksum.
    Checksum { len: i32, stored: i64, actual: u32 },
}

impl fmt::Display for StopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("the file or its written part ends"),
            Self::Truncated { len } => {
                write!(f, "a record of {len} bytes goes beyond the file's end")
            }
            Self::NoEndMark { len } => write!(f, "no end mark after a record of {len} bytes"),
            Self::Length { len } => write!(f, "a record of {len} bytes"),
            Self::Checksum { len, stored, actual } => {
                write!(
                    f,
                    "a record of {len} bytes with checksum {actual:#x} instead of {stored:#x}"
                )
            }
        }
    }
}

/// Where and why the records of a file end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stop {
    /// Offset of the first byte that is in no whole record.
    pub at: u64,
    pub kind: StopKind,
}

/// The next record of a file, or the end of its records.
#[derive(Debug)]
pub enum Step<'a> {
    Record { at: u64, entry: &'a [u8] },
    Stop(Stop),
}

/// Reads the records of one file, front to back, in chunks of 1 MiB.
///
/// Memory: one chunk, or one record when that is larger, and never more than the file has bytes. A record has no
/// other limit: a server must be able to load what it has written.
pub struct Records<S> {
    source: S,
    /// Bytes read and not yet returned are `buffer[start..]`; they are the file's from `at` on.
    buffer: Vec<u8>,
    start: usize,
    at: u64,
}

impl<S: Source> Records<S> {
    pub fn new(source: S) -> Self {
        Self { source, buffer: Vec::new(), start: 0, at: 0 }
    }

    /// Offset after the last record returned.
    pub const fn at(&self) -> u64 {
        self.at
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads the header; to be called once, first.
    ///
    /// # Errors
    /// Those of the source.
    pub fn head(&mut self) -> io::Result<Head> {
        if !self.fill(HEADER_LEN)? {
            return Ok(Head::Short);
        }
        let magic = BE::read_i32(&self.buffer[self.start..]);
        if magic != LOG_MAGIC {
            return Ok(match self.rest_is_zero()? {
                true if self.source.len() == HEADER_LEN => Head::Short,
                true => Head::Zeros,
                false => Head::Bad { magic },
            });
        }
        self.advance(HEADER_LEN as usize);
        Ok(Head::Good)
    }

    /// The next record, or where and why the records end; after a stop every call returns that stop.
    ///
    /// # Errors
    /// Those of the source.
    pub fn step(&mut self) -> io::Result<Step<'_>> {
        let at = self.at;
        let stop = |kind| Ok(Step::Stop(Stop { at, kind }));
        if !self.fill(HEAD_LEN as u64)? {
            // Fewer bytes than a record's head: the end of a file without padding, or of a torn one.
            return stop(StopKind::Clean);
        }
        let head = &self.buffer[self.start..];
        let (stored, len) = (BE::read_i64(head), BE::read_i32(&head[8..]));
        let entry_len = match usize::try_from(len) {
            Err(_) => return stop(StopKind::Length { len }),
            Ok(0) => return stop(StopKind::Clean),
            Ok(entry_len) => entry_len,
        };
        if !self.fill(record_len(entry_len))? {
            return stop(StopKind::Truncated { len });
        }
        let record = &self.buffer[self.start..][..record_len(entry_len) as usize];
        if record.last() != Some(&END_MARK) {
            return stop(StopKind::NoEndMark { len });
        }
        let actual = adler32(&record[HEAD_LEN..HEAD_LEN + entry_len]);
        if stored != i64::from(actual) {
            return stop(StopKind::Checksum { len, stored, actual });
        }
        let from = self.start + HEAD_LEN;
        self.advance(record_len(entry_len) as usize);
        Ok(Step::Record { at, entry: &self.buffer[from..from + entry_len] })
    }

    /// True when a 512-byte sector with bytes of the record at the current place holds only zeros, from the record's begin on.
    ///
    /// A lost write leaves such a sector in a file that was zeros before, as our own files are after their last record, and what was in
    /// that sector before the record stays. Bit rot does not.
    ///
    /// * `len`: of the entry. Where the records end with zeros, 0: then the sectors of the record's length are looked at.
    ///
    /// # Errors
    /// Those of the source.
    pub fn has_zero_sector(&mut self, len: i32) -> io::Result<bool> {
        const SECTOR: u64 = 512;
        // The checksum's upper half is always zero, so it is left out.
        let (from, end) = match usize::try_from(len).unwrap_or(0) {
            0 => (self.at + 8, self.at + HEAD_LEN as u64),
            len => (self.at + 4, self.at + record_len(len)),
        };
        let (mut sector, mut bytes) = (from / SECTOR * SECTOR, [0; SECTOR as usize]);
        while sector < end.min(self.source.len()) {
            let begin = sector.max(self.at + 4);
            let wanted = &mut bytes[..(sector + SECTOR - begin) as usize];
            let read = self.source.read_at(begin, wanted)?;
            if wanted[..read].iter().all(|&byte| byte == 0) {
                return Ok(true);
            }
            sector += SECTOR;
        }
        Ok(false)
    }

    /// True when only the length or only the end mark of the record at the current place is wrong. That is bit rot, since what
    /// a crash leaves unwritten is zeros.
    ///
    /// # Errors
    /// Those of the source.
    pub fn is_whole_otherwise(&mut self) -> io::Result<bool> {
        if !self.fill(HEAD_LEN as u64)? {
            return Ok(false);
        }
        let head = &self.buffer[self.start..][..HEAD_LEN];
        let (stored, len) = (BE::read_i64(head), BE::read_i32(&head[8..]));
        let Some(stored) = u32::try_from(stored).ok().filter(|&stored| stored != 0) else {
            return Ok(false);
        };
        // The length is right and the end mark is wrong. A mark that was never written would be 0.
        let there = record_len(usize::try_from(len).unwrap_or(0));
        if 0 < len && self.fill(there)? {
            let (entry, mark) = self.buffer[self.start..][HEAD_LEN..there as usize]
                .split_at(there as usize - HEAD_LEN - 1);
            if mark != [0] && adler32(entry) == stored {
                return Ok(true);
            }
        }
        // The length is wrong: then the record may end at any byte 0x42.
        let mut sum = Adler32::new();
        let mut place = self.at + HEAD_LEN as u64;
        let mut chunk = vec![0; CHUNK.min(self.source.len() as usize)];
        loop {
            let read = self.source.read_at(place, &mut chunk)?;
            for piece in chunk[..read].split_inclusive(|&byte| byte == END_MARK) {
                let before = piece.strip_suffix(&[END_MARK]);
                sum.write(before.unwrap_or(piece));
                if before.is_some() {
                    if sum.finish() == stored {
                        return Ok(true);
                    }
                    sum.write(&[END_MARK]);
                }
            }
            if read == 0 {
                return Ok(false);
            }
            place += read as u64;
        }
    }

    /// Searches everything after the current place for whole records.
    ///
    /// Byte by byte, since after damage no record boundary is known. For a false match an Adler-32 and five more bytes
    /// would have to agree by chance.
    ///
    /// # Errors
    /// Those of the source.
    pub fn whole_records_after(mut self) -> io::Result<Option<WholeAfter>> {
        let mut found: Option<WholeAfter> = None;
        if self.fill(1)? {
            self.advance(1);
        }
        while self.fill(HEAD_LEN as u64)? {
            let head = &self.buffer[self.start..];
            // The checksum is 32 bits in a field of 64, and the length is positive: this rejects nearly all places.
            let may_be_head = head[..4] == [0; 4] && head[8] & 0x80 == 0 && head[8..12] != [0; 4];
            if may_be_head && let Step::Record { at, entry } = self.step()? {
                let time_ms = entry_time_ms(entry);
                let end = at + record_len(entry.len());
                found = Some(match found {
                    None => WholeAfter { first_at: at, end, times_ms: (time_ms, time_ms) },
                    Some(WholeAfter { first_at, times_ms: (least, most), .. }) => {
                        let times_ms = (least.min(time_ms), most.max(time_ms));
                        WholeAfter { first_at, end, times_ms }
                    }
                });
            } else {
                self.advance(1);
            }
        }
        Ok(found)
    }

    /// True when nothing but zeros is left.
    ///
    /// # Errors
    /// Those of the source.
    pub fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut at = self.at;
        let mut chunk = vec![0; CHUNK.min(self.source.len() as usize)];
        loop {
            at = self.source.written_from(at)?;
            let read = self.source.read_at(at, &mut chunk)?;
            // All bytes of the chunk, since a loop that may end early is much slower.
            if chunk[..read].iter().fold(0, |all, byte| all | byte) != 0 {
                return Ok(false);
            }
            if read == 0 {
                return Ok(true);
            }
            at += read as u64;
        }
    }

    fn advance(&mut self, len: usize) {
        self.start += len;
        self.at += len as u64;
    }

    /// Makes `len` bytes from the current place present; false when the file has fewer.
    fn fill(&mut self, len: u64) -> io::Result<bool> {
        if len <= (self.buffer.len() - self.start) as u64 {
            return Ok(true);
        }
        if self.source.len() < self.at.saturating_add(len) {
            return Ok(false);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        while (self.buffer.len() as u64) < len {
            // Grows with what was read, not with what the length field says.
            let held = self.buffer.len();
            let left = self.source.len() - (self.at + held as u64);
            self.buffer.resize(held + left.min(CHUNK as u64) as usize, 0);
            let read = self.source.read_at(self.at + held as u64, &mut self.buffer[held..])?;
            self.buffer.truncate(held + read);
            if read == 0 {
                return Ok(false); // Another process truncated the file meanwhile.
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entries: &[&[u8]]) -> Vec<u8> {
        let mut bytes = header().to_vec();
        entries.iter().for_each(|entry| put_record(entry, &mut bytes));
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Stop) {
        let mut records = Records::new(bytes);
        assert_eq!(records.head().unwrap(), Head::Good);
        let mut entries = Vec::new();
        loop {
            match records.step().unwrap() {
                Step::Record { entry, .. } => entries.push(entry.to_vec()),
                Step::Stop(stop) => return (entries, stop),
            }
        }
    }

    // rows: D-40 D-41
    #[test]
    fn log_file_has_javas_bytes() {
        let bytes = file(&[b"abc"]);
        assert_eq!(&bytes[..16], b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0");
        // Adler-32 of "abc" is 0x024d0127.
        assert_eq!(&bytes[16..], b"\0\0\0\0\x02\x4d\x01\x27\0\0\0\x03abc\x42");
    }

    // rows: D-45 D-46 G-12
    #[test]
    fn every_kind_of_end_is_recognised() {
        let whole = file(&[b"one", b"two"]);
        let (at, second) = (whole.len() as u64, 16 + record_len(3));
        let ends = |bytes: &[u8], at, kind| assert_eq!(read(bytes).1, Stop { at, kind });
        ends(&whole, at, StopKind::Clean);
        ends(&[&whole[..], &[0; 100]].concat(), at, StopKind::Clean);
        ends(&[&whole[..], &[0; 11]].concat(), at, StopKind::Clean);
        ends(&whole[..whole.len() - 1], second, StopKind::Truncated { len: 3 });
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() = 0;
        ends(&damaged, second, StopKind::NoEndMark { len: 3 });
        let mut damaged = whole.clone();
        damaged[second as usize + 12] ^= 1;
        assert!(matches!(read(&damaged).1.kind, StopKind::Checksum { len: 3, .. }));
        let mut damaged = whole;
        damaged[second as usize + 8] = 0xff;
        assert!(matches!(read(&damaged).1.kind, StopKind::Length { .. }));
    }

    // rows: D-47
    #[test]
    fn unwritten_header_is_distinguished_from_a_bad_one() {
        let head = |bytes: &[u8]| Records::new(bytes).head().unwrap();
        assert_eq!(head(b""), Head::Short);
        assert_eq!(head(&header()[..15]), Head::Short);
        assert_eq!(head(&[0; 16]), Head::Short);
        assert_eq!(head(&[0; 17]), Head::Zeros);
        assert_eq!(head(&[0; 3 << 20]), Head::Zeros);
        assert_eq!(head(b"ZKSN\0\0\0\x02\0\0\0\0\0\0\0\0"), Head::Bad { magic: 0x5a4b_534e });
        let mut late = vec![0; 2 << 20];
        late.push(1);
        assert_eq!(head(&late), Head::Bad { magic: 0 });
    }

    #[test]
    fn records_across_chunks_and_larger_than_a_chunk_are_read() {
        let large = vec![7; 3 * CHUNK + 5];
        let mut small = vec![vec![1; 1000]; 3000];
        small.push(large);
        small.push(vec![2]);
        let entries: Vec<&[u8]> = small.iter().map(Vec::as_slice).collect();
        let (found, stop) = read(&file(&entries));
        assert_eq!(found, small);
        assert_eq!(stop.kind, StopKind::Clean);
    }

    #[test]
    fn a_length_without_bytes_allocates_nothing() {
        let mut bytes = file(&[]);
        bytes.extend_from_slice(b"\0\0\0\0\0\0\0\x01\x7f\xff\xff\xff");
        let mut records = Records::new(&bytes[..]);
        records.head().unwrap();
        let step = records.step().unwrap();
        assert!(matches!(step, Step::Stop(Stop { kind: StopKind::Truncated { .. }, .. })));
        assert!(records.buffer.capacity() < 1000);
    }

    #[test]
    fn whole_records_are_found_after_damage() {
        let mut bytes = file(&[b"first", b"second", b"third"]);
        let end = bytes.len() as u64;
        bytes[16 + 9] = 0x7f;
        bytes.extend_from_slice(&[0; 5000]);
        let mut records = Records::new(&bytes[..]);
        records.head().unwrap();
        let after = records.whole_records_after().unwrap();
        let first_at = 16 + record_len(5);
        assert_eq!(after, Some(WholeAfter { first_at, end, times_ms: (0, 0) }));
    }

    // rows: D-45
    #[test]
    fn record_with_a_damaged_length_or_end_mark_is_recognised() {
        let bytes = file(&[b"first", &[0; 40], b"third"]);
        let second = 16 + record_len(5) as usize;
        let mark = second + HEAD_LEN + 40;
        let known = |at: usize, value: u8| {
            let mut bytes = [&bytes[..], &[0; 5000]].concat();
            bytes[at] = value;
            let mut records = Records::new(&bytes[..]);
            records.head().unwrap();
            while let Step::Record { .. } = records.step().unwrap() {}
            assert_eq!(records.at(), second as u64, "{at}");
            records.is_whole_otherwise().unwrap()
        };
        assert!(known(mark, 0x43));
        assert!(!known(mark, 0), "a torn flush leaves that");
        for at in second + 8..second + 12 {
            assert!(known(at, 0x0f));
        }
        assert!(!known(second + HEAD_LEN, 1), "a damaged entry is found by its checksum");
        assert!(!known(second, 0x80), "a damaged checksum is not recognised here");
        let mut none = Records::new(&bytes[..]);
        none.head().unwrap();
        while let Step::Record { .. } = none.step().unwrap() {}
        assert!(!none.is_whole_otherwise().unwrap(), "no record is left");
    }

    #[test]
    fn zero_sector_distinguishes_a_lost_write_from_bit_rot() {
        let entry = vec![9; 3000];
        let mut bytes = file(&[&entry]);
        let lost = |bytes: &[u8]| {
            let mut records = Records::new(bytes);
            records.head().unwrap();
            let Step::Stop(Stop { kind, .. }) = records.step().unwrap() else {
                panic!("damage not seen");
            };
            let (StopKind::Checksum { len, .. } | StopKind::NoEndMark { len }) = kind else {
                panic!("{kind}");
            };
            records.has_zero_sector(len).unwrap()
        };
        bytes[1000] ^= 1;
        assert!(!lost(&bytes));
        let zeros = |from: usize, to: usize| {
            let mut bytes = bytes.clone();
            bytes[from..to].fill(0);
            bytes
        };
        assert!(lost(&zeros(1024, 1536)));
        assert!(
            !lost(&zeros(1025, 1537)) && !lost(&zeros(1025, 1536)) && !lost(&zeros(1024, 1535))
        );
        let last = bytes.len() / 512 * 512;
        assert!(lost(&[&zeros(last, bytes.len())[..], &[0; 512]].concat()));
        assert!(
            !lost(&[&zeros(last, bytes.len())[..], &[7; 512]].concat()),
            "what follows was written"
        );
    }

    proptest::proptest! {
        #[test]
        fn damaged_bytes_never_cause_a_panic(damage in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 1..20)) {
            let mut bytes = file(&[&[1; 100], &[0; 100], &[3; 100]]);
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let mut records = Records::new(&bytes[..]);
            if records.head().unwrap() == Head::Good {
                while let Step::Record { .. } = records.step().unwrap() {}
                let len = bytes.len() as i32;
                for len in [-1, 0, 100, len, i32::MAX] {
                    records.has_zero_sector(len).unwrap();
                }
                let after = records.whole_records_after().unwrap();
                assert!(after.is_none_or(|after| after.end <= bytes.len() as u64));
            }
        }
    }
}
