//! Client ports with TLS, over sockets of this machine.

use crate::config::tls::{ClientAuth, TlsSettings, TlsVersion};
use crate::config::{Config, Environment, Source, parse};
use crate::member::ListenAddress;
use crate::metrics::Registry;
use crate::net::tls::test_certificates::{Authority, settings};
use crate::net::tls::{Engine, EngineRole, HandshakeError, Handshakes, TlsStream, tool_client};
use crate::net::{ClientPorts, Listener, ServerHandles, Sink, TlsPort, WordAnswer, WordRequest};
use crate::request::{ClientCommand, Limits, Shared};
use crate::tree::{Options, State, Tree};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

struct Port {
    _folder: tempfile::TempDir,
    authority: Authority,
    address: SocketAddr,
    shared: Arc<Shared>,
    metrics: Arc<Registry>,
    commands: UnboundedReceiver<ClientCommand>,
    stop: CancellationToken,
    handshakes: Arc<Handshakes>,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn config(lines: &str) -> Config {
    let text = format!("dataDir=/d\nclientPort=0\nclientPortAddress=127.0.0.1\n{lines}\n");
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
    parse(source, &Environment::new(), &[]).unwrap()
}

/// Answers each four-letter word with the word itself, what came after it, and the port.
fn echo(asked: WordRequest) -> Pin<Box<dyn Future<Output = WordAnswer> + Send>> {
    let port = if asked.at_secure_port { "secure" } else { "plain" };
    let word = String::from_utf8_lossy(&asked.word).into_owned();
    let answer: WordAnswer = Box::new([format!("{word}:{port}").into_bytes()].into_iter());
    Box::pin(std::future::ready(answer))
}

impl Port {
    /// A served port. `change` may change the settings and the port.
    fn serve(lines: &str, change: impl FnOnce(&mut TlsSettings, &mut TlsPort)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        let mut wanted = settings(&authority.issue("server"), &authority.trust);
        let handshakes = Arc::new(Handshakes::of_clients().unwrap());
        let engine = Arc::new(Engine::new(wanted.clone(), EngineRole::Server).unwrap().0);
        let mut tls = TlsPort {
            engine,
            handshakes: handshakes.clone(),
            is_unified: false,
            handshakes_max: None,
            drops_early: false,
            sessionless_max: Duration::from_secs(60),
        };
        change(&mut wanted, &mut tls);
        tls.engine = Arc::new(Engine::new(wanted, EngineRole::Server).unwrap().0);
        let config = config(lines);
        let place = ListenAddress { host: Some("127.0.0.1".to_owned()), port: 0 };
        let listener = Listener::bind_at(&place, &config, Some(Arc::new(tls))).unwrap();
        let address = listener.address;
        let limits = Limits { words: vec![*b"ruok"], ..Limits::default() };
        let shared = Arc::new(Shared::new(State::new(Tree::new(Options::default()), 1), limits));
        let metrics = Arc::new(Registry::default());
        let (sender, commands) = unbounded_channel();
        let server = ServerHandles {
            commands: Sink::from(sender),
            words: Arc::new(echo),
            metrics: metrics.clone(),
            epoch: Instant::now(),
        };
        let stop = CancellationToken::new();
        let ports = ClientPorts {
            shared: shared.clone(),
            server,
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        };
        let (_, stays) = unbounded_channel();
        let port = Arc::new(AtomicU16::new(address.port()));
        tokio::spawn(listener.run(ports, stays, port));
        Self { _folder: folder, authority, address, shared, metrics, commands, stop, handshakes }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A client's TLS connection, with a certificate of `name`.
    async fn dial(&self, name: &str, versions: &[TlsVersion]) -> Result<TlsStream, HandshakeError> {
        let mut wanted = settings(&self.authority.issue(name), &self.authority.trust);
        wanted.versions = versions.to_vec();
        let engine = Engine::new(wanted, EngineRole::Peer).unwrap().0;
        let socket = self.connect().await;
        let name = "localhost".try_into().unwrap();
        self.handshakes.perform(socket, move || engine.dialed(name), Vec::new()).await
    }

    /// Waits until a figure has a value.
    async fn until(&self, what: &str, figure: impl Fn(&Registry) -> u64, wanted: u64) {
        let waiting = async {
            while figure(&self.metrics) != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .unwrap_or_else(|_| panic!("{what} is {} and not {wanted}", figure(&self.metrics)));
    }
}

/// The answer to a four-letter word.
async fn ask<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin>(mut stream: S) -> String {
    stream.write_all(b"ruok").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

const BOTH: [TlsVersion; 2] = [TlsVersion::V12, TlsVersion::V13];

// rows: C-16 C-190 C-191 C-193 C-194 C-201
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_letter_word_inside_tls_is_answered_as_of_the_secure_port() {
    let port = Port::serve("", |_, _| {});
    for version in BOTH {
        let stream = port.dial("client", &[version]).await.unwrap();
        assert_eq!(ask(stream).await, "ruok:secure");
    }
    assert_eq!(port.metrics.tls.auth_failed.get(), 0);
    assert_eq!(port.metrics.tls.handshakes_under_way(), 0);
}

// rows: C-118 M-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unified_port_serves_tls_and_plain_connections() {
    let port = Port::serve("", |_, tls| tls.is_unified = true);
    assert_eq!(ask(port.dial("client", &BOTH).await.unwrap()).await, "ruok:plain");
    assert_eq!(ask(port.connect().await).await, "ruok:plain");
    let mut slow = port.connect().await;
    for byte in b"ruok" {
        slow.write_all(&[*byte]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "ruok:plain");
}

// rows: M-11 M-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_bytes_and_silence_at_the_secure_port_are_refused_and_counted() {
    let port = Port::serve("", |_, tls| tls.sessionless_max = Duration::from_millis(300));
    let mut plain = port.connect().await;
    plain.write_all(b"ruok").await.unwrap();
    let mut answer = Vec::new();
    _ = plain.read_to_end(&mut answer).await; // A reset, if it was closed before it was read.
    assert_eq!(answer, b"");
    let failed = |metrics: &Registry| metrics.unsuccessful_handshake.get();
    port.until("unsuccessful_handshake", failed, 1).await;
    // Half a handshake, and none.
    let mut half = port.connect().await;
    half.write_all(b"\x16\x03\x01\x02\0").await.unwrap();
    let mut silent = port.connect().await;
    for stream in [&mut half, &mut silent] {
        _ = stream.read_to_end(&mut answer).await;
    }
    port.until("unsuccessful_handshake", failed, 3).await;
    port.until("auth_failed", |metrics| metrics.tls.auth_failed.get(), 3).await;
    port.until("handshakes", |metrics| metrics.tls.handshakes_under_way(), 0).await;
}

// rows: C-201
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificate_is_judged_as_client_auth_says() {
    for (auth, of_stranger) in
        [(ClientAuth::Need, false), (ClientAuth::Want, false), (ClientAuth::None, true)]
    {
        let port = Port::serve("", |settings, _| settings.client_auth = auth);
        let folder = tempfile::tempdir().unwrap();
        let stranger = Authority::new(folder.path(), "other");
        let wanted = settings(&stranger.issue("stranger"), &port.authority.trust);
        let engine = Engine::new(wanted, EngineRole::Peer).unwrap().0;
        let (socket, name) = (port.connect().await, "localhost".try_into().unwrap());
        let dialed = port.handshakes.perform(socket, move || engine.dialed(name), Vec::new()).await;
        // In TLS 1.3 the dialing end is done before its certificate is judged.
        let served = match dialed {
            Ok(mut stream) => {
                let mut answer = String::new();
                let asked = stream.write_all(b"ruok").await.is_ok();
                asked && stream.read_to_string(&mut answer).await.is_ok() && answer == "ruok:secure"
            }
            Err(_) => false,
        };
        assert_eq!(served, of_stranger, "{auth:?}");
    }
}

// rows: C-120 M-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_above_the_limit_of_handshakes_are_closed() {
    let port = Port::serve("", |_, tls| tls.handshakes_max = Some(1));
    let mut first = port.connect().await;
    first.write_all(b"\x16\x03\x01").await.unwrap();
    port.until("handshakes", |metrics| metrics.tls.handshakes_under_way(), 1).await;
    assert!(port.dial("client", &BOTH).await.is_err());
    port.until("exceeded", |metrics| metrics.tls_handshake_exceeded.get(), 1).await;
    drop(first);
    port.until("handshakes", |metrics| metrics.tls.handshakes_under_way(), 0).await;
    assert_eq!(ask(port.dial("client", &BOTH).await.unwrap()).await, "ruok:secure");
}

// rows: C-121
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_drop_closes_before_the_handshake_while_no_client_is_served() {
    let port = Port::serve("", |_, tls| tls.drops_early = true);
    port.shared.at_rest.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(port.dial("client", &BOTH).await.is_err());
    let dropped = |metrics: &Registry| metrics.cnxn_closed_without_zk_server_running.get();
    port.until("dropped", dropped, 1).await;
    port.shared.at_rest.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(ask(port.dial("client", &BOTH).await.unwrap()).await, "ruok:secure");
}

// rows: C-21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_shakes_hands_counts_against_the_limit_of_its_address() {
    let port = Port::serve("maxClientCnxns=1", |_, _| {});
    let mut first = port.connect().await;
    first.write_all(b"\x16\x03\x01").await.unwrap();
    port.until("handshakes", |metrics| metrics.tls.handshakes_under_way(), 1).await;
    assert!(port.dial("client", &BOTH).await.is_err());
    port.until("rejected", |metrics| metrics.connection_rejected.get(), 1).await;
}

/// A connect request that comes with the last bytes of the handshake, and one in pieces, reach the machine.
// rows: C-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_request_inside_tls_reaches_the_machine() {
    let mut port = Port::serve("", |_, _| {});
    let mut request = vec![0, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x75, 0x30];
    request.extend([0; 8]);
    request.extend([0, 0, 0, 16]);
    request.extend([0; 17]);
    for pieces in [1, 49] {
        let mut stream = port.dial("client", &[TlsVersion::V13]).await.unwrap();
        for piece in request.chunks(request.len().div_ceil(pieces)) {
            stream.write_all(piece).await.unwrap();
        }
        let command = tokio::time::timeout(Duration::from_secs(20), port.commands.recv()).await;
        assert!(matches!(command, Ok(Some(ClientCommand::Open(_)))));
    }
}

/// A ClientHello of TLS 1.1 as OpenSSL sends it: one suite, no extensions.
fn hello_of_tls_1_1() -> Vec<u8> {
    let mut hello = vec![3, 2];
    hello.extend([7; 32]); // The random bytes.
    hello.extend([0, 0, 2, 0xc0, 0x13, 1, 0]); // No session, one suite, no compression.
    let len = u8::try_from(hello.len()).unwrap();
    [&[22, 3, 1, 0, len + 4, 1, 0, 0, len], hello.as_slice()].concat()
}

// rows: C-190 C-201
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_for_an_old_version_and_for_no_certificate_are_those_of_java() {
    let port = Port::serve("", |settings, _| settings.versions = vec![TlsVersion::V12]);
    let mut old = port.connect().await;
    old.write_all(&hello_of_tls_1_1()).await.unwrap();
    let mut alert = Vec::new();
    old.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 70], "not protocol_version");

    let config = tool_client(&port.authority.trust, None).unwrap();
    let client = move || {
        let name = "localhost".try_into().unwrap();
        rustls::ClientConnection::new(config, name).map(Into::into)
    };
    let socket = port.connect().await;
    let refused = port.handshakes.perform(socket, client, Vec::new()).await.err().unwrap();
    let HandshakeError::Tls(rustls::Error::AlertReceived(alert)) = refused else {
        panic!("{refused}")
    };
    assert_eq!(alert, rustls::AlertDescription::BadCertificate);
}

// rows: C-194
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_both_cas_of_one_subject_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let others = ["old", "new"].map(|name| folder.path().join(name));
    let [old, new] = others.map(|folder| {
        std::fs::create_dir(&folder).unwrap();
        Authority::new(&folder, "one")
    });
    let texts = [&old, &new].map(|authority| std::fs::read(&authority.trust).unwrap());
    assert_ne!(texts[0], texts[1]);
    let both = folder.path().join("both.pem");
    for texts in [[&*texts[0], &*texts[1]].concat(), [&*texts[1], &*texts[0]].concat()] {
        std::fs::write(&both, texts).unwrap();
        let port = Port::serve("", |settings, _| {
            let store = settings.trust_store.as_mut().unwrap();
            store.path.clone_from(&both);
        });
        for (authority, version) in
            [(&old, BOTH[0]), (&old, BOTH[1]), (&new, BOTH[0]), (&new, BOTH[1])]
        {
            let mut wanted = settings(&authority.issue("client"), &port.authority.trust);
            wanted.versions = vec![version];
            let engine = Engine::new(wanted, EngineRole::Peer).unwrap().0;
            let name = "localhost".try_into().unwrap();
            let dialed = move || engine.dialed(name);
            let socket = port.connect().await;
            let stream = port.handshakes.perform(socket, dialed, Vec::new()).await.unwrap();
            assert_eq!(ask(stream).await, "ruok:secure");
        }
    }
}
