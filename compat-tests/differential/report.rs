//! Prints progress, the summary and a difference.

use crate::pair::{Difference, Tally};
use crate::shrink::{self, Case};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub struct Progress {
    start: Instant,
    last: Instant,
}

impl Progress {
    pub fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now }
    }

    /// Prints a line, at most one a second.
    pub fn tick(&mut self, tally: &Tally, of: u64) {
        if self.last.elapsed() >= Duration::from_secs(1) {
            self.last = Instant::now();
            let (ops, events) = (tally.ops, tally.events);
            println!(
                "{:>6.1} s  {ops} of {of} ops, {events} events",
                self.start.elapsed().as_secs_f64()
            );
        }
    }

    pub fn summary(&self, tally: &Tally, nodes: usize) {
        let seconds = self.start.elapsed().as_secs_f64();
        println!("\n{:<22}{:>9}", "operation", "times");
        for (verb, times) in &tally.by_verb {
            println!("{verb:<22}{times:>9}");
        }
        println!("\n{:<22}{:>9}", "reply err (pings too)", "times");
        for (code, times) in &tally.errors {
            println!("{code:<22}{times:>9}");
        }
        let Tally { ops, events, scripts, .. } = tally;
        println!(
            "\nequal: {ops} ops in {scripts} scripts, {events} events, {nodes} nodes at the end, \
             {seconds:.1} s, {:.0} ops/s",
            *ops as f64 / seconds
        );
    }
}

/// Prints a shrunk case, and writes it to a file for --replay.
///
/// # Errors
/// When the file cannot be written.
pub fn difference(
    name: &str,
    case: &Case,
    difference: &Difference,
    command: &str,
) -> io::Result<()> {
    // `target/differential`, next to cargo's temporary folder for integration tests.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../differential");
    fs::create_dir_all(&dir)?;
    let path = dir.canonicalize()?.join(format!("{name}.txt"));
    fs::write(&path, shrink::print(case))?;
    println!("\n{} lines:\n{}", shrink::lines(case), shrink::print(case));
    let place = difference.step.map_or("after its end".into(), |step| format!("at step {step}"));
    println!("script {} differs {place}:\n{}", difference.script, difference.text);
    if let Some((_, script)) = case.iter().find(|(number, _)| *number == difference.script)
        && let Some(step) = difference.step.and_then(|step| script.steps.get(step))
    {
        for line in step {
            println!("  in answer to: c{} {}", line.slot, line.op);
        }
    }
    println!("\nagain: {command} --replay {}", path.display());
    Ok(())
}
