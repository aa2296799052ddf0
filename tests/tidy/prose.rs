//! The texts of a file that a person reads: pages, comments, docstrings and strings, by line.

use super::source::{File, shipped_rust};

/// The comments of a file, or all of it if it is a page, by line.
pub fn prose(file: &File) -> Vec<(usize, String)> {
    if file.path.ends_with(".md") {
        return file.text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
    }
    if file.path.ends_with(".py") || file.path.ends_with("/run") {
        return python(&file.text);
    }
    if file.path.ends_with(".rs") { rust_comments(file) } else { Vec::new() }
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
fn strings_with_a_space_are_found_by_line() {
    let file = File::new("src/net/x.rs", "let a = \"name\";\nlet b = \"closed: {}\\nOpen it\";");
    let line = |text: &str| ("src/net/x.rs".to_owned(), 2, text.to_owned());
    assert_eq!(strings(&[file]), [line("closed: {}"), line("Open it")]);
}
