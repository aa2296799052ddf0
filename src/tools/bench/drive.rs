//! The sockets of a run: threads that move bytes between servers and the connections' loads.
//!
//! Each thread opens its connections one after the other, waits for the start that all threads share, and then runs its loads
//! on a runtime of its own. A connection that breaks is opened again for the same session; operations that were under way on it
//! are counted as never answered.

use super::connection_load::{ConnectionLoad, LoadError, Plan};
use super::record::{Recorder, Slice, TICK_US};
use super::security::{BenchSocket, BenchStream, Security, Server};
use crate::client::{ClientError, ConnectRequest, put_request};
use crate::model::op;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::LocalSet;

/// Bytes read in one turn.
const READ_BYTES: usize = 16 * 1024;
/// Largest answer that is read: a bound against a peer that speaks another protocol.
const FRAME_LEN_MAX: usize = 64 << 20;
/// How long answers are waited for after the last request.
const GRACE_US: u64 = 10_000_000;
/// Pause between attempts to connect again.
const RETRY: Duration = Duration::from_millis(100);
/// How long a server may take for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a server may take to end a session.
const LAST_REPLIES_MAX: Duration = Duration::from_secs(2);

/// A message of a thread to the run.
pub enum ThreadMessage {
    /// One more connection is open.
    Connected,
    /// A connection could not be opened: the thread has ended.
    Failed {
        server: SocketAddr,
        error: ClientError,
    },
    Slice(Box<Slice>),
}

/// A thread's share of the run.
pub struct Share {
    pub plan: Arc<Plan>,
    /// Numbers of its connections, of all `connections`.
    pub numbers: Vec<u32>,
    pub connections: u32,
    pub security: Arc<Security>,
    pub servers: Arc<[Server]>,
    pub session_timeout_ms: i32,
    pub seed: u64,
    /// When the last request may be sent, in microseconds since the start; may be moved to an earlier time.
    pub end_us: Arc<AtomicU64>,
}

/// Runs a share to its end. `start`: receives the time of the start, once all threads are connected; a closed channel cancels the run.
pub fn work(share: Share, news: UnboundedSender<ThreadMessage>, start: &Receiver<Instant>) {
    let mut ready = Vec::with_capacity(share.numbers.len());
    for &number in &share.numbers {
        let server = &share.servers[number as usize % share.servers.len()];
        match Session::open(&share.security, server, share.session_timeout_ms) {
            Ok(session) => ready.push((number, session)),
            Err(error) => {
                let failed = ThreadMessage::Failed { server: server.addr, error };
                let _nobody_waits = news.send(failed);
                return;
            }
        }
        let _nobody_waits = news.send(ThreadMessage::Connected);
    }
    let Ok(began) = start.recv() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system has an epoll for each thread");
    let recorder = RefCell::new(Recorder::new(share.plan.warm_up_us));
    let thread = Rc::new(Thread { share, began, recorder, news });
    let loads = LocalSet::new();
    for (number, session) in ready {
        let share = &thread.share;
        let load = ConnectionLoad::new(share.plan.clone(), number, share.connections, share.seed);
        loads.spawn_local(drive(load, session, thread.clone()));
    }
    let ticker = loads.run_until(async {
        // Reports what was counted even if no answer comes.
        let mut timer = tokio::time::interval(Duration::from_micros(TICK_US));
        loop {
            timer.tick().await;
            thread.note(|_| ());
            if thread.end_us() + GRACE_US < thread.now_us() || Rc::strong_count(&thread) == 1 {
                break;
            }
        }
    });
    runtime.block_on(ticker);
    thread.flush();
}

struct Thread {
    share: Share,
    began: Instant,
    recorder: RefCell<Recorder>,
    news: UnboundedSender<ThreadMessage>,
}

impl Thread {
    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn end_us(&self) -> u64 {
        self.share.end_us.load(Ordering::Relaxed)
    }

    fn note(&self, what: impl FnOnce(&mut Recorder)) {
        let mut recorder = self.recorder.borrow_mut();
        if let Some(slice) = recorder.advance(self.now_us()) {
            let _nobody_waits = self.news.send(ThreadMessage::Slice(Box::new(slice)));
        }
        what(&mut recorder);
    }

    /// Reports the last slice, whatever the time.
    fn flush(&self) {
        if let Some(slice) = self.recorder.borrow_mut().advance(u64::MAX / 4) {
            let _nobody_waits = self.news.send(ThreadMessage::Slice(Box::new(slice)));
        }
    }
}

/// A session and its present socket.
struct Session {
    server: Server,
    stream: BenchStream,
    /// The connect request that takes the session to another socket.
    request: ConnectRequest,
}

impl Session {
    fn open(security: &Security, server: &Server, timeout_ms: i32) -> Result<Self, ClientError> {
        let request = ConnectRequest {
            timeout_ms,
            password: vec![0; 16],
            read_only: Some(false),
            ..ConnectRequest::default()
        };
        let (session, _) = Self::connect(security, server, request)?;
        Ok(session)
    }

    /// Connects; returns the session, and whether it is a new one because the requested one has expired.
    fn connect(
        security: &Security,
        server: &Server,
        mut request: ConnectRequest,
    ) -> Result<(Self, bool), ClientError> {
        let (mut wire, mut response) = security.connect(server, &request, HANDSHAKE)?;
        let expired = response.session_id == 0;
        if expired {
            request = ConnectRequest { session_id: 0, password: vec![0; 16], ..request };
            (wire, response) = security.connect(server, &request, HANDSHAKE)?;
        }
        (request.session_id, request.password) = (response.session_id, response.password);
        Ok((Self { server: server.clone(), stream: wire.into_stream(), request }, expired))
    }
}

/// Why a connection ended before the run.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    ConnectionLoad(#[from] LoadError),
}

/// Runs a connection's load to the end of the run, on as many sockets as it takes.
async fn drive(mut load: ConnectionLoad, mut session: Session, thread: Rc<Thread>) {
    loop {
        let Session { server, stream, request } = session;
        let ended = match stream.into_socket() {
            Ok(BenchSocket::Plain(stream)) => run_on(&mut load, stream, &thread).await,
            Ok(BenchSocket::Tls(stream)) => run_on(&mut load, stream, &thread).await,
            Err(error) => Err(error.into()),
        };
        let Err(broken) = ended else { return };
        tracing::debug!(peer = %server.addr, error = %broken, "connection lost");
        let lost = load.lose();
        thread.note(|recorder| {
            recorder.troubles().connections_lost += 1;
            recorder.troubles().unanswered += lost;
        });
        let Some(again) = reopen(server, request, &thread).await else { return };
        session = again;
    }
}

/// Runs the load on one socket, to the end of the run and of the session.
async fn run_on(
    load: &mut ConnectionLoad,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    thread: &Thread,
) -> Result<(), Broken> {
    send_and_read(load, &mut stream, thread).await?;
    farewell(stream).await;
    Ok(())
}

/// Connects again until there is a session; `None` if the run ends before.
async fn reopen(server: Server, request: ConnectRequest, thread: &Thread) -> Option<Session> {
    while thread.now_us() < thread.end_us() {
        let (security, server, request) =
            (thread.share.security.clone(), server.clone(), request.clone());
        let attempt =
            tokio::task::spawn_blocking(move || Session::connect(&security, &server, request));
        if let Ok(Ok((session, expired))) = attempt.await {
            thread.note(|recorder| recorder.troubles().sessions_expired += u64::from(expired));
            return Some(session);
        }
        tokio::time::sleep(RETRY).await;
    }
    None
}

/// Sends and reads until the run is over and everything is answered.
async fn send_and_read(
    load: &mut ConnectionLoad,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    thread: &Thread,
) -> Result<(), Broken> {
    let mut buffer = vec![0; READ_BYTES];
    let mut held = Vec::new();
    let mut sent = 0;
    loop {
        let (now_us, end_us) = (thread.now_us(), thread.end_us());
        load.fill(now_us, end_us);
        // A connection that always has more to send would otherwise keep all that it ever sent.
        if load.out.len() <= 2 * sent {
            load.out.drain(..sent);
            sent = 0;
        }
        if end_us <= now_us && (load.is_idle() || end_us + GRACE_US <= now_us) {
            let lost = load.lose();
            thread.note(|recorder| recorder.troubles().unanswered += lost);
            return Ok(());
        }
        // The end may be moved up at any time, so it is read in every tick.
        let wake_us = load.wake_us().min(now_us + TICK_US).max(now_us + 1);
        let read = std::future::poll_fn(|cx| {
            poll_turn(cx, &mut *stream, &load.out, &mut sent, &mut buffer)
        });
        tokio::select! {
            biased;
            read = read => match read? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                len => {
                    held.extend_from_slice(&buffer[..len]);
                    take_frames(load, &mut held, thread)?;
                }
            },
            () = tokio::time::sleep_until((thread.began + Duration::from_micros(wake_us)).into()) => {}
        }
    }
}

/// Sends what the connection takes, and reads what has come: how many bytes, 0 at its end.
fn poll_turn(
    cx: &mut Context<'_>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    out: &[u8],
    sent: &mut usize,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    while *sent < out.len() {
        match Pin::new(&mut *stream).poll_write(cx, &out[*sent..]) {
            Poll::Ready(written) => *sent += written?,
            Poll::Pending => break,
        }
    }
    let mut read = ReadBuf::new(buffer);
    ready!(Pin::new(stream).poll_read(cx, &mut read))?;
    Poll::Ready(Ok(read.filled().len()))
}

/// Gives the load all whole frames at the front of `held`.
fn take_frames(
    load: &mut ConnectionLoad,
    held: &mut Vec<u8>,
    thread: &Thread,
) -> Result<(), Broken> {
    let now_us = thread.now_us();
    let mut at = 0;
    let mut failed = None;
    thread.note(|recorder| {
        while let Some(head) = held[at..].first_chunk::<4>() {
            let len = u32::from_be_bytes(*head) as usize;
            if len > FRAME_LEN_MAX {
                let what = format!("a frame of {len} bytes");
                failed = Some(io::Error::new(io::ErrorKind::InvalidData, what).into());
                break;
            }
            let Some(frame) = held.get(at + 4..at + 4 + len) else { break };
            match load.take(frame, now_us) {
                Ok(done) => done.into_iter().for_each(|done| recorder.add(done)),
                Err(error) => {
                    failed = Some(error.into());
                    break;
                }
            }
            at += 4 + len;
        }
    });
    held.drain(..at);
    failed.map_or(Ok(()), Err)
}

/// Ends the session, so that the server need not wait for it to expire.
async fn farewell(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut bytes = Vec::new();
    put_request(&mut bytes, i32::MAX, op::CLOSE_SESSION, |_| ());
    let mut rest = Vec::new();
    let said = async {
        stream.write_all(&bytes).await?;
        stream.read_to_end(&mut rest).await
    };
    // The server may be down already; then the session expires.
    let _gone = tokio::time::timeout(LAST_REPLIES_MAX, said).await;
}
