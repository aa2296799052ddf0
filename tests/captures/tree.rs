//! The tree after SNAP, and the tree that results from a capture's transactions.

use super::{entry, packets, tape};
use jute::data::{Acl, StatPersisted};
use jute::{Buffer, Encode, Reader, Ustring, Vector};
use oxkeeper::model::Zxid;
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::rebuild::Rebuild;
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use oxkeeper::zab::Packet;
use std::collections::BTreeMap;

/// The settings of the captured servers.
pub const OPTIONS: Options =
    Options { seed: 0, digest: true, extended_types: true, emulate_353: false };

/// The ACL with number -1, which is not in the ACL table.
const OPEN: &str = "0x1f:world:anyone";

/// The parts of the stream.
struct Items<'a> {
    sessions: Vec<(i64, i32)>,
    lists: Vec<(i64, Vector<'a, Acl<'a>>)>,
    nodes: Vec<Node<'a>>,
}

struct Node<'a> {
    path: Ustring<'a>,
    data: Buffer<'a>,
    list: i64,
    stat: StatPersisted,
}

fn items(body: &[u8]) -> Items<'_> {
    let from = &mut Reader::new(body);
    let mut items = Items { sessions: Vec::new(), lists: Vec::new(), nodes: Vec::new() };
    for _ in 0..from.read::<i32>().unwrap() {
        items.sessions.push((from.read().unwrap(), from.read().unwrap()));
    }
    for _ in 0..from.read::<i32>().unwrap() {
        items.lists.push((from.read().unwrap(), from.read().unwrap()));
    }
    loop {
        let path: Ustring<'_> = from.read().unwrap();
        if path.as_deref() == Some("/") {
            assert!(from.rest().is_empty());
            return items;
        }
        let (data, list) = (from.read().unwrap(), from.read().unwrap());
        items.nodes.push(Node { path, data, list, stat: from.read().unwrap() });
    }
}

/// The body, decoded item by item and encoded again.
pub fn again(body: &[u8]) -> Vec<u8> {
    let Items { sessions, lists, nodes } = items(body);
    let mut to = Vec::new();
    (sessions.len() as i32).encode(&mut to);
    for (id, timeout_ms) in sessions {
        id.encode(&mut to);
        timeout_ms.encode(&mut to);
    }
    (lists.len() as i32).encode(&mut to);
    for (index, list) in lists {
        index.encode(&mut to);
        list.encode(&mut to);
    }
    for node in nodes {
        node.path.encode(&mut to);
        node.data.encode(&mut to);
        node.list.encode(&mut to);
        node.stat.encode(&mut to);
    }
    jute::put_string(&mut to, "/");
    to
}

/// The lines of a body, sorted and with ACLs written out: a server chooses the order of znodes and the numbers of ACLs itself.
fn lines(body: &[u8]) -> Vec<String> {
    let Items { sessions, lists, nodes } = items(body);
    let list = |list: &Vector<'_, Acl<'_>>| {
        let one = |acl: Acl<'_>| {
            let part = |text: Ustring<'_>| text.expect("text").into_owned();
            format!("{:#x}:{}:{}", acl.perms, part(acl.id.scheme), part(acl.id.id))
        };
        list.iter().map(one).collect::<Vec<_>>().join(",")
    };
    let lists: BTreeMap<i64, String> =
        lists.into_iter().map(|(index, entries)| (index, list(&entries))).collect();
    let mut lines = Vec::new();
    for (id, timeout_ms) in sessions {
        lines.push(format!("session {id:#x} {timeout_ms} ms"));
    }
    for Node { path, data, list, stat } in nodes {
        let (path, data) = (path.expect("a path"), entry::data(data));
        let list = lists.get(&list).map_or(OPEN, String::as_str);
        lines.push(format!("znode {path:?} {data} {list} {stat:?}"));
    }
    lines.sort();
    lines
}

/// The text of a body. Our tree, loaded from it, must give the same text.
pub fn text(body: &[u8]) -> String {
    let lines = lines(body);
    let mut loader = Loader::new(OPTIONS);
    assert!(loader.take(body).unwrap().ended);
    let mut tree = loader.finish(Zxid::ZERO).unwrap();
    assert_eq!(self::lines(&written(&mut tree)), lines);
    format!("tree of {} bytes\n  {}", body.len(), lines.join("\n  "))
}

/// Number of znodes in a body, as trees count them: the root twice.
pub fn count(body: &[u8]) -> usize {
    items(body).nodes.len() + 1
}

fn written(tree: &mut Tree) -> Vec<u8> {
    let frozen = tree.freeze().expect("no other snapshot is under way");
    let mut body = Vec::new();
    while !tree.freeze_piece(frozen, &mut body) {}
    tree.thaw(frozen);
    body
}

/// Applies a capture's transactions to an empty tree; returns after how many of them the digest differs from Java's.
pub fn digest_mismatches(name: &str) -> u64 {
    let mut rebuild = Rebuild::new(OPTIONS);
    let mut compared = 0;
    for captured in packets::of(&tape::read("quorum", name)) {
        if let packets::Said::Packet(Packet::Proposal { entry, .. }) = captured.said {
            let entry = Entry::decode(&entry).unwrap();
            compared += u64::from(entry.digest.is_some()); // An error transaction changes nothing, and has no digest.
            rebuild.replay(&entry);
        }
    }
    assert!(20 < compared, "{compared} digests");
    rebuild.replay_done().mismatches
}
