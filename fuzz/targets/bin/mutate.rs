//! Plays inputs to one fuzz target: `mutate TARGET FOLDER` plays each file of the folder, then random mutations of them;
//! `mutate TARGET FILE` plays that file.
//!
//! The input that is being played is in a file, so that it is kept however the process ends.

#![allow(clippy::print_stdout, reason = "how many inputs there were is its output")]
#![allow(clippy::disallowed_methods, reason = "it begins with a number made from the time")]

use clap::Parser;
use fuzz_targets::mutation::{INPUT_MAX, Mutation};
use fuzz_targets::{Target, named};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Decides the half of the mutations that is the same in each run.
const FIXED_SEED: u64 = 1;

#[derive(Parser)]
#[command(name = "mutate")]
struct Arguments {
    /// What takes the inputs: fuzz/README.md has a table
    target: String,
    /// A folder with the seed corpus, or one input
    inputs: PathBuf,
    /// Changed inputs at most
    #[arg(long, default_value_t = 300_000)]
    runs: u64,
    /// Seconds of processor time that changed inputs may take
    #[arg(long, default_value_t = 12)]
    seconds: u64,
    /// Decides half of the mutations; by default made from the time. The other half is the same in each run
    #[arg(long)]
    seed: Option<u64>,
    /// Where an input stays that ends the process
    #[arg(long, value_name = "FILE", default_value = "mutate-failed")]
    keep: PathBuf,
}

/// Plays inputs; the one that is being played is in a file.
struct Player {
    target: Target,
    file: File,
}

impl Player {
    fn play(&self, input: &[u8]) -> io::Result<()> {
        self.file.set_len(input.len() as u64)?;
        self.file.write_all_at(input, 0)?;
        (self.target)(input);
        Ok(())
    }
}

/// The files of a folder by their names.
fn read_all(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let input = |path: &PathBuf| {
        let mut input = fs::read(path)?;
        input.truncate(INPUT_MAX);
        Ok(input)
    };
    paths.iter().map(input).collect()
}

/// How long this process has computed: beside others it takes longer for the same inputs.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn main() -> io::Result<()> {
    let Arguments { target: name, inputs, runs, seconds, seed, keep } = Arguments::parse();
    let target = named(&name);
    if inputs.is_file() {
        target(&fs::read(&inputs)?);
        return Ok(());
    }
    let fresh = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64);
    let seeds = [FIXED_SEED, seed.unwrap_or_else(fresh)];
    println!("{name}: seeds {} and {}", seeds[0], seeds[1]);
    let player = Player { target, file: File::create(&keep)? };
    let first = read_all(&inputs)?;
    first.iter().try_for_each(|input| player.play(input))?;
    let mut count = 0;
    for seed in seeds {
        let (began, mut mutation) = (processor_time(), Mutation::new(seed, &first));
        for _ in 0..runs / 2 {
            // Half of the time for each.
            if Duration::from_secs(seconds) < 2 * (processor_time() - began) {
                break;
            }
            player.play(mutation.next_input())?;
            count += 1;
        }
    }
    println!("{name}: Done {count} changed inputs and {} first ones", first.len());
    fs::remove_file(keep)
}
