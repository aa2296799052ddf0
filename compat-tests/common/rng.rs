//! Random choices that scripts are made from, reproducible from a seed.

use oxkeeper::model::Rng;

/// Random choices on top of [`Rng`].
pub trait Choose {
    /// True in `percent` of 100 cases.
    fn chance(&mut self, percent: usize) -> bool;
    fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T;
    /// One of `of`, with a probability proportional to its weight.
    fn weighted<'a, T>(&mut self, of: &'a [(usize, T)]) -> &'a T;
}

impl Choose for Rng {
    fn chance(&mut self, percent: usize) -> bool {
        self.pick(100) < percent
    }

    fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.pick(of.len())]
    }

    fn weighted<'a, T>(&mut self, of: &'a [(usize, T)]) -> &'a T {
        let mut at = self.pick(of.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in of {
            if at < *weight {
                return item;
            }
            at -= weight;
        }
        unreachable!("a number below the sum of the weights falls on one of them")
    }
}
