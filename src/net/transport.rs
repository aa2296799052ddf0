//! What a client connection moves its bytes over: a plain socket, or TLS on one. Each kind has its own copy of the code of
//! `client.rs`, so that a plain connection has nothing of TLS in its way.

use crate::request::Outgoing;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

/// Pieces that are written in one go.
const PIECES_MAX: usize = 64;

pub(super) trait Transport: Send + Sized + 'static {
    fn socket(&self) -> &TcpStream;

    /// Reads what has come; nothing and `Ready`: the client has closed.
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>>;

    /// Whether there may be bytes to read. If not, the task is woken when there may be.
    #[inline]
    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        self.socket().poll_read_ready(cx).is_ready()
    }

    /// Writes some of the bytes after the first `sent`, with shared pieces in their places; returns how many. After an error of
    /// kind `WouldBlock` it must be called with the same bytes again, with more at their end or not.
    fn write_some(&mut self, unsent: &Outgoing, sent: usize) -> io::Result<usize>;

    /// Ends the output once everything is sent.
    fn shut_down(&mut self) -> io::Result<()>;
}

impl Transport for TcpStream {
    #[inline]
    fn socket(&self) -> &TcpStream {
        self
    }

    #[inline]
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_read(cx, into)
    }

    #[inline]
    fn write_some(&mut self, unsent: &Outgoing, sent: usize) -> io::Result<usize> {
        if unsent.shared.is_empty() {
            return self.try_write(&unsent.bytes[sent..]);
        }
        self.try_write_vectored(&pieces(unsent, sent))
    }

    fn shut_down(&mut self) -> io::Result<()> {
        end_output(self)
    }
}

/// Ends what this server sends over a socket.
pub(super) fn end_output(socket: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(socket).shutdown(Shutdown::Write)
}

/// The first pieces of the bytes after the first `sent`.
pub(super) fn pieces(unsent: &Outgoing, sent: usize) -> Vec<IoSlice<'_>> {
    let mut slices = Vec::with_capacity(unsent.shared.len() * 2 + 1);
    let mut skip = sent;
    let mut push = |piece| {
        let piece: &[u8] = piece;
        let cut = skip.min(piece.len());
        skip -= cut;
        if cut < piece.len() {
            slices.push(&piece[cut..]);
        }
    };
    let mut from = 0;
    for (at, piece) in &unsent.shared {
        push(&unsent.bytes[from..*at]);
        push(piece);
        from = *at;
    }
    push(&unsent.bytes[from..]);
    slices.into_iter().take(PIECES_MAX).map(IoSlice::new).collect()
}
