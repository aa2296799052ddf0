//! How connections between servers begin: plain, with TLS, or as the first bytes of the dialing server say.

use super::first_bytes::FirstBytes;
use super::peer_stream::PeerStream;
use super::tls::{Engine, HandshakeError, Handshakes, Refusal, TlsStream};
use crate::auth::x509::Peer;
use crate::member::election_connections::REFUSED_BY_TLS;
use crate::member::tls_detection::{Decision, Detection, Handshake, Refused};
use crate::model::LogMinute;
use rustls_pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// How this server's connections to other servers are secured. The default is not at all.
#[derive(Clone, Default)]
pub struct PeerSecurity(Option<Arc<PeerTls>>);

/// TLS between servers.
pub struct PeerTls {
    pub engine: Arc<Engine>,
    pub handshakes: Handshakes,
    /// `sslQuorum`: this server dials with TLS.
    pub dials: bool,
    /// `portUnification`: plain connections are accepted as well as TLS.
    pub is_unified: bool,
    /// The hosts of the members of all configurations that count: one that dials may have its own in its certificate.
    pub hosts: Mutex<Arc<[String]>>,
    /// When a refusal of each peer was logged, in time since `began`.
    pub logged: Mutex<LogMinute<(IpAddr, String)>>,
    pub began: Instant,
}

impl PeerSecurity {
    pub fn new(tls: Option<PeerTls>) -> Self {
        Self(tls.map(Arc::new))
    }

    /// Takes the hosts of the members of all configurations that count.
    pub fn set_hosts(&self, hosts: Arc<[String]>) {
        if let Some(tls) = &self.0 {
            *tls.hosts.lock().unwrap_or_else(PoisonError::into_inner) = hosts;
        }
    }

    /// Secures a connection that another server made.
    ///
    /// # Errors
    /// Why it is closed; a line was written.
    pub async fn accepted(&self, socket: TcpStream) -> io::Result<PeerStream> {
        let Some(tls) = &self.0 else { return Ok(socket.into()) };
        let (peer, port) = (socket.peer_addr()?, socket.local_addr()?.port());
        let began = Instant::now();
        let decision = FirstBytes::looked_at(&socket).decide(&tls.detection(), began).await?;
        let handshake = match decision {
            Decision::TlsHandshake(handshake) => handshake,
            Decision::Plain => {
                tracing::info!(target: crate::model::STRANGERS, %peer, port, "plain connection of a server accepted");
                return Ok(socket.into());
            }
            Decision::Refuse(refused) => return Err(tls.refuse(refused, peer, port)),
        };
        let engine = tls.engine.clone();
        let shaking = tls.handshakes.perform(socket, move || engine.accepted(), Vec::new());
        let shaken = timeout_at(began + handshake.until, shaking).await;
        let stream = tls.shaken(shaken, handshake, peer, port)?;
        let hosts = tls.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of_member = Peer::Member { address: peer.ip().to_canonical(), hosts: &hosts };
        tls.check(of_member, &stream, peer, port).await?;
        log_accepted(&stream, peer);
        Ok(PeerStream::Tls { stream, is_dialed: false })
    }

    /// Secures a connection that this server made.
    ///
    /// * `host`: of the server that was dialed, as the configuration names it.
    ///
    /// # Errors
    /// Why it is closed; a line was written.
    pub async fn dialed(&self, socket: TcpStream, host: &str) -> io::Result<PeerStream> {
        let Some(tls) = &self.0 else { return Ok(socket.into()) };
        let began = Instant::now();
        let Some(handshake) = Handshake::dialed(tls.dials) else { return Ok(socket.into()) };
        let peer = socket.peer_addr()?;
        // What can be no host name in a certificate is compared by its address.
        let name = ServerName::try_from(host.to_owned())
            .unwrap_or_else(|_| ServerName::IpAddress(peer.ip().to_canonical().into()));
        let engine = tls.engine.clone();
        let shaking = tls.handshakes.perform(socket, move || engine.dialed(name), Vec::new());
        let shaken = timeout_at(began + handshake.until, shaking).await;
        let stream = tls.shaken(shaken, handshake, peer, peer.port())?;
        let of_server = Peer::Dialed { address: peer.ip().to_canonical(), host };
        tls.check(of_server, &stream, peer, peer.port()).await?;
        Ok(PeerStream::Tls { stream, is_dialed: true })
    }
}

impl PeerTls {
    /// Judges what comes after the handshake.
    async fn check(
        &self,
        who: Peer<'_>,
        stream: &TlsStream,
        peer: SocketAddr,
        port: u16,
    ) -> io::Result<()> {
        let checked = self.engine.check(who, stream.peer_certificates()).await;
        checked.map_err(|refused| {
            let refusal = Refusal::of_certificate(&refused);
            self.log(&refusal, peer, port);
            io::Error::other(format!("{REFUSED_BY_TLS}{}", refusal.reason))
        })
    }

    fn detection(&self) -> Detection {
        let silent_max = self.engine.settings().detection_timeout_ms.into();
        let silent_max = Duration::from_millis(silent_max);
        Detection::Servers { is_unified: self.is_unified, silent_max }
    }

    /// The stream of a handshake that has come to its end.
    fn shaken(
        &self,
        shaken: Result<Result<TlsStream, HandshakeError>, Elapsed>,
        handshake: Handshake,
        peer: SocketAddr,
        port: u16,
    ) -> io::Result<TlsStream> {
        let Ok(shaken) = shaken else { return Err(self.refuse(handshake.late(), peer, port)) };
        shaken.map_err(|error| {
            let refusal = self.engine.refusal(&error);
            if error.is_of_socket() {
                tracing::debug!(%peer, %error, "handshake between servers");
            } else {
                self.log(&refusal, peer, port);
            }
            io::Error::other(format!("{REFUSED_BY_TLS}{}", refusal.reason))
        })
    }

    fn refuse(&self, refused: Refused, peer: SocketAddr, port: u16) -> io::Error {
        match refused {
            Refused::Gone => return io::ErrorKind::UnexpectedEof.into(),
            Refused::NoTls(_) if self.is_due(peer, &refused.to_string()) => tracing::warn!(
                target: crate::model::STRANGERS, %peer, port,
                "connection closed: it does not begin with TLS, and sslQuorum asks for it; if the \
                 peer is a member, give it sslQuorum=true, or this server portUnification=true"
            ),
            Refused::NoTls(_) => {
                tracing::debug!(%peer, port, "connection without TLS closed again")
            }
            Refused::Late(_) | Refused::NotServing | Refused::TooManyHandshakes => {
                self.log(&Refusal::new(refused.to_string(), None), peer, port);
            }
        }
        io::Error::other(format!("{REFUSED_BY_TLS}{refused}"))
    }

    /// Logs a refused handshake, once a minute for each peer and reason: a member that is refused tries again each second.
    fn log(&self, refusal: &Refusal, peer: SocketAddr, port: u16) {
        if self.is_due(peer, &refusal.reason) {
            refusal.log(peer, port, self.engine.settings().prefix);
        } else {
            tracing::debug!(%peer, port, reason = %refusal.reason, "TLS handshake refused again");
        }
    }

    /// Whether no line of this reason was logged for this peer's host within the last minute.
    fn is_due(&self, peer: SocketAddr, reason: &str) -> bool {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let kind = (peer.ip(), reason.to_owned());
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).admit(kind, now_ms)
    }
}

/// One line for each connection, with what was agreed on.
fn log_accepted(stream: &TlsStream, peer: SocketAddr) {
    let (protocol, cipher_suite) = stream.agreed();
    tracing::info!(target: crate::model::STRANGERS, %peer, %protocol, %cipher_suite, "TLS connection of a server accepted");
}
