//! A member that is an ensemble by itself, in this process: it has all ports, and leads.

use oxkeeper::client::{Hello, Wire, put_request, word};
use oxkeeper::config::{Environment, Source, parse};
use oxkeeper::model::op;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

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
const WINDOW: i32 = 501;

pub struct Server {
    pub clients: SocketAddr,
    pub quorum: SocketAddr,
    pub election: SocketAddr,
    _dir: tempfile::TempDir,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// A request of one path and other fields.
pub fn put(to: &mut Vec<u8>, xid: i32, kind: i32, path: &str, rest: impl FnOnce(&mut Vec<u8>)) {
    put_request(to, xid, kind, |body| {
        body.extend((path.len() as i32).to_be_bytes());
        body.extend(path.as_bytes());
        rest(body);
    });
}

pub fn put_set(to: &mut Vec<u8>, xid: i32, path: &str, data: &[u8]) {
    put(to, xid, op::SET_DATA, path, |body| {
        body.extend((data.len() as i32).to_be_bytes());
        body.extend(data);
        body.extend((-1_i32).to_be_bytes());
    });
}

fn put_create(to: &mut Vec<u8>, path: &str, data: &[u8]) {
    put(to, 1, op::CREATE, path, |body| {
        body.extend((data.len() as i32).to_be_bytes());
        body.extend(data);
        body.extend(1_i32.to_be_bytes());
        body.extend(31_i32.to_be_bytes());
        for text in ["world", "anyone"] {
            body.extend((text.len() as i32).to_be_bytes());
            body.extend(text.as_bytes());
        }
        body.extend(0_i32.to_be_bytes());
    });
}

impl Server {
    /// Starts it; its znodes are there, and what it keeps of writes has its full size.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let [client, quorum, election] =
            [(); 3].map(|()| SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())));
        let text = format!(
            "dataDir={}\ninitLimit=10\nsyncLimit=10\nstandaloneEnabled=false\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\nclientPortAddress=127.0.0.1\nclientPort={}\n\
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
            let ended =
                runtime.expect("a runtime").block_on(oxkeeper::server::run(config, 1, |_| {}));
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
        let data = vec![b'x'; BIG];
        let mut ask = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            put(&mut bytes);
            Self::ask(&mut wire, &bytes);
        };
        ask(&|to| put_create(to, "/big", &data));
        ask(&|to| put_create(to, &format!("/{}", "c".repeat(LONG_NAME)), b""));
        ask(&|to| put_create(to, "/many", b""));
        for n in 0..MANY {
            ask(&|to| put_create(to, &format!("/many/{n}"), &data));
        }
    }

    /// Gives the transactions that are kept for learners their full size again.
    pub fn fill_window(&self) {
        let (mut wire, data) = (self.session(), vec![b'x'; BIG]);
        for xid in 0..WINDOW {
            let mut bytes = Vec::new();
            put_set(&mut bytes, xid, "/big", &data);
            Self::ask(&mut wire, &bytes);
        }
    }

    pub fn session(&self) -> Wire {
        let mut wire = Wire::open(self.clients, PATIENCE).expect("the server is there");
        let hello = Hello { timeout_ms: 20_000, password: vec![0; 16], ..Hello::default() };
        wire.handshake(&hello, PATIENCE).expect("a session");
        wire
    }

    /// A session on a socket whose system keeps little of what is not read.
    pub fn slow_session(&self) -> TcpStream {
        let stream = slow(self.clients);
        let mut bytes = Vec::new();
        Hello { timeout_ms: 20_000, password: vec![0; 16], ..Hello::default() }.put(&mut bytes);
        let mut stream: TcpStream = stream;
        std::io::Write::write_all(&mut stream, &bytes).expect("sent");
        let mut answer = [0; 4 + 36];
        std::io::Read::read_exact(&mut stream, &mut answer).expect("a connect response");
        stream
    }

    /// The epoch and the last zxid.
    pub fn last_zxid(&self) -> i64 {
        let text = word(self.clients, "srvr", PATIENCE).expect("an answer");
        let zxid = text.lines().find_map(|line| line.strip_prefix("Zxid: 0x")).expect("its zxid");
        i64::from_str_radix(zxid, 16).expect("a number")
    }

    pub fn assert_it_serves(&self) {
        let mut wire = self.session();
        let mut bytes = Vec::new();
        put_set(&mut bytes, 1, "/big", &vec![b'y'; BIG]);
        Self::ask(&mut wire, &bytes);
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
