//! Escapes text of peers and clients for a line of a log.

use std::fmt::{self, Write};

/// Appends text so that it can't end its line: control characters, and the line separators of Unicode, become `\u000a` and so on.
///
/// * `kept`: control characters that stay as they are.
///
/// # Errors
/// Those of `to`.
pub fn put_in_one_line(to: &mut impl Write, text: &str, kept: &[char]) -> fmt::Result {
    let is_escaped =
        |c: char| (c.is_control() && !kept.contains(&c)) || matches!(c, '\u{2028}' | '\u{2029}');
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_escaped(*c)) {
        to.write_str(&rest[..at])?;
        write!(to, "\\u{:04x}", u32::from(c))?;
        rest = &rest[at + c.len_utf8()..];
    }
    to.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_its_line() {
        for (text, kept, line) in [
            ("", &[][..], ""),
            ("a\u{e9}\\u000a", &[], "a\u{e9}\\u000a"),
            ("\na\r\n\tb\0", &[], "\\u000aa\\u000d\\u000a\\u0009b\\u0000"),
            ("a\tb\n", &['\t'], "a\tb\\u000a"),
            ("\u{85}\u{2028}\u{2029}\u{7f}", &['\t'], "\\u0085\\u2028\\u2029\\u007f"),
        ] {
            let mut to = String::new();
            put_in_one_line(&mut to, text, kept).unwrap();
            assert_eq!(to, line);
        }
    }
}
