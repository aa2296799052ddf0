//! The commands of docs/operations.md, "Cut or repair a log", on logs with different damage.

use crate::OXKEEPER;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The page's commands that cut a log: those that find the zxid, cut, and show the last zxid of the new file.
fn commands() -> String {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/operations.md")).expect("the page");
    let (_, section) = page.split_once("### Cut or repair a log").expect("the section");
    let commands = section.lines().filter(|line| line.starts_with("    ")).skip(1).take(3);
    let commands: Vec<&str> = commands.map(str::trim).collect();
    assert!(commands.iter().all(|line| line.contains("oxkeeper txn-log ")), "{commands:?}");
    commands.join("\n").replace("oxkeeper ", "\"$OXKEEPER\" ").replace("log.100000001", "log.1")
}

/// Where each record of a log begins, and the length of its data, which is between 12 bytes and the end mark.
fn records(log: &[u8]) -> Vec<(usize, usize)> {
    let mut records = Vec::new();
    let mut at = 16;
    while let Some(len) = log.get(at + 8..at + 12) {
        let len = u32::from_be_bytes(len.try_into().expect("four bytes")) as usize;
        if len == 0 {
            break;
        }
        records.push((at, len));
        at += 13 + len;
    }
    records
}

#[test]
fn log_that_is_cut_as_the_page_says_ends_before_the_damage() {
    let golden = Path::new(ROOT).join("compat-tests/golden/java-data/version-2/log.1");
    let log = fs::read(golden).expect("a log that Java wrote");
    let (at, len) = records(&log)[5]; // The record of zxid 6.
    let mark = at + 12 + len;
    for (damage, from, bytes, asked) in [
        ("data", mark - 2, &[0xff][..], "0x5"),
        ("length", at + 8, &[0x7f, 0xff, 0xff, 0xff], "0x5"),
        ("zeros", at, &[0; 512], "0x5"),
        // The tool prints this record as a whole one.
        ("mark", mark, &[0], "0x6"),
    ] {
        let mut damaged = log.clone();
        assert_ne!(damaged[from..from + bytes.len()], *bytes, "{damage}");
        damaged[from..from + bytes.len()].copy_from_slice(bytes);
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("log.1"), damaged).expect("a damaged log");
        let mut shell = Command::new("sh");
        shell.args(["-c", &commands()]).env("OXKEEPER", OXKEEPER).current_dir(dir.path());
        let output = shell.output().expect("a shell");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(printed.lines().next(), Some(asked), "{damage}: {printed}");
        assert_eq!(printed.lines().last(), Some("\"zxid\":\"0x5\""), "{damage}: {printed}");
        let name = format!("log.1.chopped{}", &asked[2..]);
        let cut = fs::read(dir.path().join(name)).expect("the new file");
        assert!(cut == log[..at], "{damage}: not just the records before the damage");
    }
}
