//! The audit log's thread: it takes events from a queue and writes their lines, into the server's log or a file of their own.
//!
//! Events of clients are bounded by what clients may have outstanding: above [`AUDIT_WAITING_MAX`] bytes their writes wait, as
//! [`Throttle`](crate::request::Throttle) says. Nothing else waits for this thread.

use super::clock::wall_ms;
use super::environment::user_name;
use super::error::ServerError;
use super::local_time::LocalTime;
use super::rolling_file::RollingFile;
use crate::admin::{is_audit_error, put_audit_prefix, put_audit_text};
use crate::config::{Audit, LogFile};
use crate::model::{AuditEvent, AuditResult, AuditUser, AuditedOperation, STRANGERS};
use crate::request::{AUDIT_WAITING_MAX, Shared};
use std::mem;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::task::Waker;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// Above it, deletions of ephemeral znodes are left out: no connection of this server can be made to wait for them.
const QUEUE_MAX: u64 = 4 * AUDIT_WAITING_MAX;
/// Lines are written together up to this many bytes.
const WRITE_BYTES: usize = 64 * 1024;
/// How long a server that stops waits until the last lines are written.
const LAST_LINES_MAX: Duration = Duration::from_secs(2);

/// An audit log and its thread.
pub struct AuditLog {
    queue: AuditQueue,
    /// Closed when the thread has ended.
    thread: Receiver<()>,
}

/// The queue before the thread.
#[derive(Clone)]
pub struct AuditQueue(Arc<Queue>);

struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    /// The connections that wait while the queue is full.
    shared: OnceLock<Arc<Shared>>,
}

#[derive(Default)]
struct Waiting {
    /// Each with its time, in milliseconds since 1970.
    events: Vec<(i64, AuditEvent)>,
    /// Bytes of events that are not written, those that the thread has taken included.
    bytes: u64,
    left_out: u64,
    is_closed: bool,
}

impl AuditLog {
    /// * `server_user`: who the server is to clients; `None`: the user of this process.
    ///
    /// # Errors
    /// The file can't be opened, or there is no thread.
    pub fn start(settings: &Audit, server_user: Option<String>) -> Result<Self, ServerError> {
        let file = settings.file.as_ref().map(|LogFile { path, threshold, rolling }| {
            RollingFile::open(path, rolling.clone())
                .map(|file| (file, *threshold))
                .map_err(|source| ServerError::Audit { path: path.clone(), source })
        });
        let file = file.transpose()?;
        let queue =
            Queue { waiting: Mutex::default(), filled: Condvar::new(), shared: OnceLock::new() };
        let queue = AuditQueue(Arc::new(queue));
        let (ended, thread) = mpsc::channel();
        let server_user = server_user.unwrap_or_else(user_name);
        let mut writer = Writer::new(queue.0.clone(), file, server_user);
        let run = move || {
            writer.run();
            drop(ended);
        };
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(run)
            .map_err(|source| ServerError::Thread { what: "the audit thread", source })?;
        Ok(Self { queue, thread })
    }

    pub fn queue(&self) -> AuditQueue {
        self.queue.clone()
    }

    /// Logs a start that the configuration has refused.
    pub fn log_refused_start(settings: &Audit) {
        // The error is reported already, and the server ends.
        if let Ok(audit) = Self::start(settings, None) {
            audit.end_server(false);
        }
    }

    /// Logs how the server has ended, and has the last lines written, unless that takes long.
    ///
    /// * `was_started`: whether it has served.
    pub fn end_server(self, was_started: bool) {
        match was_started {
            true => self.queue.put_own(AuditedOperation::ServerStop, AuditResult::Invoked),
            false => self.queue.put_own(AuditedOperation::ServerStart, AuditResult::Failure),
        }
        self.queue.0.lock().is_closed = true;
        self.queue.0.filled.notify_one();
        let _ended = self.thread.recv_timeout(LAST_LINES_MAX);
    }
}

impl AuditQueue {
    /// From here on writes of these connections wait while the queue is full.
    pub fn slow_down(&self, shared: &Arc<Shared>) {
        let _once = self.0.shared.set(shared.clone());
    }

    /// Takes events of the replica.
    pub fn put(&self, events: &mut Vec<AuditEvent>, wall_ms: i64) {
        if events.is_empty() {
            return;
        }
        let mut waiting = self.0.lock();
        let mut bytes = 0;
        for event in events.drain(..) {
            let is_bounded = !matches!(event.by, AuditUser::ServerFor(_));
            if !is_bounded && QUEUE_MAX < waiting.bytes {
                waiting.left_out += 1;
                continue;
            }
            let size = bytes_of(&event);
            waiting.bytes += size;
            bytes += size;
            waiting.events.push((wall_ms, event));
        }
        if let Some(shared) = self.0.shared.get() {
            shared.throttle.audit_queued(bytes);
        }
        drop(waiting);
        self.0.filled.notify_one();
    }

    /// An event of the server's own life.
    pub fn put_own(&self, operation: AuditedOperation, result: AuditResult) {
        self.put(&mut vec![AuditEvent::of_server(operation, result)], wall_ms());
    }
}

/// What an event counts in the queue. Those of the server's own life are few.
fn bytes_of(event: &AuditEvent) -> u64 {
    if event.by == AuditUser::Server { 0 } else { event.bytes() }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("a panic aborts")
    }

    /// Waits for events and takes them all, with the number of those left out since the last call; `None`: it is closed and
    /// empty.
    fn take(&self, into: &mut Vec<(i64, AuditEvent)>) -> Option<u64> {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| waiting.events.is_empty() && !waiting.is_closed;
        let mut waiting = self.filled.wait_while(waiting, is_idle).expect("a panic aborts");
        mem::swap(&mut waiting.events, into);
        let left_out = mem::take(&mut waiting.left_out);
        (left_out > 0 || !into.is_empty()).then_some(left_out)
    }

    /// Events of this many bytes are written.
    fn written(&self, bytes: u64) {
        self.lock().bytes -= bytes;
        let mut wakers = Vec::new();
        if let Some(shared) = self.shared.get() {
            shared.throttle.audit_written(bytes, &mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// What the thread has.
struct Writer {
    queue: Arc<Queue>,
    /// With the level of the lines that go there; `None`: all go into the server's log.
    file: Option<(RollingFile, LevelFilter)>,
    server_user: String,
    time: LocalTime,
}

impl Writer {
    fn new(
        queue: Arc<Queue>,
        file: Option<(RollingFile, LevelFilter)>,
        server_user: String,
    ) -> Self {
        Self { queue, file, server_user, time: LocalTime::default() }
    }

    fn run(&mut self) {
        let (mut events, mut lines) = (Vec::new(), String::new());
        while let Some(left_out) = self.queue.take(&mut events) {
            if left_out > 0 {
                tracing::error!(
                    target: STRANGERS, events = left_out,
                    "audit log: deletions of ephemeral znodes are missing, its disk is too slow: use a faster one"
                );
            }
            let mut bytes = 0;
            for (wall_ms, event) in events.drain(..) {
                bytes += bytes_of(&event);
                self.put_line(&mut lines, wall_ms, &event);
                if WRITE_BYTES <= lines.len() {
                    self.write(&mut lines);
                    self.queue.written(mem::take(&mut bytes));
                }
            }
            self.write(&mut lines);
            self.queue.written(bytes);
        }
    }

    /// Appends an event's line, or logs it.
    fn put_line(&mut self, lines: &mut String, wall_ms: i64, event: &AuditEvent) {
        if let Some((_, threshold)) = self.file {
            let level = if is_audit_error(event) { LevelFilter::ERROR } else { LevelFilter::INFO };
            if threshold < level {
                return;
            }
            let time = self.time.text(wall_ms);
            put_audit_prefix(lines, &time, event);
            put_audit_text(lines, event, &self.server_user);
            lines.push('\n');
            return;
        }
        let mut line = String::new();
        put_audit_text(&mut line, event, &self.server_user);
        if is_audit_error(event) {
            tracing::error!("{line}");
        } else {
            tracing::info!("{line}");
        }
    }

    fn write(&mut self, lines: &mut String) {
        if let Some((file, _)) = &mut self.file
            && let Err(error) = file.write(lines)
        {
            tracing::error!(
                target: STRANGERS, path = %file.path().display(), %error,
                "audit log: lines are lost, or its file can't be renamed: check the disk and the rights of its folder"
            );
        }
        lines.clear();
        // Keeps little memory after a long line.
        lines.shrink_to(2 * WRITE_BYTES);
    }
}
