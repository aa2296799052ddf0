//! A seeded generator of numbers: the same script for the same seed, on every machine and with every library version.

/// SplitMix64. Small enough to own, so that no dependency's update can change what a seed means.
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0. The bias for such small bounds does not matter here.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of `of`, as often as its weight says.
    pub fn weighted<'a, T>(&mut self, of: &'a [(usize, T)]) -> &'a T {
        let mut at = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in of {
            if at < *weight {
                return item;
            }
            at -= weight;
        }
        unreachable!("a number below the sum of the weights falls on one of them")
    }
}
