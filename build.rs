//! Passes build date and commit to the program: `srvr`, `stat` and `envi` show the date, and clients' parsers expect one there;
//! `oxkeeper version` shows both.
//!
//! Builds are reproducible: the date is that of the commit, or the value of `OXKEEPER_BUILT_ON`. Only release builds ask
//! git; other builds would have to be built again after each commit.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through the environment"
)]

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=OXKEEPER_BUILT_ON");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("OXKEEPER_BUILT_ON").is_some()
        || std::env::var("PROFILE").is_ok_and(|profile| profile != "release")
    {
        return; // The compiler sees the variable itself.
    }
    // A source archive is in no git repository, or in another project's: then there is no commit date.
    let is_ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let date = git(&["log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d %H:%M UTC"]);
    if let (true, Some(date)) = (is_ours, date) {
        println!("cargo:rustc-env=OXKEEPER_BUILT_ON={date}");
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo:rustc-env=OXKEEPER_COMMIT={commit}");
        }
        for file in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--git-path", file]) {
                println!("cargo:rerun-if-changed={path}");
            }
        }
    }
}

/// The first line of git's output; `None` without git or a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).env("TZ", "UTC").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
