//! HTTP ports: heads of requests go to a function, and its answers to the client. Bodies of requests are not read.

use super::http_stream::IdleStream;
use super::http_tls::{HttpTls, Opened};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at the same time. Others wait in the queue of the port.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of a head; a longer one is answered with status 431.
const HEAD_MAX: usize = 8 * 1024;
/// An answer of at most so many bytes is sent with its length, as Jetty does.
const WHOLE_MAX: usize = 32 * 1024;
/// Pause after an error of `accept`, as for other ports.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The head of a request, as it was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    /// The header of that name; bytes above 127 are left out.
    pub authorization: Option<String>,
    pub peer: SocketAddr,
    /// It came over TLS.
    pub is_secure: bool,
    /// The subject of the client's certificate, if the client has shown one that is trusted.
    pub subject: Option<String>,
}

/// An answer; the body is made piece by piece, while it is sent. A piece may be empty.
pub struct HttpAnswer {
    pub status: u16,
    pub content_type: Option<&'static str>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Box<dyn Iterator<Item = Vec<u8>> + Send>,
}

/// Answers requests.
pub type HttpAnswers =
    dyn Fn(HttpRequest) -> Pin<Box<dyn Future<Output = HttpAnswer> + Send>> + Send + Sync;

/// Accepts and serves connections until the task is dropped.
///
/// * `idle_max`: how long a client may send no request, or take no part of an answer.
/// * `tls`: `None`: connections are plain.
pub async fn serve_http(
    listener: TcpListener,
    idle_max: Duration,
    tls: Option<Arc<HttpTls>>,
    answers: Arc<HttpAnswers>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((socket, peer)) => {
                let (answers, tls) = (answers.clone(), tls.clone());
                tokio::spawn(async move {
                    let opened = match tls {
                        Some(tls) => tls.open(socket, peer, idle_max).await,
                        None => Some(Opened::Plain(socket)),
                    };
                    let mut from = Origin { peer, is_secure: false, subject: None };
                    match opened {
                        Some(Opened::Plain(socket)) => serve(socket, from, idle_max, answers).await,
                        Some(Opened::Tls { stream, subject }) => {
                            (from.is_secure, from.subject) = (true, subject);
                            serve(stream, from, idle_max, answers).await;
                        }
                        None => {}
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "HTTP connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
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
) {
    let peer = from.peer;
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answers(head(&request, &from));
        async move { Ok::<_, Infallible>(response(answer.await)) }
    });
    let mut builder = http1::Builder::new();
    // Without the timer hyper has no limit on the time of a head.
    builder.timer(TokioTimer::new()).header_read_timeout(idle_max).max_buf_size(HEAD_MAX);
    let stream = TokioIo::new(IdleStream::new(stream, idle_max));
    if let Err(error) = builder.serve_connection(stream, service).await {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}

fn head(request: &Request<Incoming>, from: &Origin) -> HttpRequest {
    let authorization = request.headers().get(AUTHORIZATION);
    HttpRequest {
        method: request.method().as_str().to_owned(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        authorization: authorization.map(|value| {
            let ascii = value.as_bytes().iter().filter(|byte| byte.is_ascii());
            ascii.map(|&byte| char::from(byte)).collect()
        }),
        peer: from.peer,
        is_secure: from.is_secure,
        subject: from.subject.clone(),
    }
}

fn response(answer: HttpAnswer) -> Response<Pieces> {
    let mut response = Response::new(Pieces::start(answer.body));
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
}

impl Pieces {
    /// Makes the beginning of the body, so that a short one is known whole.
    fn start(mut rest: Box<dyn Iterator<Item = Vec<u8>> + Send>) -> Self {
        let mut first = Vec::new();
        while first.len() <= WHOLE_MAX {
            match rest.next() {
                Some(piece) => first.extend_from_slice(&piece),
                None => return Self { first: first.into(), rest: None },
            }
        }
        Self { first: first.into(), rest: Some(rest) }
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
            // Nothing was found in one turn: others on this thread come first.
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
        match self.rest {
            None => SizeHint::with_exact(self.first.len() as u64),
            Some(_) => SizeHint::default(),
        }
    }
}
