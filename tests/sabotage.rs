//! Bugs that are put back one at a time; tests must find each of them. None of them is in the source: `tests/sabotage` has a file for
//! each, with the text that it replaces. All of them are put into one copy of the project, each with a switch of its own.
//!
//! `cargo test --test sabotage` checks that the text of every bug is still in the source; `cargo test --test sabotage -- --ignored` makes
//! the copy, compiles it, and runs there the tests that must find the bugs (with `OXKEEPER_LONG=1` also those of programs that few bugs
//! name). After that the copy is under `target/tmp/sabotage`, and in it
//! `OXKEEPER_BUG=NAME cargo run --release --features sim --bin sim-spoilt -- --seconds 60` looks for one bug in the simulator's worlds.

#![allow(clippy::disallowed_methods, reason = "a test writes files and starts cargo")]
#![allow(clippy::print_stdout, reason = "what was found is worth a line")]

mod sabotage {
    pub mod bugs;
    pub mod page;
}

use sabotage::bugs::{self, Bug};
use sabotage::page;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::written::expect_file;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const MUSEUM: &str = "docs/museum.md";
/// Folders that are not part of the project.
const SKIPPED: [&str; 5] = ["target", ".git", "data", "node_modules", "__pycache__"];

#[test]
fn every_bug_replaces_a_text_that_occurs_once_and_names_what_finds_it() {
    let root = Path::new(ROOT);
    let all = bugs::read_all(root);
    let mut complaints: Vec<String> = bugs::spoilt(root, &all).err().into_iter().collect();
    let museum = std::fs::read_to_string(root.join(MUSEUM)).unwrap();
    // The table is made of the files, and so has all references; only the rest of the page counts.
    let (before, after) = page::around(&museum);
    for bug in &all {
        let Bug { name, museum: reference, script, test, .. } = bug;
        let is_there = |reference| before.contains(reference) || after.contains(reference);
        if reference != "none" && !reference.split(", ").all(is_there) {
            complaints.push(format!("{name}: docs/museum.md does not know {reference}"));
        }
        if let Some(script) = script
            && !root.join(format!("tests/zab/{script}.txt")).exists()
        {
            complaints.push(format!("{name}: there is no script {script}"));
        }
        if let Some((target, test)) = test
            && !is_written(root, target, test)
        {
            complaints.push(format!("{name}: the source of {target} has no test {test}"));
        }
        if script.is_none() && test.is_none() && !bug.in_worlds() && !bug.in_whole() {
            complaints.push(format!("{name}: no script, test or world is to find it"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(all.len() >= 22, "only {} bugs were found", all.len());
}

/// Whether the sources have a test of this name where the path of its modules says, without compiling its target.
fn is_written(root: &Path, target: &str, test: &str) -> bool {
    let is_lib = target == "lib";
    let top = root.join(if is_lib { "src" } else { "tests" });
    let read = |file: String| std::fs::read_to_string(top.join(file)).ok();
    let module = |path: &str| {
        let path = path.replace("::", "/");
        read(format!("{path}.rs")).or_else(|| read(format!("{path}/mod.rs")))
    };
    let crate_root = read(format!("{target}.rs")).unwrap_or_default();
    let (path, name) = test.rsplit_once("::").unwrap_or(("", test));
    let (first, _) = path.split_once("::").unwrap_or((path, ""));
    let is_declared = |kind: &str| crate_root.lines().any(|line| line.starts_with(kind));
    let is_here = is_lib || path.is_empty() || is_declared(&format!("mod {first}"));
    let inline = || {
        let (file, last) = path.rsplit_once("::")?;
        let text = module(file)?;
        Some(text.split_once(&format!("\nmod {last} {{\n"))?.1.to_owned())
    };
    let text =
        if path.is_empty() { Some(crate_root.clone()) } else { module(path).or_else(inline) };
    is_here && text.is_some_and(|text| text.contains(&format!("fn {name}(")))
}

#[test]
#[should_panic(expected = "BUG=nonsense: no such bug; there are [\"AckBeforeFlush\"")]
fn unknown_name_of_a_bug_is_refused() {
    bugs::only(bugs::read_all(Path::new(ROOT)), Some("nonsense"));
}

#[test]
fn museum_has_the_table_of_the_bugs_that_can_be_put_back() {
    let root = Path::new(ROOT);
    let museum = std::fs::read_to_string(root.join(MUSEUM)).unwrap();
    let written = page::with_table(&museum, &bugs::read_all(root));
    expect_file(&root.join(MUSEUM), &written);
}

const SWITCH: &str = "src/sabotage.rs";
/// Files of the copy that the project has elsewhere: the switch, and the tests that hunt.
const ADDED: [(&str, &str); 3] = [
    (SWITCH, "tests/sabotage/switch.rs"),
    ("tests/hunt.rs", "tests/sabotage/hunt.rs"),
    ("tests/worlds.rs", "tests/sabotage/worlds.rs"),
];

/// Makes the copy of the project with all bugs in it; gives its folder. Unchanged files are not written, so that they are not compiled
/// again.
fn copy(bugs: &[Bug]) -> PathBuf {
    let root = Path::new(ROOT);
    let mut spoilt = bugs::spoilt(root, bugs).unwrap_or_else(|complaints| panic!("{complaints}"));
    spoilt.insert(SWITCH.to_owned(), bugs::switch(root, bugs));
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sabotage");
    let mut paths = BTreeSet::new();
    list(root, "", &mut paths);
    let mut stale = BTreeSet::new();
    list(&to, "", &mut stale);
    let same = paths.iter().map(|path| (path.as_str(), path.as_str()));
    for (path, from) in same.chain(ADDED) {
        stale.remove(path);
        let bytes = match spoilt.get(path) {
            Some(text) => text.clone().into_bytes(),
            None => std::fs::read(root.join(from)).unwrap(),
        };
        let path = to.join(path);
        if std::fs::read(&path).is_ok_and(|old| old == bytes) {
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    stale.iter().for_each(|path| std::fs::remove_file(to.join(path)).unwrap());
    to
}

fn list(root: &Path, under: &str, paths: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(root.join(under)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        match entry.file_type().unwrap() {
            _ if SKIPPED.contains(&name.as_str()) => {}
            kind if kind.is_dir() => list(root, &path, paths),
            kind if kind.is_file() => {
                paths.insert(path);
            }
            _ => {}
        }
    }
}

/// The test programs of the copy by target: `lib`, or the name of a file in `tests`. They are compiled together, with the features of all
/// other tests, so that the crates beside the copy are compiled already.
fn compiled(copy: &Path, targets: &BTreeSet<&str>) -> BTreeMap<String, PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--features", "sim", "--no-run", "--message-format", "json"]);
    for name in targets {
        match *name {
            "lib" => cargo.arg("--lib"),
            name => cargo.args(["--test", name]),
        };
    }
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", target).stderr(Stdio::inherit());
    println!("{cargo:?}");
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "the copy does not compile");
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let messages = messages.map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
    let programs = messages.filter_map(|message| {
        let program = PathBuf::from(message["executable"].as_str()?);
        let target = &message["target"];
        let name = if target["kind"][0] == "test" { target["name"].as_str()? } else { "lib" };
        message["profile"]["test"].as_bool()?.then(|| (name.to_owned(), program))
    });
    programs.collect()
}

/// Runs a test program of the copy with a bug put back, or with none; gives whether it passes.
fn passes(copy: &Path, program: &Path, bug: Option<&str>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(copy);
    match bug {
        Some(bug) => command.env("OXKEEPER_BUG", bug),
        None => command.env_remove("OXKEEPER_BUG"),
    };
    println!("{command:?}");
    command.status().unwrap().success()
}

/// What `hunt` and `worlds` say of bugs that they miss.
const MISSES: [&str; 4] =
    ["not found", "do not show it", "is the same with it", "does not show in"];

/// Runs a test program that looks for all bugs, and shows what it says; gives its complaint: the lines about bugs that it misses.
fn misses(copy: &Path, program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--nocapture").current_dir(copy).env_remove("OXKEEPER_BUG");
    println!("{command:?}");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut missed = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        println!("{line}");
        if MISSES.iter().any(|text| line.contains(text)) {
            missed.push(line);
        }
    }
    let succeeds = child.wait().unwrap().success();
    (!succeeds).then(|| format!("{}: {}", program.display(), missed.join("\n")))
}

/// Whether the program has a test of this name: a name that no test has would run none, and pass.
fn has_test(copy: &Path, program: &Path, test: &str) -> bool {
    let mut list = Command::new(program);
    list.args(["--list", "--exact", test]).current_dir(copy);
    String::from_utf8_lossy(&list.output().unwrap().stdout).contains(&format!("{test}: test"))
}

/// Test programs that are always compiled: those that many bugs name. The others take as long to compile, for few bugs.
const QUICK: [&str; 6] = ["hunt", "worlds", "zab", "member", "store", "digest_md5"];

#[test]
#[ignore = "compiles a copy of the project; scripts/test asks for it"]
fn every_bug_put_back_is_found() {
    let all = bugs::read_all(Path::new(ROOT));
    let copy = copy(&all);
    let mut targets = BTreeSet::from(QUICK);
    if std::env::var_os("OXKEEPER_LONG").is_some() {
        targets.extend(all.iter().filter_map(|bug| Some(bug.test.as_ref()?.0.as_str())));
    }
    let programs = compiled(&copy, &targets);
    let mut complaints = Vec::new();
    for hunt in ["hunt", "worlds"] {
        complaints.extend(misses(&copy, &programs[hunt]));
    }
    for Bug { name, test, .. } in &all {
        let Some((target, test)) = test else { continue };
        let arguments = ["--exact", test.as_str()];
        let Some(program) = programs.get(target.as_str()) else {
            println!("{name}: left to OXKEEPER_LONG=1, which compiles `{target}` as well");
            continue;
        };
        if !has_test(&copy, program, test) {
            complaints.push(format!("{name}: {target} has no test {test}"));
        } else if !passes(&copy, program, None, &arguments) {
            complaints.push(format!("{name}: {target} {test} fails without it"));
        } else if passes(&copy, program, Some(name), &arguments) {
            complaints.push(format!("{name}: {target} {test} does not notice it"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
