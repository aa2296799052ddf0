//! The records of a log file as Java's tools read them: one after the other, without a judgement of what they find.
//!
//! [`record::Records`](super::record::Records) stops at the first damage; these go on, so that damage can be shown and repaired.

use std::io::{self, BufRead};

use byteorder::{BE, ByteOrder};

use super::record::{HEADER_LEN, adler32};

/// The largest entry that Java's tools accept with default settings. Ours accept what the file has.
const JAVA_ENTRY_MAX: i32 = 2 * 0xf_ffff;

/// The header of a log file, unchecked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    pub magic: i32,
    pub version: i32,
    pub dbid: i64,
}

impl Header {
    /// The bytes in the file.
    pub fn to_bytes(self) -> [u8; HEADER_LEN as usize] {
        let mut bytes = [0; HEADER_LEN as usize];
        BE::write_i32(&mut bytes[..4], self.magic);
        BE::write_i32(&mut bytes[4..8], self.version);
        BE::write_i64(&mut bytes[8..], self.dbid);
        bytes
    }
}

/// One record, damaged or not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RawRecord<'a> {
    /// Checksum in the file.
    pub stored: i64,
    pub entry: &'a [u8],
    /// The byte after the entry, which should be 0x42; `None`: the file ends.
    pub end_mark: Option<u8>,
}

impl RawRecord<'_> {
    /// Checksum of the entry.
    pub fn actual(&self) -> i64 {
        i64::from(adler32(self.entry))
    }

    pub const fn has_end_mark(&self) -> bool {
        matches!(self.end_mark, Some(b'B'))
    }
}

/// What comes next in the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RawStep<'a> {
    Record(RawRecord<'a>),
    /// The file ends, in a record or not, or zeros begin.
    End,
    /// A length that no record has.
    Length(i32),
}

/// Reads records front to back. Memory: the largest entry.
pub struct RawRecords<R> {
    from: R,
    entry: Vec<u8>,
}

impl<R: BufRead> RawRecords<R> {
    pub const fn new(from: R) -> Self {
        Self { from, entry: Vec::new() }
    }

    /// Reads the header; to be called once, first.
    ///
    /// # Errors
    /// Those of the reader; [`io::ErrorKind::UnexpectedEof`] when the file is shorter.
    pub fn header(&mut self) -> io::Result<Header> {
        let mut bytes = [0; HEADER_LEN as usize];
        self.from.read_exact(&mut bytes)?;
        let (magic, version) = (BE::read_i32(&bytes), BE::read_i32(&bytes[4..]));
        Ok(Header { magic, version, dbid: BE::read_i64(&bytes[8..]) })
    }

    /// The next record.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn step(&mut self) -> io::Result<RawStep<'_>> {
        let mut head = [0; 12];
        if !self.filled(&mut head)? {
            return Ok(RawStep::End);
        }
        let (stored, len) = (BE::read_i64(&head), BE::read_i32(&head[8..]));
        let Ok(wanted) = usize::try_from(len) else { return Ok(RawStep::Length(len)) };
        if wanted == 0 {
            return Ok(RawStep::End);
        }
        if self.entry(wanted)? < wanted {
            let is_for_java = len <= JAVA_ENTRY_MAX;
            return Ok(if is_for_java { RawStep::End } else { RawStep::Length(len) });
        }
        let mut mark = [0; 1];
        let end_mark = self.filled(&mut mark)?.then_some(mark[0]);
        Ok(RawStep::Record(RawRecord { stored, entry: &self.entry, end_mark }))
    }

    /// Reads an entry that should be `wanted` bytes long. Returns how many are there.
    fn entry(&mut self, wanted: usize) -> io::Result<usize> {
        self.entry.clear();
        while self.entry.len() < wanted {
            let there = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                there => there?,
            };
            let taken = there.len().min(wanted - self.entry.len());
            if taken == 0 {
                break;
            }
            // Grows with what is there, not with what the length says.
            self.entry.extend_from_slice(&there[..taken]);
            self.from.consume(taken);
        }
        Ok(self.entry.len())
    }

    /// Fills `into`; `false`: the file ends first.
    fn filled(&mut self, into: &mut [u8]) -> io::Result<bool> {
        match self.from.read_exact(into) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record;

    #[test]
    fn damaged_records_are_given_as_they_are() {
        let mut bytes = record::header().to_vec();
        record::put_record(b"first", &mut bytes);
        record::put_record(b"second", &mut bytes);
        bytes[16 + 12] = b'F';
        let end = bytes.len();
        let mut records = RawRecords::new(&bytes[..end - 1]);
        assert_eq!(records.header().unwrap().to_bytes(), record::header());
        let RawStep::Record(first) = records.step().unwrap() else { panic!("no record") };
        assert!(first.entry == b"First" && first.stored != first.actual() && first.has_end_mark());
        let RawStep::Record(second) = records.step().unwrap() else { panic!("no record") };
        assert!(second.stored == second.actual() && second.end_mark.is_none());
        assert_eq!(records.step().unwrap(), RawStep::End);
    }

    #[test]
    fn lengths_are_not_believed() {
        let step = |len: i32| {
            let bytes = [&[0; 8][..], &len.to_be_bytes(), &[1; 100]].concat();
            let mut records = RawRecords::new(&bytes[..]);
            let step = records.step().unwrap();
            let found = match step {
                RawStep::Record(_) => "record".to_owned(),
                other => format!("{other:?}"),
            };
            assert!(records.entry.capacity() < 4096);
            found
        };
        assert_eq!([step(99), step(100), step(101), step(0)], ["record", "record", "End", "End"]);
        assert_eq!(step(i32::MAX), format!("Length({})", i32::MAX));
        assert_eq!(step(-1), "Length(-1)");
    }
}
