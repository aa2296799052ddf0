//! A test of the copy that `tests/sabotage.rs` makes: for each bug that is put back into agreement a script reads differently, and
//! the random worlds of `tests/zab` find it. `BUG=NAME` looks for one only.

#![allow(clippy::disallowed_methods, reason = "a test has a budget of time, and takes a name")]
#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

mod sabotage {
    #[allow(dead_code, reason = "what makes the copy is not asked for in it")]
    pub mod bugs;
}
mod support;
mod zab {
    pub mod changes;
    #[allow(dead_code, reason = "no other fault is planted beside a bug")]
    pub mod checks;
    pub mod conditions;
    #[allow(dead_code, reason = "a trace is for those who mend")]
    pub mod explorer;
    pub mod losses;
    pub mod notation;
    pub mod scopes;
    pub mod script;
    pub mod script_ensemble;
    pub mod situations;
    pub mod world;
}

use oxkeeper::sabotage as switch;
use sabotage::bugs::{self, Bug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use zab::conditions::Conditions;
use zab::scopes::{self, Scope};
use zab::{explorer, script};
use zab::world::World;

/// A bug is found within so many seconds of random worlds, or it is not; on a busy machine so many worlds take longer.
const BUDGET: Duration = Duration::from_secs(30);
const WORLDS: u64 = 10_000;

/// What the first world says in which the bug shows, and how many lived before.
fn hunt(bug: &'static str) -> (u64, Option<String>) {
    let began = Instant::now();
    let mut seed = 0;
    while began.elapsed() < BUDGET || seed < WORLDS {
        seed += 1;
        let live = || switch::with(bug, || World::of(Conditions::of(seed)).live());
        if let Err(text) = explorer::caught(live) {
            return (seed, Some(text));
        }
    }
    (seed, None)
}

/// How many states of a small ensemble are looked at before the bug shows, and how it does.
fn explore(bug: &'static str, scope: &Scope, states_max: usize) -> (usize, Option<String>) {
    let found = switch::with(bug, || explorer::search(scope, states_max, Duration::MAX));
    (found.states, found.failure.map(|(what, _)| what))
}

/// What of small ensembles shows each bug: for `docs/museum.md`, which has the figures.
#[test]
#[ignore = "takes minutes"]
fn small_ensembles_against_every_bug() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = bugs::only(bugs::read_all(root), std::env::var("BUG").ok().as_deref());
    std::panic::set_hook(Box::new(|_| {})); // These panics are wanted.
    for Bug { name, .. } in all {
        let mut line = format!("{name}: nothing");
        for scope in scopes::all().into_iter().chain(scopes::larger()) {
            if let (states, Some(what)) = explore(name, &scope, 200_000) {
                let what: String = what.chars().take(160).collect();
                line = format!("{name}: {states} states of {}: {what}", scope.name);
                break;
            }
        }
        println!("{}", line.replace('\n', " "));
    }
    let _own = std::panic::take_hook();
}

#[test]
fn every_bug_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = bugs::only(bugs::read_all(root), std::env::var("BUG").ok().as_deref());
    std::panic::set_hook(Box::new(|_| {})); // These panics are wanted.
    let mut complaints = Vec::new();
    for Bug { name, script, worlds, .. } in all {
        if let Some(file) = script {
            let text = std::fs::read_to_string(root.join(format!("tests/zab/{file}.txt"))).unwrap();
            let play = || switch::with(name, || script::outcome(&text));
            let played = catch_unwind(AssertUnwindSafe(play));
            if played.is_ok_and(|played| played == text) {
                complaints.push(format!("{name}: {file} does not notice it"));
            }
        }
        if !worlds {
            continue;
        }
        let (seeds, found) = hunt(name);
        println!("{name}: world {seeds}: {}", found.as_deref().unwrap_or("nothing"));
        if found.is_none() {
            complaints.push(format!("{name}: {seeds} random worlds do not show it"));
        }
    }
    let _own = std::panic::take_hook();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
