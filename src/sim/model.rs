//! A plain model of the tree at every zxid, with which replies and trees are compared.
//!
//! The model shares with the tree the decoding of transactions, and nothing else.

use crate::model::{EventKind, op, path};
use crate::tree::txn::{CreateKind, Txn};
use jute::Reader;
use jute::data::Stat;
use jute::txn::TxnHeader;
use std::collections::BTreeMap;
use std::rc::Rc;

/// One znode, at one zxid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub data: Option<Rc<[u8]>>,
    /// As in a tree: without times and the length of the data, and `cversion` counts created children only.
    pub stat: Stat,
}

impl Node {
    /// Whether a client's stat is of this znode; times are left out.
    pub fn is(&self, stat: &Stat) -> bool {
        let ours = Stat {
            // The cversion that clients get counts created and deleted children together.
            cversion: self.stat.cversion.wrapping_mul(2).wrapping_sub(self.stat.num_children),
            data_length: self.data.as_ref().map_or(0, |data| data.len() as i32),
            ..self.stat
        };
        ours == Stat { ctime: 0, mtime: 0, aversion: 0, ..*stat }
    }
}

/// The zxids at which a session was opened and closed.
#[derive(Clone, Copy, Debug)]
pub struct SessionSpan {
    pub opened: i64,
    pub closed: Option<i64>,
}

/// The events of a list after `after` and through `through`.
fn span(
    all: &[(i64, EventKind)],
    after: i64,
    through: i64,
) -> impl Iterator<Item = (i64, EventKind)> {
    let from = all.partition_point(|(zxid, _)| *zxid <= after);
    all[from..].iter().copied().take_while(move |(zxid, _)| *zxid <= through)
}

/// Whether `at` is `path`, or below it.
pub fn is_from(path: &str, at: &str) -> bool {
    let rest = at.strip_prefix(path.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The sessions before a restored tree, and their timeouts.
struct Replaced(BTreeMap<i64, SessionSpan>, BTreeMap<i64, u64>);

/// The tree at every zxid.
#[derive(Default)]
pub struct Model {
    /// Each znode's states, oldest first; `None`: it was not there.
    nodes: BTreeMap<String, Vec<(i64, Option<Node>)>>,
    /// The events that watches of a path could have had.
    events: BTreeMap<String, Vec<(i64, EventKind)>>,
    pub sessions: BTreeMap<i64, SessionSpan>,
    /// Milliseconds after which a silent session ends.
    pub timeouts: BTreeMap<i64, u64>,
    /// What each restored tree replaced, with its zxid.
    replaced: Vec<(i64, Replaced)>,
    last: i64,
}

impl Model {
    /// The model of a new server's tree.
    pub fn new() -> Self {
        let mut model = Self::default();
        let stat = Stat { num_children: 1, ..Stat::default() };
        let root = Node { data: Some(Rc::from([])), stat };
        model.nodes.insert(String::new(), vec![(0, Some(root))]);
        model
    }

    /// The znode at a path after the transaction `zxid`. The root is the empty path.
    pub fn at(&self, path: &str, zxid: i64) -> Option<&Node> {
        let states = self.nodes.get(path)?;
        let count = states.partition_point(|(at, _)| *at <= zxid);
        states[..count].last()?.1.as_ref()
    }

    fn now(&self, path: &str) -> Option<&Node> {
        self.at(path, i64::MAX)
    }

    /// The events that watches of a path could have had after `after` and through `through`, in order.
    pub fn events(
        &self,
        path: &str,
        after: i64,
        through: i64,
    ) -> impl Iterator<Item = (i64, EventKind)> {
        let all = self.events.get(path).map_or(&[][..], Vec::as_slice);
        span(all, after, through)
    }

    /// The same for a path and all paths below it.
    pub fn events_from(
        &self,
        path: &str,
        after: i64,
        through: i64,
    ) -> impl Iterator<Item = (&str, i64, EventKind)> {
        let from = self.events.range(path.to_owned()..);
        let below = from.take_while(move |(at, _)| at.starts_with(path));
        let below = below.filter(move |(at, _)| is_from(path, at));
        below.flat_map(move |(at, all)| {
            span(all, after, through).map(move |(zxid, kind)| (at.as_str(), zxid, kind))
        })
    }

    /// Names of the children after the transaction `zxid`, in order.
    pub fn children(&self, path: &str, zxid: i64) -> Vec<&str> {
        let prefix = format!("{path}/");
        let below = self.nodes.range(prefix.clone()..).map(|(path, _)| path.as_str());
        let below = below.take_while(|path| path.starts_with(&prefix));
        let names = below.filter(|path| self.at(path, zxid).is_some());
        names.filter_map(|path| path.strip_prefix(&prefix)).filter(|n| !n.contains('/')).collect()
    }

    /// All paths that are there now.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().filter_map(|(path, states)| {
            Some((path.as_str(), states.last().and_then(|(_, node)| node.as_ref())?))
        })
    }

    pub fn is_alive(&self, session: i64) -> bool {
        self.sessions.get(&session).is_some_and(|span| span.closed.is_none())
    }

    /// Applies one transaction.
    pub fn apply(&mut self, header: &TxnHeader, txn: &Txn<'_>) {
        self.last = header.zxid;
        match txn {
            Txn::Create(create) => {
                let owner = match create.kind {
                    CreateKind::Persistent => 0,
                    kind => kind.owner(header.client_id),
                };
                self.create(&create.path, create.data, owner, create.parent_cversion);
            }
            Txn::Delete { path } => self.delete(path),
            Txn::SetData { path, data, version } => {
                let zxid = header.zxid;
                let data = data.map(Rc::from);
                if self.change(path, |node| {
                    node.data = data;
                    (node.stat.version, node.stat.mzxid) = (*version, zxid);
                }) {
                    self.note(path, EventKind::NodeDataChanged);
                }
            }
            Txn::CreateSession { timeout_ms } => {
                self.timeouts.insert(header.client_id, u64::from(timeout_ms.unsigned_abs()));
                let span = SessionSpan { opened: header.zxid, closed: None };
                self.sessions.insert(header.client_id, span);
            }
            Txn::CloseSession { .. } => {
                // All znodes that the session owned, whatever the transaction lists.
                for path in self.owned_by(header.client_id) {
                    self.delete(&path);
                }
                if let Some(span) = self.sessions.get_mut(&header.client_id) {
                    span.closed.get_or_insert(header.zxid);
                }
            }
            Txn::Multi(parts) => self.multi(header, parts),
            Txn::SetAcl { .. } | Txn::Check { .. } | Txn::Error(_) => {}
        }
    }

    fn multi(&mut self, header: &TxnHeader, parts: &jute::Vector<'_, jute::txn::Txn<'_>>) {
        if parts.iter().any(|part| part.kind == op::ERROR) {
            return;
        }
        for part in parts.iter() {
            let data = part.data.unwrap_or_default();
            if let Ok(txn) = Txn::decode(part.kind, &mut Reader::new(data)) {
                self.apply(header, &txn);
            }
        }
    }

    /// Paths of a session's ephemerals.
    pub fn owned_by(&self, session: i64) -> Vec<String> {
        let owned = self.paths().filter(|(_, node)| node.stat.ephemeral_owner == session);
        owned.map(|(path, _)| path.to_owned()).collect()
    }

    /// Forgets all that came after the transaction `zxid`.
    pub fn lose_after(&mut self, zxid: i64) {
        self.last = zxid;
        for states in self.nodes.values_mut() {
            states.truncate(states.partition_point(|(at, _)| *at <= zxid));
        }
        for events in self.events.values_mut() {
            events.truncate(events.partition_point(|(at, _)| *at <= zxid));
        }
        while let Some((_, before)) = self.replaced.pop_if(|(at, _)| zxid < *at) {
            Replaced(self.sessions, self.timeouts) = before;
        }
        self.sessions.retain(|_, span| span.opened <= zxid);
        for span in self.sessions.values_mut() {
            span.closed = span.closed.filter(|&at| at <= zxid);
        }
    }

    /// A tree takes the place of the one before. There are no events: clients are disconnected.
    pub fn restore(
        &mut self,
        zxid: i64,
        znodes: &BTreeMap<String, Node>,
        sessions: &BTreeMap<i64, i32>,
    ) {
        self.last = zxid;
        let all = self.paths().map(|(path, _)| path.to_owned());
        let gone: Vec<String> = all.filter(|path| !znodes.contains_key(path)).collect();
        gone.iter().for_each(|path| self.set(path, None));
        znodes.iter().for_each(|(path, node)| self.set(path, Some(node.clone())));
        self.replaced.push((zxid, Replaced(self.sessions.clone(), self.timeouts.clone())));
        for (id, span) in &mut self.sessions {
            if !sessions.contains_key(id) {
                span.closed.get_or_insert(zxid);
            }
        }
        for (&id, &timeout_ms) in sessions {
            self.timeouts.insert(id, u64::from(timeout_ms.unsigned_abs()));
            let span = SessionSpan { opened: zxid, closed: None };
            self.sessions.entry(id).or_insert(span).closed = None;
        }
    }

    fn note(&mut self, path: &str, kind: EventKind) {
        self.events.entry(path.to_owned()).or_default().push((self.last, kind));
    }

    fn note_children(&mut self, parent: &str) {
        let parent = if parent.is_empty() { "/" } else { parent };
        self.note(parent, EventKind::NodeChildrenChanged);
    }

    fn set(&mut self, path: &str, node: Option<Node>) {
        let zxid = self.last;
        let states = self.nodes.entry(path.to_owned()).or_default();
        // One transaction makes one state.
        states.pop_if(|(at, _)| *at == zxid);
        states.push((zxid, node));
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Node)) -> bool {
        let Some(mut node) = self.now(path).cloned() else { return false };
        change(&mut node);
        self.set(path, Some(node));
        true
    }

    fn create(&mut self, path: &str, data: Option<&[u8]>, owner: i64, cversion: i32) {
        let (zxid, parent) = (self.last, path::parent(path).unwrap_or_default());
        if self.now(path).is_some() {
            return;
        }
        let has_parent = self.change(parent, |node| {
            node.stat.num_children += 1;
            if node.stat.cversion < cversion {
                (node.stat.cversion, node.stat.pzxid) = (cversion, zxid);
            }
        });
        if !has_parent {
            return;
        }
        let data = data.map(Rc::from);
        let (czxid, mzxid, pzxid, ephemeral_owner) = (zxid, zxid, zxid, owner);
        let stat = Stat { czxid, mzxid, pzxid, ephemeral_owner, ..Stat::default() };
        self.set(path, Some(Node { data, stat }));
        self.note(path, EventKind::NodeCreated);
        self.note_children(parent);
    }

    fn delete(&mut self, path: &str) {
        let (zxid, parent) = (self.last, path::parent(path).unwrap_or_default());
        let is_there = self.now(path).is_some();
        self.change(parent, |node| {
            node.stat.pzxid = node.stat.pzxid.max(zxid);
            node.stat.num_children -= i32::from(is_there);
        });
        if is_there {
            self.set(path, None);
            self.note(path, EventKind::NodeDeleted);
            self.note_children(parent);
        }
    }
}
