//! Random numbers from a seed.

/// SplitMix64: the same seed gives the same numbers on every machine and with every release. Not for secrets.
#[derive(Clone, Debug, Default)]
pub struct Rng(u64);

impl Rng {
    /// * `stream`: different streams of one seed are independent, so that the numbers that one part of a world draws do not
    ///   change those of another part.
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// A generator whose seed has no other stream.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; `n` must not be 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// An index into a list of `len` items; `len` must not be 0.
    pub const fn pick(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// `true` with a chance of 1 in `n`.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number from `low` through `high`.
    pub const fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}
