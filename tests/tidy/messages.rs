//! docs/messages.md has each text that the server logs at WARN or ERROR, and no other; each text has room for what to do.

use super::source::{File, project_files, shipped_rust, unescaped};
use super::wording::{arguments, log_calls};
use crate::{Complaints, none, one};
use std::collections::BTreeMap;

/// What is no part of a server.
const OTHERS: &[&str] = &["src/sim/", "src/tools/", "src/bin/"];

/// The format string among a log macro's arguments, as the compiler reads it: the first argument that is a literal.
///
/// * `code`: the same bytes with strings blank.
fn message(text: &str, code: &str) -> Option<String> {
    arguments(code).into_iter().find_map(|(start, end)| {
        let is_blank = code[start..end].trim().is_empty();
        let literal = text[start..end].trim().strip_prefix('"')?.strip_suffix('"')?;
        is_blank.then(|| unescaped(literal))
    })
}

/// Each text with a file that logs it.
fn logged(files: &[File]) -> BTreeMap<String, String> {
    let mut logged = BTreeMap::new();
    let is_server = |file: &File| !OTHERS.iter().any(|start| file.path.starts_with(start));
    for file in shipped_rust(files).into_iter().filter(is_server) {
        let code = file.shipped();
        for (start, end) in log_calls(&code, &["warn!(", "error!("]) {
            let text = message(&file.text[start..end], &code[start..end]);
            logged.insert(text.unwrap_or_default(), file.path.clone());
        }
    }
    logged
}

/// What to do follows a semicolon or a colon. A text that begins with a value says it in the value.
fn lacks_remedy(text: &str) -> bool {
    !text.starts_with('{') && !text.contains("; ") && !text.contains(": ")
}

fn check_page(files: &[File]) -> Complaints {
    let page = files.iter().find(|file| file.path == "docs/messages.md");
    let rows = page.into_iter().flat_map(|page| page.text.lines());
    let texts = rows.filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let texts: Vec<String> = texts.map(|(text, _)| text.replace("\\|", "|")).collect();
    let logged = logged(files);
    let lacking = logged.iter().filter(|(text, _)| !texts.contains(text));
    let lacking = lacking.map(|(text, path)| format!("docs/messages.md lacks {text:?} of {path}"));
    let stale = texts.iter().filter(|text| !logged.contains_key(*text));
    let silent = logged.iter().filter(|(text, _)| lacks_remedy(text));
    let silent = silent.map(|(text, path)| format!("{path}: {text:?} does not say what to do"));
    lacking
        .chain(silent)
        .chain(stale.map(|text| format!("docs/messages.md: nothing logs {text:?}")))
        .collect()
}

#[test]
fn page_of_messages_has_every_warning_and_error() {
    none(check_page(&project_files()));
}

#[test]
fn lacking_and_stale_messages_are_found() {
    let source = |code: &str| File::new("src/net/x.rs", &format!("fn f() {{ {code} }}"));
    let page = |rows: &str| File::new("docs/messages.md", rows);
    let warns =
        "tracing::warn!(target: A, %peer, why = f(1, \"no\"), \"closed: {} \\\n   frames\", 3);";
    none(check_page(&[source(warns), page("| `closed: {} frames` | WARN | x | y |")]));
    one(check_page(&[source(warns), page("")]), "lacks \"closed: {} frames\" of src/net/x.rs");
    one(check_page(&[source(""), page("| `gone` | WARN | x | y |")]), "nothing logs \"gone\"");
    let silent = [source("tracing::warn!(\"gone\");"), page("| `gone` | WARN | x | y |")];
    one(check_page(&silent), "src/net/x.rs: \"gone\" does not say what to do");
    none(check_page(&[source("tracing::info!(\"serves\");"), page("")]));
}
