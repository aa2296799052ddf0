//! How connections between servers begin: plain, with TLS, or as the first bytes of the dialing server say.

use super::peer_stream::PeerStream;
use super::tls::{
    Engine, HandshakeError, Handshakes, Peer, Refusal, SNIFF_BYTES, Sniffed, TlsStream, sniff,
};
use crate::member::election_connections::REFUSED_BY_TLS;
use crate::model::LogMinute;
use rustls_pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

/// From accept to a finished handshake. A learner's hello has the same time, from the accept too.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How often a connection is looked at that has sent some, and too few, of the bytes that tell TLS from other protocols.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How this server's connections to other servers are secured. The default is not at all.
#[derive(Clone, Default)]
pub struct PeerSecurity(Option<Arc<PeerTls>>);

/// TLS between servers.
pub struct PeerTls {
    pub engine: Arc<Engine>,
    pub handshakes: Handshakes,
    /// `sslQuorum`: this server dials with TLS.
    pub dials: bool,
    /// `portUnification`: plain connections are accepted beside TLS.
    pub is_unified: bool,
    /// The hosts of the members of all configurations that count: one that dials may have its own in its certificate.
    pub hosts: Mutex<Arc<[String]>>,
    /// When a refusal of each peer was logged, in time since `began`.
    pub told: Mutex<LogMinute<(IpAddr, String)>>,
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
        let detection = Duration::from_millis(tls.engine.settings().detection_timeout_ms.into());
        let sniffed = timeout_at(began + detection.min(HANDSHAKE_MAX), look(&socket)).await;
        // A silent connection counts as plain, as in Java: the dialing server may wait for this one.
        match sniffed.unwrap_or(Ok(Sniffed::Plain))? {
            Sniffed::Tls => {}
            Sniffed::Open => return Err(io::ErrorKind::UnexpectedEof.into()),
            Sniffed::Plain if tls.is_unified => {
                tracing::info!(target: crate::model::STRANGERS, %peer, port, "plain connection of a server accepted");
                return Ok(socket.into());
            }
            Sniffed::Plain => {
                tracing::warn!(
                    target: crate::model::STRANGERS, %peer, port,
                    "connection closed: it does not begin with TLS, and sslQuorum asks for it; if the \
                     peer is a member, give it sslQuorum=true, or this server portUnification=true"
                );
                return Err(io::Error::other(format!(
                    "{REFUSED_BY_TLS}it does not begin with TLS, and sslQuorum asks for it"
                )));
            }
        }
        let engine = tls.engine.clone();
        let shaking = tls.handshakes.perform(socket, move || engine.accepted(), Vec::new());
        let stream = match timeout_at(began + HANDSHAKE_MAX, shaking).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(tls.refused(Refusal::of(&error), &error, peer, port)),
            Err(_) => return Err(tls.late(peer, port)),
        };
        let hosts = tls.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of_member = Peer::Member { address: peer.ip().to_canonical(), hosts: &hosts };
        tls.check(of_member, &stream, peer, port).await?;
        tell(&stream, peer);
        Ok(PeerStream::Tls { stream, is_dialed: false })
    }

    /// Secures a connection that this server made.
    ///
    /// * `host`: of the server that was dialed, as the configuration names it.
    ///
    /// # Errors
    /// Why it is closed; a line was written.
    pub async fn dialed(&self, socket: TcpStream, host: &str) -> io::Result<PeerStream> {
        let Some(tls) = self.0.as_ref().filter(|tls| tls.dials) else { return Ok(socket.into()) };
        let peer = socket.peer_addr()?;
        // What can be no host name in a certificate is compared by its address.
        let name = ServerName::try_from(host.to_owned())
            .unwrap_or_else(|_| ServerName::IpAddress(peer.ip().to_canonical().into()));
        let engine = tls.engine.clone();
        let shaking = tls.handshakes.perform(socket, move || engine.dialed(name), Vec::new());
        let stream = match timeout_at(Instant::now() + HANDSHAKE_MAX, shaking).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                return Err(tls.refused(Refusal::of(&error), &error, peer, peer.port()));
            }
            Err(_) => return Err(tls.late(peer, peer.port())),
        };
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

    fn refused(
        &self,
        refusal: Refusal,
        error: &HandshakeError,
        peer: SocketAddr,
        port: u16,
    ) -> io::Error {
        // A probe of the port, or a server that has ended: no certificate and no setting is to blame.
        match error {
            HandshakeError::Io(error) if error.get_ref().is_none() => {
                tracing::debug!(%peer, %error, "handshake between servers");
            }
            _ => self.log(&refusal, peer, port),
        }
        io::Error::other(format!("{REFUSED_BY_TLS}{}", refusal.reason))
    }

    fn late(&self, peer: SocketAddr, port: u16) -> io::Error {
        let refusal = Refusal::late(HANDSHAKE_MAX);
        self.log(&refusal, peer, port);
        io::Error::new(io::ErrorKind::TimedOut, format!("{REFUSED_BY_TLS}{}", refusal.reason))
    }

    /// Logs a refused handshake, once a minute for each peer and reason: a member that is refused tries again each second.
    fn log(&self, refusal: &Refusal, peer: SocketAddr, port: u16) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let kind = (peer.ip(), refusal.reason.clone());
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).admit(kind, now_ms) {
            refusal.log(peer, port, self.engine.settings().prefix);
        } else {
            tracing::debug!(%peer, port, reason = refusal.reason, "TLS handshake refused again");
        }
    }
}

/// One line for each connection, with what was agreed on.
fn tell(stream: &TlsStream, peer: SocketAddr) {
    let (protocol, cipher_suite) = stream.agreed();
    tracing::info!(target: crate::model::STRANGERS, %peer, protocol, cipher_suite, "TLS connection of a server accepted");
}

/// Looks at the first bytes and leaves them unread.
pub(super) async fn look(socket: &TcpStream) -> io::Result<Sniffed> {
    let mut first = [0; SNIFF_BYTES];
    loop {
        let len = socket.peek(&mut first).await?;
        match sniff(&first[..len]) {
            Sniffed::Open if len > 0 => sleep(LOOK_EVERY).await, // `peek` would return at once.
            sniffed => return Ok(sniffed),
        }
    }
}
