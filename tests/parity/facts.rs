//! The pages about ZooKeeper's behaviour (`docs/zookeeper/`), and the ids by which sources and tests name its facts.

use super::marks::texts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const FOLDERS: &[&str] = &["src", "jute", "tests", "compat-tests", "benches", "fuzz"];
const ENDINGS: &[&str] = &["rs", "py", "txt", "md", "bug"];
const LETTERS: &[u8] = b"PCWAMDQUTVG";

/// The ids in a text: a section's letter, digits, and perhaps a small letter, as in P-09a.
pub fn ids_in(text: &str) -> BTreeSet<String> {
    let bytes = text.as_bytes();
    let mut ids = BTreeSet::new();
    for at in 0..bytes.len().saturating_sub(2) {
        let is_begin =
            at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || b"-_/".contains(&bytes[at - 1]));
        if !is_begin || !LETTERS.contains(&bytes[at]) || bytes[at + 1] != b'-' {
            continue;
        }
        let digits = bytes[at + 2..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = at + 2 + digits;
        if bytes.get(end).is_some_and(u8::is_ascii_lowercase) {
            end += 1;
        }
        let goes_on =
            bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        if (2..=3).contains(&digits) && !goes_on {
            ids.insert(text[at..end].to_owned());
        }
    }
    ids
}

/// The fact that a line of a page begins: the first cell of a table's row, or a bold beginning.
fn heading(line: &str) -> Option<String> {
    let line = line.trim_start_matches("- ");
    let id = match line.strip_prefix("| ") {
        Some(row) => row.split_once(" |")?.0.trim_matches('*'),
        None => line.strip_prefix("**")?.split_once("**")?.0,
    };
    (ids_in(id).len() == 1 && ids_in(id).contains(id)).then(|| id.to_owned())
}

/// How often each fact has a heading.
pub fn facts(root: &Path) -> BTreeMap<String, usize> {
    let mut facts = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("docs/zookeeper")).expect("the pages").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a page");
        for id in text.lines().filter_map(heading) {
            *facts.entry(id).or_default() += 1;
        }
    }
    facts
}

/// Ids that the sources name, each with a file that does.
pub fn named(root: &Path) -> BTreeMap<String, String> {
    let is_source = |path: &str| {
        // These two have ids of no fact, for their own tests.
        !path.ends_with("parity/facts.rs")
            && !path.ends_with("parity/page.rs")
            && ENDINGS.iter().any(|ending| path.ends_with(&format!(".{ending}")))
    };
    let mut named = BTreeMap::new();
    for (path, text) in texts(root, FOLDERS).into_iter().filter(|(path, _)| is_source(path)) {
        for id in ids_in(&text) {
            named.entry(id).or_insert_with(|| path.clone());
        }
    }
    named
}

#[test]
fn ids_and_headings_are_found() {
    let ids = ids_in("// P-09a and (C-31); not RFC-2253, UTF-8, `A-1` or x-G-01.");
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["C-31", "P-09a"]);
    assert_eq!(heading("| P-01 | Frame | x |").as_deref(), Some("P-01"));
    assert_eq!(heading("**Q-31** A leader").as_deref(), Some("Q-31"));
    assert_eq!(heading("| Row | What |"), None);
    assert_eq!(heading("See **Q-31**"), None);
}
