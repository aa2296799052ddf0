//! The bytes for a client: a connection's only queue, filled by reads and by `replica`, emptied by `net`.

use super::ConnStats;
use super::frame_counts::{FrameKind, Tally};
use crate::model::sync::{AtomicU64, Mutex, Ordering};
use crate::model::{Code, Identity, SessionId};
use crate::tree::WatcherId;
use bytes::Bytes;
use core::net::SocketAddr;
use jute::Encode;
use jute::proto::ReplyHeader;
use std::sync::Arc;
use std::task::Waker;

/// Events that a client has not read may fill its outbox to this many times the largest frame; then it is closed.
const EVENT_FRAMES_MAX: usize = 4;

/// A frame's length is an i32.
const FRAME_MAX: usize = i32::MAX as usize;

/// Bit of [`ClientHandle::heard_ms`]: the session is being ended.
const ENDED: u64 = 1 << 63;

/// An empty outbox keeps a buffer of at most this size for the next replies.
const KEPT_BYTES_MAX: usize = 4096;

/// Bytes on their way out, with large znode data shared instead of copied.
#[derive(Debug, Default)]
pub struct Outgoing {
    pub bytes: Vec<u8>,
    /// Pieces to be sent in between: each stands before `bytes[at]`, in rising order of `at`.
    pub shared: Vec<(usize, Bytes)>,
    shared_len: usize,
    /// Counts of the frames in it.
    pub tally: Tally,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    len: usize,
    shared: usize,
    shared_len: usize,
    tally: Tally,
}

impl Outgoing {
    /// Bytes in all.
    pub const fn len(&self) -> usize {
        self.bytes.len() + self.shared_len
    }

    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shared.is_empty()
    }

    /// Appends a piece.
    pub fn share(&mut self, piece: Bytes) {
        self.shared_len += piece.len();
        self.shared.push((self.bytes.len(), piece));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        self.shared_len = 0;
        self.tally = Tally::default();
    }

    /// Appends all of `other`, and leaves it empty.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() && self.bytes.capacity() == 0 {
            std::mem::swap(self, other);
            return;
        }
        let before = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.shared.extend(other.shared.drain(..).map(|(at, piece)| (before + at, piece)));
        self.shared_len += std::mem::take(&mut other.shared_len);
        self.tally.append(std::mem::take(&mut other.tally));
    }

    /// Appends the frame of an answer; `body` may [`share`](Self::share) pieces. If `body` refuses, or the frame is
    /// longer than its length field can say (-5), nothing is appended.
    ///
    /// # Errors
    /// The code to answer instead.
    #[inline]
    pub fn frame(
        &mut self,
        kind: FrameKind,
        header: ReplyHeader,
        body: impl FnOnce(&mut Self) -> Result<(), Code>,
    ) -> Result<(), Code> {
        self.frame_within(FRAME_MAX, kind, header, body)
    }

    #[inline]
    fn frame_within(
        &mut self,
        max: usize,
        kind: FrameKind,
        header: ReplyHeader,
        body: impl FnOnce(&mut Self) -> Result<(), Code>,
    ) -> Result<(), Code> {
        let (mark, start, before) = (self.mark(), self.bytes.len(), self.len());
        self.bytes.extend_from_slice(&[0; 4]);
        header.encode(&mut self.bytes);
        let built = body(self);
        let len = self.len() - before - 4;
        if let Err(code) = built.and(if len <= max { Ok(()) } else { Err(Code::MARSHALLING_ERROR) })
        {
            self.truncate(mark);
            return Err(code);
        }
        self.bytes[start..start + 4].copy_from_slice(&(len as i32).to_be_bytes());
        self.tally.note(kind, len);
        Ok(())
    }

    /// Counts the last frame, which begins at `from`.
    pub(super) fn noted(&mut self, kind: FrameKind, from: usize) {
        self.tally.note(kind, self.bytes.len() - from - 4);
    }

    pub(super) const fn mark(&self) -> Mark {
        let (len, shared, shared_len) = (self.bytes.len(), self.shared.len(), self.shared_len);
        Mark { len, shared, shared_len, tally: self.tally }
    }

    /// Undoes everything appended since the mark.
    pub(super) fn truncate(&mut self, mark: Mark) {
        self.bytes.truncate(mark.len);
        self.shared.truncate(mark.shared);
        self.shared_len = mark.shared_len;
        self.tally = mark.tally;
    }
}

/// A connection as other tasks and threads see it: its outbox, and its client's identities.
pub struct ClientHandle {
    pub id: WatcherId,
    pub peer: SocketAddr,
    /// It was accepted at the secure client port, whose connections four-letter words show apart from the others.
    pub at_secure_port: bool,
    /// The connect request had the readOnly byte, so the answer has it too (P-11).
    wants_read_only: AtomicU64,
    /// Monotonic milliseconds at which the client was last heard.
    heard_ms: AtomicU64,
    /// A request of the client has come and waits for this server; the connection is not read meanwhile.
    is_kept_waiting: AtomicU64,
    outbox: Mutex<Outbox>,
    /// The client's identities. Replaced as a whole, so that each check uses one state of them.
    identities: Mutex<Arc<[Identity]>>,
    /// Monotonic milliseconds at which it was accepted.
    pub opened_ms: u64,
    pub stats: ConnStats,
}

#[derive(Default)]
struct Outbox {
    out: Outgoing,
    event_bytes: usize,
    /// Writes and syncs answered so far.
    answered: u64,
    session: Option<SessionId>,
    end: End,
    waker: Option<Waker>,
}

/// Whether and how the connection ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum End {
    #[default]
    Open,
    /// Once everything is sent.
    AfterFlush,
    /// At once; what is left is dropped.
    Now,
}

/// What the connection's own machine finds in its outbox.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub answered: u64,
    pub session: Option<SessionId>,
    pub end: End,
}

impl ClientHandle {
    pub fn new(id: WatcherId, peer: SocketAddr, now_ms: u64) -> Self {
        let address = crate::auth::ip_text(peer.ip());
        Self {
            id,
            peer,
            at_secure_port: false,
            wants_read_only: AtomicU64::new(0),
            heard_ms: AtomicU64::new(now_ms),
            is_kept_waiting: AtomicU64::new(0),
            outbox: Mutex::default(),
            identities: Mutex::new([Identity::new("ip", &address)].into()),
            opened_ms: now_ms,
            stats: ConnStats::default(),
        }
    }

    /// Adds the identities that the client has by its certificate, before the connection is used.
    pub fn identified(self, proved: impl IntoIterator<Item = Identity>) -> Self {
        let identities: Arc<[Identity]> = self.identities().iter().cloned().chain(proved).collect();
        self.set_identities(identities);
        self
    }

    /// The same connection at the secure client port.
    pub fn at_secure_port(self) -> Self {
        Self { at_secure_port: true, ..self }
    }

    /// The identities that the client has authenticated so far.
    pub fn identities(&self) -> Arc<[Identity]> {
        self.identities.lock().clone()
    }

    /// Replaces the client's identities; only the connection's own machine does.
    pub(super) fn set_identities(&self, identities: Arc<[Identity]>) {
        *self.identities.lock() = identities;
    }

    /// Notes that the client was heard. `false`: too late, the session's end is decided.
    pub fn heard(&self, now_ms: u64) -> bool {
        let before = self.heard_ms.load(Ordering::Relaxed);
        // Only the connection's own task and the thread that ends the session change it.
        let after = now_ms.max(before);
        before & ENDED == 0
            && self
                .heard_ms
                .compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Decides the end of a session that was last heard at `heard_ms`. `false`: it was heard again (P-21).
    pub(super) fn end_unless_heard(&self, heard_ms: u64) -> bool {
        let ended = heard_ms | ENDED;
        self.heard_ms
            .compare_exchange(heard_ms, ended, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Monotonic milliseconds at which the client was last heard.
    pub fn heard_ms(&self) -> u64 {
        self.heard_ms.load(Ordering::Relaxed) & !ENDED
    }

    /// Notes whether the client is kept waiting.
    ///
    /// * `waits`: a request of the client waits for this server, and the connection is not read: pings of the client may
    ///   have come, and are not heard.
    pub(super) fn keep_waiting(&self, waits: bool) {
        // Only the connection's own task changes it, and hardly ever.
        if self.is_kept_waiting.load(Ordering::Relaxed) != u64::from(waits) {
            // Stored after `heard_ms` was set when the request was taken.
            self.is_kept_waiting.store(u64::from(waits), Ordering::Release);
        }
    }

    /// Whether the client is kept waiting, and so counts as heard. Read it before [`Self::heard_ms`].
    pub fn is_kept_waiting(&self) -> bool {
        self.is_kept_waiting.load(Ordering::Acquire) != 0
    }

    pub fn set_wants_read_only(&self, wants: bool) {
        self.wants_read_only.store(u64::from(wants), Ordering::Relaxed);
    }

    pub fn wants_read_only(&self) -> bool {
        self.wants_read_only.load(Ordering::Relaxed) != 0
    }

    /// The session, once there is one.
    pub fn session(&self) -> Option<SessionId> {
        self.outbox.lock().session
    }

    /// Appends an event that is already a frame. `false`: so much is unsent that the connection was closed.
    pub fn push_event(&self, frame: &[u8], frame_max: usize, wakers: &mut Vec<Waker>) -> bool {
        let mut outbox = self.outbox.lock();
        if outbox.end != End::Open {
            return true;
        }
        outbox.out.bytes.extend_from_slice(frame);
        outbox.out.tally.note(FrameKind::Event, frame.len() - 4);
        outbox.event_bytes += frame.len();
        let fits = outbox.event_bytes <= EVENT_FRAMES_MAX * frame_max;
        if !fits {
            outbox.end = End::Now;
        }
        wakers.extend(outbox.waker.take());
        fits
    }

    /// Writes and syncs that were handed over and are not answered yet.
    pub fn outstanding(&self) -> u64 {
        self.stats.figures().asked.saturating_sub(self.outbox.lock().answered)
    }

    /// Appends the answer to a write or sync.
    pub fn push_answer(&self, wakers: &mut Vec<Waker>, answer: impl FnOnce(&mut Outgoing)) {
        let mut outbox = self.outbox.lock();
        outbox.answered += 1;
        if outbox.end == End::Open {
            answer(&mut outbox.out);
        }
        wakers.extend(outbox.waker.take());
    }

    /// Appends the answer to the connect request; from here on the connection has `session`.
    pub fn push_welcome(
        &self,
        session: SessionId,
        wakers: &mut Vec<Waker>,
        answer: impl FnOnce(&mut Outgoing),
    ) {
        let mut outbox = self.outbox.lock();
        if outbox.end == End::Open {
            outbox.session = Some(session);
            answer(&mut outbox.out);
        }
        wakers.extend(outbox.waker.take());
    }

    /// Appends a last answer and closes the connection after it.
    pub fn push_farewell(&self, wakers: &mut Vec<Waker>, answer: impl FnOnce(&mut Outgoing)) {
        let mut outbox = self.outbox.lock();
        if outbox.end == End::Open {
            answer(&mut outbox.out);
            outbox.end = End::AfterFlush;
        }
        wakers.extend(outbox.waker.take());
    }

    /// Closes once everything that is waiting has been sent.
    pub fn close_after_sending(&self, wakers: &mut Vec<Waker>) {
        let mut outbox = self.outbox.lock();
        if outbox.end == End::Open {
            outbox.end = End::AfterFlush;
        }
        wakers.extend(outbox.waker.take());
    }

    /// Gives the connection a turn.
    pub fn wake(&self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.outbox.lock().waker.take());
    }

    /// Closes at once, dropping what was not sent.
    pub fn close(&self, wakers: &mut Vec<Waker>) {
        let mut outbox = self.outbox.lock();
        outbox.end = End::Now;
        outbox.out = Outgoing::default();
        self.stats.set_gone();
        wakers.extend(outbox.waker.take());
    }

    /// Appends what is waiting to `to`, unless that is `full`.
    pub(super) fn take(&self, to: &mut Outgoing, full: bool) -> Found {
        let mut outbox = self.outbox.lock();
        if !full && !outbox.out.is_empty() {
            outbox.event_bytes = 0;
            to.append(&mut outbox.out);
            if outbox.out.bytes.capacity() > KEPT_BYTES_MAX {
                outbox.out.bytes = Vec::new(); // An idle session must stay small.
            }
        }
        Found { answered: outbox.answered, session: outbox.session, end: outbox.end }
    }

    /// Asks to be woken by the next change. `false`: there are bytes to take already, and the
    /// machine is not `full`, or something else has changed since `known`.
    pub(super) fn wait(&self, waker: &Waker, known: Found, full: bool) -> bool {
        let mut outbox = self.outbox.lock();
        let now = Found { answered: outbox.answered, session: outbox.session, end: outbox.end };
        if (!full && !outbox.out.is_empty()) || now != known {
            return false;
        }
        if !outbox.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            outbox.waker = Some(waker.clone());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_above_the_largest_length_is_not_appended() {
        let header = ReplyHeader { xid: 1, zxid: 2, err: 0 };
        let put = |out: &mut Outgoing, copied: usize, shared: usize| {
            out.frame_within(1000, FrameKind::Answer, header, |out| {
                out.bytes.extend(std::iter::repeat_n(7, copied));
                out.share(vec![8; shared].into());
                Ok(())
            })
        };
        let mut out = Outgoing::default();
        assert_eq!(put(&mut out, 484, 500), Ok(()));
        let (len, packets) = (out.len(), out.tally.packets);
        assert_eq!((len, packets), (1004, 1));
        assert_eq!(put(&mut out, 484, 501), Err(Code::MARSHALLING_ERROR));
        assert_eq!(put(&mut out, 985, 0), Err(Code::MARSHALLING_ERROR));
        assert_eq!((out.len(), out.shared.len(), out.tally.packets), (len, 1, packets));
    }
}
