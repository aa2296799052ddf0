//! Plain words: what a machine can check of comments, pages, strings, names of tests and log lines.

use super::prose::{prose, strings};
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

/// After "told" and "tell" the one that hears follows, or what it hears. Without that, something is reported or shown.
const AFTER_TOLD: &[&str] = &["that", "to", "which", "it", "its", "the", "a"];
const NO_HEARER: &[&str] =
    &["of", "on", "when", "where", "whether", "which", "how", "what", "apart", "none"];

/// Before "who" these make a subject that the reader has to find.
const BEFORE_WHO: &[&str] = &["from", "for", "so", "by", "than", "with"];

/// How a test's name must not begin: it says condition and outcome.
const TEST_NAMES: &[&str] = &["what_", "who_"];

/// What no part of a test's name may be: the server reports, logs, lists or notifies.
const WORDS_IN_TEST_NAMES: &[&str] =
    &["is_told", "are_told", "not_told", "tells_of", "nobody", "whoever", "can_fail"];

/// One key for one thing in all log lines: these have another name.
const KEYS: &[(&str, &str)] = &[
    ("sid", "server_id"),
    ("server", "server_id"),
    ("learner", "server_id"),
    ("leader", "server_id"),
    ("addr", "peer, or address where this server listens"),
    ("err", "error"),
    ("why", "reason"),
    ("session_id", "session"),
    ("file", "path"),
    ("dir", "path"),
    ("folder", "path"),
    ("files", "paths, or what was done to so many files: removed"),
    ("peers", "own_addresses, or whose they are"),
    ("of", "total_bytes, or what the other number is"),
    ("with", "voters, or another noun"),
    ("at", "path and offset"),
    ("connected", "connected_peer"),
    ("theirs", "peer_addresses, or what else the peer has"),
    ("ours", "own_addresses, or what else this server has"),
    ("before", "last_zxid, or what it comes before"),
    ("last", "last_zxid"),
    ("current", "current_epoch"),
    ("snapshot", "snapshot_zxid, or path"),
    ("met", "collisions, or another noun"),
    ("lives", "is_valid"),
    ("ms", "took_ms, or what the time is of"),
    ("suppressed", "left_out"),
    ("more_since_last_report", "left_out"),
];

/// Keys whose values are texts, which are written without `%` in quotes and with escapes. An `Option` has `display` in it.
const TEXT_KEYS: &[&str] = &[
    "address",
    "addresses",
    "alias",
    "answer",
    "cipher_suite",
    "config_version",
    "connected_peer",
    "ends",
    "error",
    "heard_of",
    "last_zxid",
    "missing",
    "name",
    "own_addresses",
    "path",
    "paths",
    "peer",
    "peer_addresses",
    "protocol",
    "reason",
    "session",
    "setting",
    "settings",
    "signal",
    "snapshot_zxid",
    "socket",
    "subject",
    "sync",
    "synced",
    "version",
    "voters",
    "without_vote",
    "zxid",
];

/// Pages that a test writes, or that quote.
const NOT_READ: &[&str] = &["docs/parity.md", "docs/parity-rows.tsv", "tests/tidy/wording.rs"];

/// A line without what it quotes: names, commands and messages.
pub fn unquoted(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        line.to_owned()
    } else {
        parts.into_iter().step_by(2).collect()
    }
}

fn is_plain(line: &str) -> Result<(), String> {
    let line = unquoted(line);
    let words: Vec<&str> = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        let is_place = words[at + 1..].iter().take(2).any(|next| PLACES.contains(next));
        if word.eq_ignore_ascii_case("behind") && !BEFORE_BEHIND.contains(&before) && !is_place {
            return Err("time and order are `before` and `after`, not `behind`".to_owned());
        }
        if word.eq_ignore_ascii_case("likewise") {
            return Err("name the other item, not `likewise`".to_owned());
        }
        let next = words.get(at + 1).map_or("", |next| next);
        if ["nobody", "whoever"].iter().any(|name| word.eq_ignore_ascii_case(name)) {
            return Err(format!("name the server, client, thread or user, not `{word}`"));
        }
        if ["who", "whom"].contains(word) && BEFORE_WHO.contains(&before) {
            return Err(format!("name the one that `{before} {word}` means"));
        }
        if *word == "many" && before.eq_ignore_ascii_case("so") && !words[at..].contains(&"that") {
            return Err(
                "`this many` of what the next line defines, or `so many ... that`".to_owned()
            );
        }
        if before == "the" && *word == "same" && at >= 2 && words[at - 2] == "all" {
            return Err("`nevertheless`, not `all the same`".to_owned());
        }
        let goes_on = at + 1 == words.len() && line.trim_end().ends_with(word); // On the next line.
        let is_tell = word.eq_ignore_ascii_case("tell") || word.eq_ignore_ascii_case("tells");
        if word.eq_ignore_ascii_case("told") && !AFTER_TOLD.contains(&next) && !goes_on
            || is_tell && (next.is_empty() && !goes_on || NO_HEARER.contains(&next))
        {
            return Err(format!(
                "`{word} {next}`: reported, logged, shown, notified, distinguished?"
            ));
        }
        if *word == "old" && before == "of" && words.get(at + 1).is_none_or(|next| next.len() < 3) {
            return Err("say when, not `of old`".to_owned());
        }
    }
    let begins = |start: &&&str| {
        line.starts_with(**start)
            || line.contains(&format!(". {start}"))
            || line.contains(&format!("| {start}"))
            || ["- ", "* "].iter().any(|bullet| {
                let item = line.trim_start().strip_prefix(bullet);
                item.is_some_and(|item| item.starts_with(**start))
            })
    };
    match HEADLESS.iter().find(begins) {
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
    for (path, at, line) in strings(files) {
        if let Err(why) = is_plain(&line) {
            complaints.push(format!("{path}:{at}: {why}"));
        }
    }
    complaints
}

fn is_riddle(name: &str) -> bool {
    TEST_NAMES.iter().any(|start| name.starts_with(start))
        || WORDS_IN_TEST_NAMES.iter().any(|word| name.contains(word))
}

fn check_test_names(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let code = file.code();
        let mut is_test = false;
        for (at, line) in code.lines().enumerate() {
            let line = line.trim_start().trim_start_matches("async ");
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let Some(name) = line.strip_prefix("fn ") else { continue };
            if std::mem::take(&mut is_test) && is_riddle(name) {
                let name = name.split('(').next().unwrap_or_default();
                complaints.push(format!("{}:{}: {name}: condition and outcome", file.path, at + 1));
            }
        }
    }
    let scripts = files.iter().filter_map(|file| file.path.strip_prefix("tests/zab/"));
    let scripts = scripts.filter(|name| name.ends_with(".txt") && is_riddle(name));
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

/// How a field is printed.
#[derive(Clone, Copy, PartialEq)]
enum Printed {
    Debug,
    Display,
    /// Numbers by Display, texts by Debug.
    ByType,
}

/// The fields of a log macro: their keys, and how they are printed.
fn fields(code: &str) -> Vec<(String, Printed)> {
    let field = |(start, end): (usize, usize)| {
        let part = code[start..end].trim();
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let printed = if key.starts_with('?') || value.trim_start().starts_with('?') {
            Printed::Debug
        } else if key.starts_with('%')
            || value.trim_start().starts_with('%')
            || value.contains("display")
        {
            Printed::Display
        } else {
            Printed::ByType
        };
        let key = key.trim().trim_start_matches(['?', '%']).to_owned();
        let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '.');
        (is_key && !key.is_empty()).then_some((key, printed))
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
            for (key, printed) in fields(&code[start..end]) {
                if printed == Printed::Debug {
                    complaints.push(format!("{}:{line}: {key} prints with Debug", file.path));
                }
                if printed == Printed::ByType && TEXT_KEYS.contains(&key.as_str()) {
                    complaints.push(format!("{}:{line}: {key} needs `%`", file.path));
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
fn comments_pages_and_strings_name_their_subjects() {
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
        "/// * Of these two stay.",
        "// Of those, two stay.",
        "// A socket that nobody reads.",
        "/// What a scrape is told.",
        "// The peer tells of it.",
        "/// At most so many bytes.",
        "// It counts all the same.",
        "// Taken from who dials.",
        "let x = \"Closed likewise.\";",
    ] {
        one(check_prose(&file(bad)), "src/zab/x.rs:1:");
    }
    none(check_prose(&file(
        "// A follower that falls behind.\nlet x = \"// Who asks\";\n// Who leads?",
    )));
    none(check_prose(&file(
        "// A leader tells the learner that it is told to truncate.\n// The user `nobody`. Java tells\n// `told`: a name",
    )));
    let python = "#!/usr/bin/env python3\nx = 1  # Who asks.\ny = \"# Who\"";
    one(check_prose(&[File::new("tests/x/run", python)]), "run:2:");
    one(check_prose(&[File::new("x/X.java", "/** Closed likewise. */")]), "X.java:1:");
    one(check_prose(&[File::new("x/x.sh", "exit 1 # Who asks.")]), "x.sh:1:");
    one(check_prose(&[File::new("x.yml", "description: \"Of these two lag.\"")]), "x.yml:1:");
    one(check_prose(&[File::new("tests/x.py", "\"\"\"One.\n\nClosed likewise.\n\"\"\"")]), "py:3:");
    one(
        check_prose(&[File::new("tests/x.py", "def x():\n    \"\"\"Closed likewise.\"\"\"")]),
        "py:2:",
    );
    one(check_test_names(&file("#[test]\nfn peer_is_told_that() {}")), "peer_is_told_that");
    one(check_test_names(&file("#[test]\nfn can_fail() {}")), "can_fail");
    one(check_test_names(&file("#[test]\nfn what_is_cut() {}")), "what_is_cut");
    none(check_test_names(&file("fn what_is_cut() {}\n#[test]\nfn follower_truncates() {}")));
    for bad in [
        "fn f() { tracing::warn!(?peer, \"x\") }",
        "fn f() { warn!(peer = ?self.peer(1, 2), \"x\") }",
        "fn f() { tracing::info!(\"{:?}\", 1) }",
        "fn f() { tracing::error!(sid = 1, \"x\") }",
        "fn f() { tracing::warn!(suppressed, \"x\") }",
        "fn f() { tracing::warn!(reason = why, \"x\") }",
        "fn f() { tracing::info!(target: STRANGERS, peer, \"x\") }",
        "fn f() { warn!(error = \"no\", \"x\") }",
    ] {
        one(check_log_lines(&file(bad)), "src/zab/x.rs:1:");
    }
    none(check_log_lines(&file("fn f() { tracing::warn!(%peer, zxid = %last, \"x\") }")));
    none(check_log_lines(&file("fn f() { warn!(path = path.map(display), count, \"x\") }")));
}
