//! Older log files whose names have the date of their lines: how they are named, and which of them are removed.

use crate::config::{Dates, NamePart, Period};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of one period that are looked for before the name is given up.
const NUMBERS_MAX: u64 = 1 << 20;

/// The older files of one log file.
#[derive(Debug)]
pub struct DatedFiles {
    dates: Dates,
    zone: TimeZone,
    /// The last minute that was asked for, and its period: a period is a minute or longer.
    minute: (i64, String),
}

impl DatedFiles {
    /// Periods are those of the zone of `TZ`, else of the machine's.
    pub fn new(dates: Dates) -> Self {
        Self { dates, zone: TimeZone::system(), minute: (i64::MIN, String::new()) }
    }

    #[cfg(test)]
    pub fn in_utc(self) -> Self {
        Self { zone: TimeZone::UTC, ..self }
    }

    /// The period that a time is in.
    ///
    /// * `wall_ms`: milliseconds since 1970.
    pub fn period(&mut self, wall_ms: i64) -> &str {
        let minute = wall_ms.div_euclid(60_000);
        if self.minute.0 != minute {
            let at = Timestamp::from_millisecond(wall_ms).unwrap_or_default();
            let at = at.to_zoned(self.zone.clone());
            self.minute = (minute, at.strftime(&self.dates.format).to_string());
        }
        &self.minute.1
    }

    /// The same for the time of a file's last line.
    pub fn period_of(&mut self, modified: SystemTime) -> String {
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.period(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_owned()
    }

    /// Gives a file the name of an older file, and removes those that are too old or too many.
    ///
    /// * `period`: of its lines.
    ///
    /// # Errors
    /// It could not be renamed. An older file that can't be removed stays.
    pub fn rename(&self, path: &Path, period: &str) -> io::Result<()> {
        let to = self.free_name(period)?;
        if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        match fs::rename(path, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.remove_old(&to, period);
        Ok(())
    }

    /// The name with the first number that is free, which comes after the name if it has no place for one.
    fn free_name(&self, period: &str) -> io::Result<PathBuf> {
        let has_place = self.dates.name.contains(&NamePart::Number);
        for number in 0..NUMBERS_MAX {
            let mut name = String::new();
            for part in &self.dates.name {
                match part {
                    NamePart::Text(text) => name.push_str(text),
                    NamePart::Date => name.push_str(period),
                    NamePart::Number => name.push_str(&number.to_string()),
                }
            }
            if !has_place && number > 0 {
                name.push_str(&format!(".{number}"));
            }
            if fs::symlink_metadata(&name).is_err() {
                return Ok(name.into());
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "all names of older files are in use"))
    }

    /// * `newest`: the file that was renamed, in whose folder the others are.
    fn remove_old(&self, newest: &Path, period: &str) {
        let folder = newest.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
        let mut older: Vec<(String, u64, PathBuf, u64)> = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some((date, number)) = self.read_name(&name.to_string_lossy(), period) else {
                continue;
            };
            let Ok(found) = entry.metadata() else { continue };
            if found.is_file() {
                older.push((date, number, entry.path(), found.len()));
            }
        }
        older.sort_unstable_by(|one, other| other.cmp(one));
        let first_kept = self.first_kept(period);
        let mut total = 0_u64;
        for (date, _, path, bytes) in older {
            total = total.saturating_add(bytes);
            let is_old = first_kept.as_ref().is_some_and(|first| date < *first);
            if is_old || self.dates.cap_bytes.is_some_and(|cap| cap < total) {
                // It may have been removed meanwhile; else the next renaming tries again.
                let _stays = fs::remove_file(path);
            }
        }
    }

    /// The first of the periods whose files stay; `None`: all stay.
    ///
    /// * `last`: the period of the newest older file.
    fn first_kept(&self, last: &str) -> Option<String> {
        let back = i64::from(self.dates.periods_kept.checked_sub(1)?);
        let span = match self.dates.period {
            Period::Year => Span::new().try_years(back),
            Period::Month => Span::new().try_months(back),
            Period::Day => Span::new().try_days(back),
            Period::Hour => Span::new().try_hours(back),
            Period::Minute => Span::new().try_minutes(back),
        };
        let mut parsed = jiff::fmt::strtime::parse(&self.dates.format, last).ok()?;
        // Parts that the form does not have are the first.
        parsed.set_month(parsed.month().or(Some(1))).ok()?;
        parsed.set_day(parsed.day().or(Some(1))).ok()?;
        parsed.set_hour(parsed.hour().or(Some(0))).ok()?;
        parsed.set_minute(parsed.minute().or(Some(0))).ok()?;
        let first = parsed.to_datetime().ok()?.checked_sub(span.ok()?).ok()?;
        Some(first.strftime(&self.dates.format).to_string())
    }

    /// The date and the number in the name of an older file, which another program may have packed; `None`: it is none.
    fn read_name(&self, name: &str, like: &str) -> Option<(String, u64)> {
        let (mut rest, mut date, mut number) = (name, String::new(), 0);
        for part in &self.dates.name {
            match part {
                NamePart::Text(text) => {
                    let text = text.rsplit('/').next().unwrap_or(text);
                    rest = rest.strip_prefix(text)?;
                }
                NamePart::Date => {
                    let (text, after) = rest.split_at_checked(like.len())?;
                    let is_like = |(found, wanted): (u8, u8)| {
                        if wanted.is_ascii_digit() {
                            found.is_ascii_digit()
                        } else {
                            found == wanted
                        }
                    };
                    if !text.bytes().zip(like.bytes()).all(is_like) {
                        return None;
                    }
                    (date, rest) = (text.to_owned(), after);
                }
                NamePart::Number => {
                    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let (digits, after) = rest.split_at(end);
                    number = digits.parse().ok()?;
                    rest = after;
                }
            }
        }
        matches!(rest, "" | ".gz" | ".zip" | ".xz").then_some((date, number))
    }
}
