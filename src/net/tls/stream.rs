//! TLS on a socket, once the handshake is done: plaintext of any length for the caller, whole records on the socket.

use super::alerts::after_handshake;
use super::suites::jsse_name;
use crate::net::transport::{Transport, end_output, pieces};
use crate::request::Outgoing;
use rustls::Connection;
use rustls_pki_types::CertificateDer;
use std::cell::RefCell;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The longest record there is, with its header.
const RECORD_BYTES_MAX: usize = 16 * 1024 + 2048 + 5;
/// Bytes that are read from a socket in one go: with what is left of a record they give no more plaintext than the 64 KiB that a
/// client connection takes in one turn.
const READ_BYTES: usize = 64 * 1024 - RECORD_BYTES_MAX;
/// Plaintext that is encrypted in one go: four whole records.
const WRITE_BYTES: usize = 64 * 1024;

thread_local! {
    // Idle connections hold no buffers: the bytes of a read pass through this one.
    static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A socket with TLS on it.
pub struct TlsStream {
    socket: TcpStream,
    tls: Box<Connection>,
    /// rustls may hold plaintext: the handshake brought some, or a reader had no room for all of it.
    may_hold_plaintext: bool,
    /// Records for whose plaintext a reader had no room.
    undecrypted: Vec<u8>,
    /// Length of plaintext that is encrypted and not wholly on the socket; the caller has not been
    /// told that it is written.
    encrypted: usize,
    /// The end that the peer sent, or an error. Returned to the reader after the plaintext that came before it.
    end: Option<io::Result<()>>,
}

impl TlsStream {
    /// * `tls`: after its handshake.
    pub fn new(socket: TcpStream, tls: Box<Connection>) -> Self {
        Self {
            socket,
            tls,
            may_hold_plaintext: true,
            undecrypted: Vec::new(),
            encrypted: 0,
            end: None,
        }
    }

    pub const fn tcp(&self) -> &TcpStream {
        &self.socket
    }

    /// The version and the cipher suite, by Java's names.
    pub fn agreed(&self) -> (&'static str, String) {
        let protocol = match self.tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = self.tls.negotiated_cipher_suite();
        (protocol, suite.as_ref().map(jsse_name).unwrap_or_default())
    }

    /// The peer's certificates, its own first; none if it was not asked or showed none.
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.tls.peer_certificates().unwrap_or_default()
    }

    /// Whether a read may find more at once.
    pub(in crate::net) fn poll_more(&self, cx: &mut Context<'_>) -> Poll<()> {
        let has_more =
            self.may_hold_plaintext || !self.undecrypted.is_empty() || self.end.is_some();
        if has_more { Poll::Ready(()) } else { self.socket.poll_read_ready(cx).map(drop) }
    }

    fn poll_plaintext(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        loop {
            if self.may_hold_plaintext {
                self.take_plaintext(into)?;
                self.may_hold_plaintext = into.remaining() == 0;
            }
            if !self.undecrypted.is_empty() && into.remaining() > 0 {
                let records = std::mem::take(&mut self.undecrypted);
                self.decrypt(&records, into)?;
            }
            if before < into.filled().len() || into.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if let Some(end) = self.end.take() {
                // An end is returned at each read, an error once.
                self.end = end.is_ok().then_some(Ok(()));
                return Poll::Ready(end);
            }
            ready!(RECEIVED.with_borrow_mut(|buffer| self.receive(cx, buffer, into)))?;
        }
    }

    /// Reads records from the socket, and decrypts them.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
        if read.filled().is_empty() {
            self.end = Some(Ok(()));
        }
        self.decrypt(read.filled(), into)?;
        if self.tls.wants_write() && self.encrypted == 0 {
            match self.flush_records() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                _ => {} // What is left goes with the next write.
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Decrypts records as long as their plaintext has room.
    fn decrypt(&mut self, mut records: &[u8], into: &mut ReadBuf<'_>) -> io::Result<()> {
        while !records.is_empty() && self.end.is_none() {
            if self.may_hold_plaintext {
                self.undecrypted = records.to_vec();
                return Ok(());
            }
            if self.tls.read_tls(&mut records)? == 0 {
                self.end = Some(Ok(())); // The peer has said that it sends nothing more.
                return Ok(());
            }
            if let Err(error) = self.tls.process_new_packets() {
                _ = self.flush_records(); // The alert, if the socket has room for it.
                self.end =
                    Some(Err(io::Error::new(io::ErrorKind::InvalidData, after_handshake(&error))));
            }
            self.take_plaintext(into)?;
            self.may_hold_plaintext = into.remaining() == 0;
        }
        Ok(())
    }

    fn take_plaintext(&mut self, into: &mut ReadBuf<'_>) -> io::Result<()> {
        while into.remaining() > 0 {
            match self.tls.reader().read(into.initialize_unfilled()) {
                Ok(0) => return Ok(()), // The peer's end, which is noted elsewhere.
                Ok(read) => into.advance(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The connection ended without saying so, as many clients end theirs.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Encrypts the first bytes of `plain` and writes them. After `WouldBlock` it must be called with the same bytes.
    fn write_plaintext(&mut self, plain: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.encrypted == 0 {
            // Records that are left of a read first: their bytes do not count as written.
            self.flush_records()?;
            self.encrypted = match plain {
                [one] => self.tls.writer().write(&one[..one.len().min(WRITE_BYTES)])?,
                all => self.tls.writer().write_vectored(all)?,
            };
        }
        self.flush_records()?;
        Ok(std::mem::take(&mut self.encrypted))
    }

    /// Writes all encrypted records.
    fn flush_records(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut SocketWriter(&self.socket))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Writes to a socket what it takes at once.
pub(super) struct SocketWriter<'s>(pub &'s TcpStream);

impl io::Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads from a socket what has come.
pub(super) struct SocketReader<'s>(pub &'s TcpStream);

impl io::Read for SocketReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Transport for TlsStream {
    fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_plaintext(cx, into)
    }

    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        self.poll_more(cx).is_ready()
    }

    fn write_some(&mut self, unsent: &Outgoing, sent: usize) -> io::Result<usize> {
        if unsent.shared.is_empty() {
            return self.write_plaintext(&[IoSlice::new(&unsent.bytes[sent..])]);
        }
        self.write_plaintext(&pieces(unsent, sent))
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        // It is not waited for: a client that has closed already would never take it.
        _ = self.flush_records();
        end_output(&self.socket)
    }
}

/// Says that nothing more will be sent, as far as the socket has room.
impl Drop for TlsStream {
    fn drop(&mut self) {
        self.tls.send_close_notify();
        _ = self.flush_records();
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_plaintext(cx, into)
    }
}

/// A write that was begun has to be tried again with the same bytes, as `write_all` does.
impl AsyncWrite for TlsStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        plain: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            match this.write_plaintext(&[IoSlice::new(plain)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(this.socket.poll_write_ready(cx))?;
                }
                written => return Poll::Ready(written),
            }
        }
    }

    /// What was written is on the socket already.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().shut_down())
    }
}
