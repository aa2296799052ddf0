//! Encodes operations as requests.
//!
//! By hand rather than through `jute::proto`: scripts contain strings that are not valid UTF-8.

use super::script::{Acl, Op};
use jute::{put_buffer, put_i32, put_i64};
use oxkeeper::client::{op as code, xid};

fn put_text(to: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(bytes) => put_buffer(to, bytes),
        None => put_i32(to, -1),
    }
}

fn put_list<T>(to: &mut Vec<u8>, items: Option<&[T]>, mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_i32(to, items.map_or(-1, |items| i32::try_from(items.len()).expect("a short list")));
    for item in items.unwrap_or_default() {
        put(to, item);
    }
}

fn put_acl(to: &mut Vec<u8>, acl: &Acl) {
    put_i32(to, acl.perms);
    put_text(to, acl.scheme.as_deref());
    put_text(to, acl.id.as_deref());
}

impl Op {
    /// The opcode in the request header; `None` for operations that are not requests.
    pub fn code(&self) -> Option<i32> {
        Some(match self {
            Self::Connect { .. }
            | Self::Reconnect { .. }
            | Self::Drop
            | Self::Expire
            | Self::Frame { .. } => {
                return None;
            }
            Self::Close => code::CLOSE_SESSION,
            Self::CreateTtl { .. } => code::CREATE_TTL,
            Self::SetData { .. } => code::SET_DATA,
            Self::SetAcl { .. } => code::SET_ACL,
            Self::Auth { .. } => code::AUTH,
            Self::Create { code, .. }
            | Self::Versioned { code, .. }
            | Self::Read { code, .. }
            | Self::Path { code, .. }
            | Self::Watch { code, .. }
            | Self::SetWatches { code, .. }
            | Self::Multi { code, .. }
            | Self::Bare { code }
            | Self::Raw { code, .. } => *code,
        })
    }

    /// The xid that the protocol prescribes; `None` where the client numbers its requests.
    pub fn fixed_xid(&self) -> Option<i32> {
        match self {
            Self::Bare { code: code::PING } => Some(xid::PING),
            Self::Auth { .. } => Some(xid::AUTH),
            Self::SetWatches { .. } => Some(xid::SET_WATCHES),
            _ => None,
        }
    }

    /// Appends the request's body. `last_zxid`: the value of [`super::script::Seen::Last`].
    pub fn put_body(&self, to: &mut Vec<u8>, last_zxid: i64) {
        match self {
            Self::Connect { .. } | Self::Reconnect { .. } => {}
            Self::Drop | Self::Close | Self::Expire | Self::Bare { .. } => {}
            Self::Create { path, data, acl, flags, .. } => {
                put_create(to, path.as_deref(), data.as_deref(), acl.as_deref(), *flags);
            }
            Self::CreateTtl { path, data, acl, flags, ttl } => {
                put_create(to, path.as_deref(), data.as_deref(), acl.as_deref(), *flags);
                put_i64(to, *ttl);
            }
            Self::SetData { path, data, version } => {
                put_text(to, path.as_deref());
                put_text(to, data.as_deref());
                put_i32(to, *version);
            }
            Self::SetAcl { path, acl, version } => {
                put_text(to, path.as_deref());
                put_list(to, acl.as_deref(), put_acl);
                put_i32(to, *version);
            }
            Self::Versioned { path, version: number, .. }
            | Self::Watch { path, kind: number, .. } => {
                put_text(to, path.as_deref());
                put_i32(to, *number);
            }
            Self::Read { path, watch, .. } => {
                put_text(to, path.as_deref());
                to.push(u8::from(*watch));
            }
            Self::Path { path, .. } => put_text(to, path.as_deref()),
            Self::SetWatches { code, zxid, lists } => {
                put_i64(to, zxid.resolve(last_zxid));
                let sent = if *code == code::SET_WATCHES { 3 } else { 5 };
                for paths in &lists[..sent] {
                    put_list(to, Some(paths), |to, path| put_text(to, path.as_deref()));
                }
            }
            Self::Multi { ops, .. } => {
                for op in ops {
                    put_multi_header(to, op.code().unwrap_or(0), false);
                    op.put_body(to, last_zxid);
                }
                put_multi_header(to, -1, true);
            }
            Self::Auth { scheme, auth } => {
                put_i32(to, 0);
                put_text(to, scheme.as_deref());
                put_text(to, auth.as_deref());
            }
            Self::Raw { body, .. } | Self::Frame { body } => to.extend_from_slice(body),
        }
    }
}

fn put_create(
    to: &mut Vec<u8>,
    path: Option<&[u8]>,
    data: Option<&[u8]>,
    acl: Option<&[Acl]>,
    flags: i32,
) {
    put_text(to, path);
    put_text(to, data);
    put_list(to, acl, put_acl);
    put_i32(to, flags);
}

fn put_multi_header(to: &mut Vec<u8>, kind: i32, done: bool) {
    put_i32(to, kind);
    to.push(u8::from(done));
    put_i32(to, -1);
}

impl super::script::Seen {
    pub const fn resolve(self, last: i64) -> i64 {
        match self {
            Self::Last => last,
            Self::Zxid(zxid) => zxid,
        }
    }
}
