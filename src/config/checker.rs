//! Takes settings out of a file one by one, and collects their problems and warnings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::system_properties::trim;
use super::{Entries, Problem, SettingPlace, Warning};

/// What to do about a value with a comment after it.
const COMMENT: &str = "a comment needs a line of its own, so move it";

/// The folder in `dataDir` and `dataLogDir` that has the files.
const DATA_FOLDER: &str = "version-2";

/// Whether a value goes on with what was meant as a comment.
fn has_comment(value: &str) -> bool {
    value.contains(" #") || value.contains("\t#")
}

/// One setting, trimmed as Java trims it.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub value: String,
    /// Not trimmed: Java reads the addresses of members from this.
    pub raw: String,
    pub place: SettingPlace,
}

/// The settings that were not taken yet, and the problems and warnings found so far.
#[derive(Debug)]
pub(super) struct Checker {
    /// Where missing settings are reported.
    pub whole: SettingPlace,
    settings: BTreeMap<String, Setting>,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

impl Checker {
    pub fn of_file(file: &str, entries: Entries) -> Self {
        let mut this = Self::new(SettingPlace::File(file.to_owned()), BTreeMap::new());
        this.add_file(file, entries);
        this
    }

    /// Adds the settings of one more file.
    pub fn add_file(&mut self, file: &str, entries: Entries) {
        for (key, entry) in entries {
            let place = |line| SettingPlace::Line { file: file.to_owned(), line };
            for line in entry.earlier {
                let text = format!(
                    "{key} is set again in line {}, which counts; remove one of them",
                    entry.line
                );
                self.warn(&place(line), text);
            }
            let (value, place) = (trim(&entry.value).to_owned(), place(entry.line));
            self.settings.insert(trim(&key).to_owned(), Setting { value, raw: entry.value, place });
        }
    }

    pub fn of_arguments(arguments: impl Iterator<Item = (&'static str, String)>) -> Self {
        let settings = arguments.map(|(key, value)| {
            (key.to_owned(), Setting { raw: value.clone(), value, place: SettingPlace::Argument })
        });
        Self::new(SettingPlace::Argument, settings.collect())
    }

    fn new(whole: SettingPlace, settings: BTreeMap<String, Setting>) -> Self {
        Self { whole, settings, problems: Vec::new(), warnings: Vec::new() }
    }

    pub fn problem(&mut self, place: &SettingPlace, text: impl Display) {
        self.problems.push(Problem { place: place.clone(), text: text.to_string() });
    }

    /// The value that is written for `key` can't be used.
    pub fn warn_of_use(&mut self, place: &SettingPlace, used: impl Display, text: String) {
        let used = Some(used.to_string());
        self.warnings.push(Warning { place: place.clone(), text, used });
    }

    pub fn warn(&mut self, place: &SettingPlace, text: impl Display) {
        self.warnings.push(Warning::new(place.clone(), text.to_string()));
    }

    /// Adds a setting that no line has.
    pub fn set(&mut self, key: &str, value: String, place: SettingPlace) {
        self.settings.insert(key.to_owned(), Setting { raw: value.clone(), value, place });
    }

    pub fn take(&mut self, key: &str) -> Option<Setting> {
        self.settings.remove(key)
    }

    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    /// The settings that were not taken so far.
    pub fn all(&self) -> Vec<(String, Setting)> {
        self.settings.iter().map(|(key, setting)| (key.clone(), setting.clone())).collect()
    }

    /// Takes every setting whose key `wanted` accepts, in the order of their lines.
    pub fn take_all(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<(String, Setting)> {
        let keys: Vec<String> = self.settings.keys().filter(|key| wanted(key)).cloned().collect();
        let mut taken: Vec<(String, Setting)> =
            keys.into_iter().filter_map(|key| self.settings.remove_entry(&key)).collect();
        taken.sort_by_key(|(_, setting)| match setting.place {
            SettingPlace::Line { line, .. } => line,
            _ => 0,
        });
        taken
    }

    /// A number as `Integer.parseInt` reads it; a problem unless it lies in `range`.
    ///
    /// The place is returned too, because some numbers are wrong only together with others.
    pub fn number(&mut self, key: &str, range: RangeInclusive<i32>) -> Option<(i32, SettingPlace)> {
        let (min, max) = (*range.start(), *range.end());
        let Setting { value, place, .. } = self.take(key)?;
        match value.parse::<i32>() {
            Ok(number) if min <= number && number <= max => return Some((number, place)),
            Ok(_) => {
                let text = match min == max {
                    true => format!("{key}={value} must be {min}; correct or remove it"),
                    false if min < -1 => {
                        format!("{key}={value} is above {max}; write {max} or less")
                    }
                    false => format!("{key}={value} is not within {min} and {max}; correct it"),
                };
                self.problem(&place, text);
            }
            Err(_) => self.not_a_number(key, &value, &place, i64::from(min)..=i64::from(max)),
        }
        None
    }

    /// A number as `Long.parseLong` reads it.
    pub fn long(&mut self, key: &str) -> Option<i64> {
        let Setting { value, place, .. } = self.take(key)?;
        let number = value.parse().ok();
        if number.is_none() {
            self.not_a_number(key, &value, &place, i64::MIN..=i64::MAX);
        }
        number
    }

    fn not_a_number(
        &mut self,
        key: &str,
        value: &str,
        place: &SettingPlace,
        range: RangeInclusive<i64>,
    ) {
        let (min, max) = range.into_inner();
        let text = match has_comment(value) {
            true => format!("{key}={value} is not a number; {COMMENT}"),
            false if min < -1 => {
                format!("{key}={value} is not a number; write one up to {max}")
            }
            false => format!("{key}={value} is not a number; write one from {min} to {max}"),
        };
        self.problem(place, text);
    }

    /// A word of a few, in any case.
    pub fn one_of(&mut self, key: &str, words: &[&str]) -> Option<Setting> {
        let Setting { value, place, .. } = self.take(key)?;
        if words.iter().any(|word| word.eq_ignore_ascii_case(&value)) {
            return Some(Setting { raw: value.clone(), value, place });
        }
        self.problem(
            &place,
            format!("{key}={value} is not one of {}; correct it", words.join(", ")),
        );
        None
    }

    /// A boolean of `QuorumPeerConfig`: only `true` and `false`, in any case.
    pub fn boolean(&mut self, key: &str) -> Option<(bool, SettingPlace)> {
        let Setting { value, place, .. } = self.take(key)?;
        if value.eq_ignore_ascii_case("true") {
            return Some((true, place));
        }
        if value.eq_ignore_ascii_case("false") {
            return Some((false, place));
        }
        let advice = if has_comment(&value) { COMMENT } else { "write one of them" };
        self.problem(&place, format!("{key}={value} is neither true nor false; {advice}"));
        None
    }

    /// A directory; relative ones are taken from the working directory, with a warning.
    pub fn directory(&mut self, key: &str) -> Option<PathBuf> {
        let Setting { value, place, .. } = self.take(key)?;
        if value.is_empty() {
            self.problem(&place, format!("{key} is empty; name a directory"));
            return None;
        }
        if has_comment(&value) {
            self.problem(&place, format!("{key}={value} is not a directory; {COMMENT}"));
            return None;
        }
        let path = PathBuf::from(&value);
        if path.ends_with(DATA_FOLDER) {
            let above = path.parent().unwrap_or(&path).display();
            self.warn(
                &place,
                format!(
                    "{key}={value} ends with {DATA_FOLDER}, which the server adds itself: its files are in {value}/{DATA_FOLDER}; \
                     for those in {value} write {key}={above}"
                ),
            );
        }
        if value.starts_with(['"', '\'']) {
            self.warn(
                &place,
                format!("{key}={value}: the quotation marks are part of the path; remove them"),
            );
        } else if path.is_relative() && !path.starts_with(".") {
            self.warn(&place, format!("{key}={value} is relative; write ./{value} if it is meant"));
        }
        Some(path)
    }
}
