//! The table of `docs/museum.md` that says what finds each bug, after a line that counts. They stand between two marks and are written by
//! `UPDATE_EXPECT=1 cargo test --features sim --test sabotage`.

use super::bugs::Bug;

const BEGIN: &str = "<!-- bugs: written from tests/sabotage/*.bug, not by hand -->\n";
const END: &str = "<!-- end of bugs -->\n";
/// In the columns of tests of `zab` alone: the bug is in other code.
const NOWHERE: &str = "outside of `zab`";
const HEAD: &str = "\
| Bug | What it does | Script or test | Random worlds | Worlds of `sim` | Small ensembles |
|---|---|---|---|---|---|
";

/// The page before the table and after it.
///
/// # Panics
/// when a mark is not there.
pub fn around(page: &str) -> (&str, &str) {
    let (before, rest) = page.split_once(BEGIN).expect("museum.md has the mark before the table");
    let (_, after) = rest.split_once(END).expect("museum.md has the mark after the table");
    (before, after)
}

/// The page with the table of these bugs.
pub fn with_table(page: &str, bugs: &[Bug]) -> String {
    let (before, after) = around(page);
    let rows: String = bugs.iter().map(row).collect();
    format!("{before}{BEGIN}{}\n{HEAD}{rows}{END}{after}", counts(bugs))
}

/// How many bugs the searchers find.
fn counts(bugs: &[Bug]) -> String {
    let says = |found: &Option<String>, word| {
        found.as_deref().is_some_and(|found| found.starts_with(word))
    };
    let count = |of: &dyn Fn(&Bug) -> bool| bugs.iter().filter(|bug| of(bug)).count();
    let seldom = count(&|bug| says(&bug.whole, "seldom"));
    let whole = count(&|bug| bug.in_whole());
    let worlds = count(&|bug| bug.in_worlds() && !bug.in_whole());
    let is_small = |bug: &Bug| says(&bug.small, "yes") && !bug.in_worlds() && !bug.in_whole();
    let small = count(&is_small);
    let (all, none) = (bugs.len(), bugs.len() - whole - worlds - small);
    format!(
        "Worlds of `sim` find {whole} of the {all} bugs each time, and {seldom} more seldom. Random worlds of `tests/zab` find {worlds} that `sim` does not \
         find\neach time, and small ensembles alone {small}. No searcher finds {none} each time: only the named script or test does.\n"
    )
}

fn row(bug: &Bug) -> String {
    let named = [bug.script.clone(), bug.test.as_ref().map(|(target, test)| named(target, test))];
    let named: Vec<String> = named.into_iter().flatten().map(|name| format!("`{name}`")).collect();
    let what = bug.what.trim_end_matches('.').replace('|', "\\|");
    let agreement = ["src/zab/", "src/model/"];
    let is_there = |file: &str| agreement.iter().any(|room| file.starts_with(room));
    let elsewhere = if bug.edits.iter().any(|edit| is_there(&edit.file)) { "" } else { NOWHERE };
    let worlds = found(bug.worlds.as_deref().unwrap_or(elsewhere));
    let whole = found(bug.whole.as_deref().unwrap_or_default());
    let small = found(bug.small.as_deref().unwrap_or(elsewhere));
    format!("| {} | {what} | {} | {worlds} | {whole} | {small} |\n", bug.name, named.join(", "))
}

/// A finding as the table has it: shorter where a figure is enough.
fn found(text: &str) -> String {
    let text = text.strip_prefix("yes: ").unwrap_or(text);
    let bound = text.strip_prefix("no: ").filter(|bound| bound.starts_with("not in "));
    bound.unwrap_or(text).replace('|', "\\|")
}

/// A test with the file that it is in, as the rest of the page writes it.
fn named(target: &str, test: &str) -> String {
    let Some((path, name)) = test.rsplit_once("::") else {
        return format!("tests/{target}.rs::{test}");
    };
    let root = if target == "lib" { "src" } else { "tests" };
    let file = |path: &str| format!("{root}/{}.rs", path.replace("::", "/"));
    format!("{}::{name}", file(path.strip_suffix("::tests").unwrap_or(path)))
}
