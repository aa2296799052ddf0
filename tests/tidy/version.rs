//! The program shows the version of the newest section of CHANGELOG.md, which may not be released yet, and the pages name it.

use super::source::{File, project_files};
use crate::{Complaints, none, one};

fn check_version(files: &[File]) -> Complaints {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let line = |path: &str, start: &str| {
        text(path)?.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned)
    };
    let newest = line("CHANGELOG.md", "## ").unwrap_or_default();
    let newest = newest.split(' ').next().unwrap_or_default();
    let built = line("Cargo.toml", "version = \"").unwrap_or_default();
    let mut complaints = Vec::new();
    if built.trim_end_matches('"') != newest {
        complaints.push(format!("Cargo.toml has {built}, CHANGELOG.md begins with {newest:?}"));
    }
    for page in
        files.iter().filter(|file| file.path.starts_with("docs/") && file.path.ends_with(".md"))
    {
        for (at, _) in page.text.match_indices("oxkeeper") {
            if page.text[..at].ends_with('-') {
                continue; // Another image, such as Strimzi's with this program in it.
            }
            let Some(named) = page.text[at + 8..].strip_prefix(['-', '_', ':']) else { continue };
            let named: String =
                named.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let is_version = named.starts_with(|c: char| c.is_ascii_digit()) && named.contains('.');
            if is_version && named != newest {
                complaints.push(format!("{}: oxkeeper {named}, and not {newest}", page.path));
            }
        }
    }
    complaints
}

#[test]
fn version_is_that_of_the_newest_changes() {
    none(check_version(&project_files()));
}

#[test]
fn other_versions_are_found() {
    let files = |built: &str, page: &str| {
        [
            File::new("Cargo.toml", &format!("[package]\nversion = \"{built}\"\n")),
            File::new("CHANGELOG.md", "# Changelog\n\n## 0.2.0 (not yet released)\n\n## 0.1.0\n"),
            File::new("docs/x.md", page),
        ]
    };
    none(check_version(&files("0.2.0", "oxkeeper-0.2.0-linux, oxkeeper:2181, oxkeeper_is_leader")));
    one(check_version(&files("0.1.0", "")), "Cargo.toml has 0.1.0");
    one(check_version(&files("0.2.0", "oxkeeper_0.1.0_amd64.deb")), "docs/x.md: oxkeeper 0.1.0");
}
