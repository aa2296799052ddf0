//! The tree digest: one number that is equal on every server that holds the same tree (D-68).
//!
//! Version 2: each znode has the CRC-32 of its path, data and stored stat; the tree's digest is the wrapping sum of these
//! CRCs. Znodes below `/zookeeper/` count nothing, because servers change them without transactions.
//!
//! A znode keeps the CRC of path and data only, and the stat is added when asked for: a new child changes its
//! parent's stat, and must not cost a walk over the parent's data.

use crc32fast::Hasher;

/// Version of the algorithm, as logged and as stored in snapshots.
pub const DIGEST_VERSION: i32 = 2;

/// The part of a znode's stat that its digest covers and that snapshots hold.
pub use jute::data::StatPersisted as StatPart;

/// Whether a znode counts. The root's path is the empty string here.
pub fn counts(path: &[u8]) -> bool {
    !path.starts_with(b"/zookeeper/")
}

/// CRC-32 of path and data, the start of [`node`].
pub fn start(path: &[u8], data: Option<&[u8]>) -> u32 {
    let mut crc = Hasher::new();
    crc.update(path);
    crc.update(data.unwrap_or_default());
    crc.finalize()
}

/// A znode's digest from its [`start`] and stat.
pub fn node(start: u32, stat: &StatPart) -> u64 {
    let mut bytes = [0; 60];
    let longs = [stat.czxid, stat.mzxid, stat.pzxid, stat.ctime, stat.mtime];
    for (at, value) in longs.into_iter().enumerate() {
        bytes[at * 8..][..8].copy_from_slice(&value.to_be_bytes());
    }
    for (at, value) in [stat.version, stat.cversion, stat.aversion].into_iter().enumerate() {
        bytes[40 + at * 4..][..4].copy_from_slice(&value.to_be_bytes());
    }
    bytes[52..].copy_from_slice(&stat.ephemeral_owner.to_be_bytes());
    let mut crc = Hasher::new_with_initial(start);
    crc.update(&bytes);
    u64::from(crc.finalize())
}

/// What a znode adds to the tree's digest. `start`: the CRC of its path and data.
pub fn of(path: &[u8], start: u32, stat: &StatPart) -> u64 {
    if counts(path) { node(start, stat) } else { 0 }
}
