//! How paths are stored and looked up.

use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};

/// Hash of some bytes under one seeded state.
pub(super) fn hash_of(state: &FixedState, bytes: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// A path as it is stored: the root's is empty.
pub(super) const fn key(path: &str) -> &[u8] {
    key_bytes(path.as_bytes())
}

pub(super) const fn key_bytes(path: &[u8]) -> &[u8] {
    match path {
        b"/" => b"",
        path => path,
    }
}
