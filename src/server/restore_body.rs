//! The body of AdminServer's `restore`: received into a file, checked whole, and written again as a snapshot of this server.
//!
//! None of this goes through the disk that stops after an error: the server serves meanwhile, and must not end because a body is
//! too large.

use super::load_tree::{RestoreError, Restored, Restorer};
use super::own_figures::free_bytes;
use super::snapshots::put_pieces;
use crate::member::configured::SnapshotStyle;
use crate::member::trailers;
use crate::model::{Zxid, chain};
use crate::replica::{RestorePlan, RestoreQuestion};
use crate::request::SnapshotPiece;
use crate::store::snapshot_read::{self, ReadError};
use crate::store::{Draft, RealDisk, Restore, SnapshotError, SnapshotReader, SnapshotWriter};
use crate::tree::{Options, Tree};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the body's file. A start removes it, as every unfinished snapshot.
const NAME: &str = ".snapshot.restore.tmp";
/// Free bytes that a body leaves for the log and for snapshots.
const FREE_MIN: u64 = 128 << 20;
/// A znode of a body may have this many bytes, or twice `jute.maxbuffer` if that is more. No more bytes of a body are in memory,
/// and twice as many while they are read.
const ITEM_MAX: usize = 16 << 20;
/// The free space is looked at after each this many bytes.
const LOOK_EVERY: u64 = 4 << 20;

/// A body that is being received; its file is removed at the end.
pub struct Upload {
    path: PathBuf,
    file: File,
    bytes: u64,
    look_at: u64,
}

impl Upload {
    /// * `dir`: `version-2` under dataDir.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let path = dir.join(NAME);
        let file = File::create(&path)?;
        Ok(Self { path, file, bytes: 0, look_at: 0 })
    }

    /// # Errors
    /// [`io::ErrorKind::StorageFull`] before the disk is full, and those of the file system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.look_at <= self.bytes {
            if free_bytes(&self.path)? < FREE_MIN + LOOK_EVERY {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.look_at += LOOK_EVERY;
        }
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _next_start_removes_it = fs::remove_file(&self.path);
    }
}

/// A snapshot that is whole.
pub struct Checked {
    pub tree: Box<Tree>,
    pub zxid: Zxid,
    pub question: RestoreQuestion,
}

/// Why a body is not restored.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("{0}")]
    Unreadable(String),
    #[error("the snapshot is damaged (checksum at byte {at}): send another copy")]
    Damaged { at: u64 },
    #[error(
        "the snapshot does not end with its zxid: it is torn, or serializeLastProcessedZxid.enabled was false where it was taken"
    )]
    NoZxid,
    #[error(
        "the snapshot's znodes do not fit its digest: it was taken while a Java server was writing. Start a server on the snapshot \
         together with its logs, or add ?fuzzy=true to restore it as it is"
    )]
    Fuzzy,
    #[error(
        "the body goes on after the snapshot, or its packing is torn there: send one snapshot alone"
    )]
    NotAlone,
}

/// Why the bytes of a body are no snapshot.
#[derive(Debug, thiserror::Error)]
enum BytesError {
    #[error(transparent)]
    Load(#[from] RestoreError),
    #[error(
        "an item is longer than {max} bytes: raise jute.maxbuffer to more than half of its length"
    )]
    TooLong { max: usize },
}

/// How a body is read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub options: Options,
    /// `jute.maxbuffer`.
    pub frame_max: usize,
    /// This server is a member of an ensemble.
    pub is_member: bool,
    /// Znodes need not fit the digest.
    pub takes_fuzzy: bool,
}

/// Reads a whole body, packed or not.
///
/// # Errors
/// [`BodyError`].
pub fn check(upload: &Upload, rules: Rules) -> Result<Checked, BodyError> {
    let unreadable = |error: &dyn std::error::Error| BodyError::Unreadable(chain(error));
    let mut restorer = Restorer::new(rules.options);
    if rules.is_member {
        restorer = restorer.keep_orphans();
    }
    let file = snapshot_read::open_by_magic(&RealDisk, &upload.path);
    let file = file.map_err(|error| unreadable(&error))?;
    let max = ITEM_MAX.max(rules.frame_max.saturating_mul(2));
    let mut reader = SnapshotReader::new(file).of_file(&upload.path);
    let trailers = reader.read(|bytes| {
        let progress = restorer.snapshot_bytes(bytes)?;
        let is_too_long = progress.consumed == 0 && max < bytes.len();
        if is_too_long { Err(BytesError::TooLong { max }) } else { Ok(progress) }
    });
    let trailers = trailers.map_err(|error| match error {
        ReadError::Seal { at, .. } => BodyError::Damaged { at },
        error => unreadable(&error),
    })?;
    let zxid = trailers.zxid.and_then(Zxid::from_wire).ok_or(BodyError::NoZxid)?;
    if !reader.is_at_end() {
        return Err(BodyError::NotAlone);
    }
    restorer.snapshot_done(zxid, trailers).map_err(|error| unreadable(&error))?;
    let Restored { tree, comparison, .. } = restorer.finish();
    if 0 < comparison.mismatches && !rules.takes_fuzzy {
        return Err(BodyError::Fuzzy);
    }
    let question = RestoreQuestion::of(&tree);
    Ok(Checked { tree: Box::new(tree), zxid, question })
}

/// Makes the tree what the plan wants, and writes it; all bytes are durable when this returns.
///
/// # Errors
/// Errors of the disk; nothing is left that a start would read.
pub fn draft(
    dir: &Path,
    tree: &mut Tree,
    plan: &RestorePlan,
    style: SnapshotStyle,
) -> Result<Draft, SnapshotError> {
    plan.prepare(tree);
    let writer = SnapshotWriter::create(&RealDisk, dir, plan.zxid, style.packing)?;
    let frozen = tree.freeze().expect("no other snapshot of this tree is under way");
    let next = |piece: &mut Vec<u8>| {
        Some(SnapshotPiece { is_last: tree.freeze_piece(frozen, piece), saved_bytes: 0 })
    };
    let written = put_pieces(writer, next, |_| false)?;
    drop(tree.thaw(frozen));
    let writer = written.expect("this tree has all of its pieces");
    writer.draft(trailers(frozen, style.with_zxid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    const WHOLE: &[u8] = include_bytes!("../../compat-tests/golden/java-data/version-2/snapshot.c");

    /// What comes of a body that a client has sent.
    fn checked(body: &[u8]) -> Result<Zxid, String> {
        let dir = tempfile::tempdir().unwrap();
        let rules = Rules {
            options: Options { seed: 0, digest: true, extended_types: true, emulate_353: false },
            frame_max: 1 << 20,
            is_member: false,
            takes_fuzzy: true,
        };
        let mut upload = Upload::create(dir.path()).unwrap();
        upload.write(body).unwrap();
        check(&upload, rules).map(|checked| checked.zxid).map_err(|error| error.to_string())
    }

    fn in_gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn damaged_body_is_refused_with_the_place_of_its_checksum() {
        let refusal = |at: usize| {
            let mut bytes = WHOLE.to_vec();
            bytes[at] ^= 1;
            checked(&bytes).unwrap_err()
        };
        let damaged = refusal(15); // In the number of the database, which no server reads.
        assert!(damaged.starts_with("the snapshot is damaged (checksum at byte "), "{damaged}");
        assert!(damaged.ends_with("): send another copy"), "{damaged}");
        assert_eq!(refusal(0), "snapshot begins with 0x5b4b534e, not with ZKSN");
    }

    #[test]
    fn body_that_goes_on_after_its_snapshot_is_refused() {
        let whole = checked(WHOLE).unwrap();
        let packed = in_gzip(WHOLE);
        let (first, second) = WHOLE.split_at(100);
        assert_eq!(checked(&packed), Ok(whole));
        assert_eq!(checked(&[in_gzip(first), in_gzip(second)].concat()), Ok(whole), "two members");
        for (what, body) in [
            ("a byte", [WHOLE, b"x"].concat()),
            ("many bytes", [WHOLE, &[0; 9000]].concat()),
            ("twice", [WHOLE, WHOLE].concat()),
            ("two members", [&packed[..], &packed].concat()),
            ("a member and bytes", [&packed[..], b"rest"].concat()),
            ("a torn member", packed[..packed.len() - 4].to_vec()),
        ] {
            let refusal = checked(&body).unwrap_err();
            assert!(
                refusal.starts_with("the body goes on after the snapshot"),
                "{what}: {refusal}"
            );
        }
    }
}
