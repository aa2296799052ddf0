//! The simulator (`src/sim`): worlds from fixed seeds, and faults planted into them.
//!
//! `cargo test --release --features sim --test sim`; `sim --seconds 60` tries fresh seeds.

#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

mod sim {
    pub mod alone;
    mod client_checks;
    mod parts;
    mod planted;
    mod server_checks;
}

use oxkeeper::sim::plan::{ClientAction, MS, PlannedEvent, Step};
use oxkeeper::sim::workload::{Op, Request};
use oxkeeper::sim::{Climate, Failure, Outcome, Plan, PlantedFault, Tracing, run, shrink};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The outcome of a world, and the lines of its trace.
fn traced(plan: &Plan) -> (Outcome, String) {
    let lines = Rc::new(RefCell::new(String::new()));
    let taken = lines.clone();
    let take = move |line: &str| {
        let mut all = taken.borrow_mut();
        all.push_str(line);
        all.push('\n');
    };
    let outcome = run(plan, Tracing::To(Box::new(take)));
    (outcome, lines.take())
}

#[track_caller]
fn runs(plan: &Plan) -> Outcome {
    let outcome = run(plan, Tracing::Off);
    if let Some(Failure { check, what }) = &outcome.failure {
        let (_, text) = traced(plan);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        let seed = plan.climate.seed;
        panic!("{last}\nseed {seed}: {check}: {what}");
    }
    outcome
}

// Each failed world of an ensemble can become a script, except worlds that limit how far a learner may lag: that limit counts bytes,
// and scripts have no sizes. Nor do scripts know configurations that do not count yet, which a server may have whose zoo.cfg was written
// anew: a world has a script then if a server has begun without them.
#[test]
fn inputs_of_every_world_become_a_script_unless_lag_is_limited_or_lines_are_written_anew() {
    for seed in 1..=60 {
        let Outcome { failure, tapes, .. } = run(&Plan::of(seed), Tracing::Inputs);
        assert!(failure.is_none(), "seed {seed}: {failure:?}");
        let text = oxkeeper::sim::script::script("whole", &tapes, None);
        let Climate { lag_bytes, alone, rewrites, .. } = Climate::of(seed);
        let has_script = lag_bytes.is_none() && !alone;
        assert!(rewrites || text.is_some() == has_script, "seed {seed}");
        assert!(text.is_none_or(|text| text.contains("heard")), "seed {seed}");
    }
}

/// Runs worlds, and asserts that all properties hold in them and that each situation comes as often as `enough` says, in all worlds
/// together.
#[track_caller]
fn assert_worlds_reach(plans: impl Iterator<Item = Plan>, enough: &[(&str, u64)]) {
    let mut counts = BTreeMap::<&str, u64>::new();
    for plan in plans {
        let all = runs(&plan).counts.into_iter();
        all.for_each(|(what, count)| *counts.entry(what).or_default() += count);
    }
    println!("{counts:?}");
    for (what, enough) in enough {
        let count = counts.get(what).copied().unwrap_or(0);
        assert!(*enough <= count, "{what}: {count} in all worlds, fewer than {enough}");
    }
}

// Every fault and every situation has to come often enough in these worlds, and every property has to hold in them.
#[test]
fn worlds_from_fixed_seeds_reach_every_fault_and_hold_every_property() {
    let enough = [
        ("DIFF", 1000),
        ("SNAP", 300),
        ("TRUNC", 3),
        ("logs read", 100),
        ("trees rebuilt", 1),
        ("snapshots", 1000),
        ("power cuts", 1000),
        ("kills", 300),
        ("disk errors", 50),
        ("leaders", 500),
        ("writes", 5000),
        ("reads", 5000),
        ("refusals", 5000),
        ("events", 500),
        ("events missed", 50),
        ("sessions lost", 30),
        ("sessions moved", 500),
        ("stalls", 300),
        ("cuts", 300),
        ("one-way cuts", 100),
        ("breaks", 200),
        ("clocks set", 200),
        ("slow disks", 50),
        ("lossy connections", 100),
        ("purges", 50),
        ("unsynced writes cut", 40),
        ("sent again", 1000),
        ("lost with a connection", 200),
        ("notifications sent again", 50),
        ("sectors damaged", 50),
        ("data quarantined", 10),
        ("configurations adopted", 200),
        ("SASL exchanges completed", 100),
        ("SASL exchanges broken off", 5),
        ("connections ended within a tree", 2),
        ("read after the close", 20),
        ("inputs from closed connections", 100),
        ("chunks read together", 1000),
        ("tasks starved", 100),
        ("disconnected with too many unsent bytes", 1),
        ("leaders isolated", 100),
        ("leaders cut off while they synchronise", 100),
        ("power cuts after truncations", 3),
        ("worlds of seven voters", 10),
        ("worlds of two voters", 5),
        ("worlds with groups", 20),
        ("configurations with groups adopted", 50),
        ("worlds that lose files", 15),
        ("worlds that lose files, db.autocreate=false", 15),
        ("lost: acceptedEpoch", 5),
        ("lost: currentEpoch", 5),
        ("lost: both epochs", 3),
        ("lost: logs", 2),
        ("lost: newest log", 1),
        ("lost: older log", 1),
        ("lost: snapshots", 2),
        ("lost: logs and snapshots", 2),
        ("lost: snapshots and epochs", 5),
        ("lost: all data", 5),
        ("lost: dynamic file", 3),
        ("lost: proposed configuration", 1),
        ("lost: myid", 10),
        ("lost: machines", 3),
        ("restored: older data", 1),
        ("restored: older disk", 1),
        ("other digests", 5),
        ("emptied by the operator", 10),
        ("configuration files locked", 10),
        ("worlds with linearizable reads", 20),
        ("worlds that start together", 10),
        ("sessions expired", 100),
        ("voters that go on alone", 1),
        ("reads without a leader", 10),
        ("starts without the disk of logs", 30),
        ("worlds with restores", 30),
        ("worlds of a standalone server", 5),
        ("restores cut short", 5),
        ("trees copied", 50),
        ("restores begun", 15),
        ("trees restored", 8),
        ("restores refused: no leader", 15),
        ("worlds with Java members", 60),
        ("worlds with an oracle and changes", 3),
        ("quorums that lose their data", 10),
        ("older copies after the loss of a quorum", 3),
        ("first configurations written again", 5),
        ("later configurations written again", 3),
        ("transactions lost with a quorum", 100),
        ("acknowledgements kept until UPTODATE", 5),
        ("configurations named before they are committed", 1),
        ("proposals before NEWLEADER", 3),
        ("lost: older log and its snapshots", 3),
        ("worlds with locked configuration folders", 20),
        ("worlds that lose a machine", 15),
        ("snapshots removed by the operator", 10),
        ("worlds that move client ports", 10),
        ("client ports moved", 5),
        ("client ports that could not be bound", 1),
        ("clients that found no port", 1),
        ("worlds that reconfigure in a hurry", 15),
        ("reconfigurations cut off", 50),
        ("worlds with damaged trees of Java leaders", 3),
        ("worlds with rivals that observers meet", 4),
        ("promises to rivals", 3),
        ("worlds whose operators write lines anew", 3),
        ("worlds that begin with one server", 4),
        ("servers that operators add by lines", 2),
        ("servers that come back after their lines are gone", 2),
        ("worlds with packets of another phase", 5),
        ("packets of another phase", 5),
        ("worlds whose first connections end", 5),
        ("first learner connections broken", 3),
        ("election connections replaced", 2),
        ("conditional reconfigurations", 5),
        ("conditional reconfigurations of another version", 5),
    ];
    assert_worlds_reach((1..=300).map(Plan::of), &enough);
}

// A standalone server decides alone which data counts, and gives the zxids of what it lost out again.
#[test]
fn standalone_server_that_restores_trees_holds_every_property_through_kills_and_power_cuts() {
    let enough = [
        ("trees restored", 15),
        ("restores cut short", 5),
        ("kills", 30),
        ("power cuts", 60),
        ("unsynced writes cut", 5),
        ("writes", 500),
        ("sessions lost", 10),
    ];
    let plans = (1..=24).map(|seed| Plan::in_climate(Climate::of(seed).alone()));
    assert_worlds_reach(plans, &enough);
}

#[test]
fn two_runs_of_one_seed_have_the_same_trace() {
    let ((_, first), (_, second)) = (traced(&Plan::of(7)), traced(&Plan::of(7)));
    assert!(first.lines().count() > 1000);
    assert!(first == second, "two runs of one seed differ");
}

/// The plan of the first of so many worlds that fails, and its failure.
fn first_failure(worlds: u64, spoil: impl Fn(&mut Climate)) -> Option<(Plan, Failure)> {
    (1..=worlds).find_map(|seed| {
        let mut climate = Climate::of(seed);
        spoil(&mut climate);
        let plan = Plan::in_climate(climate);
        let failure = run(&plan, Tracing::Off).failure?;
        Some((plan, failure))
    })
}

/// Changes a climate so that a planted fault may show in it.
fn plant_into(climate: &mut Climate, plant: PlantedFault) {
    if climate.alone {
        *climate = Climate::calm(climate.seed);
    }
    if plant == PlantedFault::WrongOracle {
        *climate = Climate { voters: 2, oracle: true, ..Climate::calm(climate.seed) };
    }
    if plant == PlantedFault::MoreIsLost {
        *climate = Climate { destroys: true, ..Climate::calm(climate.seed) };
    }
    climate.plant = Some(plant);
    climate.linearizable_reads |= plant == PlantedFault::UnconfirmedReads;
    climate.starts_together |= plant == PlantedFault::SlowStart;
    climate.read_only |= plant == PlantedFault::WriteInReadOnly;
    climate.unmounts |= plant == PlantedFault::MountPointMade;
    climate.restores = plant == PlantedFault::UnfinishedRestore;
    if plant == PlantedFault::UnmissedLoss {
        (climate.changes, climate.joiners, climate.damaged) = (false, 0, Some(0));
    }
}

// Each check sees what happens in a world: it finds the fault that was planted for it.
#[test]
fn planted_faults_are_found() {
    let table: &[(PlantedFault, &[&str])] = &[
        (PlantedFault::LyingDisk, &["durability"]),
        (PlantedFault::ForgottenEpochs, &["one leader", "primary order", "promises", "agreement"]),
        (PlantedFault::TamperedTree, &["digests", "answers", "convergence"]),
        (PlantedFault::LostEvent, &["watches"]),
        (PlantedFault::RepeatedEvent, &["watches"]),
        (PlantedFault::LateEvent, &["watches"]),
        (PlantedFault::WrongAnswer, &["answers"]),
        (PlantedFault::OldZxid, &["sessions", "answers", "real time"]),
        (PlantedFault::SwappedAnswers, &["sessions", "answers"]),
        (PlantedFault::StuckServer, &["convergence"]),
        (PlantedFault::EarlyReport, &["states", "durability"]),
        (PlantedFault::UnmissedLoss, &["durability", "primary order", "agreement", "convergence"]),
        (PlantedFault::LostLastingEvent, &["watches"]),
        (PlantedFault::UnconfirmedReads, &["real time"]),
        (PlantedFault::UnheardPings, &["early expiry"]),
        (PlantedFault::SlowStart, &["convergence"]),
        (PlantedFault::WriteInReadOnly, &["answers"]),
        (PlantedFault::MountPointMade, &["durability"]),
        (PlantedFault::WrongOracle, &["one leader", "primary order", "durability", "agreement"]),
        (PlantedFault::RefusedSession, &["living sessions"]),
        (PlantedFault::MoreIsLost, &["primary order", "one leader"]),
    ];
    let is_listed = |plant: &PlantedFault| {
        table.iter().any(|(it, _)| it == plant)
            || sim::alone::ALONE.iter().any(|(_, it)| it == plant)
    };
    assert_eq!(PlantedFault::ALL.iter().find(|plant| !is_listed(plant)), None);
    for (plant, checks) in table {
        let found = first_failure(60, |climate| plant_into(climate, *plant));
        let (_, Failure { check, what }) =
            found.unwrap_or_else(|| panic!("{plant:?} is not found"));
        println!("{plant:?}: {check}: {what}");
        assert!(checks.contains(&check), "{plant:?} is found by {check}: {what}");
    }
}

// Where members change, too, nothing may be lost but what the checks know to be lost.
#[test]
fn unreported_loss_is_found_where_members_change() {
    let found = first_failure(40, |climate| {
        let (plant, seed) = (Some(PlantedFault::MoreIsLost), climate.seed);
        let calm = Climate::calm(seed);
        *climate = Climate { destroys: true, changes: true, joiners: 1, plant, ..calm };
    });
    let (_, Failure { check, .. }) = found.expect("more is lost than the checks know");
    assert!(["one leader", "primary order", "agreement", "durability"].contains(&check), "{check}");
}

// Steps that a failure does not need are left out of its plan.
#[test]
fn failing_plan_shrinks_to_fewer_steps_that_fail_too() {
    let spoil = |climate: &mut Climate| climate.plant = Some(PlantedFault::LostEvent);
    let (plan, failure) = first_failure(60, spoil).expect("the fault is found");
    let fails = |kept: &[usize]| {
        let found = run(&plan.only(kept), Tracing::Off).failure;
        found.is_some_and(|found| found.check == failure.check)
    };
    let kept = shrink::shrink(plan.steps.len(), 200, fails);
    println!("{} of {} steps", kept.len(), plan.steps.len());
    assert!(kept.len() < plan.steps.len() / 4, "{} of {}", kept.len(), plan.steps.len());
    assert!(fails(&kept));
}

fn calm(seed: u64, actions: Vec<(u64, usize, ClientAction)>) -> Plan {
    let climate = Climate::calm(seed);
    let step = |(at_ms, client, action)| Step {
        at_us: at_ms * MS,
        event: PlannedEvent::Client { client, action },
    };
    Plan { climate, steps: actions.into_iter().map(step).collect() }
}

// The server of the client's connection closes it when the session has expired, also if that server is a follower.
#[test]
fn connection_of_a_silent_client_is_closed_when_its_session_has_expired() {
    for seed in 1..=12 {
        let actions = (0..3)
            .map(|client| (1900, client, ClientAction::Sleep { for_us: 4000 * MS }))
            .collect();
        let outcome = runs(&calm(seed, actions));
        assert_eq!(outcome.counts.get("sessions lost"), Some(&3));
    }
}

#[test]
fn world_without_faults_loses_no_session_and_does_every_write() {
    let create = Op::Create { ephemeral: false, sequential: false, with_stat: true };
    let requests = |path| {
        let ops = [create.clone(), Op::Set { large: false }, Op::Get { watch: true }];
        ClientAction::Send(ops.map(|op| Request::new(op, path)).to_vec())
    };
    let mut actions =
        vec![(600, 0, requests("/a")), (700, 1, requests("/b")), (800, 2, requests("/c"))];
    let close = ClientAction::Send(vec![Request::new(Op::Close, "")]);
    actions.extend([(900, 0, ClientAction::Move { server: 1 }), (1200, 1, close)]);
    let outcome = runs(&calm(3, actions));
    let count = |what| outcome.counts.get(what).copied().unwrap_or(0);
    assert_eq!((count("sessions lost"), count("sessions"), count("writes")), (0, 4, 13));
    // One leader until the power cut of all machines, and one after that.
    assert_eq!((count("leaders"), count("power cuts")), (2, 3));
}
