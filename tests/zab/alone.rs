//! Each check has a planted fault that it finds and no other check does.

use super::checks::Checks;
use super::checks::faults::Fault;
use super::conditions::Conditions;
use super::explorer::caught;
use super::world::World;

/// The names of the checks, in their order, and a planted fault for each.
const ALONE: [(&str, Fault); 8] = [
    ("agreement", Fault::OtherTransaction),
    ("one leader", Fault::SecondLeader),
    ("served prefix", Fault::StepBack),
    ("primary order", Fault::LaterEpoch),
    ("durability", Fault::FewDisks),
    ("promises", Fault::EmptyDisk),
    ("configurations", Fault::UndecidedView),
    ("convergence", Fault::ShortDisk),
];

const WORLDS: u64 = 6;

/// What the first check says that finds something.
fn failure(seed: u64, fault: Fault, left_out: Option<&'static str>) -> Option<String> {
    let conditions = Conditions { elects: true, changes: true, ..Conditions::mild(3, seed) };
    let mut world = World::of(Conditions { observers: 1, ..conditions });
    (world.witness.checks.fault, world.witness.checks.left_out) = (Some(fault), left_out);
    let text = caught(|| world.live()).err()?;
    // It begins with the world's conditions.
    Some(text.split_once(" }): ").map_or(text.clone(), |(_, text)| text.to_owned()))
}

#[test]
fn each_check_finds_a_fault_that_no_other_check_finds() {
    let mut complaints = Vec::new();
    for (check, fault) in ALONE {
        let mut found = 0;
        for seed in 1..=WORLDS {
            let Some(text) = failure(seed, fault, None) else { continue };
            found += 1;
            if !text.starts_with(&format!("{check}: ")) {
                complaints.push(format!("{fault:?}, seed {seed}: {text}"));
            }
            if let Some(other) = failure(seed, fault, Some(check)) {
                complaints.push(format!("{fault:?}, seed {seed}, without {check}: {other}"));
            }
        }
        println!("{check}: {fault:?} in {found} of {WORLDS} worlds");
        if found == 0 {
            complaints.push(format!("{check}: {fault:?} is not found"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

// A check without a planted fault, or without a row in the museum, is noticed here.
#[test]
fn museum_has_a_row_for_each_check_with_its_planted_fault() {
    let mut checks = Checks::default();
    assert_eq!(checks.all().map(|check| check.name()), ALONE.map(|(check, _)| check));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/museum.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `tests/zab` |")).collect();
    let row = |(check, fault)| format!("| `tests/zab` | `{check}` | `{fault:?}`: ");
    assert_eq!(rows.len(), ALONE.len());
    for (row, is) in ALONE.map(row).iter().zip(rows) {
        assert!(is.starts_with(row), "{row:?} is to begin this row: {is}");
    }
}
