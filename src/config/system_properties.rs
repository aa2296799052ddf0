//! System properties: `-D` flags and unknown keys of the file become properties, read as Java reads them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::problem::{SettingPlace, Warning};
use super::secrets::shown_word;

/// Environment variables by name, as handed to the process.
pub type Environment = BTreeMap<String, String>;

/// Java's `String.trim`: removes characters up to U+0020 at both ends, and no others.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// The value of a `-D` flag: of our own arguments, else of `JVMFLAGS`, else of `SERVER_JVMFLAGS`.
pub fn flag_value(env: &Environment, flags: &[String], name: &str) -> Option<String> {
    SystemProperties::from_flags(env, flags).take(name).map(|property| property.value)
}

/// One system property and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Property {
    pub value: String,
    pub place: SettingPlace,
}

/// The property table; a getter takes its entry out.
#[derive(Debug, Default)]
pub(super) struct SystemProperties {
    table: BTreeMap<String, Property>,
}

impl SystemProperties {
    /// Collects the `-D` flags of the scripts' variables and of our own command line.
    ///
    /// * `flags`: our own arguments that begin with `-D`.
    ///
    /// Words are split at white space only: the scripts expand the variables unquoted. Later ones
    /// win, in the order the scripts give: `ZOO_DATADIR_AUTOCREATE_DISABLE`, `SERVER_JVMFLAGS`,
    /// `JVMFLAGS`.
    ///
    /// Source: `bin/zkServer.sh` lines 84-86 and 125-135, ZooKeeper 3.9.5.
    pub fn from_flags(env: &Environment, flags: &[String]) -> Self {
        let mut this = Self::default();
        if env.get("ZOO_DATADIR_AUTOCREATE_DISABLE").is_some_and(|v| !v.is_empty()) {
            let place = SettingPlace::Flag("ZOO_DATADIR_AUTOCREATE_DISABLE");
            this.set("zookeeper.datadir.autocreate", "false", place);
        }
        for variable in ["SERVER_JVMFLAGS", "JVMFLAGS"] {
            let words = env.get(variable).map(String::as_str).unwrap_or_default();
            words.split_ascii_whitespace().for_each(|word| this.flag(word, variable));
        }
        flags.iter().for_each(|flag| this.flag(flag, "the command line"));
        this
    }

    /// As [`Self::from_flags`], with a warning for each word of the scripts' variables with which a JVM would not start, or
    /// which it would not read as the operator meant.
    pub fn with_warnings(env: &Environment, flags: &[String]) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        for variable in ["SERVER_JVMFLAGS", "JVMFLAGS"] {
            let words = env.get(variable).map(String::as_str).unwrap_or_default();
            let (mut before, mut is_open) = ("", false);
            for word in words.split_ascii_whitespace() {
                let before = std::mem::replace(&mut before, word);
                let turns = has_open_quote(word);
                let is_within = is_open;
                is_open ^= turns;
                if is_within || TWO_WORDS.contains(&before) {
                    continue;
                }
                if let Some(why) = oddity(word) {
                    let shown = shown_word(word, before);
                    let text = format!("{shown}: {why}");
                    warnings.push(Warning::new(SettingPlace::Flag(variable), text));
                }
            }
        }
        (Self::from_flags(env, flags), warnings)
    }

    fn flag(&mut self, word: &str, source: &'static str) {
        let Some(definition) = word.strip_prefix("-D") else { return };
        let (key, value) = definition.split_once('=').unwrap_or((definition, ""));
        self.set(key, value, SettingPlace::Flag(source));
    }

    /// Sets a property, whatever it was before.
    pub fn set(&mut self, key: &str, value: &str, place: SettingPlace) {
        self.table.insert(key.to_owned(), Property { value: value.to_owned(), place });
    }

    pub fn get(&self, key: &str) -> Option<&Property> {
        self.table.get(key)
    }

    pub fn take(&mut self, key: &str) -> Option<Property> {
        self.table.remove(key)
    }

    /// `Boolean.getBoolean`, and `parseBoolean` where `default` is what an absent value means.
    ///
    /// Anything but `true` in any case is false, whatever the default.
    pub fn is_true(&self, key: &str, default: bool) -> bool {
        self.get(key).map_or(default, |p| p.value.eq_ignore_ascii_case("true"))
    }

    /// All of them, in the order of their names.
    pub fn all(&self) -> Vec<(String, Property)> {
        self.table.iter().map(|(name, property)| (name.clone(), property.clone())).collect()
    }

    /// `Integer.getInteger` and `Long.getLong`: the default when absent or not a number in `range`.
    ///
    /// Java takes the default for a malformed number in silence; here it gives a warning.
    pub fn take_number(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
        default: i64,
        warnings: &mut Vec<Warning>,
    ) -> i64 {
        self.take_parsed(key, decode, range, default, warnings)
    }

    /// The same where Java calls `parseInt` or `parseLong` and goes on with the default.
    pub fn take_decimal(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
        default: i64,
        warnings: &mut Vec<Warning>,
    ) -> i64 {
        self.take_parsed(key, decimal, range, default, warnings)
    }

    fn take_parsed(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Option<i64>,
        range: RangeInclusive<i64>,
        default: i64,
        warnings: &mut Vec<Warning>,
    ) -> i64 {
        let Some(Property { value, place }) = self.take(key) else { return default };
        let number = parse(&value).filter(|number| range.contains(number));
        number.unwrap_or_else(|| {
            let key = as_written(key, &place);
            let text = format!(
                "{key}={value} is not a valid number, so the default, {default}, is used; correct it"
            );
            warnings.push(Warning { place, text, used: Some(default.to_string()) });
            default
        })
    }
}

/// A property's name as its setting is written: in a file without the prefix that Java gives it.
pub(super) fn as_written(key: &str, place: &SettingPlace) -> String {
    match place {
        SettingPlace::Flag(_) => format!("-D{key}"),
        _ => key.strip_prefix("zookeeper.").unwrap_or(key).to_owned(),
    }
}

/// Options of a JVM whose value is the next word.
const TWO_WORDS: [&str; 9] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
];

fn has_open_quote(word: &str) -> bool {
    let is_open = |quote| word.matches(quote).count() % 2 == 1;
    is_open('"') || is_open('\'')
}

/// What is wrong with a word of the scripts' variables, which are split at white space and keep their quotes.
fn oddity(word: &str) -> Option<&'static str> {
    if has_open_quote(word) {
        return Some(
            "no effect, or not the one meant: quotes don't join words; write no white space",
        );
    }
    match word.strip_prefix('-') {
        None if word.starts_with('@') => None, // A file of arguments.
        None => {
            Some("no effect; a JVM takes it for the class to run, and does not start: remove it")
        }
        Some(rest) => match rest.strip_prefix('D') {
            Some(property) if property.is_empty() || property.starts_with('=') => {
                Some("no effect; it names no property: remove it")
            }
            _ => None,
        },
    }
}

/// Java's `Long.decode`: decimal, `0x`/`0X`/`#` hexadecimal, or octal after a leading zero.
///
/// Source: the documentation of `java.lang.Long.decode`, JDK 17.
pub(super) fn decode(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let hex = ["0x", "0X", "#"].iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits, radix) = match (hex, digits.strip_prefix('0')) {
        (Some(hex), _) => (hex, 16),
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (digits, 10),
    };
    // A second sign is malformed, though the integer parser below would take it.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Java's `Long.parseLong`: decimal alone.
fn decimal(text: &str) -> Option<i64> {
    text.parse().ok() // Rust's own grammar is the same: at most one sign, then digits.
}

/// Java's `Double.parseDouble`, without hexadecimal.
///
/// Source: the documentation of `java.lang.Double.valueOf`, JDK 17.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = trim(text);
    match text.trim_start_matches(['+', '-']) {
        "NaN" | "Infinity" if text.len() - text.trim_start_matches(['+', '-']).len() < 2 => {}
        // Other words, such as `inf`, are numbers to Rust and not to Java.
        rest if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => return None,
        _ => {}
    }
    // A letter at the end names the type.
    let number = text.strip_suffix(['f', 'F', 'd', 'D']).filter(|number| !number.is_empty());
    number.unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_jvm_would_not_start_with_are_named() {
        let warnings_of = |words: &str| {
            let env = Environment::from([("SERVER_JVMFLAGS".to_owned(), words.to_owned())]);
            let (_, warnings) = SystemProperties::with_warnings(&env, &[]);
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let sound = "-Xmx1g -Dsnap=1 -XX:+UseG1GC -cp /a:/b @file -Da=\"b\" -Dc= -verbose:gc";
        assert_eq!(warnings_of(sound), [""; 0]);
        for (words, start) in [
            ("-D", "-D: no effect; it names no property: remove it"),
            ("-D=a -Dx=1", "-D=a: no effect; it names no property: remove it"),
            ("-Dx=1 y=2", "y=2: no effect; a JVM takes it for the class to run"),
            ("-Dx=\"a b\" -Dy=1", "-Dx=\"a: no effect, or not the one meant: quotes don't"),
            ("-Dx='a b c", "-Dx='a: no effect, or not the one meant: quotes don't"),
            // A word that may be a part of a secret is not shown.
            ("-Dkey.password=my dog", "(not shown): no effect; a JVM takes it"),
            ("-Dkey.password='my dog'", "-Dkey.password=(not shown): no effect, or not the one"),
        ] {
            let warnings = warnings_of(words);
            let start = format!("-D flag in SERVER_JVMFLAGS: {start}");
            assert!(
                warnings.len() == 1 && warnings[0].starts_with(&start),
                "{words}: {warnings:?}"
            );
        }
    }

    #[test]
    fn fractions_are_read_as_java_does() {
        for (text, expected) in [
            ("0.02", Some(0.02)),
            (" 1e-1 ", Some(0.1)),
            ("1.", Some(1.0)),
            (".5", Some(0.5)),
            ("+2f", Some(2.0)),
            ("3D", Some(3.0)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("inf", None),
            ("nan", None),
            ("infinity", None),
            ("--Infinity", None),
            ("f", None),
            ("", None),
            ("0,5", None),
            ("1 2", None),
        ] {
            assert_eq!(double(text), expected, "{text:?}");
        }
        assert!(double("NaN").is_some_and(f64::is_nan));
        assert_eq!(
            ["010", "0x10", "+7", " 7", ""].map(decimal),
            [Some(10), None, Some(7), None, None]
        );
    }

    #[test]
    fn numbers_are_decoded_as_java_does() {
        let cases = [
            ("12", Some(12)),
            ("+12", Some(12)),
            ("-12", Some(-12)),
            ("0x1F", Some(31)),
            ("-#1f", Some(-31)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("09", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("--1", None),
            ("0x-1", None),
            ("1_000", None),
            (" 1", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text), expected, "{text:?}");
        }
    }

    #[test]
    fn later_flags_win() {
        let env = Environment::from([
            ("SERVER_JVMFLAGS".to_owned(), "-Xmx1g -Da=1  -Db=2 -Dc".to_owned()),
            ("JVMFLAGS".to_owned(), "-Db=3\n-De=x=y".to_owned()),
        ]);
        let mut system = SystemProperties::from_flags(&env, &["-De=4".to_owned()]);
        let mut value = |key: &str| system.take(key).map(|p| p.value);
        assert_eq!(value("a").as_deref(), Some("1"));
        assert_eq!(value("b").as_deref(), Some("3"));
        assert_eq!(value("c").as_deref(), Some(""));
        assert_eq!(value("e").as_deref(), Some("4"));
        assert_eq!(value("a"), None);
    }

    // rows: C-03
    #[test]
    fn only_true_is_true() {
        let mut system = SystemProperties::default();
        for (value, expected) in [("true", true), ("TRUE", true), ("yes", false), ("", false)] {
            system.set("k", value, SettingPlace::Argument);
            assert_eq!(system.is_true("k", true), expected, "{value:?}");
        }
        system.take("k");
        assert!(system.is_true("k", true));
    }
}
