//! A client's SASL step that hangs, over a socket of this machine.

use crate::auth::sasl::{Mechanism, Mechanisms, Refusal, Step};
use crate::config::{Environment, Source, parse};
use crate::member::ListenAddress;
use crate::metrics::Registry;
use crate::model::{Code, SessionId, op};
use crate::net::{ClientPorts, Listener, ServerHandles, Sink};
use crate::request::{ClientCommand, Limits, Shared};
use crate::tree::{Options, State, Tree};
use jute::Encode as _;
use jute::proto::{ConnectRequest, GetSaslRequest, RequestHeader};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Its steps wait for the test.
#[derive(Clone, Debug)]
struct Stuck(Arc<Barrier>);

impl Mechanism for Stuck {
    fn step(&mut self, _token: &[u8]) -> Result<Step, Refusal> {
        self.0.wait();
        Ok(Step::Challenge(Vec::new()))
    }

    fn blocks(&self) -> bool {
        true
    }
}

impl Mechanisms for Stuck {
    fn begin(&self) -> Box<dyn Mechanism> {
        Box::new(self.clone())
    }
}

/// A client of a port that is served, and the commands that it causes.
async fn connect(
    limits: Limits,
    stop: CancellationToken,
) -> (TcpStream, UnboundedReceiver<ClientCommand>) {
    let text = b"dataDir=/d\nclientPort=0\n";
    let source = Source { name: "zoo.cfg", text, my_id: None };
    let config = parse(source, &Environment::new(), &[]).unwrap();
    let place = ListenAddress { host: Some("127.0.0.1".to_owned()), port: 0 };
    let listener = Listener::bind_at(&place, &config, None).unwrap();
    let address = listener.address;
    let shared = Arc::new(Shared::new(State::new(Tree::new(Options::default()), 1), limits));
    let (sender, commands) = unbounded_channel();
    let server = ServerHandles {
        commands: Sink::from(sender),
        words: Arc::new(|_| unreachable!("no word is asked")),
        metrics: Arc::new(Registry::default()),
        epoch: Instant::now(),
    };
    let ports = ClientPorts { shared, server, tasks: TaskTracker::new(), stop };
    let (_, stays) = unbounded_channel();
    tokio::spawn(listener.run(ports, stays, Arc::new(AtomicU16::new(address.port()))));
    (TcpStream::connect(address).await.unwrap(), commands)
}

// rows: U-18
#[tokio::test]
async fn client_whose_step_hangs_is_refused_and_its_connection_closed() {
    let (gate, stop) = (Arc::new(Barrier::new(2)), CancellationToken::new());
    let sasl = Some(Arc::new(Stuck(gate.clone())) as Arc<dyn Mechanisms>);
    let limits = Limits { sasl, ..Limits::default() };
    let (mut client, mut commands) = connect(limits, stop.clone()).await;
    let mut bytes = Vec::new();
    let hello = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout_ms: 30_000,
        session_id: 0,
        password: Some(&[0; 16]),
        read_only: false,
    };
    jute::put_frame(&mut bytes, |to| hello.encode(to));
    jute::put_frame(&mut bytes, |to| {
        RequestHeader { xid: 1, kind: op::SASL }.encode(to);
        GetSaslRequest { token: Some(b"x") }.encode(to);
    });
    client.write_all(&bytes).await.unwrap();
    let Some(ClientCommand::Open(open)) = commands.recv().await else { panic!("it connects") };
    let (began, mut wakers) = (Instant::now(), Vec::new());
    open.conn.push_welcome(SessionId(7), &mut wakers, |_| {});
    wakers.into_iter().for_each(std::task::Waker::wake);
    let mut answer = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(60), client.read_to_end(&mut answer));
    end.await.expect("the client is refused").unwrap();
    assert!(Duration::from_secs(10) <= began.elapsed());
    // Length, xid, zxid, and then the error.
    assert_eq!(answer[16..20], Code::AUTH_FAILED.0.to_be_bytes());
    stop.cancel();
    gate.wait();
}
