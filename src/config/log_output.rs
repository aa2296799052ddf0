//! Where log lines go: consoles, and files that are renamed when they have grown.

use std::path::{Path, PathBuf};
use tracing::level_filters::LevelFilter;

/// Number of older files that logback's window holds at most.
pub(super) const OLDER_MAX: u32 = 21;

/// When a file is renamed, and how the older ones are named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rolling {
    /// A file of this size gets no further line.
    pub size_bytes: u64,
    /// Number of older files.
    pub kept: u32,
    /// The number in the name of the newest older file.
    pub first: u32,
    /// What stands before and after the number in the path of an older file.
    pub older: (String, String),
    /// Older files have dates, and are as many as these say.
    pub dates: Option<Dates>,
}

/// Older files with the date of their lines: a file is renamed when a period is over, and earlier when it has grown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Dates {
    /// The path of an older file, in parts, one of which is the date; folders are in the first one.
    pub name: Vec<NamePart>,
    /// The form of the date, for `strftime`. Texts of this form sort as their times do, and are of one length.
    pub format: String,
    pub period: Period,
    /// The number of periods before this one whose files are kept; 0: all.
    pub periods_kept: u32,
    /// Limit on the sizes of the older files together.
    pub cap_bytes: Option<u64>,
}

/// A part of the path of an older file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NamePart {
    Text(String),
    Date,
    /// The number of the file in its period.
    Number,
}

/// How long a file gets lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Period {
    Year,
    Month,
    Day,
    Hour,
    Minute,
}

impl Rolling {
    /// The older files are `PATH.1`, `PATH.2` and so on.
    pub fn beside(path: &Path, size_bytes: u64, kept: u32) -> Self {
        let before = format!("{}.", path.display());
        Self { size_bytes, kept, first: 1, older: (before, String::new()), dates: None }
    }

    /// The path of an older file; 0 is the newest.
    pub fn older(&self, age: u32) -> PathBuf {
        let number = self.first.saturating_add(age);
        format!("{}{number}{}", self.older.0, self.older.1).into()
    }
}

/// A file of log lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogFile {
    pub path: PathBuf,
    /// Lines of lower levels do not go there.
    pub threshold: LevelFilter,
    /// `None`: it grows for ever.
    pub rolling: Option<Rolling>,
}

/// A standard stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    Out,
    Err,
}

/// One place where lines go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Appender {
    Console { stream: Stream, threshold: LevelFilter },
    File(LogFile),
}

/// A level as logback and log4j name it.
pub(super) fn level(text: &str) -> Option<LevelFilter> {
    match text.trim().to_ascii_uppercase().as_str() {
        "OFF" => Some(LevelFilter::OFF),
        "FATAL" | "ERROR" => Some(LevelFilter::ERROR),
        "WARN" | "WARNING" => Some(LevelFilter::WARN),
        "INFO" => Some(LevelFilter::INFO),
        "DEBUG" => Some(LevelFilter::DEBUG),
        "TRACE" | "ALL" => Some(LevelFilter::TRACE),
        _ => None,
    }
}

/// A size as logback reads it: a number, then nothing, `KB`, `MB` or `GB`, which may have an `s`.
///
/// Source: `ch.qos.logback.core.util.FileSize`, logback 1.3.15.
pub(super) fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].trim();
    let shift = match unit.strip_suffix('s').unwrap_or(unit) {
        "" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_sizes_are_read_as_logback_reads_them() {
        assert_eq!(level(" warn "), Some(LevelFilter::WARN));
        assert_eq!((level("ALL"), level("loud")), (Some(LevelFilter::TRACE), None));
        assert_eq!(
            (size("256MB"), size("10 kb"), size("7")),
            (Some(256 << 20), Some(10240), Some(7))
        );
        assert_eq!(size("2GBs"), Some(2 << 30));
        for wrong in
            ["", "MB", "1.5MB", "-1", "0", "99999999999999999999", "18446744073709551615GB", "1TB"]
        {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn older_files_have_a_number_where_the_pattern_has_it() {
        let rolling = Rolling::beside(Path::new("/l/a.log"), 1, 3);
        assert_eq!(rolling.older(0), Path::new("/l/a.log.1"));
        let rolling = Rolling { first: 5, older: ("a-".to_owned(), ".log".to_owned()), ..rolling };
        assert_eq!(rolling.older(2), Path::new("a-7.log"));
    }
}
