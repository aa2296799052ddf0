//! Shrinks a long run that shows a difference to a few lines that still show it.
//!
//! Lines are removed as long as the rest still differs (delta debugging, by halves and then smaller parts).
//! Tries share a pair of servers while both have the same zxid, each below a fresh root; the result is confirmed on
//! fresh servers.

use crate::pair::{Difference, Pair, Setup, Tally};
use common::script::Script;
use std::io;
use std::time::{Duration, Instant};

/// Scripts that run one after the other, each with the number in its root's name.
pub type Case = Vec<(usize, Script)>;

pub struct Shrinker<'s> {
    setup: &'s Setup,
    pair: Option<Pair>,
    deadline: Instant,
    pub tries: usize,
}

impl<'s> Shrinker<'s> {
    pub fn new(setup: &'s Setup, budget: Duration) -> Self {
        Self { setup, pair: None, deadline: Instant::now() + budget, tries: 0 }
    }

    /// The smallest case found in time, with its difference on fresh servers. `None`: the difference is not reproducible.
    ///
    /// # Errors
    /// When servers cannot be started.
    pub fn shrink(&mut self, history: &Case) -> io::Result<Option<(Case, Difference)>> {
        let last = history.last().into_iter().cloned().collect();
        // Most differences don't depend on earlier scripts.
        for whole in [last, history.clone()] {
            let Some(seen) = self.differs_fresh(&whole)? else { continue };
            let small = self.reduce(whole.clone())?;
            // A try on shared servers may have depended on what an earlier try left there.
            return Ok(Some(match self.differs_fresh(&small)? {
                Some(difference) => (small, difference),
                None => (whole, seen),
            }));
        }
        Ok(None)
    }

    fn reduce(&mut self, mut case: Case) -> io::Result<Case> {
        let mut part = lines(&case).div_ceil(2);
        while part > 0 {
            let (mut at, mut shrunk) = (0, false);
            while at < lines(&case) {
                if Instant::now() > self.deadline {
                    return Ok(case);
                }
                let less = without(&case, at, at + part);
                if !less.is_empty() && self.differs(&less)? {
                    (case, shrunk) = (less, true);
                } else {
                    at += part;
                }
            }
            // At single lines, another round may remove lines that an earlier removal made redundant.
            part = if part == 1 && shrunk { 1 } else { part / 2 };
        }
        Ok(case)
    }

    fn differs(&mut self, case: &Case) -> io::Result<bool> {
        let mut pair = match self.pair.take() {
            Some(pair) => pair,
            None => Pair::start(self.setup)?,
        };
        self.tries += 1;
        let moved = moved(case, self.tries);
        let differs = run(&mut pair, &moved).is_err();
        self.pair = pair.is_even().then_some(pair);
        Ok(differs)
    }

    fn differs_fresh(&mut self, case: &Case) -> io::Result<Option<Difference>> {
        self.pair = None;
        let mut pair = Pair::start(self.setup)?;
        let found = run(&mut pair, case).err();
        Ok(found.map(|difference| *difference))
    }
}

/// Runs a case and compares the trees afterwards.
pub fn run(pair: &mut Pair, case: &Case) -> Result<(), Box<Difference>> {
    let mut tally = Tally::default();
    for (number, script) in case {
        pair.run(*number, &common::generate::root(*number), script, &mut tally)?;
    }
    pair.compare_trees(case.last().map_or(0, |(number, _)| *number)).map(drop)
}

pub fn lines(case: &Case) -> usize {
    case.iter().map(|(_, script)| script.lines()).sum()
}

/// The case without lines `from..to`, counted over all its scripts.
fn without(case: &Case, from: usize, to: usize) -> Case {
    let mut before = 0;
    let mut less = Case::new();
    for (number, script) in case {
        let kept = script.filtered(|at| !(from..to).contains(&(before + at)));
        before += script.lines();
        if kept.lines() > 0 {
            less.push((*number, kept));
        }
    }
    less
}

/// The same case below roots that no earlier try has used.
fn moved(case: &Case, by: usize) -> Case {
    let mut moved = Case::new();
    for (number, script) in case {
        let (old, new) = (format!("\"/s{number}"), format!("\"/s{}", number + by * 1_000_000));
        // Roots are numbers, so one may be the beginning of another: only whole names are replaced.
        let mut text = script.to_string();
        for end in ["/", "\""] {
            text = text.replace(&format!("{old}{end}"), &format!("{new}{end}"));
        }
        moved.push((number + by * 1_000_000, text.parse().expect("what was printed parses")));
    }
    moved
}

/// A case as the text of a file: each script after a line with its number.
pub fn print(case: &Case) -> String {
    case.iter().map(|(number, script)| format!("--- {number}\n{script}")).collect()
}

/// Parses the text of a case.
///
/// # Errors
/// Which line is wrong, and how.
pub fn parse(text: &str) -> Result<Case, String> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("--- ") {
            let number = number.trim().parse().map_err(|_| format!("`{line}` names no number"))?;
            parts.push((number, String::new()));
        } else {
            if parts.is_empty() {
                parts.push((0, String::new()));
            }
            let (_, part) = parts.last_mut().expect("one was pushed");
            part.push_str(line);
            part.push('\n');
        }
    }
    let script = |(number, text): (usize, String)| Ok((number, text.parse::<Script>()?));
    let case: Result<Case, String> = parts.into_iter().map(script).collect();
    Ok(case?.into_iter().filter(|(_, script)| script.lines() > 0).collect())
}
