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

/// The bugs of fourteen rows of ZooKeeper's bugs, and those of the fifteen numbers of "When members change, or files are lost".
const WANTED: [(&str, &[&str]); 29] = [
    ("962", &["LeadsWithoutQuorum"]),
    ("1282", &["ObserverCounts"]),
    ("1551", &["ObserverForgets"]),
    ("2307", &["EpochFileTorn", "PromiseUnsaved"]),
    ("2099", &["DiffAcrossTree", "LogReadOverTree", "TruncAcrossEpochs"]),
    ("2678", &["LooksTooSoon"]),
    ("3023", &["PacketsOfAnyPhase"]),
    ("3104", &["NewLeaderBeforeTree"]),
    ("4394", &["CommitForgotten"]),
    ("4541", &["RepeatedIsLogged"]),
    ("4685", &["AcknowledgedTooSoon"]),
    ("4785", &["DiffUnlogged"]),
    ("4837", &["TreeKeepsItsTail", "TreeUnasked"]),
    ("2325", &["MissingSnapshotIsEmpty"]),
    ("No. 1", &["ViewOfLogForgotten"]),
    ("No. 2", &["ViewBetweenForgotten"]),
    ("No. 3", &["ViewOfTreeUnread", "PromiseNotWithheld"]),
    ("No. 4", &["NamedViewInForce"]),
    ("No. 5", &["LostViewDecides", "ForgottenViewComesBack", "NextBeforeLog"]),
    ("No. 6", &["SavedViewIgnored", "ProposedMembersUndialed"]),
    ("No. 7", &["LaterHistoryJoins", "UnknownHistoryCounts"]),
    (
        "No. 8",
        &[
            "EpochsAloneCount",
            "GapAfterSnapshotBelieved",
            "MountPointNotMissed",
            "LostPromiseGuessed",
            "LostCurrentEpochGuessed",
            "GapBetweenEpochsBelieved",
        ],
    ),
    ("No. 9", &["DamagedEpochBeginPassedOver", "DoubtfulTreeCounts"]),
    ("No. 10", &["ConfigFolderNotTried", "PerformsAfterFailure"]),
    ("No. 11", &["ReplacedConnectionIsLoss", "LeaderWithoutLearnersWaits"]),
    ("No. 12", &["MemberTakesNoSnapshot"]),
    ("No. 13", &["OldClientPortStays"]),
    ("No. 14", &["PromiseOutlivedAsObserver"]),
    ("No. 15", &["ConnectRefusedAtOnce"]),
];
const WANTED_HEAD: &str = "\
| Row | Bugs, each with the first world of `sim` that shows it |
|---|---|
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
    let (counts, wanted) = (counts(bugs), wanted(bugs));
    format!("{before}{BEGIN}{wanted}\n{counts}\n{HEAD}{rows}{END}{after}")
}

/// In which worlds of `sim` the bugs of the museum's rows show.
fn wanted(bugs: &[Bug]) -> String {
    let bug = |name: &str| bugs.iter().find(|bug| bug.name == name).expect("a bug has this name");
    let all = || WANTED.iter().flat_map(|(_, names)| names.iter().map(|name| bug(name)));
    let (count, found) = (all().count(), all().filter(|bug| bug.in_whole()).count());
    let last = all().filter(|bug| bug.in_whole()).filter_map(Bug::first_whole).max();
    let of = |name: &&str| match bug(name) {
        bug if bug.in_whole() => format!("`{name}`: {}", found_in(bug)),
        bug => format!("`{name}`: {}", found_in(bug).replacen("no: ", "none, ", 1)),
    };
    let row = |(row, names): &(&str, &[&str])| {
        let names: Vec<String> = names.iter().map(of).collect();
        format!("| {row} | {} |\n", names.join("; "))
    };
    let rows: String = WANTED.iter().map(row).collect();
    let last = match last.expect("bugs are found") {
        last @ 1000.. => format!("{},{:03}", last / 1000, last % 1000),
        last => last.to_string(),
    };
    format!(
        "`sim` finds {found} of {count} bugs of the following rows within its first {last} worlds: rows of ZooKeeper's bugs above, and \
         those with\na number in [\"When members change, or files are lost\"](#when-members-change-or-files-are-lost).\n\n{WANTED_HEAD}{rows}"
    )
}

fn found_in(bug: &Bug) -> String {
    let text = bug.whole.as_deref().unwrap_or("no: not searched");
    text.strip_prefix("yes: ").unwrap_or(text).replace('|', "\\|")
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
