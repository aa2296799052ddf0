//! Snapshot files: their framing, the writer, and the quick check for whole files.
//!
//! ```text
//! header   i32 "ZKSN"   i32 version 2   i64 dbid -1
//! body     sessions, ACL table, nodes, the path "/"          the tree's
//! seal     i64 Adler-32 of every byte before it   string "/"
//! digest   i64 zxid   i32 version 2   i64 digest   seal      if there is one
//! zxid     i64 zxid   seal                                   if there is one
//! ```
//!
//! With the suffix .gz or .snappy all of it is compressed (`store::packing`); checksums are over the uncompressed bytes.
//!
//! Source: `FileSnap`, `SnapStream`, ZooKeeper 3.9 (D-20, D-25..D-27).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use byteorder::{BE, WriteBytesExt};
use simd_adler32::Adler32;

use super::disk::{Disk, Reading, is_echo};
use super::names::{self, Packing};
use super::packing::{GZIP_MAGIC, Packer, SNAPPY_MAGIC, Unpacker};
use crate::model::Zxid;

/// "ZKSN".
pub const SNAPSHOT_MAGIC: i32 = 0x5a4b_534e;
const VERSION: i32 = 2;
const DB_ID: i64 = -1;
pub(super) const HEADER_LEN: usize = 16;
/// A checksum, and the string "/" after it.
pub(super) const SEAL_LEN: usize = 13;
/// The string "/": the end of every snapshot.
pub(super) const SEAL_PATH: [u8; 5] = [0, 0, 0, 1, b'/'];

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;
/// Bytes written before they are synced. A snapshot synced at its end alone makes the log's next fsync wait for all
/// of it: file systems order the data of new blocks before the journal both share.
const SYNC_EVERY: u64 = 4 << 20;

/// Why a snapshot could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("make snapshot {}", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("write {len} bytes at {at} of snapshot {}", path.display())]
    Write { path: PathBuf, at: u64, len: usize, source: io::Error },
    #[error("put snapshot {} in place", path.display())]
    Place { path: PathBuf, source: io::Error },
}

/// The tree digest after a transaction was applied (D-26).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DigestTrailer {
    pub zxid: i64,
    /// How the digest is computed; 2 is ZooKeeper 3.9's.
    pub version: i32,
    pub digest: i64,
}

/// What follows a snapshot's body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Trailers {
    pub digest: Option<DigestTrailer>,
    /// The last zxid applied when the snapshot was complete (D-27).
    pub zxid: Option<i64>,
}

/// A snapshot under its final name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Written {
    pub path: PathBuf,
    pub bytes: u64,
}

/// A complete snapshot on disk that does not count yet: it still has its temporary name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Draft {
    pub zxid: Zxid,
    pub bytes: u64,
    temporary: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Gives the snapshot its final name, durably.
    ///
    /// # Errors
    /// [`SnapshotError::Place`].
    pub fn place<D: Disk>(self, disk: &D) -> Result<Written, SnapshotError> {
        let placed = disk.rename(&self.temporary, &self.path);
        let dir = self.path.parent().unwrap_or(Path::new(""));
        let placed = placed.and_then(|()| disk.sync_dir(dir));
        placed.map_err(|source| SnapshotError::Place { path: self.path.clone(), source })?;
        Ok(Written { path: self.path, bytes: self.bytes })
    }

    /// Removes the file. If that fails the next start removes it.
    pub fn discard<D: Disk>(self, disk: &D) {
        remove_unfinished(disk, &self.temporary);
    }
}

fn remove_unfinished<D: Disk>(disk: &D, temporary: &Path) {
    if let Err(error) = disk.remove_leftover(temporary)
        && error.kind() != std::io::ErrorKind::NotFound
        && !is_echo(&error)
    {
        tracing::warn!(
            path = %temporary.display(),
            %error,
            "can't remove an unfinished snapshot; the next start tries again: check the folder's rights if it stays"
        );
    }
}

/// Writes one snapshot. Until [`Draft::place`] it has a name that no reader takes for a snapshot.
pub struct SnapshotWriter<'d, D: Disk> {
    disk: &'d D,
    dir: &'d Path,
    zxid: Zxid,
    file: D::File,
    temporary: PathBuf,
    packing: Packing,
    packer: Packer,
    buffer: Vec<u8>,
    /// Bytes taken, before packing.
    taken: u64,
    /// Bytes written, the buffer not counted.
    at: u64,
    synced: u64,
    adler: Adler32,
}

impl<'d, D: Disk> SnapshotWriter<'d, D> {
    /// Begins a snapshot.
    ///
    /// * `dir`: `version-2` under dataDir.
    /// * `zxid`: the last one applied before the first byte of the body is taken from the tree (D-32).
    /// * `packing`: `zookeeper.snapshot.compression.method`.
    ///
    /// # Errors
    /// [`SnapshotError::Create`].
    pub fn create(
        disk: &'d D,
        dir: &'d Path,
        zxid: Zxid,
        packing: Packing,
    ) -> Result<Self, SnapshotError> {
        let (temporary, file) = create_temporary(disk, dir, zxid)?;
        let mut writer = Self {
            disk,
            dir,
            zxid,
            file,
            temporary,
            packing,
            packer: Packer::new(packing),
            buffer: Vec::with_capacity(BUFFER),
            taken: 0,
            at: 0,
            synced: 0,
            adler: Adler32::new(),
        };
        let mut header = Vec::with_capacity(HEADER_LEN);
        put(&mut header, |to| {
            to.write_i32::<BE>(SNAPSHOT_MAGIC)?;
            to.write_i32::<BE>(VERSION)?;
            to.write_i64::<BE>(DB_ID)
        });
        writer.body(&header)?;
        Ok(writer)
    }

    /// Appends part of the body.
    ///
    /// # Errors
    /// [`SnapshotError::Write`]; the snapshot must be abandoned then.
    pub fn body(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.adler.write(bytes);
        self.taken += bytes.len() as u64;
        // Large parts go through the buffer piece by piece, so that it stays small.
        for piece in bytes.chunks(BUFFER) {
            if BUFFER < self.buffer.len() + piece.len() {
                self.write_out()?;
            }
            let packed = self.packer.pack(piece, &mut self.buffer);
            packed.map_err(|source| self.failed(piece.len(), source))?;
        }
        Ok(())
    }

    /// Bytes taken so far, header included, before packing.
    pub const fn len(&self) -> u64 {
        self.taken
    }

    /// False: the header is there from the start.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Seals the snapshot and gives it its final name, durably.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn finish(self, trailers: Trailers) -> Result<Written, SnapshotError> {
        let disk = self.disk;
        self.draft(trailers)?.place(disk)
    }

    /// Seals the snapshot; all its bytes are durable when it returns.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn draft(mut self, trailers: Trailers) -> Result<Draft, SnapshotError> {
        self.seal()?;
        if let Some(digest) = trailers.digest {
            let mut bytes = Vec::new();
            put(&mut bytes, |to| {
                to.write_i64::<BE>(digest.zxid)?;
                to.write_i32::<BE>(digest.version)?;
                to.write_i64::<BE>(digest.digest)
            });
            self.body(&bytes)?;
            self.seal()?;
        }
        if let Some(zxid) = trailers.zxid {
            self.body(&zxid.to_be_bytes())?;
            self.seal()?;
        }
        let packed = self.packer.finish(&mut self.buffer);
        packed.map_err(|source| self.failed(0, source))?;
        self.write_out()?;
        let path = self.dir.join(names::snapshot_name(self.zxid, self.packing));
        let synced = self.disk.sync_data(&self.file);
        synced.map_err(|source| SnapshotError::Place { path: path.clone(), source })?;
        Ok(Draft { zxid: self.zxid, bytes: self.at, temporary: self.temporary, path })
    }

    /// Gives up and removes what was written. If that fails the next start removes it.
    pub fn abandon(self) {
        remove_unfinished(self.disk, &self.temporary);
    }

    fn seal(&mut self) -> Result<(), SnapshotError> {
        let sum = i64::from(self.adler.finish());
        self.body(&sum.to_be_bytes())?;
        self.body(&SEAL_PATH)
    }

    fn write_out(&mut self) -> Result<(), SnapshotError> {
        let (at, len) = (self.at, self.buffer.len());
        let mut written = self.disk.write_at(&self.file, at, &self.buffer);
        self.at += len as u64;
        if SYNC_EVERY <= self.at - self.synced {
            written = written.and_then(|()| self.disk.sync_data(&self.file));
            self.synced = self.at;
        }
        self.buffer.clear();
        written.map_err(|source| SnapshotError::Write {
            path: self.temporary.clone(),
            at,
            len,
            source,
        })
    }

    fn failed(&self, len: usize, source: io::Error) -> SnapshotError {
        SnapshotError::Write { path: self.temporary.clone(), at: self.at, len, source }
    }
}

/// Creates the file of a snapshot under a name of its own: abandoning one snapshot must not remove another.
fn create_temporary<D: Disk>(
    disk: &D,
    dir: &Path,
    zxid: Zxid,
) -> Result<(PathBuf, D::File), SnapshotError> {
    let mut number = 0;
    loop {
        let path = dir.join(names::snapshot_temporary(zxid, number));
        match disk.create(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(SnapshotError::Create { path, source }),
        }
    }
}

/// Appends to `to`; writing to memory does not fail.
fn put(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
    write(to).expect("a Vec takes all that is written to it");
}

/// Zxid of the newest snapshot of a folder that passes the quick check.
///
/// * `until`: of those at or before it; `None`: of all.
pub fn newest_whole<D: Disk>(disk: &D, dir: &Path, until: Option<Zxid>) -> Option<Zxid> {
    let files = names::snapshots(disk, dir).unwrap_or_default();
    let is_whole =
        |name: &str| looks_whole(disk, &dir.join(name), Packing::of(name)).unwrap_or(false);
    let mut found = files.iter().rev().filter(|file| until.is_none_or(|until| file.zxid <= until));
    found.find(|file| is_whole(&file.name)).map(|file| file.zxid)
}

/// The quick check of both ends of a file: enough to skip what a crash left of a snapshot, no proof that the file is whole.
///
/// # Errors
/// If the file can't be read. A missing permission is no damage, so the caller looks at the kind of the error.
///
/// Source: `SnapStream.isValidSnapshot`, ZooKeeper 3.9 (D-30).
pub fn looks_whole<D: Disk>(disk: &D, path: &Path, packing: Packing) -> io::Result<bool> {
    let mut file = Reading::open(disk, path)?;
    let mut starts_with = |magic: &[u8]| {
        let mut bytes = vec![0; magic.len()];
        match file.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(bytes == magic),
        }
    };
    match packing {
        Packing::Gzip => starts_with(&GZIP_MAGIC),
        Packing::Snappy => starts_with(&SNAPPY_MAGIC),
        Packing::Plain => {
            let len = file.len()?;
            let mut end = [0; SEAL_PATH.len()];
            Ok(10 <= len
                && file.read_at(len - end.len() as u64, &mut end)? == end.len()
                && end == SEAL_PATH)
        }
    }
}

/// Whether a file is a snapshot with both ends: a compressed one is read to its end, which takes as long as a start.
///
/// # Errors
/// If the file can't be read, or ends early within the compressed bytes.
pub fn is_whole<D: Disk>(disk: &D, path: &Path, packing: Packing) -> io::Result<bool> {
    let looks_whole = looks_whole(disk, path, packing)?;
    if packing == Packing::Plain || !looks_whole {
        return Ok(looks_whole);
    }
    let mut from = Unpacker::new(packing, Reading::open(disk, path)?);
    let (mut chunk, mut end) = (vec![0; 1 << 16], Vec::new());
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            return Ok(end == SEAL_PATH);
        }
        end.extend_from_slice(&chunk[..read]);
        end.drain(..end.len().saturating_sub(SEAL_PATH.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sim_disk::{Fault, SimDisk};

    const DIR: &str = "/data";
    /// No session, no ACL, and at once the path "/" that ends the nodes.
    const BODY: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\x01/";

    fn content(disk: &SimDisk, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        Reading::open(disk, &Path::new(DIR).join(name)).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn write(disk: &SimDisk, trailers: Trailers) -> Result<Written, SnapshotError> {
        let zxid = Zxid::from_wire(0x1f).unwrap();
        let mut writer = SnapshotWriter::create(disk, Path::new(DIR), zxid, Packing::Plain)?;
        writer.body(BODY)?;
        writer.finish(trailers)
    }

    // rows: D-20 D-25 D-26 D-27
    #[test]
    fn snapshot_file_has_javas_bytes() {
        let disk = SimDisk::new();
        let digest = DigestTrailer { zxid: 0x1f, version: 2, digest: -2 };
        let written = write(&disk, Trailers { digest: Some(digest), zxid: Some(0x20) }).unwrap();
        let bytes = content(&disk, "snapshot.1f");
        assert_eq!(written.bytes, bytes.len() as u64);
        let mut expected = b"ZKSN\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        expected.extend_from_slice(BODY);
        let seal = |bytes: &mut Vec<u8>| {
            let sum = i64::from(crate::store::record::adler32(bytes));
            bytes.extend_from_slice(&sum.to_be_bytes());
            bytes.extend_from_slice(b"\0\0\0\x01/");
        };
        seal(&mut expected);
        expected.extend_from_slice(b"\0\0\0\0\0\0\0\x1f\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xfe");
        seal(&mut expected);
        expected.extend_from_slice(b"\0\0\0\0\0\0\0\x20");
        seal(&mut expected);
        assert_eq!(bytes, expected);
    }

    // rows: D-32
    #[test]
    fn a_crash_leaves_a_whole_snapshot_or_none() {
        let disk = SimDisk::new();
        disk.keep_images();
        write(&disk, Trailers::default()).unwrap();
        let whole = content(&disk, "snapshot.1f");
        for image in disk.take_images() {
            for seed in 0..20 {
                let found = image.crash(seed);
                if names::snapshots(&found, Path::new(DIR)).unwrap().len() == 1 {
                    assert_eq!(content(&found, "snapshot.1f"), whole);
                }
            }
        }
        assert_eq!(content(&disk.image().crash(0), "snapshot.1f"), whole);
    }

    #[test]
    fn a_full_disk_leaves_no_snapshot() {
        let disk = SimDisk::new();
        disk.fail_next(Fault::NoSpace);
        let error = write(&disk, Trailers::default()).unwrap_err();
        assert!(matches!(error, SnapshotError::Write { at: 0, len: 42, .. }), "{error}");
        assert!(names::snapshots(&disk, Path::new(DIR)).unwrap().is_empty());
    }

    #[test]
    fn parts_larger_than_the_buffer_are_written_in_order() {
        let disk = SimDisk::new();
        let mut writer =
            SnapshotWriter::create(&disk, Path::new(DIR), Zxid::ZERO, Packing::Plain).unwrap();
        let mut expected = content(&disk, ".snapshot.0.tmp");
        assert!(expected.is_empty());
        for (byte, len) in [(1, 10), (2, BUFFER), (3, BUFFER - 1), (4, 3), (5, 5 << 20), (6, 1)] {
            writer.body(&vec![byte; len]).unwrap();
            expected.extend(vec![byte; len]);
        }
        assert_eq!(writer.len(), 16 + expected.len() as u64);
        writer.finish(Trailers::default()).unwrap();
        let bytes = content(&disk, "snapshot.0");
        assert!(bytes[16..bytes.len() - SEAL_LEN] == expected[..]);
        assert_eq!(disk.counts().syncs, 3); // One while writing, one at the end, one of the folder.
    }

    // rows: D-30
    #[test]
    fn quick_check_rejects_files_without_magic_or_end() {
        let disk = SimDisk::new();
        let looks = |name: &str, bytes: &[u8]| {
            let path = Path::new(DIR).join(name);
            let file = disk.create(&path).unwrap();
            disk.write_at(&file, 0, bytes).unwrap();
            looks_whole(&disk, &path, Packing::of(name)).unwrap()
        };
        assert!(looks("snapshot.1", b"12345\0\0\0\x01/"));
        assert!(!looks("snapshot.2", b"1234\0\0\0\x01/"));
        assert!(!looks("snapshot.3", b"12345\0\0\0\x02/"));
        assert!(!looks("snapshot.4", b""));
        assert!(looks("snapshot.5.gz", b"\x1f\x8b"));
        assert!(!looks("snapshot.6.gz", b"\x1f"));
        assert!(looks("snapshot.7.snappy", b"\x82SNAPPY\0..."));
        assert!(!looks("snapshot.8.snappy", b"\xff\x06\0\0sNaPpY"));
    }
}
