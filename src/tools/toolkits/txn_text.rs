//! A transaction as text, as `TxnLogToolkit` prints it, and as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jute::Vector;
use jute::data::Acl;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

use super::dates::Dates;
use crate::model::op;
use crate::tree::txn::{Create, CreateKind, Entry, Txn};

/// The transaction of a log entry in one line, or in several: Java's text of an access list has a line break.
///
/// # Errors
/// Why the entry is no transaction that Java's tool knows.
///
/// Source: `TxnLogToolkit.printTxn`, ZooKeeper 3.9.5.
pub fn text(entry: &[u8], dates: &Dates) -> Result<String, String> {
    let Entry { header, txn, .. } = decode(entry)?;
    let (time, session) = (dates.short(header.time), header.client_id);
    let (cxid, zxid, name) = (i64::from(header.cxid), header.zxid, op_name(header.kind));
    let mut text = format!(
        "{time} session 0x{session:x} cxid 0x{cxid:x} zxid 0x{zxid:x} {name} {}",
        body(&txn)
    );
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn decode(entry: &[u8]) -> Result<Entry<'_>, String> {
    let decoded = Entry::decode(entry).map_err(|error| error.to_string())?;
    match decoded.txn {
        Txn::Check { .. } => Err(format!("transaction of unknown type {}", op::CHECK)),
        _ => Ok(decoded),
    }
}

fn body(txn: &Txn<'_>) -> String {
    match txn {
        Txn::Create(create) => created(create),
        Txn::Delete { path } | Txn::Check { path } => format!("{}\n", escaped(path)),
        Txn::SetData { path, data, version } => format!("{path},{},{version}", raw(*data)),
        Txn::SetAcl { path, acl, version } => {
            let entries: Vec<String> = entries(acl)
                .map(|(perms, scheme, id)| {
                    format!("s{{{perms},s{{{},{}}}}}", escaped(&scheme), escaped(&id))
                })
                .collect();
            format!("{},v{{{}}},{version}\n", escaped(path), entries.join(","))
        }
        Txn::CreateSession { timeout_ms } => format!("{timeout_ms}\n"),
        Txn::CloseSession { paths: None } => String::new(),
        Txn::CloseSession { paths: Some(paths) } => {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.map_or_else(String::new, |path| escaped(&path)))
                .collect();
            format!("v{{{}}}\n", paths.join(","))
        }
        Txn::Error(code) => format!("{}\n", code.0),
        Txn::Multi(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| format!("{}:{}", op_name(part.kind), raw(part.data)))
                .collect();
            parts.join(";")
        }
    }
}

fn created(create: &Create<'_>) -> String {
    let Create { path, data, acl, kind, parent_cversion } = create;
    let mut text = format!("{path},{},[", raw(*data));
    for (at, (perms, scheme, id)) in entries(acl).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _infallible =
            writeln!(text, "{comma}{perms},s{{{},{}}}", escaped(&scheme), escaped(&id));
    }
    text.push_str("],");
    let _infallible = match kind {
        CreateKind::Persistent => write!(text, "false,{parent_cversion}"),
        CreateKind::Ephemeral => write!(text, "true,{parent_cversion}"),
        CreateKind::Container => write!(text, "{parent_cversion}"),
        CreateKind::Ttl(ttl_ms) => write!(text, "{parent_cversion},{ttl_ms}"),
    };
    text
}

/// Permissions, scheme and id of each entry of an access list.
fn entries(acl: &[u8]) -> impl Iterator<Item = (i32, String, String)> {
    let entries: Vector<'_, Acl<'_>> = jute::Reader::new(acl).read().unwrap_or(Vector::Null);
    let owned = |text: Option<Cow<'_, str>>| text.unwrap_or_default().into_owned();
    let entries: Vec<_> =
        entries.iter().map(|acl| (acl.perms, owned(acl.id.scheme), owned(acl.id.id))).collect();
    entries.into_iter()
}

/// Data as Java prints it: decoded as UTF-8, whatever it is.
fn raw(data: Option<&[u8]>) -> Cow<'_, str> {
    jute::read_utf8(data.unwrap_or_default())
}

/// A string inside a record's text.
///
/// Source: `ToStringOutputArchive.escapeString`, ZooKeeper 3.9.5.
fn escaped(text: &str) -> String {
    let mut to = String::with_capacity(text.len() + 1);
    to.push('\'');
    for c in text.chars() {
        match c {
            '\0' | '\n' | '\r' | ',' | '}' | '%' => {
                let _infallible = write!(to, "%{:02X}", c as u32);
            }
            c => to.push(c),
        }
    }
    to
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
    entries(acl)
        .map(|(perms, scheme, id)| json!({ "perms": perms, "scheme": scheme, "id": id }))
        .collect()
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
