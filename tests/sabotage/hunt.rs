//! A test of the copy that `tests/sabotage.rs` makes: for each bug that is put back into `zab` the outcome of its script differs, and
//! the random worlds of `tests/zab` find it. `BUG=NAME` looks for one bug only.

#![allow(clippy::disallowed_methods, reason = "a test has a budget of time, and takes a name")]
#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

mod sabotage {
    #[allow(dead_code, reason = "functions that make the copy are not used in it")]
    pub mod bugs;
}
mod zab {
    pub mod changes;
    #[allow(dead_code, reason = "no other fault is planted beside a bug")]
    pub mod checks;
    pub mod conditions;
    pub mod destruction;
    #[allow(dead_code, reason = "a trace is for debugging")]
    pub mod explorer;
    pub mod losses;
    pub mod notation;
    pub mod other_peers;
    #[allow(dead_code, reason = "tests have more of them")]
    pub mod schedules;
    pub mod scopes;
    pub mod script;
    pub mod script_ensemble;
    pub mod situations;
    pub mod driver_turns;
    pub mod world;
}

use oxkeeper::sabotage as switch;
use sabotage::bugs::{self, Bug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use zab::conditions::Conditions;
use zab::world::World;
use zab::{explorer, scopes, script};

/// How long a bug is looked for in random worlds, and in how many of them at least: on a busy machine they take longer.
const BUDGET: Duration = Duration::from_secs(30);
const WORLDS: u64 = 10_000;

/// The number of a world that fails only with the bug, and what it says; or how many worlds there were, and `None`.
fn hunt(bug: &Bug) -> (u64, Option<String>) {
    let began = Instant::now();
    let mut worlds = 0;
    for seed in bugs::worlds(bug.worlds.as_deref()) {
        if BUDGET <= began.elapsed() && WORLDS <= worlds {
            break;
        }
        worlds += 1;
        let live = || switch::with(bug.name, || World::of(Conditions::of(seed)).live());
        if let Err(text) = explorer::caught(live)
            && explorer::caught(|| World::of(Conditions::of(seed)).live()).is_ok()
        {
            return (seed, Some(text));
        }
    }
    (worlds, None)
}

/// What a search of small ensembles says about a bug. First a twentieth of the states of each ensemble is looked at, then all.
fn explore(bug: &'static str, states_max: usize, time_max: Duration) -> String {
    let began = Instant::now();
    let mut states = 0;
    for states_max in [states_max / 20, states_max] {
        states = 0;
        for scope in scopes::all().into_iter().chain(scopes::larger()) {
            let left = time_max.saturating_sub(began.elapsed());
            let found = switch::with(bug, || explorer::search(&scope, states_max, left));
            if let Some((what, _)) = found.failure {
                let what: String = what.chars().take(160).collect();
                return format!("{} states of {}: {what}", found.states, scope.name);
            }
            states += found.states;
        }
    }
    let seconds = began.elapsed().as_secs();
    format!("nothing in {states} states, {seconds} s")
}

/// Prints which small ensemble shows each bug: for `docs/museum.md`, which has the figures. `STATES=N` looks at N states of each ensemble
/// and not at 200,000; `MINUTES=N` looks for each bug for N minutes at most.
#[test]
#[ignore = "takes minutes"]
fn small_ensembles_against_every_bug() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = bugs::only(bugs::read_all(root), std::env::var("BUG").ok().as_deref());
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let states_max = number("STATES").unwrap_or(200_000) as usize;
    let time_max =
        number("MINUTES").map_or(Duration::MAX, |minutes| Duration::from_secs(60 * minutes));
    std::panic::set_hook(Box::new(|_| {})); // These panics are wanted.
    for Bug { name, .. } in all {
        let line = format!("{name}: {}", explore(name, states_max, time_max));
        println!("{}", line.replace('\n', " "));
    }
    let _own = std::panic::take_hook();
}

#[test]
fn every_bug_is_found_by_its_script_and_by_random_worlds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = bugs::only(bugs::read_all(root), std::env::var("BUG").ok().as_deref());
    std::panic::set_hook(Box::new(|_| {})); // These panics are wanted.
    let mut complaints = Vec::new();
    for bug in &all {
        let (name, script) = (bug.name, &bug.script);
        if let Some(file) = script {
            let text = std::fs::read_to_string(root.join(format!("tests/zab/{file}.txt"))).unwrap();
            let play = || switch::with(name, || script::outcome(&text));
            let played = catch_unwind(AssertUnwindSafe(play));
            if played.is_ok_and(|played| played == text) {
                complaints.push(format!("{name}: the outcome of {file} is the same with it"));
            }
        }
        if !bug.in_worlds() {
            continue;
        }
        let (seeds, found) = hunt(bug);
        println!("{name}: world {seeds}: {}", found.as_deref().unwrap_or("nothing"));
        if found.is_none() {
            complaints.push(format!("{name}: {seeds} random worlds do not show it"));
        }
    }
    let _own = std::panic::take_hook();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
