//! One election connection's socket: dialing it, its options, and the task that moves its bytes both ways.

use crate::member::dial::HostPort;
use crate::member::election_connections::{ConnectionId, Input};
use crate::model::ServerId;
use crate::net::dial::dial_once;
use crate::net::peer_stream::{PeerReader, PeerStream, PeerWriter, TlsHalf};
use crate::net::{PeerSecurity, Sink};
use bytes::{Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const READ_BYTES: usize = 4096;
/// The machine closes a dial at its own deadline.
const NO_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Reports of received bytes and of accepted connections that wait for the driver; while there are this many, nothing more is read.
const REPORTS_MAX: usize = 8;

/// A report of a task to [`super::ElectionSockets::take`].
pub enum Report {
    /// The permit is one of a fixed number: tasks read nothing more while all are in use.
    Input(Input, Option<OwnedSemaphorePermit>),
    Dialed {
        connection: ConnectionId,
        result: io::Result<PeerStream>,
    },
    Accepted {
        stream: TcpStream,
        peer: String,
        permit: Option<OwnedSemaphorePermit>,
    },
}

/// Where tasks put their reports.
#[derive(Clone)]
pub struct Reports {
    sink: Sink<Report>,
    permits: Arc<Semaphore>,
}

impl Reports {
    pub fn new(sink: Sink<Report>) -> Self {
        Self { sink, permits: Arc::new(Semaphore::new(REPORTS_MAX)) }
    }

    pub fn put(&self, report: Report) {
        self.sink.put(report);
    }

    pub fn put_input(&self, input: Input) {
        self.put(Report::Input(input, None));
    }

    /// Waits while too many reports wait for the driver.
    pub async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.ok() // It is never closed.
    }
}

/// An order to the task of a connection.
pub enum Order {
    Write(Bytes),
    LimitSilence { to: ServerId, timeout_ms: u64 },
}

/// Connects to the address that answers first, and shakes hands. Names are resolved at each dial.
///
/// # Errors
/// When no address answers: the error of the last one. When the handshake fails.
pub async fn dial(
    addresses: Vec<HostPort>,
    grace: Option<Duration>,
    security: PeerSecurity,
) -> io::Result<PeerStream> {
    let dialed = dial_once(addresses, NO_LIMIT, grace).await?;
    security.dialed(dialed.socket, &dialed.host).await
}

/// Sets the options of an election socket.
pub fn prepare(stream: &TcpStream, keep_alive: bool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    socket2::SockRef::from(stream).set_keepalive(keep_alive)
}

/// Makes the connection break if the peer's machine sends no TCP acknowledgement for so long.
///
/// Java asks by ICMP, or at port 7, whether the address is reachable, each time it sends something.
pub fn limit_silence(stream: &TcpStream, timeout_ms: u64) -> io::Result<()> {
    // 0 would be the system's own timeout, a quarter of an hour.
    let timeout_ms = u32::try_from(timeout_ms).unwrap_or(u32::MAX).max(1);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, timeout_ms)?)
}

/// Moves bytes both ways until the connection ends, and reports the end.
///
/// * `securing`: shakes hands, if that is not done yet.
pub async fn carry(
    securing: impl Future<Output = io::Result<PeerStream>>,
    connection: ConnectionId,
    orders: UnboundedReceiver<Order>,
    reports: Reports,
) {
    let ended = match securing.await {
        Ok(PeerStream::Plain(socket)) => {
            transfer(socket.into_split(), connection, orders, &reports).await
        }
        Ok(PeerStream::Tls { stream, is_dialed }) => {
            transfer(TlsHalf::pair(stream, is_dialed), connection, orders, &reports).await
        }
        Err(error) => Err(error),
    };
    let error = ended.err().map(|error| error.to_string());
    reports.put_input(Input::Ended { connection, error });
}

async fn transfer<R: PeerReader, W: PeerWriter>(
    (reader, writer): (R, W),
    connection: ConnectionId,
    orders: UnboundedReceiver<Order>,
    reports: &Reports,
) -> io::Result<()> {
    tokio::select! {
        ended = read(reader, connection, reports) => ended,
        error = write(writer, connection, orders, reports) => Err(error),
    }
}

/// Reads until the peer closes.
async fn read(
    mut reader: impl PeerReader,
    connection: ConnectionId,
    reports: &Reports,
) -> io::Result<()> {
    let mut read = BytesMut::new();
    loop {
        read.reserve(READ_BYTES);
        if reader.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        let bytes = read.split().freeze();
        let permit = reports.permit().await;
        reports.put(Report::Input(Input::Received { connection, bytes }, permit));
    }
}

async fn write(
    mut writer: impl PeerWriter,
    connection: ConnectionId,
    mut orders: UnboundedReceiver<Order>,
    reports: &Reports,
) -> io::Error {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Write(bytes) => {
                if let Err(error) = writer.write_all(&bytes).await {
                    return error;
                }
                reports.put_input(Input::Written { connection });
            }
            Order::LimitSilence { to, timeout_ms } => {
                let limited = writer.with_socket(|socket| limit_silence(socket, timeout_ms));
                if let Err(error) = limited {
                    tracing::warn!(
                        %error, server_id = to.0,
                        "can't set TCP_USER_TIMEOUT on an election connection, so a dead network is found late; if members have several addresses, report it with the error"
                    );
                }
            }
        }
    }
    // The sockets were told to close the connection, and cancel this task too.
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-164
    #[tokio::test]
    async fn election_sockets_have_keep_alive_if_tcp_keep_alive_is_set() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        for keep_alive in [true, false] {
            prepare(&stream, keep_alive).unwrap();
            assert_eq!(socket2::SockRef::from(&stream).keepalive().unwrap(), keep_alive);
        }
    }

    // rows: C-59 C-60
    #[tokio::test]
    async fn silence_limit_is_set_as_tcp_user_timeout_and_never_0() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        for (asked_ms, set_ms) in [(70, 70), (0, 1)] {
            limit_silence(&stream, asked_ms).unwrap();
            assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(), set_ms);
        }
    }
}
