//! A test of the copy that `tests/sabotage.rs` makes: the simulator's worlds (`src/sim`) find bugs that are put back. `BUG=NAME` looks
//! for one bug only.

#![allow(clippy::disallowed_methods, reason = "a test takes a name")]
#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

mod sabotage {
    #[allow(dead_code, reason = "functions that make the copy are not used in it")]
    pub mod bugs;
}
mod zab {
    pub mod notation;
    pub mod script;
    pub mod script_ensemble;
}

use oxkeeper::sabotage as switch;
use oxkeeper::sim::{Failure, Plan, Tracing, run, script as tapes, shrink};
use sabotage::bugs::{self, Bug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use zab::script;

/// The bugs that worlds have to find.
fn wanted() -> Vec<Bug> {
    let mut all = bugs::read_all(Path::new(env!("CARGO_MANIFEST_DIR")));
    let only = std::env::var("BUG").ok();
    if only.is_none() {
        all.retain(Bug::in_whole);
        assert!(all.len() >= 5, "only {} bugs are for worlds", all.len());
    }
    bugs::only(all, only.as_deref())
}

/// Whether one of those worlds becomes a script that shows the bug.
fn becomes_script(bug: &Bug) -> bool {
    bug.in_whole() && bug.whole.as_deref().is_some_and(|found| found.ends_with(", with a script"))
}

/// How a world fails. A server's assertion may fail with a bug that is put back.
fn failure_of(plan: &Plan) -> Option<Failure> {
    let ran = catch_unwind(AssertUnwindSafe(|| run(plan, Tracing::Off).failure));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map_or("an assertion", String::as_str);
        Some(Failure { check: "panic", what: text.to_owned() })
    })
}

/// A world that fails only with a bug, and how.
///
/// * `fits`: whether a world is tried.
fn failure(bug: &Bug, fits: impl Fn(&Plan) -> bool) -> Option<(Plan, Failure)> {
    let worlds = bugs::worlds(bug.whole.as_deref()).take(1000);
    worlds.map(Plan::of).filter(fits).find_map(|plan| {
        let failure = switch::with(bug.name, || failure_of(&plan))?;
        if run(&plan, Tracing::Off).failure.is_some() {
            println!("seed {} fails without {} too", plan.climate.seed, bug.name);
            return None;
        }
        Some((plan, failure))
    })
}

#[test]
fn every_bug_put_back_is_found_by_simulated_worlds() {
    let mut missed = Vec::new();
    for bug in wanted() {
        match failure(&bug, |_| true) {
            Some((Plan { climate, .. }, Failure { check, what })) => {
                println!("{}: seed {}: {check}: {what}", bug.name, climate.seed);
            }
            None => missed.push(bug.name),
        }
    }
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}

// The plan of a world that fails is shrunk, and its world becomes a script of one server, whose outcome differs with the bug.
#[test]
fn failing_world_becomes_a_script_that_shows_the_bug() {
    for bug in wanted().into_iter().filter(becomes_script) {
        let name = bug.name;
        // Worlds with a limit on lag, and those without an ensemble, have no scripts.
        let has_script = |Plan { climate, .. }: &Plan| !climate.alone && climate.lag_bytes.is_none();
        let (plan, failure) =
            failure(&bug, has_script).unwrap_or_else(|| panic!("{name} is not found"));
        let fails = |kept: &[usize]| {
            let outcome = switch::with(name, || run(&plan.only(kept), Tracing::Off));
            outcome.failure.is_some_and(|found| found.check == failure.check)
        };
        let kept = shrink::shrink(plan.steps.len(), 60, fails);
        let outcome = switch::with(name, || run(&plan.only(&kept), Tracing::Inputs));
        let title = outcome.failure.expect("the world still fails").what;
        let spoil = |on: bool| switch::set(on.then_some(name));
        let text = tapes::script(&title, &outcome.tapes, Some(&spoil)).expect("a server differs");
        let sound = script::outcome(&text);
        println!("{name}: {} steps, a script of {} lines", kept.len(), sound.lines().count());
        assert_eq!(script::outcome(&sound), sound, "the script fails without {name}");
        let spoilt = switch::with(name, || script::outcome(&sound));
        assert_ne!(spoilt, sound, "{name} does not show in\n{sound}");
    }
}
