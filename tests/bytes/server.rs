//! A member that is an ensemble by itself, in this process: it has all ports, and leads.

use common::ports::free_ports;
use oxkeeper::client::{ConnectRequest, Wire, word};
use oxkeeper::config::{Environment, Source, parse};
use socket2::{Domain, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use support::requests::{create, set};

const PATIENCE: Duration = Duration::from_secs(60);
/// `jute.maxbuffer`, and its extrasize.
pub const FRAME: usize = 64 << 10;
/// `oxkeeper.outstandingBytes`
pub const OUTSTANDING: usize = 1 << 20;
/// Bytes of the znode /big, and of every other of /many.
pub const BIG: usize = 60_000;
/// Znodes below /many.
pub const MANY: usize = 200;
/// A path that makes long watch events.
pub const LONG_NAME: usize = 1000;
/// Transactions that a server keeps for learners; all of them are replaced before anything is counted.
const WINDOW: usize = 501;

pub struct Server {
    pub clients: SocketAddr,
    pub quorum: SocketAddr,
    pub election: SocketAddr,
    _dir: tempfile::TempDir,
}

fn hello() -> ConnectRequest {
    ConnectRequest { timeout_ms: 20_000, password: vec![0; 16], ..ConnectRequest::default() }
}

impl Server {
    /// Starts it; its znodes are there, and what it keeps of writes has its full size.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let [client, quorum, election] =
            free_ports().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let text = format!(
            "dataDir={}\ninitLimit=10\nsyncLimit=10\nstandaloneEnabled=false\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\nadmin.enableServer=false\nclientPortAddress=127.0.0.1\nclientPort={}\n\
             server.1=127.0.0.1:{}:{}\n",
            dir.path().display(),
            client.port(),
            quorum.port(),
            election.port()
        );
        let flags = format!(
            "-Djute.maxbuffer={FRAME} -Dzookeeper.jute.maxbuffer.extrasize={FRAME} \
             -Doxkeeper.outstandingBytes={OUTSTANDING}"
        );
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
        let environment = Environment::from([("SERVER_JVMFLAGS".to_owned(), flags)]);
        let config = parse(source, &environment, &[]).expect("a configuration");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let ended = runtime.expect("a runtime").block_on(oxkeeper::server::run(
                config,
                1,
                Default::default(),
                |_| {},
            ));
            panic!("it serves until the test ends: {ended:?}");
        });
        let server = Self { clients: client, quorum, election, _dir: dir };
        let began = Instant::now();
        let leads = || word(client, "srvr", PATIENCE).is_ok_and(|it| it.contains("Mode: leader"));
        while !leads() {
            assert!(began.elapsed() < PATIENCE, "the server does not lead");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.fill();
        server
    }

    /// Sends a request and waits for its reply, which must be no error.
    pub fn ask(wire: &mut Wire, bytes: &[u8]) {
        wire.send(bytes).expect("sent");
        let reply = wire.receive(PATIENCE).expect("a reply");
        // The error is after xid and zxid.
        assert_eq!(reply[12..16], [0; 4], "{:?}", &reply[..16]);
    }

    fn fill(&self) {
        let mut wire = self.session();
        let data = "x".repeat(BIG);
        Self::ask(&mut wire, &create(1, "/big", &data));
        Self::ask(&mut wire, &create(1, &format!("/{}", "c".repeat(LONG_NAME)), ""));
        Self::ask(&mut wire, &create(1, "/many", ""));
        for n in 0..MANY {
            Self::ask(&mut wire, &create(1, &format!("/many/{n}"), &data));
        }
    }

    /// Gives the transactions that are kept for learners their full size again.
    pub fn fill_window(&self) {
        let (mut wire, set) = (self.session(), set(1, "/big", &"x".repeat(BIG)));
        (0..WINDOW).for_each(|_| Self::ask(&mut wire, &set));
    }

    pub fn session(&self) -> Wire {
        let mut wire = Wire::open(self.clients, PATIENCE).expect("the server is there");
        wire.handshake(&hello(), PATIENCE).expect("a session");
        wire
    }

    /// A session on a socket whose system keeps little of what is not read.
    pub fn slow_session(&self) -> TcpStream {
        let (mut stream, mut bytes) = (slow(self.clients), Vec::new());
        hello().put(&mut bytes);
        stream.write_all(&bytes).expect("sent");
        stream.read_exact(&mut [0; 4 + 36]).expect("a connect response");
        stream
    }

    /// The epoch and the last zxid.
    pub fn last_zxid(&self) -> i64 {
        let text = word(self.clients, "srvr", PATIENCE).expect("an answer");
        let zxid = text.lines().find_map(|line| line.strip_prefix("Zxid: 0x")).expect("its zxid");
        i64::from_str_radix(zxid, 16).expect("a number")
    }

    pub fn assert_it_serves(&self) {
        Self::ask(&mut self.session(), &set(1, "/big", &"y".repeat(BIG)));
    }
}

/// A connection whose system takes little of what the server sends.
pub fn slow(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.connect_timeout(&address.into(), PATIENCE).expect("the server is there");
    limited(socket.into())
}

/// The connection with bounds on how long a test waits for it.
pub fn limited(stream: TcpStream) -> TcpStream {
    stream.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

pub fn connect(address: SocketAddr) -> TcpStream {
    limited(TcpStream::connect(address).expect("the port is open"))
}
