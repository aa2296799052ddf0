//! Writes `docs/parity.md`: what works, row by row, with the tests that prove it.
//!
//! `docs/parity-rows.tsv` holds one line per fact about ZooKeeper: id, what, and the state it has while no test
//! marks it. A test marks rows with a comment line above it, `// rows: P-40 P-44` (`# rows:` in scripts). A marked
//! row reads `works`; a row without a mark never does, whatever the table says.
//!
//! Marks of a suite that `scripts/test` does not run yet do not count.
//!
//! `UPDATE_EXPECT=1 cargo test --test parity` rewrites the page. Commit the change with the test that caused it.

mod parity {
    pub mod marks;
    pub mod page;
}

use parity::{marks, page};
use std::path::PathBuf;
use support::written::expect_file;

/// The project's root, read at run time: worktrees that share a target folder may share the built test too.
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
