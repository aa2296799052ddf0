//! Log lines in the form of a pattern of `logback.xml`.

use super::local_time::LocalTime;
use crate::config::{PatternField, PatternPart, Width};
use crate::model::{ServerId, put_in_one_line};
use std::fmt::{self, Write};
use tracing::Level;

/// Where a line comes from.
pub(super) struct LineOrigin<'o> {
    pub thread: &'o str,
    pub module: &'o str,
    pub line: u32,
}

/// What a line says.
pub(super) struct LineValues<'v> {
    pub wall_ms: i64,
    pub time: &'v LocalTime,
    pub server_id: Option<&'v ServerId>,
    pub level: Level,
    pub origin: &'v LineOrigin<'v>,
    pub text: &'v str,
}

pub(super) fn put_parts(
    to: &mut impl Write,
    parts: &[PatternPart],
    values: &LineValues<'_>,
) -> fmt::Result {
    for part in parts {
        match part {
            PatternPart::Text(text) => to.write_str(text)?,
            PatternPart::Field(field, width) => {
                let mut text = String::new();
                put_field(&mut text, field, values)?;
                put_wide(to, &text, *width)?;
            }
            PatternPart::Group(parts, width) => {
                let mut text = String::new();
                put_parts(&mut text, parts, values)?;
                put_wide(to, &text, *width)?;
            }
        }
    }
    Ok(())
}

fn put_field(to: &mut String, field: &PatternField, values: &LineValues<'_>) -> fmt::Result {
    match field {
        PatternField::Date { format, is_utc } => {
            to.push_str(&values.time.in_form(values.wall_ms, format, *is_utc));
        }
        PatternField::Level => to.push_str(values.level.as_str()),
        PatternField::Thread => to.push_str(values.origin.thread),
        PatternField::Class(length) => put_name(to, values.origin.module, *length)?,
        PatternField::Line => write!(to, "{}", values.origin.line)?,
        PatternField::Message => put_in_one_line(to, values.text, &['\t'])?,
        PatternField::MyId => {
            if let Some(id) = values.server_id {
                write!(to, "{id}")?;
            }
        }
    }
    Ok(())
}

/// A module as Java names classes, with its packages.
///
/// * `length`: packages are shortened to their first letters, one after the other, while the name is longer; 0: there are none.
fn put_name(to: &mut String, module: &str, length: Option<usize>) -> fmt::Result {
    let mut class = String::new();
    put_class(&mut class, module)?;
    let packages = module.rsplit_once("::").map_or("", |(packages, _)| packages);
    let mut names: Vec<&str> = packages.split("::").filter(|name| !name.is_empty()).collect();
    let whole =
        |names: &[&str]| names.iter().map(|name| name.len() + 1).sum::<usize>() + class.len();
    if length == Some(0) {
        names.clear();
    }
    for at in 0..names.len() {
        if length.is_some_and(|length| length < whole(&names)) {
            names[at] = names[at].get(..1).unwrap_or(names[at]);
        }
    }
    for name in names {
        to.push_str(name);
        to.push('.');
    }
    to.push_str(&class);
    Ok(())
}

/// The last name of a module as Java names classes: the patterns of log readers expect letters and digits.
pub(super) fn put_class(to: &mut impl Write, module: &str) -> fmt::Result {
    let name = module.rsplit("::").next().unwrap_or(module);
    for word in name.split('_') {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            to.write_char(first.to_ascii_uppercase())?;
        }
        to.write_str(letters.as_str())?;
    }
    Ok(())
}

fn put_wide(to: &mut impl Write, text: &str, width: Width) -> fmt::Result {
    let count = text.chars().count();
    let cut = width.max.map_or(0, |max| count.saturating_sub(max));
    let place = |skip: usize| text.char_indices().nth(skip).map_or(text.len(), |(at, _)| at);
    let kept = match (cut, width.cuts_end) {
        (0, _) => text,
        (_, true) => &text[..place(count - cut)],
        (_, false) => &text[place(cut)..],
    };
    let spaces = width.min.saturating_sub(count - cut);
    if width.is_left {
        write!(to, "{kept}{:spaces$}", "")
    } else {
        write!(to, "{:spaces$}{kept}", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(parts: &[PatternPart]) -> String {
        let origin =
            LineOrigin { thread: "main", module: "oxkeeper::server::client_ports", line: 7 };
        let values = LineValues {
            wall_ms: 1_795_363_200_007,
            time: &LocalTime::default(),
            server_id: Some(&ServerId(3)),
            level: Level::INFO,
            origin: &origin,
            text: "a\nb",
        };
        let mut line = String::new();
        put_parts(&mut line, parts, &values).unwrap();
        line
    }

    // rows: C-269
    #[test]
    fn parts_are_put_at_their_width() {
        let field = |field| PatternPart::Field(field, Width::default());
        let text = |text: &str| PatternPart::Text(text.to_owned());
        let date = PatternField::Date { format: "%H:%M:%S.%3f".to_owned(), is_utc: true };
        let wide = Width { min: 5, is_left: true, ..Width::default() };
        let parts = [
            field(date),
            text(" "),
            PatternPart::Field(PatternField::Level, wide),
            text("|"),
            PatternPart::Group(
                vec![field(PatternField::Thread), text(":"), field(PatternField::Line)],
                Width { min: 8, ..Width::default() },
            ),
            text("|"),
            field(PatternField::MyId),
            text("|"),
            field(PatternField::Message),
            text("\n"),
        ];
        assert_eq!(line(&parts), "16:00:00.007 INFO |  main:7|3|a\\u000ab\n");
        let thread = |width| line(&[PatternPart::Field(PatternField::Thread, width)]);
        assert_eq!(thread(Width { max: Some(2), ..Width::default() }), "in");
        assert_eq!(thread(Width { max: Some(2), cuts_end: true, ..Width::default() }), "ma");
        let class = |length| line(&[field(PatternField::Class(length))]);
        assert_eq!(class(None), "oxkeeper.server.ClientPorts");
        assert_eq!(class(Some(0)), "ClientPorts");
        assert_eq!(class(Some(20)), "o.server.ClientPorts");
        assert_eq!(class(Some(5)), "o.s.ClientPorts");
    }
}
