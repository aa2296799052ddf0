//! The same operations on a real ZooKeeper and on another server, compared byte for byte.
//!
//!     cargo test --test differential -- --ops 10000 --seed 7
//!
//! `--against java` compares Java with itself, `--self-test` checks that corrupted answers are detected, `--replay FILE`
//! runs the file that an earlier difference wrote. Values that may differ, and their names: `common/naming.rs`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a runner starts servers, waits and counts"
)]
#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod args;
mod pair;
mod proxy;
mod report;
mod shrink;

use args::Args;
use common::generate::{Generator, Mode, root};
use pair::{Difference, Pair, Setup, Tally};
use proxy::Fault;
use report::Progress;
use shrink::{Case, Shrinker};
use std::io;
use std::process::ExitCode;

/// Operations in one script: long enough for operations to affect each other, short enough to shrink.
const SCRIPT_OPS: usize = 120;
/// Operations on one pair of servers. A long run takes several pairs, so that neither its history nor a tree outgrows memory.
const ROUND_OPS: u64 = 100_000;
/// Settings that allow session timeouts of seconds.
const MORTAL: &str = "\ntickTime=500\nminSessionTimeout=1000";

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            return ExitCode::from(2);
        }
    };
    let equal = if args.self_test {
        self_test(&args)
    } else if let Some(file) = &args.replay {
        replay(&args, file)
    } else {
        compare(&args)
    };
    match equal {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("not compared: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &Args) -> io::Result<bool> {
    println!("differential: seed {}, A java, B {:?}", args.seed, args.setup.b);
    let mut progress = Progress::start();
    let mut tally = Tally::default();
    let mut generator = Generator::new(args.seed, args.limits);
    let mut nodes = 0;
    while tally.ops < args.ops {
        let until = args.ops.min(tally.ops + ROUND_OPS);
        let found =
            random_run(args, &args.setup, &mut generator, until, &mut progress, &mut tally)?;
        match found {
            Found::Nothing { nodes: more } => nodes += more,
            Found::Difference { history, first } => {
                return shrink_and_report(args, &args.setup, history, *first).map(|()| false);
            }
        }
    }
    if args.expiries > 0 {
        let mut setup = args.setup.clone();
        setup.settings += MORTAL;
        let history = vec![(0, generator.expiries(0, args.expiries))];
        let mut pair = Pair::start(&setup)?;
        let ran = pair.run(0, &root(0), &history[0].1, &mut tally);
        if let Err(first) = ran.and_then(|()| pair.compare_trees(0).map(drop)) {
            return shrink_and_report(args, &setup, history, *first).map(|()| false);
        }
    }
    progress.summary(&tally, nodes);
    Ok(true)
}

/// Shrinks a difference and prints it.
fn shrink_and_report(
    args: &Args,
    setup: &Setup,
    history: Case,
    first: Difference,
) -> io::Result<()> {
    println!("difference in script {}; shrinking for {:?}", first.script, args.budget);
    let shrunk = Shrinker::new(setup, args.budget).shrink(&history)?;
    let (case, difference) = shrunk.unwrap_or_else(|| {
        println!("not reproduced on fresh servers; here is everything that ran");
        (history, first)
    });
    report::difference(&format!("fail-{}", args.seed), &case, &difference, &args.command())
}

enum Found {
    Nothing { nodes: usize },
    Difference { history: Case, first: Box<Difference> },
}

/// Random scripts on one pair of servers, until that many operations have run in all.
fn random_run(
    args: &Args,
    setup: &Setup,
    generator: &mut Generator,
    until: u64,
    progress: &mut Progress,
    tally: &mut Tally,
) -> io::Result<Found> {
    let mut pair = Pair::start(setup)?;
    let mut history = Case::new();
    // One pipelined and one racy script for every three in lockstep.
    let modes = [Mode::Lockstep, Mode::Pipelined, Mode::Lockstep, Mode::Racy, Mode::Lockstep];
    for number in 0.. {
        if tally.ops >= until {
            break;
        }
        let mode = args.mode.unwrap_or(modes[number % modes.len()]);
        let script = generator.script(number, mode, SCRIPT_OPS);
        assert_eq!(
            script.to_string().parse(),
            Ok(script.clone()),
            "a printed script must parse to itself"
        );
        history.push((number, script));
        let (_, script) = history.last().expect("one was pushed");
        if let Err(first) = pair.run(number, &root(number), script, tally) {
            return Ok(Found::Difference { history, first });
        }
        progress.tick(tally, args.ops);
    }
    match pair.compare_trees(history.len().saturating_sub(1)) {
        Ok(nodes) => Ok(Found::Nothing { nodes }),
        Err(first) => Ok(Found::Difference { history, first }),
    }
}

fn replay(args: &Args, file: &std::path::Path) -> io::Result<bool> {
    let case = shrink::parse(&std::fs::read_to_string(file)?).map_err(io::Error::other)?;
    let mut pair = Pair::start(&args.setup)?;
    match shrink::run(&mut pair, &case) {
        Ok(()) => {
            println!("equal: {} lines of {}", shrink::lines(&case), file.display());
            Ok(true)
        }
        Err(difference) => {
            report::difference("replayed", &case, &difference, &args.command())?;
            Ok(false)
        }
    }
}

/// Runs with each fault in turn, and expects the comparison to detect it.
fn self_test(args: &Args) -> io::Result<bool> {
    let mut all_found = true;
    for fault in Fault::ALL {
        let setup = Setup { fault: Some(fault), ..args.setup.clone() };
        let mut tally = Tally::default();
        let mut generator = Generator::new(args.seed, args.limits);
        let mut progress = Progress::start();
        let found = random_run(args, &setup, &mut generator, args.ops, &mut progress, &mut tally)?;
        let Found::Difference { history, .. } = found else {
            println!("{fault:?}: NOT detected in {} ops", tally.ops);
            all_found = false;
            continue;
        };
        let mut shrinker = Shrinker::new(&setup, args.budget);
        let Some((case, difference)) = shrinker.shrink(&history)? else {
            println!("{fault:?}: detected after {} ops, but not again", tally.ops);
            all_found = false;
            continue;
        };
        let (lines, tries) = (shrink::lines(&case), shrinker.tries);
        println!("{fault:?}: found after {} ops, {lines} lines after {tries} tries", tally.ops);
        println!("{}{}", shrink::print(&case), difference.text);
    }
    Ok(all_found)
}
