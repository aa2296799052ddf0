//! Decodes the log entries in proposals to text.

use super::request::list;
use jute::txn::{CheckVersionTxn, TxnHeader};
use jute::{Encode, Reader, Vector, put_i32};
use oxkeeper::model::{Zxid, op};
use oxkeeper::tree::txn::{Create, Entry, Txn, write};

/// The text of an entry, which is also encoded again to the same bytes.
pub fn text(zxid: Zxid, bytes: &[u8]) -> String {
    let Entry { header, txn, digest } = Entry::decode(bytes).expect("an entry of Java's");
    let mut again = Vec::new();
    header.encode(&mut again);
    let text = put(header.kind, &txn, &mut again);
    digest.inspect(|digest| digest.encode(&mut again));
    assert_eq!(again, bytes, "{header:?} {txn:?}");
    assert_eq!(header.zxid, zxid.to_wire(), "the packet's");
    let digest = digest.map_or("no digest".to_owned(), |digest| {
        format!("digest {:#x} of version {}", digest.tree_digest, digest.version)
    });
    let TxnHeader { client_id, cxid, time, .. } = header;
    format!("session {client_id:#x} xid {cxid} at {time} {text}, {digest}")
}

pub fn data(data: Option<&[u8]>) -> String {
    data.map_or("null".to_owned(), |data| format!("{:?}", String::from_utf8_lossy(data)))
}

/// Encodes a transaction as this server does, and returns its text.
fn put(kind: i32, txn: &Txn<'_>, to: &mut Vec<u8>) -> String {
    match txn {
        Txn::Create(Create { path, data: bytes, acl, kind, parent_cversion }) => {
            write::create(to, path, *bytes, acl, *kind, *parent_cversion);
            let (bytes, acl) = (data(*bytes), list(&Reader::new(acl).read().expect("a list")));
            format!("create {path} {kind:?} {bytes} acl {acl} parentCVersion {parent_cversion}")
        }
        Txn::Delete { path } => {
            write::delete(to, path);
            format!("delete {path}")
        }
        Txn::SetData { path, data: bytes, version } => {
            write::set_data(to, path, *bytes, *version);
            let what = if kind == op::RECONFIG { "reconfig" } else { "setData" };
            format!("{what} {path} {} version {version}", data(*bytes))
        }
        Txn::SetAcl { path, acl, version } => {
            write::set_acl(to, path, acl, *version);
            let acl = list(&Reader::new(acl).read().expect("a list"));
            format!("setACL {path} {acl} version {version}")
        }
        Txn::CreateSession { timeout_ms } => {
            put_i32(to, *timeout_ms);
            format!("createSession {timeout_ms} ms")
        }
        Txn::CloseSession { paths: None } => "closeSession".to_owned(),
        Txn::CloseSession { paths: Some(paths) } => {
            let paths: Vec<String> =
                paths.iter().map(|path| path.expect("a path").into_owned()).collect();
            write::close_session(to, &paths);
            format!("closeSession {paths:?}")
        }
        Txn::Error(code) => {
            put_i32(to, code.0);
            format!("error {code}")
        }
        Txn::Check { .. } => unreachable!("only in a multi"),
        Txn::Multi(parts) => {
            let parts: Vec<_> = parts.iter().collect();
            let done = parts.iter().map(|part| {
                let bytes = part.data.expect("a part");
                let mut again = Vec::new();
                let text = put_part(part.kind, bytes, &mut again);
                assert_eq!(again, bytes, "{text}");
                text
            });
            let text = format!("multi [{}]", done.collect::<Vec<_>>().join(", "));
            Vector::Owned(parts).encode(to);
            text
        }
    }
}

fn put_part(kind: i32, bytes: &[u8], to: &mut Vec<u8>) -> String {
    let mut from = Reader::new(bytes);
    if kind == op::CHECK {
        // Checked before it was proposed: applying a transaction doesn't need the version, so `Txn` does not keep it.
        let CheckVersionTxn { path, version } = from.read().expect("a check of Java's");
        let path = path.expect("a path");
        write::check(to, &path, version);
        return format!("check {path} version {version}");
    }
    put(kind, &Txn::decode(kind, &mut from).expect("a part of Java's"), to)
}
