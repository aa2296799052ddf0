//! What happened in a world, as lines and as counts.

use super::plan::Micros;
use std::collections::BTreeMap;

/// Where the lines go.
#[derive(Default)]
pub enum Tracing {
    #[default]
    Off,
    /// Each line is handed over as it comes, so that nothing is lost when a world ends in a panic.
    To(Box<dyn FnMut(&str)>),
    /// There are no lines: the inputs of each `zab` peer are recorded, until a property does not hold.
    Inputs,
}

#[derive(Default)]
pub struct Trace {
    pub tracing: Tracing,
    /// Number of lines that would have been written: two runs of one plan have the same number.
    pub events: u64,
    /// How often each thing happened: a world in which nothing happens proves nothing.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Trace {
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// * `kind`, `number`: of the server or client whose line it is.
    pub fn note(
        &mut self,
        now_us: Micros,
        kind: char,
        number: usize,
        text: impl FnOnce() -> String,
    ) {
        self.events += 1;
        if let Tracing::To(take) = &mut self.tracing {
            let (whole, part) = (now_us / 1000, now_us % 1000);
            take(&format!("{whole:>6}.{part:03} {kind}{number} {}", text()));
        }
    }
}

/// The beginning of a text that may be long.
pub fn short(text: &str) -> String {
    format!("{text:.160}")
}
