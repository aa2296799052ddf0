//! HTTP ports: requests go to a function, and its answers to the client. A body is read only if the function does so.

use super::http_stream::IdleStream;
use super::http_tls::{HttpTls, Opened};
use super::listening_socket::plain_address;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at the same time. Others wait in the queue of the port.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of a head; a longer one is answered with status 431.
const HEAD_MAX: usize = 8 * 1024;
/// An answer of at most this many bytes is sent with its length, as Jetty does.
const WHOLE_MAX: usize = 32 * 1024;
/// Pause after an error of `accept`, as for other ports.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The head of a request, as it was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    /// The headers of these names, each byte a character of ISO 8859-1.
    pub authorization: Option<String>,
    pub forwarded_for: Option<String>,
    pub peer: SocketAddr,
    /// It came over TLS.
    pub is_secure: bool,
    /// The subject of the client's certificate, if the client has shown one that is trusted.
    pub subject: Option<String>,
}

/// The body of a request.
pub struct HttpBody {
    incoming: Incoming,
    idle_max: Duration,
}

impl HttpBody {
    /// The next bytes; `None`: there are no more.
    ///
    /// # Errors
    /// If the connection ends before the body does, or nothing comes for too long.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let next = poll_fn(|context| Pin::new(&mut self.incoming).poll_frame(context));
            match timeout(self.idle_max, next).await {
                Err(_) => return Some(Err(io::ErrorKind::TimedOut.into())),
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(io::Error::other(error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }
}

/// An answer; the body is made piece by piece, while it is sent. A piece may be empty.
pub struct HttpAnswer {
    pub status: u16,
    pub content_type: Option<&'static str>,
    pub headers: Vec<(&'static str, String)>,
    /// Bytes of the body, if they are known: a body that ends earlier ends the connection.
    pub length: Option<u64>,
    pub body: Box<dyn Iterator<Item = Vec<u8>> + Send>,
}

/// Answers requests.
pub type HttpAnswers =
    dyn Fn(HttpRequest, HttpBody) -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>> + Send + Sync;

/// Accepts and serves connections until `stop`; then it returns when the answers are sent that have begun.
///
/// * `idle_max`: how long a client may send no request, or take no part of an answer.
/// * `tls`: `None`: connections are plain.
pub async fn serve_http(
    listener: TcpListener,
    idle_max: Duration,
    tls: Option<Arc<HttpTls>>,
    answers: Arc<HttpAnswers>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    let accepting = async {
        loop {
            let place = places.clone().acquire_owned().await;
            let place = place.expect("the semaphore is never closed");
            match listener.accept().await {
                Ok((socket, peer)) => {
                    let (peer, answers, tls) = (plain_address(peer), answers.clone(), tls.clone());
                    let stop = stop.clone();
                    connections.spawn(async move {
                        open_and_serve(socket, peer, idle_max, tls, answers, stop).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "HTTP connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let _stopped: Option<()> = stop.run_until_cancelled(accepting).await;
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn open_and_serve(
    socket: TcpStream,
    peer: SocketAddr,
    idle_max: Duration,
    tls: Option<Arc<HttpTls>>,
    answers: Arc<HttpAnswers>,
    stop: CancellationToken,
) {
    let opened = match tls {
        Some(tls) => stop.run_until_cancelled(tls.open(socket, peer, idle_max)).await.flatten(),
        None => Some(Opened::Plain(socket)),
    };
    let mut from = Origin { peer, is_secure: false, subject: None };
    match opened {
        Some(Opened::Plain(socket)) => serve(socket, from, idle_max, answers, stop).await,
        Some(Opened::Tls { stream, subject }) => {
            (from.is_secure, from.subject) = (true, subject);
            serve(stream, from, idle_max, answers, stop).await;
        }
        None => {}
    }
}

/// Where the requests of a connection come from.
struct Origin {
    peer: SocketAddr,
    is_secure: bool,
    subject: Option<String>,
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    from: Origin,
    idle_max: Duration,
    answers: Arc<HttpAnswers>,
    stop: CancellationToken,
) {
    let peer = from.peer;
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        let head = head(&request, &from);
        let answer = answers(head, HttpBody { incoming: request.into_body(), idle_max });
        async move { Ok::<_, Infallible>(response(answer.await)) }
    });
    let mut builder = http1::Builder::new();
    // Without the timer hyper has no limit on the time of a head.
    builder.timer(TokioTimer::new()).header_read_timeout(idle_max).max_buf_size(HEAD_MAX);
    let stream = TokioIo::new(IdleStream::new(stream, idle_max));
    let mut serving = pin!(builder.serve_connection(stream, service));
    let served = match stop.run_until_cancelled(serving.as_mut()).await {
        Some(served) => served,
        // hyper would wait for the rest of a first head.
        None if !has_asked.load(Ordering::Relaxed) => return,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}

fn head(request: &Request<Incoming>, from: &Origin) -> HttpRequest {
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        Some(value.as_bytes().iter().map(|&byte| char::from(byte)).collect())
    };
    HttpRequest {
        method: request.method().as_str().to_owned(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        authorization: header("authorization"),
        forwarded_for: header("x-forwarded-for"),
        peer: from.peer,
        is_secure: from.is_secure,
        subject: from.subject.clone(),
    }
}

fn response(answer: HttpAnswer) -> Response<Pieces> {
    let mut response = Response::new(Pieces::start(answer.length, answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(content_type) = answer.content_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A body in pieces.
struct Pieces {
    first: Bytes,
    /// `None`: `first` is the rest.
    rest: Option<Box<dyn Iterator<Item = Vec<u8>> + Send>>,
    /// Bytes of the whole body, if they are known.
    length: Option<u64>,
}

impl Pieces {
    /// Reads ahead up to `WHOLE_MAX`, so that a short body gets a Content-Length.
    fn start(length: Option<u64>, mut rest: Box<dyn Iterator<Item = Vec<u8>> + Send>) -> Self {
        let mut first = Vec::new();
        while first.len() <= WHOLE_MAX {
            match rest.next() {
                Some(piece) => first.extend_from_slice(&piece),
                None => return Self { first: first.into(), rest: None, length },
            }
        }
        Self { first: first.into(), rest: Some(rest), length }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        match self.rest.as_mut().map(Iterator::next) {
            None => Poll::Ready(None),
            Some(None) => {
                self.rest = None;
                Poll::Ready(None)
            }
            // The piece is empty: let other tasks run.
            Some(Some(piece)) if piece.is_empty() => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.rest, self.length) {
            (_, Some(length)) => SizeHint::with_exact(length),
            (None, None) => SizeHint::with_exact(self.first.len() as u64),
            (Some(_), None) => SizeHint::default(),
        }
    }
}
