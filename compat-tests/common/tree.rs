//! The whole tree of a server, read through a client.

use super::decode::{self, Naming};
use super::naming::{Sessions, Zxids};
use super::script::Op;
use super::server::SUPER;
use jute::Reader;
use jute::data::Stat;
use oxkeeper::client::{ClientError, ConnectRequest, Incoming, Wire, op as code, put_request, xid};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// How many znodes are read at a time where the order does not matter.
const TOGETHER: usize = 60;

/// One znode: the replies to getData, getChildren2 and getACL, as lines.
pub type Dump = BTreeMap<String, String>;

/// How a dump shows times, sessions and zxids.
#[derive(Clone, Copy)]
pub enum View<'v> {
    /// Unchanged: for two servers that started from the same files.
    Files,
    /// Times and ids replaced by names; below `racy` roots zxids are numbered, because clients wrote at the same time.
    Run { racy: &'v [String] },
}

/// Reads every znode. `as_super`: authenticate first, so that no ACL hides one.
///
/// # Errors
/// [`ClientError`] when the server closes the connection.
pub fn dump(addr: SocketAddr, as_super: bool, view: View<'_>) -> Result<Dump, ClientError> {
    let mut wire = Wire::open(addr, PATIENCE)?;
    wire.handshake(
        &ConnectRequest { password: vec![0; 16], ..ConnectRequest::default() },
        PATIENCE,
    )?;
    if as_super {
        let auth = Op::Auth { scheme: Some(b"digest".into()), auth: Some(SUPER.into()) };
        ask(&mut wire, &auth, xid::AUTH)?;
    }
    let mut dump = Dump::new();
    let mut paths = vec![String::from("/")];
    let mut zxids = Zxids::Exact;
    while let Some(path) = paths.pop() {
        let mut together = vec![path];
        match view {
            // Last in, first out and children in order: the same walk on every server, as numbering zxids needs.
            View::Run { racy } if together[0].matches('/').count() == 1 => {
                let races = racy.contains(&together[0]);
                zxids = if races { Zxids::renamed() } else { Zxids::Exact };
            }
            View::Run { .. } => {}
            View::Files => together.extend(paths.drain(paths.len().saturating_sub(TOGETHER)..)),
        }
        let all: Vec<_> = together.iter().map(|path| requests(path)).collect();
        let mut bytes = Vec::new();
        for op in all.iter().flatten() {
            put_request(&mut bytes, 1, op.code().unwrap_or(0), |to| op.put_body(to, 0));
        }
        wire.send(&bytes)?;
        for (path, ops) in together.into_iter().zip(all) {
            let node = read_node(&mut wire, &path, &ops, view, &mut zxids, &mut paths)?;
            dump.insert(path, node);
        }
    }
    ask(&mut wire, &Op::Close, 1)?;
    Ok(dump)
}

fn requests(path: &str) -> [Op; 3] {
    let path = Some(path.as_bytes().to_vec());
    [
        Op::Read { code: code::GET_DATA, path: path.clone(), watch: false },
        Op::Read { code: code::GET_CHILDREN2, path: path.clone(), watch: false },
        Op::Path { code: code::GET_ACL, path },
    ]
}

/// The answers about one znode as text; its children go to `paths`.
fn read_node(
    wire: &mut Wire,
    path: &str,
    ops: &[Op],
    view: View<'_>,
    zxids: &mut Zxids,
    paths: &mut Vec<String>,
) -> Result<String, ClientError> {
    let mut node = String::new();
    for op in ops {
        let frame = wire.receive(PATIENCE)?;
        let Ok(Incoming::Reply { mut header, body }) = Incoming::parse(&frame) else {
            continue;
        };
        header.zxid = 0; // The reply's zxid depends on when the node was read.
        let mut names = Naming { sessions: &Sessions::default(), zxids };
        node.push_str(&decode::reply(op, header, body, &mut names));
        node.push('\n');
        if op.code() == Some(code::GET_CHILDREN2) && header.err == 0 {
            push_children(path, body, paths);
            if matches!(view, View::Files) {
                node.push_str(&exact_stat(body));
            }
        }
    }
    Ok(node)
}

fn ask(wire: &mut Wire, op: &Op, xid: i32) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    put_request(&mut bytes, xid, op.code().unwrap_or(0), |to| op.put_body(to, 0));
    wire.send(&bytes)?;
    wire.receive(PATIENCE)
}

fn push_children(path: &str, body: &[u8], paths: &mut Vec<String>) {
    let mut from = Reader::new(body);
    let Ok(names) = from.read::<jute::Vector<'_, jute::Ustring<'_>>>() else { return };
    let mut names: Vec<_> = names.iter().flatten().collect();
    names.sort();
    let parent = path.trim_end_matches('/');
    paths.extend(names.iter().rev().map(|name| format!("{parent}/{name}")));
}

/// The stat with its times and ephemeral owner unchanged.
fn exact_stat(children_and_stat: &[u8]) -> String {
    let mut from = Reader::new(children_and_stat);
    let stat = from.read::<jute::Vector<'_, jute::Ustring<'_>>>().and_then(|_| from.read::<Stat>());
    format!("{stat:?}\n")
}

/// The first 20 znodes that differ.
pub fn differences(a: &Dump, b: &Dump) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let differ = paths.into_iter().filter(|path| a.get(*path) != b.get(*path));
    let show = |dump: &Dump, path| dump.get(path).map_or("absent\n".into(), String::clone);
    differ
        .take(20)
        .map(|path| format!("{path}\n  A: {}  B: {}", show(a, path), show(b, path)))
        .collect()
}
