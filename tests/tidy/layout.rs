//! The project around the code: map, manifests, scripts, and texts that may be in no file.

use std::collections::BTreeSet;

use super::rooms::room_of;
use super::source::{File, project_files, words};
use crate::{Complaints, none, one};

const SCRIPT_LINES_MAX: usize = 50;

/// Stages of `scripts/test` that need a runner: the runner's file, and the start of the stage's line.
const RUNNERS: &[(&str, &str)] = &[
    ("tests/shuttle.rs", "stage shuttle "),
    ("tests/sabotage.rs", "stage shuttle "),
    ("tests/sim.rs", "stage test "),
    ("compat-tests/cache_test", "stage caches "),
    ("compat-tests/differential/main.rs", "stage differential "),
    ("compat-tests/interchange/main.rs", "stage interchange "),
    ("compat-tests/election/main.rs", "stage election "),
    ("compat-tests/clients/run", "stage clients "),
    ("compat-tests/words/run", "stage words "),
    ("compat-tests/hostile/run", "stage hostile "),
    ("fuzz/run", "stage fuzz "),
    ("compat-tests/kill/run", "stage kill "),
];

fn text_of<'a>(files: &'a [File], path: &str) -> &'a str {
    files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
}

/// The map lists the rooms in table rows: "| `room` | job | ... |", marked `(not yet)` until it is on disk.
fn check_map(files: &[File]) -> Complaints {
    let on_disk: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| room_of(&file.path))
        .filter(|room| *room != "main")
        .collect();
    let mut complaints = Vec::new();
    let mut mapped = BTreeSet::new();
    for line in text_of(files, "ARCHITECTURE.md").lines() {
        let Some((room, rest)) = line.strip_prefix("| `").and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        mapped.insert(room);
        match (on_disk.contains(room), rest.starts_with(" (not yet)")) {
            (true, true) => complaints
                .push(format!("ARCHITECTURE.md: `{room}` is on disk: remove its `(not yet)`")),
            (false, false) => complaints
                .push(format!("ARCHITECTURE.md: `{room}` is not on disk: mark it `(not yet)`")),
            _ => {}
        }
    }
    let missing = on_disk.difference(&mapped);
    complaints.extend(missing.map(|room| format!("ARCHITECTURE.md: no row for `{room}`")));
    complaints
}

/// The overview of the code that tests share names each of its files.
fn check_support(files: &[File]) -> Complaints {
    let overview = text_of(files, "tests/support/lib.rs");
    let overview: String = overview.lines().filter(|line| line.starts_with("//!")).collect();
    let shared = files.iter().filter_map(|file| file.path.strip_prefix("tests/support/"));
    let names = shared.filter_map(|name| name.strip_suffix(".rs")).filter(|name| *name != "lib");
    let unnamed = names.filter(|name| !overview.contains(&format!("`{name}`")));
    unnamed.map(|name| format!("tests/support/lib.rs: say what `{name}` is for")).collect()
}

/// Each dependency is below a comment line that gives its reason.
fn check_manifests(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        let (mut inside, mut above) = (false, "");
        for line in file.text.lines() {
            let entry =
                line.split_once('=').filter(|(name, _)| !name.starts_with([' ', '#', '\t']));
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]");
            } else if let (true, Some((name, _))) = (inside, entry)
                && !above.starts_with("# ")
            {
                complaints.push(format!("{}: why `{}`? Say it above", file.path, name.trim()));
            }
            above = line;
        }
    }
    complaints
}

/// Scripts only start programs in Rust or Python, which can be read and tested.
fn check_scripts(files: &[File]) -> Complaints {
    let script = |file: &&File| file.path.starts_with("scripts/") || file.path.starts_with(".ci/");
    let long = |file: &&File| file.text.lines().count() >= SCRIPT_LINES_MAX;
    let complain = |file: &File| {
        let lines = file.text.lines().count();
        format!("{}: {lines} lines, a script stays below {SCRIPT_LINES_MAX}", file.path)
    };
    files.iter().filter(script).filter(long).map(complain).collect()
}

/// A stage is active in `scripts/test` exactly when its runner exists, so that none is forgotten or skipped in silence.
fn check_stages(files: &[File]) -> Complaints {
    let test = text_of(files, "scripts/test");
    let manifest = text_of(files, "Cargo.toml");
    let mut complaints = Vec::new();
    for (runner, stage) in RUNNERS {
        let exists = files.iter().any(|file| file.path == *runner);
        let active = test.lines().any(|line| line.starts_with(stage));
        let waiting = test.lines().any(|line| line.starts_with(&format!("# {stage}")));
        match (exists, active, waiting) {
            (true, false, _) => {
                complaints.push(format!("scripts/test: {runner} exists: uncomment `{stage}`"));
            }
            (false, true, _) => {
                complaints.push(format!("scripts/test: {runner} is gone, `{stage}` can only fail"));
            }
            (false, false, false) => {
                complaints.push(format!("scripts/test: the waiting line `# {stage}` is gone"));
            }
            _ => {}
        }
        let name = runner.split('/').nth(1).unwrap_or_default();
        let entry =
            format!("name = \"{name}\"\npath = \"{runner}\"\nharness = false\ntest = false\n");
        if exists
            && runner.starts_with("compat-tests/")
            && runner.ends_with(".rs")
            && !manifest.contains(&entry)
        {
            // Otherwise the plain test stage would run it a second time.
            complaints
                .push(format!("Cargo.toml: [[test]] {name} needs exactly these lines: {entry:?}"));
        }
    }
    complaints
}

/// Each deviation names rows that exist and tests that exist, or admits that it has none yet.
fn check_deviations(files: &[File]) -> Complaints {
    let rows = text_of(files, "docs/parity-rows.tsv");
    let known = |id: &str| rows.lines().any(|line| line.split('\t').next() == Some(id));
    let mut complaints = Vec::new();
    let mut title = "";
    for line in text_of(files, "docs/deviations.md").lines() {
        if line.starts_with("**") {
            title = line;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let paragraph = line.strip_prefix("Rows: ").map(|rest| rest.trim_end_matches('.'));
        let (what, ids, tests) = match (&cells[..], paragraph) {
            (["", what, _, ids, tests, ""], _) => (*what, *ids, *tests),
            (_, Some(rest)) => {
                let (ids, tests) = rest.split_once(". Tests: ").unwrap_or((rest, ""));
                (title, ids, tests)
            }
            _ => continue,
        };
        if what == "Deviation" || what.starts_with("---") {
            continue;
        }
        for id in ids.split(", ").filter(|id| !known(id)) {
            complaints.push(format!("docs/deviations.md: {what:?}: no row `{id}`"));
        }
        for test in tests.split(", ").filter(|test| *test != "not yet") {
            let test = test.trim_matches('`');
            let (path, name) = test.split_once("::").unwrap_or((test, ""));
            // A script is its own name.
            let is_there = match name {
                "" => path.ends_with(".txt") && !text_of(files, path).is_empty(),
                name => !words(text_of(files, path), name).is_empty(),
            };
            if !is_there {
                complaints.push(format!("docs/deviations.md: {what:?}: no test `{test}`"));
            }
        }
    }
    complaints
}

/// No page has a table row twice, and each table has a head.
fn check_tables(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut seen = BTreeSet::new();
        let rows = file.text.lines().filter(|line| line.starts_with("| "));
        for row in rows.filter(|row| row.len() > 80 && !seen.insert(*row)) {
            complaints.push(format!("{}: this row is there twice: {row}", file.path));
        }
        for (head, rule) in file.text.lines().zip(file.text.lines().skip(1)) {
            if rule.starts_with("|---") && !head.starts_with("| ") {
                complaints.push(format!("{}: a table without a head: {rule}", file.path));
            }
        }
    }
    complaints
}

/// Texts that may be in no file. They are written in halves here, or this file would have them.
fn check_words(files: &[File]) -> Complaints {
    let notes = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let paths = [
        concat!("/wo", "rk/shared"),
        concat!("/wo", "rk/main"),
        concat!("/wo", "rk/."), // Hidden folders. A znode of a test may be called /work.
        concat!("/tmp/w", "t/"),
        concat!("/tmp/t", "gt/"),
    ];
    let mirrors = [
        concat!("index", "-url"),
        concat!("replace", "-with"),
        concat!("GOPROXY=", "http"),
        concat!("<mir", "ror>"),
        concat!("_INDEX", "_URL"),
        concat!("http://", "10."),
        concat!("http://", "192.168."),
    ];
    let mut complaints = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            let at = format!("{}:{}", file.path, number + 1);
            if notes.iter().any(|note| !words(line, note).is_empty()) {
                complaints.push(format!("{at}: a note is not work: do it, or leave it out"));
            }
            let absolute = |path: &&str| {
                let free = |at: &usize| !line[..*at].ends_with(|c: char| c.is_alphanumeric());
                line.match_indices(*path).map(|(at, _)| at).any(|at| free(&at))
            };
            if paths.iter().any(absolute) {
                complaints.push(format!("{at}: a path of one machine"));
            }
            if mirrors.iter().any(|mirror| line.contains(mirror)) {
                complaints.push(format!("{at}: a registry of one machine"));
            }
        }
    }
    complaints.extend(check_locks(files));
    complaints
}

/// Lock files name the public registries only; a mirror would build on one machine alone.
fn check_locks(files: &[File]) -> Complaints {
    let rules = [
        ("Cargo.lock", "source = \"", "registry+https://github.com/rust-lang/crates.io-index\""),
        ("package-lock.json", "\"resolved\": \"", "https://registry.npmjs.org/"),
    ];
    let mut complaints = Vec::new();
    for (name, start, public) in rules {
        for file in files.iter().filter(|file| file.path.ends_with(name)) {
            let foreign = |line: &&str| {
                line.trim().strip_prefix(start).is_some_and(|source| !source.starts_with(public))
            };
            let found = file.text.lines().find(foreign);
            complaints.extend(found.map(|line| format!("{}: {}", file.path, line.trim())));
        }
    }
    complaints
}

#[test]
fn map_matches_the_disk() {
    none(check_map(&project_files()));
}

#[test]
fn shared_parts_of_tests_are_described() {
    none(check_support(&project_files()));
    let part = || File::new("tests/support/disk.rs", "");
    let of = |overview: &str| check_support(&[File::new("tests/support/lib.rs", overview), part()]);
    none(of("//! [`disk`]"));
    one(of("pub mod disk; // `disk`"), "what `disk` is for");
}

#[test]
fn dependencies_have_reasons() {
    none(check_manifests(&project_files()));
}

#[test]
fn scripts_are_thin() {
    none(check_scripts(&project_files()));
}

#[test]
fn stages_match_their_runners() {
    none(check_stages(&project_files()));
}

#[test]
fn deviations_have_rows_and_tests() {
    none(check_deviations(&project_files()));
}

#[test]
fn tables_have_heads_and_no_row_twice() {
    none(check_tables(&project_files()));
    let row = format!("| {} |\n", "x".repeat(80));
    one(check_tables(&[File::new("docs/x.md", &format!("{row}{row}"))]), "twice");
    one(check_tables(&[File::new("docs/x.md", "\n|---|\n| a |\n")]), "without a head");
}

#[test]
fn nothing_half_built_or_of_one_machine() {
    none(check_words(&project_files()));
}

#[test]
fn lacking_and_stale_rows_of_rooms_are_found() {
    let of = |map: &str| {
        check_map(&[File::new("ARCHITECTURE.md", map), File::new("src/tree/mod.rs", "")])
    };
    none(of("| `tree` | state |\n| `zab` (not yet) | agreement |"));
    one(of("| tree | state |"), "no row for `tree`");
    one(of("| `tree` (not yet) | state |"), "remove its `(not yet)`");
    one(of("| `tree` | state |\n| `zab` | agreement |"), "`zab` is not on disk");
}

#[test]
fn dependencies_without_a_reason_are_found() {
    let of = |text: &str| check_manifests(&[File::new("Cargo.toml", text)]);
    none(of("[package]\nname = \"x\"\n[dependencies]\n# Payloads.\nbytes = \"1\"\n"));
    one(of("[dependencies]\nbytes = \"1\"\n"), "why `bytes`");
    one(
        of("[dev-dependencies]\n# Folders.\ntempfile = \"3\"\nproptest = \"1\"\n"),
        "why `proptest`",
    );
}

#[test]
fn long_scripts_are_found() {
    let of = |lines: usize| check_scripts(&[File::new("scripts/x", &"echo\n".repeat(lines))]);
    none(of(49));
    one(of(50), "scripts/x");
}

#[test]
fn stages_that_do_not_match_their_runners_are_found() {
    let waiting: String = RUNNERS.iter().map(|(_, stage)| format!("# {stage}x\n")).collect();
    let of = |test: &str, runner: &str, manifest: &str| {
        check_stages(&[
            File::new("scripts/test", test),
            File::new(runner, ""),
            File::new("Cargo.toml", manifest),
        ])
    };
    let active = waiting.replace("# stage kill", "stage kill");
    none(of(&waiting, "src/lib.rs", ""));
    none(of(&active, "compat-tests/kill/run", ""));
    one(of(&waiting, "compat-tests/kill/run", ""), "uncomment");
    one(of(&active, "src/lib.rs", ""), "is gone");
    one(of(&waiting.replace("# stage kill", ""), "src/lib.rs", ""), "waiting line");
    let active = waiting.replace("# stage diff", "stage diff");
    one(of(&active, "compat-tests/differential/main.rs", ""), "[[test]] differential");
    let entry = "name = \"differential\"\npath = \"compat-tests/differential/main.rs\"\n\
                 harness = false\ntest = false\n";
    none(of(&active, "compat-tests/differential/main.rs", entry));
}

#[test]
fn deviations_without_a_row_or_a_test_are_found() {
    let of = |rows: &str, test: &str| {
        let page = format!(
            "| Deviation | Why | Rows | Test |\n|---|---|---|---|\n| a | b | {rows} | {test} |\n"
        );
        check_deviations(&[
            File::new("docs/deviations.md", &page),
            File::new("docs/parity-rows.tsv", "P-01\tFrame\tmissing: x\nP-02\tWords\tmissing: x\n"),
            File::new("tests/a.rs", "fn refuses() {}"),
        ])
    };
    none(of("P-01, P-02", "not yet"));
    none(of("P-01", "`tests/a.rs::refuses`"));
    one(of("P-01, P-03", "not yet"), "no row `P-03`");
    one(of("P-01", "`tests/a.rs::refuse`"), "no test");
    one(of("P-01", ""), "no test");
    let of = |end: &str| {
        check_deviations(&[
            File::new("docs/deviations.md", &format!("**It differs.** So it is.\n{end}\n")),
            File::new("docs/parity-rows.tsv", "P-01\tFrame\tmissing: x\n"),
            File::new("tests/a.rs", "fn refuses() {}"),
            File::new("tests/b.txt", "a script"),
        ])
    };
    none(of("Rows: P-01. Tests: `tests/a.rs::refuses`, `tests/b.txt`."));
    one(of("Rows: P-03. Tests: `tests/a.rs::refuses`."), "**It differs.** So it is.");
    one(of("Rows: P-01. Tests: `tests/b.rs::refuses`."), "no test");
    one(of("Rows: P-01."), "no test");
}

#[test]
fn unfinished_work_and_names_of_one_machine_are_found() {
    let of = |text: &str| check_words(&[File::new("docs/x.md", text)]);
    one(of(concat!("// TO", "DO later")), "not work");
    one(of(concat!("see /wo", "rk/main/x")), "path of one machine");
    one(of(concat!("pip --index", "-url x")), "registry of one machine");
    none(of(concat!("docs/wo", "rk/main, TO", "DOS /work/s-1")));
    let lock = |source: &str| check_words(&[File::new("fuzz/Cargo.lock", source)]);
    one(lock("source = \"registry+https://example.org/index\""), "example.org");
    none(lock("source = \"registry+https://github.com/rust-lang/crates.io-index\""));
}
