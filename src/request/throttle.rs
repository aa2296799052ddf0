//! Limits on the outstanding writes of all connections together (C-70, C-83, C-84, C-91..C-97, P-79).
//!
//! Only writes and syncs are outstanding for long enough to count: reads are answered by the connection's own task.
//!
//! * `globalOutstandingLimit` in requests, `oxkeeper.outstandingBytes` in bytes: above it, a connection that waits for a
//!   reply is not read. A connection that waits for none may always send a request, so no client is shut out, and a
//!   connection is only woken by its own replies.
//! * `request_throttle_max_requests`, and twice `oxkeeper.outstandingBytes`: above it, every write waits. A write that
//!   waited for too long is refused (-127).
//! * [`SNAPSHOT_SAVED_MAX`]: above it, every write waits for the snapshot thread.
//! * [`AUDIT_WAITING_MAX`]: above it, every write waits for the audit log's thread.
//! * `largeRequestMaxBytes`: above it, a large frame closes its connection.

use super::blue_throttle::Blue;
use super::limits::Limits;
use crate::model::sync::{AtomicU64, Mutex, Ordering};
use std::ops::AddAssign;
use std::task::Waker;

/// Bytes saved for a snapshot that its thread has not taken; above it every write waits. They are what writes change
/// before the snapshot has it.
pub const SNAPSHOT_SAVED_MAX: u64 = 64 << 20;

/// Bytes of events that the audit log's thread has not written; above it every write waits.
pub const AUDIT_WAITING_MAX: u64 = 16 << 20;

/// Counts over all connections.
#[derive(Default)]
pub struct Throttle {
    in_process: AtomicU64,
    bytes: AtomicU64,
    large_bytes: AtomicU64,
    snapshot_saved: AtomicU64,
    audit_waiting: AtomicU64,
    /// Connections whose next write waits.
    stalled: Mutex<Vec<Waker>>,
    blue: Mutex<Option<Blue>>,
    large_refused: AtomicU64,
}

/// The load of outstanding requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    pub requests: u64,
    /// Their bodies, the identities that each is forwarded with, and what entries `auth` add to their transactions.
    pub bytes: u64,
    /// Frames of those that count as large.
    pub large_bytes: u64,
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.large_bytes += other.large_bytes;
    }
}

impl Throttle {
    /// Outstanding writes and syncs.
    pub fn in_process(&self) -> u64 {
        self.in_process.load(Ordering::SeqCst)
    }

    /// Bytes of outstanding writes and syncs.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    pub(super) fn begin(&self, load: Load) {
        self.in_process.fetch_add(load.requests, Ordering::SeqCst);
        self.bytes.fetch_add(load.bytes, Ordering::SeqCst);
        if load.large_bytes > 0 {
            self.large_bytes.fetch_add(load.large_bytes, Ordering::SeqCst);
        }
    }

    /// Subtracts finished requests, and wakes the connections whose next write waits.
    pub fn end(&self, done: Load, wakers: &mut Vec<Waker>) {
        self.in_process.fetch_sub(done.requests, Ordering::SeqCst);
        self.bytes.fetch_sub(done.bytes, Ordering::SeqCst);
        if done.large_bytes > 0 {
            self.large_bytes.fetch_sub(done.large_bytes, Ordering::SeqCst);
        }
        wakers.append(&mut self.stalled.lock());
    }

    /// Notes how many bytes are saved for a snapshot, and wakes the connections whose next write waits if it need not any
    /// more. Call it under the tree's lock: the last call is then the last change.
    pub fn note_snapshot_saved(&self, bytes: u64, wakers: &mut Vec<Waker>) {
        // Connections read this cache line at each write, so it is not written needlessly: nearly always nothing is saved.
        if self.snapshot_saved.load(Ordering::SeqCst) == bytes {
            return;
        }
        let before = self.snapshot_saved.swap(bytes, Ordering::SeqCst);
        if bytes <= SNAPSHOT_SAVED_MAX && SNAPSHOT_SAVED_MAX < before {
            wakers.append(&mut self.stalled.lock());
        }
    }

    /// Notes that the audit log's thread has events of this many more bytes to write.
    pub fn audit_queued(&self, bytes: u64) {
        self.audit_waiting.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Notes that it has written this many, and wakes the connections whose next write waits if it need not any more.
    pub fn audit_written(&self, bytes: u64, wakers: &mut Vec<Waker>) {
        let before = self.audit_waiting.fetch_sub(bytes, Ordering::SeqCst);
        if before - bytes <= AUDIT_WAITING_MAX && AUDIT_WAITING_MAX < before {
            wakers.append(&mut self.stalled.lock());
        }
    }

    /// Asks to be woken when fewer writes are outstanding. `false`: they already are.
    pub(super) fn wait(&self, waker: &Waker, limits: &Limits) -> bool {
        let mut stalled = self.stalled.lock();
        if !stalled.iter().any(|other| other.will_wake(waker)) {
            stalled.push(waker.clone());
        }
        drop(stalled);
        // Read after the waker was added: a later `end` finds the waker.
        self.makes_all_wait(limits, Load::default())
    }

    /// Whether so much is outstanding, saved for a snapshot or not in the audit log yet that every further write waits.
    /// * `batched`: the load that is about to be handed over.
    pub(super) fn makes_all_wait(&self, limits: &Limits, batched: Load) -> bool {
        limits.requests_max.is_some_and(|max| max <= self.in_process() + batched.requests)
            || 2 * limits.outstanding_bytes_max <= self.bytes() + batched.bytes
            || SNAPSHOT_SAVED_MAX < self.snapshot_saved.load(Ordering::SeqCst)
            || AUDIT_WAITING_MAX < self.audit_waiting.load(Ordering::SeqCst)
    }

    /// Whether so much is outstanding that a connection which waits for a reply is not read.
    /// * `batched`: the load that is about to be handed over.
    pub(super) fn is_full(&self, limits: &Limits, batched: Load) -> bool {
        limits.outstanding_max <= self.in_process() + batched.requests
            || limits.outstanding_bytes_max <= self.bytes() + batched.bytes
    }

    /// Whether a frame of `len` bytes may be read.
    pub(super) fn has_room_for(&self, len: usize, limits: &Limits) -> bool {
        let fits = !limits.is_large(len)
            || self.large_bytes.load(Ordering::SeqCst) + len as u64 <= limits.large_bytes_max;
        if !fits {
            self.large_refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Large frames that were refused since the last call.
    pub(super) fn take_large_refused(&self) -> u64 {
        self.large_refused.swap(0, Ordering::Relaxed)
    }

    /// Tokens taken from the bucket, and the probability of refusal; both 0 without the settings.
    pub fn connects(&self, limits: &Limits) -> (i64, f64) {
        let Some(settings) = &limits.connects else { return (0, 0.0) };
        self.blue.lock().as_ref().map_or((0, 0.0), |blue| blue.state(settings))
    }

    /// Whether one more client may connect now; see [`Blue`].
    ///
    /// * `renews`: the client has a session already.
    pub(super) fn lets_in(&self, limits: &Limits, renews: bool, now_ms: u64) -> bool {
        let Some(settings) = &limits.connects else { return true };
        let mut blue = self.blue.lock();
        blue.get_or_insert_with(|| Blue::new(settings, now_ms)).lets_in(settings, renews, now_ms)
    }
}
