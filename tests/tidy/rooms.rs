//! Which room may use which.

use super::source::{File, line_at, project_files, use_paths, words};
use crate::{Complaints, EVERYTHING, ROOMS, none, one};

/// The room a source file belongs to; `None` for `lib.rs`, which only lists rooms.
pub fn room_of(path: &str) -> Option<&str> {
    if path.starts_with("jute/src/") {
        return Some("jute");
    }
    let inside = path.strip_prefix("src/").filter(|inside| inside.ends_with(".rs"))?;
    match inside.split('/').next()? {
        "lib.rs" => None,
        "main.rs" | "bin" => Some("main"),
        name => Some(name.trim_end_matches(".rs")),
    }
}

/// Complaints about a `use`, or a path inside the code, that points against the table.
///
/// The rule holds for test modules too: a test that needs another room belongs in `tests/`.
pub fn check(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files {
        let Some(room) = room_of(&file.path) else { continue };
        let Some((_, may_use)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            complaints.push(format!("{}: room `{room}` has no line in ROOMS", file.path));
            continue;
        };
        let mut used = named(file);
        used.sort();
        used.dedup();
        for (line, other) in used {
            let at = format!("{}:{line}", file.path);
            if !ROOMS.iter().any(|(name, _)| *name == other) {
                complaints.push(format!("{at}: `{other}` is not a room; put it into one"));
            } else if other != room && *may_use != EVERYTHING && !may_use.contains(&&*other) {
                complaints.push(format!("{at}: `{room}` may not use `{other}`"));
            }
        }
    }
    complaints
}

/// Every room that the file names, with the line.
fn named(file: &File) -> Vec<(usize, String)> {
    let code = file.code();
    let mut found = Vec::new();
    let first = |path: &str| path.split("::").next().unwrap_or("").trim().to_owned();
    for (line, path) in use_paths(&code) {
        for start in ["crate::", "oxkeeper::"] {
            if let Some(rest) = path.strip_prefix(start) {
                found.push((line, first(rest)));
            }
        }
        let supers = path.split("::").take_while(|part| part.trim() == "super").count();
        let rest = path.split("::").nth(supers).unwrap_or("").trim().to_owned();
        if supers >= depth(&file.path) && ROOMS.iter().any(|(name, _)| *name == rest) {
            found.push((line, rest)); // A path to the root by `super`.
        }
    }
    for start in ["crate::", "oxkeeper::"] {
        for at in words(&code, start) {
            let rest: String = code[at + start.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            // A brace follows only in a `use`, which is written out above; jute's own `crate` is itself.
            if !rest.is_empty() {
                found.push((line_at(&code, at), rest));
            }
        }
    }
    if file.path.starts_with("jute/") {
        found.clear(); // One crate of its own: Cargo keeps it from using any other room.
    }
    for at in words(&code, "jute::") {
        if !code[..at].ends_with("::") {
            found.push((line_at(&code, at), "jute".into()));
        }
    }
    found
}

/// How many `super` lead from the file's module to the crate root.
fn depth(path: &str) -> usize {
    let parts = path.trim_start_matches("src/").split('/').count();
    if path.ends_with("/mod.rs") { parts - 1 } else { parts }
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    none(check(&project_files()));
}

#[test]
fn rooms_of_the_table_use_only_rooms_above_them() {
    // A room's line may name only rooms above it, so no circle can be written down.
    for (at, (room, may_use)) in ROOMS.iter().enumerate() {
        for other in may_use.iter().filter(|other| **other != "*") {
            let above = ROOMS[..at].iter().any(|(name, _)| name == other);
            assert!(above, "`{room}` names `{other}`, which is not above it");
        }
        assert!(!may_use.contains(&"server"), "`{room}` may not use server");
    }
}

#[test]
fn uses_of_rooms_against_the_table_are_found() {
    let tree = |text| check(&[File::new("src/tree/apply.rs", text)]);
    one(tree("use crate::zab::Vote;"), "`tree` may not use `zab`");
    one(tree("use crate::{model::Zxid, tree::Node, store};"), "may not use `store`");
    one(tree("fn f() { crate::net::send() }"), "may not use `net`");
    one(tree("use super::super::zab;"), "may not use `zab`");
    one(tree("fn f() -> oxkeeper::server::X {}"), "may not use `server`");
    one(tree("use crate::Helper;"), "`Helper` is not a room");
    none(tree(
        "use super::auth; use crate::{model::{Zxid, Acl}, tree}; use jute::proto; // crate::zab",
    ));
    let auth = |text| check(&[File::new("src/auth/mod.rs", text)]);
    one(auth("use jute::data::Id;"), "`auth` may not use `jute`");
    one(auth("use super::tree;"), "may not use `tree`");
    one(check(&[File::new("src/extra.rs", "")]), "`extra` has no line");
    one(check(&[File::new("src/server/mod.rs", "use crate::extra;")]), "not a room");
    none(check(&[File::new("src/main.rs", "use oxkeeper::server; use oxkeeper::tools;")]));
}
