//! Finds the `rows:` comments and the test below each.

use std::collections::BTreeMap;
use std::path::Path;

/// Limit on the ids above one test: a test with more of them hardly proves them all.
const IDS_MAX: usize = 8;
const FOLDERS: &[&str] = &["src", "jute", "tests", "compat-tests", "benches"];
const ENDINGS: &[&str] = &["rs", "py", "java", "txt", "sh", "go", "js", "c"];

/// Suites that only a stage of `scripts/test` runs. Their marks count only while that stage's line is not commented out.
const SUITES: &[(&str, &str)] = &[
    ("compat-tests/differential/", "stage differential "),
    ("compat-tests/common/", "stage differential "),
    ("compat-tests/interchange/", "stage interchange "),
    ("compat-tests/election/", "stage election "),
    ("compat-tests/clients/", "stage clients "),
    ("compat-tests/ensemble/", "stage ensemble "),
    ("compat-tests/partitions/", "stage partitions "),
    ("compat-tests/words/ensemble", "stage words-members "),
    ("compat-tests/words/", "stage words "),
    ("compat-tests/settings/", "stage settings "),
    ("compat-tests/audit/", "stage audit "),
    ("compat-tests/admin/", "stage admin "),
    ("compat-tests/restore/", "stage restore "),
    ("compat-tests/sasl/", "stage sasl "),
    ("compat-tests/secured/", "stage secured "),
    ("compat-tests/tls/", "stage tls "),
    ("compat-tests/kerberos/", "stage kerberos "),
    ("compat-tests/tools/", "stage tools "),
    ("compat-tests/packages/", "stage packages "),
    ("compat-tests/pollers/", "stage pollers "),
    ("compat-tests/kill/", "stage kill "),
    ("tests/shuttle", "stage shuttle "),
];

/// One row that one test proves.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Mark {
    pub row: String,
    /// `file::name`, or the file where tests have no names.
    pub test: String,
}

pub fn in_project(root: &Path) -> Result<Vec<Mark>, String> {
    let mut marks = Vec::new();
    for (path, text) in texts(root, FOLDERS) {
        if ENDINGS.contains(&ending(&path, &text)) {
            marks.extend(in_file(&path, &text)?);
        }
    }
    let script = std::fs::read_to_string(root.join("scripts/test")).unwrap_or_default();
    let mut run = Vec::new();
    for mark in marks {
        if is_run(&mark.test, &script)? {
            run.push(mark);
        }
    }
    run.sort();
    run.dedup();
    Ok(run)
}

/// Whether `scripts/test` runs the test of a mark.
///
/// # Errors
/// A mark under `compat-tests` that belongs to no suite in `SUITES`.
fn is_run(test: &str, script: &str) -> Result<bool, String> {
    match SUITES.iter().find(|(start, _)| test.starts_with(start)) {
        Some((_, stage)) => Ok(script.lines().any(|line| line.starts_with(stage))),
        None if test.starts_with("compat-tests/") => {
            Err(format!("{test}: which stage runs it? Add it to SUITES"))
        }
        None => Ok(true), // `cargo test` runs it.
    }
}

/// The text files below folders of the project, each with its path from the root.
pub fn texts(root: &Path, folders: &[&str]) -> Vec<(String, String)> {
    let mut open: Vec<String> = folders.iter().map(|&folder| folder.to_owned()).collect();
    let mut texts = Vec::new();
    while let Some(path) = open.pop() {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let is_made = ["target", "node_modules", "__pycache__"].contains(&name);
        let on_disk = root.join(&path);
        if !on_disk.is_dir() {
            texts.extend(std::fs::read_to_string(on_disk).ok().map(|text| (path, text)));
        } else if !is_made && !name.starts_with('.') {
            let names = std::fs::read_dir(on_disk).into_iter().flatten().flatten();
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            open.extend(names.map(|name| format!("{path}/{name}")));
        }
    }
    texts
}

/// A file's language: its ending, or for a command without one, the interpreter in its first line.
fn ending<'a>(path: &'a str, text: &str) -> &'a str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let first = text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or("");
    match name.rsplit_once('.') {
        Some((_, ending)) => ending,
        None if first.contains("python") => "py",
        None if !first.is_empty() => "sh",
        None => "",
    }
}

/// The marks of one file.
///
/// # Errors
/// A mark without ids; more than `IDS_MAX` ids above one test; a mark above an ignored test, or in Rust without a test
/// below it.
pub fn in_file(path: &str, text: &str) -> Result<Vec<Mark>, String> {
    let mut marks = Vec::new();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let Some(list) = listed(line) else { continue };
        let at = format!("{path}:{}", number + 1);
        let ids: Vec<&str> = list.split([' ', ',']).filter(|id| !id.is_empty()).collect();
        if ids.is_empty() {
            return Err(format!("{at}: a mark without rows"));
        }
        let below: Vec<&str> = text.lines().skip(number + 1).collect();
        let ending = ending(path, text);
        let found = below.iter().enumerate().find_map(|(at, line)| Some((at, name(ending, line)?)));
        let shipped = path.starts_with("src/") || path.starts_with("jute/src/");
        let between = found.as_ref().map_or(&[] as &[&str], |(at, _)| &below[..*at]);
        let is_test = |line: &&str| line.trim().starts_with("#[") && line.contains("test");
        if shipped && !between.iter().any(is_test) {
            return Err(format!("{at}: a mark stands above a test; the next function is not one"));
        }
        if between.iter().any(|line| line.trim().starts_with("#[ignore")) {
            return Err(format!("{at}: an ignored test proves nothing"));
        }
        if ending == "rs" && found.is_none() {
            return Err(format!("{at}: no test below"));
        }
        // Several mark lines above one test count together, and so do those above one section of a script without functions.
        let section =
            || below.iter().position(|line| listed(line).is_none()).unwrap_or(below.len());
        let stands_above = number + 1 + found.as_ref().map_or_else(section, |(at, _)| *at);
        let count = counts.entry(stands_above).or_default();
        *count += ids.len();
        if *count > IDS_MAX {
            return Err(format!("{at}: {count} rows above one test, at most {IDS_MAX} may be"));
        }
        let test = found.map_or(path.to_owned(), |(_, name)| format!("{path}::{name}"));
        marks.extend(ids.into_iter().map(|id| Mark { row: id.to_owned(), test: test.clone() }));
    }
    Ok(marks)
}

/// The ids of a mark line.
fn listed(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("// rows:").or_else(|| line.strip_prefix("# rows:"))
}

/// The function that a line declares.
fn name(ending: &str, line: &str) -> Option<String> {
    let line = line.trim();
    let word = |text: &str| -> Option<String> {
        let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (!name.is_empty()).then_some(name)
    };
    let after = |start: &str| word(line.split_once(start)?.1);
    match ending {
        "rs" => {
            let line = line.trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
            let head = line.trim_start_matches("pub ").trim_start_matches("async ");
            word(head.strip_prefix("fn ")?)
        }
        "py" => word(line.trim_start_matches("async ").strip_prefix("def ")?),
        "go" => word(line.strip_prefix("func ")?),
        "sh" => word(line).filter(|name| line[name.len()..].trim_start().starts_with("()")),
        "java" | "c" => {
            let called = line.ends_with('{') && !line.starts_with("//") && !line.starts_with('@');
            let head = line.split_once('(').filter(|_| called)?.0;
            word(head.rsplit(' ').next()?).filter(|_| head.contains(' '))
        }
        "js" => after("function ").or_else(|| after("test('")),
        _ => None, // Scripts without functions: the file is the test's name.
    }
}

#[test]
fn marks_name_the_test_below() {
    let of = |path: &str, text: &str| -> Vec<String> {
        let marks = in_file(path, text).unwrap();
        marks.into_iter().map(|mark| format!("{} {}", mark.row, mark.test)).collect()
    };
    let rust = "    // rows: P-40 P-44\n    #[test]\n    fn deletes() {}\n";
    assert_eq!(
        of("src/tree/a.rs", rust),
        ["P-40 src/tree/a.rs::deletes", "P-44 src/tree/a.rs::deletes"]
    );
    assert_eq!(of("tests/a.rs", "// rows: P-1\nasync fn f() {}"), ["P-1 tests/a.rs::f"]);
    assert_eq!(
        of("compat-tests/a.py", "# rows: P-1, P-2\ndef test_x(zk):")[1],
        "P-2 compat-tests/a.py::test_x"
    );
    assert_eq!(
        of("compat-tests/A.java", "// rows: P-1\n@Test\npublic void reads() {")[0],
        "P-1 compat-tests/A.java::reads"
    );
    assert_eq!(
        of("compat-tests/a.sh", "# rows: P-1\nstart() {")[0],
        "P-1 compat-tests/a.sh::start"
    );
    assert_eq!(of("tests/zab/a.txt", "# rows: Q-1\ncluster"), ["Q-1 tests/zab/a.txt"]);
    let command = "#!/usr/bin/env python3\n# rows: P-1\ndef run():";
    assert_eq!(of("compat-tests/kill/run", command), ["P-1 compat-tests/kill/run::run"]);
    assert!(of("tests/a.rs", "let x = \"// rows: P-1\"; // see rows: P-1").is_empty());
}

#[test]
fn bad_marks_fail() {
    let wrong = |path: &str, text: &str, about: &str| {
        let error = in_file(path, text).unwrap_err();
        assert!(error.contains(about), "{error}");
    };
    wrong("tests/a.rs", "// rows:\nfn f() {}", "a mark without rows");
    wrong("tests/a.rs", "// rows: A B C D E F G H I\nfn f() {}", "9 rows above one test");
    let two = "// rows: A B C D E\n/// A line between.\n// rows: F G H I\nfn f() {}\n";
    wrong("tests/a.rs", two, "a.rs:3: 9 rows above one test");
    wrong("tests/a.py", "# rows: A B C D E\n# rows: F G H I\ndef f():", "9 rows above");
    wrong("tests/a.txt", "# rows: A B C D E\n# rows: F G H I\n> ls", "9 rows above");
    let apart = "# rows: A B C D E\n> ls\n# rows: F G H I\n> get\n";
    assert_eq!(in_file("tests/a.txt", apart).unwrap().len(), 9, "sections count apart");
    wrong("tests/a.rs", "// rows: P-40\n#[test]\n#[ignore]\nfn f() {}", "ignored");
    wrong("tests/a.rs", "// rows: P-40\n", "no test below");
    wrong("src/tree/a.rs", "// rows: P-40\npub fn delete() {}", "stands above a test");
}

#[test]
fn marks_count_only_if_their_stage_is_not_commented_out() {
    let kill = "compat-tests/kill/kill.py::loses_nothing";
    assert_eq!(is_run(kill, "# stage kill x\n"), Ok(false));
    assert_eq!(is_run(kill, "stage kill x\n"), Ok(true));
    assert_eq!(is_run("src/tree/a.rs::deletes", ""), Ok(true));
    assert!(is_run("compat-tests/other/a.py::x", "").is_err());
}
