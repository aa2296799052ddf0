//! The driver, shared by two threads: its turns run on a task of the runtime, and on the log thread after a small flush when no
//! command waits for that thread.
//!
//! On the log thread the flushed transactions are applied, and the next batch is begun, without a change of threads in between.

use super::driver::Driver;
use super::inbox::{Event, Inbox};
use crate::member::{Ended, Input};
use crate::store::Disk;
use crate::store::log_thread::Reports;
use crate::store::worker;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How many clients the log thread sends replies to itself: few, because the next batch waits meanwhile.
const DIRECT_REPLIES_MAX: u32 = 4;

/// Transactions of a flush that the log thread applies itself. More are applied by the thread that has read and prepared them, whose
/// processor has them in its cache.
const FLUSH_MAX: u32 = DIRECT_REPLIES_MAX;

/// If a timer is so late, the process stood still.
const STOOD_STILL: Duration = Duration::from_millis(100);

/// Whether a turn was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    /// * `is_sooner`: the next turn is due earlier than it was before.
    Taken {
        is_sooner: bool,
    },
    OfAnotherThread,
}

impl Turn {
    const fn is_taken(self) -> bool {
        matches!(self, Self::Taken { .. })
    }
}

/// The driver, and the flags between the threads that run its turns.
pub struct SharedDriver<D> {
    driver: Mutex<Driver<D>>,
    inbox: Arc<Inbox>,
    /// [`Driver::deadline_us`] as it was after the last turn.
    deadline_us: AtomicU64,
    /// The driver's task came while the log thread was in a turn.
    is_wanted: AtomicBool,
    /// Zero of the monotonic clock.
    clock_zero: Instant,
}

impl<D: Disk + Clone + 'static> SharedDriver<D> {
    pub fn new(driver: Driver<D>, inbox: Arc<Inbox>, clock_zero: Instant) -> Self {
        let (deadline_us, is_wanted) = Default::default();
        Self { driver: Mutex::new(driver), inbox, deadline_us, is_wanted, clock_zero }
    }

    /// Runs until the server ends.
    pub async fn run(&self) -> Ended {
        let mut armed = self.due();
        let mut timer = pin!(tokio::time::sleep_until(armed.into()));
        loop {
            let turn = self.turn_on_task();
            if let Some(ended) = self.inbox.is_closed().then(|| self.ended()).flatten() {
                return ended;
            }
            if turn.is_taken() && !self.inbox.is_empty() {
                // The tasks that this turn has woken run first.
                tokio::task::yield_now().await;
                continue;
            }
            let due = self.due();
            // A deadline that moves away with each turn leaves the timer as it is: to fire too early costs one turn.
            if due < armed || timer.is_elapsed() {
                timer.as_mut().reset(due.into());
                armed = due;
            }
            tokio::select! {
                biased;
                () = self.inbox.filled() => {}
                () = timer.as_mut(), if turn.is_taken() => {
                    if STOOD_STILL < due.elapsed() {
                        // Bytes that peers and clients have sent meanwhile are read before they are counted silent.
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }

    /// When the driver is to take its next turn at the latest.
    fn due(&self) -> Instant {
        self.clock_zero + Duration::from_micros(self.deadline_us.load(Ordering::Acquire))
    }

    fn ended(&self) -> Option<Ended> {
        self.driver.lock().expect("a panic aborts").ended()
    }

    /// Runs a turn on the driver's task. If the log thread is in a turn, it wakes the task afterwards.
    fn turn_on_task(&self) -> Turn {
        let turn = self.turn(0);
        if turn.is_taken() {
            return turn;
        }
        // Swapped and not stored: this thread sees all that the log thread did before it read the flag.
        self.is_wanted.swap(true, Ordering::SeqCst);
        // The log thread may have ended its turn before it could see the flag.
        self.turn(0)
    }

    fn turn(&self, direct_replies_max: u32) -> Turn {
        let mut driver = match self.driver.try_lock() {
            Ok(driver) => driver,
            Err(TryLockError::WouldBlock) => return Turn::OfAnotherThread,
            Err(TryLockError::Poisoned(_)) => unreachable!("a panic aborts"),
        };
        driver.turn(direct_replies_max);
        let due_us = driver.deadline_us();
        // Compared under the lock: the other thread may have had a turn since this one's last.
        let is_sooner = due_us < self.deadline_us.swap(due_us, Ordering::AcqRel);
        if driver.ended().is_some() {
            self.inbox.close();
        }
        Turn::Taken { is_sooner }
    }

    /// Runs a turn on the log thread.
    fn turn_on_log_thread(&self) {
        let turn = self.turn(DIRECT_REPLIES_MAX);
        let is_sooner = turn == Turn::Taken { is_sooner: true };
        let is_wanted = turn.is_taken() && self.is_wanted.swap(false, Ordering::SeqCst);
        if is_sooner || is_wanted || !self.inbox.is_empty() || self.inbox.is_closed() {
            self.inbox.wake();
        }
    }
}

/// Brings the log thread's reports to the driver.
pub struct LogReports<D> {
    pub driver: Arc<SharedDriver<D>>,
    /// The runtime on which a turn starts tasks.
    pub runtime: Handle,
}

impl<D: Disk + Clone + 'static> Reports for LogReports<D> {
    fn report(&mut self, event: worker::Event) {
        self.driver.inbox.put_input(Input::Log(event));
    }

    fn report_when_idle(&mut self, event: worker::Event) {
        if matches!(&event, worker::Event::Flushed(flush) if FLUSH_MAX < flush.records) {
            self.report(event);
            return;
        }
        self.driver.inbox.put_quietly(Event::Input(Input::Log(event)));
        let _in_runtime = self.runtime.enter();
        self.driver.turn_on_log_thread();
    }
}
