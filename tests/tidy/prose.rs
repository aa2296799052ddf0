//! The texts of a file that a person reads: pages, comments, docstrings, values of YAML and strings, by line.

use super::source::{File, shipped_rust};

/// The comments of a file, or all of it if it is a page, by line.
pub fn prose(file: &File) -> Vec<(usize, String)> {
    if file.path.ends_with(".md") {
        return file.text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
    }
    let first = file.text.lines().next().unwrap_or_default();
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "rs" => rust_comments(file),
        "py" => python(&file.text),
        "java" | "go" | "js" | "c" => comments_after_slashes(&file.text),
        "yml" => yaml(&file.text),
        "sh" | "toml" | "bug" | "edits" | "service" => comments_after_hashes(&file.text),
        "txt" if file.path.starts_with("tests/zab/") => comments_after_hashes(&file.text),
        _ if first.starts_with("#!") && first.contains("python") => python(&file.text),
        _ if first.starts_with('#') => comments_after_hashes(&file.text), // Programs of a shell, and files that they source.
        _ => Vec::new(),
    }
}

/// The texts of strings in what ships: log lines, errors, help. A string without a space is a name.
pub fn strings(files: &[File]) -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    for file in shipped_rust(files) {
        for (at, text) in file.strings().into_iter().filter(|(_, text)| text.contains(' ')) {
            found.extend(text.lines().map(|line| (file.path.clone(), at, line.to_owned())));
        }
    }
    found
}

fn rust_comments(file: &File) -> Vec<(usize, String)> {
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

/// Comments of C and of languages that write them as C does: from `//` or `/*` at a line's beginning or after a blank.
fn comments_after_slashes(text: &str) -> Vec<(usize, String)> {
    let (mut is_inside, mut found) = (false, Vec::new());
    for (at, line) in text.lines().enumerate() {
        let begins = |mark| after_blank(line, mark);
        let start = if is_inside { Some(0) } else { begins("//").or(begins("/*")) };
        let Some(start) = start else { continue };
        let comment = &line[start..];
        is_inside = (is_inside || comment.starts_with("/*")) && !comment.contains("*/");
        let text =
            comment.trim_start_matches([' ', '\t', '/', '*']).trim_end_matches(['*', '/', ' ']);
        found.push((at + 1, text.to_owned()));
    }
    found
}

/// Comments from `#` and a blank on, at a line's beginning or after a blank.
fn comments_after_hashes(text: &str) -> Vec<(usize, String)> {
    let comment = |(at, line): (usize, &str)| {
        let start = after_blank(line, "# ")?;
        Some((at + 1, line[start + 2..].to_owned()))
    };
    text.lines().enumerate().filter_map(comment).collect()
}

/// Where `mark` begins a line, or follows a blank in it.
fn after_blank(line: &str, mark: &str) -> Option<usize> {
    let is_after_blank =
        |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices(mark).map(|(at, _)| at).find(is_after_blank)
}

/// All lines of YAML, without marks of comments and items, keys and quotes: values are texts that operators read.
fn yaml(text: &str) -> Vec<(usize, String)> {
    let read = |line: &str| {
        let line = line.trim_start_matches([' ', '#', '-']);
        let is_key = |key: &str| !key.contains(' ');
        let value =
            line.split_once(": ").filter(|(key, _)| is_key(key)).map_or(line, |(_, value)| value);
        value.trim_matches(['"', '\'']).to_owned()
    };
    text.lines().enumerate().map(|(at, line)| (at + 1, read(line))).collect()
}

/// The comments of a Python program, and its strings that contain a space: docstrings in all their lines.
fn python(text: &str) -> Vec<(usize, String)> {
    let (mut at, mut line, mut found) = (0, 1, Vec::new());
    while let Some(start) = text[at..].find(['#', '"', '\'', '\n']) {
        at += start;
        let rest = &text[at..];
        if rest.starts_with('\n') {
            (at, line) = (at + 1, line + 1);
            continue;
        }
        let (read, len) = if rest.starts_with('#') {
            let text = rest.lines().next().unwrap_or_default();
            (text.trim_start_matches(['#', ' ']).to_owned(), text.len())
        } else {
            let (inside, len) = python_string(rest);
            let is_formatted = text[..at].ends_with('f');
            (if is_formatted { without_expressions(inside) } else { inside.to_owned() }, len)
        };
        if rest.starts_with('#') || read.contains(' ') {
            let numbered = read.lines().enumerate();
            found.extend(numbered.map(|(after, text)| (line + after, text.trim().to_owned())));
        }
        line += rest[..len].matches('\n').count();
        at += len;
    }
    found
}

/// The text of the string that begins here, and how many bytes it takes with its quotes.
fn python_string(rest: &str) -> (&str, usize) {
    let quote = &rest[..1];
    let triple = quote.repeat(3);
    let quote = if rest.starts_with(&triple) { &triple } else { quote };
    let mut end = quote.len();
    while end < rest.len() && !rest[end..].starts_with(quote) {
        let c = rest[end..].chars().next().unwrap_or_default();
        end += c.len_utf8();
        if c == '\\' {
            end += rest[end..].chars().next().map_or(0, char::len_utf8);
        }
    }
    (&rest[quote.len()..end], (end + quote.len()).min(rest.len()))
}

/// What a formatted string says without its expressions in braces.
fn without_expressions(inside: &str) -> String {
    let mut depth = 0;
    let is_text = |c: &char| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0 && *c != '}'
    };
    inside.chars().filter(is_text).collect()
}

#[test]
fn comments_and_strings_of_python_are_found_in_all_their_lines() {
    let text = "\"\"\"One # two\n  three \\\" \"four\"\n\"\"\"\nx = 'a b'  # \"five\n\
                y = \"it's a\" + 'six'\nz = f'{told} a {b[\"c\"]}d'";
    let found = python(text);
    let expected = [
        (1, "One # two"),
        (2, "three \\\" \"four\""),
        (4, "a b"),
        (4, "\"five"),
        (5, "it's a"),
        (6, "a d"),
    ];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn comments_of_other_languages_are_found() {
    let found = |path: &str, text: &str| {
        let lines = prose(&File::new(path, text)).into_iter();
        lines.map(|(line, text)| format!("{line} {text}")).collect::<Vec<_>>()
    };
    let c = "/**\n * One.\n */\nint x; /* Two. */\ncall(\"http://x\"); // Three.\n";
    for path in ["x/X.java", "x/x.c", "x/x.go", "x/x.js"] {
        assert_eq!(found(path, c), ["1 ", "2 One.", "3 ", "4 Two.", "5 Three."], "{path}");
    }
    let sh = "#!/bin/sh\n# One.\n[ $# = 0 ] || y=${x#a} # Two.\n";
    for path in ["x/x.sh", "x/x", "x.toml", "x.bug", "tests/zab/x.txt", "x.service"] {
        assert_eq!(found(path, sh), ["2 One.", "3 Two."], "{path}");
    }
    assert!(found("src/config/keys.txt", "x # One.").is_empty());
    let python = "#!/usr/bin/env python3\nx = 'a b'  # Two.\n";
    assert_eq!(found("x/run", python), ["1 !/usr/bin/env python3", "2 a b", "2 Two."]);
    assert_eq!(
        found("x.yml", "# One.\nrules:\n  - x: \"Two.\"\n"),
        ["1 One.", "2 rules:", "3 Two."]
    );
}

#[test]
fn strings_with_a_space_are_found_by_line() {
    let file = File::new("src/net/x.rs", "let a = \"name\";\nlet b = \"closed: {}\\nOpen it\";");
    let line = |text: &str| ("src/net/x.rs".to_owned(), 2, text.to_owned());
    assert_eq!(strings(&[file]), [line("closed: {}"), line("Open it")]);
}
