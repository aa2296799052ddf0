//! Sessions outlive the server that created them, and expire one timeout after the next server's start.

use super::alternation::name;
use common::server::{Kind, Server};
use jute::data::{Acl, Id};
use jute::proto::{CreateRequest, ExistsRequest};
use jute::{Encode, Vector};
use oxkeeper::client::{
    ClientError, ConnectRequest, ConnectResponse, Incoming, Wire, op, put_request, xid,
};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TICK_MS: u64 = 500;
const SETTINGS: &str =
    "tickTime=500\nminSessionTimeout=1000\nmaxSessionTimeout=60000\nforceSync=yes\n";
/// How long after its timeout a session must have expired. Not an expectation: the machine may be busy.
const LATE: Duration = Duration::from_secs(20);

struct Client {
    wire: Wire,
    xid: i32,
    welcome: ConnectResponse,
}

impl Client {
    fn open(
        addr: SocketAddr,
        timeout_ms: i32,
        again: Option<&ConnectResponse>,
    ) -> Result<Self, ClientError> {
        let mut wire = Wire::open(addr, PATIENCE)?;
        let password = again.map_or(vec![0; 16], |welcome| welcome.password.clone());
        let session_id = again.map_or(0, |welcome| welcome.session_id);
        let hello =
            ConnectRequest { timeout_ms, session_id, password, ..ConnectRequest::default() };
        let welcome = wire.handshake(&hello, PATIENCE)?;
        Ok(Self { wire, xid: 0, welcome })
    }

    fn ask(
        &mut self,
        kind: i32,
        xid: i32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<i32, ClientError> {
        let mut bytes = Vec::new();
        put_request(&mut bytes, xid, kind, body);
        self.wire.send(&bytes)?;
        let frame = self.wire.receive(PATIENCE)?;
        match Incoming::parse(&frame)? {
            Incoming::Reply { header, .. } => Ok(header.err),
            Incoming::Event { .. } => Ok(i32::MIN),
        }
    }

    fn create(&mut self, path: &str) -> Result<i32, ClientError> {
        self.xid += 1;
        let id = Id { scheme: Some("world".into()), id: Some("anyone".into()) };
        let acl = Vector::Owned(vec![Acl { perms: 31, id }]);
        let request = CreateRequest { path: Some(path.into()), data: None, acl, flags: 1 };
        self.ask(op::CREATE, self.xid, |to| request.encode(to))
    }

    fn exists(&mut self, path: &str) -> Result<bool, ClientError> {
        self.xid += 1;
        let request = ExistsRequest { path: Some(path.into()), watch: false };
        Ok(self.ask(op::EXISTS, self.xid, |to| request.encode(to))? == 0)
    }

    fn ping(&mut self) -> Result<(), ClientError> {
        self.ask(op::PING, xid::PING, |_| ()).map(drop)
    }

    fn close(&mut self) -> Result<(), ClientError> {
        self.xid += 1;
        self.ask(op::CLOSE_SESSION, self.xid, |_| ()).map(drop)
    }
}

/// Lets sessions of `first` expire on `second`; returns what is wrong.
///
/// # Errors
/// When a server can't be started or closes a connection.
// rows: D-67 P-20
pub fn expire(first: &Kind, second: &Kind) -> io::Result<Vec<String>> {
    println!("sessions of {} expire on {}", name(first), name(second));
    let home = tempfile::tempdir()?;
    let server = Server::start(first.clone(), home.path(), SETTINGS)?;
    let timeouts_ms = [2000, 5000, 3000, 4000];
    let open = |timeout_ms| Client::open(server.addr, timeout_ms, None).map_err(io::Error::other);
    let mut clients = timeouts_ms.map(open).into_iter().collect::<io::Result<Vec<_>>>()?;
    for (at, client) in clients.iter_mut().enumerate() {
        client.create(&format!("/e{at}")).map_err(io::Error::other)?;
    }
    clients[3].close().map_err(io::Error::other)?;
    server.stop(false)?;

    let spawned = Instant::now();
    let server = Server::start(second.clone(), home.path(), SETTINGS)?;
    let serving = Instant::now();
    let back = Client::open(server.addr, 3000, Some(&clients[2].welcome));
    let mut back = back.map_err(io::Error::other)?;
    let mut watcher = Client::open(server.addr, 30_000, None).map_err(io::Error::other)?;
    let mut found = Vec::new();
    if watcher.exists("/e3").map_err(io::Error::other)? {
        found.push("the ephemeral of a closed session exists".to_owned());
    }
    for at in [0, 1] {
        let (path, timeout) = (format!("/e{at}"), Duration::from_millis(timeouts_ms[at] as u64));
        while watcher.exists(&path).map_err(io::Error::other)? {
            back.ping().map_err(io::Error::other)?;
            if timeout + LATE < serving.elapsed() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let (after_spawn, after_start) = (spawned.elapsed(), serving.elapsed());
        println!("  {path}: timeout {timeout:?}, gone {after_start:.2?} after the start");
        if after_spawn < timeout || timeout + LATE < after_start {
            found
                .push(format!("{path}: gone {after_spawn:?} after the start, timeout {timeout:?}"));
        }
        if timeout + Duration::from_millis(4 * TICK_MS) < after_start {
            println!("  (late, or the machine is busy)");
        }
    }
    if !watcher.exists("/e2").map_err(io::Error::other)? {
        found.push("the ephemeral of a session that was resumed is gone".to_owned());
    }
    Ok(found)
}
