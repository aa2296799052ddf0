//! Runs simulated worlds: `sim --seed N` replays one, `sim --seconds S` or `--minutes M` tries fresh seeds.
//!
//! A world that fails is reported with its seed, the property that does not hold, the steps that it needs to fail, and its
//! last lines. The needed steps are found by running it in other processes, because a server's failed assertion ends the process.

#![allow(clippy::print_stdout, reason = "its findings are its output")]
#![allow(clippy::disallowed_methods, reason = "it has a budget of time, and starts itself again")]

use clap::Parser;
use oxkeeper::sim::{self, Climate, Failure, Plan, PlantedFault, Tracing};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Prints a line. The program ends once its output is closed (`sim --seed N | head`).
macro_rules! say {
    ($($text:tt)*) => {
        if writeln!(std::io::stdout(), $($text)*).is_err() {
            std::process::exit(0);
        }
    };
}

/// Lines of a failed world that are shown.
const LAST_LINES: usize = 60;
/// Smaller plans that are tried at most.
const TRIES_MAX: usize = 300;
/// Between two lines that say how far fresh seeds have come.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Run a whole ensemble with its clients, disks and network in one process; one seed decides everything.
#[derive(Clone, Parser)]
#[command(name = "sim")]
struct Arguments {
    /// Replay the world of this seed and print all that happens in it
    #[arg(long)]
    seed: Option<u64>,
    /// Run only these steps of the world, as in 0-7,12
    #[arg(long, requires = "seed")]
    only: Option<String>,
    /// Try fresh seeds for this many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Try fresh seeds for this many minutes
    #[arg(long)]
    minutes: Option<u64>,
    /// The first of the fresh seeds; by default made from the time
    #[arg(long)]
    from: Option<u64>,
    /// Print only the outcome
    #[arg(long)]
    quiet: bool,
    /// Plant a fault that no server makes, to see whether the checks find it
    #[arg(long)]
    plant: Option<String>,
    /// Write the servers' inputs, up to the failure of a property, as a script for tests/zab; a script can't show a
    /// planted fault
    #[arg(long, value_name = "FILE", conflicts_with = "plant")]
    script: Option<PathBuf>,
}

/// The seed of the world that runs, for a panic to name.
static SEED: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match (arguments.seed, arguments.minutes, arguments.seconds) {
        (Some(seed), _, _) => replay(&arguments, seed),
        (None, None, None) => {
            say!("give --seed, --seconds or --minutes; see --help");
            ExitCode::from(2)
        }
        (None, minutes, seconds) => {
            let budget = Duration::from_secs(minutes.unwrap_or(0) * 60 + seconds.unwrap_or(0));
            hunt(&arguments, budget)
        }
    }
}

/// The plan of a seed, with the steps and the planted fault of the arguments.
fn plan(arguments: &Arguments, seed: u64) -> Result<Plan, String> {
    let mut climate = Climate::of(seed);
    if let Some(name) = &arguments.plant {
        let named = |plant: &PlantedFault| format!("{plant:?}") == *name;
        let known = || format!("--plant: one of {:?}", PlantedFault::ALL);
        climate.plant = Some(PlantedFault::ALL.into_iter().find(named).ok_or_else(known)?);
    }
    let plan = Plan::in_climate(climate);
    Ok(match &arguments.only {
        None => plan,
        Some(text) => plan.only(&places(text).ok_or("--only: write as in 0-7,12")?),
    })
}

/// Reads `0-7,12`.
fn places(text: &str) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        places.extend(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?);
    }
    Some(places)
}

/// Writes places as [`places`] reads them.
fn ranges(places: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &place in places {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == place => *to = place,
            _ => ranges.push((place, place)),
        }
    }
    let texts = ranges.iter().map(|(from, to)| format!("{from}-{to}"));
    texts.collect::<Vec<_>>().join(",")
}

fn replay(arguments: &Arguments, seed: u64) -> ExitCode {
    let plan = match plan(arguments, seed) {
        Ok(plan) => plan,
        Err(why) => {
            say!("{why}");
            return ExitCode::from(2);
        }
    };
    if let Some(file) = &arguments.script {
        return write_script(arguments, &plan, file);
    }
    let tracing = if arguments.quiet {
        Tracing::Off
    } else {
        say!("{:?}", plan.climate);
        plan.steps.iter().enumerate().for_each(|(at, step)| say!("step {at:>4} {step}"));
        Tracing::To(Box::new(|line| say!("{line}")))
    };
    let outcome = sim::run(&plan, tracing);
    let (events, committed) = (outcome.events, outcome.committed);
    say!("seed {seed}: {} ms, {committed} transactions, {events} events", outcome.lasted_us / 1000);
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(Failure { check, what }) => {
            say!("seed {seed}: {check}: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the script of a world: of all its servers, or with a bug put back that of the one server that shows it.
fn write_script(arguments: &Arguments, plan: &Plan, file: &Path) -> ExitCode {
    let sim::Outcome { failure, tapes, .. } = sim::run(plan, Tracing::Inputs);
    let seed = plan.climate.seed;
    let Some(Failure { check, what }) = failure else {
        say!("seed {seed}: no property fails, so there is no script");
        return ExitCode::from(2);
    };
    let what = what.lines().next().unwrap_or_default();
    let run = format!("sim --seed {seed}{}", more(arguments));
    let only = arguments.only.as_ref().map(|only| format!(" --only {only}")).unwrap_or_default();
    let title = format!(
        "{check}: {what}
From {run}{only}"
    );
    let Some(text) = sim::script::script(&title, &tapes, None) else {
        say!(
            "seed {seed}: {check}: no script: the servers' peers act the same, or oxkeeper.lagBytes is small there"
        );
        return ExitCode::from(2);
    };
    if let Err(error) = std::fs::write(file, text) {
        say!("write {}: {error}", file.display());
        return ExitCode::from(2);
    }
    say!(
        "script in {}; once it is in tests/zab `UPDATE_EXPECT=1 cargo test --test zab scripts` adds the servers' actions",
        file.display()
    );
    ExitCode::FAILURE
}

/// The planted fault of a world, as arguments.
fn more(arguments: &Arguments) -> String {
    arguments.plant.as_ref().map(|plant| format!(" --plant {plant}")).unwrap_or_default()
}

fn hunt(arguments: &Arguments, budget: Duration) -> ExitCode {
    let began = Instant::now();
    let fresh = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // Short enough to be typed, and far from the seeds of another night.
    let fresh = fresh.map_or(1, |since| since.as_secs() % 100_000_000 * 1000);
    let first = arguments.from.unwrap_or(fresh);
    let cloned = arguments.clone();
    let own = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        own(panic);
        show_failure(&cloned, SEED.load(Ordering::Relaxed), "panic");
    }));
    say!("seeds from {first}");
    let (mut seed, mut committed, mut lasted_us) = (first, 0, 0);
    let mut counts = BTreeMap::<&str, u64>::new();
    let mut next_line = PROGRESS_EVERY;
    while began.elapsed() < budget {
        if !arguments.quiet && next_line <= began.elapsed() {
            next_line = began.elapsed() + PROGRESS_EVERY;
            say!("{} worlds in {} s, and no failure", seed - first, began.elapsed().as_secs());
        }
        let plan = match plan(arguments, seed) {
            Ok(plan) => plan,
            Err(why) => {
                say!("{why}");
                return ExitCode::from(2);
            }
        };
        SEED.store(seed, Ordering::Relaxed);
        let outcome = sim::run(&plan, Tracing::Off);
        committed += outcome.committed;
        lasted_us += outcome.lasted_us;
        outcome.counts.iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
        if let Some(Failure { check, what }) = outcome.failure {
            show_failure(arguments, seed, &format!("{check}: {what}"));
            return ExitCode::FAILURE;
        }
        seed += 1;
    }
    let (worlds, took) = (seed - first, began.elapsed().as_secs_f64());
    say!(
        "{worlds} worlds, {:.1} a second; {committed} transactions in {} simulated minutes; no failure",
        worlds as f64 / took,
        lasted_us / 60_000_000
    );
    let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
    say!("{}", counts.collect::<Vec<_>>().join(", "));
    ExitCode::SUCCESS
}

/// The command that runs one world in a process of its own. `None`: this program's path is unknown.
fn child(arguments: &Arguments, seed: u64, only: &[usize], quiet: bool) -> Option<Command> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["--seed", &seed.to_string(), "--only", &ranges(only)]);
    if quiet {
        command.arg("--quiet");
    }
    if let Some(plant) = &arguments.plant {
        command.args(["--plant", plant]);
    }
    command.stderr(Stdio::null());
    Some(command)
}

/// The outcome of a world: the check it fails, or how the process ended.
fn verdict(arguments: &Arguments, seed: u64, only: &[usize]) -> String {
    let Some(output) = child(arguments, seed, only, true).and_then(|mut run| run.output().ok())
    else {
        return "not run".to_owned();
    };
    if output.status.code() != Some(1) {
        return output.status.to_string();
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    last.split(": ").nth(1).unwrap_or_default().to_owned()
}

/// Reports a world that fails, with the steps that it needs to fail.
fn show_failure(arguments: &Arguments, seed: u64, what: &str) {
    say!("seed {seed} fails: {what}");
    if arguments.quiet {
        return;
    }
    let Ok(whole) = plan(arguments, seed) else { return };
    let count = whole.steps.len();
    let wanted = verdict(arguments, seed, &(0..count).collect::<Vec<_>>());
    let fails = |only: &[usize]| verdict(arguments, seed, only) == wanted;
    let kept = sim::shrink::shrink(count, TRIES_MAX, fails);
    say!("{} of its {count} steps are enough:", kept.len());
    for &at in &kept {
        say!("step {at:>4} {}", whole.steps[at]);
    }
    let output = child(arguments, seed, &kept, false).and_then(|mut command| command.output().ok());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    say!("last lines of the world with these steps:");
    lines.iter().skip(lines.len().saturating_sub(LAST_LINES)).for_each(|line| say!("{line}"));
    if let Some(file) = &arguments.script {
        let script = child(arguments, seed, &kept, true)
            .and_then(|mut command| command.arg("--script").arg(file).output().ok());
        match script {
            Some(output) if !output.stdout.is_empty() => {
                say!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
            }
            // The process ends in the middle of a step, and its tape with it.
            _ => say!("no script: a failed assertion ends the process"),
        }
    }
    let more = more(arguments);
    let run = format!("cargo run --release --features sim --bin sim -- --seed {seed}{more}");
    say!("the whole world: {run}\nonly these steps: {run} --only {}", ranges(&kept));
}
