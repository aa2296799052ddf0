//! Plain words: what a machine can check of comments, pages, names of tests and log lines.

use super::source::{File, close_of, line_at, project_files, shipped_rust};
use crate::{Complaints, none, one};

/// Words before "behind" with which it is no "after": a learner that lags, and places.
const BEFORE_BEHIND: &[&str] = &[
    "left", "leave", "leaves", "leaving", "fall", "falls", "fell", "far", "is", "are", "was", "be",
    "lag", "lags", "runs", "them", "it", "learner", "follower", "observer", "members", "not",
    "too", "server", "much",
];

/// What something can be behind as at a place.
const PLACES: &[&str] = &["lock", "switch", "load", "proxy", "slow"];

/// Sentences without a subject, or with one that the reader has to find.
const HEADLESS: &[&str] = &["Who ", "Whoever ", "Nobody ", "Of "];

/// How a test's name must not begin: it says condition and outcome.
const TEST_NAMES: &[&str] = &["what_", "who_", "whoever_", "nobody_"];

/// One key for one thing in all log lines: these have another name.
const KEYS: &[(&str, &str)] = &[
    ("sid", "server_id"),
    ("server", "server_id"),
    ("learner", "server_id"),
    ("addr", "peer, or address where this server listens"),
    ("err", "error"),
    ("why", "reason"),
    ("session_id", "session"),
    ("file", "path"),
    ("dir", "path"),
    ("folder", "path"),
    ("ms", "took_ms, or what the time is of"),
];

/// Pages that a test writes, or that quote.
const NOT_READ: &[&str] = &["docs/parity.md", "docs/parity-rows.tsv", "tests/tidy/wording.rs"];

/// The comments of a file, or all of it if it is a page, by line.
fn prose(file: &File) -> Vec<(usize, String)> {
    let numbered = |(at, line): (usize, &str)| (at + 1, line.to_owned());
    if file.path.ends_with(".md") {
        return file.text.lines().enumerate().map(numbered).collect();
    }
    if file.path.ends_with(".py") {
        let comments = file.text.lines().enumerate();
        return comments
            .filter(|(_, line)| line.trim_start().starts_with('#'))
            .map(numbered)
            .collect();
    }
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = file.code();
    let mut found = Vec::new();
    for (at, (line, code)) in file.text.lines().zip(code.lines()).enumerate() {
        // Comments and strings are blank in the code; a comment ends its line.
        let is_comment = |(start, _): &(usize, &str)| {
            code.as_bytes().get(*start).is_none_or(|byte| *byte == b' ')
                && !line[..*start].contains('"')
        };
        if let Some((start, _)) = line.match_indices("//").find(is_comment) {
            let text = line[start..].trim_start_matches(['/', '!']).trim_start();
            found.push((at + 1, text.to_owned()));
        }
    }
    found
}

fn is_plain(line: &str) -> Result<(), String> {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        let is_place = words[at + 1..].iter().take(2).any(|next| PLACES.contains(next));
        if word.eq_ignore_ascii_case("behind") && !BEFORE_BEHIND.contains(&before) && !is_place {
            return Err("time and order are `before` and `after`, not `behind`".to_owned());
        }
        if word.eq_ignore_ascii_case("likewise") {
            return Err("name the other item, not `likewise`".to_owned());
        }
        if *word == "old" && before == "of" && words.get(at + 1).is_none_or(|next| next.len() < 3) {
            return Err("say when, not `of old`".to_owned());
        }
    }
    let begins = |start: &&&str| {
        line.starts_with(**start)
            || line.contains(&format!(". {start}"))
            || line.contains(&format!("| {start}"))
    };
    match HEADLESS.iter().find(begins) {
        // "Of the connections that wait, up to 16 are woken" has a subject after the comma.
        Some(&"Of ") if line.contains(", ") => Ok(()),
        Some(start) if !line.contains('?') => {
            Err(format!("a sentence begins with `{}`: name its subject", start.trim()))
        }
        _ => Ok(()),
    }
}

fn check_prose(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !NOT_READ.contains(&file.path.as_str())) {
        for (at, line) in prose(file) {
            if let Err(why) = is_plain(&line) {
                complaints.push(format!("{}:{at}: {why}", file.path));
            }
        }
    }
    complaints
}

fn check_test_names(files: &[File]) -> Complaints {
    let begins = |name: &str| TEST_NAMES.iter().any(|start| name.starts_with(start));
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let code = file.code();
        let mut is_test = false;
        for (at, line) in code.lines().enumerate() {
            let line = line.trim_start().trim_start_matches("async ");
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let Some(name) = line.strip_prefix("fn ") else { continue };
            if std::mem::take(&mut is_test) && begins(name) {
                let name = name.split('(').next().unwrap_or_default();
                complaints.push(format!("{}:{}: {name}: condition and outcome", file.path, at + 1));
            }
        }
    }
    let scripts = files.iter().filter_map(|file| file.path.strip_prefix("tests/zab/"));
    let scripts = scripts.filter(|name| name.ends_with(".txt") && begins(name));
    complaints.extend(scripts.map(|name| format!("tests/zab/{name}: condition and outcome")));
    complaints
}

const LEVELS: &[&str] = &["trace!(", "debug!(", "info!(", "warn!(", "error!("];

/// Where the arguments of each log macro of these levels begin and end.
pub fn log_calls(code: &str, levels: &[&str]) -> Vec<(usize, usize)> {
    let mut calls = Vec::new();
    for level in levels {
        for (at, _) in code.match_indices(*level) {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            if code[..at].ends_with(is_name) {
                continue;
            }
            let open = at + level.len() - 1;
            calls.push((open + 1, close_of(code, open, b'(', b')') - 1));
        }
    }
    calls
}

/// Where each argument between a macro's parentheses begins and ends.
pub fn arguments(code: &str) -> Vec<(usize, usize)> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in code.char_indices().chain([(code.len(), ',')]) {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        if c == ',' && depth == 0 {
            found.push((start, at));
            start = at + 1;
        }
    }
    found
}

/// The fields of a log macro: their keys, and whether they print with Debug.
fn fields(code: &str) -> Vec<(String, bool)> {
    let field = |(start, end): (usize, usize)| {
        let part = code[start..end].trim();
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let is_debug = key.starts_with('?') || value.trim_start().starts_with('?');
        let key = key.trim().trim_start_matches(['?', '%']).to_owned();
        let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '.');
        (is_key && !key.is_empty()).then_some((key, is_debug))
    };
    arguments(code).into_iter().filter_map(field).collect()
}

fn check_log_lines(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in shipped_rust(files) {
        let code = file.shipped();
        for (start, end) in log_calls(&code, LEVELS) {
            let line = line_at(&code, start);
            if file.text[start..end].contains(":?}") {
                complaints.push(format!("{}:{line}: a log line prints with Debug", file.path));
            }
            for (key, is_debug) in fields(&code[start..end]) {
                if is_debug {
                    complaints.push(format!("{}:{line}: {key} prints with Debug", file.path));
                }
                if let Some((_, wanted)) = KEYS.iter().find(|(other, _)| *other == key) {
                    complaints.push(format!("{}:{line}: key {key}: it is {wanted}", file.path));
                }
            }
        }
    }
    complaints
}

#[test]
fn comments_and_pages_name_their_subjects() {
    none(check_prose(&project_files()));
}

#[test]
fn names_of_tests_say_condition_and_outcome() {
    none(check_test_names(&project_files()));
}

#[test]
fn log_lines_have_one_key_for_one_thing_and_no_debug_output() {
    none(check_log_lines(&project_files()));
}

#[test]
fn words_that_need_translation_are_found() {
    let file = |text: &str| [File::new("src/zab/x.rs", text)];
    for bad in [
        "// The entry behind it.",
        "let x = 1; // Whoever asks.",
        "/// Closed likewise.",
        "/// Who asks is told.",
        "//! It counts. Of these two stay.",
    ] {
        one(check_prose(&file(bad)), "src/zab/x.rs:1:");
    }
    none(check_prose(&file(
        "// A follower that falls behind.\nlet x = \"// Who asks\";\n// Who leads?",
    )));
    one(check_test_names(&file("#[test]\nfn what_is_cut() {}")), "what_is_cut");
    none(check_test_names(&file("fn what_is_cut() {}\n#[test]\nfn follower_truncates() {}")));
    for bad in [
        "fn f() { tracing::warn!(?peer, \"x\") }",
        "fn f() { warn!(peer = ?self.peer(1, 2), \"x\") }",
        "fn f() { tracing::info!(\"{:?}\", 1) }",
        "fn f() { tracing::error!(sid = 1, \"x\") }",
    ] {
        one(check_log_lines(&file(bad)), "src/zab/x.rs:1:");
    }
    none(check_log_lines(&file("fn f() { tracing::warn!(%peer, zxid = %last, \"x\") }")));
}
