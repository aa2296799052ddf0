//! Bytes of znodes, packed by size so that the allocator's header and slack cost nothing per znode.
//!
//! A class holds all blobs of one size, rounded up to [`STEP`]. Its memory comes in chunks that the kernel provides
//! page by page as they are touched; a freed place is reused by the next blob of its class.

/// Sizes are rounded up to this many bytes.
const STEP: usize = 8;
/// Blobs above this many bytes are allocated one by one: there the allocator's overhead no longer counts.
const PACKED_MAX: usize = 8192;
/// A chunk's size is about this: large enough to be mapped lazily, small enough to waste little address space.
const CHUNK_BYTES: usize = 256 * 1024;
const NONE: u32 = u32::MAX;

/// Where a blob lies, together with its length.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct BlobId(u32);

impl BlobId {
    /// No blob: marks a place in the arena that holds no znode.
    pub const NONE: Self = Self(NONE);
}

/// All blobs.
pub(super) struct Blobs {
    classes: Vec<Class>,
    large: Vec<Box<[u8]>>,
    large_free: Vec<u32>,
    /// Bytes in use, rounding included.
    bytes: usize,
}

struct Class {
    size: usize,
    /// log2 of the number of places in a chunk, so that finding one needs no division.
    shift: u32,
    chunks: Vec<Box<[u8]>>,
    /// First free place; a free place's first four bytes name the next.
    free: u32,
    /// Places ever used.
    used: u32,
}

impl Class {
    fn new(size: usize) -> Self {
        Self { size, shift: (CHUNK_BYTES / size).ilog2(), chunks: Vec::new(), free: NONE, used: 0 }
    }

    fn slot(&self, at: u32) -> (usize, usize) {
        let within = (at & ((1 << self.shift) - 1)) as usize;
        ((at >> self.shift) as usize, within * self.size)
    }

    fn get(&self, at: u32, len: usize) -> &[u8] {
        let (chunk, start) = self.slot(at);
        &self.chunks[chunk][start..start + len]
    }

    fn get_mut(&mut self, at: u32, len: usize) -> &mut [u8] {
        let (chunk, start) = self.slot(at);
        &mut self.chunks[chunk][start..start + len]
    }

    fn take(&mut self) -> u32 {
        if self.free != NONE {
            let at = self.free;
            let next =
                self.get(at, 4).first_chunk().copied().expect("a place holds at least a step");
            self.free = u32::from_ne_bytes(next);
            return at;
        }
        let at = self.used;
        self.used += 1;
        assert!(self.used < NONE, "a size class of znode bytes is full");
        if self.slot(at).0 == self.chunks.len() {
            self.chunks.push(vec![0; self.size << self.shift].into_boxed_slice());
        }
        at
    }

    fn give(&mut self, at: u32) {
        let next = self.free.to_ne_bytes();
        self.get_mut(at, 4).copy_from_slice(&next);
        self.free = at;
    }
}

impl Blobs {
    pub fn new() -> Self {
        let classes = (1..=PACKED_MAX / STEP).map(|steps| Class::new(steps * STEP)).collect();
        Self { classes, large: Vec::new(), large_free: Vec::new(), bytes: 0 }
    }

    fn class(len: usize) -> usize {
        len.div_ceil(STEP).max(1) - 1
    }

    /// A new blob of `len` bytes; what they hold is unspecified until written.
    pub fn alloc(&mut self, len: usize) -> BlobId {
        self.bytes += len.next_multiple_of(STEP);
        if len <= PACKED_MAX {
            return BlobId(self.classes[Self::class(len)].take());
        }
        let bytes = vec![0; len].into_boxed_slice();
        if let Some(at) = self.large_free.pop() {
            self.large[at as usize] = bytes;
            return BlobId(at);
        }
        self.large.push(bytes);
        BlobId(
            u32::try_from(self.large.len() - 1).expect("fewer than 2^32 large blobs fit in memory"),
        )
    }

    /// The blob's bytes. `len` must be the length it was allocated with.
    pub fn get(&self, id: BlobId, len: usize) -> &[u8] {
        if len <= PACKED_MAX {
            self.classes[Self::class(len)].get(id.0, len)
        } else {
            &self.large[id.0 as usize]
        }
    }

    pub fn get_mut(&mut self, id: BlobId, len: usize) -> &mut [u8] {
        if len <= PACKED_MAX {
            self.classes[Self::class(len)].get_mut(id.0, len)
        } else {
            &mut self.large[id.0 as usize]
        }
    }

    /// Frees the blob's place.
    pub fn free(&mut self, id: BlobId, len: usize) {
        self.bytes -= len.next_multiple_of(STEP);
        if len <= PACKED_MAX {
            self.classes[Self::class(len)].give(id.0);
        } else {
            self.large[id.0 as usize] = Box::default();
            self.large_free.push(id.0);
        }
    }

    /// Whether a blob of `old` bytes can hold `new` bytes where it lies.
    pub fn fits(old: usize, new: usize) -> bool {
        old <= PACKED_MAX && new <= PACKED_MAX && Self::class(old) == Self::class(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Blobs keep their bytes whatever is allocated and freed around them.
        #[test]
        fn blobs_do_not_overlap(sizes in prop::collection::vec((0usize..20_000, any::<bool>()), 1..200)) {
            let mut blobs = Blobs::new();
            let mut live: Vec<(BlobId, usize, u8)> = Vec::new();
            for (i, (len, free)) in sizes.into_iter().enumerate() {
                if free && !live.is_empty() {
                    let (id, len, _) = live.swap_remove(i % live.len());
                    blobs.free(id, len);
                } else {
                    let id = blobs.alloc(len);
                    blobs.get_mut(id, len).fill(i as u8);
                    live.push((id, len, i as u8));
                }
                for &(id, len, fill) in &live {
                    prop_assert!(blobs.get(id, len).iter().all(|&b| b == fill));
                }
            }
            for (id, len, _) in live {
                blobs.free(id, len);
            }
            prop_assert_eq!(blobs.bytes, 0);
        }
    }
}
