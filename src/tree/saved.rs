//! What a freeze has saved and its reader has not taken: the memory that a snapshot costs.

use super::node::SHARED_DATA_MIN;
use bytes::Bytes;
use std::collections::VecDeque;

/// Bytes copied into one chunk. A chunk is freed after it is taken.
const CHUNK_BYTES: usize = 64 << 10;

/// Where znodes and access lists of a frozen tree are written to.
pub(super) trait Target {
    fn copy(&mut self, write: impl FnOnce(&mut Vec<u8>));
    /// Appends bytes that may be shared instead of copied.
    fn share(&mut self, bytes: &Bytes);
}

impl Target for Vec<u8> {
    #[inline]
    fn copy(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self);
    }

    fn share(&mut self, bytes: &Bytes) {
        self.extend_from_slice(bytes);
    }
}

enum Chunk {
    Copied(Vec<u8>),
    Shared(Bytes),
}

/// A queue of bytes. Small ones are copied; large ones are shared with the tree, so that saving a znode of a megabyte
/// takes no longer than saving a small one.
#[derive(Default)]
pub(super) struct Saved {
    chunks: VecDeque<Chunk>,
    bytes: u64,
}

impl Saved {
    /// Bytes in the queue, shared ones included.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves the first chunk to `to`; `false`: there is none.
    pub fn take(&mut self, to: &mut Vec<u8>) -> bool {
        let Some(chunk) = self.chunks.pop_front() else { return false };
        let bytes = match &chunk {
            Chunk::Copied(bytes) => &bytes[..],
            Chunk::Shared(bytes) => bytes,
        };
        self.bytes -= bytes.len() as u64;
        to.extend_from_slice(bytes);
        true
    }
}

impl Target for Saved {
    fn copy(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let has_room = |chunk: &mut Chunk| match chunk {
            Chunk::Copied(bytes) => bytes.len() < CHUNK_BYTES,
            Chunk::Shared(_) => false,
        };
        if !self.chunks.back_mut().is_some_and(has_room) {
            self.chunks.push_back(Chunk::Copied(Vec::new()));
        }
        if let Some(Chunk::Copied(bytes)) = self.chunks.back_mut() {
            let before = bytes.len();
            write(bytes);
            self.bytes += (bytes.len() - before) as u64;
        }
    }

    fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_DATA_MIN {
            return self.copy(|to| to.extend_from_slice(bytes));
        }
        self.bytes += bytes.len() as u64;
        self.chunks.push_back(Chunk::Shared(bytes.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bytes_are_shared_and_small_ones_copied() {
        let mut saved = Saved::default();
        let large = Bytes::from(vec![1; 1_000_000]);
        saved.copy(|to| to.push(2));
        saved.share(&large);
        saved.share(&Bytes::from_static(b"34"));
        saved.copy(|to| to.push(5));
        assert_eq!(saved.bytes(), 1_000_004);
        let is_shared = |chunk: &Chunk| matches!(chunk, Chunk::Shared(bytes) if bytes.as_ptr() == large.as_ptr());
        assert!(is_shared(&saved.chunks[1]) && saved.chunks.len() == 3);
        let mut taken = Vec::new();
        while saved.take(&mut taken) {}
        assert_eq!((taken.len(), saved.bytes()), (1_000_004, 0));
        assert!(taken.starts_with(&[2, 1]) && taken.ends_with(&[1, b'3', b'4', 5]));
    }

    #[test]
    fn chunks_of_copied_bytes_stay_small() {
        let mut saved = Saved::default();
        for _ in 0..3 * CHUNK_BYTES {
            saved.copy(|to| to.push(1));
        }
        assert_eq!(saved.chunks.len(), 3);
    }
}
