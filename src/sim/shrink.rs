//! Shrinks a plan that fails to a smaller one that fails too.

/// Tries to leave out steps, at first half of them at a time, then smaller and smaller parts, until no step can be left out.
///
/// * `count`: of steps. `fails`: whether the plan with only these steps still fails.
///
/// Gives the places of the steps that are needed.
///
/// Source: "Simplifying and Isolating Failure-Inducing Input" (Zeller, Hildebrandt, 2002), complements only.
pub fn shrink(
    count: usize,
    tries_max: usize,
    mut fails: impl FnMut(&[usize]) -> bool,
) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..count).collect();
    let (mut parts, mut tries) = (2, 0);
    while parts <= kept.len() && tries < tries_max {
        let size = kept.len().div_ceil(parts);
        let smaller = (0..parts).find_map(|part| {
            tries += 1;
            let (from, to) = (part * size, (part * size + size).min(kept.len()));
            let without: Vec<usize> =
                kept.iter().take(from).chain(kept.iter().skip(to)).copied().collect();
            (from < to && tries <= tries_max && fails(&without)).then_some(without)
        });
        match smaller {
            Some(smaller) => (kept, parts) = (smaller, (parts - 1).max(2)),
            None if parts == kept.len() => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    if kept.len() == 1 && fails(&[]) {
        kept.clear();
    }
    kept
}
