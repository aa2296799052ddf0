//! Pure rooms may not use clocks, files, sockets, threads or chance.

use super::rooms::room_of;
use super::source::{File, line_at, project_files, root, shipped_rust, use_paths, words};
use crate::{Complaints, PURE, PURE_CRATES, none, one};

/// Text that may not be in the code, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("async", "the driver waits, the room steps"),
    (".await", "the driver waits, the room steps"),
    ("std::fs", "ask for an Action"),
    ("std::net", "addresses are in core::net; sockets are net's"),
    ("std::thread", "the driver owns threads"),
    ("std::process", "return an error"),
    ("std::env", "take an argument"),
    ("tokio", "the driver owns the runtime"),
    ("Instant::now", "time is an input"),
    ("SystemTime", "time is an input"),
    ("thread_rng", "a seed is an argument"),
    ("rand::", "a seed is an argument"),
    ("RandomState", "a seed is an argument"),
    ("HashMap::new()", "use BTreeMap, or hashbrown with a seeded hasher"),
    ("HashSet::new()", "use BTreeSet, or hashbrown with a seeded hasher"),
    ("std::collections::HashMap", "use BTreeMap, or hashbrown with a seeded hasher"),
    ("std::collections::HashSet", "use BTreeSet, or hashbrown with a seeded hasher"),
    ("std::collections::hash_map", "use BTreeMap, or hashbrown with a seeded hasher"),
    ("println!", "log through tracing"),
    ("eprintln!", "log through tracing"),
    ("print!", "log through tracing"),
];

/// Shared state is locked in two places only: the tree, and the outbox that apply and reads fill.
const LOCKS: &[&str] = &["Mutex", "RwLock"];
/// `model` only declares the locks that the other two use.
const MAY_LOCK: &[&str] = &["model", "tree", "request"];

/// Complaints about shipped code of the pure rooms; `crates` are the names of all dependencies.
///
/// Only `#[cfg(test)]` code is exempt; a single line can't be.
fn check(files: &[File], crates: &[String]) -> Complaints {
    let mut complaints = Vec::new();
    for file in shipped_rust(files) {
        let Some(room) = room_of(&file.path).filter(|room| PURE.contains(room)) else { continue };
        let code = file.shipped();
        let uses = use_paths(&code);
        let mut complain = |line: usize, what: &str, instead: &str| {
            let path = &file.path;
            complaints.push(format!("{path}:{line}: `{what}` in pure room `{room}`: {instead}"));
        };
        for (what, instead) in BANNED {
            let mut lines: Vec<usize> =
                words(&code, what).into_iter().map(|at| line_at(&code, at)).collect();
            lines.extend(
                uses.iter().filter(|(_, path)| is_under(path, what)).map(|(line, _)| *line),
            );
            lines.sort();
            lines.dedup();
            lines.into_iter().for_each(|line| complain(line, what, instead));
        }
        for lock in LOCKS.iter().filter(|_| !MAY_LOCK.contains(&room)) {
            if let Some(at) = words(&code, lock).first() {
                complain(line_at(&code, *at), lock, "locks are for tree and request");
            }
        }
        for name in crates.iter().filter(|name| !PURE_CRATES.contains(&name.as_str())) {
            let already_banned = ["tokio", "rand"].contains(&name.as_str());
            let first = |path: &String| path.split("::").next() == Some(name);
            let used = uses.iter().find(|(_, path)| first(path)).map(|(line, _)| *line);
            let inline = words(&code, &format!("{name}::"))
                .into_iter()
                .find(|at| !code[..*at].ends_with("::"))
                .map(|at| line_at(&code, at));
            if let (Some(line), false) = (used.or(inline), already_banned) {
                complain(line, name, "the crate is not in PURE_CRATES");
            }
        }
    }
    complaints
}

fn is_under(path: &str, what: &str) -> bool {
    path.strip_prefix(what).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Names of all dependencies of the workspace, as code writes them.
fn dependencies() -> Vec<String> {
    let mut names = Vec::new();
    for manifest in ["Cargo.toml", "jute/Cargo.toml"] {
        let text = std::fs::read_to_string(root().join(manifest)).expect("manifest");
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.ends_with("dependencies]") && !line.contains("dev-");
            } else if let (true, Some((name, _))) = (inside, line.split_once(['=', '.'])) {
                names.push(name.trim().replace('-', "_"));
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

#[test]
fn pure_rooms_touch_nothing_outside() {
    let crates = dependencies();
    assert!(crates.iter().any(|name| name == "tokio_util"), "reads names from Cargo.toml");
    none(check(&project_files(), &crates));
}

#[test]
fn uses_of_the_outside_in_pure_rooms_are_found() {
    let crates = ["tokio_util".to_owned(), "rustix".to_owned(), "bytes".to_owned()];
    let zab = |text: &str| check(&[File::new("src/zab/leader.rs", text)], &crates);
    for (what, _) in BANNED {
        let text = match *what {
            "async" => "async fn f() {}".to_owned(),
            other => format!("fn f() {{ let _ = x{}; }}", format!(" {other} ").replace(" .", ".")),
        };
        one(zab(&text), &format!("`{what}`"));
    }
    one(zab("use std::{fmt, fs::File};"), "`std::fs`");
    one(zab("use std::collections::{BTreeMap, HashMap};"), "`std::collections::HashMap`");
    one(zab("use rustix::fs;"), "`rustix`");
    one(zab("fn f() { tokio_util::sync::x() }"), "`tokio_util`");
    none(zab(
        "use bytes::Bytes; use core::net::IpAddr; use std::fmt; // tokio\nfn asynchronous() {}",
    ));
    none(zab("#[cfg(test)]\nmod tests { use std::fs; fn f() { println!(\"x\") } }"));
    none(check(&[File::new("src/server/mod.rs", "use std::fs; async fn f() {}")], &crates));
}
