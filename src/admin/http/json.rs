//! JSON as Jackson indents it.

use super::super::numbers::java_double;
use std::fmt::Write;

/// A value of a command's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Sizes and counts; Java's are longs.
    pub fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub fn map<const N: usize>(entries: [(&str, Json); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Appends the value. Only maps are indented: lists stay on one line, but for the maps in them.
    ///
    /// * `depth`: of maps around it.
    ///
    /// Source: Jackson's `DefaultPrettyPrinter`, 2.15.2.
    pub fn put(&self, to: &mut String, depth: usize) {
        // Writing to a string can't fail.
        _ = match self {
            Self::Null => to.write_str("null"),
            Self::Bool(value) => write!(to, "{value}"),
            Self::Integer(value) => write!(to, "{value}"),
            Self::Double(value) if value.is_finite() => to.write_str(&java_double(*value)),
            Self::Double(value) if value.is_nan() => to.write_str("\"NaN\""),
            Self::Double(value) if *value > 0.0 => to.write_str("\"Infinity\""),
            Self::Double(_) => to.write_str("\"-Infinity\""),
            Self::Text(text) => {
                put_text(text, to);
                Ok(())
            }
            Self::List(items) => {
                put_list(items, to, depth);
                Ok(())
            }
            Self::Map(entries) => {
                put_map(entries, to, depth);
                Ok(())
            }
        };
    }
}

fn put_list(items: &[Json], to: &mut String, depth: usize) {
    to.push_str("[ ");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            to.push_str(", ");
        }
        item.put(to, depth);
    }
    to.push_str(if items.is_empty() { "]" } else { " ]" });
}

fn put_map(entries: &[(String, Json)], to: &mut String, depth: usize) {
    to.push_str("{ ");
    if entries.is_empty() {
        to.push('}');
        return;
    }
    to.pop();
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            to.push(',');
        }
        put_key(key, to, depth + 1);
        value.put(to, depth + 1);
    }
    new_line(to, depth);
    to.push('}');
}

/// A new line, the key, and what stands between key and value.
pub(super) fn put_key(key: &str, to: &mut String, depth: usize) {
    new_line(to, depth);
    put_text(key, to);
    to.push_str(" : ");
}

pub(super) fn new_line(to: &mut String, depth: usize) {
    to.push('\n');
    (0..depth).for_each(|_| to.push_str("  "));
}

/// A text in quotes. Jackson escapes no more than JSON asks for.
pub(super) fn put_text(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\u{8}' => to.push_str("\\b"),
            '\t' => to.push_str("\\t"),
            '\n' => to.push_str("\\n"),
            '\u{c}' => to.push_str("\\f"),
            '\r' => to.push_str("\\r"),
            c if c < ' ' => _ = write!(to, "\\u{:04X}", u32::from(c)),
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Json) -> String {
        let mut text = String::new();
        value.put(&mut text, 0);
        text
    }

    // rows: A-02
    #[test]
    fn values_are_printed_as_jackson_prints_them() {
        let inner = Json::map([("zxid", Json::Integer(5)), ("none", Json::Null)]);
        let ids = Json::List(vec![Json::Integer(i64::MIN), Json::Integer(7)]);
        let value = Json::map([
            ("empty", Json::List(vec![])),
            ("map", Json::Map(vec![])),
            ("ids", ids),
            ("digests", Json::List(vec![inner.clone(), inner])),
            ("yes", Json::Bool(true)),
            ("avg", Json::Double(0.0)),
            ("nan", Json::Double(f64::NAN)),
            ("big", Json::Double(f64::INFINITY)),
            ("text", Json::text("a\"b\\\n\u{1}\u{1f}é/")),
        ]);
        let expected = "{\n  \"empty\" : [ ],\n  \"map\" : { },\n  \"ids\" : [ -9223372036854775808, 7 ],\n  \
            \"digests\" : [ {\n    \"zxid\" : 5,\n    \"none\" : null\n  }, {\n    \"zxid\" : 5,\n    \"none\" : null\n  } ],\n  \
            \"yes\" : true,\n  \"avg\" : 0.0,\n  \"nan\" : \"NaN\",\n  \"big\" : \"Infinity\",\n  \
            \"text\" : \"a\\\"b\\\\\\n\\u0001\\u001Fé/\"\n}";
        assert_eq!(shown(&value), expected);
    }
}
