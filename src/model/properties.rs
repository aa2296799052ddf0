//! Java's `.properties` text, as `zoo.cfg` and the text of a view have always been read.
//!
//! The rules are those of `java.util.Properties.load(InputStream)`, JDK 17: every byte is one
//! ISO-8859-1 character, a backslash escapes, an odd number of them at a line's end continues it.
//! `compat-tests/golden/properties` holds what Java itself makes of the odd cases.

use std::collections::BTreeMap;
use std::ops::Range;

/// One setting as it stands in the text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entry {
    /// Unescaped, not trimmed (as Java's `Properties` holds it).
    pub value: String,
    /// Line on which it begins, counted from 1.
    pub line: u32,
    /// Lines of earlier entries with the same key, which are ignored.
    pub earlier: Vec<u32>,
}

/// Key to last value, ordered by key. Java's order is by hash, so nothing may depend on it.
pub type Entries = BTreeMap<String, Entry>;

/// Why a text is not a properties file.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum PropertiesError {
    /// `\u` is followed by something other than four hexadecimal digits.
    #[error("malformed \\uxxxx encoding")]
    Unicode { line: u32 },
}

/// Reads a whole properties text; of several entries with one key the last wins.
///
/// A lone UTF-16 surrogate becomes U+FFFD; Java would keep it, but no setting can mean it.
///
/// # Errors
/// [`PropertiesError::Unicode`], the only thing that can be wrong with such a text.
///
/// Source: the class comment of `java.util.Properties`, JDK 17.
pub fn parse(text: &[u8]) -> Result<Entries, PropertiesError> {
    read(text, Letters::Latin1)
}

/// As [`parse`], for a text whose characters are known: Java's `load(Reader)`.
///
/// # Errors
/// As [`parse`].
pub fn parse_text(text: &str) -> Result<Entries, PropertiesError> {
    read(text.as_bytes(), Letters::Utf8)
}

/// The place of each entry in a text: its key, and the bytes from its first line to the end of its last.
///
/// # Errors
/// As [`parse`].
pub fn spans(text: &[u8]) -> Result<Vec<(String, Range<usize>)>, PropertiesError> {
    let mut spans = Vec::new();
    let mut lines = NaturalLines::of(text);
    while let Some((line, logical)) = lines.next_logical() {
        let (key, _) = split(&logical);
        let key = unescape(key, Letters::Latin1).map_err(|()| PropertiesError::Unicode { line })?;
        spans.push((key, text.len() - lines.left_at_first..text.len() - lines.rest.len()));
    }
    Ok(spans)
}

/// What bytes above 0x7f stand for. All characters with a meaning in this syntax are below.
#[derive(Clone, Copy)]
enum Letters {
    Latin1,
    Utf8,
}

fn read(text: &[u8], letters: Letters) -> Result<Entries, PropertiesError> {
    let mut entries = Entries::new();
    let mut lines = NaturalLines::of(text);
    while let Some((line, logical)) = lines.next_logical() {
        let (key, value) = split(&logical);
        let unicode = |()| PropertiesError::Unicode { line };
        let key = unescape(key, letters).map_err(unicode)?;
        let value = unescape(value, letters).map_err(unicode)?;
        let entry = entries.entry(key).or_default();
        if entry.line > 0 {
            entry.earlier.push(entry.line);
        }
        (entry.value, entry.line) = (value, line);
    }
    Ok(entries)
}

/// What Java takes for white space inside a properties text; line ends are not part of it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

struct NaturalLines<'a> {
    rest: &'a [u8],
    /// Number of the line last returned, from 1.
    number: u32,
    /// Bytes that were left at the beginning of the logical line last returned.
    left_at_first: usize,
}

impl<'a> NaturalLines<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self { rest: text, number: 0, left_at_first: text.len() }
    }

    /// The next line without its end, and whether the text stops right there.
    ///
    /// A text that ends in a lone `\r` or `\n` stops there; one that ends in `\r\n` does not, although
    /// nothing follows. Java decides about a dangling backslash by exactly that.
    fn next(&mut self) -> Option<(&'a [u8], bool)> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let Some(end) = self.rest.iter().position(|&b| b == b'\n' || b == b'\r') else {
            return Some((std::mem::take(&mut self.rest), true));
        };
        let (line, tail) = self.rest.split_at(end);
        let stops = tail.len() == 1;
        self.rest = if tail.starts_with(b"\r\n") { &tail[2..] } else { &tail[1..] };
        Some((line, stops))
    }

    /// The next line that holds an entry, with its continuations joined, and where it began.
    fn next_logical(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut logical = Vec::new();
        let mut first = 0;
        loop {
            let left = self.rest.len();
            let Some((line, stops)) = self.next() else { break };
            let blanks = line.iter().take_while(|&&b| is_blank(b)).count();
            let line = &line[blanks..];
            if logical.is_empty() {
                if line.is_empty() || line[0] == b'#' || line[0] == b'!' {
                    continue;
                }
                (first, self.left_at_first) = (self.number, left);
            }
            let backslashes = line.iter().rev().take_while(|&&b| b == b'\\').count();
            if backslashes % 2 == 0 {
                logical.extend_from_slice(line);
                return Some((first, logical));
            }
            logical.extend_from_slice(&line[..line.len() - 1]);
            if stops {
                return Some((first, logical)); // Nothing can follow: even an empty entry counts.
            }
        }
        // The text ended where a continuation was expected.
        if logical.is_empty() { None } else { Some((first, logical)) }
    }
}

/// Splits a logical line at the first unescaped `=`, `:` or blank, and drops blanks around the separator.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let mut key_len = line.len();
    for (at, &byte) in line.iter().enumerate() {
        if !escaped && (byte == b'=' || byte == b':' || is_blank(byte)) {
            key_len = at;
            break;
        }
        escaped = byte == b'\\' && !escaped;
    }
    let (key, tail) = line.split_at(key_len);
    let tail = skip_blanks(tail);
    let value = match tail.first() {
        Some(b'=' | b':') => skip_blanks(&tail[1..]),
        _ => tail,
    };
    (key, value)
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|&&b| is_blank(b)).count()..]
}

/// Resolves escapes; `Err` on a malformed `\u`.
fn unescape(bytes: &[u8], letters: Letters) -> Result<String, ()> {
    // UTF-16 units, because two `\u` escapes may make one character.
    let mut units: Vec<u16> = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            let end = rest.iter().position(|&byte| byte == b'\\').unwrap_or(rest.len());
            let (plain, tail) = rest.split_at(end);
            rest = tail;
            match letters {
                Letters::Latin1 => units.extend(plain.iter().map(|&byte| u16::from(byte))),
                Letters::Utf8 => units.extend(String::from_utf8_lossy(plain).encode_utf16()),
            }
            continue;
        }
        rest = tail;
        // The escape of a character above 0x7f has no effect: the character is read with those that follow it.
        let Some((&escape, tail)) = rest.split_first().filter(|(byte, _)| byte.is_ascii()) else {
            continue;
        };
        rest = tail;
        units.push(match escape {
            b'u' => {
                let (digits, tail) = rest.split_at_checked(4).ok_or(())?;
                rest = tail;
                digits.iter().try_fold(0, |unit, &digit| {
                    let digit = char::from(digit).to_digit(16).ok_or(())?;
                    Ok::<u16, ()>(unit << 4 | digit as u16)
                })?
            }
            b't' => u16::from(b'\t'),
            b'r' => u16::from(b'\r'),
            b'n' => u16::from(b'\n'),
            b'f' => 0x0c,
            other => u16::from(other),
        });
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::golden::bytes_of;
    use std::fmt::Write;

    /// Writes a result the way `Props.java` does.
    fn shown(result: Result<Entries, PropertiesError>) -> String {
        let quote = |text: &str| {
            let mut out = String::new();
            for unit in text.encode_utf16() {
                match u8::try_from(unit) {
                    Ok(b) if b.is_ascii_alphanumeric() || b"._/-".contains(&b) => {
                        out.push(char::from(b));
                    }
                    _ => write!(out, "%u{unit:04x}").unwrap(),
                }
            }
            out
        };
        let Ok(entries) = result else { return "ERROR".to_owned() };
        let mut pairs: Vec<String> =
            entries.iter().map(|(k, e)| format!("{}={}", quote(k), quote(&e.value))).collect();
        pairs.sort();
        pairs.join(" ")
    }

    // rows: C-01
    #[test]
    fn reads_every_case_as_java_does() {
        let cases = include_str!("../../compat-tests/golden/properties/cases.txt");
        let expected = include_str!("../../compat-tests/golden/properties/expected.txt");
        assert_eq!(cases.lines().count(), expected.lines().count());
        for (case, expected) in cases.lines().zip(expected.lines()) {
            assert_eq!(shown(parse(&bytes_of(case))), expected, "case {case}");
        }
    }

    #[test]
    fn utf8_text_keeps_its_characters() {
        let value = |text| parse_text(text).unwrap()["k"].value.clone();
        assert_eq!(value("k=b\u{fc}\\\u{fc}\\u00fc\u{1f600}\\"), "b\u{fc}\u{fc}\u{fc}\u{1f600}");
        let latin = parse("k=b\u{fc}".as_bytes()).unwrap()["k"].value.clone();
        assert_eq!(latin, "b\u{c3}\u{bc}");
    }

    #[test]
    fn entries_know_the_line_on_which_they_begin() {
        let entries = parse(b"# x\r\n\r\na=1\r\nb=\\\r\n  2\r\nc=3").unwrap();
        assert_eq!(entries["a"].line, 3);
        assert_eq!(entries["b"], Entry { value: "2".into(), line: 4, earlier: vec![] });
        assert_eq!(entries["c"].line, 6);
        let twice = parse(b"a=1\na=2\na=3").unwrap();
        assert_eq!(twice["a"], Entry { value: "3".into(), line: 3, earlier: vec![1, 2] });
        assert_eq!(parse(b"a=1\nb=\\u12"), Err(PropertiesError::Unicode { line: 2 }));
    }
}
