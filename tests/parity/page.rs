//! Makes the page from rows and marks.

use std::collections::BTreeMap;

use super::marks::Mark;

/// One fact about ZooKeeper that a server can match or not.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub what: String,
    /// `missing: <what will bring it>`, `partial: <what is there>` or `n/a: <why>`.
    pub state: String,
}

const SECTIONS: &[(&str, &str)] = &[
    ("P", "Client protocol"),
    ("C", "Configuration"),
    ("W", "Four-letter words"),
    ("A", "AdminServer"),
    ("M", "Metrics"),
    ("D", "On disk"),
    ("Q", "Quorum"),
    ("U", "Authentication, ACLs, audit"),
    ("T", "Tools and scripts"),
    ("V", "What changed between versions"),
    ("G", "What is easily got wrong"),
];

const HEAD: &str = "\
# Parity with ZooKeeper 3.9.5

Written by `UPDATE_EXPECT=1 cargo test --test parity` from `parity-rows.tsv` and the tests; not by hand. A row reads **works**
only if a test names it; **partial** says what is there; **missing** says what is not there, or that no test shows it.

";

/// # Errors
/// A line without three fields, an id that is listed twice or has no section, an invalid state, or `works` as a default.
pub fn parse_rows(text: &str) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, what, state] = fields[..] else {
            return Err(format!("{line:?}: expected id, what and state between tabs"));
        };
        if !SECTIONS.iter().any(|(letter, _)| id.starts_with(&format!("{letter}-"))) {
            return Err(format!("{id}: no such section"));
        }
        if rows.iter().any(|row| row.id == id) {
            return Err(format!("{id}: listed twice"));
        }
        let states = ["missing: ", "partial: ", "n/a: "];
        if !states
            .iter()
            .any(|start| state.strip_prefix(start).is_some_and(|why| !why.trim().is_empty()))
        {
            return Err(format!("{id}: {state:?} is none of {states:?} with a reason"));
        }
        if what.is_empty() || what.chars().count() >= 80 {
            return Err(format!("{id}: what it is, in fewer than 80 characters"));
        }
        rows.push(Row { id: id.into(), what: what.into(), state: state.into() });
    }
    Ok(rows)
}

/// # Errors
/// A mark for an unknown row, or for one that the table calls `n/a`.
pub fn write(rows: &[Row], marks: &[Mark]) -> Result<String, String> {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for mark in marks {
        let Some(row) = rows.iter().find(|row| row.id == mark.row) else {
            return Err(format!("{} marks {}, which is no row", mark.test, mark.row));
        };
        if row.state.starts_with("n/a") {
            return Err(format!("{} marks {}, which parity-rows.tsv calls n/a", mark.test, row.id));
        }
        tests.entry(&mark.row).or_default().push(&mark.test);
    }
    let (mut counts, mut body) = (Vec::new(), String::new());
    for (letter, title) in SECTIONS {
        let mine = |row: &&Row| row.id.starts_with(&format!("{letter}-"));
        let mut count = [0; 4];
        body += &format!("\n## {title}\n\n| Row | What | State | Tests |\n|---|---|---|---|\n");
        for row in rows.iter().filter(mine) {
            let proofs = tests.get(row.id.as_str());
            let (kind, state) = state(row, proofs.is_some());
            count[kind] += 1;
            let proofs = proofs.map_or(String::new(), |tests| tests.join("<br>"));
            body += &format!("| {} | {} | {state} | {proofs} |\n", row.id, cell(&row.what));
        }
        counts.push((*title, count));
    }
    let mut total = [0; 4];
    let mut summary =
        "| Section | Works | Partial | Missing | N/A | Rows |\n|---|---|---|---|---|---|\n"
            .to_owned();
    let mut line = |title: &str, count: &[u32; 4]| {
        let [works, partial, missing, none] = count;
        let sum: u32 = count.iter().sum();
        summary += &format!("| {title} | {works} | {partial} | {missing} | {none} | {sum} |\n");
    };
    for (title, count) in &counts {
        total.iter_mut().zip(count).for_each(|(sum, one)| *sum += one);
        line(title, count);
    }
    line("All", &total);
    Ok(format!("{HEAD}{summary}{body}"))
}

/// Column of the summary, and the text. Only here a row becomes `works`.
fn state(row: &Row, proved: bool) -> (usize, String) {
    let (kind, why) = row.state.split_once(": ").expect("parsed");
    match (kind, proved) {
        ("n/a", _) => (3, format!("n/a: {}", cell(why))),
        ("partial", _) => (1, format!("partial: {}", cell(why))),
        (_, true) => (0, "**works**".into()),
        (_, false) => (2, format!("missing: {}", cell(why))),
    }
}

/// A pipe would end the table's cell, and `<x>` would vanish as an HTML tag.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn only_a_mark_makes_a_row_work() {
    let rows =
        parse_rows("P-01\tFrame\tmissing: a\nP-02\tWords\tpartial: b\nP-03\tc|d\tn/a: e").unwrap();
    let mark = |row: &str| Mark { row: row.into(), test: "tests/x.rs::y".into() };
    let bare = write(&rows, &[]).unwrap();
    assert!(!bare.contains("**works** |"));
    assert!(bare.contains("| Client protocol | 0 | 1 | 1 | 1 | 3 |"), "{bare}");
    let marked = write(&rows, &[mark("P-01"), mark("P-02")]).unwrap();
    assert!(marked.contains("| P-01 | Frame | **works** | tests/x.rs::y |"), "{marked}");
    assert!(marked.contains("| P-02 | Words | partial: b | tests/x.rs::y |"), "{marked}");
    assert!(marked.contains("| P-03 | c\\|d | n/a: e |  |"), "{marked}");
    assert!(write(&rows, &[mark("P-99")]).unwrap_err().contains("no row"));
    assert!(write(&rows, &[mark("P-03")]).unwrap_err().contains("calls n/a"));
}

#[test]
fn bad_rows_fail() {
    let wrong = |text: &str, about: &str| {
        let error = parse_rows(text).unwrap_err();
        assert!(error.contains(about), "{error}");
    };
    wrong("P-01\tFrame\tworks: yes", "is none of");
    wrong("P-01\tFrame\tmissing: ", "is none of");
    wrong("P-01\tFrame", "between tabs");
    wrong("Z-01\tFrame\tmissing: a", "no such section");
    wrong("P-01\tFrame\tmissing: a\nP-01\tFrame\tmissing: a", "twice");
    wrong(&format!("P-01\t{}\tmissing: a", "x".repeat(80)), "fewer than 80");
}
