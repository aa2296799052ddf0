//! Who runs the driver's turns: a task of the runtime, and the log thread where nothing else waits for it.
//!
//! Then a flush that is done is applied, and the next batch begun, without a change of threads in between.

use super::driver::Driver;
use super::inbox::{Event, Inbox};
use crate::member::{Ended, Input};
use crate::store::Disk;
use crate::store::worker::{self, Reports};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Clients to whom the log thread sends replies itself: few, for the next batch waits meanwhile.
const DIRECT_REPLIES_MAX: u32 = 4;

/// The driver, and what those who run its turns tell each other.
pub struct Turns<D> {
    driver: Mutex<Driver<D>>,
    inbox: Arc<Inbox>,
    /// Of [`Driver::deadline_us`], after the last turn.
    deadline_us: AtomicU64,
    /// The driver's task came while the log thread was in a turn.
    is_wanted: AtomicBool,
    /// Zero of the monotonic clock.
    epoch: Instant,
}

impl<D: Disk + Clone + 'static> Turns<D> {
    pub fn new(driver: Driver<D>, inbox: Arc<Inbox>, epoch: Instant) -> Self {
        let (deadline_us, is_wanted) = Default::default();
        Self { driver: Mutex::new(driver), inbox, deadline_us, is_wanted, epoch }
    }

    /// Runs until the server ends.
    pub async fn run(&self) -> Ended {
        loop {
            let has_run = self.turn_until_empty();
            if let Some(ended) = self.inbox.is_closed().then(|| self.ended()).flatten() {
                return ended;
            }
            let due = self.epoch + Duration::from_micros(self.deadline_us.load(Ordering::Acquire));
            tokio::select! {
                biased;
                () = self.inbox.filled() => {}
                () = tokio::time::sleep_until(due.into()), if has_run => {}
            }
        }
    }

    fn ended(&self) -> Option<Ended> {
        self.driver.lock().expect("a panic aborts").ended()
    }

    /// `false`: the log thread is in a turn, and wakes the driver's task after it.
    fn turn_until_empty(&self) -> bool {
        loop {
            if !self.turn(0) {
                self.is_wanted.store(true, Ordering::SeqCst);
                // The log thread may have ended its turn before it could see this.
                if !self.turn(0) {
                    return false;
                }
            }
            if self.inbox.is_empty() {
                return true;
            }
        }
    }

    /// `false`: another thread is in a turn.
    fn turn(&self, direct_replies_max: u32) -> bool {
        let mut driver = match self.driver.try_lock() {
            Ok(driver) => driver,
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(_)) => unreachable!("a panic aborts"),
        };
        driver.turn(direct_replies_max);
        self.deadline_us.store(driver.deadline_us(), Ordering::Release);
        if driver.ended().is_some() {
            self.inbox.close();
        }
        true
    }

    /// A turn on the log thread.
    fn turn_at_rest(&self) {
        let before_us = self.deadline_us.load(Ordering::Acquire);
        let has_run = self.turn(DIRECT_REPLIES_MAX);
        let is_sooner = self.deadline_us.load(Ordering::Acquire) < before_us;
        let is_wanted = has_run && self.is_wanted.swap(false, Ordering::SeqCst);
        if is_sooner || is_wanted || !self.inbox.is_empty() || self.inbox.is_closed() {
            self.inbox.wake();
        }
    }
}

/// Brings the log thread's reports to the driver.
pub struct LogReports<D> {
    pub turns: Arc<Turns<D>>,
    /// Tasks that a turn starts are this runtime's.
    pub runtime: Handle,
}

impl<D: Disk + Clone + 'static> Reports for LogReports<D> {
    fn report(&mut self, event: worker::Event) {
        self.turns.inbox.put_input(Input::Log(event));
    }

    fn report_at_rest(&mut self, event: worker::Event) {
        self.turns.inbox.put_quietly(Event::Input(Input::Log(event)));
        let _in_runtime = self.runtime.enter();
        self.turns.turn_at_rest();
    }
}
