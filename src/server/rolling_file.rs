//! A log file that is renamed when it has grown: `FILE.1` is the newest of the older ones, and the oldest is removed.
//!
//! A line that can't be written is lost, and the next one is tried: a full disk stops nothing.

use super::clock::wall_ms;
use super::dated_files::DatedFiles;
use crate::config::Rolling;
use crate::store::disk::is_full;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that lines are appended to.
#[derive(Debug)]
pub struct RollingFile {
    path: PathBuf,
    /// `None`: it grows for ever.
    rolling: Option<Rolling>,
    /// `None`: older files have numbers alone.
    dated: Option<DatedFiles>,
    /// The period of the lines in the file, if older files have dates.
    period: String,
    /// `None`: it could not be opened, or is not yet.
    file: Option<File>,
    len: u64,
    /// The last line is there in part.
    is_torn: bool,
}

/// What a call of [`RollingFile::write`] could not do.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct WriteFailed {
    pub source: io::Error,
    /// Number of lines that are lost; 0: the file could not be renamed, and goes on.
    pub lost: u64,
}

impl RollingFile {
    /// A file that the first line opens, and creates with its folder if need be.
    pub fn new(path: &Path, rolling: Option<Rolling>) -> Self {
        let dates = rolling.as_ref().and_then(|rolling| rolling.dates.clone());
        Self {
            path: path.to_owned(),
            rolling,
            dated: dates.map(DatedFiles::new),
            period: String::new(),
            file: None,
            len: 0,
            is_torn: false,
        }
    }

    /// Opens the file, and creates it and its folder if need be.
    ///
    /// # Errors
    /// Errors of the file system, but not that it is full: the next line tries again.
    pub fn open(path: &Path, rolling: Option<Rolling>) -> io::Result<Self> {
        let mut this = Self::new(path, rolling);
        match this.reopen() {
            Err(error) if !is_full(&error) => Err(error),
            Err(_) | Ok(()) => Ok(this),
        }
    }

    /// Creates the file before its first line, if it can.
    pub fn create(&mut self) {
        if self.file.is_none() {
            // The first line tries again, and has the error.
            let _later = self.reopen();
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        let found = file.metadata()?;
        self.len = found.len();
        if let Some(dated) = &mut self.dated {
            self.period = dated.period_of(found.modified()?);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Appends whole lines, each with its end; renames the file between two of them.
    ///
    /// # Errors
    /// The lines of this call from the first one that could not be written on are lost; or the file could not be renamed, and
    /// goes on.
    pub fn write(&mut self, lines: &str) -> Result<(), WriteFailed> {
        self.write_at(lines, wall_ms())
    }

    /// * `wall_ms`: now, in milliseconds since 1970.
    fn write_at(&mut self, lines: &str, wall_ms: i64) -> Result<(), WriteFailed> {
        let mut rest = lines;
        let (mut rolled, mut is_new) = (Ok(()), false);
        let failed = |lost: &str| {
            let lost = lost.bytes().filter(|byte| *byte == b'\n').count() as u64;
            move |source| WriteFailed { source, lost }
        };
        while !rest.is_empty() {
            if self.file.is_none() {
                self.reopen().map_err(failed(rest))?;
            }
            if self.is_over(wall_ms) {
                rolled = rolled.and(self.roll().map_err(failed("")));
                continue;
            }
            let now = self.fitting(rest);
            if now == 0 && is_new {
                // Another process has filled it meanwhile, or it has the name of an older file.
                self.len = 0;
            } else if now == 0 {
                rolled = rolled.and(self.roll().map_err(failed("")));
                is_new = true;
            } else {
                self.append(&rest[..now]).map_err(failed(rest))?;
                rest = &rest[now..];
                is_new = false;
            }
        }
        rolled
    }

    /// Whether the lines of the file are of an earlier period; it has those of this one from now on.
    fn is_over(&mut self, wall_ms: i64) -> bool {
        let Some(dated) = &mut self.dated else { return false };
        let now = dated.period(wall_ms);
        if self.len > 0 && self.period != now {
            return true;
        }
        now.clone_into(&mut self.period);
        false
    }

    /// How many bytes of `lines` go into the file as it is: lines that begin before its size is reached.
    fn fitting(&self, lines: &str) -> usize {
        let size = self.rolling.as_ref().map_or(u64::MAX, |rolling| rolling.size_bytes);
        let room = size.saturating_sub(self.len);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if lines.len() <= room {
            return lines.len();
        }
        if room == 0 {
            return 0;
        }
        // The line that reaches the size is the last one.
        let end = lines.as_bytes()[room - 1..].iter().position(|&byte| byte == b'\n');
        end.map_or(lines.len(), |end| room + end)
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        let was_torn = std::mem::take(&mut self.is_torn);
        let whole = was_torn.then(|| ["\n", lines].concat());
        let mut rest = whole.as_deref().unwrap_or(lines).as_bytes();
        let mut written = Ok(());
        while let (Some(file), Ok(()), false) = (&mut self.file, &written, rest.is_empty()) {
            match file.write(rest) {
                Ok(0) => written = Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.len += count as u64;
                    self.is_torn = true;
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => written = Err(error),
            }
        }
        if written.is_ok() {
            self.is_torn = false;
        } else {
            // The next line opens it again: it may have been removed.
            self.is_torn |= was_torn;
            self.file = None;
        }
        written
    }

    /// Renames the older files and this one, and begins a new one. In any case this one can be appended to afterwards.
    fn roll(&mut self) -> io::Result<()> {
        let renamed = self.rename();
        self.is_torn = false;
        if let Err(error) = renamed {
            // It goes on, and grows by its size once more before the next try.
            self.len = 0;
            return Err(error);
        }
        self.file = None;
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        if let Some(dated) = &self.dated {
            return dated.rename(&self.path, &self.period);
        }
        let Some(rolling) = &self.rolling else { return Ok(()) };
        for age in (1..rolling.kept).rev() {
            ignore_missing(fs::rename(rolling.older(age - 1), rolling.older(age)))?;
        }
        ignore_missing(match rolling.kept {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, rolling.older(0)),
        })
    }
}

fn ignore_missing(renamed: io::Result<()>) -> io::Result<()> {
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Dates, NamePart, Period};

    fn rolling(path: &Path) -> Option<Rolling> {
        Some(Rolling::beside(path, 10, 2))
    }

    fn contents(folder: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| {
                let name = file.file_name().into_string().unwrap();
                (name, fs::read_to_string(file.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn file_that_has_grown_is_renamed_between_two_lines_and_the_oldest_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/a.log");
        let mut file = RollingFile::open(&path, rolling(&path)).unwrap();
        file.write("1111\n2222\n").unwrap();
        let folder = path.parent().unwrap();
        assert_eq!(contents(folder), pairs(&[("a.log", "1111\n2222\n")]));
        file.write("3\n4444444\n55555555555555\n6\n").unwrap();
        let two = pairs(&[
            ("a.log", "55555555555555\n"),
            ("a.log.1", "3\n4444444\n"),
            ("a.log.2", "1111\n2222\n"),
        ]);
        let [mut now, one, two] = <[_; 3]>::try_from(two).unwrap();
        // The line after the long one is in a file of its own.
        let files = contents(folder);
        assert_eq!(files[0], ("a.log".to_owned(), "6\n".to_owned()));
        (now.0, _) = ("a.log.1".to_owned(), two);
        assert_eq!(files[1..], [now, ("a.log.2".to_owned(), one.1)]);
        // Another process goes on with the file as it is.
        drop(file);
        let mut file = RollingFile::open(&path, rolling(&path)).unwrap();
        file.write("77777777\n8\n").unwrap();
        assert_eq!(contents(folder)[..2], pairs(&[("a.log", "8\n"), ("a.log.1", "6\n77777777\n")]));
    }

    #[test]
    fn file_that_cannot_be_renamed_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::create_dir_all(dir.path().join("a.log.1/x")).unwrap();
        fs::create_dir_all(dir.path().join("a.log.2/x")).unwrap();
        let mut file = RollingFile::open(&path, rolling(&path)).unwrap();
        file.write("1111111111\n").unwrap();
        assert_eq!(file.write("2\n").unwrap_err().lost, 0);
        file.write("3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1111111111\n2\n3\n");
    }

    #[test]
    fn full_disk_loses_lines_and_no_line_is_joined_to_a_torn_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        // All writes fail as on a full disk.
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut file = RollingFile::open(&path, Some(Rolling::beside(&path, 1000, 2))).unwrap();
        for _ in 0..3 {
            let failed = file.write("lost\nlost\n").unwrap_err();
            assert_eq!((failed.source.kind(), failed.lost), (io::ErrorKind::StorageFull, 2));
        }
        fs::remove_file(&path).unwrap();
        file.write("2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
        // As after a write that the disk has taken in part.
        file.is_torn = true;
        file.write("3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n\n3\n");
    }

    #[test]
    fn file_that_cannot_be_opened_is_an_error_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RollingFile::open(dir.path(), None).is_err());
    }

    /// 2026-11-27, at noon of the time zone UTC.
    const NOON: i64 = 1_795_780_800_000;
    const HOUR: i64 = 3_600_000;

    /// A file `a.log` whose older files are `a-DATE.NUMBER.log`.
    fn dated(path: &Path, periods_kept: u32, cap_bytes: Option<u64>) -> RollingFile {
        let text = |text: String| NamePart::Text(text);
        let before = path.with_file_name("a-").display().to_string();
        let name = vec![
            text(before),
            NamePart::Date,
            text(".".to_owned()),
            NamePart::Number,
            text(".log".to_owned()),
        ];
        let format = "%Y-%m-%d".to_owned();
        let dates = Dates { name, format, period: Period::Day, periods_kept, cap_bytes };
        let rolling = Rolling { dates: Some(dates), ..Rolling::beside(path, 10, 0) };
        let mut file = RollingFile::new(path, Some(rolling));
        file.dated = file.dated.map(DatedFiles::in_utc);
        file
    }

    // rows: C-269
    #[test]
    fn file_with_lines_of_an_earlier_day_is_renamed_with_its_date() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut file = dated(&path, 2, None);
        // No file of the log, or of another program's.
        fs::write(dir.path().join("a-2020-01-01.log"), "keep").unwrap();
        fs::write(dir.path().join("a-2020-01-01.0.log.gz"), "of Java").unwrap();
        file.write_at("1111\n2222\n", NOON).unwrap();
        file.write_at("3\n", NOON + HOUR).unwrap();
        let keep = ("a-2020-01-01.log", "keep");
        let old = ("a-2026-11-27.0.log", "1111\n2222\n");
        assert_eq!(contents(dir.path()), pairs(&[keep, old, ("a.log", "3\n")]));
        for (day, line) in [(1, "4\n"), (2, "5\n"), (3, "6\n")] {
            file.write_at(line, NOON + day * 24 * HOUR).unwrap();
        }
        let files =
            [keep, ("a-2026-11-28.0.log", "4\n"), ("a-2026-11-29.0.log", "5\n"), ("a.log", "6\n")];
        assert_eq!(contents(dir.path()), pairs(&files));
    }

    // rows: C-269
    #[test]
    fn file_of_an_earlier_run_is_of_the_day_of_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "1\n").unwrap();
        let written = File::options().append(true).open(&path).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_780_800);
        written.set_modified(at).unwrap();
        let mut file = dated(&path, 0, Some(5));
        file.write_at("2\n", NOON + 24 * HOUR).unwrap();
        let one = ("a-2026-11-27.0.log", "1\n");
        assert_eq!(contents(dir.path()), pairs(&[one, ("a.log", "2\n")]));
        file.write_at("3\n", NOON + 48 * HOUR).unwrap();
        file.write_at("4\n", NOON + 72 * HOUR).unwrap();
        // Three files of two bytes are more than five bytes.
        let files =
            [("a-2026-11-28.0.log", "2\n"), ("a-2026-11-29.0.log", "3\n"), ("a.log", "4\n")];
        assert_eq!(contents(dir.path()), pairs(&files));
    }
}
