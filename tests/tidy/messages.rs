//! docs/messages.md has each text that the server logs at WARN or ERROR, and no other; each text has room for what to do. The page
//! also names the files that log them.

use super::source::{File, project_files, shipped_rust, unescaped};
use super::wording::{arguments, log_calls};
use crate::{Complaints, none, one};
use std::collections::{BTreeMap, BTreeSet};

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

/// Each text with the files that log it.
fn logged(files: &[File]) -> BTreeMap<String, Vec<String>> {
    let mut logged: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let is_server = |file: &File| !OTHERS.iter().any(|start| file.path.starts_with(start));
    for file in shipped_rust(files).into_iter().filter(is_server) {
        let code = file.shipped();
        for (start, end) in log_calls(&code, &["warn!(", "error!("]) {
            let text = message(&file.text[start..end], &code[start..end]);
            logged.entry(text.unwrap_or_default()).or_default().push(file.path.clone());
        }
    }
    logged
}

/// Words that advice begins with.
const ADVICE: &str = "add allow ask bring check choose compare copy correct dial do follow free give \
                      keep look make mend move name nothing raise remove renew report restart restore \
                      run see set start stop use wait";

/// What to do follows a semicolon or a colon, and a clause of it begins with a word of advice. A text that begins with a value, or
/// has a reason after the colon, says it in the value.
fn lacks_remedy(text: &str) -> bool {
    let mark = text.find("; ").into_iter().chain(text.find(": ")).min();
    let rest = mark.map_or("", |mark| &text[mark..]);
    let advises = |clause: &str| {
        let clause = clause.trim_start().to_lowercase();
        let clause = clause.trim_start_matches("first ");
        let follows = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
        clause == "{reason}"
            || ADVICE.split(' ').any(|word| clause.strip_prefix(word).is_some_and(follows))
    };
    !text.starts_with('{') && !rest.split([';', ':', ',', '.']).any(advises)
}

#[test]
fn texts_without_a_word_of_advice_are_found() {
    for text in ["gone", "closed: the peer left; it may come back", "refused: settings differ"] {
        assert!(lacks_remedy(text), "{text}");
    }
    for text in ["closed: check it", "lost; if it stays, restart it", "gone: a. First copy all"] {
        assert!(!lacks_remedy(text), "{text}");
    }
}

/// The files and folders of the page's lists "Source:". A name without a folder is in the folder of the one before it.
fn sources(page: &str) -> Vec<String> {
    let mut sources = Vec::new();
    for list in page.lines().filter_map(|line| line.strip_prefix("Source: ")) {
        let mut folder = "";
        for name in list.split('`').skip(1).step_by(2) {
            let folder_of_name = name.rsplit_once('/').map(|(folder, _)| folder);
            folder = folder_of_name.unwrap_or(folder);
            sources.push(format!("{folder}/{}", name.rsplit('/').next().unwrap_or(name)));
        }
    }
    sources
}

fn check_page(files: &[File]) -> Complaints {
    let page = files.iter().find(|file| file.path == "docs/messages.md");
    let sources = page.map(|page| sources(&page.text)).unwrap_or_default();
    let rows = page.into_iter().flat_map(|page| page.text.lines());
    let texts = rows.filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let texts: Vec<String> = texts.map(|(text, _)| text.replace("\\|", "|")).collect();
    let logged = logged(files);
    let lacking = logged.iter().filter(|(text, _)| !texts.contains(text));
    let lacking =
        lacking.map(|(text, paths)| format!("docs/messages.md lacks {text:?} of {}", paths[0]));
    let stale = texts.iter().filter(|text| !logged.contains_key(*text));
    let silent = logged.iter().filter(|(text, _)| lacks_remedy(text));
    let silent =
        silent.map(|(text, paths)| format!("{}: {text:?} does not say what to do", paths[0]));
    let paths: BTreeSet<&String> = logged.values().flatten().collect();
    let holds =
        |source: &String, path: &String| path == source || path.starts_with(&format!("{source}/"));
    let unnamed = paths.iter().filter(|path| !sources.iter().any(|source| holds(source, path)));
    let unnamed = unnamed.map(|path| format!("docs/messages.md: no list of sources has {path}"));
    let empty = sources.iter().filter(|source| !paths.iter().any(|path| holds(source, path)));
    let empty = empty.map(|source| format!("docs/messages.md: {source} logs no WARN or ERROR"));
    lacking
        .chain(silent)
        .chain(unnamed)
        .chain(empty)
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
    let of = |sources: &str, rows: &str| {
        File::new("docs/messages.md", &format!("Source: {sources}.\n{rows}"))
    };
    let page = |rows: &str| of("`src/net`", rows);
    let unused = |rows: &str| of("", rows);
    let warns = "tracing::warn!(target: A, %peer, why = f(1, \"no\"), \"closed; check {} \\\n   frames\", 3);";
    none(check_page(&[source(warns), page("| `closed; check {} frames` | WARN | x | y |")]));
    one(
        check_page(&[source(warns), page("")]),
        "lacks \"closed; check {} frames\" of src/net/x.rs",
    );
    one(check_page(&[source(""), unused("| `gone` | WARN | x | y |")]), "nothing logs \"gone\"");
    let row = "| `closed; check {} frames` | WARN | x | y |";
    none(check_page(&[source(warns), of("`src/net/x.rs`", row)]));
    one(check_page(&[source(warns), unused(row)]), "no list of sources has src/net/x.rs");
    let more = of("`src/net/x.rs`, `y.rs`", row);
    one(check_page(&[source(warns), more]), "src/net/y.rs logs no WARN or ERROR");
    let silent = [source("tracing::warn!(\"gone\");"), page("| `gone` | WARN | x | y |")];
    one(check_page(&silent), "src/net/x.rs: \"gone\" does not say what to do");
    none(check_page(&[source("tracing::info!(\"serves\");"), unused("")]));
}
