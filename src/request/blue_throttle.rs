//! Limits how fast clients may connect: a token bucket, and a probability of refusal that grows while the bucket stays
//! empty (C-123..C-133).
//!
//! Source: `BlueThrottle`, ZooKeeper 3.9.5, after the queue management of that name.

/// The settings `connection_throttle_*`.
#[derive(Clone, Debug, PartialEq)]
pub struct Connects {
    /// Size of the bucket; at least 1.
    pub tokens_max: i64,
    /// `fill_count` tokens come every `fill_time_ms`.
    pub fill_time_ms: i64,
    pub fill_count: i64,
    /// Pause between adjustments of the probability; `None`: no client is refused by probability.
    pub freeze_time_ms: Option<u64>,
    pub drop_increase: f64,
    pub drop_decrease: f64,
    /// The probability decreases while at most this part of the tokens is taken.
    pub decrease_ratio: f64,
    /// Tokens that a new session takes, and tokens that a reconnecting session takes.
    pub new_weight: i64,
    pub renew_weight: i64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The token bucket and the probability of refusal.
pub(super) struct Blue {
    tokens: i64,
    filled_ms: u64,
    adjusted_ms: u64,
    drop_chance: f64,
    rng: u64,
}

impl Blue {
    pub const fn new(settings: &Connects, now_ms: u64) -> Self {
        Self {
            tokens: settings.tokens_max,
            filled_ms: now_ms,
            adjusted_ms: now_ms,
            drop_chance: 0.0,
            rng: settings.seed | 1,
        }
    }

    pub fn lets_in(&mut self, settings: &Connects, renews: bool, now_ms: u64) -> bool {
        let passed = i64::try_from(now_ms.saturating_sub(self.filled_ms)).unwrap_or(i64::MAX);
        if passed > settings.fill_time_ms {
            let refill = passed.saturating_mul(settings.fill_count) / settings.fill_time_ms.max(1);
            self.tokens = self.tokens.saturating_add(refill).min(settings.tokens_max);
            self.filled_ms = now_ms;
        }
        if let Some(freeze_ms) = settings.freeze_time_ms
            && self.is_dropped(settings, freeze_ms, now_ms)
        {
            return false;
        }
        let need = if renews { settings.renew_weight } else { settings.new_weight };
        if self.tokens < need {
            return false;
        }
        self.tokens -= need;
        true
    }

    /// Tokens taken, and the probability of refusal.
    pub const fn state(&self, settings: &Connects) -> (i64, f64) {
        (settings.tokens_max - self.tokens, self.drop_chance)
    }

    fn is_dropped(&mut self, settings: &Connects, freeze_ms: u64, now_ms: u64) -> bool {
        let taken = settings.tokens_max - self.tokens;
        if now_ms.saturating_sub(self.adjusted_ms) > freeze_ms {
            let threshold = (settings.tokens_max as f64 * settings.decrease_ratio).round() as i64;
            if taken == settings.tokens_max {
                self.drop_chance = (self.drop_chance + settings.drop_increase).min(1.0);
            } else if taken <= threshold {
                self.drop_chance = (self.drop_chance - settings.drop_decrease).max(0.0);
            }
            self.adjusted_ms = now_ms;
        }
        self.dice() < self.drop_chance
    }

    /// A random number, at least 0 and below 1.
    fn dice(&mut self) -> f64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        (self.rng >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Connects {
        Connects {
            tokens_max: 6,
            fill_time_ms: 10,
            fill_count: 2,
            freeze_time_ms: None,
            drop_increase: 0.5,
            drop_decrease: 0.5,
            decrease_ratio: 0.5,
            new_weight: 3,
            renew_weight: 2,
            seed: 7,
        }
    }

    // rows: C-123 C-124 C-125 C-130 C-131 C-133
    #[test]
    fn connects_are_refused_without_tokens_until_the_bucket_is_refilled() {
        let settings = settings();
        let mut blue = Blue::new(&settings, 0);
        let mut lets_in = |renews, now_ms| blue.lets_in(&settings, renews, now_ms);
        assert!(lets_in(false, 0) && lets_in(true, 0), "three tokens and two");
        assert!(!lets_in(true, 10), "one is left, and ten milliseconds are not past yet");
        assert!(lets_in(true, 11), "two more");
        assert!(!lets_in(false, 12) && lets_in(false, 30));
        assert!(lets_in(false, 10_000) && lets_in(false, 10_000) && !lets_in(true, 10_000));
        assert_eq!(blue.state(&settings), (6, 0.0));
    }

    // rows: C-126 C-127 C-128 C-129
    #[test]
    fn drop_probability_rises_while_the_token_bucket_is_empty() {
        let settings =
            Connects { freeze_time_ms: Some(0), fill_time_ms: 1000, new_weight: 6, ..settings() };
        let mut blue = Blue::new(&settings, 0);
        assert!(blue.lets_in(&settings, false, 0));
        for now_ms in 1..=2 {
            assert!(!blue.lets_in(&settings, false, now_ms));
        }
        assert!(blue.drop_chance == 1.0, "half and half");
        assert!(!blue.lets_in(&settings, false, 100_000), "there are tokens, but it is dropped");
        assert!(blue.drop_chance == 0.5, "and the probability has decreased");
        assert!((0..1000).map(|_| blue.dice()).all(|dice| (0.0..1.0).contains(&dice)));
    }
}
