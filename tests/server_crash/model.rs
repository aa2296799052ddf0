//! The replicated state in the plainest way: a map from path to znode, changed as Java's `DataTree.processTxn` does.
//!
//! It shares with the tree the records it reads and the formula of a znode's digest, both of which Java's golden files
//! prove, and nothing else: no index, no packing, no interning, no running sums.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::rc::Rc;

use jute::Reader;
use jute::data::Stat;
use jute::txn;
use oxkeeper::model::{CONTAINER, Code, OPEN_ACL, Owner, op, path};
use oxkeeper::tree::digest::{self, StatPart};
use oxkeeper::tree::{Tree, own_acl};

/// Permissions and the identities that have them, as text.
pub type Acls = Vec<(i32, String)>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub data: Option<Vec<u8>>,
    pub acl: Acls,
    pub stat: StatPart,
}

/// Cheap to clone: versions of it share their znodes.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub nodes: BTreeMap<Rc<str>, Rc<Node>>,
    pub sessions: BTreeMap<i64, i32>,
    pub zxid: i64,
}

/// What was refused, if anything: the code of an error txn, or of a multi's first error.
pub type Refused = Option<Code>;

impl Model {
    /// The state of a new server (P-81).
    pub fn fresh() -> Self {
        let mut model = Self::default();
        let reader = vec![(1, "world:anyone".to_owned())];
        for (path, acl, aversion) in [
            ("", acls(OPEN_ACL), 0),
            ("/zookeeper", acls(OPEN_ACL), 0),
            ("/zookeeper/quota", acls(OPEN_ACL), 0),
            ("/zookeeper/config", reader, -1),
        ] {
            let stat = StatPart { aversion, ..StatPart::default() };
            model.nodes.insert(path.into(), Rc::new(Node { data: Some(vec![]), acl, stat }));
        }
        model
    }

    /// Applies a log entry (D-42).
    pub fn apply(&mut self, entry: &[u8]) -> Refused {
        let mut from = Reader::new(entry);
        let header: txn::TxnHeader = from.read().expect("a header");
        self.zxid = self.zxid.max(header.zxid);
        let refused = self.part(&header, &mut from);
        let digest = from.read::<txn::TxnDigest>().ok();
        if let Some(digest) = digest {
            assert_eq!(
                digest.tree_digest,
                self.digest() as i64,
                "digest logged at {:#x}",
                self.zxid
            );
        }
        refused
    }

    fn part(&mut self, header: &txn::TxnHeader, from: &mut Reader<'_>) -> Refused {
        match header.kind {
            op::CREATE | op::CREATE2 => {
                let v0: txn::CreateTxnV0<'_> = from.read().unwrap();
                // Old logs end here, and have no digest after it that could be taken for the field (D-43).
                let cversion = from.read::<i32>().unwrap_or(-1);
                let owner = if v0.ephemeral { header.client_id } else { 0 };
                self.create(header, &v0.path.unwrap(), v0.data, own(&v0.acl), owner, cversion);
            }
            op::CREATE_CONTAINER => {
                let t: txn::CreateContainerTxn<'_> = from.read().unwrap();
                let path = t.path.unwrap();
                self.create(header, &path, t.data, own(&t.acl), CONTAINER, t.parent_cversion);
            }
            op::CREATE_TTL => {
                let t: txn::CreateTtlTxn<'_> = from.read().unwrap();
                let (path, owner) = (t.path.unwrap(), Owner::encode_ttl(t.ttl));
                self.create(header, &path, t.data, own(&t.acl), owner, t.parent_cversion);
            }
            op::DELETE | op::DELETE_CONTAINER => {
                let t: txn::DeleteTxn<'_> = from.read().unwrap();
                self.delete(header.zxid, &t.path.unwrap());
            }
            op::SET_DATA | op::RECONFIG => {
                let t: txn::SetDataTxn<'_> = from.read().unwrap();
                self.with(&t.path.unwrap(), |node| {
                    node.data = t.data.map(<[u8]>::to_vec);
                    node.stat.version = t.version;
                    node.stat.mzxid = header.zxid;
                    node.stat.mtime = header.time;
                });
            }
            op::SET_ACL => {
                let t: txn::SetAclTxn<'_> = from.read().unwrap();
                self.with(&t.path.unwrap(), |node| {
                    node.acl = own(&t.acl);
                    node.stat.aversion = t.version;
                });
            }
            op::CREATE_SESSION => {
                let t: txn::CreateSessionTxn = from.read().unwrap();
                self.sessions.insert(header.client_id, t.timeout_ms);
            }
            op::CLOSE_SESSION => {
                let mut ahead = from.clone();
                if let Ok(listed) = ahead.read::<txn::CloseSessionTxn<'_>>() {
                    *from = ahead;
                    listed.paths.iter().flatten().for_each(|path| self.delete(header.zxid, &path));
                }
                for path in self.owned_by(header.client_id) {
                    self.delete(header.zxid, &path);
                }
                self.sessions.remove(&header.client_id);
            }
            op::ERROR => return Some(Code(from.read::<txn::ErrorTxn>().unwrap().err)),
            op::CHECK => drop(from.read::<txn::CheckVersionTxn<'_>>().unwrap()),
            op::MULTI => {
                let multi: txn::MultiTxn<'_> = from.read().unwrap();
                let failed = multi.txns.iter().find(|part| part.kind == op::ERROR);
                if let Some(failed) = failed {
                    let code = Reader::new(failed.data.unwrap()).read::<txn::ErrorTxn>();
                    return Some(Code(code.unwrap().err));
                }
                for part in multi.txns.iter() {
                    let header = txn::TxnHeader { kind: part.kind, ..*header };
                    self.part(&header, &mut Reader::new(part.data.unwrap()));
                }
            }
            kind => panic!("txn of type {kind}"),
        }
        None
    }

    fn create(
        &mut self,
        header: &txn::TxnHeader,
        path: &str,
        data: Option<&[u8]>,
        acl: Acls,
        owner: i64,
        cversion: i32,
    ) {
        let parent = path::parent(path).unwrap().to_owned();
        if !self.nodes.contains_key(&*parent) {
            return;
        }
        let exists = self.nodes.contains_key(path);
        if exists {
            self.with(path, |node| node.acl = acl.clone()); // D-62.
        }
        if !exists || header.kind == op::CREATE {
            self.with(&parent, |node| {
                let cversion = if cversion == -1 { node.stat.cversion + 1 } else { cversion };
                if node.stat.cversion < cversion {
                    (node.stat.cversion, node.stat.pzxid) = (cversion, header.zxid);
                }
            });
        }
        if exists {
            return;
        }
        let stat = StatPart {
            czxid: header.zxid,
            mzxid: header.zxid,
            pzxid: header.zxid,
            ctime: header.time,
            mtime: header.time,
            ephemeral_owner: owner,
            ..StatPart::default()
        };
        let node = Node { data: data.map(<[u8]>::to_vec), acl, stat };
        self.nodes.insert(path.into(), Rc::new(node));
    }

    fn delete(&mut self, zxid: i64, path: &str) {
        let parent = path::parent(path).unwrap().to_owned();
        // Even if the child does not exist (D-63).
        self.with(&parent, |node| node.stat.pzxid = node.stat.pzxid.max(zxid));
        self.nodes.remove(path);
    }

    fn with(&mut self, path: &str, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(path) {
            change(Rc::make_mut(node));
        }
    }

    pub fn owned_by(&self, session: i64) -> Vec<Rc<str>> {
        let mine = self.nodes.iter().filter(|(_, node)| node.stat.ephemeral_owner == session);
        mine.map(|(path, _)| path.clone()).collect()
    }

    /// Names of the children of one znode, sorted.
    pub fn children<'m>(&'m self, path: &str) -> Vec<&'m str> {
        let start = format!("{path}/");
        let below = self.nodes.range::<str, _>((Included(start.as_str()), Unbounded));
        let below = below.map_while(|(path, _)| path.strip_prefix(&start));
        below.filter(|name| !name.contains('/')).collect()
    }

    /// A stat as clients see it (P-72).
    pub fn stat(&self, path: &str) -> Option<Stat> {
        let path = if path == "/" { "" } else { path };
        let node = self.nodes.get(path)?;
        let (s, children) = (&node.stat, self.children(path).len() as i32);
        Some(Stat {
            czxid: s.czxid,
            mzxid: s.mzxid,
            ctime: s.ctime,
            mtime: s.mtime,
            version: s.version,
            cversion: s.cversion * 2 - children,
            aversion: s.aversion,
            ephemeral_owner: match Owner::decode(s.ephemeral_owner, true) {
                Owner::Session(session) => session,
                _ => 0,
            },
            data_length: node.data.as_ref().map_or(0, Vec::len) as i32,
            num_children: children,
            pzxid: s.pzxid,
        })
    }

    /// The tree digest, from scratch.
    pub fn digest(&self) -> u64 {
        let counted = self.nodes.iter().filter(|(path, _)| digest::counts(path.as_bytes()));
        counted.fold(0, |sum: u64, (path, node)| {
            let start = digest::start(path.as_bytes(), node.data.as_deref());
            sum.wrapping_add(digest::node(start, &node.stat))
        })
    }

    /// The first difference between a tree and this model.
    pub fn differs_from(&self, tree: &Tree) -> Option<String> {
        if tree.last_zxid().to_wire() != self.zxid {
            return Some(format!("zxid {}, expected {:#x}", tree.last_zxid(), self.zxid));
        }
        if *tree.sessions() != self.sessions {
            return Some(format!("sessions {:?}, expected {:?}", tree.sessions(), self.sessions));
        }
        if tree.node_count() - 1 != self.nodes.len() {
            return Some(format!(
                "{} znodes, expected {}",
                tree.node_count() - 1,
                self.nodes.len()
            ));
        }
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in self.nodes.keys().filter(|path| !path.is_empty()) {
            let (parent, name) = path.rsplit_once('/').unwrap();
            children.entry(parent).or_default().push(name);
        }
        let (mut data_size, mut sum) = (0, 0u64);
        for (path, node) in &self.nodes {
            let Some(id) = tree.find(path) else { return Some(format!("no znode {path:?}")) };
            let znode = tree.znode(id);
            let mut names: Vec<&str> = znode.child_names().collect();
            names.sort_unstable();
            let acl = tree.acl(znode.acl()).iter();
            let acl = acl.map(|acl| (acl.perms, format!("{}:{}", acl.who.scheme, acl.who.id)));
            let found = Node {
                data: znode.data().bytes().map(<[u8]>::to_vec),
                acl: acl.collect(),
                stat: znode.stat_part(),
            };
            if found != **node {
                return Some(format!("{path:?} is {found:?}, expected {node:?}"));
            }
            if names != children.remove(&**path).unwrap_or_default() {
                return Some(format!("children of {path:?} are {names:?}"));
            }
            data_size += path.encode_utf16().count() + node.data.as_ref().map_or(0, Vec::len);
            if digest::counts(path.as_bytes()) {
                sum = sum.wrapping_add(znode.fresh_digest(path));
            }
        }
        for &session in self.sessions.keys() {
            let expected: Vec<String> =
                self.owned_by(session).iter().map(|path| path.to_string()).collect();
            if tree.ephemerals_of(session) != expected {
                return Some(format!("ephemerals of {session:#x}, expected {expected:?}"));
            }
        }
        if tree.data_size() != data_size as u64 {
            return Some(format!("data size {}, expected {data_size}", tree.data_size()));
        }
        (tree.digest() != sum).then(|| format!("digest {}, from scratch {sum}", tree.digest()))
    }
}

fn own(acl: &jute::Vector<'_, jute::data::Acl<'_>>) -> Acls {
    let text =
        |acl: oxkeeper::model::Acl| (acl.perms, format!("{}:{}", acl.who.scheme, acl.who.id));
    own_acl(acl.iter()).into_iter().map(text).collect()
}

fn acls(bytes: &[u8]) -> Acls {
    own(&Reader::new(bytes).read().unwrap())
}
