//! Compressed snapshots: how Java's streams wrap the bytes of a snapshot in gzip or snappy (D-29).
//!
//! ```text
//! .gz       one gzip member, or several in a row
//! .snappy   82 "SNAPPY" 00   i32 version 1   i32 oldest version that can read it 1
//!           then per block: i32 length   one raw snappy block of at most 32 KiB unpacked
//! ```
//!
//! This is snappy-java's framing, not the official one. The header may come again where a block would, as in a file
//! concatenated from several. Checksums of a snapshot are over the uncompressed bytes.
//!
//! Source: `SnapStream`, ZooKeeper 3.9; `SnappyOutputStream`, `SnappyInputStream`, snappy-java 1.1.10.

use std::io::{self, BufReader, Read, Write};

use byteorder::{BE, ByteOrder};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::names::Packing;

pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
pub(super) const SNAPPY_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const SNAPPY_HEADER_LEN: usize = 16;
const SNAPPY_VERSION: i32 = 1;
/// Unpacked bytes of a block, as Java writes them.
const SNAPPY_BLOCK: usize = 32 << 10;
/// A snappy element of three bytes stands for 64 at the most, so no block unpacks to more than this many times itself.
const SNAPPY_RATIO_MAX: usize = 22;
/// Packed bytes read at once.
const READ_AHEAD: usize = 256 << 10;

/// Compresses a snapshot while it is written. Memory: one block, or gzip's window.
pub(super) enum Packer {
    Plain,
    Gzip(Box<GzEncoder<Vec<u8>>>),
    Snappy(Box<SnappyPacker>),
}

impl Packer {
    pub fn new(packing: Packing) -> Self {
        match packing {
            Packing::Plain => Self::Plain,
            // Java's level: 6.
            Packing::Gzip => {
                Self::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::default())))
            }
            Packing::Snappy => Self::Snappy(Box::new(SnappyPacker::new())),
        }
    }

    /// Packs `bytes` and appends to `to` what is ready.
    ///
    /// # Errors
    /// Only for a bug of the compression crate: it writes to memory.
    pub fn pack(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Plain => to.extend_from_slice(bytes),
            Self::Gzip(encoder) => {
                encoder.write_all(bytes)?;
                to.append(encoder.get_mut());
            }
            Self::Snappy(packer) => packer.pack(bytes, to)?,
        }
        Ok(())
    }

    /// Appends what is left.
    ///
    /// # Errors
    /// As [`Packer::pack`].
    pub fn finish(&mut self, to: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Plain => Ok(()),
            Self::Gzip(encoder) => {
                encoder.try_finish()?;
                to.append(encoder.get_mut());
                Ok(())
            }
            Self::Snappy(packer) => packer.put_block(to),
        }
    }
}

pub(super) struct SnappyPacker {
    has_header: bool,
    /// Not packed yet: less than a block.
    block: Vec<u8>,
    encoder: snap::raw::Encoder,
}

impl SnappyPacker {
    fn new() -> Self {
        Self { has_header: false, block: Vec::new(), encoder: snap::raw::Encoder::new() }
    }

    fn pack(&mut self, mut bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        while SNAPPY_BLOCK <= self.block.len() + bytes.len() {
            let (now, later) = bytes.split_at(SNAPPY_BLOCK - self.block.len());
            self.block.extend_from_slice(now);
            self.put_block(to)?;
            bytes = later;
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    fn put_block(&mut self, to: &mut Vec<u8>) -> io::Result<()> {
        if !self.has_header {
            to.extend_from_slice(&SNAPPY_MAGIC);
            to.extend_from_slice(&SNAPPY_VERSION.to_be_bytes());
            to.extend_from_slice(&SNAPPY_VERSION.to_be_bytes());
            self.has_header = true;
        }
        if self.block.is_empty() {
            return Ok(());
        }
        let start = to.len();
        to.resize(start + 4 + snap::raw::max_compress_len(self.block.len()), 0);
        let len = self.encoder.compress(&self.block, &mut to[start + 4..])?;
        BE::write_u32(&mut to[start..], len as u32);
        to.truncate(start + 4 + len);
        self.block.clear();
        Ok(())
    }
}

/// Decompresses a snapshot.
///
/// A truncated file is [`io::ErrorKind::UnexpectedEof`]; bytes that no compressor wrote are another error.
pub(super) enum Unpacker<R> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Snappy(Box<SnappyReader<BufReader<R>>>),
}

impl<R: Read> Unpacker<R> {
    pub fn new(packing: Packing, from: R) -> Self {
        let buffered = |from| BufReader::with_capacity(READ_AHEAD, from);
        match packing {
            Packing::Plain => Self::Plain(from),
            Packing::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(buffered(from)))),
            Packing::Snappy => Self::Snappy(Box::new(SnappyReader::new(buffered(from)))),
        }
    }
}

impl<R: Read> Read for Unpacker<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(from) => from.read(into),
            Self::Gzip(from) => from.read(into),
            Self::Snappy(from) => from.read(into),
        }
    }
}

pub(super) struct SnappyReader<R> {
    from: R,
    begun: bool,
    packed: Vec<u8>,
    /// Unpacked and not returned yet: `block[at..]`.
    block: Vec<u8>,
    at: usize,
    decoder: snap::raw::Decoder,
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl<R: Read> SnappyReader<R> {
    fn new(from: R) -> Self {
        let decoder = snap::raw::Decoder::new();
        Self { from, begun: false, packed: Vec::new(), block: Vec::new(), at: 0, decoder }
    }

    /// Unpacks the next block; `false` at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        loop {
            let mut head = [0; 4];
            if !self.begun {
                self.from.read_exact(&mut head)?;
                self.read_header(head)?;
                self.begun = true;
            }
            if self.from.read(&mut head[..1])? == 0 {
                return Ok(false);
            }
            self.from.read_exact(&mut head[1..])?;
            if head == SNAPPY_MAGIC[..4] {
                self.read_header(head)?;
                continue;
            }
            let len = BE::read_i32(&head);
            let len =
                u64::try_from(len).map_err(|_| invalid(format!("snappy block of {len} bytes")))?;
            self.packed.clear();
            // Grows with what is there, not with what the length says.
            if (&mut self.from).take(len).read_to_end(&mut self.packed)? as u64 != len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unpack()?;
            return Ok(true);
        }
    }

    fn read_header(&mut self, start: [u8; 4]) -> io::Result<()> {
        let mut header = [0; SNAPPY_HEADER_LEN];
        header[..4].copy_from_slice(&start);
        self.from.read_exact(&mut header[4..])?;
        let version = BE::read_i32(&header[8..]);
        if header[..8] != SNAPPY_MAGIC || version < SNAPPY_VERSION {
            return Err(invalid(format!(
                "no header of a snappy stream: {}",
                header.escape_ascii()
            )));
        }
        Ok(())
    }

    fn unpack(&mut self) -> io::Result<()> {
        let len = snap::raw::decompress_len(&self.packed)?;
        if self.packed.len().saturating_mul(SNAPPY_RATIO_MAX) < len {
            return Err(invalid(format!("snappy block of {} bytes says {len}", self.packed.len())));
        }
        self.block.resize(len, 0);
        self.at = 0;
        self.decoder.decompress(&self.packed, &mut self.block)?;
        Ok(())
    }
}

impl<R: Read> Read for SnappyReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let len = into.len().min(self.block.len() - self.at);
        into[..len].copy_from_slice(&self.block[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::record::adler32;

    /// Half of it repeats itself, half does not.
    fn sample(len: usize) -> Vec<u8> {
        let mut state = 7u32;
        let byte = |at: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if (at / 512).is_multiple_of(2) { (state >> 24) as u8 } else { b'x' }
        };
        (0..len).map(byte).collect()
    }

    fn packed(packing: Packing, parts: &[&[u8]]) -> Vec<u8> {
        let (mut packer, mut to) = (Packer::new(packing), Vec::new());
        parts.iter().for_each(|part| packer.pack(part, &mut to).unwrap());
        packer.finish(&mut to).unwrap();
        to
    }

    fn unpacked(packing: Packing, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut to = Vec::new();
        Unpacker::new(packing, bytes).read_to_end(&mut to)?;
        Ok(to)
    }

    // rows: D-29
    #[test]
    fn parts_of_any_size_are_compressed_and_decompressed() {
        let bytes = sample(300_000);
        for packing in [Packing::Gzip, Packing::Snappy] {
            let cuts = [0, 1, 32_767, 32_769, 98_304, 98_305, 300_000];
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let file = packed(packing, &parts);
            assert!(file.len() < 200_000);
            assert!(unpacked(packing, &file).unwrap() == bytes);
            // Two streams in one file are one.
            let twice = [&file[..], &file[..]].concat();
            assert!(unpacked(packing, &twice).unwrap() == [&bytes[..], &bytes[..]].concat());
            assert!(unpacked(packing, &packed(packing, &[])).unwrap().is_empty());
        }
    }

    // rows: D-29
    #[test]
    fn snappy_stream_has_javas_framing() {
        let file = packed(Packing::Snappy, &[&[b'a'; 40_000]]);
        assert_eq!(file[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        let first = BE::read_u32(&file[16..]) as usize;
        assert_eq!(snap::raw::decompress_len(&file[20..20 + first]).unwrap(), 32 << 10);
        let second = BE::read_u32(&file[20 + first..]) as usize;
        assert_eq!(file.len(), 16 + 4 + first + 4 + second);
    }

    /// What a crash leaves of a file, wherever it cuts.
    // rows: D-29 D-30
    #[test]
    fn truncated_file_is_distinguished_from_a_damaged_one() {
        let bytes = sample(70_000);
        for packing in [Packing::Gzip, Packing::Snappy] {
            let file = packed(packing, &[&bytes]);
            let mut quiet = 0;
            for len in (0..file.len()).step_by(97).chain([file.len() - 1]) {
                match unpacked(packing, &file[..len]) {
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{len}"),
                    // Between two blocks.
                    Ok(part) => quiet += usize::from(part.len() < bytes.len()),
                }
            }
            assert!(quiet <= 3, "{quiet}");
            let mut damaged = file.clone();
            let sum = adler32(&bytes);
            damaged[file.len() / 2] ^= 0x20;
            match unpacked(packing, &damaged) {
                Err(error) => assert_ne!(error.kind(), io::ErrorKind::NotFound),
                Ok(read) => assert_ne!(adler32(&read), sum),
            }
        }
    }

    #[test]
    fn lengths_without_bytes_allocate_little() {
        let header = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
        let of = |block: &[u8]| {
            let mut reader = SnappyReader::new([header, block].concat().leak() as &[u8]);
            let error = reader.read(&mut [0; 8]).unwrap_err();
            assert!(reader.packed.capacity() < 4096 && reader.block.capacity() < 4096);
            error.to_string()
        };
        assert!(of(b"\x7f\xff\xff\xffabc").contains("end of file"));
        assert!(of(b"\xff\xff\xff\xfe").contains("-2 bytes"));
        assert!(of(b"\0\0\0\x06\xff\xff\xff\xff\x07x").contains("says 2147483647"));
        assert!(of(b"\x82SNAPPX\0\0\0\0\x01\0\0\0\x01").contains("no header"));
        assert!(unpacked(Packing::Snappy, b"\x82SNAPPY\0\0\0\0\0\0\0\0\0").is_err());
    }
}
