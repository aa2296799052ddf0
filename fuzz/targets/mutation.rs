//! Random mutations of inputs, as libFuzzer makes them, without knowing what an input reached.

use oxkeeper::model::Rng;

/// Longest input.
pub const INPUT_MAX: usize = 4096;

/// Changes of one input at most.
const CHANGES_MAX: u64 = 6;

/// Numbers at which code differs: written over some bytes, with the highest byte first.
const NUMBERS: [i64; 16] = [
    0,
    1,
    -1,
    2,
    7,
    16,
    100,
    127,
    128,
    255,
    1 << 16,
    i32::MAX as i64,
    i32::MIN as i64,
    0xf_ffff,
    i64::MAX,
    i64::MIN,
];

/// Makes mutations of the inputs of a seed corpus.
pub struct Mutation<'a> {
    rng: Rng,
    seeds: &'a [Vec<u8>],
    input: Vec<u8>,
}

impl<'a> Mutation<'a> {
    /// * `seeds`: inputs to begin with; without any it begins with an empty one.
    pub const fn new(seed: u64, seeds: &'a [Vec<u8>]) -> Self {
        Self { rng: Rng::seeded(seed), seeds, input: Vec::new() }
    }

    /// A new input: a changed seed, or one time in four the input before it, changed again.
    pub fn next_input(&mut self) -> &[u8] {
        if !self.rng.one_in(4) {
            self.input.clear();
            self.input.extend_from_slice(some(&mut self.rng, self.seeds));
        }
        for _ in 0..=self.rng.below(CHANGES_MAX) {
            self.change();
        }
        self.input.truncate(INPUT_MAX);
        &self.input
    }

    fn change(&mut self) {
        let Self { rng, seeds, input } = self;
        let at = rng.pick(input.len() + 1);
        let some_bytes =
            |rng: &mut Rng, max: usize| at..at + rng.pick((input.len() - at).min(max) + 1);
        match rng.below(10) {
            0 => with_byte(input, at, |byte| byte ^ 1 << rng.below(8)),
            1 => with_byte(input, at, |_| rng.next() as u8),
            2 => with_byte(input, at, |byte| {
                byte.wrapping_add(1 + rng.below(16) as u8).wrapping_sub(8)
            }),
            3 => {
                let number = NUMBERS[rng.pick(NUMBERS.len())].to_be_bytes();
                let len = [1, 2, 4, 8][rng.pick(4)].min(input.len() - at);
                input[at..at + len].copy_from_slice(&number[8 - len..]);
            }
            4 => drop(input.drain(some_bytes(rng, usize::MAX))),
            5 => drop(input.drain(some_bytes(rng, 4))),
            6 => {
                let (byte, count) = (rng.next() as u8, 1 + rng.pick(8));
                input.splice(at..at, std::iter::repeat_n(byte, count));
            }
            7 => {
                // Twice the same, or the same elsewhere.
                let copied = input[some_bytes(rng, 64)].to_vec();
                let to = rng.pick(input.len() + 1);
                let over = rng.pick(2) * copied.len().min(input.len() - to);
                input.splice(to..to + over, copied);
            }
            kind => {
                // A part of a seed, in place of some bytes or between them; or all from there on.
                let other = some(rng, seeds);
                let from = rng.pick(other.len() + 1);
                let max = if kind == 8 { 32 } else { usize::MAX };
                let part = &other[from..from + rng.pick((other.len() - from).min(max) + 1)];
                let over = rng.pick(2) * part.len().min(input.len() - at);
                input.splice(at..at + over, part.iter().copied());
            }
        }
    }
}

fn some<'a>(rng: &mut Rng, seeds: &'a [Vec<u8>]) -> &'a [u8] {
    if seeds.is_empty() { &[] } else { &seeds[rng.pick(seeds.len())] }
}

fn with_byte(input: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = input.get_mut(at) {
        *byte = change(*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_decides_the_inputs_and_none_is_too_long() {
        let seeds = [vec![7; INPUT_MAX], b"zookeeper".to_vec()];
        let inputs = |seed| {
            let mut mutation = Mutation::new(seed, &seeds);
            (0..1000).map(|_| mutation.next_input().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().all(|input| input.len() <= INPUT_MAX));
    }

    #[test]
    fn mutations_join_parts_of_seeds_and_put_numbers_between_them() {
        let seeds = [b"first=1".to_vec(), b"second=2".to_vec()];
        let mut mutation = Mutation::new(1, &seeds);
        let has = |input: &[u8], part: &[u8]| input.windows(part.len()).any(|bytes| bytes == part);
        let mut found = [false; 3];
        for _ in 0..20_000 {
            let input = mutation.next_input();
            found[0] |= has(input, b"first=2");
            found[1] |= has(input, b"second=2first=1");
            found[2] |= has(input, b"first\xff\xff");
        }
        assert_eq!(found, [true; 3]);
    }
}
