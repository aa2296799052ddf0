//! Bugs that can be put back, a file for each, and the text of a source tree with all of them.
//!
//! A file `NAME.bug` says in comments what the bug is, in the first line with one sentence, then `KEY: VALUE` lines, then edits:
//!
//! | Key | Value |
//! |---|---|
//! | `museum` | texts in `docs/museum.md` that are about it, separated by commas, or `none` |
//! | `script` | the script under `tests/zab` whose outcome differs with it |
//! | `worlds` | `yes: N`: the random worlds of `tests/zab` find it, the Nth first; `seldom: N`; `no: BOUND or REASON` |
//! | `whole` | the same for the worlds of `src/sim`; `yes: N, with a script`: and one becomes a script that shows it |
//! | `small` | the same for small ensembles: `yes: STATES: ENSEMBLE` or `no: BOUND or REASON` |
//! | `test` | `TARGET NAME` of a test that fails with it, as in `members a_session_ends`; the target `lib` is for unit tests |
//!
//! Bugs with `yes` in `worlds` or `whole` are looked for each time, first in the world N, which still shows them as long as nothing that
//! it does has changed; bugs with `seldom` are not. `page.rs` writes all of this into `docs/museum.md`.
//!
//! An edit is `@@ FILE`, the lines that it replaces, `=>`, and the lines in their place. The replaced lines occur once in FILE, and no
//! two edits overlap. BUG in the new lines is true while the bug is put back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// One edit of a source file.
pub struct Edit {
    pub file: String,
    old: String,
    new: String,
}

pub struct Bug {
    pub name: &'static str,
    /// One sentence.
    pub what: String,
    pub museum: String,
    pub script: Option<String>,
    /// Whether random worlds of `tests/zab`, worlds of `src/sim` and small ensembles find it, as its file says.
    pub worlds: Option<String>,
    pub whole: Option<String>,
    pub small: Option<String>,
    /// Target and name of a test that fails with it.
    pub test: Option<(String, String)>,
    pub edits: Vec<Edit>,
}

impl Bug {
    /// Whether the random worlds of `tests/zab` have to find it.
    pub fn in_worlds(&self) -> bool {
        self.worlds.as_deref().is_some_and(|found| found.starts_with("yes"))
    }

    /// The first world of `src/sim` that shows it, or that was found to.
    #[allow(dead_code, reason = "what hunts in the copy writes no page")]
    pub fn first_whole(&self) -> Option<u64> {
        first(self.whole.as_deref())
    }

    /// Whether the worlds of `src/sim` have to find it.
    pub fn in_whole(&self) -> bool {
        self.whole.as_deref().is_some_and(|found| found.starts_with("yes"))
    }
}

/// The numbers of the worlds in which a bug is looked for: first the world that the bug's file names, then all worlds from 1 on. With
/// `OXKEEPER_LONG` only the latter, so that the printed number is the first world that finds the bug, and belongs into the file.
#[allow(dead_code, reason = "what makes the copy looks in no world")]
pub fn worlds(found: Option<&str>) -> impl Iterator<Item = u64> {
    let is_long = std::env::var_os("OXKEEPER_LONG").is_some();
    first(found).filter(|_| !is_long).into_iter().chain(1..)
}

/// The world that a bug's file names.
fn first(found: Option<&str>) -> Option<u64> {
    let number = found?.strip_prefix("yes: ")?;
    let digits = number.chars().filter(|c| *c != ',').take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().ok()
}

/// All bugs, in the order of their names.
///
/// # Panics
/// when a file can't be read or understood, with its name.
pub fn read_all(root: &Path) -> Vec<Bug> {
    let folder = root.join("tests/sabotage");
    let listed = std::fs::read_dir(&folder).expect("tests/sabotage is there");
    let mut paths: Vec<_> =
        listed.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "bug"));
    paths.sort();
    let bug = |path: &std::path::PathBuf| {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a text");
        let (head, edits) = text.split_at(text.find("@@ ").unwrap_or(text.len()));
        let keys: BTreeMap<&str, &str> = head
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{name}: {line}?")))
            .collect();
        let known = ["museum", "script", "worlds", "whole", "small", "test"];
        keys.keys().for_each(|key| assert!(known.contains(key), "{name}: unknown key {key}"));
        let text = |key: &str| keys.get(key).map(|value| (*value).to_owned());
        for key in ["worlds", "whole", "small"] {
            let Some(found) = keys.get(key) else { continue };
            let known = ["yes: ", "seldom: ", "no: "].iter().any(|start| found.starts_with(start));
            assert!(known, "{name}: {key} says yes, seldom or no, and how far or why");
        }
        let what = head.lines().next().and_then(|line| line.strip_prefix("# "));
        let test = keys.get("test").map(|value| {
            let (target, test) = value.split_once(' ').expect("test: TARGET NAME");
            (target.to_owned(), test.to_owned())
        });
        let name: &'static str = name.leak();
        Bug {
            what: what.unwrap_or_else(|| panic!("{name}: no sentence")).to_owned(),
            museum: text("museum").unwrap_or_else(|| panic!("{name}: no museum line")),
            script: text("script"),
            worlds: text("worlds"),
            whole: text("whole"),
            small: text("small"),
            test,
            edits: edits_in(name, edits, &format!("crate::sabotage::has(\"{name}\")")),
            name,
        }
    };
    paths.iter().map(bug).collect()
}

/// The bug of this name, or all.
///
/// # Panics
/// when no bug has this name.
pub fn only(mut all: Vec<Bug>, name: Option<&str>) -> Vec<Bug> {
    let Some(name) = name else { return all };
    let known: Vec<&str> = all.iter().map(|bug| bug.name).collect();
    assert!(known.contains(&name), "BUG={name}: no such bug; there are {known:?}");
    all.retain(|bug| bug.name == name);
    all
}

/// The switch of the copy, with the names of all bugs.
pub fn switch(root: &Path, bugs: &[Bug]) -> String {
    let text = std::fs::read_to_string(root.join("tests/sabotage/switch.rs")).expect("a text");
    let names: Vec<&str> = bugs.iter().map(|bug| bug.name).collect();
    let (empty, full) =
        ("const KNOWN: &[&str] = &[];", format!("const KNOWN: &[&str] = &{names:?};"));
    assert!(text.contains(empty), "tests/sabotage/switch.rs has no place for the names");
    text.replace(empty, &full)
}

/// The edits that the copy needs in addition to the bugs.
pub fn harness(root: &Path) -> Vec<Edit> {
    let text = std::fs::read_to_string(root.join("tests/sabotage/harness.edits")).expect("a text");
    let edits = &text[text.find("@@ ").expect("the file has edits")..];
    edits_in("harness", edits, "crate::sabotage::is_on()")
}

fn edits_in(name: &str, text: &str, condition: &str) -> Vec<Edit> {
    let blocks = text.split("@@ ").skip(1);
    let edit = |block: &str| {
        let (file, rest) = block.split_once('\n').unwrap_or_else(|| panic!("{name}: {block}?"));
        let parts = rest.trim_end().split_once("\n=>\n");
        let (old, new) = parts.unwrap_or_else(|| panic!("{name}: no => for {file}"));
        let new = new.replace("BUG", condition);
        Edit { file: file.to_owned(), old: old.to_owned(), new }
    };
    blocks.map(edit).collect()
}

/// A range of bytes of a file, the bug that replaces them, and its edit.
type ChangedBytes<'a> = (Range<usize>, &'a str, &'a Edit);

/// The texts of the files that the bugs and the harness change, with all edits made.
///
/// # Errors
/// A line for each edit whose text is not in its file, is there several times, or overlaps another edit's.
pub fn spoilt(root: &Path, bugs: &[Bug]) -> Result<BTreeMap<String, String>, String> {
    let harness = harness(root);
    let all = bugs.iter().flat_map(|bug| bug.edits.iter().map(|edit| (bug.name, edit)));
    let all = all.chain(harness.iter().map(|edit| ("harness", edit)));
    let mut places: BTreeMap<&str, Vec<ChangedBytes<'_>>> = BTreeMap::new();
    let (mut texts, mut complaints) = (BTreeMap::new(), Vec::new());
    for (name, edit) in all {
        let text = texts
            .entry(edit.file.clone())
            .or_insert_with(|| std::fs::read_to_string(root.join(&edit.file)).unwrap_or_default());
        let mut found = text.match_indices(&edit.old).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => {
                let place = (at..at + edit.old.len(), name, edit);
                places.entry(edit.file.as_str()).or_default().push(place);
            }
            (None, _) => complaints
                .push(format!("{name}: its text is no longer in {}:\n{}", edit.file, edit.old)),
            (Some(_), Some(_)) => complaints
                .push(format!("{name}: its text is there twice in {}:\n{}", edit.file, edit.old)),
        }
    }
    for (file, mut places) in places {
        places.sort_by_key(|(place, ..)| place.start);
        for pair in places.windows(2) {
            if pair[1].0.start < pair[0].0.end {
                complaints.push(format!("{} and {}: one text of {file}", pair[0].1, pair[1].1));
            }
        }
        let text = texts.get_mut(file).expect("the file was read");
        for (place, _, edit) in places.into_iter().rev() {
            if text.is_char_boundary(place.start) && place.end <= text.len() {
                text.replace_range(place, &edit.new);
            }
        }
    }
    if complaints.is_empty() { Ok(texts) } else { Err(complaints.join("\n")) }
}
