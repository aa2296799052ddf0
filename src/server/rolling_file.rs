//! A log file that is renamed when it has grown: `FILE.1` is the newest of the older ones, and the oldest is removed.
//!
//! A line that can't be written is lost, and the next one is tried: a full disk stops nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// When a file is renamed, and how many older ones stay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rolling {
    /// A file of this size gets no further line.
    pub size_bytes: u64,
    /// Number of older files.
    pub kept: u32,
}

/// A file that lines are appended to.
#[derive(Debug)]
pub struct RollingFile {
    path: PathBuf,
    rolling: Rolling,
    /// `None`: it could not be opened.
    file: Option<File>,
    len: u64,
    /// The last line is there in part.
    is_torn: bool,
}

impl RollingFile {
    /// Opens the file, and creates it and its folder if need be.
    ///
    /// # Errors
    /// Those of the file system, but not that it is full: the next line tries again.
    pub fn open(path: &Path, rolling: Rolling) -> io::Result<Self> {
        let mut this = Self { path: path.to_owned(), rolling, file: None, len: 0, is_torn: false };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let created = folder.map_or(Ok(()), fs::create_dir_all);
        match created.and_then(|()| this.reopen()?.metadata()) {
            Err(error) if !is_full(&error) => return Err(error),
            Err(_) => {}
            Ok(metadata) => this.len = metadata.len(),
        }
        Ok(this)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn reopen(&mut self) -> io::Result<&mut File> {
        Ok(self.file.insert(OpenOptions::new().append(true).create(true).open(&self.path)?))
    }

    /// Appends whole lines, each with its end; renames the file between two of them.
    ///
    /// # Errors
    /// The lines of this call from the first one that could not be written on are lost; or the file could not be renamed, and
    /// goes on.
    pub fn write(&mut self, lines: &str) -> io::Result<()> {
        let mut rest = lines;
        let mut rolled = Ok(());
        while !rest.is_empty() {
            let now = self.fitting(rest);
            if now == 0 {
                rolled = rolled.and(self.roll());
                continue;
            }
            self.append(&rest[..now])?;
            rest = &rest[now..];
        }
        rolled
    }

    /// How many bytes of `lines` go into the file as it is: lines that begin before its size is reached.
    fn fitting(&self, lines: &str) -> usize {
        let room = self.rolling.size_bytes.saturating_sub(self.len);
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
        if self.file.is_none() {
            self.is_torn = was_torn;
            self.reopen()?;
            self.is_torn = false;
        }
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
        (self.file, self.len, self.is_torn) = (None, 0, false);
        for number in (1..self.rolling.kept).rev() {
            ignore_missing(fs::rename(self.older(number), self.older(number + 1)))?;
        }
        ignore_missing(match self.rolling.kept {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, self.older(1)),
        })
    }

    /// The path of an older file; 1 is the newest.
    fn older(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn ignore_missing(renamed: io::Result<()>) -> io::Result<()> {
    match renamed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLING: Rolling = Rolling { size_bytes: 10, kept: 2 };

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
        let mut file = RollingFile::open(&path, ROLLING).unwrap();
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
        let mut file = RollingFile::open(&path, ROLLING).unwrap();
        file.write("77777777\n8\n").unwrap();
        assert_eq!(contents(folder)[..2], pairs(&[("a.log", "8\n"), ("a.log.1", "6\n77777777\n")]));
    }

    #[test]
    fn file_that_cannot_be_renamed_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::create_dir_all(dir.path().join("a.log.1/x")).unwrap();
        fs::create_dir_all(dir.path().join("a.log.2/x")).unwrap();
        let mut file = RollingFile::open(&path, ROLLING).unwrap();
        file.write("1111111111\n").unwrap();
        assert!(file.write("2\n").is_err());
        file.write("3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1111111111\n2\n3\n");
    }

    #[test]
    fn full_disk_loses_lines_and_no_line_is_joined_to_a_torn_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        // All writes fail as on a full disk.
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let rolling = Rolling { size_bytes: 1000, ..ROLLING };
        let mut file = RollingFile::open(&path, rolling).unwrap();
        for _ in 0..3 {
            assert_eq!(file.write("lost\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        fs::remove_file(&path).unwrap();
        file.write("2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
        // As after a write of which the disk has taken a part.
        file.is_torn = true;
        file.write("3\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n\n3\n");
    }

    #[test]
    fn file_that_cannot_be_opened_is_an_error_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RollingFile::open(dir.path(), ROLLING).is_err());
    }
}
