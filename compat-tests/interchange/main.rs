//! Two servers use one data directory in turn: each must restore what the other wrote.
//!
//!     cargo test --test interchange -- --ops 3000 --bulk 100000 --seed 7
//!
//! * turns: random scripts. Java runs some and stops; the other server starts from its files, is compared, runs more and stops;
//!   then Java again. The same with the other server first, and all of it once with SIGTERM and once with SIGKILL.
//! * bulk: many mixed transactions through one pipelined client, SIGKILL in the middle, compressed snapshots and Java's fuzzy ones;
//!   both servers start from copies of the files, and must agree on every znode and on the digest.
//! * sessions: a session whose client does not reconnect expires one timeout after the start, and its ephemerals are deleted.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a runner starts servers, waits and counts"
)]
#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod alternation;
mod bulk;
mod files;
mod load;
mod sessions;

use common::server::Kind;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub struct Args {
    ops: usize,
    /// Transactions of each bulk run.
    bulk: usize,
    seed: u64,
    stage: u8,
    other: Kind,
    /// Overwrite the end of the log between turns: every turn must report it.
    tear: bool,
    /// Run only the part of this name.
    part: Option<String>,
}

const USAGE: &str = "\
interchange: two servers take turns on one data directory
  --ops N         operations per turn, default 3000
  --bulk N        transactions per bulk run, default 6000, or 100000 with OXKEEPER_LONG set
  --seed N        seed of the scripts, default 1
  --part NAME     turns, bulk or sessions; default all of them
  --stage 1|2     2: everything a client can send; default 1
  --against java  both are Java
  --ox PATH       the other server's binary; default the one cargo has built
  --tear          lose the last transaction between turns; the run must report it and fail";

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut sound = true;
    let mut report = |result: io::Result<Vec<String>>| match result {
        Ok(findings) if findings.is_empty() => println!("  all equal"),
        Ok(findings) => {
            sound = false;
            findings.iter().for_each(|finding| println!("  DIFFERS {finding}"));
        }
        Err(error) => {
            sound = false;
            println!("  FAILED {error}");
        }
    };
    let wanted = |part: &str| args.part.as_deref().is_none_or(|only| only == part);
    // With Java on both ends there is only one direction.
    let mut directions = vec![[Kind::Java, args.other.clone(), Kind::Java]];
    if args.other != Kind::Java {
        directions.push([args.other.clone(), Kind::Java, args.other.clone()]);
    }
    if wanted("turns") {
        for gently in [true, false] {
            directions
                .iter()
                .for_each(|turns| report(alternation::take_turns(&args, turns, gently)));
        }
    }
    if wanted("bulk") {
        for plan in bulk::PLANS {
            report(bulk::run(&args, plan));
        }
    }
    if wanted("sessions") {
        directions.iter().for_each(|turns| report(sessions::expire(&turns[0], &turns[1])));
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let other = Kind::Ox(PathBuf::from(env!("CARGO_BIN_EXE_oxkeeper")));
    let bulk = if std::env::var_os("OXKEEPER_LONG").is_some() { 100_000 } else { 6000 };
    let mut args = Args { ops: 3000, bulk, seed: 1, stage: 1, other, tear: false, part: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
        match word.as_str() {
            "--ops" => args.ops = number(value()?)? as usize,
            "--bulk" => args.bulk = number(value()?)? as usize,
            "--seed" => args.seed = number(value()?)?,
            "--part" => args.part = Some(value()?),
            "--stage" => args.stage = if number(value()?)? > 1 { 2 } else { 1 },
            "--against" => match value()?.as_str() {
                "java" => args.other = Kind::Java,
                other => return Err(format!("--against {other}: only java is known")),
            },
            "--ox" => args.other = Kind::Ox(value()?.into()),
            "--tear" => args.tear = true,
            "--help" => {
                println!("{USAGE}");
                return Ok(None);
            }
            "--list" => {
                println!("0 tests, 0 benchmarks");
                return Ok(None);
            }
            other => println!("(ignored: {other})"),
        }
    }
    Ok(Some(args))
}
