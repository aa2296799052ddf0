//! For each check there is a planted fault that only this check finds.

use crate::plant_into;
use oxkeeper::sim::check::Checks;
use oxkeeper::sim::{Climate, Failure, Plan, PlantedFault, Tracing, run};
use oxkeeper::tree::{Options, Tree};
use support::planted_faults::{Alone, assert_found_alone, assert_in_museum};

/// The names of the checks, in their order, and a planted fault for each.
pub const ALONE: [Alone<PlantedFault>; 22] = [
    ("one leader", PlantedFault::SecondLeader),
    ("primary order", PlantedFault::UnopenedEpoch),
    ("agreement", PlantedFault::StepBack),
    ("digests", PlantedFault::OtherDigest),
    ("durability", PlantedFault::FewDisks),
    ("configurations", PlantedFault::UncommittedView),
    ("quorums", PlantedFault::MinorityEpoch),
    ("promises", PlantedFault::EarlyAck),
    ("acknowledgements", PlantedFault::HastyAck),
    ("initial histories", PlantedFault::ShortHistory),
    ("answers", PlantedFault::WriteInReadOnly),
    ("real time", PlantedFault::UnconfirmedReads),
    ("sessions", PlantedFault::SharedSession),
    ("early expiry", PlantedFault::UnheardPings),
    ("living sessions", PlantedFault::RefusedSession),
    ("watches", PlantedFault::LostEvent),
    ("convergence", PlantedFault::StuckServer),
    ("states", PlantedFault::UnsavedEpoch),
    ("memory", PlantedFault::UnsentBytes),
    ("closed connections", PlantedFault::HeardAfterClose),
    ("snapshots", PlantedFault::CutSnapshot),
    ("restores", PlantedFault::UnfinishedRestore),
];

fn failure(seed: u64, plant: PlantedFault, left_out: Option<&'static str>) -> Option<String> {
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
