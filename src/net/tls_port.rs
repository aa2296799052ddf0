//! Client connections that begin with TLS, or may begin with it: what comes before the connection's own protocol.

use super::client::{ServerHandles, serve};
use super::client_counts::CountedConnection;
use super::first_bytes::FirstBytes;
use super::tls::{Engine, HandshakeError, Handshakes, Refusal, TlsStream};
use crate::auth::Schemes;
use crate::auth::x509::{self, Peer};
use crate::member::tls_detection::{ClientDetection, Decision, Detection, Refused};
use crate::metrics::Registry;
use crate::model::Identity;
use crate::request::{ClientHandle, Connection, Shared};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

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
    pub slot: CountedConnection,
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
    /// Closed before its handshake was done.
    Refused(Refused),
    /// Refused by the handshake, or for its certificate.
    Handshake(Refusal),
    /// The connection broke: no line is written about that.
    Broken(HandshakeError),
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
    let Accepted { socket, peer, port, slot, at_ms } = accepted;
    let at_rest = shared.at_rest.load(Ordering::Relaxed);
    let opening = async {
        let opened = tls.shake_hands(socket, at_rest, &server.metrics).await?;
        if let Opened::Tls(stream) = &opened {
            let of_client = Peer::Client { address: peer.ip() };
            let checked = tls.engine.check(of_client, stream.peer_certificates()).await;
            checked.map_err(|refused| Failed::Handshake(Refusal::of_certificate(&refused)))?;
        }
        Ok(opened)
    };
    // Boxed, and gone before the connection is served: within this future it would take memory for as long as the connection lives.
    let Some(opened) = stop.run_until_cancelled(Box::pin(opening)).await else { return };
    let machine = |proved: Vec<Identity>| {
        let conn = shared.conns.add(|id| {
            let conn = ClientHandle::new(id, peer, at_ms).identified(proved);
            if tls.is_unified { conn } else { conn.at_secure_port() }
        });
        Connection::new(conn, shared.clone())
    };
    match opened {
        Ok(Opened::Tls(stream)) => match proved(&stream, &shared.limits.schemes) {
            Ok(proved) => serve(stream, machine(proved), Vec::new(), server, slot).await,
            Err(failed) => tls.report(failed, peer, port, &server.metrics),
        },
        Ok(Opened::Plain(socket, first)) => {
            serve(socket, machine(Vec::new()), first, server, slot).await;
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
            Err(Failed::Handshake(Refusal::new(reason, None)))
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
        let (began, detection) = (Instant::now(), self.detection(at_rest));
        let mut first = FirstBytes::taken(&socket);
        let broken = |error: io::Error| Failed::Broken(error.into());
        let decision = first.decide(&detection, began).await.map_err(broken)?;
        let first = first.bytes().to_vec();
        let handshake = match decision {
            Decision::TlsHandshake(handshake) => handshake,
            Decision::Plain => return Ok(Opened::Plain(socket, first)),
            Decision::Refuse(refused) => return Err(Failed::Refused(refused)),
        };
        let under_way = UnderWay::begin(&metrics.tls.handshakes);
        handshake.admit(under_way.others).map_err(Failed::Refused)?;
        let engine = self.engine.clone();
        let shaking = self.handshakes.perform(socket, move || engine.accepted(), first);
        match timeout_at(began + handshake.until, shaking).await {
            Ok(Ok(stream)) => Ok(Opened::Tls(stream)),
            Ok(Err(error)) if error.is_of_socket() => Err(Failed::Broken(error)),
            Ok(Err(error)) => Err(Failed::Handshake(self.engine.refusal(&error))),
            Err(_) => Err(Failed::Refused(handshake.late())),
        }
    }

    const fn detection(&self, is_at_rest: bool) -> Detection {
        Detection::Clients(ClientDetection {
            is_unified: self.is_unified,
            sessionless_max: self.sessionless_max,
            drops_early: self.drops_early,
            is_at_rest,
            handshakes_max: self.handshakes_max,
        })
    }

    /// Counts a connection that is not served, and writes at most one line about it.
    fn report(&self, failed: Failed, peer: SocketAddr, port: u16, metrics: &Registry) {
        let prefix = self.engine.settings().prefix;
        match failed {
            Failed::Refused(Refused::TooManyHandshakes) => {
                tracing::warn!(
                    target: crate::model::STRANGERS, %peer, port,
                    "connection closed: netty.server.outstandingHandshake.limit is reached; \
                     raise it if these are your clients"
                );
                return metrics.tls_handshake_exceeded.increment();
            }
            Failed::Refused(Refused::NotServing) => {
                tracing::debug!(%peer, "connection closed before its handshake: no client is served now");
                return metrics.cnxn_closed_without_zk_server_running.increment();
            }
            Failed::Refused(refused @ Refused::Late(_)) => {
                Refusal::new(refused.to_string(), None).log(peer, port, prefix);
            }
            Failed::Refused(Refused::NoTls(_)) => tracing::warn!(
                target: crate::model::STRANGERS, %peer, port,
                "connection closed: it does not begin with TLS, and this port speaks nothing else; \
                 dial clientPort without TLS, or this port with it"
            ),
            Failed::Handshake(refusal) => refusal.log(peer, port, prefix),
            Failed::Refused(error @ Refused::Gone) => {
                tracing::debug!(%peer, %error, "client connection");
            }
            Failed::Broken(error) => tracing::debug!(%peer, %error, "client connection"),
        }
        metrics.tls.auth_failed.increment();
        metrics.unsuccessful_handshake.increment();
    }
}

/// One of the handshakes under way, while it is kept.
struct UnderWay<'m> {
    count: &'m AtomicU64,
    /// How many were under way when it began.
    others: u64,
}

impl<'m> UnderWay<'m> {
    fn begin(count: &'m AtomicU64) -> Self {
        let others = count.fetch_add(1, Ordering::Relaxed);
        Self { count, others }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the future that such a function returns.
    const fn size_of_future<A, B, C, D, E, F>(_: fn(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn task_of_an_idle_connection_holds_neither_its_handshake_nor_its_end() {
        let sizes = (size_of_future(open), size_of_future(serve::<TcpStream, CountedConnection>));
        assert!(sizes.0 <= 1024 && sizes.1 <= 256, "{sizes:?}");
    }
}
