//! Links of pages: each leads to a file of the project, and to a heading that is in it.

use super::source::{File, project_files};
use super::wording::unquoted;
use crate::{Complaints, none, one};
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a page outside of its blocks of code.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    })
}

/// The anchor that a heading gets: letters, digits, `-` and `_`, in lower case, with `-` for a space.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

fn anchors(page: &File) -> BTreeSet<String> {
    let headings = prose(&page.text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#'))).collect()
}

/// The path of `link`, as it stands in `page`, from the project's folder.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn check(files: &[File]) -> Complaints {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.clone().map(|page| (page.path.as_str(), anchors(page))).collect();
    let mut complaints = Vec::new();
    for page in pages {
        for (at, line) in prose(&page.text) {
            for link in unquoted(line).split("](").skip(1).filter_map(|rest| rest.split(')').next())
            {
                let (to, heading) = link.split_once('#').unwrap_or((link, ""));
                if to.contains("://") {
                    continue;
                }
                let to = if to.is_empty() { page.path.clone() } else { resolved(&page.path, to) };
                let is_folder = || paths.iter().any(|path| path.starts_with(&format!("{to}/")));
                if !paths.contains(to.as_str()) && !is_folder() {
                    complaints.push(format!("{}:{}: no file {to}", page.path, at + 1));
                } else if !heading.is_empty()
                    && headings.get(to.as_str()).is_some_and(|known| !known.contains(heading))
                {
                    complaints.push(format!(
                        "{}:{}: {to} has no heading #{heading}",
                        page.path,
                        at + 1
                    ));
                }
            }
        }
    }
    complaints
}

#[test]
fn links_lead_to_files_and_headings() {
    none(check(&project_files()));
}

#[test]
fn dead_links_are_found() {
    let of = |text: &str| {
        check(&[File::new("docs/a.md", text), File::new("docs/b.md", "# What is `here`?\n")])
    };
    none(of("[b](b.md#what-is-here) [a](#x) [up](../docs/b.md)\n```\n[c](c.md)\n```\n## X"));
    none(of("[out](https://example.org/c.md#d)"));
    none(of("`[hex](queued=)`"));
    one(of("see [c](c.md)"), "docs/a.md:1: no file docs/c.md");
    one(of("see [b](b.md#there)"), "docs/b.md has no heading #there");
}
