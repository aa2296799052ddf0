//! A transaction as text, as `TxnLogToolkit` prints it, and as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jute::Vector;
use jute::data::{Acl, Id};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Write as _;

use super::dates::Dates;
use crate::model::op;
use crate::tree::txn::{Create, CreateKind, Entry, Txn};

/// Appends the transaction of a log entry in one line, or in several: Java's text of an access list has a line break.
///
/// # Errors
/// Why the entry is no transaction that Java's tool knows; nothing is appended then.
///
/// Source: `TxnLogToolkit.printTxn`, ZooKeeper 3.9.5.
pub fn put_text(entry: &[u8], dates: &Dates, to: &mut Vec<u8>) -> Result<(), String> {
    let Entry { header, txn, .. } = decode(entry)?;
    let (session, cxid, zxid) = (header.client_id, i64::from(header.cxid), header.zxid);
    dates.put_short(header.time, to);
    put(to, format_args!(" session 0x{session:x} cxid 0x{cxid:x} zxid 0x{zxid:x} "));
    to.extend_from_slice(op_name(header.kind).as_bytes());
    to.push(b' ');
    put_body(&txn, to);
    if !to.ends_with(b"\n") {
        to.push(b'\n');
    }
    Ok(())
}

fn put(to: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    to.write_fmt(text).expect("a Vec takes all bytes");
}

fn decode(entry: &[u8]) -> Result<Entry<'_>, String> {
    let decoded = Entry::decode(entry).map_err(|error| error.to_string())?;
    match decoded.txn {
        Txn::Check { .. } => Err(format!("transaction of unknown type {}", op::CHECK)),
        _ => Ok(decoded),
    }
}

fn put_body(txn: &Txn<'_>, to: &mut Vec<u8>) {
    match txn {
        Txn::Create(create) => put_created(create, to),
        Txn::Delete { path } | Txn::Check { path } => {
            put_escaped(path, to);
            to.push(b'\n');
        }
        Txn::SetData { path, data, version } => {
            to.extend_from_slice(path.as_bytes());
            to.push(b',');
            put_raw(*data, to);
            put(to, format_args!(",{version}"));
        }
        Txn::SetAcl { path, acl, version } => {
            put_escaped(path, to);
            to.extend_from_slice(b",v{");
            for (at, acl) in entries(acl).iter().enumerate() {
                put(to, format_args!("{}s{{{},", if at == 0 { "" } else { "," }, acl.perms));
                put_id(&acl.id, to);
                to.push(b'}');
            }
            put(to, format_args!("}},{version}\n"));
        }
        Txn::CreateSession { timeout_ms } => put(to, format_args!("{timeout_ms}\n")),
        Txn::CloseSession { paths: None } => {}
        Txn::CloseSession { paths: Some(paths) } => {
            to.extend_from_slice(b"v{");
            for (at, path) in paths.iter().enumerate() {
                to.extend_from_slice(if at == 0 { b"" } else { b"," });
                if let Some(path) = path {
                    put_escaped(&path, to);
                }
            }
            to.extend_from_slice(b"}\n");
        }
        Txn::Error(code) => put(to, format_args!("{}\n", code.0)),
        Txn::Multi(parts) => {
            for (at, part) in parts.iter().enumerate() {
                let semicolon = if at == 0 { "" } else { ";" };
                put(to, format_args!("{semicolon}{}:", op_name(part.kind)));
                put_raw(part.data, to);
            }
        }
    }
}

fn put_created(create: &Create<'_>, to: &mut Vec<u8>) {
    let Create { path, data, acl, kind, parent_cversion } = create;
    to.extend_from_slice(path.as_bytes());
    to.push(b',');
    put_raw(*data, to);
    to.extend_from_slice(b",[");
    for (at, acl) in entries(acl).iter().enumerate() {
        put(to, format_args!("{}{},", if at == 0 { "" } else { ", " }, acl.perms));
        put_id(&acl.id, to);
        to.push(b'\n');
    }
    to.extend_from_slice(b"],");
    match kind {
        CreateKind::Persistent => put(to, format_args!("false,{parent_cversion}")),
        CreateKind::Ephemeral => put(to, format_args!("true,{parent_cversion}")),
        CreateKind::Container => put(to, format_args!("{parent_cversion}")),
        CreateKind::Ttl(ttl_ms) => put(to, format_args!("{parent_cversion},{ttl_ms}")),
    }
}

/// The entries of an access list.
fn entries(acl: &[u8]) -> Vector<'_, Acl<'_>> {
    jute::Reader::new(acl).read().unwrap_or(Vector::Null)
}

fn put_id(id: &Id<'_>, to: &mut Vec<u8>) {
    to.extend_from_slice(b"s{");
    put_escaped(id.scheme.as_deref().unwrap_or_default(), to);
    to.push(b',');
    put_escaped(id.id.as_deref().unwrap_or_default(), to);
    to.push(b'}');
}

/// Data as Java prints it: decoded as UTF-8, whatever it is.
fn put_raw(data: Option<&[u8]>, to: &mut Vec<u8>) {
    jute::put_utf8(to, data.unwrap_or_default());
}

/// A string inside a record's text.
///
/// Source: `ToStringOutputArchive.escapeString`, ZooKeeper 3.9.5.
fn put_escaped(text: &str, to: &mut Vec<u8>) {
    to.push(b'\'');
    for &byte in text.as_bytes() {
        match byte {
            b'\0' | b'\n' | b'\r' | b',' | b'}' | b'%' => put(to, format_args!("%{byte:02X}")),
            byte => to.push(byte),
        }
    }
}

/// The transaction of a log entry as a JSON object.
///
/// # Errors
/// As [`text`].
pub fn json(entry: &[u8], is_sound: bool) -> Result<Value, String> {
    let Entry { header, txn, digest } = decode(entry)?;
    let mut object = json!({
        "time_ms": header.time,
        "session": format!("0x{:x}", header.client_id),
        "cxid": header.cxid,
        "zxid": format!("0x{:x}", header.zxid),
        "type": op_name(header.kind),
        "checksum_matches": is_sound,
    });
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields(&txn)) {
        object.extend(fields);
        if let Some(digest) = digest {
            object.insert("digest".to_owned(), json!(digest.tree_digest));
        }
    }
    Ok(object)
}

fn fields(txn: &Txn<'_>) -> Value {
    match txn {
        Txn::Create(create) => {
            let (ephemeral, ttl) = (
                create.kind == CreateKind::Ephemeral,
                match create.kind {
                    CreateKind::Ttl(ttl_ms) => Some(ttl_ms),
                    _ => None,
                },
            );
            json!({
                "path": create.path, "data": packed(create.data), "acl": acl_json(create.acl), "ephemeral": ephemeral,
                "ttl_ms": ttl, "parent_cversion": create.parent_cversion,
            })
        }
        Txn::Delete { path } | Txn::Check { path } => json!({ "path": path }),
        Txn::SetData { path, data, version } => {
            json!({ "path": path, "data": packed(*data), "version": version })
        }
        Txn::SetAcl { path, acl, version } => {
            json!({ "path": path, "acl": acl_json(acl), "version": version })
        }
        Txn::CreateSession { timeout_ms } => json!({ "timeout_ms": timeout_ms }),
        Txn::CloseSession { paths } => {
            let paths = paths.as_ref().map(|paths| {
                paths.iter().map(|path| path.unwrap_or_default().into_owned()).collect::<Vec<_>>()
            });
            json!({ "paths": paths })
        }
        Txn::Error(code) => json!({ "error": code.0 }),
        Txn::Multi(parts) => {
            let parts = parts.iter().map(|part| {
                let mut from = jute::Reader::new(part.data.unwrap_or_default());
                let mut object = json!({ "type": op_name(part.kind) });
                if let (Some(object), Ok(Value::Object(fields))) = (
                    object.as_object_mut(),
                    Txn::decode(part.kind, &mut from).map(|txn| fields(&txn)),
                ) {
                    object.extend(fields);
                }
                object
            });
            json!({ "parts": parts.collect::<Vec<_>>() })
        }
    }
}

fn acl_json(acl: &[u8]) -> Vec<Value> {
    let object = |acl: Acl<'_>| {
        let (scheme, id) = (acl.id.scheme.unwrap_or_default(), acl.id.id.unwrap_or_default());
        json!({ "perms": acl.perms, "scheme": scheme, "id": id })
    };
    entries(acl).iter().map(object).collect()
}

fn packed(data: Option<&[u8]>) -> Option<String> {
    data.map(|data| STANDARD.encode(data))
}

/// The name of a type of request or transaction.
///
/// Source: `Request.op2String`, ZooKeeper 3.9.5.
pub fn op_name(kind: i32) -> Cow<'static, str> {
    const NAMES: &[(i32, &str)] = &[
        (0, "notification"),
        (op::CREATE, "create"),
        (op::DELETE, "delete"),
        (op::EXISTS, "exists"),
        (op::GET_DATA, "getData"),
        (op::SET_DATA, "setData"),
        (op::GET_ACL, "getACL"),
        (op::SET_ACL, "setACL"),
        (op::GET_CHILDREN, "getChildren"),
        (op::SYNC, "sync"),
        (op::PING, "ping"),
        (op::GET_CHILDREN2, "getChildren2"),
        (op::CHECK, "check"),
        (op::MULTI, "multi"),
        (op::CREATE2, "create2"),
        (op::RECONFIG, "reconfig"),
        (op::CHECK_WATCHES, "checkWatches"),
        (op::REMOVE_WATCHES, "removeWatches"),
        (op::CREATE_CONTAINER, "createContainer"),
        (op::DELETE_CONTAINER, "deleteContainer"),
        (op::CREATE_TTL, "createTTL"),
        (op::MULTI_READ, "multiRead"),
        (op::AUTH, "auth"),
        (op::SET_WATCHES, "setWatches"),
        (op::SET_WATCHES2, "setWatches2"),
        (op::ADD_WATCH, "addWatch"),
        (op::SASL, "sasl"),
        (op::GET_EPHEMERALS, "getEphemerals"),
        (op::GET_ALL_CHILDREN_NUMBER, "getAllChildrenNumber"),
        (op::CREATE_SESSION, "createSession"),
        (op::CLOSE_SESSION, "closeSession"),
        (op::ERROR, "error"),
        (op::WHO_AM_I, "whoAmI"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == kind);
    known.map_or_else(|| format!("unknown {kind}").into(), |(_, name)| (*name).into())
}
