//! Each check has a planted fault that it finds and no other check does.

use crate::plant_into;
use oxkeeper::sim::check::Checks;
use oxkeeper::sim::{Climate, Failure, Plan, Plant, Tracing, run};
use oxkeeper::tree::{Options, Tree};

/// The names of the checks, in their order, and a planted fault for each.
pub const ALONE: [(&str, Plant); 19] = [
    ("one leader", Plant::SecondLeader),
    ("primary order", Plant::UnopenedEpoch),
    ("agreement", Plant::StepBack),
    ("digests", Plant::OtherDigest),
    ("durability", Plant::FewDisks),
    ("configurations", Plant::UncommittedView),
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

/// In so many worlds a fault is looked for, and so often it is to be found.
const WORLDS: u64 = 60;
const ENOUGH: usize = 3;

fn failure(seed: u64, plant: Plant, left_out: Vec<&'static str>) -> Option<Failure> {
    let mut climate = Climate::of(seed);
    plant_into(&mut climate, plant);
    climate.left_out = left_out;
    run(&Plan::in_climate(climate), Tracing::Off).failure
}

#[test]
fn each_check_finds_a_fault_that_no_other_check_finds() {
    let mut complaints = Vec::new();
    for (check, plant) in ALONE {
        let mut found = Vec::new();
        for seed in 1..=WORLDS {
            let Some(failure) = failure(seed, plant, Vec::new()) else { continue };
            if failure.check != check {
                complaints.push(format!("{plant:?}, seed {seed}: {failure:?}"));
            }
            found.push(seed);
            if found.len() == ENOUGH {
                break;
            }
        }
        println!("{check}: {plant:?} in worlds {found:?}");
        if found.is_empty() {
            complaints.push(format!("{check}: {plant:?} is not found"));
        }
        for seed in found {
            if let Some(other) = failure(seed, plant, vec![check]) {
                complaints.push(format!("{plant:?}, seed {seed}, without {check}: {other:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

// A check without a planted fault, or without a row in the museum, is noticed here.
#[test]
fn museum_has_a_row_for_each_check_with_its_planted_fault() {
    let first = super::planted::first_view();
    let checks = Checks::new(&Tree::new(Options::default()), false, first);
    assert!(checks.names().eq(ALONE.map(|(check, _)| check)), "{ALONE:?}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/museum.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `src/sim` |")).collect();
    let row = |(check, plant)| format!("| `src/sim` | `{check}` | `{plant:?}`: ");
    assert_eq!(rows.len(), ALONE.len());
    for (row, is) in ALONE.map(row).iter().zip(rows) {
        assert!(is.starts_with(row), "{row:?} is to begin this row: {is}");
    }
}
