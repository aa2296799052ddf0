//! Writes snapshots while the server serves.

use crate::member::configured::SnapshotStyle;
use crate::member::trailers;
use crate::metrics::Registry;
use crate::model::Zxid;
use crate::request::{Shared, SnapshotPiece};
use crate::store::{Disk, Draft, SnapshotError, SnapshotWriter};
use crate::tree::freeze::{Frozen, PIECE_CAPACITY};
use std::path::Path;
use std::time::{Duration, Instant};

/// The snapshot thread pauses for this many times as long as it worked, so that it takes a fifth of a core and of the disk: taking
/// half of them cost writers on two cores a fifth of their throughput.
const PAUSE_FACTOR: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Above this many bytes saved for the snapshot the thread does not pause: writes change the tree faster than it is written.
const SAVED_WITH_PAUSES_MAX: u64 = 16 << 20;

/// Streams the frozen tree into a snapshot file, holding the tree's lock for a piece at a time.
///
/// * `gently`: pause between pieces, because clients are being served.
///
/// `None`: the tree was replaced meanwhile, so the snapshot is not needed.
///
/// # Errors
/// Errors of the disk; no file is left that a reader would take for a snapshot.
pub fn draft<D: Disk>(
    disk: &D,
    dir: &Path,
    shared: &Shared,
    frozen: Frozen,
    style: SnapshotStyle,
    gently: bool,
) -> Result<Option<Draft>, SnapshotError> {
    let writer = SnapshotWriter::create(disk, dir, frozen.zxid, style.packing)?;
    let pauses = |taken: &SnapshotPiece| gently && taken.saved_bytes <= SAVED_WITH_PAUSES_MAX;
    let written = put_pieces(writer, |piece| shared.snapshot_piece(frozen, piece), pauses)?;
    let draft = |writer: SnapshotWriter<'_, D>| writer.draft(trailers(frozen, style.with_zxid));
    written.map(draft).transpose()
}

/// Writes all pieces of a frozen tree. `None`: there is no next one, since the tree was replaced.
///
/// * `next`: appends the next piece. `pauses`: whether this thread pauses after a piece.
///
/// # Errors
/// Errors of the disk; the file is removed then, and with `None`.
pub fn put_pieces<'d, D: Disk>(
    mut writer: SnapshotWriter<'d, D>,
    mut next: impl FnMut(&mut Vec<u8>) -> Option<SnapshotPiece>,
    pauses: impl Fn(&SnapshotPiece) -> bool,
) -> Result<Option<SnapshotWriter<'d, D>>, SnapshotError> {
    let mut piece = Vec::new();
    loop {
        let began = Instant::now();
        piece.clear();
        let Some(taken) = next(&mut piece) else {
            writer.abandon();
            return Ok(None);
        };
        if let Err(error) = writer.body(&piece) {
            writer.abandon();
            return Err(error);
        }
        if taken.is_last {
            return Ok(Some(writer));
        }
        piece.shrink_to(PIECE_CAPACITY);
        if pauses(&taken) {
            std::thread::sleep((began.elapsed() * PAUSE_FACTOR).min(PAUSE_MAX));
        }
    }
}

/// Counts and logs the outcome of a snapshot.
pub fn note(metrics: &Registry, zxid: Zxid, draft: Option<&Draft>, took: Duration) {
    match draft {
        Some(Draft { bytes, .. }) => {
            let took_ms = took.as_millis() as u64;
            tracing::info!(%zxid, bytes, took_ms, "snapshot written");
            metrics.snapshottime.record(took_ms as i64);
        }
        None => metrics.snapshot_error_count.increment(),
    }
}
