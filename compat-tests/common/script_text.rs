//! Prints scripts as text, and parses them.

use super::script::{Acl, Line, Op, SLOTS, Script, Seen, Step};
use super::text::{Lexer, Text, list, quote, text};
use oxkeeper::client::op as code;
use std::fmt;

/// Verbs that stand for one opcode each.
const VERBS: [(&str, i32); 24] = [
    ("create", code::CREATE),
    ("create2", code::CREATE2),
    ("createContainer", code::CREATE_CONTAINER),
    ("createTTL", code::CREATE_TTL),
    ("setData", code::SET_DATA),
    ("setACL", code::SET_ACL),
    ("delete", code::DELETE),
    ("check", code::CHECK),
    ("exists", code::EXISTS),
    ("getData", code::GET_DATA),
    ("getChildren", code::GET_CHILDREN),
    ("getChildren2", code::GET_CHILDREN2),
    ("sync", code::SYNC),
    ("getACL", code::GET_ACL),
    ("deleteContainer", code::DELETE_CONTAINER),
    ("getEphemerals", code::GET_EPHEMERALS),
    ("getAllChildrenNumber", code::GET_ALL_CHILDREN_NUMBER),
    ("addWatch", code::ADD_WATCH),
    ("checkWatches", code::CHECK_WATCHES),
    ("removeWatches", code::REMOVE_WATCHES),
    ("multi", code::MULTI),
    ("multiRead", code::MULTI_READ),
    ("ping", code::PING),
    ("whoAmI", code::WHO_AM_I),
];
const WATCH_LISTS: [&str; 5] = ["data", "exist", "child", "persistent", "recursive"];

fn verb_of(code: i32) -> &'static str {
    VERBS.iter().find(|(_, of)| *of == code).map_or("?", |(verb, _)| verb)
}

impl Op {
    /// The operation's name in scripts and in the summary.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "connect",
            Self::Reconnect { .. } => "reconnect",
            Self::Drop => "drop",
            Self::Close => "close",
            Self::Expire => "expire",
            Self::SetWatches { code: code::SET_WATCHES, .. } => "setWatches",
            Self::SetWatches { .. } => "setWatches2",
            Self::Auth { .. } => "auth",
            Self::Raw { .. } => "raw",
            Self::Frame { .. } => "frame",
            Self::CreateTtl { .. } => "createTTL",
            Self::SetData { .. } => "setData",
            Self::SetAcl { .. } => "setACL",
            Self::Create { code, .. }
            | Self::Versioned { code, .. }
            | Self::Read { code, .. }
            | Self::Path { code, .. }
            | Self::Watch { code, .. }
            | Self::Multi { code, .. }
            | Self::Bare { code } => verb_of(*code),
        }
    }
}

fn flag_text(flag: Option<bool>) -> &'static str {
    match flag {
        None => "absent",
        Some(false) => "false",
        Some(true) => "true",
    }
}

fn acl_text(acl: Option<&[Acl]>) -> String {
    list(acl, |acl| {
        format!("{} {} {}", acl.perms, text(acl.scheme.as_deref()), text(acl.id.as_deref()))
    })
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Zxid(zxid) => write!(f, "{zxid}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())?;
        let text = |value: &Text| text(value.as_deref());
        match self {
            Self::Drop | Self::Close | Self::Expire | Self::Bare { .. } => Ok(()),
            Self::Connect { timeout_ms, zxid, flag } => {
                write!(f, " timeout={timeout_ms} zxid={zxid} flag={}", flag_text(*flag))
            }
            Self::Reconnect { timeout_ms, zxid, flag, right_password, takeover } => {
                let flag = flag_text(*flag);
                write!(f, " timeout={timeout_ms} zxid={zxid} flag={flag}")?;
                write!(f, " password={right_password} takeover={takeover}")
            }
            Self::Create { path, data, acl, flags, .. } => {
                let (data, acl) = (text(data), acl_text(acl.as_deref()));
                write!(f, " {} data={data} acl={acl} flags={flags}", text(path))
            }
            Self::CreateTtl { path, data, acl, flags, ttl } => {
                let (data, acl) = (text(data), acl_text(acl.as_deref()));
                write!(f, " {} data={data} acl={acl} flags={flags} ttl={ttl}", text(path))
            }
            Self::SetData { path, data, version } => {
                write!(f, " {} data={} version={version}", text(path), text(data))
            }
            Self::SetAcl { path, acl, version } => {
                write!(f, " {} acl={} version={version}", text(path), acl_text(acl.as_deref()))
            }
            Self::Versioned { path, version, .. } => write!(f, " {} version={version}", text(path)),
            Self::Read { path, watch, .. } => write!(f, " {} watch={watch}", text(path)),
            Self::Path { path, .. } => write!(f, " {}", text(path)),
            Self::Watch { path, kind, .. } => write!(f, " {} kind={kind}", text(path)),
            Self::SetWatches { zxid, lists, .. } => {
                write!(f, " zxid={zxid}")?;
                for (name, paths) in WATCH_LISTS.iter().zip(lists) {
                    write!(f, " {name}={}", list(Some(paths), text))?;
                }
                Ok(())
            }
            Self::Multi { ops, .. } => write!(f, " {}", list(Some(ops), Op::to_string)),
            Self::Auth { scheme, auth } => {
                write!(f, " scheme={} auth={}", text(scheme), text(auth))
            }
            Self::Raw { code, body } => write!(f, " kind={code} body={}", quote(body)),
            Self::Frame { body } => write!(f, " body={}", quote(body)),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            for (at, line) in step.iter().enumerate() {
                writeln!(f, "{}c{} {}", if at == 0 { "" } else { "| " }, line.slot, line.op)?;
            }
        }
        Ok(())
    }
}

fn parse_seen(from: &mut Lexer<'_>) -> Result<Seen, String> {
    from.name("zxid")?;
    if from.eat("last") { Ok(Seen::Last) } else { from.value().map(Seen::Zxid) }
}

fn parse_flag(from: &mut Lexer<'_>) -> Result<Option<bool>, String> {
    from.name("flag")?;
    if from.eat("absent") { Ok(None) } else { from.value().map(Some) }
}

fn parse_acl(from: &mut Lexer<'_>) -> Result<Option<Vec<Acl>>, String> {
    from.name("acl")?;
    from.list(|from| Ok(Acl { perms: from.value()?, scheme: from.text()?, id: from.text()? }))
}

fn parse_data(from: &mut Lexer<'_>) -> Result<Text, String> {
    from.name("data")?;
    from.text()
}

fn parse_op(from: &mut Lexer<'_>) -> Result<Op, String> {
    let verb = from.word()?;
    Ok(match verb {
        "connect" => {
            let timeout_ms = from.field("timeout")?;
            Op::Connect { timeout_ms, zxid: parse_seen(from)?, flag: parse_flag(from)? }
        }
        "reconnect" => {
            let timeout_ms = from.field("timeout")?;
            let (zxid, flag) = (parse_seen(from)?, parse_flag(from)?);
            let right_password = from.field("password")?;
            let takeover = from.field("takeover")?;
            Op::Reconnect { timeout_ms, zxid, flag, right_password, takeover }
        }
        "drop" => Op::Drop,
        "close" => Op::Close,
        "expire" => Op::Expire,
        "setWatches" | "setWatches2" => {
            let code = if verb == "setWatches" { code::SET_WATCHES } else { code::SET_WATCHES2 };
            let (zxid, mut lists) = (parse_seen(from)?, super::script::WatchLists::default());
            for (name, paths) in WATCH_LISTS.iter().zip(&mut lists) {
                from.name(name)?;
                *paths = from.list(Lexer::text)?.ok_or("null is no list of watches")?;
            }
            Op::SetWatches { code, zxid, lists }
        }
        "auth" => {
            from.name("scheme")?;
            let scheme = from.text()?;
            from.name("auth")?;
            Op::Auth { scheme, auth: from.text()? }
        }
        "raw" => {
            let code = from.field("kind")?;
            from.name("body")?;
            Op::Raw { code, body: from.quoted()? }
        }
        "frame" => {
            from.name("body")?;
            Op::Frame { body: from.quoted()? }
        }
        _ => {
            let known = VERBS.iter().find(|(name, _)| *name == verb);
            parse_by_code(known.ok_or(format!("unknown operation `{verb}`"))?.1, from)?
        }
    })
}

fn parse_by_code(code: i32, from: &mut Lexer<'_>) -> Result<Op, String> {
    if code == code::PING || code == code::WHO_AM_I {
        return Ok(Op::Bare { code });
    }
    if code == code::MULTI || code == code::MULTI_READ {
        let ops = from.list(parse_op)?.ok_or("null is no multi")?;
        return Ok(Op::Multi { code, ops });
    }
    let path = from.text()?;
    Ok(match code {
        code::CREATE | code::CREATE2 | code::CREATE_CONTAINER => {
            let (data, acl) = (parse_data(from)?, parse_acl(from)?);
            Op::Create { code, path, data, acl, flags: from.field("flags")? }
        }
        code::CREATE_TTL => {
            let (data, acl) = (parse_data(from)?, parse_acl(from)?);
            Op::CreateTtl { path, data, acl, flags: from.field("flags")?, ttl: from.field("ttl")? }
        }
        code::SET_DATA => {
            Op::SetData { path, data: parse_data(from)?, version: from.field("version")? }
        }
        code::SET_ACL => {
            Op::SetAcl { path, acl: parse_acl(from)?, version: from.field("version")? }
        }
        code::DELETE | code::CHECK => Op::Versioned { code, path, version: from.field("version")? },
        code::EXISTS | code::GET_DATA | code::GET_CHILDREN | code::GET_CHILDREN2 => {
            Op::Read { code, path, watch: from.field("watch")? }
        }
        code::ADD_WATCH | code::CHECK_WATCHES | code::REMOVE_WATCHES => {
            Op::Watch { code, path, kind: from.field("kind")? }
        }
        _ => Op::Path { code, path },
    })
}

impl std::str::FromStr for Script {
    type Err = String;

    fn from_str(all: &str) -> Result<Self, String> {
        let mut steps: Vec<Step> = Vec::new();
        for (number, line) in all.lines().enumerate() {
            let mut from = Lexer::new(line);
            if from.at_end() || from.eat("#") {
                continue;
            }
            let joins = from.eat("|");
            let line = parse_line(&mut from).map_err(|e| format!("line {}: {e}", number + 1))?;
            match steps.last_mut().filter(|_| joins) {
                Some(step) => step.push(line),
                None => steps.push(vec![line]),
            }
        }
        Ok(Self { steps })
    }
}

fn parse_line(from: &mut Lexer<'_>) -> Result<Line, String> {
    from.expect("c")?;
    let slot = from.value::<usize>()?;
    let op = parse_op(from)?;
    match slot < SLOTS && from.at_end() {
        true => Ok(Line { slot, op }),
        false => Err("no such client, or more than one operation".into()),
    }
}
