//! A fast client: writes of every type, many outstanding at a time, most of them successful.

use common::rng::Choose;
use jute::data::{Acl, Id};
use jute::proto::{
    CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, MultiHeader,
    SetAclRequest, SetDataRequest,
};
use jute::{Encode, Vector};
use oxkeeper::client::{ClientError, ConnectRequest, Incoming, Wire, op, put_request};
use oxkeeper::model::Rng;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const WINDOW: usize = 200;
const FOLDERS: usize = 40;
/// How many znodes operations choose from; older ones are not used again.
const KNOWN_MAX: usize = 400;

/// Which optional requests are among the writes.
#[derive(Clone, Copy)]
pub struct Mix {
    /// create in a multi. When Java replays them over its own fuzzy snapshot, the state differs from the live server's (G-05).
    pub creates_in_multi: bool,
    /// deleteContainer from a client, which only Java accepts (P-41).
    pub delete_container: bool,
}

pub struct Load {
    addr: SocketAddr,
    wire: Wire,
    mix: Mix,
    rng: Rng,
    xid: i32,
    on_the_way: usize,
    /// Paths of recent creates, successful or not.
    known: Vec<String>,
    next_name: u64,
    out: Vec<u8>,
    pub last_zxid: i64,
    pub answered: usize,
    pub refused: usize,
}

/// A request without a body.
struct Nothing;

impl Encode for Nothing {
    fn encode(&self, _: &mut Vec<u8>) {}
}

impl Load {
    /// # Errors
    /// When the server closes the connection.
    pub fn open(addr: SocketAddr, seed: u64, mix: Mix) -> io::Result<Self> {
        let mut wire = Wire::open(addr, PATIENCE).map_err(io::Error::other)?;
        wire.handshake(&hello(), PATIENCE).map_err(io::Error::other)?;
        let mut load = Self {
            addr,
            wire,
            mix,
            rng: Rng::seeded(seed),
            xid: 0,
            on_the_way: 0,
            known: vec!["/bulk".into()],
            // Names differ from those of an earlier run.
            next_name: seed << 32,
            out: Vec::new(),
            last_zxid: 0,
            answered: 0,
            refused: 0,
        };
        load.create(op::CREATE, "/bulk".into(), 0);
        (0..FOLDERS).for_each(|at| load.create(op::CREATE, format!("/bulk/d{at}"), 0));
        load.drain(0)?;
        Ok(load)
    }

    /// Sends `count` writes and receives every answer.
    ///
    /// # Errors
    /// When the server closes the connection.
    pub fn run(&mut self, count: usize) -> io::Result<()> {
        for at in 0..count {
            self.one();
            if at % 300 == 299 {
                self.another_session()?;
            }
            self.drain(WINDOW)?;
        }
        self.drain(0)
    }

    /// Sends `count` writes and receives no answer.
    pub fn storm(&mut self, count: usize) {
        (0..count).for_each(|_| self.one());
        // The server may be killed before all writes are sent.
        let _gone = self.wire.send(&std::mem::take(&mut self.out));
    }

    /// Receives answers until only `left` are outstanding.
    fn drain(&mut self, left: usize) -> io::Result<()> {
        if left < self.on_the_way || 16 << 10 < self.out.len() {
            self.wire.send(&self.out).map_err(io::Error::other)?;
            self.out.clear();
        }
        while left < self.on_the_way {
            let frame = self.wire.receive(PATIENCE).map_err(io::Error::other)?;
            let Ok(Incoming::Reply { header, .. }) = Incoming::parse(&frame) else {
                return Err(io::Error::other("neither a reply nor an event"));
            };
            self.on_the_way -= 1;
            self.answered += 1;
            self.refused += usize::from(header.err != 0);
            self.last_zxid = self.last_zxid.max(header.zxid);
        }
        Ok(())
    }

    fn send(&mut self, kind: i32, body: &impl Encode) {
        self.xid += 1;
        self.on_the_way += 1;
        put_request(&mut self.out, self.xid, kind, |to| body.encode(to));
    }

    // rows: D-42 D-43
    fn one(&mut self) {
        match self.rng.pick(100) {
            0..30 => {
                let path = self.fresh();
                self.create(op::CREATE, path, 0);
            }
            30..34 => {
                let flags = [1, 2, 3][self.rng.pick(3)];
                let path = self.fresh();
                self.create(op::CREATE2, path, flags);
            }
            34..37 => {
                let path = self.fresh();
                self.create(op::CREATE_CONTAINER, path, 4);
            }
            37..40 => {
                let (path, ttl) = (self.fresh(), 1 + self.rng.pick(1 << 40) as i64);
                let data = self.data();
                let (path, data, acl) = (Some(path.as_str().into()), data.as_deref(), self.acl());
                self.send(op::CREATE_TTL, &CreateTtlRequest { path, data, acl, flags: 5, ttl });
            }
            40..62 => {
                let (path, data, version) = (self.known(), self.data(), self.version());
                let path = Some(path.as_str().into());
                self.send(op::SET_DATA, &SetDataRequest { path, data: data.as_deref(), version });
            }
            62..66 => {
                let (path, acl, version) = (self.known(), self.acl(), self.version());
                self.send(
                    op::SET_ACL,
                    &SetAclRequest { path: Some(path.as_str().into()), acl, version },
                );
            }
            66..82 => {
                let (path, version) = (self.known(), self.version());
                let kind = match self.rng.pick(20) {
                    0 if self.mix.delete_container => op::DELETE_CONTAINER,
                    _ => op::DELETE,
                };
                self.send(kind, &DeleteRequest { path: Some(path.as_str().into()), version });
            }
            82..86 => {
                // Refused: the node exists, or its parent does not.
                let path = if self.rng.chance(50) {
                    "/bulk".to_owned()
                } else {
                    "/nobody/there".to_owned()
                };
                self.create(op::CREATE, path, 0);
            }
            refused => self.multi(refused < 91),
        }
    }

    fn create(&mut self, kind: i32, path: String, flags: i32) {
        let data = self.data();
        let (path, data, acl) = (Some(path.as_str().into()), data.as_deref(), self.acl());
        self.send(kind, &CreateRequest { path, data, acl, flags });
    }

    /// A multi; `refused`: its last operation fails, and so the whole multi.
    fn multi(&mut self, refused: bool) {
        let (fresh, known, data) = (self.fresh(), self.known(), self.data());
        let (path, data) = (Some(fresh.as_str().into()), data.as_deref());
        let mut parts = Parts(Vec::new());
        parts.add(op::CHECK, &CheckVersionRequest { path: Some("/".into()), version: -1 });
        if self.mix.creates_in_multi || refused {
            let flags = [0, 1, 2][self.rng.pick(3)];
            parts.add(op::CREATE, &CreateRequest { path, data, acl: open_acl(), flags });
        }
        let path = Some(known.as_str().into());
        match self.rng.pick(3) {
            0 => parts.add(op::DELETE, &DeleteRequest { path, version: -1 }),
            _ => parts.add(op::SET_DATA, &SetDataRequest { path, data, version: -1 }),
        }
        if refused {
            parts.add(op::CHECK, &CheckVersionRequest { path: Some("/bulk".into()), version: 999 });
        }
        self.send(op::MULTI, &parts);
    }

    /// Opens a session that creates an ephemeral, and closes it in half of the cases.
    fn another_session(&mut self) -> io::Result<()> {
        self.drain(0)?;
        let another = || -> Result<Wire, ClientError> {
            let mut wire = Wire::open(self.addr, PATIENCE)?;
            wire.handshake(&hello(), PATIENCE)?;
            Ok(wire)
        };
        let mut wire = another().map_err(io::Error::other)?;
        let path = self.fresh();
        let mut bytes = Vec::new();
        put_request(&mut bytes, 1, op::CREATE, |to| {
            let (path, acl) = (Some(path.as_str().into()), open_acl());
            CreateRequest { path, data: None, acl, flags: 1 }.encode(to);
        });
        let mut answers = 1;
        if self.rng.chance(50) {
            put_request(&mut bytes, 2, op::CLOSE_SESSION, |to| Nothing.encode(to));
            answers = 2;
        }
        wire.send(&bytes).map_err(io::Error::other)?;
        for _ in 0..answers {
            wire.receive(PATIENCE).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn fresh(&mut self) -> String {
        self.next_name += 1;
        let under = match self.rng.chance(20) {
            true => self.known(),
            false => format!("/bulk/d{}", self.rng.pick(FOLDERS)),
        };
        let under = if under.matches('/').count() > 5 { "/bulk".to_owned() } else { under };
        let path = format!("{under}/n{}", self.next_name);
        if self.known.len() == KNOWN_MAX {
            let at = self.rng.pick(KNOWN_MAX);
            self.known.swap_remove(at);
        }
        self.known.push(path.clone());
        path
    }

    fn known(&mut self) -> String {
        let at = self.rng.pick(self.known.len());
        self.known[at].clone()
    }

    fn version(&mut self) -> i32 {
        *self.rng.weighted(&[(85, -1), (10, 0), (5, 7)])
    }

    fn data(&mut self) -> Option<Vec<u8>> {
        let len = *self.rng.weighted(&[(10, 0), (60, 40), (20, 300), (2, 5000)]);
        if self.rng.chance(5) {
            return None;
        }
        Some(vec![self.rng.next() as u8; len])
    }

    fn acl(&mut self) -> Vector<'static, Acl<'static>> {
        match self.rng.pick(40) {
            0 => list(&[(1, "world", "anyone")]),
            1 => list(&[(31, "digest", "u:Zm9v"), (1, "world", "anyone")]),
            2 => list(&[(31, "ip", "127.0.0.0/8")]),
            3 => list(&[(15, "world", "anyone"), (16, "ip", "10.0.0.1")]),
            _ => open_acl(),
        }
    }
}

struct Parts(Vec<u8>);

impl Parts {
    fn add(&mut self, kind: i32, body: &impl Encode) {
        MultiHeader { kind, done: false, err: -1 }.encode(&mut self.0);
        body.encode(&mut self.0);
    }
}

impl Encode for Parts {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
        MultiHeader { kind: -1, done: true, err: -1 }.encode(to);
    }
}

fn hello() -> ConnectRequest {
    ConnectRequest { timeout_ms: 400_000, password: vec![0; 16], ..ConnectRequest::default() }
}

fn list(of: &[(i32, &'static str, &'static str)]) -> Vector<'static, Acl<'static>> {
    let acl = |&(perms, scheme, id): &(i32, &'static str, &'static str)| Acl {
        perms,
        id: Id { scheme: Some(scheme.into()), id: Some(id.into()) },
    };
    Vector::Owned(of.iter().map(acl).collect())
}

fn open_acl() -> Vector<'static, Acl<'static>> {
    list(&[(31, "world", "anyone")])
}
