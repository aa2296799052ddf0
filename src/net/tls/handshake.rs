//! Handshakes, on threads of their own, and a bounded number at a time; those of clients at lower
//! priority than requests.

use super::handshake_places::{HandshakePlaces, TURN};
use super::stream::{SocketReader, SocketWriter, TlsStream};
use rustls::{AlertDescription, Connection, Error, PeerIncompatible, ProtocolVersion};
use std::io::{self, Write as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// Limit on handshakes at one time. Further connections wait in their order, and nothing is read from them. For each of them the
/// oldest handshake is ended, once it has had its turn.
const UNDER_WAY_MAX: usize = 1024;
/// Bytes that a peer may send before the handshake is done.
const BYTES_MAX: usize = 64 * 1024;
/// How much nicer the threads of client handshakes are than others.
const NICENESS: i32 = 5;

/// Why a handshake has failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("the peer closed the connection during the handshake")]
    Closed,
    #[error("the peer sent more than {BYTES_MAX} bytes before the handshake was done")]
    TooLong,
    #[error("it was not done within {} s, while others waited for its place", TURN.as_secs())]
    GaveWay,
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl HandshakeError {
    /// The connection broke after valid bytes: a probe of the port, or a peer that has ended. No certificate and no setting is to
    /// blame.
    pub fn is_of_socket(&self) -> bool {
        // An error that rustls' reader finds is wrapped in this one.
        matches!(self, Self::Io(error) if error.get_ref().is_none())
    }
}

/// Threads that perform handshakes. They end when this is dropped.
pub struct Handshakes {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    places: HandshakePlaces,
}

impl Handshakes {
    /// Threads for the handshakes of clients, of which there may be thousands at once: a quarter of the processors, and nice to
    /// the threads that serve.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn of_clients() -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::start("client-tls", (processors / 4).max(1), true)
    }

    /// A thread for handshakes between servers, so that they never wait for those of clients.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn of_servers() -> io::Result<Self> {
        Self::start("server-tls", 1, false)
    }

    /// A thread for the handshakes of one HTTP port, nice to the threads that serve clients.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn of_http() -> io::Result<Self> {
        Self::start("http-tls", 1, true)
    }

    fn start(name: &str, threads: usize, is_nice: bool) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name(name).enable_io();
        if is_nice {
            builder.on_thread_start(|| {
                // On Linux it sets the niceness of this thread alone. If it fails, handshakes run at normal priority.
                _ = rustix::process::setpriority_process(None, NICENESS);
            });
        }
        let runtime = Some(builder.build()?);
        Ok(Self { runtime, places: HandshakePlaces::new(UNDER_WAY_MAX) })
    }

    /// Performs a handshake; the stream that it returns belongs to the caller's runtime. Ends the
    /// handshake when dropped.
    ///
    /// * `tls`: makes the connection once it is its turn. `first`: bytes that were read already.
    ///
    /// # Errors
    /// [`HandshakeError`]; the socket is closed then.
    pub async fn perform(
        &self,
        socket: TcpStream,
        tls: impl FnOnce() -> Result<Connection, rustls::Error> + Send + 'static,
        first: Vec<u8>,
    ) -> Result<TlsStream, HandshakeError> {
        let place = self.places.take().await;
        let socket = socket.into_std()?;
        let runtime =
            self.runtime.as_ref().expect("the runtime is taken only when this is dropped");
        let task = runtime.spawn(async move {
            let socket = TcpStream::from_std(socket)?;
            let mut tls = Box::new(tls()?);
            shake(&socket, &mut tls, &first).await?;
            Ok::<_, HandshakeError>((socket.into_std()?, tls))
        });
        let done = tokio::select! {
            biased;
            done = AbortOnDropHandle::new(task) => done.map_err(io::Error::other)?,
            () = place.gives_way() => Err(HandshakeError::GaveWay),
        };
        let (socket, tls) = done?;
        Ok(TlsStream::new(TcpStream::from_std(socket)?, tls))
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background(); // A runtime may not be waited for on a thread of another one.
        }
    }
}

/// Performs the handshake of one connection.
async fn shake(
    socket: &TcpStream,
    tls: &mut Connection,
    mut first: &[u8],
) -> Result<(), HandshakeError> {
    let mut received = first.len();
    while !first.is_empty() {
        tls.read_tls(&mut first)?;
        process(socket, tls)?;
    }
    loop {
        while tls.wants_write() {
            match tls.write_tls(&mut SocketWriter(socket)) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.writable().await?
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !tls.is_handshaking() {
            return Ok(());
        }
        match tls.read_tls(&mut SocketReader(socket)) {
            Ok(0) => return Err(HandshakeError::Closed),
            Ok(read) => received += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.readable().await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        process(socket, tls)?;
        if received > BYTES_MAX && tls.is_handshaking() {
            return Err(HandshakeError::TooLong);
        }
    }
}

/// Processes the bytes that were read. If they are refused, sends the alert, as far as the socket has room.
fn process(socket: &TcpStream, tls: &mut Connection) -> Result<(), HandshakeError> {
    let Err(error) = tls.process_new_packets() else { return Ok(()) };
    if let Some(alert) = alert_of_java(&error, tls.protocol_version()) {
        _ = SocketWriter(socket).write(&alert);
        return Err(error.into());
    }
    while tls.wants_write() && tls.write_tls(&mut SocketWriter(socket)).is_ok_and(|len| len > 0) {}
    Err(error.into())
}

/// The record with Java's alert, where rustls' own says something else than Java's and no key encrypts it yet; `None`: rustls' is sent.
fn alert_of_java(error: &Error, agreed: Option<ProtocolVersion>) -> Option<[u8; 7]> {
    let alert = match error {
        // TLS 1.1 and older know no such extension. rustls says handshake_failure, as it does to clients of TLS 1.2 without a suite in common.
        Error::PeerIncompatible(PeerIncompatible::SignatureAlgorithmsExtensionRequired) => {
            AlertDescription::ProtocolVersion
        }
        // rustls says certificate_required, which TLS 1.2 does not have.
        Error::NoCertificatesPresented if agreed == Some(ProtocolVersion::TLSv1_2) => {
            AlertDescription::BadCertificate
        }
        _ => return None,
    };
    // A record of kind alert and TLS 1.2 with two bytes, the first of which says that it is fatal.
    Some([21, 3, 3, 0, 2, 2, alert.into()])
}
