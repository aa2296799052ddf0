//! Writes `docs/parity.md`: which features of ZooKeeper work, row by row, with the tests that prove it.
//!
//! `docs/parity-rows.tsv` has one line per feature of ZooKeeper: id, what, and the state it has while no test
//! marks it. A test marks rows with a comment line above it, `// rows: P-40 P-44` (`# rows:` in scripts). A marked
//! row reads `works`; a row without a mark never does, whatever the table says.
//!
//! Marks of a suite that `scripts/test` does not run don't count.
//!
//! `UPDATE_EXPECT=1 cargo test --test parity` rewrites the page. Commit the change with the test that caused it.

mod parity {
    pub mod facts;
    pub mod marks;
    pub mod page;
}

use parity::{facts, marks, page};
use std::path::PathBuf;
use support::written::expect_file;

/// The path is read at run time: worktrees that share a target folder may share the built test as well.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into()).into()
}

#[test]
fn page_is_up_to_date() {
    let rows = std::fs::read_to_string(root().join("docs/parity-rows.tsv")).expect("rows");
    let rows = page::parse_rows(&rows).unwrap_or_else(|wrong| panic!("{wrong}"));
    let marks = marks::in_project(&root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let page = page::write(&rows, &marks).unwrap_or_else(|wrong| panic!("{wrong}"));
    expect_file(&root().join("docs/parity.md"), &page);
}

/// Each row of the parity page is a fact of docs/zookeeper, once, and each id in a source is one of those facts.
#[test]
fn ids_resolve_to_facts_about_zookeeper() {
    let rows = std::fs::read_to_string(root().join("docs/parity-rows.tsv")).expect("rows");
    let rows = page::parse_rows(&rows).unwrap_or_else(|wrong| panic!("{wrong}"));
    let facts = facts::facts(&root());
    let lacking = rows.iter().filter(|row| facts.get(&row.id) != Some(&1)).map(|row| &row.id);
    let lacking: Vec<_> = lacking.collect();
    assert!(lacking.is_empty(), "not once in docs/zookeeper: {lacking:?}");
    let twice: Vec<_> = facts.iter().filter(|(_, count)| 1 < **count).collect();
    assert!(twice.is_empty(), "more than once in docs/zookeeper: {twice:?}");
    let named = facts::named(&root());
    let unknown: Vec<_> = named.iter().filter(|(id, _)| !facts.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "no facts of docs/zookeeper: {unknown:?}");
}
