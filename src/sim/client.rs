//! A client: its session, its connection, and what it knows from replies.

use super::network::EndId;
use super::plan::{Climate, Micros};
use super::workload::{Body, Op, Request, Required, SEEN_VERSION, Watch, WatchLists};
use crate::model::Rng;
use crate::model::{Code, EventKind, View};
use jute::proto::ReplyHeader;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of data that a large write adds.
const LARGE: usize = 5000;

/// How a client is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Connection {
    #[default]
    None,
    /// The connect request is on its way.
    Connecting(EndId),
    Connected(EndId),
}

/// What a server has answered to a connect request.
#[derive(Clone, Copy, Debug)]
pub struct OpenedSession {
    pub session: i64,
    pub is_read_only: bool,
}

/// A session, and what its client has learned in it.
#[derive(Default)]
pub struct Session {
    /// 0: none yet.
    pub id: i64,
    pub last_zxid: i64,
    pub last_xid: i32,
    /// Paths with data watches, and whether there was a znode.
    pub data_watches: BTreeMap<String, bool>,
    pub child_watches: BTreeSet<String>,
    /// Paths with persistent watches, and whether these are recursive.
    pub persistent_watches: BTreeSet<(String, bool)>,
    /// Sequential znodes that the client created.
    pub created: Vec<String>,
    /// The client has asked for the end of the session.
    pub is_closing: bool,
}

#[derive(Default)]
pub struct Client {
    pub number: usize,
    pub connection: Connection,
    /// The client has a session, and authenticates before it is connected.
    pub opened: Option<OpenedSession>,
    pub exchange: Option<crate::auth::digest_md5::Client>,
    /// A client without a connection dials from this time on.
    pub connects_us: Micros,
    pub session: Session,
    pub timeout_ms: i32,
    pub input: Vec<u8>,
    /// Requests without an answer.
    pub outstanding: VecDeque<(i32, Request)>,
    /// Version of each path when last seen.
    versions: BTreeMap<String, i32>,
    writes: u64,
    pub received_us: Micros,
    pub sent_us: Micros,
    pub asleep_us: Micros,
    /// The client accepts read-only servers. Such a client sets no watches.
    pub accepts_read_only: bool,
    /// While it is connected to a read-only server: when it leaves that server to look for another one.
    pub leaves_us: Option<Micros>,
    /// The server to which the client connects next.
    pub next_server: Option<usize>,
    pub rng: Rng,
    /// Successful writes since faults ended.
    pub last_done: u64,
    /// A planted fault holds this frame back.
    pub held: Vec<u8>,
}

impl Client {
    pub fn new(number: usize, climate: &Climate) -> Self {
        let mut rng = Rng::new(climate.seed, 100 + number as u64);
        let accepts_read_only = climate.accepts_read_only(number);
        let timeout_ms = rng.range(500, 3000) as i32;
        Self { number, timeout_ms, accepts_read_only, rng, ..Self::default() }
    }

    pub const fn end(&self) -> Option<EndId> {
        match self.connection {
            Connection::None => None,
            Connection::Connecting(end) | Connection::Connected(end) => Some(end),
        }
    }

    /// Whether the client has its session on this connection.
    pub fn is_connected_by(&self, end: EndId) -> bool {
        self.connection == Connection::Connected(end)
    }

    /// Whether the client is connected with a session, may write and has no outstanding request.
    pub fn is_idle(&self) -> bool {
        let is_connected = matches!(self.connection, Connection::Connected(_));
        is_connected && self.leaves_us.is_none() && self.outstanding.is_empty()
    }

    /// A planned request, completed with what the client knows. `None`: the client can't or won't send it.
    ///
    /// * `view_of`: the configuration that a server has or had in force last.
    pub fn fill<'a>(
        &mut self,
        mut request: Request,
        view_of: impl Fn(usize) -> Option<&'a View>,
    ) -> Option<Request> {
        if let Op::Reconfig { required, .. } = &mut request.op
            && let Required::Of(server) = *required
        {
            *required = Required::Version(view_of(server)?.version);
        }
        if self.accepts_read_only {
            match &mut request.op {
                Op::Get { watch } | Op::Exists { watch } | Op::Children { watch } => *watch = false,
                Op::AddWatch { .. } => return None,
                _ => {}
            }
        }
        // At a read-only server there is no session to close.
        if self.leaves_us.is_some() && request.op == Op::Close {
            return None;
        }
        if request.op == Op::Delete && request.path.is_empty() {
            request.path = self.session.created.pop()?;
        }
        if request.version == SEEN_VERSION {
            request.version = self.versions.get(&request.path).copied().unwrap_or(0);
        }
        if request.is_write() && request.data.is_empty() {
            self.writes += 1;
            let padding = if request.op == (Op::Set { large: true }) { LARGE } else { 0 };
            request.data = format!("{}-{}", self.number, self.writes).into_bytes();
            request.data.resize(request.data.len() + padding, b'.');
        }
        Some(request)
    }

    /// The setWatches request for the next server. `None`: the client has no watches.
    pub fn set_watches(&self) -> Option<Request> {
        let Session { data_watches, child_watches, persistent_watches, .. } = &self.session;
        let data = |was_there: bool| {
            let all = data_watches.iter().filter(|(_, there)| **there == was_there);
            all.map(|(path, _)| path.clone()).collect()
        };
        let is_empty =
            data_watches.is_empty() && child_watches.is_empty() && persistent_watches.is_empty();
        let lists = WatchLists {
            since: self.session.last_zxid,
            data: data(true),
            absent: data(false),
            children: child_watches.iter().cloned().collect(),
            persistent: persistent_watches.iter().cloned().collect(),
        };
        (!is_empty).then(|| Request::new(Op::SetWatches(lists), ""))
    }

    /// Keeps what the client learns from a reply: the zxid, watches that it sets, and versions.
    pub fn learn(&mut self, request: &Request, header: ReplyHeader, body: &Body) {
        let (code, path) = (Code(header.err), &request.path);
        let session = &mut self.session;
        session.last_zxid = session.last_zxid.max(header.zxid);
        match request.watch_left(code) {
            Some(Watch::Data) => drop(session.data_watches.insert(path.clone(), code.is_ok())),
            Some(Watch::Children) => drop(session.child_watches.insert(path.clone())),
            Some(Watch::Persistent { recursive }) => {
                session.persistent_watches.insert((path.clone(), recursive));
            }
            None => {}
        }
        match body {
            Body::Path(created, _) if *created != *path => session.created.push(created.clone()),
            Body::Data(_, stat) | Body::Stat(stat) => {
                self.versions.insert(path.clone(), stat.version);
            }
            _ => {}
        }
    }

    /// Keeps the zxid of an event, and removes the one-shot watches that have fired.
    pub fn learn_event(&mut self, zxid: i64, kind: EventKind, path: &str) {
        let session = &mut self.session;
        session.last_zxid = session.last_zxid.max(zxid);
        if kind != EventKind::NodeChildrenChanged {
            session.data_watches.remove(path);
        }
        if matches!(kind, EventKind::NodeChildrenChanged | EventKind::NodeDeleted) {
            session.child_watches.remove(path);
        }
    }
}
