//! One client connection as a pure machine: bytes in, bytes out, commands to `replica` in between.

use super::expansion::expansion;
use super::lookahead::Ahead;
use super::outbox::{End, Found};
use super::phase::Phase;
use super::read::{self, Hold, Reading};
use super::sasl_exchange::Exchange;
use super::sliced_request::SlicedRequest;
use super::throttle::Load;
use super::write_request;
use super::{
    Batch, BatchedRequest, ClientCommand, ClientHandle, Counts, Namespaces, Need, Outgoing, Shared,
    reply,
};
use crate::model::sync::{Arc, Ordering};
use crate::model::{Code, Identity, SessionId, op};
use core::cell::RefCell;
use jute::Reader;
use jute::proto::RequestHeader;
use std::task::Waker;

/// One hold of the tree's lock answers at most this many requests...
const HOLD_REQUESTS_MAX: u32 = 64;
/// ...or this many bytes of replies.
const HOLD_REPLY_BYTES_MAX: usize = 256 * 1024;
/// A client with this much unsent is not read from.
const UNSENT_MAX: usize = 1024 * 1024;

/// Limit on a frame before there is a session, and before a required authentication: an identity of 64 KiB with its headers.
const FRAME_MAX_BEFORE_SESSION: usize = 65 * 1024;

/// A batch has room for more writes like its first one, within this many bytes.
const BATCH_ROOM_MAX: usize = 64 * 1024;

/// One whole request at the front of the input.
#[derive(Clone, Copy)]
struct Request<'b> {
    header: RequestHeader,
    /// Header and body, without the length before them.
    frame: &'b [u8],
}

impl<'b> Request<'b> {
    /// What follows the header.
    fn body(&self) -> &'b [u8] {
        &self.frame[8..]
    }

    /// Bytes in the input, the frame's length included.
    const fn len(&self) -> usize {
        4 + self.frame.len()
    }
}

/// The capacity of a new batch.
struct BatchRoom {
    requests: usize,
    body_bytes: usize,
}

/// Whether a write may be handed to `replica`.
enum Admission {
    Now,
    Later(Need),
    /// Answered already.
    Refused,
}

/// One client connection. Owned by the connection's task; other tasks and threads see its [`ClientHandle`].
pub struct Connection {
    pub(super) conn: Arc<ClientHandle>,
    pub(super) shared: Arc<Shared>,
    /// The connect request waits for a leader.
    pub(super) is_held: bool,
    /// A copy of the identities of `conn`, which is read without a lock: only this machine changes them.
    pub(super) identities: std::sync::Arc<[Identity]>,
    /// Bytes that `identities` adds to each forwarded request.
    pub(super) identities_bytes: usize,
    /// The client has yet to authenticate with a required scheme, and may do nothing else.
    pub(super) barred: bool,
    /// The client's SASL exchange, from its first token on.
    pub(super) exchange: Option<Box<Exchange>>,
    /// The progress of the request at the front of the input, if it has begun.
    begun: Option<SlicedRequest>,
    pub(super) phase: Phase,
    /// Writes and syncs handed to `replica` so far.
    asked: u64,
    /// Bytes at the front of the input that came before the last silent sync was sent: once it is answered, reads in these
    /// bytes see all that was committed before they came. No read waits without `oxkeeper.linearizableReads`.
    covered: usize,
    known: Found,
    /// Monotonic microseconds since which the next write waits because too many are outstanding.
    stalled_us: Option<u64>,
    /// Whether outstanding writes are all that the next write waits for.
    waits_for_outstanding: bool,
    /// The next write has waited for too long.
    late: bool,
    pub(super) timeout_ms: i32,
    /// To be sent, in order. Emptied by `net`.
    pub unsent: Outgoing,
    /// To be handed to `replica`, in order. Emptied by `net`.
    pub commands: Vec<ClientCommand>,
    pub counts: Counts,
    /// Reads, by namespace.
    pub spaces: Namespaces,
}

impl Connection {
    pub fn new(conn: Arc<ClientHandle>, shared: Arc<Shared>) -> Self {
        let identities = conn.identities();
        Self {
            barred: !shared.limits.schemes.is_authenticated(&identities),
            identities_bytes: identities_len(&identities),
            identities,
            is_held: false,
            exchange: None,
            begun: None,
            conn,
            shared,
            phase: Phase::Fresh,
            asked: 0,
            covered: 0,
            known: Found { answered: 0, session: None, end: End::Open },
            stalled_us: None,
            waits_for_outstanding: false,
            late: false,
            timeout_ms: 0,
            unsent: Outgoing::default(),
            commands: Vec::new(),
            counts: Counts::default(),
            spaces: Namespaces::default(),
        }
    }

    pub const fn conn(&self) -> &Arc<ClientHandle> {
        &self.conn
    }

    /// Large requests that were refused on any connection since the last call.
    pub fn take_large_refused(&self) -> u64 {
        self.shared.throttle.take_large_refused()
    }

    /// Writes handed to `replica` and not answered yet.
    pub const fn outstanding(&self) -> u64 {
        self.asked - self.known.answered
    }

    /// Asks to be woken when another task or thread has something for this connection. `false`: there is something already.
    pub fn wait(&self, waker: &Waker) -> bool {
        if self.waits_for_outstanding && !self.shared.throttle.wait(waker, &self.shared.limits) {
            return false;
        }
        // The waker is registered before `is_released` is read. A release changes that value before it takes the wakers, so
        // none is missed.
        self.conn.wait(waker, self.known, self.is_full())
            && !self.is_released()
            && !self.has_stepped()
    }

    /// Moves the contents of the outbox to `unsent`; nothing while `unsent` is full.
    pub fn collect(&mut self) {
        let full = self.is_full();
        self.known = self.conn.take(&mut self.unsent, full);
        if let (Phase::Connecting { resumes }, Some(session)) = (self.phase, self.known.session) {
            self.phase = Phase::Open(session);
            let timeout_ms = self.timeout_ms;
            let text = if resumes { "session resumed" } else { "session opened" };
            tracing::debug!(peer = %self.conn.peer, %session, timeout_ms, "{text}");
        }
    }

    /// While `unsent` is full, answers and events stay in the outbox, where events are counted against their limit.
    pub(super) const fn is_full(&self) -> bool {
        self.unsent.len() > UNSENT_MAX
    }

    /// Takes what it can off the front of `input`; returns how many bytes, and what it needs to go on.
    ///
    /// * `now_us`: monotonic microseconds at which `input` was read.
    pub fn advance(&mut self, input: &[u8], now_us: u64) -> (usize, Need) {
        self.collect();
        self.waits_for_outstanding = false;
        let mut taken = 0;
        let mut batch = None;
        let need = loop {
            if self.known.end == End::Now {
                self.unsent.clear();
                break Need::Close(String::new());
            }
            if self.known.end == End::AfterFlush {
                break Need::Close(String::new());
            }
            if self.is_full() {
                break Need::Room;
            }
            let rest = &input[taken..];
            match self.phase {
                Phase::Fresh => match self.first(rest, now_us) {
                    Ok(bytes) => taken += bytes,
                    Err(need) => break need,
                },
                Phase::Connecting { .. } | Phase::Ending => break Need::Answer,
                Phase::Authenticating(session) => match self.finish_step(session, now_us) {
                    Ok(true) => {}
                    Ok(false) => break Need::Answer,
                    Err(need) => break need,
                },
                Phase::Open(session) => {
                    let (bytes, need) = self.requests(session, rest, &mut batch, now_us);
                    taken += bytes;
                    self.covered = self.covered.saturating_sub(bytes);
                    if let Some(need) = need {
                        break need;
                    }
                }
            }
        };
        self.hand_over(&mut batch);
        self.conn.stats.set_asked(self.asked);
        let waits = matches!(self.phase, Phase::Open(_) | Phase::Authenticating(_))
            && matches!(need, Need::Answer | Need::FewerOutstanding | Need::Turn);
        self.conn.keep_waiting(waits);
        if let Need::Close(_) = need {
            self.phase = Phase::Ending;
        }
        (taken, need)
    }

    /// The whole frame at the front of `bytes`, without its length.
    pub(super) fn frame<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8], Need> {
        let Some(head) = bytes.first_chunk::<4>() else { return Err(Need::Bytes(4 - bytes.len())) };
        let len_raw = i32::from_be_bytes(*head);
        let frame_max = self.shared.limits.frame_max;
        let Some(len) = usize::try_from(len_raw).ok().filter(|&len| len <= frame_max) else {
            // No later frame boundary is known then, so the connection must be closed (P-01).
            return Err(Need::Close(match std::str::from_utf8(head) {
                // A mistyped four-letter word, or another protocol.
                Ok(text) if !text.contains(char::is_control) => format!(
                    "text \"{}\" where the length of a frame is expected; is it a misspelt four-letter word?",
                    text.escape_debug()
                ),
                _ if len_raw < 0 => format!(
                    "frame of {len_raw} bytes, a negative length: no client of ZooKeeper sends it; look at what dials this port"
                ),
                _ => format!(
                    "frame of {len_raw} bytes; jute.maxbuffer is {frame_max}: if the client is right, set -Djute.maxbuffer=BYTES on all servers and clients"
                ),
            }));
        };
        if !self.shared.throttle.has_room_for(len, &self.shared.limits) {
            return Err(Need::Close(format!(
                "{len} bytes, too much beside other large requests; raise largeRequestMaxBytes"
            )));
        }
        bytes.get(4..4 + len).ok_or_else(|| self.rest(len, bytes.len()))
    }

    /// What a frame of `len` bytes lacks when `had` bytes have come, its length field included. Until a client has a session and
    /// has authenticated, if that is required, memory is limited to [`FRAME_MAX_BEFORE_SESSION`].
    fn rest(&self, len: usize, had: usize) -> Need {
        let is_open = matches!(self.phase, Phase::Open(_) | Phase::Authenticating(_));
        if FRAME_MAX_BEFORE_SESSION < len && (!is_open || self.barred) {
            let what = if is_open { "authentication" } else { "session" };
            return Need::Close(format!(
                "frame of {len} bytes before {what}; at most {FRAME_MAX_BEFORE_SESSION}: check that client"
            ));
        }
        Need::Bytes(4 + len - had)
    }

    /// The whole request at the front of `bytes`.
    #[inline]
    fn request<'b>(&mut self, bytes: &'b [u8]) -> Result<Request<'b>, Need> {
        let frame = self.frame(bytes)?;
        match Reader::new(frame).read() {
            Ok(header) => Ok(Request { header, frame }),
            Err(_) => {
                self.counts.received(frame.len());
                Err(Need::Close("undecodable request header; check that client".into()))
            }
        }
    }

    /// Requests off the front of `bytes`: either writes, or the reads of one hold.
    fn requests(
        &mut self,
        session: SessionId,
        bytes: &[u8],
        batch: &mut Option<Batch>,
        now_us: u64,
    ) -> (usize, Option<Need>) {
        let mut taken = 0;
        loop {
            let request = match self.request(&bytes[taken..]) {
                Ok(request) => request,
                Err(need) => return (taken, Some(need)),
            };
            let header = request.header;
            match header.kind {
                kind if self.barred && !matches!(kind, op::AUTH | op::SASL) => {
                    return (taken, Some(self.bar(header, request.frame.len())));
                }
                _ if write_request::is_write(header.kind) => {
                    match self.admit(request, batch, now_us) {
                        Admission::Now => {}
                        Admission::Later(need) => return (taken, Some(need)),
                        Admission::Refused => {
                            taken += request.len();
                            continue;
                        }
                    }
                    taken += request.len();
                    self.write(session, request, batch, now_us);
                    if self.phase == Phase::Ending {
                        return (taken, Some(Need::Answer));
                    }
                }
                _ if read::is_read(header.kind) => {
                    // A read waits here for earlier writes. Those in `batch` count as outstanding already.
                    if self.is_uncovered(header.kind, taken) {
                        self.covered = bytes.len();
                        self.silent_sync(session, batch, now_us);
                    }
                    if self.outstanding() > 0 {
                        return (taken, Some(Need::Answer));
                    }
                    return self.reads(bytes, taken, request, now_us);
                }
                op::AUTH | op::SASL => {
                    // Earlier writes are checked without the identity that this request adds.
                    self.hand_over(batch);
                    if let Err(need) = self.identify(session, header, request.body()) {
                        return (taken, Some(need));
                    }
                    taken += request.len();
                    if self.phase != Phase::Open(session) {
                        return (taken, None);
                    }
                }
                kind => {
                    // As Java: refused on the spot, with zxid -1, and closed (P-60h).
                    self.counts.received(request.frame.len());
                    let header = reply::header(header.xid, -1, Code::UNIMPLEMENTED);
                    reply::put_uncounted(&mut self.unsent, header, |_| {});
                    return (
                        taken,
                        Some(Need::Close(format!(
                            "operation {kind} is not served; check that client's version"
                        ))),
                    );
                }
            }
        }
    }

    /// Whether the next write may be handed to `replica`.
    ///
    /// Source: `ZooKeeperServer.shouldThrottle`, `RequestThrottler`.
    fn admit(&mut self, request: Request<'_>, batch: &Option<Batch>, now_us: u64) -> Admission {
        let (limits, throttle) = (&self.shared.limits, &self.shared.throttle);
        let batched = batch.as_ref().map_or_else(Load::default, Batch::load);
        if self.outstanding() > 0 && throttle.is_full(limits, batched) {
            return Admission::Later(Need::Answer);
        }
        if throttle.makes_all_wait(limits, batched) {
            self.counts.stalls += u64::from(self.stalled_us.is_none());
            self.stalled_us.get_or_insert(now_us);
            // A batch that is not handed over yet is among the outstanding writes: waiting for these would be waiting for itself.
            self.waits_for_outstanding = batched.requests == 0;
            return Admission::Later(if self.waits_for_outstanding {
                Need::FewerOutstanding
            } else {
                Need::Turn
            });
        }
        if let Some(since_us) = self.stalled_us.take() {
            // If the session is already being closed, `replica` answers the request.
            let _late = self.heard(now_us);
            let waited_us = now_us.saturating_sub(since_us);
            if limits.drops_late && waited_us > u64::from(self.timeout_ms.unsigned_abs()) * 1000 {
                self.counts.outlived += 1;
                return Admission::Later(Need::Close("a request outlived its session; if it repeats, raise the client's session timeout".into()));
            }
            let can_be_late = request.header.kind != op::CLOSE_SESSION;
            self.late = can_be_late && limits.op_wait_max_us.is_some_and(|max| waited_us > max);
        }
        if !self.late {
            return Admission::Now;
        }
        // Refused in its place among the answers, like a read.
        if self.outstanding() > 0 {
            return Admission::Later(Need::Answer);
        }
        self.late = false;
        self.counts.received(request.frame.len());
        self.counts.answered += 1;
        self.counts.throttled += 1;
        let zxid = self.shared.state.tree.read().last_zxid().to_wire();
        let xid = request.header.xid;
        self.counts.last = (0, xid, zxid);
        let header = reply::header(xid, zxid, Code::THROTTLED_OP);
        reply::reply(&mut self.unsent, header, |_| {});
        Admission::Refused
    }

    /// Hands the writes so far to `replica`.
    fn hand_over(&mut self, batch: &mut Option<Batch>) {
        let Some(batch) = batch.take() else { return };
        self.shared.throttle.begin(batch.load());
        self.commands.push(ClientCommand::Writes(batch));
    }

    /// Puts a write into the batch for `replica`.
    fn write(
        &mut self,
        session: SessionId,
        request: Request<'_>,
        batch: &mut Option<Batch>,
        now_us: u64,
    ) {
        let Request { header, frame } = request;
        let body = request.body();
        let large = self.shared.limits.is_large(frame.len());
        let large_bytes = if large { frame.len() as u32 } else { 0 };
        self.counts.received(frame.len());
        self.asked += 1;
        // If the session is already being closed, `replica` answers the request.
        let _late = self.heard(now_us);
        let body_bytes = (body.len() * 16).min(BATCH_ROOM_MAX.max(body.len()));
        let room = BatchRoom { requests: 16, body_bytes };
        let added = expansion(&self.shared.limits, header.kind, body, &self.identities);
        let bytes = (body.len() + self.identities_bytes + added) as u32;
        let batch = self.batch(session, batch, now_us, room);
        batch.bytes.extend_from_slice(body);
        let end = batch.bytes.len();
        batch.push(BatchedRequest {
            xid: header.xid,
            op: header.kind,
            end,
            bytes,
            large_bytes,
            is_silent: false,
        });
        if header.kind == op::CLOSE_SESSION {
            self.phase = Phase::Ending; // Requests after it are not executed (P-77a).
        }
    }

    /// Whether a read, at this place in the input, has to wait for a silent sync. A read-only server has no leader to ask,
    /// and tells its clients that it is read-only.
    fn is_uncovered(&self, kind: i32, at: usize) -> bool {
        self.shared.limits.linearizable_reads
            && self.covered <= at
            && kind != op::PING
            && !self.shared.is_read_only.load(Ordering::Relaxed)
    }

    fn silent_sync(&mut self, session: SessionId, batch: &mut Option<Batch>, now_us: u64) {
        self.asked += 1;
        let batch = self.batch(session, batch, now_us, BatchRoom { requests: 1, body_bytes: 8 });
        jute::put_string(&mut batch.bytes, "/");
        let end = batch.bytes.len();
        batch.push(BatchedRequest {
            xid: 0,
            op: op::SYNC,
            end,
            bytes: 0,
            large_bytes: 0,
            is_silent: true,
        });
    }

    /// The batch that goes to `replica` at the end of this turn.
    fn batch<'b>(
        &self,
        session: SessionId,
        batch: &'b mut Option<Batch>,
        now_us: u64,
        room: BatchRoom,
    ) -> &'b mut Batch {
        batch.get_or_insert_with(|| Batch {
            bytes: Vec::with_capacity(room.body_bytes),
            requests: Vec::with_capacity(room.requests),
            ..Batch::new(self.conn.clone(), session, self.identities.clone(), now_us)
        })
    }

    /// Serves reads under one hold of the shared lock: values, watches and the places of the replies are one critical
    /// section.
    /// * `from`: where in `bytes` the reads begin.
    /// * `first`: the first of the reads. Returns where in `bytes` the served reads end.
    fn reads<'b>(
        &mut self,
        bytes: &'b [u8],
        from: usize,
        first: Request<'b>,
        now_us: u64,
    ) -> (usize, Option<Need>) {
        let shared = self.shared.clone();
        let tree = shared.state.tree.read();
        // What apply has put into the outbox until now comes before these reads. It can add nothing while this lock is held.
        self.collect();
        if self.known.end != End::Open {
            return (from, None); // The caller checks again, and finds the end.
        }
        if !self.heard(now_us) {
            return (from, Some(Need::Answer)); // Its session is about to be closed, and the connection with it.
        }
        let (mut taken, mut served, mut ahead) = (from, 0, Ahead::new());
        let mut first = Some(first);
        let before = self.unsent.len();
        let last_zxid = tree.last_zxid().to_wire();
        let (spaces, hold) = (RefCell::new(std::mem::take(&mut self.spaces)), Hold::default());
        let need = loop {
            let is_full = self.unsent.len() - before >= HOLD_REPLY_BYTES_MAX;
            if served == HOLD_REQUESTS_MAX || is_full || hold.is_spent() {
                break Some(Need::Turn);
            }
            let next = first.take().map_or_else(|| self.request(&bytes[taken..]), Ok);
            let request = match next {
                Ok(request) => request,
                Err(need) => break Some(need),
            };
            let header = request.header;
            if !read::is_read(header.kind) || self.is_uncovered(header.kind, taken) {
                break None;
            }
            let likely = ahead.next(&tree, &bytes[taken..]);
            let reading = Reading {
                shared: &shared,
                tree: &tree,
                conn: &self.conn,
                identities: &self.identities,
                likely,
                spaces: &spaces,
                hold: &hold,
            };
            if !reading.serve(header, request.body(), &mut self.begun, &mut self.unsent) {
                break Some(Need::Turn);
            }
            taken += request.len();
            served += 1;
            self.counts.last = (header.kind, header.xid, last_zxid);
        };
        hold.end(tree, &mut self.unsent);
        self.spaces = spaces.into_inner();
        self.counts.received += u64::from(served);
        self.counts.received_bytes += (taken - from) as u64;
        self.counts.answered += u64::from(served);
        (taken, need)
    }

    /// Notes that the client was heard. `false`: too late, the session is already being closed.
    ///
    /// * `now_us`: when the request was read; ticks may be counted later, as after the process was stopped.
    pub(super) fn heard(&self, now_us: u64) -> bool {
        self.conn.heard(self.shared.ms_at(now_us))
    }

    /// The connection has ended: its watches are removed, then its id is freed.
    pub fn end(&mut self) {
        if let Some(session) = self.known.session {
            tracing::debug!(peer = %self.conn.peer, %session, "client disconnected");
        }
        let mut wakers = Vec::new();
        self.conn.keep_waiting(false);
        self.conn.close(&mut wakers);
        {
            let _tree = self.shared.state.tree.read();
            self.shared.state.watches.remove_watcher(self.conn.id);
        }
        self.shared.conns.remove(self.conn.id);
        self.commands.push(ClientCommand::Gone { conn: self.conn.clone() });
    }
}

/// Bytes that identities add to a forwarded request.
pub fn identities_len(identities: &[Identity]) -> usize {
    identities.iter().map(|identity| 8 + identity.text_len()).sum()
}
