//! Connections between servers, plain and with TLS, over sockets of this machine.

use crate::config::tls::TlsSettings;
use crate::member::ListenAddress;
use crate::member::quorum_connection::{QuorumConnection, QuorumEvent};
use crate::member::sasl_exchange::NoSasl;
use crate::model::{Epoch, Zxid};
use crate::net::quorum::{LearnerPort, PeerEvent, PeerHandle, listen, start};
use crate::net::tls::test_certificates::{Authority, settings};
use crate::net::tls::{Engine, EngineRole, Handshakes};
use crate::net::{PeerSecurity, PeerStream, PeerTls};
use crate::zab::Packet;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Servers whose certificates are of one authority.
struct Servers {
    _folder: tempfile::TempDir,
    authority: Authority,
}

impl Servers {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path(), "ca");
        Self { _folder: folder, authority }
    }

    fn settings(&self, name: &str) -> TlsSettings {
        let settings = settings(&self.authority.issue(name), &self.authority.trust);
        TlsSettings { prefix: "ssl.quorum.", detection_timeout_ms: 200, ..settings }
    }

    /// A server with `sslQuorum` and `portUnification` as given.
    fn server(&self, name: &str, dials: bool, is_unified: bool) -> PeerSecurity {
        if !dials && !is_unified {
            return PeerSecurity::default();
        }
        of(self.settings(name), dials, is_unified)
    }
}

fn of(settings: TlsSettings, dials: bool, is_unified: bool) -> PeerSecurity {
    let engine = Arc::new(Engine::new(settings, EngineRole::Peer).unwrap().0);
    let handshakes = Handshakes::of_servers().unwrap();
    PeerSecurity::new(Some(PeerTls {
        engine,
        handshakes,
        dials,
        is_unified,
        hosts: Default::default(),
        logged: Default::default(),
        began: tokio::time::Instant::now(),
    }))
}

/// Both ends of a connection. The dialing end sends something, as a learner and a voter do.
async fn connect(
    dialer: &PeerSecurity,
    acceptor: &PeerSecurity,
) -> (io::Result<PeerStream>, io::Result<PeerStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dialing = async {
        let socket = TcpStream::connect(address).await?;
        match dialer.dialed(socket, "localhost").await? {
            PeerStream::Plain(mut socket) => {
                socket.write_all(b"\0\0\0\x0bhello").await?;
                Ok(socket.into())
            }
            stream => Ok(stream),
        }
    };
    let accepting = async {
        let (socket, _) = listener.accept().await.unwrap();
        acceptor.accepted(socket).await
    };
    let both = async { tokio::join!(dialing, accepting) };
    tokio::time::timeout(Duration::from_secs(20), both)
        .await
        .expect("the connection is accepted or refused")
}

fn kind(end: &io::Result<PeerStream>) -> &'static str {
    match end {
        Ok(PeerStream::Plain(_)) => "plain",
        Ok(PeerStream::Tls { .. }) => "TLS",
        Err(_) => "none",
    }
}

// rows: C-38 C-39 Q-31 Q-115
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switches_decide_what_is_dialed_and_what_is_accepted() {
    let servers = Servers::new();
    // (sslQuorum, portUnification) of the dialing end, the same of the accepting one, and what the latter gets.
    for (dialer, acceptor, wanted) in [
        ((true, false), (true, false), "TLS"),
        ((true, true), (true, false), "TLS"),
        ((false, true), (true, false), "none"),
        ((false, false), (true, false), "none"),
        ((true, false), (true, true), "TLS"),
        ((false, false), (true, true), "plain"),
        ((false, true), (false, true), "plain"),
        ((true, false), (false, true), "TLS"),
        ((false, true), (false, false), "plain"),
    ] {
        let dialing = servers.server("dialer", dialer.0, dialer.1);
        let accepting = servers.server("acceptor", acceptor.0, acceptor.1);
        let (_, accepted) = connect(&dialing, &accepting).await;
        assert_eq!(kind(&accepted), wanted, "{dialer:?} dials {acceptor:?}");
    }
}

// rows: C-202 Q-31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connection_counts_as_plain() {
    let servers = Servers::new();
    for (is_unified, first, wanted) in [
        (false, &b""[..], "none"),
        (true, b"", "plain"),
        (false, b"\x16\x03", "none"),
        (true, b"\x16\x03", "plain"),
    ] {
        let acceptor = servers.server("acceptor", true, is_unified);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        silent.write_all(first).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let accepting = tokio::time::timeout(Duration::from_secs(8), acceptor.accepted(socket));
        assert_eq!(
            kind(&accepting.await.expect("the connection is accepted or refused")),
            wanted,
            "{is_unified} {first:?}"
        );
    }
}

// rows: Q-115
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_of_another_authority_is_refused_at_both_ends() {
    let (servers, strangers) = (Servers::new(), Servers::new());
    let member = servers.server("member", true, false);
    let stranger = strangers.server("stranger", true, false);
    let (_, accepted) = connect(&stranger, &member).await;
    let why = accepted.err().expect("the stranger trusts another authority").to_string();
    assert!(why.starts_with("TLS: the peer refused this server's certificate"), "{why}");
    // One that trusts the member, but is not trusted by it.
    let mut settings = strangers.settings("stranger");
    settings.trust_store = servers.settings("member").trust_store;
    let (dialed, accepted) = connect(&of(settings, true, false), &member).await;
    assert!(accepted.is_err());
    // With TLS 1.3 the dialing end has done its handshake before, and hears of the refusal afterwards.
    let Ok(PeerStream::Tls { mut stream, .. }) = dialed else { panic!("no handshake") };
    let why = stream.read(&mut [0; 10]).await.unwrap_err().to_string();
    let begin = "the peer refused this server's certificate (alert certificate_unknown); see why";
    assert!(why.starts_with(begin), "{why}");
}

// rows: C-196 C-197 C-205
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_in_a_certificate_is_judged_at_both_ends() {
    let servers = Servers::new();
    let member = |name: &str, hosts: &[&str]| {
        let store = servers.authority.issue_for(name, hosts);
        let settings = settings(&store, &servers.authority.trust);
        let names = TlsSettings { verifies_host: true, verifies_client_host: true, ..settings };
        of(names, true, false)
    };
    let here = member("here", &["127.0.0.1"]);
    let named = member("named", &["localhost"]);
    let elsewhere = member("elsewhere", &["elsewhere.example"]);
    let (dialed, accepted) = connect(&here, &here).await;
    assert!(dialed.is_ok() && accepted.is_ok());
    let (dialed, _) = connect(&here, &elsewhere).await;
    let why = dialed.err().expect("the peer is another host").to_string();
    assert!(
        why.contains("is for elsewhere.example, and the peer is 127.0.0.1, localhost"),
        "{why}"
    );
    let (_, accepted) = connect(&elsewhere, &here).await;
    let why = accepted.err().expect("the peer is another host").to_string();
    assert!(why.contains("is for elsewhere.example, and the peer is 127.0.0.1"), "{why}");
    // A name that no member has, until a configuration says that one has it.
    let (_, accepted) = connect(&named, &here).await;
    assert!(accepted.is_err());
    here.set_hosts(["localhost".to_owned()].into());
    let (_, accepted) = connect(&named, &here).await;
    assert!(accepted.is_ok());
}

fn proposal(counter: u32) -> Packet {
    Packet::Proposal { zxid: Zxid::new(Epoch(1), counter), entry: Bytes::from(vec![7; 4000]) }
}

/// The packets of one connection, until there are `count`.
async fn heard(events: &mut UnboundedReceiver<PeerEvent>, count: usize) -> Vec<Packet> {
    let mut heard = Vec::new();
    while heard.len() < count {
        match events.recv().await.unwrap() {
            PeerEvent::Received { event: QuorumEvent::Packets(packets), .. } => {
                heard.extend(packets);
            }
            PeerEvent::Gone { why, .. } => panic!("it ended: {why}"),
            _ => {}
        }
    }
    heard
}

// rows: Q-31 Q-115
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn learner_connection_with_tls_carries_packets_both_ways() {
    let servers = Servers::new();
    let leader = servers.server("leader", true, false);
    let learner = servers.server("learner", true, false);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = ListenAddress { host: Some("127.0.0.1".to_owned()), port };
    let (sender, mut at_leader) = unbounded_channel();
    let (learners, exchanges) = (Arc::<LearnerPort>::default(), Arc::new(NoSasl));
    tokio::spawn(listen(address, learners, exchanges, leader, sender.into()));
    let connecting = async move {
        let socket = loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Ok(socket) => break socket,
                Err(_not_bound) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        learner.dialed(socket, "localhost").await
    };
    let (sender, mut at_learner) = unbounded_channel();
    let machine = QuorumConnection::dialed(1, Box::new(NoSasl), Default::default());
    let mut to_leader = start(connecting, machine, sender.into());
    let count = 2000;
    let say = |handle: &mut PeerHandle, from: u32| {
        for counter in from..from + count {
            handle.put(proposal(counter).to_bytes());
            assert!(handle.flush());
        }
    };
    let said = |from: u32| (from..from + count).map(proposal).collect::<Vec<Packet>>();
    say(&mut to_leader, 10_000);
    let Some(PeerEvent::Accepted { handle: mut to_learner, .. }) = at_leader.recv().await else {
        panic!("no connection")
    };
    say(&mut to_learner, 20_000);
    assert_eq!(heard(&mut at_leader, count as usize).await, said(10_000));
    assert_eq!(heard(&mut at_learner, count as usize).await, said(20_000));
    // What was put before the handle is dropped arrives before the end.
    to_leader.put(proposal(1).to_bytes());
    drop(to_leader);
    assert_eq!(heard(&mut at_leader, 1).await, [proposal(1)]);
    let gone = at_leader.recv().await.unwrap();
    assert!(matches!(gone, PeerEvent::Gone { .. }));
}
