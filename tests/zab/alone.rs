//! Each check finds a planted fault that no other check finds.

use super::checks::Checks;
use super::checks::faults::Fault;
use super::conditions::Conditions;
use super::explorer::caught;
use super::world::World;
use support::planted_faults::{Alone, assert_found_alone, assert_in_museum};

/// The names of the checks, in their order, and a planted fault for each.
const ALONE: [Alone<Fault>; 10] = [
    ("agreement", Fault::OtherTransaction),
    ("one leader", Fault::SecondLeader),
    ("served prefix", Fault::StepBack),
    ("primary order", Fault::LaterEpoch),
    ("durability", Fault::FewDisks),
    ("promises", Fault::EmptyDisk),
    ("configurations", Fault::UndecidedView),
    ("convergence", Fault::ShortDisk),
    ("epochs", Fault::UnaskedEpoch),
    ("phases", Fault::EarlyAck),
];

/// What the first failing check says.
fn failure(seed: u64, fault: Fault, left_out: Option<&'static str>) -> Option<String> {
    let conditions = Conditions { elects: true, changes: true, ..Conditions::mild(3, seed) };
    let mut world = World::of(Conditions { observers: 1, ..conditions });
    (world.witness.checks.fault, world.witness.checks.left_out) = (Some(fault), left_out);
    let text = caught(|| world.live()).err()?;
    // The text begins with the world's conditions.
    Some(text.split_once(" }): ").map_or(text.clone(), |(_, text)| text.to_owned()))
}

#[test]
fn each_check_finds_a_fault_that_no_other_check_finds() {
    assert_found_alone(&ALONE, 6, 6, failure);
}

#[test]
fn museum_has_a_row_for_each_check_with_its_planted_fault() {
    let mut checks = Checks::default();
    assert_in_museum("tests/zab", checks.all().map(|check| check.name()), &ALONE);
}
