//! The locks of the pure rooms: std's, or shuttle's, which explores schedules.
//!
//! No lock is ever poisoned, since a panic aborts the process.

#[cfg(feature = "shuttle")]
use shuttle::sync as imp;
#[cfg(not(feature = "shuttle"))]
use std::sync as imp;

pub use imp::atomic::{AtomicBool, AtomicU64, Ordering};
pub use imp::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Mutual exclusion without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a panic aborts, so no lock is poisoned")
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect("a panic aborts, so no lock is poisoned")
    }
}

/// Many readers or one writer, without poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(imp::RwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> Self {
        Self(imp::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("a panic aborts, so no lock is poisoned")
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("a panic aborts, so no lock is poisoned")
    }
}
