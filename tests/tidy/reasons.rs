//! docs/reasons.md has the texts that reach a log line as a value: problems and warnings of the configuration, and errors.
//! `UPDATE_EXPECT=1 cargo test --test tidy reasons` writes it.

use super::source::{File, project_files, root, shipped_rust, unescaped};
use std::collections::BTreeSet;
use support::written::expect_file;

const HEAD: &str = "\
# Texts that are a value in the server's log

A test writes this page from the source: `UPDATE_EXPECT=1 cargo test --test tidy reasons`. It lists the texts that a line of the log has as a whole (`{reason}`, `{warning}` and
`{risk}` in [messages.md](messages.md)) or as the value of `reason` or `error`. A line may consist of several of them, each after `: `. `{}` and `{name}` stand for values, so
search for words from the middle of a line. Settings without effect have their reason in [configuration.md](configuration.md).

What to do follows the last semicolon. Where a text has none, [the table of reasons](messages.md#reasons) or the line around it says it.
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

/// The texts of `#[error("...")]`, and all strings that say what to do after a semicolon.
fn texts(file: &File) -> BTreeSet<String> {
    let shipped = file.shipped();
    let errors = shipped.match_indices("#[error(").filter_map(|(at, found)| {
        let literal = file.text[at + found.len()..].trim_start().strip_prefix('"')?;
        let end = literal.match_indices('"').find(|(at, _)| !literal[..*at].ends_with('\\'))?;
        Some(unescaped(&literal[..end.0]))
    });
    let says_what_to_do = |text: &String| text.contains("; ") && !text.contains('\n');
    let strings = file.strings().into_iter().map(|(_, text)| text).filter(says_what_to_do);
    // Not `{0}: {1}`, which has no words of its own.
    let has_words = |text: &String| text.split(' ').filter(|word| is_word(word)).count() > 1;
    errors.chain(strings).filter(has_words).collect()
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
        let is_here = |file: &&File| paths.iter().any(|path| file.path.starts_with(path));
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
fn errors_and_advice_are_listed_and_logged_lines_are_not() {
    let source = "#[error(\"port \\\"{0}\\\" is taken\")] struct E; #[error(\"{0}: {1}\")] struct F;
        fn f() { warn(\"{key}={value} is risky; remove it\"); warn(\"a name\"); log(\"gone away; look\") }
        #[cfg(test)] mod tests { const A: &str = \"not this; never\"; }";
    let files = [
        File::new("src/config/x.rs", source),
        File::new("docs/messages.md", "| `gone away; look` | WARN | x | y |"),
    ];
    let page = page(&files);
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("- ")).collect();
    let expected = ["- `port \"{0}\" is taken`", "- `{key}={value} is risky; remove it`"];
    assert_eq!(listed, expected);
}
