//! Trees that an operator restores: where they come from, and what checks know of them.

use super::model::Node;
use super::plan::{Crash, TreeSource};
use super::restorer::tree_of;
use super::workload::{PAIR, PATHS};
use crate::model::{Epoch, OPEN_ACL, Rng, Zxid, op, path};
use crate::tree::txn::{Create, CreateKind, Txn};
use crate::tree::{Options, Tree};
use jute::data::Stat;
use jute::txn::TxnHeader;
use std::collections::BTreeMap;

/// The sessions of a tree of another ensemble have ids from here on, which no server of a world gives to a session.
const FOREIGN_SESSIONS: i64 = 0x7f00_0000_0000_0000;

/// A copy of a tree: its zxid, and the stream of a snapshot.
pub struct TreeCopy {
    pub zxid: Zxid,
    pub body: Vec<u8>,
}

/// A tree that was restored over a leader's history.
#[derive(Clone, Debug)]
pub struct RestoredTree {
    /// The last proposal of that history.
    pub before: Zxid,
    pub digest: u64,
    pub znodes: BTreeMap<String, Node>,
    /// Sessions and their timeouts in milliseconds.
    pub sessions: BTreeMap<i64, i32>,
}

impl RestoredTree {
    pub fn of(tree: &Tree, paths: impl Iterator<Item = String>) -> Self {
        let znode = |path: String| Some((tree.find(&path)?, path));
        let node = |(id, path)| {
            let znode = tree.znode(id);
            let stat = znode.stat();
            let cversion = (stat.cversion + stat.num_children) / 2;
            let unseen = Stat { ctime: 0, mtime: 0, aversion: 0, data_length: 0, ..stat };
            let data = znode.data().bytes().map(From::from);
            (path, Node { data, stat: Stat { cversion, ..unseen } })
        };
        Self {
            before: Zxid::ZERO,
            digest: tree.digest(),
            znodes: paths.filter_map(znode).map(node).collect(),
            sessions: tree.sessions().clone(),
        }
    }

    /// The newest of the znodes' zxids.
    pub fn newest_zxid(&self) -> Zxid {
        let zxids = self.znodes.values().flat_map(|node| {
            let Stat { czxid, mzxid, pzxid, .. } = node.stat;
            [czxid, mzxid, pzxid].into_iter().filter_map(Zxid::from_wire)
        });
        zxids.max().unwrap_or(Zxid::ZERO)
    }
}

/// What an operator has asked for, until the server has said how the tree can be restored.
pub struct RestoreAsked {
    pub tree: Box<Tree>,
    /// Paths of its znodes.
    pub paths: Vec<String>,
    pub crash: Option<(u64, Crash)>,
}

/// A restore from the plan to the answer.
pub struct SimRestoring {
    pub zxid: Zxid,
    pub tree: RestoredTree,
    /// The tree is in the place of the old one.
    pub has_begun: bool,
}

/// The tree that an operator wants restored, and the paths of its znodes but for those in /zookeeper. `None`: there is no copy yet.
pub fn tree_from(
    source: TreeSource,
    copies: &[TreeCopy],
    options: Options,
) -> Option<(Box<Tree>, Vec<String>)> {
    let (tree, paths) = match source {
        TreeSource::Foreign { seed } => foreign(seed, options),
        TreeSource::Copy { which } => {
            let copy = copies.get(which as usize % copies.len().max(1))?;
            let read = tree_of(&copy.body, copy.zxid, options);
            read.expect("a server's own tree can be read")
        }
    };
    let is_ours = |path: &String| !path.starts_with("/zookeeper");
    Some((Box::new(tree), paths.into_iter().filter(is_ours).collect()))
}

/// The tree of another ensemble.
fn foreign(seed: u64, options: Options) -> (Tree, Vec<String>) {
    let mut rng = Rng::new(seed, 1);
    let mut tree = Tree::new(options);
    let epoch = Epoch(rng.range(1, 60) as u32);
    let (mut counter, mut paths) = (0, vec![String::new()]);
    let mut apply = |client_id, kind, txn: &Txn<'_>| {
        counter += 1;
        let zxid = Zxid::new(epoch, counter).to_wire();
        let header = TxnHeader { client_id, cxid: 0, zxid, time: 0, kind };
        tree.apply(&header, txn, &mut Vec::new());
    };
    let sessions = rng.below(3) as i64;
    for session in 0..sessions {
        let timeout_ms = rng.range(500, 3000) as i32;
        apply(FOREIGN_SESSIONS + session, op::CREATE_SESSION, &Txn::CreateSession { timeout_ms });
    }
    for at in PATHS.into_iter().chain(PAIR) {
        let parent = path::parent(at).unwrap_or_default();
        let has_parent = paths.iter().any(|known| known == parent);
        let is_of_pair = PAIR.contains(&at);
        if !has_parent || !is_of_pair && rng.one_in(3) {
            continue;
        }
        let is_owned = 0 < sessions && rng.one_in(3) && at.starts_with("/b/x/");
        let kind = if is_owned { CreateKind::Ephemeral } else { CreateKind::Persistent };
        // Two znodes that are always written together have the same data.
        let data: &[u8] = if is_of_pair { b"foreign pair" } else { at.as_bytes() };
        let create =
            Create { path: at.into(), data: Some(data), acl: OPEN_ACL, kind, parent_cversion: -1 };
        apply(FOREIGN_SESSIONS, op::CREATE, &Txn::Create(create));
        paths.push(at.to_owned());
    }
    (tree, paths)
}
