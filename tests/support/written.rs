//! Pages that a test writes.

#![allow(clippy::disallowed_methods, reason = "the environment says whether a test may write")]

use std::path::Path;

/// Asserts that a file has this text, or writes it where `UPDATE_EXPECT` is set.
///
/// # Panics
/// When the file has another text and may not be written.
#[track_caller]
pub fn expect_file(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_EXPECT").is_some(),
        "{} is out of date; UPDATE_EXPECT=1 rewrites it",
        path.display()
    );
    std::fs::write(path, text).expect("write the page");
}
