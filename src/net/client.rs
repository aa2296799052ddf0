//! One client connection's socket: moves bytes between it and the connection's state machine.

use super::client_slot::{Slot, SlotClient, Turned};
use super::sasl_steps;
use super::sink::Sink;
use super::transport::Transport;
use super::words::{WordRequest, Words};
use crate::metrics::{Registry, Samples, SizeValues};
use crate::request::{Answered, ClientCommand, Connection, EnsembleCounts, Need, Outgoing};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;

/// Bytes read in one turn.
const READ_BYTES: usize = 64 * 1024;
/// A thread's buffer for replies grows to this and no further.
const SPARE_BYTES_MAX: usize = 1024 * 1024;
/// How long the client of a connection that is closed has to read its last replies, or a piece of an answer to a four-letter word.
const LAST_REPLIES_MAX: Duration = Duration::from_secs(5);
/// How long bytes of a closed connection are still read, so that its last reply is not lost to a reset.
const DRAIN: Duration = Duration::from_millis(200);

/// Java sends answers of four-letter words in pieces of this many characters, and counts each as a packet.
const WORD_PACKET_BYTES: usize = 8192;

/// What connections need of the server.
#[derive(Clone)]
pub struct ServerHandles {
    pub commands: Sink<ClientCommand>,
    pub words: Arc<Words>,
    pub metrics: Arc<Registry>,
    /// Zero of the monotonic clock.
    pub epoch: Instant,
}

thread_local! {
    // Idle connections hold no buffers: the bytes of a turn pass through these.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Serves one connection to its end.
///
/// * `held`: bytes that were read already. `place`: dropped when the connection no longer counts against the limits, which is before
///   the client can see its end.
pub(super) fn serve<S: Transport, P: Send + 'static>(
    stream: S,
    machine: Connection,
    held: Vec<u8>,
    server: ServerHandles,
    place: P,
) -> impl Future<Output = ()> + Send + use<S, P> {
    let slot = Slot::owned(Client {
        stream,
        machine,
        server,
        // With bytes in hand the first turn comes at once.
        need: if held.is_empty() { Need::Bytes(1) } else { Need::Turn },
        held,
        sent: 0,
        turn_us: 0,
        place: Some(place),
    });
    async move {
        let ended = slot.run().await;
        // Boxed: a future within this one would take memory for as long as the connection lives.
        if let Some(end) = slot.take().map(|client| Box::pin(end(client, ended))) {
            end.await;
        }
    }
}

async fn end<S: Transport, P: Send + 'static>(mut client: Client<S, P>, ended: io::Result<()>) {
    let ended = if ended.is_ok() { client.finish().await } else { ended };
    if let Err(error) = ended {
        tracing::debug!(peer = %client.machine.conn().peer, %error, "client connection");
    }
    client.leave();
}

/// Moves the bytes of one connection.
struct Client<S, P> {
    stream: S,
    machine: Connection,
    server: ServerHandles,
    /// Bytes that were read and that the machine has not taken yet.
    held: Vec<u8>,
    /// How many of the machine's unsent bytes were written already.
    sent: usize,
    need: Need,
    /// Monotonic microseconds at which the turn began.
    turn_us: u64,
    /// The place in the count of connections; `None` once the connection has left.
    place: Option<P>,
}

impl<S: Transport, P: Send + 'static> SlotClient for Client<S, P> {
    fn poll_turn(&mut self, cx: &mut Context<'_>, waker: &Waker) -> Poll<io::Result<Turned>> {
        // A reply on another thread may have found the end already.
        if !matches!(self.need, Need::Word(_) | Need::Close(_)) {
            ready!(self.poll_ready(cx, waker));
            if !self.turn(cx)? {
                return Poll::Ready(Ok(Turned::Left));
            }
        }
        Poll::Ready(Ok(match self.need {
            Need::Turn => Turned::Again,
            Need::Word(_) | Need::Close(_) => Turned::Ends,
            Need::Answer => {
                if let Some(step) = self.machine.take_step(self.now_us()) {
                    sasl_steps::start(step, self.server.epoch, waker.clone());
                }
                Turned::Waits
            }
            Need::Bytes(_) | Need::Room | Need::FewerOutstanding => Turned::Waits,
        }))
    }

    fn reply(&mut self, waker: &Waker) -> bool {
        let is_idle = matches!(self.need, Need::Bytes(_));
        if !is_idle || !self.held.is_empty() || !self.machine.unsent.is_empty() {
            return false;
        }
        self.take_spare();
        self.turn_us = self.now_us();
        (_, self.need) = self.machine.advance(&[], self.turn_us);
        self.hand_over();
        let is_sent = self.write().is_ok() && self.machine.unsent.is_empty();
        self.publish();
        is_sent && matches!(self.need, Need::Bytes(_)) && self.machine.wait(waker)
    }
}

impl<S: Transport, P> Client<S, P> {
    /// Sends the last bytes to a client that is not read from any more, and closes the connection.
    async fn finish(&mut self) -> io::Result<()> {
        match &self.need {
            Need::Word(word) => self.answer(*word).await?,
            Need::Close(reason) => {
                if !reason.is_empty() {
                    tracing::warn!(target: crate::model::STRANGERS, peer = %self.machine.conn().peer, "connection closed: {reason}");
                }
                tokio::time::timeout(LAST_REPLIES_MAX, self.send_rest()).await??;
            }
            _ => return Ok(()), // The client has left.
        }
        self.close().await
    }

    /// Answers a four-letter word.
    ///
    /// Source: `NIOServerCnxn.checkFourLetterWord`: a four-letter word is a packet of four bytes.
    async fn answer(&mut self, word: [u8; 4]) -> io::Result<()> {
        let stats = &self.machine.conn().stats;
        self.server.metrics.packets_received.increment();
        self.server.metrics.bytes_received_count.add(4);
        stats.add_received(1);
        stats.set_interest(false, false); // As Java, which reads no more from such a connection.
        let (peer, rest) = (self.machine.conn().peer, self.held.split_off(4));
        let at_secure_port = self.machine.conn().at_secure_port;
        let answer = (self.server.words)(WordRequest { word, rest, peer, at_secure_port }).await;
        let mut len = 0;
        for piece in answer {
            len += piece.len();
            let mut out = Outgoing::default();
            out.bytes = piece;
            tokio::time::timeout(LAST_REPLIES_MAX, self.send_all(&out)).await??;
            // The next piece takes a while to make, and the socket may have room for it.
            tokio::task::yield_now().await;
        }
        let packets = len.div_ceil(WORD_PACKET_BYTES) as u64;
        self.server.metrics.packets_sent.add(packets);
        Ok(())
    }

    /// Ready when there are bytes that the machine wants to read, room to write, events and replies from other threads, or when the
    /// machine's deadline has come.
    fn poll_ready(&self, cx: &mut Context<'_>, waker: &Waker) -> Poll<()> {
        let wants_bytes = matches!(self.need, Need::Bytes(_));
        // A connection that waited for room goes on once everything is sent, as its last turn may have done.
        let has_room = self.need == Need::Room && self.machine.unsent.is_empty();
        if self.need == Need::Turn
            || has_room
            || !self.machine.wait(waker)
            || (wants_bytes && self.stream.is_readable(cx))
            || (!self.machine.unsent.is_empty()
                && self.stream.socket().poll_write_ready(cx).is_ready())
            || self.machine.deadline_us().is_some_and(|at_us| at_us <= self.now_us())
        {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// One turn: reads once, advances the machine, hands over its commands, writes its replies. `false`: the client has closed.
    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        self.take_spare();
        let open = READ.with_borrow_mut(|buffer| self.read_and_advance(buffer, cx))?;
        self.hand_over();
        self.write()?;
        self.publish();
        Ok(open)
    }

    fn take_spare(&mut self) {
        if self.machine.unsent.bytes.capacity() == 0 {
            self.machine.unsent.bytes = SPARE.take();
        }
    }

    fn read_and_advance(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> io::Result<bool> {
        let now_us = self.now_us();
        self.turn_us = now_us;
        let mut read = 0;
        if matches!(self.need, Need::Bytes(_)) {
            let mut into = ReadBuf::new(buffer);
            // Polled, not tried: when a read does not fill the buffer, tokio counts the socket as drained until epoll says
            // otherwise, while `try_read` would have the next turn ask the kernel once more in vain.
            match self.stream.poll_read(cx, &mut into)? {
                Poll::Ready(()) if into.filled().is_empty() => {
                    self.server.metrics.connection_drop_count.increment();
                    return Ok(false);
                }
                Poll::Ready(()) => read = into.filled().len(),
                Poll::Pending => {}
            }
        }
        if self.held.is_empty() {
            let (taken, need) = self.machine.advance(&buffer[..read], now_us);
            self.held.extend_from_slice(&buffer[taken..read]);
            self.need = need;
        } else {
            self.held.extend_from_slice(&buffer[..read]);
            let (taken, need) = self.machine.advance(&self.held, now_us);
            self.held.drain(..taken);
            self.need = need;
        }
        if self.held.is_empty() && self.held.capacity() > 0 {
            self.held = Vec::new();
        }
        Ok(true)
    }

    /// Takes the connection out of the count, and removes its watches.
    fn leave(&mut self) {
        if self.place.take().is_some() {
            self.machine.end();
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        for command in self.machine.commands.drain(..) {
            self.server.commands.put(command);
        }
    }

    /// Writes as much as the socket takes.
    fn write(&mut self) -> io::Result<()> {
        let unsent = &mut self.machine.unsent;
        while self.sent < unsent.len() {
            match self.stream.write_some(unsent, self.sent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        let tally = unsent.tally;
        unsent.clear();
        let spare = std::mem::take(&mut unsent.bytes);
        if spare.capacity() <= SPARE_BYTES_MAX {
            SPARE.set(spare);
        }
        if tally.packets > 0 {
            let metrics = &self.server.metrics;
            self.machine.conn().stats.add_sent(tally.packets);
            metrics.packets_sent.add(tally.packets);
            metrics.response_bytes.add(tally.answer_bytes);
            if tally.event_bytes > 0 {
                metrics.watch_bytes.add(tally.event_bytes);
            }
            if let Some(sizes) = tally.sizes {
                let (last, min, max) = (sizes.last.into(), sizes.min.into(), sizes.max.into());
                metrics.client_response_size.record(SizeValues { last, min, max }, self.turn_us);
            }
        }
        Ok(())
    }

    async fn send_rest(&mut self) -> io::Result<()> {
        while !self.machine.unsent.is_empty() {
            self.stream.socket().writable().await?;
            self.write()?;
        }
        Ok(())
    }

    /// Sends bytes that the machine knows nothing of.
    async fn send_all(&mut self, bytes: &Outgoing) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write_some(bytes, sent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.socket().writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes the connection so that the last bytes arrive: this end is shut down first, and what the client still sends is read.
    async fn close(&mut self) -> io::Result<()> {
        // As in Java, a client that sees the end and reconnects finds this connection gone.
        self.leave();
        self.stream.shut_down()?;
        let socket = self.stream.socket();
        let drain = async {
            loop {
                socket.readable().await?;
                // Not into a buffer of this future: every connection would hold it for all of its life.
                match READ.with_borrow_mut(|buffer| socket.try_read(buffer)) {
                    Ok(0) => return io::Result::Ok(()),
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(DRAIN, drain).await?
    }

    fn publish(&mut self) {
        let counts = std::mem::take(&mut self.machine.counts);
        let stats = &self.machine.conn().stats;
        let reads = matches!(self.need, Need::Bytes(_));
        stats.set_interest(reads, !self.machine.unsent.is_empty());
        let metrics = &self.server.metrics;
        if let Need::Close(_) = self.need {
            metrics.large_requests_rejected.add(self.machine.take_large_refused());
            metrics.stale_requests_dropped.add(counts.outlived);
        }
        if counts.stalls > 0 {
            metrics.request_throttle_wait_count.add(counts.stalls);
        }
        if counts.received == 0 {
            return;
        }
        metrics.packets_received.add(counts.received);
        metrics.bytes_received_count.add(counts.received_bytes);
        stats.add_received(counts.received);
        if counts.ensemble != EnsembleCounts::default() {
            metrics.ensemble_auth_success.add(counts.ensemble.succeeded);
            metrics.ensemble_auth_fail.add(counts.ensemble.failed);
            metrics.ensemble_auth_skip.add(counts.ensemble.skipped);
        }
        if counts.connects > 0 {
            metrics.connection_request_count.add(counts.connects);
            metrics.connection_revalidate_count.add(counts.revalidations);
            metrics.connection_token_deficit.record_many(counts.token_deficit, counts.connects);
        }
        if counts.refused > 0 {
            metrics.connection_rejected.add(counts.refused);
        }
        if counts.throttled > 0 {
            metrics.throttled_ops.add(counts.throttled);
        }
        if counts.answered == 0 {
            return;
        }
        let (op, xid, zxid) = counts.last;
        let (began_us, ended_us) = (self.turn_us, self.server.epoch.elapsed().as_micros() as u64);
        stats.note(Answered { op, xid, zxid, count: counts.answered, began_us, ended_us });
        let took_us = ended_us - began_us;
        metrics.read_times.record(took_us, counts.answered);
        let took_ms = took_us as i64 / 1000;
        metrics.request_latency.record_many(took_ms, counts.answered);
        metrics.readlatency.record_many(took_ms, counts.answered);
        self.machine.spaces.publish(|space| {
            let samples = Samples {
                count: space.count,
                sum: space.sum_bytes as i64,
                min: space.min_bytes as i64,
                max: space.max_bytes as i64,
            };
            metrics.read_per_namespace.record(&space.name, &samples);
        });
    }

    fn now_us(&self) -> u64 {
        self.server.epoch.elapsed().as_micros() as u64
    }
}
