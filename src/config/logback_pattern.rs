//! Patterns of log lines, as logback's `PatternLayout` has them.

/// What a line consists of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatternPart {
    Text(String),
    Field(PatternField, Width),
    /// Parts that are padded or cut together.
    Group(Vec<PatternPart>, Width),
}

/// What is put in a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatternField {
    /// * `format`: for `strftime`. `is_utc`: not in the machine's time zone.
    Date {
        format: String,
        is_utc: bool,
    },
    Level,
    Thread,
    /// The class, with its packages shortened until it has this length; 0: without them.
    Class(Option<usize>),
    Line,
    Message,
    MyId,
}

/// How wide a part is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Width {
    pub min: usize,
    /// Spaces come after a part that is too short.
    pub is_left: bool,
    pub max: Option<usize>,
    /// The end of a part that is too long is cut off; else its begin.
    pub cuts_end: bool,
}

/// Groups within each other that a pattern may have.
const DEPTH_MAX: usize = 8;
/// The widest part.
const WIDTH_MAX: usize = 1000;
const ISO: &str = "%Y-%m-%d %H:%M:%S,%3f";

/// Reads a pattern, whose variables have been replaced. `None`: it has a part that is not known here, or makes no line that ends with its
/// only line end.
///
/// Source: `PatternLayout` and `FormatInfo`, logback 1.3.15.
pub(super) fn parse(pattern: &str) -> Option<Vec<PatternPart>> {
    let mut rest = pattern;
    let parts = parts(&mut rest, 0)?;
    let (last, before) = parts.split_last()?;
    let ends = matches!(last, PatternPart::Text(text) if text.ends_with('\n') && text.matches('\n').count() == 1);
    (rest.is_empty() && ends && !before.iter().any(has_line_end) && has_message(before))
        .then_some(parts)
}

fn has_line_end(part: &PatternPart) -> bool {
    match part {
        PatternPart::Text(text) => text.contains('\n'),
        PatternPart::Field(..) => false,
        PatternPart::Group(parts, _) => parts.iter().any(has_line_end),
    }
}

fn has_message(parts: &[PatternPart]) -> bool {
    parts.iter().any(|part| match part {
        PatternPart::Text(_) => false,
        PatternPart::Field(field, _) => *field == PatternField::Message,
        PatternPart::Group(parts, _) => has_message(parts),
    })
}

/// Reads up to the end, or up to the bracket that ends a group.
fn parts(rest: &mut &str, depth: usize) -> Option<Vec<PatternPart>> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            ')' if depth > 0 => break,
            '\\' => {
                let escaped = after.chars().next()?;
                text.push(match escaped {
                    't' => '\t',
                    'n' => '\n',
                    'r' => return None,
                    other => other,
                });
                *rest = &after[escaped.len_utf8()..];
            }
            '%' => {
                *rest = after;
                let width = width(rest)?;
                if rest.starts_with('n')
                    && !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic())
                {
                    *rest = &rest[1..];
                    text.push('\n');
                    continue;
                }
                if !text.is_empty() {
                    parts.push(PatternPart::Text(std::mem::take(&mut text)));
                }
                parts.extend(conversion(rest, width, depth)?);
            }
            '\n' | '\r' => return None,
            other => {
                text.push(other);
                *rest = after;
            }
        }
    }
    if !text.is_empty() {
        parts.push(PatternPart::Text(text));
    }
    Some(parts)
}

/// `-5`, `20.30`, `.-10` and so on.
fn width(rest: &mut &str) -> Option<Width> {
    let mut width = Width { is_left: take(rest, '-'), ..Width::default() };
    width.min = number(rest)?.unwrap_or(0);
    if take(rest, '.') {
        width.cuts_end = take(rest, '-');
        width.max = Some(number(rest)??);
    }
    Some(width)
}

fn take(rest: &mut &str, c: char) -> bool {
    rest.strip_prefix(c).map(|after| *rest = after).is_some()
}

/// `Some(None)`: there is no number.
fn number(rest: &mut &str) -> Option<Option<usize>> {
    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(end);
    *rest = after;
    if digits.is_empty() {
        return Some(None);
    }
    digits.parse().ok().filter(|number| *number <= WIDTH_MAX).map(Some)
}

/// A word after `%`, with its option in braces, or a group.
fn conversion(rest: &mut &str, width: Width, depth: usize) -> Option<Vec<PatternPart>> {
    let end = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, after) = rest.split_at(end);
    *rest = after;
    if take(rest, '(') {
        if depth == DEPTH_MAX || !(word.is_empty() || is_color(word)) {
            return None;
        }
        let inner = parts(rest, depth + 1)?;
        return take(rest, ')').then(|| vec![PatternPart::Group(inner, width)]);
    }
    let option = match rest.strip_prefix('{') {
        Some(inside) => {
            let (option, after) = inside.split_once('}')?;
            *rest = after;
            Some(option.trim())
        }
        None => None,
    };
    let field = match word {
        "d" | "date" => date(option)?,
        "p" | "le" | "level" => PatternField::Level,
        "t" | "thread" => PatternField::Thread,
        "c" | "lo" | "logger" | "C" | "class" => PatternField::Class(match option {
            // As log4j had it: a number of names.
            Some("1") => Some(0),
            Some(length) => Some(length.parse().ok()?),
            None => None,
        }),
        "L" | "line" => PatternField::Line,
        "m" | "msg" | "message" => PatternField::Message,
        "X" | "mdc" => match option?.split(":-").next()? {
            "myid" => PatternField::MyId,
            _ => return Some(Vec::new()),
        },
        // There are no exceptions.
        "ex" | "exception" | "throwable" | "xEx" | "xException" | "xThrowable" | "rEx"
        | "rootException" | "nopex" | "nopexception" => return Some(Vec::new()),
        _ => return None,
    };
    Some(vec![PatternPart::Field(field, width)])
}

fn is_color(word: &str) -> bool {
    let colors = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray"];
    let plain = word.strip_prefix("bold").unwrap_or(word).to_ascii_lowercase();
    word == "highlight" || colors.contains(&plain.as_str())
}

/// * `option`: a form of `java.time`, perhaps with a time zone after a comma.
fn date(option: Option<&str>) -> Option<PatternField> {
    let (form, zone) = match option.and_then(|option| option.rsplit_once(',')) {
        Some((form, zone)) if ["UTC", "GMT"].contains(&zone.trim()) => (Some(form.trim()), true),
        _ => (option, false),
    };
    let form = form.map(|form| form.trim_matches('"'));
    let format = match form {
        None | Some("" | "ISO8601") => ISO.to_owned(),
        Some("ABSOLUTE") => "%H:%M:%S,%3f".to_owned(),
        Some("DATE") => "%d %b %Y %H:%M:%S,%3f".to_owned(),
        Some("STRICT") => "%Y-%m-%dT%H:%M:%S,%3f".to_owned(),
        Some(form) => strftime(form)?,
    };
    Some(PatternField::Date { format, is_utc: zone })
}

/// Letters of `java.time`, each with its form for `strftime`.
const LETTERS: [(&str, &str); 21] = [
    ("yyyy", "%Y"),
    ("uuuu", "%Y"),
    ("yy", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("d", "%-d"),
    ("EEEE", "%A"),
    ("EEE", "%a"),
    ("E", "%a"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("SSSSSS", "%6f"),
    ("SSS", "%3f"),
    ("a", "%p"),
    ("XXX", "%:z"),
    ("Z", "%z"),
    ("z", "%Z"),
];

fn strftime(form: &str) -> Option<String> {
    let (mut format, mut rest) = (String::new(), form);
    while let Some(c) = rest.chars().next() {
        if c == '\'' {
            let (text, after) = rest[1..].split_once('\'')?;
            format.push_str(if text.is_empty() { "'" } else { text });
            rest = after;
        } else if c.is_ascii_alphabetic() {
            let end = rest.chars().take_while(|other| *other == c).count();
            let (letters, after) = rest.split_at(end);
            format.push_str(LETTERS.iter().find(|(java, _)| *java == letters)?.1);
            rest = after;
        } else {
            format.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    // Texts in quotes and between the letters.
    (!form.contains('%')).then_some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_with_widths_groups_and_dates() {
        let found = parse(
            "%d{HH:mm:ss.SSS, UTC} %-5level [%.-3t] %cyan(%logger{36}:%L) \\(%X{myid:-none}\\) %msg%n%ex",
        );
        let field = |field| PatternPart::Field(field, Width::default());
        let text = |text: &str| PatternPart::Text(text.to_owned());
        let date = PatternField::Date { format: "%H:%M:%S.%3f".to_owned(), is_utc: true };
        let wide = Width { min: 5, is_left: true, ..Width::default() };
        let cut = Width { max: Some(3), cuts_end: true, ..Width::default() };
        let origin =
            vec![field(PatternField::Class(Some(36))), text(":"), field(PatternField::Line)];
        let wanted = vec![
            field(date),
            text(" "),
            PatternPart::Field(PatternField::Level, wide),
            text(" ["),
            PatternPart::Field(PatternField::Thread, cut),
            text("] "),
            PatternPart::Group(origin, Width::default()),
            text(" ("),
            field(PatternField::MyId),
            text(") "),
            field(PatternField::Message),
            text("\n"),
        ];
        assert_eq!(found, Some(wanted));
        let of = |form: &str| match date_of(form) {
            Some(PatternField::Date { format, .. }) => Some(format),
            _ => None,
        };
        assert_eq!(of("yyyy-MM-dd'T'HH:mm:ss.SSSXXX").as_deref(), Some("%Y-%m-%dT%H:%M:%S.%3f%:z"));
        assert_eq!(of("ISO8601").as_deref(), Some(ISO));
        assert_eq!(of("yyyy-MM-dd HH:mm:ss,SSS").as_deref(), Some("%Y-%m-%d %H:%M:%S,%3f"));
        assert_eq!((of("dd%"), of("QQ"), of("ss'")), (None, None, None));
    }

    fn date_of(form: &str) -> Option<PatternField> {
        date(Some(form))
    }

    #[test]
    fn patterns_with_unknown_parts_or_other_line_ends_are_not_read() {
        for strange in [
            "",
            "%m",
            "%n%m%n",
            "x%n",
            "%m\n%n",
            "%r %m%n",
            "%caller{1} %m%n",
            "%replace(%m){'a','b'}%n",
            "%d{QQ} %m%n",
            "%(%m%n",
            "%99999m%n",
            "%X %m%n",
            "%m%",
            "%m\\",
            "%d{HH %m%n",
        ] {
            assert_eq!(parse(strange), None, "{strange}");
        }
        assert!(parse(&format!("{}%m{}%n", "%(".repeat(9), ")".repeat(9))).is_none());
    }
}
