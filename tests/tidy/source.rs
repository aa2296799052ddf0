//! Reads Rust source well enough for the rules: code without comments, strings and tests.
//!
//! Not a parser. It keeps every newline, so a line number in the result is a line number in the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One file of the project, by its path from the root with `/` between names.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// The code alone: comments and the insides of strings become spaces.
    pub fn code(&self) -> String {
        blank_comments_and_strings(&self.text)
    }

    /// The code that ships: [`File::code`] with `#[cfg(test)]` items blanked as well.
    pub fn shipped(&self) -> String {
        blank_tests(&self.code())
    }

    /// The strings of the code that ships, escapes resolved: each with the line where it begins.
    pub fn strings(&self) -> Vec<(usize, String)> {
        let tests = test_items(&self.code());
        let ships =
            |(at, _): &(usize, usize)| !tests.iter().any(|&(start, end)| (start..end).contains(at));
        let string = |(start, end): (usize, usize)| {
            let text = &self.text[start..end];
            let text = match text.strip_prefix('r') {
                Some(raw) => raw.trim_matches('#').trim_matches('"').to_owned(),
                None => unescaped(text.strip_prefix('"')?.strip_suffix('"')?),
            };
            Some((line_at(&self.text, start), text))
        };
        comments_and_literals(&self.text).into_iter().filter(ships).filter_map(string).collect()
    }
}

/// The project's root, read at run time: worktrees that share a target folder may share the built test too.
pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into()).into()
}

/// Every text file that git tracks or would track; a plain walk where there is no git.
pub fn project_files() -> Vec<File> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut paths: BTreeSet<String> = BTreeSet::new();
    match listed {
        Ok(out) if out.status.success() => {
            paths.extend(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned));
        }
        _ => walk(&root(), "", &mut paths),
    }
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).ok()?; // Binary or just deleted.
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn walk(dir: &Path, prefix: &str, paths: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if ["target", ".git", "data", "__pycache__", "node_modules"].contains(&name.as_str()) {
            continue;
        }
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.path().is_dir() {
            walk(&entry.path(), &path, paths);
        } else {
            paths.insert(path);
        }
    }
}

/// Rust files of the shipped crates, without files that a `#[cfg(test)] mod name;` brings in.
pub fn shipped_rust(files: &[File]) -> Vec<File> {
    let mut tests = BTreeSet::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        for name in out_of_line_tests(&file.code()) {
            let folder = module_folder(&file.path);
            tests.insert(format!("{folder}/{name}.rs"));
            tests.insert(format!("{folder}/{name}/")); // And all files of such a module.
        }
    }
    let in_src = |path: &str| path.starts_with("src/") || path.starts_with("jute/src/");
    let is_test = |path: &str| {
        tests.iter().any(|t| path == t || (t.ends_with('/') && path.starts_with(t.as_str())))
    };
    let keep =
        |file: &&File| file.path.ends_with(".rs") && in_src(&file.path) && !is_test(&file.path);
    files.iter().filter(keep).cloned().collect()
}

/// The folder of the modules declared in `path`.
fn module_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
    }
}

fn out_of_line_tests(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in test_attributes(code) {
        let item = after_attributes(code, at);
        let words: Vec<&str> = code[item..].split_whitespace().take(3).collect();
        let words = words.strip_prefix(&["pub"]).unwrap_or(&words);
        if let ["mod", name, ..] = words
            && let Some(name) = name.strip_suffix(';')
        {
            names.push(name.to_owned());
        }
    }
    names
}

fn blank_comments_and_strings(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    for (start, end) in comments_and_literals(text) {
        out[start..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    }
    // Lone bytes of wider characters go too, so that every index is a character boundary.
    out.iter_mut().filter(|b| !b.is_ascii()).for_each(|b| *b = b' ');
    String::from_utf8(out).expect("ascii only")
}

/// Where each comment, string and character of Rust source begins and ends.
fn comments_and_literals(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment(rest)
        } else if rest[0] == b'"' {
            at + quoted(rest)
        } else if rest[0] == b'r' && !prior_is_word(bytes, at) {
            at + raw_string(rest).unwrap_or(1)
        } else if rest[0] == b'\'' {
            at + char_literal(rest).unwrap_or(1)
        } else {
            at + 1
        };
        if end > at + 1 {
            found.push((at, end));
        }
        at = end;
    }
    found
}

fn prior_is_word(bytes: &[u8], at: usize) -> bool {
    // `br"` is a string as well, so a lone `b` before the `r` does not count.
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match at.checked_sub(1).map(|prior| bytes[prior]) {
        Some(b'b') => at >= 2 && word(bytes[at - 2]),
        Some(b) => word(b),
        None => false,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None; // A name that begins with r, or a raw identifier.
    }
    let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let body = 2 + hashes;
    let found = rest[body..].windows(close.len()).position(|window| window == close);
    Some(found.map_or(rest.len(), |found| body + found + close.len()))
}

fn char_literal(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return rest.get(3..)?.iter().position(|&b| b == b'\'').map(|found| found + 4);
    }
    // Up to four bytes of one character, then the quote; else it is a lifetime.
    (2..=5)
        .find(|&end| rest.get(end) == Some(&b'\''))
        .filter(|&end| end == 2 || !rest[1].is_ascii())
        .map(|end| end + 1)
}

/// Start and end of every `#[cfg(test)]`-like attribute.
fn test_attributes(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for start in ["#[cfg(test", "#[cfg(all(test"] {
        found.extend(code.match_indices(start).map(|(at, _)| (at, attribute_end(code, at))));
    }
    found
}

fn attribute_end(code: &str, at: usize) -> usize {
    close_of(code, at + 1, b'[', b']')
}

fn after_attributes(code: &str, mut at: usize) -> usize {
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            return at;
        }
        at = attribute_end(code, at);
    }
}

/// Index just past the bracket that closes the one at `open`.
pub fn close_of(code: &str, open: usize, up: u8, down: u8) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        if byte == up {
            depth += 1;
        } else if byte == down {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    code.len()
}

/// Where an item's body opens, or the `;` it ends with; a `;` inside `[u8; 4]` is neither.
pub fn body_or_end(code: &str, item: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(item) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' | b';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

fn blank_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for (start, end) in test_items(code) {
        out[start..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
    }
    String::from_utf8(out).expect("still ascii")
}

/// Where each `#[cfg(test)]` item begins and ends, its attributes included.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let item = |(at, _): (usize, usize)| {
        let item = after_attributes(code, at);
        let stop = body_or_end(code, item);
        let end = if code.as_bytes().get(stop) == Some(&b'{') {
            close_of(code, stop, b'{', b'}')
        } else {
            (stop + 1).min(code.len())
        };
        (at, end)
    };
    test_attributes(code).into_iter().map(item).collect()
}

/// The text of a literal with its escapes resolved.
pub fn unescaped(literal: &str) -> String {
    let (mut text, mut chars) = (String::new(), literal.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                chars.next();
                text.push('\n');
            }
            ('\\', Some(_)) => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

pub fn line_at(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// One name that a `use` imports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Import {
    pub line: usize,
    /// Written out in full: `use a::{b, c::d};` gives `a::b` and `a::c::d`.
    pub path: String,
    /// What the file calls it: the last part of the path unless it is renamed with `as`.
    pub name: String,
    /// Declared with `pub`, `pub(super)` or `pub(crate)`: other files may import it from here.
    pub is_public: bool,
}

/// Every name of every `use`.
pub fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, end) in use_items(code) {
        let line = line_at(code, at);
        let before =
            code[..at].trim_end().rsplit(['\n', ';', '}', '{']).next().unwrap_or("").trim();
        let is_public = before.contains("pub");
        let body: String =
            code[at + "use ".len()..end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand(&body, "", &mut |path, name| {
            found.push(Import { line, path, name, is_public });
        });
    }
    found
}

/// Where each `use` begins and where its `;` is.
pub fn use_items(code: &str) -> Vec<(usize, usize)> {
    let is_free = |at: &usize| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    let end = |at: usize| code[at..].find(';').map_or(code.len(), |found| at + found);
    code.match_indices("use ").map(|(at, _)| at).filter(is_free).map(|at| (at, end(at))).collect()
}

/// The line and the full path of every [`Import`].
pub fn use_paths(code: &str) -> Vec<(usize, String)> {
    imports(code).into_iter().map(|import| (import.line, import.path)).collect()
}

fn expand(tree: &str, prefix: &str, found: &mut dyn FnMut(String, String)) {
    let Some(open) = tree.find('{') else {
        let (path, renamed) = tree.split_once(" as ").map_or((tree, None), |(p, n)| (p, Some(n)));
        let path = format!("{prefix}{}", path.trim());
        // `use a::{self}` imports `a`.
        let path = path.strip_suffix("::self").unwrap_or(&path).to_owned();
        let name = renamed.unwrap_or(path.rsplit("::").next().unwrap_or("")).trim().to_owned();
        found(path, name);
        return;
    };
    let prefix = format!("{prefix}{}", tree[..open].trim());
    let inner = &tree[open + 1..close_of(tree, open, b'{', b'}') - 1];
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                expand(inner[start..at].trim(), &prefix, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(inner[start..].trim(), &prefix, found);
    }
}

/// Where `word` occurs on its own: not as the head or tail of a longer name or path.
pub fn words(code: &str, word: &str) -> Vec<usize> {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let free = |at: &usize| {
        let before = code[..*at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let head = !word.starts_with(name) || !before.is_some_and(name);
        head && (!word.ends_with(name) || !after.is_some_and(name))
    };
    code.match_indices(word).map(|(at, _)| at).filter(free).collect()
}

#[test]
fn code_drops_comments_strings_and_tests() {
    let text = "let a = \"x // y\"; // z\nlet b = r#\"\"q\"\"#;\n/* /* */ w */ let c = '\"';\n\
                #[cfg(test)]\nmod tests { fn f() { g(\"{\") } }\nfn kept<'a>() {}";
    let file = File::new("src/tree/a.rs", text);
    let code = file.shipped();
    assert_eq!(code.lines().count(), text.lines().count());
    for gone in ["x", "z", "q", "w", "tests"] {
        assert!(words(&code, gone).is_empty(), "{gone} in {code}");
    }
    assert_eq!(words(&code, "kept").len(), 1);
    assert_eq!(words(&file.code(), "tests").len(), 1);
}

#[test]
fn strings_are_those_that_ship() {
    let text = "let a = \"x // \\\"y\\\" \\\n  z\"; // \"no\"\nlet b = r#\"\"q\"\"#;\n\
                #[cfg(test)]\nmod tests { fn f() { g(\"no\") } }";
    let strings = File::new("src/tree/a.rs", text).strings();
    assert_eq!(strings, [(1, "x // \"y\" z".to_owned()), (3, "q".to_owned())]);
}

#[test]
fn uses_are_written_out() {
    let code = "use a::{b, c::{self, d, e as f},\n g};\npub(super) use h::i;\nfn reuse () {}";
    let paths: Vec<String> = use_paths(code).into_iter().map(|(_, path)| path).collect();
    assert_eq!(paths, ["a::b", "a::c", "a::c::d", "a::c::e", "a::g", "h::i"]);
    let found = imports(code);
    let names: Vec<&str> = found.iter().map(|import| &*import.name).collect();
    assert_eq!(names, ["b", "c", "d", "f", "g", "i"]);
    let public: Vec<bool> = found.iter().map(|import| import.is_public).collect();
    assert_eq!(public, [false, false, false, false, false, true]);
}

#[test]
fn files_of_test_modules_do_not_ship() {
    let files = [
        File::new("src/tree/mod.rs", "#[cfg(test)]\nmod tests;\nmod node;"),
        File::new("src/tree/tests.rs", ""),
        File::new("src/tree/tests/more.rs", ""),
        File::new("src/tree/node.rs", ""),
        File::new("tests/tree.rs", ""),
    ];
    let shipped: Vec<String> = shipped_rust(&files).into_iter().map(|file| file.path).collect();
    assert_eq!(shipped, ["src/tree/mod.rs", "src/tree/node.rs"]);
}
