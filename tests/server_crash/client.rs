//! One client of the server: the requests that a seed draws, and checks of every answer.

use super::history::History;
use jute::data::Stat;
use jute::proto::{
    CheckVersionRequest, ConnectRequest, ConnectResponse, CreateRequest, CreateTtlRequest,
    DeleteRequest, ExistsRequest, MultiHeader, ReplyHeader, RequestHeader, SetAclRequest,
    SetDataRequest, SyncRequest,
};
use jute::{Encode, Reader, Ustring, Vector, put_frame};
use oxkeeper::model::{Acl, Code, Identity, Rng, SessionId, op};
use oxkeeper::request::{ClientCommand, Connection, Need, password};
use std::collections::VecDeque;
use support::requests::drain;

/// Recorded as the path of a request without a body.
const NO_BODY: &str = "no body";

/// One connection and what its client knows.
pub struct Client {
    pub connection: Connection,
    input: Vec<u8>,
    xid_last: i32,
    /// Requests without an answer: xid, type, path.
    pub asked: VecDeque<(i32, i32, String)>,
    pub session: Option<SessionId>,
    /// Bytes that came back and make no whole frame yet.
    output: Vec<u8>,
    pub ended: bool,
}

impl Client {
    /// A client that connects, with its earlier session or for a new one.
    pub fn connect(connection: Connection, session: Option<SessionId>, timeout_ms: i32) -> Self {
        let mut input = Vec::new();
        let password = session.map_or([0; 16], password);
        put_frame(&mut input, |to| {
            let request = ConnectRequest {
                protocol_version: 0,
                last_zxid_seen: 0,
                timeout_ms,
                session_id: session.map_or(0, |session| session.0),
                password: Some(&password),
                read_only: false,
            };
            request.encode(to);
        });
        Self {
            connection,
            input,
            xid_last: 0,
            asked: VecDeque::new(),
            session: None,
            output: Vec::new(),
            ended: false,
        }
    }

    fn send(&mut self, kind: i32, path: &str, body: &impl Encode) {
        self.xid_last += 1;
        let xid = self.xid_last;
        put_frame(&mut self.input, |to| {
            RequestHeader { xid, kind }.encode(to);
            body.encode(to);
        });
        self.asked.push_back((xid, kind, path.to_owned()));
    }

    pub fn create(&mut self, kind: i32, path: &str, data: Option<&[u8]>, acl: &[Acl], flags: i32) {
        let acl = Vector::Owned(acl.iter().map(Acl::to_record).collect());
        self.send(kind, path, &CreateRequest { path: text(path), data, acl, flags });
    }

    /// Sends one request; most succeed.
    pub fn ask(&mut self, rng: &mut Rng, history: &History) {
        let some = some_path(rng, history);
        let data = some_data(rng);
        let version = if rng.one_in(8) { rng.pick(4) as i32 } else { -1 };
        match rng.pick(30) {
            24 => {
                let path = format!("{some}/container");
                self.create(op::CREATE_CONTAINER, &path, None, &[Acl::open()], 4);
            }
            25 => {
                let (path, open) = (format!("{some}/ttl"), Acl::open());
                let acl = Vector::Owned(vec![open.to_record()]);
                let ttl = 1 + rng.pick(4000) as i64;
                let flags = 5 + rng.pick(2) as i32;
                let data = data.as_deref();
                let request = CreateTtlRequest { path: text(&path), data, acl, flags, ttl };
                self.send(op::CREATE_TTL, &path, &request);
            }
            26.. => self.send(op::MULTI, "multi", &Multi(some_parts(rng, history))),
            0..8 => {
                let kind = if rng.one_in(2) { op::CREATE } else { op::CREATE2 };
                let name =
                    ["a", "b", "c", "d", "longer-name", "gr\u{fc}\u{df}\u{20ac}"][rng.pick(6)];
                let path = format!("{some}/{name}");
                let flags = [0, 0, 0, 1, 1, 2, 3, 9][rng.pick(8)];
                self.create(kind, &path, data.as_deref(), &some_acl(rng), flags);
            }
            8..14 => {
                let data = data.as_deref();
                self.send(
                    op::SET_DATA,
                    &some,
                    &SetDataRequest { path: text(&some), data, version },
                );
            }
            14..18 => self.send(op::DELETE, &some, &DeleteRequest { path: text(&some), version }),
            18..20 => {
                let acl = some_acl(rng);
                let acl = Vector::Owned(acl.iter().map(Acl::to_record).collect());
                self.send(op::SET_ACL, &some, &SetAclRequest { path: text(&some), acl, version });
            }
            20 => self.send(op::SYNC, &some, &SyncRequest { path: text(&some) }),
            21 | 22 => {
                self.send(op::EXISTS, &some, &ExistsRequest { path: text(&some), watch: false });
            }
            _ if rng.one_in(4) => {
                self.send(op::CLOSE_SESSION, "", &Nothing);
            }
            // An empty body: refused without a zxid.
            _ => self.send(op::SET_DATA, NO_BODY, &Nothing),
        }
    }

    pub fn pump(&mut self, commands: &mut Vec<ClientCommand>, now_us: u64, history: &History) {
        while !self.ended {
            let (taken, need) = self.connection.advance(&self.input, now_us);
            self.input.drain(..taken);
            commands.append(&mut self.connection.commands);
            self.output.extend(drain(&mut self.connection.unsent));
            self.receive(history);
            match need {
                Need::Turn | Need::Room => {}
                Need::Bytes(_) | Need::Answer | Need::FewerOutstanding => break,
                Need::Close(why) => {
                    assert_eq!(why, "");
                    self.ended = true;
                }
                Need::Word(word) => panic!("{word:?}"),
            }
        }
    }

    fn receive(&mut self, history: &History) {
        while let Some(head) = self.output.first_chunk::<4>() {
            let end = 4 + i32::from_be_bytes(*head) as usize;
            if self.output.len() < end {
                return;
            }
            let frame: Vec<u8> = self.output.drain(..end).skip(4).collect();
            match self.session {
                None => self.welcome(&frame, history),
                Some(_) => self.reply(&frame, history),
            }
        }
    }

    fn welcome(&mut self, frame: &[u8], history: &History) {
        let welcome: ConnectResponse<'_> = Reader::new(frame).read().unwrap();
        let session = SessionId(welcome.session_id);
        if session.0 == 0 {
            return; // The client came too late for its session, and its connection is closed.
        }
        let opened = history.opened(session.0).unwrap_or(0);
        assert!(opened <= history.acked(), "session {session} confirmed before it was durable");
        assert_eq!(welcome.password, Some(&password(session)[..]));
        self.session = Some(session);
    }

    /// Checks a reply: what it says must be durable by now, and must be what the log says.
    fn reply(&mut self, frame: &[u8], history: &History) {
        let mut from = Reader::new(frame);
        let header: ReplyHeader = from.read().unwrap();
        let (xid, kind, path) = self.asked.pop_front().expect("a reply to something");
        assert_eq!(header.xid, xid);
        assert!(header.zxid <= history.acked(), "answered before it was durable");
        if !history.keeps {
            return;
        }
        let model = history.model(header.zxid).expect("a zxid of this server");
        match kind {
            op::SYNC | op::CLOSE_SESSION => assert_eq!(header.err, 0),
            op::EXISTS => {
                let expected = model.stat(&path);
                let code = if expected.is_some() { Code::OK } else { Code::NO_NODE };
                assert_eq!((header.err, from.read::<Stat>().ok()), (code.0, expected), "{path:?}");
            }
            _ if path == NO_BODY => assert_eq!(Code(header.err), Code::MARSHALLING_ERROR),
            op::MULTI if header.err == 0 => {
                let first: MultiHeader = from.read().unwrap();
                let failed = first.kind == op::ERROR && !first.done;
                assert_eq!(failed, !history.refusal(header.zxid).is_ok());
            }
            _ => {
                assert_eq!(Code(header.err), history.refusal(header.zxid), "{path:?}");
                if header.err != 0 || kind == op::DELETE {
                    return;
                }
                let mut path = path;
                if matches!(kind, op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL)
                {
                    path = from.read::<Ustring<'_>>().unwrap().unwrap().into_owned();
                }
                assert!(model.stat(&path).is_some());
                if kind != op::CREATE {
                    assert_eq!(from.read::<Stat>().ok(), model.stat(&path), "{path:?}");
                }
            }
        }
    }
}

/// A request without a body.
struct Nothing;

impl Encode for Nothing {
    fn encode(&self, _: &mut Vec<u8>) {}
}

/// The parts of a multi, header and body each.
struct Multi(Vec<u8>);

impl Encode for Multi {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
        MultiHeader { kind: -1, done: true, err: -1 }.encode(to);
    }
}

/// Parts that may succeed together, and now and then one that makes the multi fail.
fn some_parts(rng: &mut Rng, history: &History) -> Vec<u8> {
    let (mut to, open) = (Vec::new(), Acl::open());
    let base = some_path(rng, history);
    let name = format!("{base}/multi{}", rng.pick(5));
    let deep = format!("{name}/deep");
    let mut part = |kind, body: &dyn Fn(&mut Vec<u8>)| {
        MultiHeader { kind, done: false, err: -1 }.encode(&mut to);
        body(&mut to);
    };
    for path in [&name, &deep] {
        if rng.one_in(8) {
            continue;
        }
        let flags = i32::from(path == &deep && rng.one_in(2));
        let data = Some(&b"made by a multi"[..]);
        part(op::CREATE, &|to| {
            let acl = Vector::Owned(vec![open.to_record()]);
            CreateRequest { path: text(path), data, acl, flags }.encode(to);
        });
    }
    let version = rng.pick(2) as i32;
    part(op::CHECK, &|to| CheckVersionRequest { path: text(&name), version: 0 }.encode(to));
    part(op::SET_DATA, &|to| {
        SetDataRequest { path: text(&name), data: None, version: 0 }.encode(to);
    });
    if rng.one_in(2) {
        part(op::DELETE, &|to| DeleteRequest { path: text(&deep), version: -1 }.encode(to));
        part(op::DELETE, &|to| DeleteRequest { path: text(&name), version }.encode(to));
    }
    to
}

fn text(path: &str) -> Ustring<'_> {
    Some(path.into())
}

/// The path of a znode that will exist, unless another client deletes it first; sometimes the path of a znode that does
/// not exist.
fn some_path(rng: &mut Rng, history: &History) -> String {
    let nodes = &history.now.nodes;
    let at = rng.pick(nodes.len());
    let path = nodes.keys().nth(at).expect("within").to_string();
    match path {
        path if path.starts_with("/zookeeper") || path.is_empty() => {
            ["", "/top", "/top/nope"][rng.pick(3)].to_owned()
        }
        // Deeper trees would only make paths longer, so the parent is taken.
        path if path.matches('/').count() > 3 => path[..path.rfind('/').unwrap()].to_owned(),
        path => path,
    }
}

fn some_data(rng: &mut Rng) -> Option<Vec<u8>> {
    let len = match rng.pick(30) {
        0 => return None,
        1 => 0,
        2 => 3000 + rng.pick(7000), // Data of 4096 bytes or more is shared, not copied (`SHARED_DATA_MIN`).
        _ => rng.pick(120),
    };
    let byte = rng.next() as u8;
    Some((0..len).map(|at| byte.wrapping_add(at as u8)).collect())
}

fn some_acl(rng: &mut Rng) -> Vec<Acl> {
    let entry = |perms, scheme, id: &str| Acl { perms, who: Identity::new(scheme, id) };
    match rng.pick(12) {
        0 => vec![entry(31, "ip", "127.0.0.1"), entry(1, "world", "anyone")],
        1 => vec![entry(31, "ip", "127.0.0.0/8"), entry(31, "digest", "user:hash")],
        2 => vec![entry(15, "world", "anyone")],
        3 if rng.one_in(4) => vec![entry(31, "digest", "no-colon")], // Refused.
        4 if rng.one_in(4) => vec![entry(1, "world", "anyone")], // No client may change it then.
        _ => vec![Acl::open()],
    }
}
