//! A connection between servers, plain or with TLS, in two halves: one task reads while it waits for the peer to take what it sends.

use super::listening_socket::plain_address;
use super::tls::TlsStream;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A connection to another server, before its own protocol begins.
pub enum PeerStream {
    Plain(TcpStream),
    Tls {
        stream: TlsStream,
        /// Whether this server dialed. If so, the peer verifies this server's certificate after the handshake has ended at this end.
        is_dialed: bool,
    },
}

impl PeerStream {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls { stream, .. } => stream.tcp(),
        }
    }
}

impl From<TcpStream> for PeerStream {
    fn from(socket: TcpStream) -> Self {
        Self::Plain(socket)
    }
}

/// The receiving half.
pub(super) trait PeerReader: AsyncRead + Unpin + Send + 'static {
    fn peer_addr(&self) -> io::Result<SocketAddr>;

    /// Ready if a read may return bytes without waiting.
    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()>;
}

/// The sending half.
pub(super) trait PeerWriter: AsyncWrite + Unpin + Send + 'static {
    fn with_socket<T>(&self, look: impl FnOnce(&TcpStream) -> T) -> T;
}

impl PeerReader for OwnedReadHalf {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.as_ref().peer_addr().map(plain_address)
    }

    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.as_ref().poll_read_ready(cx).map(drop)
    }
}

impl PeerWriter for OwnedWriteHalf {
    fn with_socket<T>(&self, look: impl FnOnce(&TcpStream) -> T) -> T {
        look(self.as_ref())
    }
}

/// One half of a connection with TLS. The reading task and the writing task share a lock, each for the time of one call.
pub(super) struct TlsHalf {
    both: Arc<Mutex<TlsStream>>,
    /// No byte has come from the peer yet. The first one shows that the peer has accepted this server's certificate.
    awaits_first: bool,
}

impl TlsHalf {
    /// The receiving and the sending half.
    ///
    /// * `is_dialed`: log a line when the peer has sent its first byte.
    pub fn pair(stream: TlsStream, is_dialed: bool) -> (Self, Self) {
        let both = Arc::new(Mutex::new(stream));
        let sending = Self { both: both.clone(), awaits_first: false };
        (Self { both, awaits_first: is_dialed }, sending)
    }

    fn lock(&self) -> MutexGuard<'_, TlsStream> {
        self.both.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerReader for TlsHalf {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.lock().tcp().peer_addr().map(plain_address)
    }

    fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.lock().poll_more(cx)
    }
}

impl PeerWriter for TlsHalf {
    fn with_socket<T>(&self, look: impl FnOnce(&TcpStream) -> T) -> T {
        look(self.lock().tcp())
    }
}

impl AsyncRead for TlsHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut stream = this.lock();
        let read = Pin::new(&mut *stream).poll_read(cx, into);
        if this.awaits_first && !into.filled().is_empty() {
            log_dialed(&stream);
            drop(stream);
            this.awaits_first = false;
        }
        read
    }
}

impl AsyncWrite for TlsHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(cx)
    }
}

/// Logs that the peer has accepted this server's certificate.
fn log_dialed(stream: &TlsStream) {
    let (protocol, cipher_suite) = stream.agreed();
    tracing::info!(target: crate::model::STRANGERS, peer = stream.tcp().peer_addr().ok().map(display), %protocol, %cipher_suite, "TLS connection to a server made");
}
