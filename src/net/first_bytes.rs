//! The first bytes of a connection, until `member::tls_detection` has decided by them.

use crate::member::tls_detection::{DETECTION_BYTES, Decision, Detection, Next, Rest};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

/// How often a connection is looked at that has sent some, and too few, of the bytes that tell TLS from other protocols.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The first bytes of a connection, as far as they have come.
pub(super) struct FirstBytes<'s> {
    socket: &'s TcpStream,
    bytes: [u8; DETECTION_BYTES],
    len: usize,
    /// They are read, and no longer on the socket.
    are_taken: bool,
}

impl<'s> FirstBytes<'s> {
    /// They stay on the socket. The end of a connection is seen only if no byte came before it.
    pub const fn looked_at(socket: &'s TcpStream) -> Self {
        Self { socket, bytes: [0; DETECTION_BYTES], len: 0, are_taken: false }
    }

    /// They are read.
    pub const fn taken(socket: &'s TcpStream) -> Self {
        Self { are_taken: true, ..Self::looked_at(socket) }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Waits until the decision is made.
    ///
    /// * `accepted`: when the connection was.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn decide(
        &mut self,
        detection: &Detection,
        accepted: Instant,
    ) -> io::Result<Decision> {
        let mut rest = Rest::MayFollow;
        loop {
            match detection.next(self.bytes(), rest, accepted.elapsed()) {
                Next::Decided(decision) => return Ok(decision),
                Next::Wait { until } => {
                    let more = timeout_at(accepted + until, self.more()).await;
                    rest = more.unwrap_or(Ok(Rest::Late))?;
                }
            }
        }
    }

    /// Waits for more bytes, or for the end.
    async fn more(&mut self) -> io::Result<Rest> {
        let came = match self.are_taken {
            true => self.take().await?,
            false => self.look().await?,
        };
        Ok(if came { Rest::MayFollow } else { Rest::Ended })
    }

    async fn look(&mut self) -> io::Result<bool> {
        if self.len > 0 {
            sleep(LOOK_EVERY).await; // `peek` would return at once.
        }
        self.len = self.socket.peek(&mut self.bytes).await?;
        Ok(self.len > 0)
    }

    async fn take(&mut self) -> io::Result<bool> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_read(&mut self.bytes[self.len..]) {
                Ok(read) => {
                    self.len += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
