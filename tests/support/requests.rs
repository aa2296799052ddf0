//! Requests as bytes, and replies and events as lines of text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jute::data::Stat;
use jute::proto::{
    CreateRequest, DeleteRequest, GetDataRequest, MultiHeader, ReplyHeader, RequestHeader,
    SetAclRequest, SetDataRequest, SetWatches, SyncRequest, WatcherEvent,
};
use jute::{Decode, Encode, Reader, Ustring, Vector, put_frame};
use oxkeeper::client::{ConnectRequest, ConnectResponse};
use oxkeeper::model::{Acl, Identity, SessionId, op, perms};
use oxkeeper::request::{Outgoing, password};

/// A framed request of any kind.
pub fn raw(xid: i32, kind: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    put_frame(&mut frame, |to| {
        RequestHeader { xid, kind }.encode(to);
        to.extend_from_slice(body);
    });
    frame
}

pub fn request(xid: i32, kind: i32, body: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    body.encode(&mut bytes);
    raw(xid, kind, &bytes)
}

/// A persistent znode that is open to all.
pub fn create(xid: i32, path: &str, data: &str) -> Vec<u8> {
    create_with(xid, path, data, 0, &Acl::open())
}

pub fn create_ephemeral(xid: i32, path: &str) -> Vec<u8> {
    create_with(xid, path, "", 1, &Acl::open())
}

/// A znode that one address may use and no other.
pub fn create_for(xid: i32, path: &str, address: &str) -> Vec<u8> {
    create_with(xid, path, "", 0, &Acl { perms: perms::ALL, who: Identity::new("ip", address) })
}

fn create_with(xid: i32, path: &str, data: &str, flags: i32, acl: &Acl) -> Vec<u8> {
    let (path, data) = (Some(path.into()), Some(data.as_bytes()));
    let acl = Vector::Owned(vec![acl.to_record()]);
    request(xid, op::CREATE, &CreateRequest { path, data, acl, flags })
}

/// Sets the ACL so that one address may use the znode and no other.
pub fn set_acl_for(xid: i32, path: &str, address: &str) -> Vec<u8> {
    set_acl(xid, path, &Acl { perms: perms::ALL, who: Identity::new("ip", address) })
}

pub fn set_acl(xid: i32, path: &str, acl: &Acl) -> Vec<u8> {
    let acl = Vector::Owned(vec![acl.to_record()]);
    request(xid, op::SET_ACL, &SetAclRequest { path: Some(path.into()), acl, version: -1 })
}

pub fn set(xid: i32, path: &str, data: &str) -> Vec<u8> {
    let request_body =
        SetDataRequest { path: Some(path.into()), data: Some(data.as_bytes()), version: -1 };
    request(xid, op::SET_DATA, &request_body)
}

pub fn delete(xid: i32, path: &str) -> Vec<u8> {
    request(xid, op::DELETE, &DeleteRequest { path: Some(path.into()), version: -1 })
}

/// A read whose body is a path and a watch flag: getData, exists, getChildren, getChildren2.
pub fn look(xid: i32, kind: i32, path: &str, watch: bool) -> Vec<u8> {
    request(xid, kind, &GetDataRequest { path: Some(path.into()), watch })
}

pub fn get(xid: i32, path: &str) -> Vec<u8> {
    look(xid, op::GET_DATA, path, false)
}

pub fn watch(xid: i32, path: &str) -> Vec<u8> {
    look(xid, op::GET_DATA, path, true)
}

pub fn watch_exists(xid: i32, path: &str) -> Vec<u8> {
    look(xid, op::EXISTS, path, true)
}

pub fn watch_children(xid: i32, path: &str) -> Vec<u8> {
    look(xid, op::GET_CHILDREN, path, true)
}

pub fn sync(xid: i32, path: &str) -> Vec<u8> {
    request(xid, op::SYNC, &SyncRequest { path: Some(path.into()) })
}

pub fn ping() -> Vec<u8> {
    raw(-2, op::PING, &[])
}

pub fn close(xid: i32) -> Vec<u8> {
    raw(xid, op::CLOSE_SESSION, &[])
}

/// setWatches, which a client sends after a reconnect.
pub fn set_watches(since: i64, data: &[&str], exist: &[&str], child: &[&str]) -> Vec<u8> {
    let list = |paths: &[&str]| -> Vector<'_, Ustring<'_>> {
        Vector::Owned(paths.iter().map(|&path| Some(path.to_owned().into())).collect())
    };
    let body = SetWatches {
        relative_zxid: since,
        data_watches: list(data),
        exist_watches: list(exist),
        child_watches: list(child),
    };
    request(-8, op::SET_WATCHES, &body)
}

/// Asks for a new session.
pub fn hello() -> ConnectRequest {
    ConnectRequest {
        timeout_ms: 10_000,
        password: vec![0; 16],
        read_only: Some(false),
        ..ConnectRequest::default()
    }
}

/// Asks for a session that exists.
pub fn hello_again(session: i64) -> ConnectRequest {
    ConnectRequest {
        session_id: session,
        password: password(SessionId(session)).to_vec(),
        ..hello()
    }
}

pub fn hello_bytes(hello: &ConnectRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    hello.put(&mut bytes);
    bytes
}

/// All bytes of `out` in the order in which they go to the socket; leaves it empty.
pub fn drain(out: &mut Outgoing) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(out.len());
    let mut from = 0;
    for (at, piece) in &out.shared {
        bytes.extend_from_slice(&out.bytes[from..*at]);
        bytes.extend_from_slice(piece);
        from = *at;
    }
    bytes.extend_from_slice(&out.bytes[from..]);
    out.clear();
    bytes
}

/// One frame that a server sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    ConnectResponse(ConnectResponse),
    Event { zxid: i64, kind: i32, state: i32, path: String },
    Reply { xid: i32, zxid: i64, err: i32, body: Vec<u8> },
}

/// The client's end of a connection: cuts the bytes into frames, and knows the operations of its requests.
#[derive(Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    welcomed: bool,
    ops: BTreeMap<i32, i32>,
}

impl FrameReader {
    /// Notes the operations of these requests, so that the replies can be read.
    pub fn asked(&mut self, frames: &[u8]) {
        let mut rest = frames;
        while let Some(len) = rest.first_chunk::<4>().map(|head| u32::from_be_bytes(*head)) {
            let Some(frame) = rest.get(4..4 + len as usize) else { return };
            if let Ok(header) = Reader::new(frame).read::<RequestHeader>() {
                self.ops.insert(header.xid, header.kind);
            }
            rest = &rest[4 + len as usize..];
        }
    }

    /// Takes bytes, and returns all frames that are whole.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<Said> {
        self.bytes.extend_from_slice(bytes);
        let mut said = Vec::new();
        while let Some(len) = self.bytes.first_chunk::<4>().map(|head| u32::from_be_bytes(*head)) {
            if self.bytes.len() < 4 + len as usize {
                break;
            }
            let frame: Vec<u8> = self.bytes.drain(..4 + len as usize).skip(4).collect();
            said.push(self.parse(&frame));
        }
        said
    }

    fn parse(&mut self, frame: &[u8]) -> Said {
        if !self.welcomed {
            self.welcomed = true;
            return Said::ConnectResponse(
                ConnectResponse::parse(frame).expect("a connect response"),
            );
        }
        let mut from = Reader::new(frame);
        let header = ReplyHeader::decode(&mut from).expect("a reply header");
        if header.xid != -1 {
            let body = from.rest().to_vec();
            return Said::Reply { xid: header.xid, zxid: header.zxid, err: header.err, body };
        }
        let event = WatcherEvent::decode(&mut from).expect("an event");
        let path = event.path.expect("events name a path").into_owned();
        Said::Event { zxid: header.zxid, kind: event.kind, state: event.state, path }
    }

    /// One line for one frame.
    pub fn line(&self, said: &Said) -> String {
        match said {
            Said::ConnectResponse(welcome) => welcome_line(welcome),
            Said::Event { zxid, kind, state, path } => {
                let kind = ["NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged"]
                    [*kind as usize - 1];
                assert_eq!(*state, 3, "an event's state is SyncConnected (P-31)");
                format!("event @{zxid} {kind} {path}")
            }
            Said::Reply { xid, zxid, err: 0, body } => {
                let kind = self.ops.get(xid).copied().unwrap_or(0);
                format!("{xid} @{zxid} ok{}", body_text(kind, body))
            }
            Said::Reply { xid, zxid, err, body } => {
                assert!(body.is_empty(), "an error has no body (P-26)");
                format!("{xid} @{zxid} error {err}")
            }
        }
    }
}

fn welcome_line(welcome: &ConnectResponse) -> String {
    let flag = welcome.read_only.map_or("", |_| " flag");
    if welcome.session_id == 0 {
        assert_eq!((welcome.timeout_ms, &*welcome.password), (0, &[0; 16][..]));
        return format!("refused{flag}");
    }
    assert_eq!(welcome.password, password(SessionId(welcome.session_id)));
    format!("session {:#x} {} ms{flag}", welcome.session_id, welcome.timeout_ms)
}

/// A reply's body as text: data in quotes, version, path or children; of a multi the operations of its answers, which must have no
/// body, or their errors.
fn body_text(kind: i32, body: &[u8]) -> String {
    let mut from = Reader::new(body);
    let mut text = String::new();
    let done: Result<(), jute::DecodeError> = (|| {
        match kind {
            op::CREATE | op::CREATE_CONTAINER | op::CREATE_TTL | op::SYNC => {
                let path = from.read::<Ustring<'_>>()?;
                let _infallible = write!(text, " {}", path.unwrap_or_default());
            }
            op::GET_DATA => {
                let data = from.read::<Option<&[u8]>>()?.unwrap_or_default();
                let _infallible = write!(text, " {:?}", String::from_utf8_lossy(data));
            }
            op::GET_CHILDREN | op::GET_CHILDREN2 | op::GET_EPHEMERALS => {
                let names = from.read::<Vector<'_, Ustring<'_>>>()?;
                let mut names: Vec<String> =
                    names.iter().flatten().map(|name| name.into_owned()).collect();
                names.sort();
                let _infallible = write!(text, " {names:?}");
            }
            op::MULTI => {
                let mut answers = Vec::new();
                loop {
                    let header: MultiHeader = from.read()?;
                    if header.done {
                        break;
                    }
                    let is_error = header.kind == -1;
                    answers.push(if is_error { from.read::<i32>()? } else { header.kind });
                }
                let _infallible = write!(text, " {answers:?}");
            }
            op::GET_ACL => {
                let list = from.read::<Vector<'_, jute::data::Acl<'_>>>()?;
                let _infallible = write!(text, " {} entries", list.iter().count());
            }
            _ => {}
        }
        if matches!(
            kind,
            op::GET_DATA
                | op::CREATE_CONTAINER
                | op::CREATE_TTL
                | op::EXISTS
                | op::SET_DATA
                | op::SET_ACL
                | op::GET_ACL
                | op::GET_CHILDREN2
        ) {
            let _infallible = write!(text, " v{}", from.read::<Stat>()?.version);
        }
        Ok(())
    })();
    assert!(done.is_ok() && from.rest().is_empty(), "body of operation {kind}: {body:?}");
    text
}
