//! An ensemble of one server, which others join by reconfigurations, and leave again. Faults are those of `super::hurry`.
//!
//! A single server is an ensemble only with `standaloneEnabled=false`. In some worlds the first server alone has that, and the ensemble
//! only grows. Else each server has it, and there may be one again, with or without observers.

use super::plan::{Climate, MS};
use crate::model::Rng;

/// The stream that says whether a world has one: none of the worlds that `tests/sabotage` names has.
const GROWTH_STREAM: u64 = 7030;

impl Climate {
    pub fn with_growth(self) -> Self {
        let mut rng = Rng::new(self.seed, GROWTH_STREAM);
        if !rng.one_in(40) {
            return self;
        }
        Self {
            grows: true,
            voters: 1,
            joiners: rng.range(2, 3) as usize,
            sends_trees: rng.one_in(3),
            lasts_us: rng.range(3000, 6000) * MS,
            ..self.in_a_hurry()
        }
    }

    /// Whether the servers that join have the default of `standaloneEnabled`.
    pub const fn only_grows(&self) -> bool {
        self.grows && self.seed.is_multiple_of(2)
    }

    /// `standaloneEnabled` of a server.
    pub const fn is_alone_standalone(&self, server: usize) -> bool {
        !self.grows || self.only_grows() && server != 0
    }
}
