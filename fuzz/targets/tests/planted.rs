//! The program `mutate` finds the inputs on which planted targets fail, and keeps them.

use fuzz_targets::PLANTED_BYTE;
use std::path::Path;
use std::process::{Command, Output};

fn mutate(target: &str, arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mutate"));
    command.arg(target).args(arguments).output().unwrap()
}

#[test]
fn input_that_ends_the_process_is_kept_and_ends_it_again() {
    for target in ["planted_panic", "planted_memory"] {
        let folder = tempfile::tempdir().unwrap();
        let (seeds, kept) = (folder.path().join("seeds"), folder.path().join("kept"));
        std::fs::create_dir(&seeds).unwrap();
        std::fs::write(seeds.join("a"), b"harmless").unwrap();
        let output = mutate(target, &[&seeds, "--keep".as_ref(), &kept]);
        assert!(!output.status.success(), "{target} does not fail: {output:?}");
        assert!(output.stdout.starts_with(format!("{target}: seeds 1 and ").as_bytes()));
        assert!(std::fs::read(&kept).unwrap().contains(&PLANTED_BYTE), "{target}: another input");
        assert!(!mutate(target, &[&kept]).status.success(), "{target} does not fail again");
    }
}

#[test]
fn no_input_is_kept_when_all_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (seeds, kept) = (folder.path().join("seeds"), folder.path().join("kept"));
    std::fs::create_dir(&seeds).unwrap();
    let runs = ["--runs".as_ref(), "1000".as_ref(), "--keep".as_ref()];
    let output = mutate("detection", &[&[seeds.as_path()], &runs[..], &[&kept]].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(!kept.exists());
}
