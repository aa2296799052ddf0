//! Requests as an operation and a body, for tests of a single server's replies.

use jute::data::{Acl, Id};
use jute::proto::{CreateRequest, CreateTtlRequest, DeleteRequest, SetDataRequest};
use jute::{Encode, Vector};
use oxkeeper::client::op;

pub type Request = (i32, Vec<u8>);

pub fn bytes(record: impl Encode) -> Vec<u8> {
    let mut to = Vec::new();
    record.encode(&mut to);
    to
}

pub fn open_acl() -> Vector<'static, Acl<'static>> {
    let id = Id { scheme: Some("world".into()), id: Some("anyone".into()) };
    Vector::Owned(vec![Acl { perms: 31, id }])
}

/// * `kind`: one of the operations that create.
pub fn create(kind: i32, path: &str, data: Option<&[u8]>, flags: i32) -> Request {
    let path = Some(path.into());
    (kind, bytes(CreateRequest { path, data, acl: open_acl(), flags }))
}

pub fn create_ttl(path: &str, flags: i32, ttl: i64) -> Request {
    let path = Some(path.into());
    (op::CREATE_TTL, bytes(CreateTtlRequest { path, data: None, acl: open_acl(), flags, ttl }))
}

pub fn delete(path: &str) -> Request {
    (op::DELETE, bytes(DeleteRequest { path: Some(path.into()), version: -1 }))
}

pub fn set(path: &str, data: Option<&[u8]>, version: i32) -> Request {
    (op::SET_DATA, bytes(SetDataRequest { path: Some(path.into()), data, version }))
}
