//! Captures and the texts beside them.

use std::path::PathBuf;

/// Bytes that one end sent together.
pub struct Piece {
    pub is_dialer: bool,
    pub bytes: Vec<u8>,
}

/// The path of a file, found at run time: worktrees that share a target folder may share the built test too.
fn path(folder: &str, name: &str, ending: &str) -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join("compat-tests/golden").join(folder).join(format!("{name}.{ending}"))
}

#[track_caller]
pub fn read(folder: &str, name: &str) -> Vec<Piece> {
    let path = path(folder, name, "hex");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut pieces: Vec<Piece> = Vec::new();
    for line in text.lines() {
        let (speaker, digits) = line.split_at(1);
        if speaker != " " {
            pieces.push(Piece { is_dialer: speaker == ">", bytes: Vec::new() });
        }
        pieces.last_mut().expect("a line that begins a piece").bytes.extend(unhex(digits));
    }
    pieces
}

pub fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Compares the text of a capture with the file beside it.
#[track_caller]
pub fn expect(folder: &str, name: &str, text: &str) {
    let path = path(folder, name, "txt");
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == text {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return std::fs::write(&path, text).expect("write the text");
    }
    let differs = found.lines().zip(text.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or(found.lines().count().min(text.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("the end").to_owned();
    panic!(
        "{path:?} line {}: {:?}, read as {:?}; UPDATE_EXPECT=1 rewrites it",
        line + 1,
        at(&found),
        at(text)
    );
}
