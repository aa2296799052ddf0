//! A snapshot to be written while the server goes on working.

use crate::model::Zxid;
use crate::store::{DigestTrailer, Trailers};
use crate::tree::digest::DIGEST_VERSION;
use crate::tree::freeze::Frozen;

/// Number of an operator's request; its answer carries the same number.
pub type AskId = u64;

/// A snapshot to be written.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotJob {
    pub frozen: Frozen,
    /// It is the leader's tree, which replaces all that this server had: other servers wait until it is on disk.
    pub is_leaders: bool,
    /// Truncations of the log that had been asked for when it began.
    pub(super) truncations: u64,
}

impl SnapshotJob {
    pub const fn zxid(&self) -> Zxid {
        self.frozen.zxid
    }
}

/// What follows the frozen tree in its snapshot.
///
/// * `with_zxid`: `serializeLastProcessedZxid.enabled`.
pub fn trailers(frozen: Frozen, with_zxid: bool) -> Trailers {
    let (zxid, version) = (frozen.zxid.to_wire(), DIGEST_VERSION);
    let digest = frozen.digest.map(|digest| DigestTrailer { zxid, version, digest: digest as i64 });
    Trailers { digest, zxid: with_zxid.then_some(zxid) }
}
