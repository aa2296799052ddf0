//! docs/reasons.md has the texts that reach a log line as a value: problems and warnings of the configuration, and errors.
//! `UPDATE_EXPECT=1 cargo test --test tidy reasons` writes it.

use super::source::{File, close_of, project_files, root, shipped_rust, unescaped};
use super::wording::arguments;
use crate::{Complaints, none, one};
use std::collections::BTreeSet;
use support::written::expect_file;

const HEAD: &str = "\
# Texts that are a value in the server's log

A test writes this page from the source: `UPDATE_EXPECT=1 cargo test --test tidy reasons`. It lists the texts that a line of the log has as a whole (`{reason}`, `{warning}` and
`{risk}` in [messages.md](messages.md)) or as the value of `reason` or `error`. A line may consist of several of them, each after `: `. `{}` and `{name}` stand for values, so
search for words from the middle of a line. Settings without effect have their reason in [configuration.md](configuration.md).

What to do follows the last semicolon. Where a text has none, [the table of reasons](messages.md#reasons) or the line around it says it; the same test checks that the texts in
that table are texts of the source.
";

/// Each section, what it begins with, and the paths of its texts. A file is in the first section that names it.
const SECTIONS: &[(&str, &str, &[&str])] = &[
    (
        "Configuration and command line",
        "At the start, before anything else is done: an ERROR for each problem (exit code 2), a WARN for each other one.",
        &["src/config/", "src/model/properties.rs", "src/model/view/"],
    ),
    (
        "TLS and certificates",
        "At the start, when a store has changed, and at each handshake.",
        &["src/net/tls", "src/auth/x509/", "src/member/tls_detection.rs"],
    ),
    (
        "Start, data and disk",
        "An ERROR when the server does not start or ends (exit codes: [configuration.md](configuration.md#stopping-and-exit-codes)), or a WARN about a file.",
        &["src/server/", "src/store/", "src/tree/", "src/net/bind.rs", "src/main.rs"],
    ),
    (
        "Other servers",
        "When a connection between servers is refused, closed or can't be made.",
        &["src/member/", "src/zab/", "src/net/quorum/", "src/net/election/"],
    ),
    (
        "Clients",
        "When a client, or what a client or an operator asks for, is refused.",
        &["src/request/", "src/replica/", "src/auth/", "src/net/", "src/model/"],
    ),
];

/// What stands before a text that becomes a line or the value of `reason` or `error`, if it says what to do or not.
const BEFORE_REASONS: &[&str] = &[
    "#[error(",
    "Err(",
    "Refusal::new(",
    "close(",
    "end_role(",
    "let reason =",
    "let text =",
    "let why =",
    ": &str =",
];

/// Calls of which any argument may be such a text.
const CALLS: &[&str] = &[".problem(", ".refuse(", ".warn(", ".warn_of_use(", "wrong("];

/// What is no part of a server.
const OTHERS: &[&str] = &["src/member/sim_exchange.rs"];

/// Texts that the system or another program makes.
const FROM_ELSEWHERE: &[&str] = &["No space left on device", "Permission denied"];

/// The string that a text of code begins with, or with which the arguments of `format!` begin.
fn first_string(code: &str) -> Option<String> {
    let code = code.trim_start();
    let literal = code.strip_prefix("format!(").unwrap_or(code).trim_start().strip_prefix('"')?;
    let end = literal.match_indices('"').find(|(at, _)| !literal[..*at].ends_with('\\'))?;
    Some(unescaped(&literal[..end.0]))
}

/// The texts of errors and reasons, and all strings that say what to do after a semicolon.
fn texts(file: &File) -> BTreeSet<String> {
    let shipped = file.shipped();
    let reasons = BEFORE_REASONS.iter().flat_map(|before| shipped.match_indices(before));
    let reasons = reasons.filter_map(|(at, before)| first_string(&file.text[at + before.len()..]));
    let given = CALLS.iter().flat_map(|call| shipped.match_indices(call)).flat_map(|(at, call)| {
        let (start, end) =
            (at + call.len(), close_of(&shipped, at + call.len() - 1, b'(', b')') - 1);
        let parts = arguments(&shipped[start..end]).into_iter();
        parts.filter_map(move |(from, _)| first_string(&file.text[start + from..]))
    });
    let says_what_to_do = |text: &String| text.contains("; ") && !text.contains('\n');
    let strings = file.strings().into_iter().map(|(_, text)| text).filter(says_what_to_do);
    // Not `{0}: {1}`, which has no words of its own.
    let has_words = |text: &String| {
        !text.contains('\n') && text.split(' ').filter(|word| is_word(word)).count() > 1
    };
    reasons.chain(given).chain(strings).filter(has_words).collect()
}

fn is_word(part: &str) -> bool {
    1 < part.len() && part.chars().all(|c| c.is_alphabetic() || ",;:'".contains(c))
}

fn quoted(text: &str) -> String {
    if text.contains('`') { format!("- `` {text} ``\n") } else { format!("- `{text}`\n") }
}

fn page(files: &[File]) -> String {
    let messages = files.iter().find(|file| file.path == "docs/messages.md");
    let messages = messages.map(|file| file.text.as_str()).unwrap_or_default();
    let shipped = shipped_rust(files);
    let mut page = HEAD.to_owned();
    let mut listed = BTreeSet::new();
    for (title, intro, paths) in SECTIONS {
        page += &format!("\n## {title}\n\n{intro}\n\n");
        let is_here = |file: &&File| {
            let is_in = |path: &&str| file.path.starts_with(path);
            paths.iter().any(is_in) && !OTHERS.contains(&file.path.as_str())
        };
        let here: BTreeSet<String> = shipped.iter().filter(is_here).flat_map(texts).collect();
        let is_new = |text: &&String| {
            !messages.contains(&format!("| `{text}` |")) && listed.insert((*text).clone())
        };
        page.extend(here.iter().filter(is_new).map(|text| quoted(text)));
    }
    page
}

#[test]
fn page_of_reasons_has_every_text() {
    expect_file(&root().join("docs/reasons.md"), &page(&project_files()));
}

#[test]
fn texts_print_no_value_with_debug() {
    let page = page(&project_files());
    let debug = page.lines().filter(|line| line.contains(":?}") || line.contains(":#?}"));
    none(debug.map(|line| format!("docs/reasons.md: Debug output in {line}")).collect());
}

/// The quoted texts in the first column of the table of reasons, without those that come from elsewhere.
fn quoted_reasons(messages: &str) -> Vec<&str> {
    let (_, table) = messages.split_once("\n## Reasons\n").unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| \"")?.split_once("\" | "));
    let texts = rows.flat_map(|(texts, _)| texts.split("\", \""));
    texts.filter(|text| !FROM_ELSEWHERE.contains(text)).collect()
}

/// Complaints about texts in the table of reasons that no string has. `...` stands for anything.
fn check_quoted_reasons(files: &[File]) -> Complaints {
    let messages = files.iter().find(|file| file.path == "docs/messages.md");
    let quoted = quoted_reasons(messages.map(|file| file.text.as_str()).unwrap_or_default());
    let shipped = shipped_rust(files);
    let strings: Vec<String> =
        shipped.iter().flat_map(File::strings).map(|(_, text)| text).collect();
    let has = |string: &String, quoted: &str| {
        let mut parts = quoted.split("...").map(str::trim).filter(|part| !part.is_empty());
        parts.try_fold(string.as_str(), |rest, part| Some(rest.split_once(part)?.1)).is_some()
    };
    let gone =
        quoted.into_iter().filter(|quoted| !strings.iter().any(|string| has(string, quoted)));
    gone.map(|quoted| format!("docs/messages.md: no string is {quoted:?}")).collect()
}

#[test]
fn texts_in_the_table_of_reasons_are_in_the_source() {
    let files = project_files();
    let messages = files.iter().find(|file| file.path == "docs/messages.md").unwrap();
    assert!(15 < quoted_reasons(&messages.text).len(), "the table was not found");
    none(check_quoted_reasons(&files));
}

#[test]
fn stale_texts_in_the_table_of_reasons_are_found() {
    let page = |text: &str| {
        let rows = format!("# M\n\n## Reasons\n\n| Reason |\n|---|\n| \"{text}\" | x | y |\n");
        let source = "fn f() { let why = format!(\"{} is of epoch {}: gone\", 1, 2); }";
        [File::new("docs/messages.md", &rows), File::new("src/zab/x.rs", source)]
    };
    none(check_quoted_reasons(&page("... is of epoch ...: gone\", \"Permission denied")));
    one(check_quoted_reasons(&page("... is of term ...: gone")), "is of term");
    one(check_quoted_reasons(&page("gone ... is of epoch")), "gone ... is of epoch");
}

#[test]
fn errors_and_advice_are_listed_and_logged_lines_are_not() {
    let source = "#[error(\"port \\\"{0}\\\" is taken\")] struct E; #[error(\"{0}: {1}\")] struct F;
        fn f() { warn(\"{key}={value} is risky; remove it\"); warn(\"a name\"); log(\"gone away; look\") }
        fn g() { return Err(format!(\"{0} is in use\", 1)); } fn h() { let why = \"it was silent\"; }
        fn i() { checker.warn(&place(1, 2), \"it is odd\"); Refusal::new(format!(\"no {} there\", 1)) }
        const GONE: &str =\n \"it went away\"; const PAGE: &str = \"two words\\n\";
        fn j() { let text =\n \"it is late\"; self.close(\"it was full\") }
        #[cfg(test)] mod tests { const A: &str = \"not this; never\"; }";
    let files = [
        File::new("src/config/x.rs", source),
        File::new("src/member/sim_exchange.rs", "fn f() { close(\"it was made up\") }"),
        File::new("docs/messages.md", "| `gone away; look` | WARN | x | y |"),
    ];
    let page = page(&files);
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("- ")).collect();
    let expected = [
        "- `it is late`",
        "- `it is odd`",
        "- `it was full`",
        "- `it was silent`",
        "- `it went away`",
        "- `no {} there`",
        "- `port \"{0}\" is taken`",
        "- `{0} is in use`",
        "- `{key}={value} is risky; remove it`",
    ];
    assert_eq!(listed, expected);
}
