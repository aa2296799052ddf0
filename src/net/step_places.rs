//! A limit on steps of exchanges between servers that may wait for a disk or a KDC: on how many run, and on how long each is waited for.

use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Steps that run at the same time, including steps whose connection has stopped waiting.
const STEPS_MAX: usize = 16;
/// How long a connection waits for a place and for its step.
const STEP_TIME_MAX: Duration = Duration::from_secs(10);

/// Places for steps: a limited number is taken at a time.
pub struct StepPlaces {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A place, which is free again when this is dropped.
struct StepPlace(&'static StepPlaces);

impl StepPlaces {
    pub const fn new() -> Self {
        Self { taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Runs a step on a thread of its own; `None`: it took too long. It then keeps its place until it ends.
    pub fn run<T: Send + 'static>(
        &'static self,
        step: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let until = Instant::now() + STEP_TIME_MAX;
        let place = self.take(until)?;
        let (done, outcome) = mpsc::sync_channel(1);
        let run = move || {
            let outcome = step();
            drop(place); // Before the outcome is sent: its receiver finds the place free.
            let _gone = done.send(outcome);
        };
        thread::Builder::new().name("kerberos".to_owned()).spawn(run).ok()?;
        outcome.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }

    fn take(&'static self, until: Instant) -> Option<StepPlace> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while STEPS_MAX <= *taken {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.freed.wait_timeout(taken, left);
            taken = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Some(StepPlace(self))
    }
}

impl Drop for StepPlace {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_waits_for_a_place_and_gets_the_one_that_is_freed() {
        static PLACES: StepPlaces = StepPlaces::new();
        let until = Instant::now() + Duration::from_millis(20);
        let mut taken: Vec<StepPlace> =
            (0..STEPS_MAX).map(|_| PLACES.take(until).expect("a place")).collect();
        assert!(PLACES.take(until).is_none());
        taken.pop();
        assert_eq!(PLACES.run(|| 7), Some(7));
        drop(taken);
        assert_eq!(*PLACES.taken.lock().unwrap(), 0);
    }
}
