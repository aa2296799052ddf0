//! The tools of ZooKeeper's `bin` folder for transaction logs and snapshots, with their arguments, texts and exit codes.
//!
//! Each tool is a function of its arguments and three streams, and returns the exit code. With `--json` among the arguments
//! a tool prints one JSON object a line instead. They read through `store` and `tree`; a server need not run.

mod chop;
mod commons_cli;
mod dates;
mod outline;
mod purge_txn_log;
mod snapshot_comparer;
mod snapshot_file;
mod snapshot_formatter;
mod snapshot_summary;
mod trace;
mod txn_log;
mod txn_text;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

pub use chop::run as log_chopper;
pub use purge_txn_log::run as purge;
pub use snapshot_comparer::run as snapshot_compare;
pub use snapshot_formatter::run as snapshot_format;
pub use snapshot_summary::run as snapshot_summary;
pub use trace::run as trace;
pub use txn_log::run as txn_log;

/// Where a tool reads answers and writes text.
pub struct Streams<'a> {
    pub input: &'a mut dyn BufRead,
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
}

/// The exit code, or why the tool gave up; Java's tools end with an exception then, and exit code 1.
pub type Outcome = Result<u8, Failed>;

/// A tool: its arguments without its name.
pub type Tool = fn(&[String], &mut Streams<'_>) -> Outcome;

/// Java's exit code for arguments that make no sense.
const INVALID_INVOCATION: u8 = 2;
/// Java's exit code for everything else that goes wrong.
const UNEXPECTED_ERROR: u8 = 1;

/// Why a tool gave up.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("write output: {0}")]
    Output(#[from] io::Error),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error("{0}")]
    Argument(String),
    #[error("standard input ended before an answer")]
    NoAnswer,
}

/// Takes `--json` out of the arguments.
fn take_json(arguments: &[String]) -> (bool, Vec<String>) {
    let rest: Vec<String> = arguments.iter().filter(|arg| *arg != "--json").cloned().collect();
    (rest.len() < arguments.len(), rest)
}

/// Reads one line without its end.
fn line(input: &mut dyn BufRead) -> Result<String, Failed> {
    let mut bytes = Vec::new();
    if input.read_until(b'\n', &mut bytes)? == 0 {
        return Err(Failed::NoAnswer);
    }
    let text = jute::read_utf8(&bytes);
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// A path as Java's `getAbsolutePath` gives it.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

/// The number that Java's `Long.decode` reads: decimal, `0x` or `#` for hexadecimal, a leading 0 for octal.
fn decode_long(text: &str) -> Option<i64> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let hexadecimal = ["0x", "0X", "#"].iter().find_map(|prefix| rest.strip_prefix(prefix));
    let (digits, radix) = match (hexadecimal, rest.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (rest, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::decode_long;

    #[test]
    fn long_numbers_are_decoded_as_java_does() {
        let cases = [("0x1F", Some(31)), ("#a", Some(10)), ("010", Some(8)), ("0", Some(0))];
        for (text, number) in cases {
            assert_eq!(decode_long(text), number, "{text}");
        }
        assert_eq!(decode_long("-0x8000000000000000"), Some(i64::MIN));
        for text in ["", "x", "0x", "-", "0x-1", "9223372036854775808", "08"] {
            assert_eq!(decode_long(text), None, "{text}");
        }
    }
}
