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
    /// Number of lines that would have been written: two runs of one plan have the same.
    pub events: u64,
    /// What happened how often: a world in which nothing does proves nothing.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Trace {
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// * `kind` and `number`: the server or client whose line it is.
    pub fn note(
        &mut self,
        now_us: Micros,
        (kind, number): (&str, usize),
        text: impl FnOnce() -> String,
    ) {
        self.events += 1;
        if matches!(self.tracing, Tracing::Off) {
            return;
        }
        let (whole, part) = (now_us / 1000, now_us % 1000);
        let line = format!("{whole:>6}.{part:03} {kind}{number} {}", text());
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

/// The beginning of a text that may be long.
pub fn short(text: &str) -> String {
    let end = text.char_indices().nth(160).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}
