//! The log thread, and the queue of its commands.

use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::log::Log;
use super::worker::{Command, Event, Worker};

/// A batch of at least this many commands shows that many clients write at once.
const LARGE_BATCH: usize = 64;

/// The queue of commands for the log thread.
#[derive(Clone, Default)]
pub struct LogQueue(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    ready: Condvar,
}

#[derive(Default)]
struct QueueState {
    commands: Vec<Command>,
    /// The worker, while the log thread sleeps; another thread may borrow it.
    idle: Option<Box<dyn Work>>,
    closed: bool,
}

/// A [`Worker`] of any disk and any clock.
trait Work: Send {
    /// Runs a batch of commands; returns the report of the last flush, and reports all other events.
    fn run(&mut self, batch: &mut Vec<Command>, report: &mut dyn FnMut(Event)) -> Option<Event>;

    /// See [`Worker::wants_zeros_ahead`].
    fn wants_zeros_ahead(&self) -> bool;

    /// See [`Worker::prepare_ahead`].
    fn prepare_ahead(&mut self, report: &mut dyn FnMut(Event));
}

impl<D, C> Work for Worker<D, C>
where
    D: Disk + Clone,
    C: FnMut() -> Duration + Send,
{
    fn run(
        &mut self,
        batch: &mut Vec<Command>,
        mut report: &mut dyn FnMut(Event),
    ) -> Option<Event> {
        self.run_before_last_flush(batch, &mut report);
        let mut last = None;
        self.last_flush(&mut |event| last = Some(event));
        last
    }

    fn wants_zeros_ahead(&self) -> bool {
        Self::wants_zeros_ahead(self)
    }

    fn prepare_ahead(&mut self, mut report: &mut dyn FnMut(Event)) {
        Self::prepare_ahead(self, &mut report);
    }
}

impl LogQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.state.lock().expect("no panic while the queue was held")
    }

    pub fn send(&self, command: Command) {
        self.send_all(&mut vec![command]);
    }

    /// Sends many at once; leaves `commands` empty.
    pub fn send_all(&self, commands: &mut Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let mut state = self.lock();
        // The thread that put the first command has woken the log thread.
        let is_first = state.commands.is_empty();
        state.commands.append(commands);
        self.unlock_and_wake(state, is_first);
    }

    /// Runs the commands on this thread if the log thread sleeps, and sends them otherwise; leaves `commands` empty.
    ///
    /// Call it with few commands, from a thread that may block until they are durable.
    pub fn run_or_send(&self, commands: &mut Vec<Command>, report: &mut dyn FnMut(Event)) {
        let mut state = self.lock();
        let idle = state.commands.is_empty().then(|| state.idle.take()).flatten();
        drop(state);
        let Some(mut worker) = idle else {
            return self.send_all(commands);
        };
        if let Some(last) = worker.run(commands, report) {
            report(last);
        }
        let wants_zeros_ahead = worker.wants_zeros_ahead();
        let mut state = self.lock();
        state.idle = Some(worker);
        let has_work = wants_zeros_ahead || state.closed || !state.commands.is_empty();
        self.unlock_and_wake(state, has_work);
    }

    /// Wakes the log thread if it sleeps and there is work.
    ///
    /// * `has_work`: there are commands, zeros to write or the end of the queue, for which the thread was not woken.
    fn unlock_and_wake(&self, state: MutexGuard<'_, QueueState>, has_work: bool) {
        let is_asleep = state.idle.is_some();
        drop(state);
        // Waking a thread is a system call: it is made only when the log thread sleeps.
        if is_asleep && has_work {
            self.0.ready.notify_one();
        }
    }

    fn is_empty(&self) -> bool {
        self.lock().commands.is_empty()
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.unlock_and_wake(state, true);
    }
}

/// Takes the reports of the log thread, on that thread; must not block.
pub trait Reports {
    fn report(&mut self, event: Event);

    /// Takes the last report of a batch while no command waits: the call may use the log thread for longer work.
    fn report_when_idle(&mut self, event: Event) {
        self.report(event);
    }
}

impl<F: FnMut(Event)> Reports for F {
    fn report(&mut self, event: Event) {
        self(event);
    }
}

/// The log thread. Dropping it ends the thread after all commands that were sent are done.
pub struct LogThread {
    queue: LogQueue,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the log thread panicked: restart this server");
        }
    }
}

/// Starts the log thread.
///
/// # Errors
/// When the system has no thread to give.
pub fn spawn<D>(
    queue: LogQueue,
    disk: D,
    log: Log<D>,
    data_dir: &Path,
    slow_after: Duration,
    mut reports: impl Reports + Send + 'static,
) -> std::io::Result<LogThread>
where
    D: Disk + Clone + 'static,
{
    let begun = Instant::now();
    let worker = Worker::new(disk, log, data_dir, slow_after, move || begun.elapsed());
    let mut worker: Box<dyn Work> = Box::new(worker);
    let inbox = queue.clone();
    let thread = thread::Builder::new().name("log".to_owned()).spawn(move || {
        let mut batch = Vec::new();
        let mut last_len = 0;
        while let Some(awake) = wait(&inbox, worker, last_len, &mut batch, &mut reports) {
            worker = awake;
            last_len = batch.len();
            match worker.run(&mut batch, &mut |event| reports.report(event)) {
                Some(event) if inbox.is_empty() => reports.report_when_idle(event),
                Some(event) => reports.report(event),
                None => {}
            }
        }
    })?;
    Ok(LogThread { queue, thread: Some(thread) })
}

/// Waits for commands, and prepares the log for later ones meanwhile; `None` when the queue is closed.
///
/// * `last_len`: length of the batch before this one.
fn wait(
    inbox: &LogQueue,
    mut worker: Box<dyn Work>,
    last_len: usize,
    batch: &mut Vec<Command>,
    reports: &mut impl Reports,
) -> Option<Box<dyn Work>> {
    loop {
        let mut state = inbox.lock();
        if !state.commands.is_empty() {
            // Takes the whole queue: commands that come while these are flushed are the next batch.
            mem::swap(&mut state.commands, batch);
            return Some(worker);
        }
        if state.closed {
            return None;
        }
        if worker.wants_zeros_ahead() {
            drop(state);
            worker.prepare_ahead(&mut |event| reports.report(event));
            continue;
        }
        state.idle = Some(worker);
        worker = loop {
            state = inbox.0.ready.wait(state).expect("no panic while the queue was held");
            // Another thread may have borrowed the worker: it wakes this thread after giving it back.
            if let Some(worker) = state.idle.take() {
                break worker;
            }
        };
        drop(state);
        if LARGE_BATCH <= last_len {
            // Probably the first command of many. If the cores are busy, the threads that send the others run first, and one
            // flush covers more of them; if the cores are idle, yielding costs nothing.
            thread::yield_now();
        }
    }
}
