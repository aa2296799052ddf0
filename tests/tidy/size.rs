//! Limits on the length of files and functions.

use super::source::{File, body_or_end, close_of, line_at, project_files, shipped_rust, words};
use crate::{Complaints, none, one};

/// Above this a file must say why, in a line that starts with `// long because: `.
const FILE_ASKS: usize = 600;
/// Above this a file is split, whatever it says.
const FILE_MAX: usize = 800;
const FUNCTION_MAX: usize = 70;

/// Files that perform the actions of a member, or move the bytes of its connections, decide nothing, so they stay short: these
/// files and the room `net`.
const PERFORMER_MAX: usize = 399;
const PERFORMERS: &[&str] = &[
    "compat-tests/election/ours.rs",
    "src/server/boot.rs",
    "src/server/driver.rs",
    "src/server/inbox.rs",
    "src/server/member.rs",
    "src/server/oracle.rs",
    "src/server/peers.rs",
    "src/server/pipeline.rs",
    "src/server/load_tree.rs",
    "src/server/shared_driver.rs",
    "src/server/snapshots.rs",
    "src/server/stop.rs",
    "src/sim/boot.rs",
    "src/sim/client_connections.rs",
    "src/sim/disk.rs",
    "src/sim/driver.rs",
    "src/sim/election_connections.rs",
    "src/sim/learner_connections.rs",
    "src/sim/learner_dials.rs",
    "src/sim/oracle.rs",
    "tests/members/ensemble.rs",
    "tests/server_crash/whole.rs",
    "tests/support/elector.rs",
    "tests/support/ensemble.rs",
    "tests/support/ensemble_member.rs",
    "tests/support/ensemble_turns.rs",
    "tests/support/learner_streams.rs",
    "tests/support/member.rs",
    "tests/support/peer.rs",
    "tests/support/replica.rs",
    "tests/support/server.rs",
    "tests/support/virtual_election_net.rs",
    "tests/zab/election_network.rs",
];

/// Functions that were longer than the limit when the rule came, or that gain nothing from a cut.
///
/// A ratchet: file, function, lines. A listed function may shrink but not grow, and leaves the list when it fits.
// One literal of a struct with 48 fields.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[("src/config/property_settings.rs", "take", 85)];

/// Complaints about files. Lines of `#[cfg(test)]` code do not count.
fn check_files(files: &[File]) -> Complaints {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        // Blanked test lines are empty, while an empty line of the file itself still counts.
        let tests = file.code().lines().zip(file.shipped().lines()).filter(|(a, b)| a != b).count();
        let lines = file.text.lines().count() - tests;
        let reason = file.text.lines().any(|line| line.starts_with("// long because: "));
        if lines > FILE_MAX {
            complaints.push(format!("{}: {lines} lines, at most {FILE_MAX}: split it", file.path));
        } else if lines > FILE_ASKS && !reason {
            let path = &file.path;
            complaints.push(format!("{path}: {lines} lines need a `// long because: ` line"));
        }
    }
    complaints
}

/// Complaints about performers that are missing, too long, or look into packets. Performers of the simulator and of tests may
/// look into packets: for the checks, and to send what members that run Java send.
fn check_performers(files: &[File]) -> Complaints {
    let is_there = |path: &&&str| files.iter().any(|file| file.path == ***path);
    let gone = PERFORMERS.iter().filter(|path| !is_there(path));
    let mut complaints: Complaints = gone
        .map(|path| format!("{path} is gone: say in PERFORMERS what performs instead"))
        .collect();
    let is_one = |path: &str| path.starts_with("src/net/") || PERFORMERS.contains(&path);
    for file in files.iter().filter(|file| is_one(&file.path)) {
        let (path, lines) = (&file.path, file.text.lines().count());
        if lines > PERFORMER_MAX {
            complaints.push(format!(
                "{path}: {lines} lines, at most {PERFORMER_MAX}: deciding is for `member`"
            ));
        }
    }
    let moves = |path: &str| path.starts_with("src/net/") || path.starts_with("src/server/");
    let is_test = |path: &str| path.ends_with("_tests.rs");
    let looks = |file: &&File| {
        moves(&file.path) && !is_test(&file.path) && file.shipped().contains("Packet::")
    };
    let of = |file: &File| format!("{}: what a packet means is for `zab`", file.path);
    complaints.extend(files.iter().filter(looks).map(of));
    complaints
}

fn check_functions(files: &[File], allowed: &[(&str, &str, usize)]) -> Complaints {
    let mut complaints = Vec::new();
    let mut met = Vec::new();
    for file in shipped_rust(files) {
        for (name, line, lines) in functions(&file.shipped()) {
            if lines <= FUNCTION_MAX {
                continue;
            }
            let listed = allowed.iter().find(|(path, f, _)| *path == file.path && *f == name);
            met.extend(listed);
            if listed.is_none_or(|(_, _, most)| lines > *most) {
                let most = listed.map_or(FUNCTION_MAX, |(_, _, most)| *most);
                let path = &file.path;
                complaints
                    .push(format!("{path}:{line}: `{name}` has {lines} lines, at most {most}"));
            }
        }
    }
    for gone in allowed.iter().filter(|entry| !met.contains(*entry)) {
        complaints.push(format!("{} `{}` fits now: take it off the list", gone.0, gone.1));
    }
    complaints
}

/// Name, first line and length of each function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let name: String = code[at + 2..]
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let stop = body_or_end(code, at);
        if name.is_empty() || code.as_bytes().get(stop) != Some(&b'{') {
            continue; // A function type, or a declaration in a trait.
        }
        let end = close_of(code, stop, b'{', b'}');
        let first = line_at(code, at);
        found.push((name, first, line_at(code, end) - first + 1));
    }
    found
}

#[test]
fn files_stay_readable() {
    none(check_files(&project_files()));
}

#[test]
fn performers_stay_short() {
    none(check_performers(&project_files()));
}

#[test]
fn long_performers_are_found() {
    let of_text = |last: &str, text: &str| {
        let (_, others) = PERFORMERS.split_last().unwrap();
        let files = others.iter().copied().chain([last]).map(|path| File::new(path, text));
        check_performers(&files.collect::<Vec<_>>())
    };
    let of = |last: &str, lines: usize| of_text(last, &"x();\n".repeat(lines));
    let last = PERFORMERS[PERFORMERS.len() - 1];
    none(of(last, 399));
    assert_eq!(of(last, 400).len(), PERFORMERS.len());
    one(of("src/sim/elsewhere.rs", 1), "is gone");
    let with_net = |text: &str| check_performers(&[File::new("src/net/client.rs", text)]).len();
    assert_eq!(with_net("") + 1, with_net("match packet { Packet::Ack { .. } => {} }"));
    assert_eq!(with_net("") + 1, with_net(&"x();\n".repeat(400)));
}

#[test]
fn functions_stay_readable() {
    none(check_functions(&project_files(), LONG_FUNCTIONS));
}

#[test]
fn long_files_are_found() {
    let of = |lines: usize, head: &str| {
        check_files(&[File::new("src/tree/a.rs", &format!("{head}{}", "x();\n".repeat(lines)))])
    };
    none(of(600, ""));
    one(of(601, ""), "need a");
    none(of(700, "// long because: one table.\n"));
    one(of(800, "// long because: one table.\n"), "split it");
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "x();\n".repeat(900));
    none(of(600, &tests));
}

#[test]
fn long_functions_are_found() {
    let of = |lines: usize, allowed: &[(&str, &str, usize)]| {
        let text = format!("fn long(a: [u8; 4]) {{\n{}}}\nfn short();", "x();\n".repeat(lines - 2));
        check_functions(&[File::new("src/tree/a.rs", &text)], allowed)
    };
    none(of(70, &[]));
    one(of(71, &[]), "`long` has 71 lines");
    let listed = [("src/tree/a.rs", "long", 75)];
    none(of(75, &listed));
    one(of(76, &listed), "at most 75");
    one(of(70, &listed), "take it off");
}
