//! Each check has a planted fault that it finds and no other check does.

use crate::plant_into;
use oxkeeper::sim::check::Checks;
use oxkeeper::sim::{Climate, Failure, Plan, Plant, Tracing, run};
use oxkeeper::tree::{Options, Tree};
use support::alone::{Alone, assert_found_alone, assert_in_museum};

/// The names of the checks, in their order, and a planted fault for each.
pub const ALONE: [Alone<Plant>; 20] = [
    ("one leader", Plant::SecondLeader),
    ("primary order", Plant::UnopenedEpoch),
    ("agreement", Plant::StepBack),
    ("digests", Plant::OtherDigest),
    ("durability", Plant::FewDisks),
    ("configurations", Plant::UncommittedView),
    ("quorums", Plant::MinorityEpoch),
    ("promises", Plant::EarlyAck),
    ("initial histories", Plant::ShortHistory),
    ("answers", Plant::WriteInReadOnly),
    ("real time", Plant::UnconfirmedReads),
    ("sessions", Plant::SharedSession),
    ("early expiry", Plant::UnheardPings),
    ("living sessions", Plant::RefusedSession),
    ("watches", Plant::LostEvent),
    ("convergence", Plant::StuckServer),
    ("states", Plant::UnsavedEpoch),
    ("memory", Plant::UnsentBytes),
    ("closed connections", Plant::HeardAfterClose),
    ("snapshots", Plant::CutSnapshot),
];

fn failure(seed: u64, plant: Plant, left_out: Option<&'static str>) -> Option<String> {
    let mut climate = Climate::of(seed);
    plant_into(&mut climate, plant);
    climate.left_out = left_out;
    let Failure { check, what } = run(&Plan::in_climate(climate), Tracing::Off).failure?;
    Some(format!("{check}: {what}"))
}

#[test]
fn each_check_finds_a_fault_that_no_other_check_finds() {
    assert_found_alone(&ALONE, 60, 3, failure);
}

#[test]
fn museum_has_a_row_for_each_check_with_its_planted_fault() {
    let first = super::planted::first_view();
    let checks = Checks::new(&Tree::new(Options::default()), false, first);
    assert_in_museum("src/sim", checks.names(), &ALONE);
}
