//! A file of the server's log: lines wait in memory for a thread of its own, so that no disk delays the server.
//!
//! Lines that can't be written, and those that a slow disk does not take in time, are lost and counted. Standard error gets a line
//! when that begins and when it ends.

use super::rolling_file::RollingFile;
use crate::config::LogFile;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Target of lines about the log files themselves: they go to standard error alone.
pub const TROUBLE: &str = "oxkeeper::log_trouble";
/// Lines that wait for the disk; above it they are lost.
const WAITING_MAX: usize = 4 << 20;
/// How long a process that ends waits for its last lines.
const LAST_LINES_MAX: Duration = Duration::from_secs(2);

/// A file and its thread.
pub struct LogFileWriter {
    queue: Arc<Queue>,
    /// Closed when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

struct Queue {
    path: String,
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: String,
    /// Lines for which there was no room since the thread came last.
    left_out: u64,
    /// Whether the console knows that lines are lost.
    is_reported: bool,
    is_closed: bool,
}

impl LogFileWriter {
    /// `None`: there is no thread for it.
    pub fn start(settings: &LogFile) -> Option<Self> {
        let queue = Queue {
            path: settings.path.display().to_string(),
            waiting: Mutex::default(),
            filled: Condvar::new(),
        };
        let queue = Arc::new(queue);
        let file = RollingFile::new(&settings.path, settings.rolling.clone());
        let (ending, ended) = mpsc::channel();
        let mut writer = Writer { queue: queue.clone(), file, lost: 0 };
        let run = move || {
            writer.run();
            drop(ending);
        };
        let started = std::thread::Builder::new().name("log".to_owned()).spawn(run);
        started.ok().map(|_| Self { queue, ended: Mutex::new(ended) })
    }

    /// Takes a line, with its end.
    pub fn put(&self, line: &str) {
        let mut waiting = self.queue.lock();
        if WAITING_MAX < waiting.lines.len() + line.len() {
            waiting.left_out += 1;
            if !std::mem::replace(&mut waiting.is_reported, true) {
                drop(waiting);
                let path = &self.queue.path;
                tracing::error!(target: TROUBLE, %path, "log file: lines are lost, its disk is too slow: use a faster one");
            }
            return;
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.push_str(line);
        drop(waiting);
        if was_empty {
            self.queue.filled.notify_one();
        }
    }

    /// Has the last lines written, unless that takes long. Later lines are lost.
    pub fn finish(&self) {
        self.queue.lock().is_closed = true;
        self.queue.filled.notify_one();
        let _ended = self.ended.lock().expect("a panic aborts").recv_timeout(LAST_LINES_MAX);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("a panic aborts")
    }

    /// Waits for lines and takes them all, with the number of those left out; `None`: it is closed and empty.
    fn take(&self, into: &mut String) -> Option<u64> {
        let is_idle = |waiting: &mut Waiting| {
            waiting.lines.is_empty() && waiting.left_out == 0 && !waiting.is_closed
        };
        let mut waiting = self.filled.wait_while(self.lock(), is_idle).expect("a panic aborts");
        std::mem::swap(&mut waiting.lines, into);
        let left_out = std::mem::take(&mut waiting.left_out);
        (left_out > 0 || !into.is_empty()).then_some(left_out)
    }
}

/// What the thread has.
struct Writer {
    queue: Arc<Queue>,
    file: RollingFile,
    /// Lines that were lost since the file worked last.
    lost: u64,
}

impl Writer {
    fn run(&mut self) {
        let mut lines = String::new();
        let mut is_rename_reported = false;
        self.file.create();
        while let Some(left_out) = self.queue.take(&mut lines) {
            self.lost += left_out;
            let path = &self.queue.path;
            match self.file.write(&lines) {
                Ok(()) => {
                    is_rename_reported = false;
                    // A round in which lines were left out is followed by one that shows whether the disk keeps up.
                    let mut waiting = self.queue.lock();
                    if left_out == 0 && std::mem::take(&mut waiting.is_reported) {
                        drop(waiting);
                        let lost = std::mem::take(&mut self.lost);
                        tracing::warn!(target: TROUBLE, %path, lost, "log file: it is written again, {lost} lines are missing; nothing to do");
                    }
                }
                Err(error) if error.lost == 0 => {
                    if !std::mem::replace(&mut is_rename_reported, true) {
                        tracing::error!(target: TROUBLE, %path, %error, "log file: it can't be renamed, so it grows: check the rights of its folder");
                    }
                }
                Err(error) => {
                    self.lost += error.lost;
                    if !std::mem::replace(&mut self.queue.lock().is_reported, true) {
                        tracing::error!(target: TROUBLE, %path, %error, "log file: lines are lost: make room on its disk, or check the rights of its folder");
                    }
                }
            }
            lines.clear();
            // Keeps little memory after many lines at once.
            lines.shrink_to(64 * 1024);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tracing::level_filters::LevelFilter;

    fn started(path: &std::path::Path) -> LogFileWriter {
        let path = path.to_owned();
        LogFileWriter::start(&LogFile { path, threshold: LevelFilter::TRACE, rolling: None })
            .unwrap()
    }

    #[test]
    fn last_lines_are_written_before_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/z.log");
        let file = started(&path);
        for number in 0..1000 {
            file.put(&format!("{number}\n"));
        }
        file.finish();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1000);
    }

    #[test]
    fn full_disk_loses_lines_and_delays_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("z.log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let file = started(&path);
        let line = "x".repeat(1023) + "\n";
        for _ in 0..20_000 {
            file.put(&line);
        }
        while !file.queue.lock().lines.is_empty() {
            std::thread::yield_now();
        }
        fs::remove_file(&path).unwrap();
        file.put("again\n");
        file.finish();
        assert!(fs::read_to_string(&path).unwrap().ends_with("again\n"));
    }
}
