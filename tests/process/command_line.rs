//! What stands on the command line besides a configuration: commands, options of the log, and words that are neither.

use crate::{Bad, OXKEEPER, refused};
use std::fs;
use std::process::Command;

#[test]
fn version_is_printed_by_command_and_option() {
    for arguments in [&["--version"][..], &["version"], &["--log-level=warn", "version"]] {
        let version = Command::new(OXKEEPER).args(arguments).output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        assert!(
            version.starts_with("oxkeeper ") && version.contains("as ZooKeeper 3.9.5"),
            "{version}"
        );
    }
}

#[test]
fn options_of_the_log_may_stand_before_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zoo.cfg");
    fs::write(&file, "dataDir=/nowhere\nclientPort=2181\n").unwrap();
    let mut command = Command::new(OXKEEPER);
    command.args(["--log-level", "info", "--log-format=json", "config", "check"]).arg(&file);
    let checked = command.output().unwrap();
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && text.contains("dataDir"), "{text}");
    let mut command = Command::new(OXKEEPER);
    command.args(["-Djute.maxbuffer=4096", "--log-level=info", "config", "check"]).arg(&file);
    let checked = command.output().unwrap();
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && text.contains("-Djute.maxbuffer"), "{text}");
    // A flag is no command, and the option that follows is not taken for the name of a file.
    let bad = Bad::new();
    let arguments = ["-Dx=y", "--log-level=info", "start-foreground", "."];
    refused(&bad.start(&arguments, &[]), 2, &["ERROR .: can't read file"]);
}

#[test]
fn words_that_are_no_commands_and_unknown_options_are_refused() {
    let bad = Bad::new();
    refused(&bad.start(&["conf", "check"], &[]), 2, &["command line: conf is not a command"]);
    refused(&bad.start(&["doctor"], &[]), 2, &["command line: doctor is not a command", "--help"]);
    refused(&bad.start(&["--port"], &[]), 2, &["command line: --port: unknown option"]);
    refused(&bad.start(&["config", "check"], &[]), 2, &["config check needs a file"]);
}

#[test]
fn levels_that_are_none_are_refused_unless_they_are_for_other_programs_too() {
    let bad = Bad::new();
    let text = "is not a level; use error, warn, info, debug or trace";
    for arguments in [&["--log-level", "foo", "."][..], &["-Doxkeeper.log.level=foo", "."]] {
        refused(&bad.start(arguments, &[]), 2, &["ERROR log level foo: foo", text]);
    }
    let flags = [("SERVER_JVMFLAGS", "-Doxkeeper.log.level=inf")];
    refused(&bad.start(&["."], &flags), 2, &["ERROR log level inf: inf", text]);
    // These are levels, or RUST_LOG's: the server goes on to its next problem.
    let next = "ERROR .: can't read file";
    refused(&bad.start(&["--log-level", "warning", "."], &[]), 2, &[next]);
    refused(&bad.start(&["."], &[("RUST_LOG", "foo")]), 2, &["so info is used", next]);
    refused(&bad.start(&["--log-level=info", "."], &[("RUST_LOG", "foo")]), 2, &[next]);
}

#[test]
fn each_command_prints_its_usage_on_help() {
    let printed = |arguments: &[&str]| {
        let output = Command::new(OXKEEPER).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (command, argument) in [
        ("4lw", "HOST PORT WORD"),
        ("log-chopper", "[--json] ZXID FROM TO"),
        ("snapshot-format", "FILE"),
        ("snapshot-compare", "--left FILE"),
        ("snapshot-summary", "FILE ZNODE DEPTH"),
        ("purge", "DATALOGDIR [SNAPDIR] -n COUNT"),
    ] {
        for asked in [&[command, "--help"][..], &[command, "-x", "-h"], &["help", command]] {
            let shown = printed(asked);
            let usage = format!("Usage: oxkeeper {command}");
            assert!(shown.contains(&usage) && shown.contains(argument), "{asked:?}: {shown}");
        }
    }
    assert!(printed(&["help", "txn-log"]).contains("--recover"));
    assert!(printed(&["txn-log", "--help"]).contains("--json"));
    assert!(printed(&["txn-log", "-h"]).contains("usage: TxnLogToolkit"), "the help that Java has");
    assert!(printed(&["help", "--help"]).contains("snapshot-compare"));
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().display().to_string();
    for arguments in [["purge", "-n", "3", &folder], ["purge", &folder, "-n", "3"]] {
        let output = Command::new(OXKEEPER).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        let errors = String::from_utf8(output.stderr).expect("UTF-8");
        let expected = format!("nothing to remove: no snapshots in {folder}/version-2");
        assert!(errors.starts_with(&expected), "{errors}");
        assert!(!dir.path().join("version-2").exists(), "it makes no folder");
    }
    std::fs::create_dir(dir.path().join("version-2")).expect("a folder");
    std::fs::write(dir.path().join("version-2/snapshot.0"), "x").expect("a file");
    let output = Command::new(OXKEEPER).args(["purge", &folder, "-n", "3"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(errors, format!("nothing to remove: {folder}/version-2 has 1 of 3 snapshots\n"));
}

#[test]
fn reason_of_a_refused_start_is_printed_although_levels_hide_errors() {
    let bad = Bad::new();
    for levels in ["off", "somebody=debug"] {
        refused(&bad.start(&["."], &[("RUST_LOG", levels)]), 2, &["ERROR .: can't read file"]);
    }
}
