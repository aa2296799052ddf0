//! Once nothing fails any more everybody serves, all have the same tree, and it is the one the history makes.

use super::{Check, Seen};
use crate::sim::truth::Truth;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// A server at rest.
pub struct Server<'a> {
    pub server: usize,
    pub tree: &'a Tree,
    /// Digests that were not those foretold.
    pub mismatches: u64,
}

pub struct Convergence;

impl Check for Convergence {
    fn name(&self) -> &'static str {
        "convergence"
    }

    fn see(&mut self, seen: &Seen<'_>, truth: &Truth) -> Result<(), String> {
        match seen {
            Seen::Restless { why } => Err((*why).to_owned()),
            Seen::Calm { servers } => servers.iter().try_for_each(|server| {
                compare(server, truth).map_err(|why| format!("server {}: {why}", server.server))
            }),
            _ => Ok(()),
        }
    }
}

fn compare(server: &Server<'_>, truth: &Truth) -> Result<(), String> {
    let tree = server.tree;
    if tree.last_zxid() != truth.last() {
        return Err(format!("ends with {}, all with {}", tree.last_zxid(), truth.last()));
    }
    if server.mismatches > 0 {
        return Err(format!("{} digests were not those foretold", server.mismatches));
    }
    let alive = |id: &i64| truth.model.is_alive(*id);
    let wanted: BTreeSet<i64> = truth.model.sessions.keys().copied().filter(alive).collect();
    let found: BTreeSet<i64> = tree.sessions().keys().copied().collect();
    if wanted != found {
        return Err(format!("has sessions {found:x?}, those that live are {wanted:x?}"));
    }
    let mut count = 0;
    for (path, node) in truth.model.paths() {
        count += 1;
        let Some(id) = tree.find(path) else { return Err(format!("lacks {path:?}")) };
        let znode = tree.znode(id);
        if !node.is(&znode.stat()) || node.data.as_deref() != znode.data().bytes() {
            return Err(format!("has {path:?} with {:?}, and not {node:?}", znode.stat()));
        }
    }
    // Beside the root, which Java counts twice, there are the four of the system's own.
    let own = tree.node_count() - 1 - 3;
    if own == count { Ok(()) } else { Err(format!("has {own} znodes, and not {count}")) }
}

#[cfg(test)]
mod tests {
    use super::super::planted::{fails, holds, truth};
    use super::*;
    use crate::tree::Options;
    use crate::tree::txn::Entry;

    #[test]
    fn who_is_left_behind_and_who_is_different_is_found() {
        let truth = truth();
        let tree = |count: usize, spoil: bool| {
            let mut tree = Tree::new(Options::default());
            for committed in truth.committed().iter().take(count) {
                let entry = Entry::decode(&committed.entry).unwrap();
                tree.apply(&entry.header, &entry.txn, &mut Vec::new());
                if spoil {
                    tree.apply(&entry.header, &entry.txn, &mut Vec::new());
                }
            }
            tree
        };
        let (whole, short, mut check) = (tree(4, false), tree(3, false), Convergence);
        let server = |tree, mismatches| [Server { server: 2, tree, mismatches }];
        holds(&mut check, &Seen::Calm { servers: &server(&whole, 0) }, &truth);
        fails(&mut check, &Seen::Calm { servers: &server(&short, 0) }, &truth, "ends with");
        fails(&mut check, &Seen::Calm { servers: &server(&whole, 1) }, &truth, "1 digests");
        let mut other = tree(4, false);
        let close = jute::txn::TxnHeader {
            client_id: 7,
            cxid: 0,
            zxid: 0,
            time: 0,
            kind: crate::model::op::CLOSE_SESSION,
        };
        other.apply(&close, &crate::tree::txn::Txn::CloseSession { paths: None }, &mut Vec::new());
        fails(&mut check, &Seen::Calm { servers: &server(&other, 0) }, &truth, "has sessions");
        fails(&mut check, &Seen::Restless { why: "no leader" }, &truth, "no leader");
    }
}
