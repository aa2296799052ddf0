//! Client connections that begin with TLS, or may begin with it: what comes before the connection's own protocol.

use super::client::{ServerHandles, serve};
use super::client_counts::CountedConnection;
use super::tls::{
    Engine, HandshakeError, Handshakes, Peer, Refusal, SNIFF_BYTES, Sniffed, TlsStream, sniff,
};
use crate::auth::{Schemes, x509};
use crate::metrics::Registry;
use crate::model::Identity;
use crate::request::{Conn, Connection, Shared};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// From accept to a finished handshake, as Netty has it.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// What a client port needs for TLS.
pub struct TlsPort {
    pub engine: Arc<Engine>,
    pub handshakes: Arc<Handshakes>,
    /// Plain connections are served too (`client.portUnification`).
    pub is_unified: bool,
    /// `netty.server.outstandingHandshake.limit`.
    pub handshakes_max: Option<u32>,
    /// `netty.server.earlyDropSecureConnectionHandshakes`.
    pub drops_early: bool,
    /// How long a connection may go without a session.
    pub sessionless_max: Duration,
}

/// A connection that was accepted at a client port.
pub(super) struct Accepted {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    /// The port of this server.
    pub port: u16,
    /// Counts against the limits on connections, from the handshake on.
    pub place: CountedConnection,
    /// Monotonic milliseconds.
    pub at_ms: u64,
}

/// A connection that has shown what it speaks.
enum Opened {
    Tls(TlsStream),
    /// Plain bytes at a unified port; the first ones are read already.
    Plain(TcpStream, Vec<u8>),
}

/// Why a connection is not served.
enum Failed {
    Refused(Refusal),
    /// It did not begin with TLS.
    NoTls,
    /// The client has gone, or has sent nothing: no line is written about that.
    Gone(io::Error),
    TooManyHandshakes,
    /// This server serves no client now.
    NotServing,
}

/// Looks at the first bytes of a connection, shakes hands if they are TLS, and serves it to its end.
///
/// * `stop`: no further connection is served.
pub(super) async fn open(
    accepted: Accepted,
    tls: Arc<TlsPort>,
    shared: Arc<Shared>,
    server: ServerHandles,
    stop: CancellationToken,
) {
    let Accepted { socket, peer, port, place, at_ms } = accepted;
    let at_rest = shared.at_rest.load(Ordering::Relaxed);
    let opening = async {
        let opened = tls.shake_hands(socket, at_rest, &server.metrics).await?;
        if let Opened::Tls(stream) = &opened {
            let of_client = Peer::Client { address: peer.ip() };
            let checked = tls.engine.check(of_client, stream.peer_certificates()).await;
            checked.map_err(|refused| Failed::Refused(Refusal::of_certificate(&refused)))?;
        }
        Ok(opened)
    };
    let Some(opened) = stop.run_until_cancelled(opening).await else { return };
    let machine = |proved: Vec<Identity>| {
        let conn = shared.conns.add(|id| {
            let conn = Conn::new(id, peer, at_ms).identified(proved);
            if tls.is_unified { conn } else { conn.at_secure_port() }
        });
        Connection::new(conn, shared.clone())
    };
    match opened {
        Ok(Opened::Tls(stream)) => match proved(&stream, &shared.limits.schemes) {
            Ok(proved) => serve(stream, machine(proved), Vec::new(), server, place).await,
            Err(failed) => tls.report(failed, peer, port, &server.metrics),
        },
        Ok(Opened::Plain(socket, first)) => {
            serve(socket, machine(Vec::new()), first, server, place).await;
        }
        Err(failed) => tls.report(failed, peer, port, &server.metrics),
    }
}

/// The identities that a client has by its certificate.
fn proved(stream: &TlsStream, schemes: &Schemes) -> Result<Vec<Identity>, Failed> {
    let Some(certificate) = stream.peer_certificates().first() else { return Ok(Vec::new()) };
    match x509::subject(certificate) {
        Ok(subject) => Ok(schemes.of_certificate(&subject)),
        Err(error) => {
            let reason = format!("the subject of the peer's certificate can't be printed: {error}");
            Err(Failed::Refused(Refusal::new(reason, None)))
        }
    }
}

impl TlsPort {
    async fn shake_hands(
        &self,
        socket: TcpStream,
        at_rest: bool,
        metrics: &Registry,
    ) -> Result<Opened, Failed> {
        if self.drops_early && !self.is_unified && at_rest {
            return Err(Failed::NotServing);
        }
        let began = Instant::now();
        let patience = self.sessionless_max.min(HANDSHAKE_MAX);
        // A silent connection at a unified port may be a plain one.
        let for_first = if self.is_unified { self.sessionless_max } else { patience };
        let first = timeout_at(began + for_first, first_bytes(&socket)).await;
        let first = first.map_err(|_| Failed::Refused(Refusal::late(for_first)))?;
        let first = first.map_err(Failed::Gone)?;
        match sniff(&first) {
            Sniffed::Tls => {}
            Sniffed::Plain if self.is_unified => return Ok(Opened::Plain(socket, first)),
            Sniffed::Plain => return Err(Failed::NoTls),
            // As a probe of the port does.
            Sniffed::Open => return Err(Failed::Gone(io::ErrorKind::UnexpectedEof.into())),
        }
        let Some(_under_way) = UnderWay::begin(&metrics.tls.handshakes, self.handshakes_max) else {
            return Err(Failed::TooManyHandshakes);
        };
        let deadline = match self.is_unified {
            true => (Instant::now() + HANDSHAKE_MAX).min(began + self.sessionless_max),
            false => began + patience,
        };
        let engine = self.engine.clone();
        let shaking = self.handshakes.perform(socket, move || engine.accepted(), first);
        match timeout_at(deadline, shaking).await {
            Ok(Ok(stream)) => Ok(Opened::Tls(stream)),
            Ok(Err(HandshakeError::Io(error))) if error.get_ref().is_none() => {
                Err(Failed::Gone(error))
            }
            Ok(Err(error)) => Err(Failed::Refused(Refusal::of(&error))),
            Err(_) => Err(Failed::Refused(Refusal::late(deadline - began))),
        }
    }

    /// Counts a connection that is not served, and writes at most one line about it.
    fn report(&self, failed: Failed, peer: SocketAddr, port: u16, metrics: &Registry) {
        match failed {
            Failed::TooManyHandshakes => {
                tracing::warn!(
                    target: crate::model::STRANGERS, %peer, port,
                    "connection closed: netty.server.outstandingHandshake.limit is reached; \
                     raise it if these are your clients"
                );
                return metrics.tls_handshake_exceeded.increment();
            }
            Failed::NotServing => {
                tracing::debug!(%peer, "connection closed before its handshake: no client is served now");
                return metrics.cnxn_closed_without_zk_server_running.increment();
            }
            Failed::Refused(refusal) => refusal.log(peer, port, self.engine.settings().prefix),
            Failed::NoTls => tracing::warn!(
                target: crate::model::STRANGERS, %peer, port,
                "connection closed: it does not begin with TLS, and this port speaks nothing else; \
                 dial clientPort without TLS, or this port with it"
            ),
            Failed::Gone(error) => tracing::debug!(%peer, %error, "client connection"),
        }
        metrics.tls.auth_failed.increment();
        metrics.unsuccessful_handshake.increment();
    }
}

/// Reads until the bytes tell TLS from other protocols, or the client has closed.
async fn first_bytes(socket: &TcpStream) -> io::Result<Vec<u8>> {
    let (mut bytes, mut len) = ([0; SNIFF_BYTES], 0);
    loop {
        socket.readable().await?;
        match socket.try_read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if sniff(&bytes[..len]) != Sniffed::Open {
            break;
        }
    }
    Ok(bytes[..len].to_vec())
}

/// One of the handshakes under way, while it is kept.
struct UnderWay<'m>(&'m AtomicU64);

impl<'m> UnderWay<'m> {
    /// `None`: there are as many as the limit allows.
    fn begin(count: &'m AtomicU64, max: Option<u32>) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let this = Self(count);
        max.is_none_or(|max| before < u64::from(max)).then_some(this)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
