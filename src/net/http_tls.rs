//! How connections to an HTTP port begin: plain, with TLS, or as their first bytes say.

use super::first_bytes::FirstBytes;
use super::tls::{Engine, Handshakes, Refusal, TlsStream};
use crate::auth::x509::{self, Peer};
use crate::member::tls_detection::{Decision, Detection, Refused};
use crate::metrics::Registry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// TLS of an HTTP port.
pub struct HttpTls {
    pub engine: Arc<Engine>,
    /// That of client ports, which decides whether a certificate is an identity; `None`: none is.
    ///
    /// Source: the constructor of `X509AuthenticationProvider`, ZooKeeper 3.9.5.
    pub identities: Option<Arc<Engine>>,
    pub handshakes: Handshakes,
    pub plain: Plain,
}

/// What becomes of plain connections.
#[derive(Clone)]
pub enum Plain {
    Refused,
    Served,
    /// They are served, and counted as AdminServer's.
    Counted(Arc<Registry>),
}

/// A connection that has shown what it speaks.
pub(super) enum Opened {
    Plain(TcpStream),
    /// * `subject`: of the client's certificate, if it has shown one that is an identity.
    Tls {
        stream: TlsStream,
        subject: Option<String>,
    },
}

/// Why a connection is not served.
enum Failed {
    /// Closed before its handshake was done.
    Refused(Refused),
    /// Refused by the handshake, or for its certificate.
    Handshake(Refusal),
}

impl HttpTls {
    /// Shakes hands if the connection begins with TLS. `None`: it is not served.
    ///
    /// * `patience`: how long the client may send nothing.
    pub(super) async fn open(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        patience: Duration,
    ) -> Option<Opened> {
        let port = socket.local_addr().map_or(0, |address| address.port());
        match self.shake_hands(socket, peer, patience).await {
            Ok(opened) => return Some(opened),
            Err(Failed::Refused(Refused::Gone)) => {
                tracing::debug!(%peer, "HTTP connection ended before its first request")
            }
            Err(Failed::Refused(Refused::NoTls(_))) => tracing::warn!(
                target: crate::model::STRANGERS, %peer, port,
                "connection closed: it does not begin with TLS, and this HTTP port speaks nothing else; \
                 ask for https"
            ),
            Err(Failed::Refused(refused)) => {
                self.log(Refusal::new(refused.to_string(), None), peer, port);
            }
            Err(Failed::Handshake(refusal)) => self.log(refusal, peer, port),
        }
        None
    }

    async fn shake_hands(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        patience: Duration,
    ) -> Result<Opened, Failed> {
        let (began, gone) = (Instant::now(), || Failed::Refused(Refused::Gone));
        let is_unified = !matches!(self.plain, Plain::Refused);
        let detection = Detection::Http { is_unified, silent_max: patience };
        let decision = FirstBytes::looked_at(&socket).decide(&detection, began).await;
        let handshake = match decision.map_err(|_| gone())? {
            Decision::TlsHandshake(handshake) => handshake,
            Decision::Refuse(refused) => return Err(Failed::Refused(refused)),
            Decision::Plain => {
                if let Plain::Counted(metrics) = &self.plain {
                    metrics.insecure_admin_count.increment();
                }
                return Ok(Opened::Plain(socket));
            }
        };
        let engine = self.engine.clone();
        let shaking = self.handshakes.perform(socket, move || engine.accepted(), Vec::new());
        let stream = match timeout_at(began + handshake.until, shaking).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.is_of_socket() => return Err(gone()),
            Ok(Err(error)) => return Err(Failed::Handshake(self.engine.refusal(&error))),
            Err(_) => return Err(Failed::Refused(handshake.late())),
        };
        let of_client = Peer::Client { address: peer.ip() };
        let checked = self.engine.check(of_client, stream.peer_certificates()).await;
        checked.map_err(|refused| Failed::Handshake(Refusal::of_certificate(&refused)))?;
        let subject = stream.peer_certificates().first().map(|own| x509::subject(own)).transpose();
        let subject = subject.map_err(|error| {
            let reason = format!("the subject of the peer's certificate can't be printed: {error}");
            Failed::Handshake(Refusal::new(reason, None))
        })?;
        let subject = match subject {
            Some(subject) => self.identity(subject, &stream, peer).await,
            None => None,
        };
        Ok(Opened::Tls { stream, subject })
    }

    /// The subject, if clients with this certificate have the identity x509.
    async fn identity(
        &self,
        subject: String,
        stream: &TlsStream,
        peer: SocketAddr,
    ) -> Option<String> {
        let engine = self.identities.as_ref()?;
        match engine.check_shown(stream.peer_certificates()).await {
            Ok(()) => Some(subject),
            Err(reason) => {
                tracing::debug!(%peer, %subject, %reason, "certificate of an HTTP client is no identity, by the trust store of client ports");
                None
            }
        }
    }

    /// Logs a refusal with the setting to look at: AdminServer has the stores of connections between servers, and other settings.
    fn log(&self, mut refusal: Refusal, peer: SocketAddr, port: u16) {
        let mut prefix = self.engine.settings().prefix;
        if prefix == "ssl.quorum." {
            match refusal.setting {
                Some("clientAuth") => {
                    (prefix, refusal.setting) = ("admin.", Some("needClientAuth"))
                }
                Some("enabledProtocols" | "ciphersuites") => refusal.setting = None,
                _ => {}
            }
        } else if refusal.setting == Some("clientAuth") {
            refusal.setting = Some("need.client.auth");
        }
        refusal.log(peer, port, prefix);
    }
}
