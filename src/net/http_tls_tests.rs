//! HTTP ports with TLS, over sockets of this machine.

use super::http::{HttpAnswer, HttpBody, HttpRequest, serve_http};
use super::http_tls::{HttpTls, Plain};
use super::tls::test_certificates::{Authority, settings};
use super::tls::{Engine, EngineRole, Handshakes, tool_client};
use crate::config::tls::ClientAuth;
use crate::metrics::Registry;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const GET: &[u8] = b"GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
/// More than a socket takes at once.
const LONG: usize = 3_000_000;

struct Port {
    _folder: tempfile::TempDir,
    authority: Authority,
    other: Authority,
    address: SocketAddr,
    metrics: Arc<Registry>,
}

impl Port {
    async fn serve(client_auth: ClientAuth, plain: fn(Arc<Registry>) -> Plain) -> Self {
        Self::serve_with(client_auth, plain, None).await
    }

    /// * `clients`: what client ports are set to, if they speak TLS, and whether they trust the same authority.
    async fn serve_with(
        client_auth: ClientAuth,
        plain: fn(Arc<Registry>) -> Plain,
        clients: Option<(ClientAuth, bool)>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let other = Authority::new(folder.path(), "other");
        let mut settings = settings(&authority.issue("server"), &authority.trust);
        settings.client_auth = client_auth;
        let (engine, _) = Engine::new(settings, EngineRole::Server).unwrap();
        let metrics = Arc::new(Registry::default());
        let plain = plain(metrics.clone());
        let handshakes = Handshakes::of_http().unwrap();
        let identities = clients.map(|(client_auth, is_same)| {
            let trust = if is_same { &authority.trust } else { &other.trust };
            let mut settings =
                super::tls::test_certificates::settings(&authority.issue("own"), trust);
            settings.client_auth = client_auth;
            Arc::new(Engine::new(settings, EngineRole::Server).unwrap().0)
        });
        let engine = Arc::new(engine);
        let tls = Arc::new(HttpTls { engine, identities, handshakes, plain });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(|asked: HttpRequest, _body: HttpBody| -> _ {
            let line = format!("{} {:?}\n", asked.is_secure, asked.subject);
            let body = [line.into_bytes(), vec![b'x'; LONG]].into_iter();
            let answer = HttpAnswer {
                status: 200,
                content_type: None,
                headers: Vec::new(),
                length: None,
                body: Box::new(body),
            };
            Box::pin(std::future::ready(answer))
                as std::pin::Pin<Box<dyn Future<Output = HttpAnswer> + Send>>
        });
        let (idle_max, stop) = (Duration::from_secs(5), CancellationToken::new());
        tokio::spawn(serve_http(listener, idle_max, Some(tls), answers, stop));
        Self { _folder: folder, authority, other, address, metrics }
    }

    /// What a plain request is answered; nothing if the connection is closed.
    async fn plain(&self) -> String {
        let address = self.address;
        asked(move || TcpStream::connect(address).unwrap()).await
    }

    /// The same over TLS. * `own`: the client's key store.
    async fn secure(&self, own: Option<PathBuf>) -> String {
        let (address, trust) = (self.address, self.authority.trust.clone());
        asked(move || {
            let own = own.as_deref().map(|own| (own, own));
            let config = tool_client(&trust, own).unwrap();
            let name = "localhost".try_into().unwrap();
            let tls = ClientConnection::new(config, name).unwrap();
            StreamOwned::new(tls, TcpStream::connect(address).unwrap())
        })
        .await
    }
}

/// Sends a request on a thread, and returns the line that the server logs.
async fn asked<S: Read + Write>(connect: impl FnOnce() -> S + Send + 'static) -> String {
    let ask = move || {
        let mut stream = connect();
        let mut answer = Vec::new();
        // A refused connection may be closed at any point.
        let _closed = stream.write_all(GET).and_then(|()| stream.read_to_end(&mut answer));
        let text = String::from_utf8(answer).unwrap();
        let Some((_, body)) = text.split_once("\r\n\r\n") else { return String::new() };
        let line = body.lines().find(|line| line.contains("true") || line.contains("false"));
        assert!(body.matches('x').count() >= LONG, "{} bytes", body.len());
        line.unwrap_or_default().to_owned()
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

fn key(path: &Path) -> Option<PathBuf> {
    Some(path.to_owned())
}

// rows: C-236 A-08
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unified_port_speaks_both_and_counts_plain_connections() {
    let port = Port::serve(ClientAuth::None, Plain::Counted).await;
    assert_eq!(port.plain().await, "false None");
    assert_eq!(port.secure(None).await, "true None");
    assert_eq!(port.metrics.insecure_admin_count.get(), 1);
    drop(TcpStream::connect(port.address).unwrap());
    assert_eq!(port.plain().await, "false None");
    assert_eq!(port.metrics.insecure_admin_count.get(), 2);
}

// rows: C-237 C-238 A-08
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forced_port_serves_no_plain_connection_and_asks_for_trusted_certificates() {
    let port = Port::serve(ClientAuth::Need, |_| Plain::Refused).await;
    assert_eq!(port.plain().await, "");
    assert_eq!(port.metrics.insecure_admin_count.get(), 0);
    assert_eq!(port.secure(None).await, "");
    assert_eq!(port.secure(key(&port.other.issue("stranger"))).await, "");
    assert_eq!(port.secure(key(&port.authority.issue("client"))).await, "true None");
}

// rows: A-06 U-08
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_is_an_identity_only_if_the_trust_store_of_client_ports_has_its_authority() {
    for client_auth in [ClientAuth::Need, ClientAuth::None] {
        for (is_same, subject) in [(true, "Some(\"CN=client\")"), (false, "None")] {
            let clients = Some((client_auth, is_same));
            let port = Port::serve_with(ClientAuth::Need, |_| Plain::Refused, clients).await;
            let served = port.secure(key(&port.authority.issue("client"))).await;
            assert_eq!(served, format!("true {subject}"), "{client_auth:?}");
        }
    }
}
