//! Tests that pages name: `FILE::NAME` in backticks is a file of the project, and a function in it; in Python it may be a constant.

use super::links::prose;
use super::source::{File, project_files};
use crate::{Complaints, none, one};
use std::collections::BTreeMap;

/// What stands in backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a line of a source declares the function, or a table of cases in Python.
fn declares(line: &str, name: &str, is_rust: bool) -> bool {
    let line = line.trim_start();
    let function = if is_rust { "fn " } else { "def " };
    let (before, rest) = line.split_once(function).unwrap_or(("", line));
    let is_head = before
        .split(' ')
        .all(|word| matches!(word, "" | "async" | "const" | "unsafe") || word.starts_with("pub"));
    let after = rest.strip_prefix(name);
    let is_function = line.contains(function) && is_head;
    after.is_some_and(|after| {
        is_function && after.starts_with(['(', '<']) || !is_rust && after.starts_with(" = ")
    })
}

fn check(files: &[File]) -> Complaints {
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let mut complaints = Vec::new();
    for page in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (at, line) in prose(&page.text) {
            let named = quoted(line).filter_map(|text| text.split_once("::"));
            for (path, name) in named.filter(|(path, _)| path.contains(['/', '.'])) {
                let complain =
                    |what: &str| format!("{}:{}: {path}::{name}: {what}", page.path, at + 1);
                match texts.get(path) {
                    None => complaints.push(complain("there is no such file")),
                    Some(text)
                        if text.lines().any(|line| declares(line, name, path.ends_with(".rs"))) => {
                    }
                    Some(_) => complaints.push(complain("the file has no such function")),
                }
            }
        }
    }
    complaints
}

#[test]
fn tests_that_pages_name_are_in_the_named_files() {
    none(check(&project_files()));
}

#[test]
fn names_of_tests_that_are_nowhere_are_found() {
    let of = |text: &str| {
        check(&[
            File::new("docs/a.md", text),
            File::new("tests/a.rs", "pub(super) async fn refuses() {}\nfn of<T>() {}\n"),
            File::new("compat-tests/a/cases.py", "def opens(trial):\n    pass\nCASES = [opens]\n"),
            File::new("compat-tests/a/run", "#!/usr/bin/env python3\nfrom cases import opens\n"),
        ])
    };
    none(of("`tests/a.rs::refuses`, `tests/a.rs::of`, `zab::Peer`\n```\n`tests/b.rs::x`\n```\n"));
    none(of("`compat-tests/a/cases.py::opens` and `compat-tests/a/cases.py::CASES`"));
    one(
        of("`tests/a.rs::refuse`"),
        "docs/a.md:1: tests/a.rs::refuse: the file has no such function",
    );
    one(
        of("x\n\n`tests/b.rs::refuses`"),
        "docs/a.md:3: tests/b.rs::refuses: there is no such file",
    );
    // It moved to the other file.
    one(of("`compat-tests/a/run::opens`"), "no such function");
    one(of("`a.rs::refuses`"), "no such file");
}
