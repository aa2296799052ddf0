//! Asserts that for each check of the simulator and of `tests/zab` there is a planted fault that this check finds and no other check does.

use std::fmt::Debug;

/// The name of a check, and a fault that it alone finds.
pub type Alone<F> = (&'static str, F);

/// Asserts that in worlds with a fault the check paired with the fault fails first, and that no check fails in the same worlds without
/// that check.
///
/// * `worlds`: how many are tried for each fault. `enough`: how many failing worlds are enough.
/// * `failure`: runs the world of this seed with this fault, and without the check that the last argument names; returns
///   `CHECK: text` of the first check that fails.
#[track_caller]
#[allow(clippy::print_stdout, reason = "what was found is worth a line")]
pub fn assert_found_alone<F: Copy + Debug>(
    faults: &[Alone<F>],
    worlds: u64,
    enough: usize,
    failure: impl Fn(u64, F, Option<&'static str>) -> Option<String>,
) {
    let mut complaints = Vec::new();
    for &(check, fault) in faults {
        let mut found = Vec::new();
        for seed in 1..=worlds {
            let Some(text) = failure(seed, fault, None) else { continue };
            if !text.starts_with(&format!("{check}: ")) {
                complaints.push(format!("{fault:?}, seed {seed}: {text}"));
            }
            found.push(seed);
            if found.len() == enough {
                break;
            }
        }
        println!("{check}: {fault:?} in worlds {found:?}");
        if found.is_empty() {
            complaints.push(format!("{check}: {fault:?} is not found"));
        }
        for seed in found {
            if let Some(other) = failure(seed, fault, Some(check)) {
                complaints.push(format!("{fault:?}, seed {seed}, without {check}: {other}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Asserts that each check has a planted fault, and a row in docs/museum.md.
///
/// * `checker`: as the rows name it. `checks`: the names of all its checks, in their order.
#[track_caller]
pub fn assert_in_museum<F: Debug>(
    checker: &str,
    checks: impl IntoIterator<Item = &'static str>,
    faults: &[Alone<F>],
) {
    assert!(checks.into_iter().eq(faults.iter().map(|(check, _)| *check)), "{faults:?}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/museum.md");
    let text = std::fs::read_to_string(path).unwrap();
    let of_checker = format!("| `{checker}` |");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(&of_checker)).collect();
    assert_eq!(rows.len(), faults.len());
    for ((check, fault), row) in faults.iter().zip(rows) {
        let begin = format!("{of_checker} `{check}` | `{fault:?}`: ");
        assert!(row.starts_with(&begin), "{begin:?} is to begin this row: {row}");
    }
}
