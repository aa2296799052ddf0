//! What happened in a world, for those who read it.

use super::plan::Micros;
use std::collections::{BTreeMap, VecDeque};

/// Lines kept by [`Tracing::Last`].
const KEPT: usize = 400;

/// What becomes of the lines.
#[derive(Default)]
pub enum Tracing {
    #[default]
    Off,
    /// The last ones are kept.
    Last,
    /// Each is handed over as it comes, so that nothing is lost when a world ends in a panic.
    To(Box<dyn FnMut(&str)>),
}

#[derive(Default)]
pub struct Trace {
    pub tracing: Tracing,
    pub lines: VecDeque<String>,
    /// Of all that would have been written: two runs of one plan have the same.
    pub events: u64,
    /// What happened how often: a world in which nothing does proves nothing.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Trace {
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// * `who`: whose line it is.
    pub fn note(&mut self, now_us: Micros, who: &str, at: usize, text: impl FnOnce() -> String) {
        self.events += 1;
        if matches!(self.tracing, Tracing::Off) {
            return;
        }
        let (whole, part) = (now_us / 1000, now_us % 1000);
        let line = format!("{whole:>6}.{part:03} {who}{at} {}", text());
        match &mut self.tracing {
            Tracing::Off => {}
            Tracing::Last => {
                self.lines.push_back(line);
                if KEPT < self.lines.len() {
                    self.lines.pop_front();
                }
            }
            Tracing::To(take) => take(&line),
        }
    }
}
