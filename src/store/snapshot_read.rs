//! Reading a snapshot back as a stream.

use std::convert::Infallible;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use byteorder::{BE, ByteOrder};
use simd_adler32::Adler32;

use super::disk::{Disk, Reading};
use super::names::Packing;
use super::packing::{GZIP_MAGIC, SNAPPY_MAGIC, Unpacker};
use super::snapshot::{DigestTrailer, HEADER_LEN, SEAL_LEN, SEAL_PATH, SNAPSHOT_MAGIC, Trailers};

/// How much is read at once.
const CHUNK: usize = 1 << 20;
/// More than all trailers take.
const TRAILERS_MAX: usize = 4096;
const DIGEST_LEN: usize = 20;
const ZXID_LEN: usize = 8;

/// How far the receiver of a body got with the bytes it was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Progress {
    /// Bytes taken from the front: whole items only. With 0, more bytes are read and all are given again.
    pub consumed: usize,
    /// The path "/" that ends the body is among them.
    pub finished: bool,
}

/// Why a snapshot could not be read. `E` is the error of the receiver of the body.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E> {
    #[error("read snapshot at {at}")]
    Io { at: u64, source: io::Error },
    #[error("snapshot begins with {magic:#x}, not with ZKSN")]
    Magic { magic: i32 },
    #[error("snapshot ends at {at}, in the middle of its body")]
    Short { at: u64 },
    #[error("seal at {at}: stored checksum {stored:#x}, the bytes give {actual:#x}")]
    Seal { at: u64, stored: i64, actual: u32 },
    #[error("decode snapshot after {at}")]
    Body { at: u64, source: E },
}

/// Opens a snapshot for a [`SnapshotReader`]; the end of its name says whether it is compressed.
///
/// # Errors
/// If the file can't be opened: the snapshot counts as damaged.
pub fn open<'d, D: Disk>(disk: &'d D, path: &Path) -> io::Result<impl Read + use<'d, D>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Unpacker::new(Packing::of(&name), Reading::open(disk, path)?))
}

/// As [`open`], for a file of any name: its first bytes show whether it is compressed.
///
/// # Errors
/// If the file can't be opened or its begin can't be read.
pub fn open_by_magic<'d, D: Disk>(disk: &'d D, path: &Path) -> io::Result<impl Read + use<'d, D>> {
    let reading = Reading::open(disk, path)?;
    let mut head = [0; SNAPPY_MAGIC.len()];
    let read = reading.read_at(0, &mut head)?;
    let packing = match &head[..read] {
        head if head.starts_with(&GZIP_MAGIC) => Packing::Gzip,
        head if head.starts_with(&SNAPPY_MAGIC) => Packing::Snappy,
        _ => Packing::Plain,
    };
    Ok(Unpacker::new(packing, reading))
}

/// Streams a snapshot out of any reader, such as one that decompresses a file.
pub struct SnapshotReader<R> {
    from: R,
    /// The file, for log lines.
    path: Option<PathBuf>,
    /// Bytes read and not yet consumed are `buffer[start..end]`; the rest of the buffer is free.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed.
    at: u64,
    adler: Adler32,
    /// The body and its seal are read.
    sealed: bool,
    /// Whether the end was reached: no more can be read.
    ended: bool,
    /// It ended in an error, which a start takes for the end.
    broke_off: bool,
}

impl<R: Read> SnapshotReader<R> {
    pub fn new(from: R) -> Self {
        let adler = Adler32::new();
        let buffer = Vec::new();
        Self {
            from,
            path: None,
            buffer,
            start: 0,
            end: 0,
            at: 0,
            adler,
            sealed: false,
            ended: false,
            broke_off: false,
        }
    }

    /// Names the file in log lines.
    #[must_use]
    pub fn of_file(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// Reads the whole file: header, body, seal, trailers.
    ///
    /// * `body`: see [`Progress`]. Called with 1 MiB or more while the file has it; only with less at its end.
    ///
    /// Trailers are distinguished by their lengths, not by settings as in Java, whose server takes a zxid trailer for a
    /// digest when the file was written with the digest off. They may be missing or truncated (D-28).
    ///
    /// # Errors
    /// [`ReadError`]; what `body` was given by then must be discarded.
    pub fn read<E>(
        &mut self,
        mut body: impl FnMut(&[u8]) -> Result<Progress, E>,
    ) -> Result<Trailers, ReadError<E>> {
        if !self.fill(HEADER_LEN)? {
            return Err(ReadError::Short { at: self.len() });
        }
        let magic = BE::read_i32(&self.buffer);
        if magic != SNAPSHOT_MAGIC {
            return Err(ReadError::Magic { magic });
        }
        self.consume(HEADER_LEN);
        self.fill(CHUNK)?;
        loop {
            let given = &self.buffer[self.start..self.end];
            let progress = body(given).map_err(|source| ReadError::Body { at: self.at, source })?;
            assert!(
                progress.consumed <= given.len(),
                "consumed {} of {}",
                progress.consumed,
                given.len()
            );
            let left = given.len() - progress.consumed;
            self.consume(progress.consumed);
            if progress.finished {
                break;
            }
            // An item is larger than the buffered bytes: reads twice as many, so that it is not tried again for each chunk.
            let wanted = if progress.consumed == 0 { 2 * left.max(CHUNK / 2) } else { CHUNK };
            if !self.fill(wanted)? && self.end - self.start == left && progress.consumed == 0 {
                return Err(ReadError::Short { at: self.len() });
            }
        }
        if !self.seal()? {
            return Err(ReadError::Short { at: self.len() });
        }
        self.sealed = true;
        self.trailers()
    }

    /// Whether the file ends, without an error, where [`Self::read`] has stopped. A start does not ask.
    pub fn is_at_end(&mut self) -> bool {
        let has_more = self.fill::<Infallible>(1);
        !self.broke_off && matches!(has_more, Ok(false))
    }

    fn trailers<E>(&mut self) -> Result<Trailers, ReadError<E>> {
        self.fill(TRAILERS_MAX)?;
        let mut found = Trailers::default();
        let left = self.end - self.start;
        if left != ZXID_LEN + SEAL_LEN && left != 0 {
            let rest = &self.buffer[self.start..self.end];
            let Some(digest) = digest_trailer(rest) else { return Ok(found) };
            self.consume(digest.len);
            if !self.seal()? {
                return Ok(found);
            }
            // Java writes zxid 0 or less when it has no digest.
            found.digest = digest.trailer.filter(|trailer| 0 < trailer.zxid);
        }
        if let Some(bytes) = self.buffer[self.start..self.end].first_chunk::<ZXID_LEN>() {
            let zxid = i64::from_be_bytes(*bytes);
            self.consume(ZXID_LEN);
            found.zxid = self.seal()?.then_some(zxid);
        }
        Ok(found)
    }

    /// Reads one seal; false when the file ends before it does.
    fn seal<E>(&mut self) -> Result<bool, ReadError<E>> {
        let actual = self.adler.finish();
        if !self.fill(SEAL_LEN)? {
            return Ok(false);
        }
        let bytes = &self.buffer[self.start..][..SEAL_LEN];
        let stored = BE::read_i64(bytes);
        if stored != i64::from(actual) || bytes[8..] != SEAL_PATH {
            return Err(ReadError::Seal { at: self.at, stored, actual });
        }
        self.consume(SEAL_LEN);
        Ok(true)
    }

    fn consume(&mut self, len: usize) {
        self.adler.write(&self.buffer[self.start..self.start + len]);
        self.start += len;
        self.at += len as u64;
    }

    /// Bytes consumed and buffered.
    fn len(&self) -> u64 {
        self.at + (self.end - self.start) as u64
    }

    /// Makes `len` bytes present; false when the file has fewer, all of which are present then.
    fn fill<E>(&mut self, len: usize) -> Result<bool, ReadError<E>> {
        if len <= self.end - self.start {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < len && !self.ended {
            if self.buffer.len() < len && self.buffer.len() - self.end < CHUNK / 2 {
                // Grows with what was read: twice what is there, or one chunk.
                self.buffer.resize(self.end + (len - self.end).min(self.end.max(CHUNK)), 0);
            }
            let at = self.at + self.end as u64;
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A compressed file that is truncated: it has no more bytes to give.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    (self.ended, self.broke_off) = (true, true);
                }
                Err(error) if self.sealed => {
                    // The state is whole; the trailers after it may be missing anyway.
                    tracing::warn!(
                        path = self.path.as_ref().map(|path| display(path.display())),
                        offset = at,
                        %error,
                        "can't read the trailers of a snapshot, so it is loaded without them: check the disk"
                    );
                    (self.ended, self.broke_off) = (true, true);
                }
                Err(source) => return Err(ReadError::Io { at, source }),
            }
        }
        Ok(len <= self.end)
    }
}

struct FoundDigest {
    /// `None` for a digest of an older version, which this server can't compute.
    trailer: Option<DigestTrailer>,
    /// Bytes it takes, its seal not counted.
    len: usize,
}

/// A digest trailer at the front of `bytes`; `None` when they end before it does.
fn digest_trailer(bytes: &[u8]) -> Option<FoundDigest> {
    let (zxid, version) = (BE::read_i64(bytes.get(..8)?), BE::read_i32(bytes.get(8..12)?));
    if version < 2 {
        // A string of hex digits there.
        let len = usize::try_from(BE::read_i32(bytes.get(12..16)?)).ok()?;
        return Some(FoundDigest { trailer: None, len: bytes.get(..16 + len)?.len() });
    }
    let digest = BE::read_i64(bytes.get(12..DIGEST_LEN)?);
    Some(FoundDigest { trailer: Some(DigestTrailer { zxid, version, digest }), len: DIGEST_LEN })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result<T> = std::result::Result<T, ReadError<&'static str>>;

    fn seal(bytes: &mut Vec<u8>) {
        let sum = i64::from(crate::store::record::adler32(bytes));
        bytes.extend_from_slice(&sum.to_be_bytes());
        bytes.extend_from_slice(&SEAL_PATH);
    }

    /// Items: a length, as many bytes. An empty one ends the body.
    fn file(items: &[&[u8]], trailers: &[&[u8]]) -> Vec<u8> {
        let mut bytes = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        for item in items.iter().chain([&&b""[..]]) {
            bytes.extend_from_slice(&(item.len() as u32).to_be_bytes());
            bytes.extend_from_slice(item);
        }
        seal(&mut bytes);
        for trailer in trailers {
            bytes.extend_from_slice(trailer);
            seal(&mut bytes);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, Trailers)> {
        let mut items = Vec::new();
        let trailers = SnapshotReader::new(bytes).read(|bytes| {
            let (mut consumed, mut finished) = (0, false);
            while let Some(head) = bytes[consumed..].first_chunk::<4>() {
                let len = u32::from_be_bytes(*head) as usize;
                let Some(item) = bytes.get(consumed + 4..consumed + 4 + len) else { break };
                consumed += 4 + len;
                if len == 0 {
                    finished = true;
                    break;
                }
                if item == b"bad" {
                    return Err("bad item");
                }
                items.push(item.to_vec());
            }
            Ok(Progress { consumed, finished })
        })?;
        Ok((items, trailers))
    }

    const DIGEST: &[u8] = b"\0\0\0\0\0\0\0\x1f\0\0\0\x02\0\0\0\0\0\0\0\x07";
    const ZXID: &[u8] = b"\0\0\0\0\0\0\0\x20";

    // rows: D-25 D-26 D-27 D-28
    #[test]
    fn trailers_are_distinguished_by_their_lengths() {
        let trailers = |trailers: &[&[u8]]| read(&file(&[b"a", b"bc"], trailers)).unwrap().1;
        let digest = Some(DigestTrailer { zxid: 0x1f, version: 2, digest: 7 });
        assert_eq!(trailers(&[]), Trailers::default());
        assert_eq!(trailers(&[DIGEST]), Trailers { digest, zxid: None });
        assert_eq!(trailers(&[ZXID]), Trailers { digest: None, zxid: Some(0x20) });
        assert_eq!(trailers(&[DIGEST, ZXID]), Trailers { digest, zxid: Some(0x20) });
        let old = b"\0\0\0\0\0\0\0\x1f\0\0\0\x01\0\0\0\x03abc";
        assert_eq!(trailers(&[old, ZXID]), Trailers { digest: None, zxid: Some(0x20) });
        let none = b"\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0";
        assert_eq!(trailers(&[none]), Trailers::default());
    }

    // rows: D-28
    #[test]
    fn truncated_trailers_are_ignored() {
        let whole = file(&[b"a"], &[]).len();
        let bytes = file(&[b"a"], &[DIGEST]);
        for len in whole..bytes.len() {
            // A zxid trailer has 21 bytes; its seal shows whether this is one.
            if len - whole != 21 {
                assert_eq!(read(&bytes[..len]).unwrap().1, Trailers::default());
            }
        }
    }

    // rows: D-25 D-31
    #[test]
    fn every_damaged_byte_is_detected() {
        let bytes = file(&[b"abc", b"def"], &[DIGEST, ZXID]);
        for at in 0..bytes.len() {
            if (4..16).contains(&at) {
                continue; // Version and dbid are not looked at, but the seal covers them: below.
            }
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            // Damage to a trailer's own numbers may make it look truncated; then it is ignored.
            if let Ok((_, trailers)) = read(&damaged) {
                assert!(trailers.digest.is_none() && at >= bytes.len() - 54, "byte {at}");
            }
        }
        let mut damaged = bytes.clone();
        damaged[12] ^= 1;
        assert!(matches!(read(&damaged), Err(ReadError::Seal { .. })));
        for len in 0..bytes.len() - 54 {
            assert!(matches!(read(&bytes[..len]), Err(ReadError::Short { .. })), "{len}");
        }
        assert!(matches!(read(&file(&[b"x", b"bad"], &[])), Err(ReadError::Body { at: 16, .. })));
        assert!(matches!(read(b"ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0"), Err(ReadError::Magic { .. })));
    }

    #[test]
    fn items_across_chunks_and_larger_than_many_are_read() {
        let mut items = vec![vec![1; 1000]; 3000];
        items.push(vec![2; 5 * CHUNK + 3]);
        items.push(vec![3; 10]);
        let refs: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        assert!(read(&file(&refs, &[DIGEST])).unwrap().0 == items);
    }

    #[test]
    fn a_length_without_bytes_allocates_little() {
        let mut bytes = file(&[b"a"], &[]);
        bytes[16..20].copy_from_slice(&[0xff; 4]);
        let mut reader = SnapshotReader::new(&bytes[..]);
        let result: Result<_> = reader.read(|_| Ok(Progress { consumed: 0, finished: false }));
        assert!(matches!(result, Err(ReadError::Short { .. })));
        assert!(reader.buffer.capacity() <= 4 * CHUNK);
    }
}
