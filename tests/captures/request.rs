//! Decodes client requests that learners forward to text.

use super::entry::data;
use jute::data::Acl;
use jute::proto::{
    CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, MultiHeader,
    ReconfigRequest, SetAclRequest, SetDataRequest, SyncRequest,
};
use jute::{Decode, Encode, Reader, Vector};
use oxkeeper::model::op;
use oxkeeper::request::prep;
use oxkeeper::zab::Request;

/// The text of a request, whose body is also encoded again to the same bytes.
pub fn text(asked: &Request) -> String {
    let Request { session, xid, op, body, identities } = asked;
    assert!(
        *op == op::SYNC || prep::is_readable(*op, body),
        "the body of operation {op} is refused"
    );
    let (mut from, mut again) = (Reader::new(body), Vec::new());
    let text = put(*op, &mut from, &mut again);
    assert_eq!(again, body[..], "{text}");
    let identities: Vec<String> =
        identities.iter().map(|id| format!("{}:{}", id.scheme, id.id)).collect();
    format!("session {session} xid {xid} {text} by [{}]", identities.join(" "))
}

fn put(kind: i32, from: &mut Reader<'_>, to: &mut Vec<u8>) -> String {
    match kind {
        op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => {
            let CreateRequest { path, data: bytes, acl, flags } = same(from, to);
            format!("create {path:?} {} flags {flags} acl {}", data(bytes), list(&acl))
        }
        op::CREATE_TTL => {
            let CreateTtlRequest { path, data: bytes, acl, flags, ttl } = same(from, to);
            let (bytes, acl) = (data(bytes), list(&acl));
            format!("create {path:?} {bytes} flags {flags} acl {acl} ttl {ttl} ms")
        }
        op::DELETE => {
            let DeleteRequest { path, version } = same(from, to);
            format!("delete {path:?} version {version}")
        }
        op::SET_DATA => {
            let SetDataRequest { path, data: bytes, version } = same(from, to);
            format!("setData {path:?} {} version {version}", data(bytes))
        }
        op::SET_ACL => {
            let SetAclRequest { path, acl, version } = same(from, to);
            format!("setACL {path:?} {} version {version}", list(&acl))
        }
        op::CHECK => {
            let CheckVersionRequest { path, version } = same(from, to);
            format!("check {path:?} version {version}")
        }
        op::SYNC => {
            let SyncRequest { path } = same(from, to);
            format!("sync {path:?}")
        }
        op::CREATE_SESSION => format!("createSession {} ms", same::<i32>(from, to)),
        op::CLOSE_SESSION => "closeSession".to_owned(),
        op::RECONFIG => format!("{:?}", same::<ReconfigRequest<'_>>(from, to)),
        op::MULTI => {
            let mut parts = Vec::new();
            loop {
                let head: MultiHeader = same(from, to);
                if head.done {
                    return format!("multi [{}]", parts.join(", "));
                }
                parts.push(put(head.kind, from, to));
            }
        }
        kind => panic!("operation {kind} is never forwarded to a leader"),
    }
}

pub fn list(acl: &Vector<'_, Acl<'_>>) -> String {
    let one = |acl: Acl<'_>| {
        let text = |text: Option<std::borrow::Cow<'_, str>>| text.expect("text").into_owned();
        format!("{:#x}:{}:{}", acl.perms, text(acl.id.scheme), text(acl.id.id))
    };
    acl.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Decodes a record and encodes it again.
fn same<'a, T: Decode<'a> + Encode>(from: &mut Reader<'a>, to: &mut Vec<u8>) -> T {
    let read: T = from.read().expect("a record of Java's");
    read.encode(to);
    read
}
