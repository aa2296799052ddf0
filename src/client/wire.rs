//! One client connection: handshake, frames out, frames in.

use jute::proto;
use jute::{Decode, DecodeError, Encode, Reader, put_frame};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Largest frame taken from a server: a bound against a peer that speaks another protocol.
const FRAME_LEN_MAX: usize = 64 << 20;

/// Why no further frame was received.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server closed or reset the connection.
    #[error("connection closed by the server")]
    Closed,
    #[error("nothing received in time")]
    Timeout,
    #[error("frame length {0} does not belong to the ZooKeeper protocol")]
    Length(i32),
    #[error("can't decode the connect response")]
    ConnectResponse(#[from] DecodeError),
    /// What the caller puts around the protocol has failed: TLS, or the client's authentication.
    #[error("{0}")]
    Security(String),
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => Self::Closed,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Timeout,
            _ => Self::Io(error),
        }
    }
}

/// A connect request. The fields are raw: a test may send what no honest client sends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConnectRequest {
    pub last_zxid_seen: i64,
    pub timeout_ms: i32,
    /// 0 asks for a new session.
    pub session_id: i64,
    pub password: Vec<u8>,
    /// `None` leaves the field out, as clients before 3.4 did (P-10).
    pub read_only: Option<bool>,
}

/// A connect response. `session_id` 0 says that the requested session has ended (P-17).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConnectResponse {
    pub protocol_version: i32,
    pub timeout_ms: i32,
    pub session_id: i64,
    pub password: Vec<u8>,
    /// `None` when the server left the field out (P-11).
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Appends the framed request.
    pub fn put(&self, to: &mut Vec<u8>) {
        put_frame(to, |to| {
            let request = proto::ConnectRequest {
                protocol_version: 0,
                last_zxid_seen: self.last_zxid_seen,
                timeout_ms: self.timeout_ms,
                session_id: self.session_id,
                password: Some(&self.password),
                read_only: self.read_only.unwrap_or(false),
            };
            request.encode(to);
            if self.read_only.is_none() {
                to.pop(); // The flag is the last byte.
            }
        });
    }
}

impl ConnectResponse {
    /// Reads the body of a connect response.
    ///
    /// # Errors
    /// [`DecodeError`] when it ends early.
    pub fn parse(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut padded = frame.to_vec();
        padded.push(0); // In place of a flag that was left out.
        let mut from = Reader::new(&padded);
        let got = proto::ConnectResponse::decode(&mut from)?;
        Ok(Self {
            protocol_version: got.protocol_version,
            timeout_ms: got.timeout_ms,
            session_id: got.session_id,
            password: got.password.unwrap_or_default().to_vec(),
            read_only: (from.at() == frame.len()).then_some(got.read_only),
        })
    }
}

/// What a [`Wire`] runs on: a socket, or something on a socket such as TLS.
pub trait Stream: Read + Write {
    fn tcp(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// Opens a socket and sends nothing.
///
/// # Errors
/// [`ClientError`] when no server listens there or the TCP handshake takes longer than `timeout`.
pub fn dial(addr: SocketAddr, timeout: Duration) -> Result<TcpStream, ClientError> {
    let stream = TcpStream::connect_timeout(&addr, timeout)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

/// A connection to one server. Dropping it closes the socket and not the session.
pub struct Wire<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
    /// Bytes at the front of `buffer` that were handed out already.
    taken: usize,
}

impl Wire {
    /// Opens a socket and sends nothing.
    ///
    /// # Errors
    /// As [`dial`].
    pub fn open(addr: SocketAddr, timeout: Duration) -> Result<Self, ClientError> {
        Ok(Self::over(dial(addr, timeout)?))
    }
}

impl<S: Stream> Wire<S> {
    /// * `stream`: a connection on which nothing was sent yet.
    pub const fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), taken: 0 }
    }

    /// Sends a connect request and waits for the response.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the server refuses without a response (P-13).
    pub fn handshake(
        &mut self,
        request: &ConnectRequest,
        timeout: Duration,
    ) -> Result<ConnectResponse, ClientError> {
        let mut bytes = Vec::new();
        request.put(&mut bytes);
        self.send(&bytes)?;
        Ok(ConnectResponse::parse(&self.receive(timeout)?)?)
    }

    /// Sends bytes as they are: whole frames, many frames, or bytes that are no frame.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the connection is known to be closed.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Waits for the next frame and returns its body.
    ///
    /// # Errors
    /// [`ClientError::Closed`] once all frames that came before the end were handed out; [`ClientError::Timeout`].
    pub fn receive(&mut self, timeout: Duration) -> Result<Vec<u8>, ClientError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(frame) = self.buffered_frame()? {
                return Ok(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // A timeout of zero would mean "for ever" to the socket.
            self.stream.tcp().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk)? {
                0 => return Err(ClientError::Closed),
                len => self.buffer.extend_from_slice(&chunk[..len]),
            }
        }
    }

    /// The stream, for a caller that moves the bytes itself from now on. Bytes that were received and not handed out are lost.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Shuts down sending: no more requests follow, while replies may still come.
    ///
    /// # Errors
    /// As the socket's.
    pub fn shut_down_sending(&mut self) -> Result<(), ClientError> {
        Ok(self.stream.tcp().shutdown(Shutdown::Write)?)
    }

    fn buffered_frame(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        let rest = &self.buffer[self.taken..];
        let Some(head) = rest.first_chunk::<4>() else { return Ok(None) };
        let raw = i32::from_be_bytes(*head);
        let len = usize::try_from(raw).ok().filter(|len| *len <= FRAME_LEN_MAX);
        let len = len.ok_or(ClientError::Length(raw))?;
        let Some(frame) = rest.get(4..4 + len).map(<[u8]>::to_vec) else { return Ok(None) };
        self.taken += 4 + len;
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        }
        Ok(Some(frame))
    }
}

/// Sends a four-letter word and returns the whole answer.
///
/// # Errors
/// [`ClientError`] when no server listens, or the answer has not ended within `timeout`.
pub fn word(addr: SocketAddr, word: &str, timeout: Duration) -> Result<String, ClientError> {
    let mut stream = TcpStream::connect_timeout(&addr, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn connect_response_is_read_with_and_without_the_read_only_flag() {
        let mut frame = Vec::new();
        let password = [7; 16];
        let sent = proto::ConnectResponse {
            protocol_version: 0,
            timeout_ms: 4000,
            session_id: 5,
            password: Some(&password),
            read_only: true,
        };
        sent.encode(&mut frame);
        assert_eq!(ConnectResponse::parse(&frame).expect("whole").read_only, Some(true));
        frame.pop();
        assert_eq!(ConnectResponse::parse(&frame).expect("whole").read_only, None);
        frame.pop();
        // Sixteen bytes of password are announced and fifteen are there.
        assert!(ConnectResponse::parse(&frame).is_err());
    }

    #[test]
    fn frames_arrive_whole_however_they_are_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let mut wire = Wire::open(listener.local_addr().expect("addr"), SOON).expect("open");
        let (mut peer, _) = listener.accept().expect("accept");
        let bytes = [0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        peer.write_all(&bytes[..5]).expect("write");
        assert!(matches!(wire.receive(Duration::from_millis(5)), Err(ClientError::Timeout)));
        peer.write_all(&bytes[5..]).expect("write");
        drop(peer);
        assert_eq!(wire.receive(SOON).expect("first"), [1, 2]);
        assert!(wire.receive(SOON).expect("empty").is_empty());
        assert_eq!(wire.receive(SOON).expect("last"), [9]);
        assert!(matches!(wire.receive(SOON), Err(ClientError::Closed)));
    }

    #[test]
    fn foreign_length_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let mut wire = Wire::open(listener.local_addr().expect("addr"), SOON).expect("open");
        let (mut peer, _) = listener.accept().expect("accept");
        peer.write_all(b"HTTP/1.1 400").expect("write");
        assert!(matches!(wire.receive(SOON), Err(ClientError::Length(0x4854_5450))));
    }
}
