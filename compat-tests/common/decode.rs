//! Turns each reply into one line of text. Two servers gave the same answer when the lines are equal.
//!
//! Every byte of a reply ends up in its line: bytes left over after the expected record are printed as bytes.

use super::naming::{Sessions, Zxids, time};
use super::script::Op;
use super::text::{list, quote, text};
use jute::data::Stat;
use jute::proto::ReplyHeader;
use jute::{DecodeError, Reader};
use oxkeeper::client::op as code;

/// Names for the values that differ between servers.
pub struct Naming<'n> {
    pub sessions: &'n Sessions,
    pub zxids: &'n mut Zxids,
}

type Line = Result<String, DecodeError>;

/// The line for the reply to `op`.
pub fn reply(op: &Op, header: ReplyHeader, body: &[u8], names: &mut Naming<'_>) -> String {
    let ReplyHeader { xid, zxid, err } = header;
    // The reply to a request that could not be decoded carries the last zxid, and not one of its own (G-01).
    let own = op.is_write() && err != -5;
    let zxid = if own { names.zxids.name(zxid) } else { names.zxids.name_of_last_seen(zxid) };
    let mut from = Reader::new(body);
    let text = if err == 0 || !body.is_empty() {
        result(op, &mut from, names).unwrap_or_else(|e| format!(" undecodable ({e})"))
    } else {
        String::new()
    };
    let rest = match from.rest() {
        [] => String::new(),
        rest => format!(" then {}", quote(rest)),
    };
    format!("{} xid={xid} zxid={zxid} err={err}{text}{rest}", op.verb())
}

pub fn event(
    header: ReplyHeader,
    event: &jute::proto::WatcherEvent<'_>,
    zxids: &mut Zxids,
) -> String {
    let path = text(event.path.as_ref().map(|path| path.as_bytes()));
    let (zxid, err) = (zxids.name(header.zxid), header.err);
    format!("event zxid={zxid} err={err} type={} state={} path={path}", event.kind, event.state)
}

impl Op {
    /// Whether the request gets a zxid of its own.
    pub fn is_write(&self) -> bool {
        use code::{CHECK, CREATE_CONTAINER, CREATE2, DELETE, DELETE_CONTAINER, MULTI};
        match self {
            Self::Create { .. } | Self::CreateTtl { .. } | Self::SetData { .. } => true,
            Self::SetAcl { .. } | Self::Versioned { .. } | Self::Close => true,
            Self::Path { code, .. } | Self::Multi { code, .. } | Self::Raw { code, .. } => {
                matches!(*code, DELETE_CONTAINER | MULTI | CHECK | CREATE_CONTAINER | CREATE2)
                    || (code::CREATE..=DELETE).contains(code)
            }
            _ => false,
        }
    }
}

fn result(op: &Op, from: &mut Reader<'_>, names: &mut Naming<'_>) -> Line {
    let Some(kind) = op.code() else { return Ok(String::new()) };
    result_by_code(kind, from, names)
}

fn result_by_code(kind: i32, from: &mut Reader<'_>, names: &mut Naming<'_>) -> Line {
    Ok(match kind {
        code::CREATE | code::SYNC => format!(" path={}", string(from)?),
        code::CREATE2 | code::CREATE_CONTAINER | code::CREATE_TTL => {
            format!(" path={}{}", string(from)?, stat(from, names)?)
        }
        code::EXISTS | code::SET_DATA | code::SET_ACL => stat(from, names)?,
        code::GET_DATA => format!(" data={}{}", string(from)?, stat(from, names)?),
        code::GET_CHILDREN => format!(" children={}", sorted(from, string)?),
        code::GET_CHILDREN2 => {
            format!(" children={}{}", sorted(from, string)?, stat(from, names)?)
        }
        code::GET_ACL => {
            let mut acls = vector(from, |from| {
                Ok((from.read::<i32>()?, format!("{} {}", string(from)?, string(from)?)))
            })?;
            // Java expands `auth` to the client's ids in the order of a hash table (U-03).
            for same in acls.iter_mut().flat_map(|acls| acls.chunk_by_mut(|a, b| a.0 == b.0)) {
                same.sort();
            }
            let text = list(acls.as_deref(), |(perms, who)| format!("{perms} {who}"));
            format!(" acl={text}{}", stat(from, names)?)
        }
        code::GET_EPHEMERALS => format!(" paths={}", sorted(from, string)?),
        code::WHO_AM_I => {
            let who = |from: &mut Reader<'_>| Ok(format!("{}:{}", string(from)?, string(from)?));
            format!(" who={}", sorted(from, who)?)
        }
        code::GET_ALL_CHILDREN_NUMBER | code::ADD_WATCH => format!(" n={}", from.read::<i32>()?),
        code::MULTI | code::MULTI_READ => multi(from, names)?,
        _ => String::new(),
    })
}

fn multi(from: &mut Reader<'_>, names: &mut Naming<'_>) -> Line {
    let mut text = String::new();
    loop {
        let (kind, done, err): (i32, bool, i32) = (from.read()?, from.read()?, from.read()?);
        text.push_str(&format!(" | {kind} {done} {err}"));
        if done {
            return Ok(text);
        }
        let one = match kind {
            -1 => format!(" err={}", from.read::<i32>()?),
            _ => result_by_code(kind, from, names)?,
        };
        text.push_str(&one);
    }
}

fn string(from: &mut Reader<'_>) -> Line {
    Ok(text(from.read::<Option<&[u8]>>()?))
}

fn vector<T>(
    from: &mut Reader<'_>,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Option<Vec<T>>, DecodeError> {
    let count: i32 = from.read()?;
    if count == -1 {
        return Ok(None);
    }
    // Not collected from a range with a size hint: a wrong count must not cost memory.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(from)?);
    }
    Ok(Some(items))
}

/// A vector whose order the protocol leaves open (P-47).
fn sorted(from: &mut Reader<'_>, item: impl FnMut(&mut Reader<'_>) -> Line) -> Line {
    let mut items = vector(from, item)?;
    if let Some(items) = &mut items {
        items.sort();
    }
    Ok(list(items.as_deref(), String::clone))
}

fn stat(from: &mut Reader<'_>, names: &mut Naming<'_>) -> Line {
    let stat: Stat = from.read()?;
    let owner = names.sessions.name(stat.ephemeral_owner);
    let mut zxid = |zxid| names.zxids.name(zxid);
    let (czxid, mzxid, pzxid) = (zxid(stat.czxid), zxid(stat.mzxid), zxid(stat.pzxid));
    let (ctime, mtime) = (time(stat.ctime), time(stat.mtime));
    let Stat { version, cversion, aversion, data_length, num_children, .. } = stat;
    Ok(format!(
        " czxid={czxid} mzxid={mzxid} pzxid={pzxid} ctime={ctime} mtime={mtime} version={version} \
         cversion={cversion} aversion={aversion} owner={owner} len={data_length} children={num_children}"
    ))
}
