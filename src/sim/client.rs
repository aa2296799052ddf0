//! A client: its session, its connection, what it asks and what it makes of the answers.

use super::ask::{Ask, Body, PAIR, PATHS, Request};
use super::network::PipeId;
use super::plan::Micros;
use super::rng::Rng;
use crate::model::Code;
use jute::proto::ReplyHeader;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// To be tried again from then on.
    Nowhere {
        from_us: Micros,
    },
    /// The connect request is on its way.
    Greeting(PipeId),
    Open(PipeId),
}

pub struct Client {
    pub at: usize,
    pub place: Place,
    /// 0: none yet.
    pub session: i64,
    pub timeout_ms: i32,
    pub last_zxid: i64,
    pub xid_last: i32,
    pub input: Vec<u8>,
    pub asked: VecDeque<(i32, Request)>,
    /// What is waited for: paths, and whether they were there.
    pub data_watches: BTreeMap<String, bool>,
    pub child_watches: BTreeSet<String>,
    /// Those that stay, and whether for all below.
    pub lasting: BTreeSet<(String, bool)>,
    /// Version of each path when last seen.
    pub versions: BTreeMap<String, i32>,
    /// Made in sequence.
    pub own: Vec<String>,
    pub values: u64,
    pub heard_us: Micros,
    pub said_us: Micros,
    pub asleep_us: Micros,
    /// Where it wants to go next.
    pub wants: Option<usize>,
    /// Its session is being closed.
    pub is_closing: bool,
    pub rng: Rng,
    /// Writes that were answered well since faults ended.
    pub last_done: u64,
    /// A planted fault holds this back.
    pub held: Vec<u8>,
}

impl Client {
    pub fn new(at: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 100 + at as u64);
        Self {
            at,
            place: Place::Nowhere { from_us: 0 },
            session: 0,
            timeout_ms: rng.range(500, 3000) as i32,
            last_zxid: 0,
            xid_last: 0,
            input: Vec::new(),
            asked: VecDeque::new(),
            data_watches: BTreeMap::new(),
            child_watches: BTreeSet::new(),
            lasting: BTreeSet::new(),
            versions: BTreeMap::new(),
            own: Vec::new(),
            values: 0,
            heard_us: 0,
            said_us: 0,
            asleep_us: 0,
            wants: None,
            is_closing: false,
            rng,
            last_done: 0,
            held: Vec::new(),
        }
    }

    pub const fn pipe(&self) -> Option<PipeId> {
        match self.place {
            Place::Nowhere { .. } => None,
            Place::Greeting(pipe) | Place::Open(pipe) => Some(pipe),
        }
    }

    /// Whether it is connected with a session and waits for nothing.
    pub fn is_idle(&self) -> bool {
        matches!(self.place, Place::Open(_)) && self.asked.is_empty()
    }

    fn value(&mut self, len: usize) -> Vec<u8> {
        self.values += 1;
        let mut value = format!("{}-{}", self.at, self.values).into_bytes();
        value.resize(value.len().max(len), b'.');
        value
    }

    /// With what the client knows, requests.
    pub fn requests(&mut self, ask: Ask) -> Vec<Request> {
        let name = |path: usize| PATHS[path].to_owned();
        let create = |path: &str, data, ephemeral, sequential, with_stat| Request::Create {
            path: path.to_owned(),
            data,
            ephemeral,
            sequential,
            with_stat,
        };
        let version_of = |client: &Self, path: &str, versioned: bool| {
            if versioned { client.versions.get(path).copied().unwrap_or(0) } else { -1 }
        };
        let with_stat = self.rng.one_in(2);
        vec![match ask {
            Ask::Get { path, watch } => Request::Get { path: name(path), watch },
            Ask::Exists { path, watch } => Request::Exists { path: name(path), watch },
            Ask::Children { path, watch } => Request::Children { path: name(path), watch },
            Ask::Set { path, versioned, large } => {
                let version = version_of(self, PATHS[path], versioned);
                let data = self.value(if large { 5000 } else { 0 });
                Request::Set { path: name(path), data, version }
            }
            Ask::Create { path, ephemeral } => {
                create(PATHS[path], self.value(0), ephemeral, false, with_stat)
            }
            Ask::Sequential { ephemeral } => {
                create("/q/n", self.value(0), ephemeral, true, with_stat)
            }
            Ask::Delete { path, versioned } => {
                let version = version_of(self, PATHS[path], versioned);
                Request::Delete { path: name(path), version }
            }
            Ask::DeleteOwn => match self.own.pop() {
                Some(path) => Request::Delete { path, version: -1 },
                None => return Vec::new(),
            },
            Ask::Pair { fails } => Request::Pair { data: self.value(0), fails },
            Ask::ReadPair => Request::ReadPair,
            Ask::Trade { path, ephemeral, versioned } => {
                let version = version_of(self, PATHS[path], versioned);
                Request::Trade { path: name(path), data: self.value(0), version, ephemeral }
            }
            Ask::Follow { path, deep } => Request::Follow { path: name(path), deep },
            // Now and then of a configuration that hardly is the one in force.
            Ask::Change(change) => change.request(if self.rng.one_in(12) { 77 } else { -1 }),
            Ask::Sync { path } => Request::Sync { path: name(path) },
            Ask::Close => Request::Close,
            Ask::Setup => {
                let all = PAIR.into_iter().chain(["/q"]);
                return all.map(|path| create(path, b"0".to_vec(), false, false, true)).collect();
            }
            Ask::Last => create("/end", self.value(0), false, true, with_stat),
        }]
    }

    /// What is still waited for, for another server.
    pub fn watches(&self) -> Request {
        let of = |was_there: bool| {
            let all = self.data_watches.iter().filter(|(_, there)| **there == was_there);
            all.map(|(path, _)| path.clone()).collect()
        };
        Request::Watches {
            since: self.last_zxid,
            data: of(true),
            absent: of(false),
            children: self.child_watches.iter().cloned().collect(),
            lasting: self.lasting.iter().cloned().collect(),
        }
    }

    /// What an answer leaves with the client.
    pub fn learn(&mut self, request: &Request, header: ReplyHeader, body: &Body) {
        let code = Code(header.err);
        match (request, body) {
            (Request::Get { path, watch }, _) | (Request::Exists { path, watch }, _) => {
                let is_exists = matches!(request, Request::Exists { .. });
                let leaves = code.is_ok() || is_exists && code == Code::NO_NODE;
                if *watch && leaves {
                    self.data_watches.insert(path.clone(), code.is_ok());
                }
            }
            (Request::Children { path, watch: true }, _) if code.is_ok() => {
                self.child_watches.insert(path.clone());
            }
            (Request::Follow { path, deep }, _) if code.is_ok() => {
                self.lasting.insert((path.clone(), *deep));
            }
            (Request::Create { sequential: true, .. }, Body::Path(path, _)) => {
                self.own.push(path.clone());
            }
            _ => {}
        }
        let stat = match body {
            Body::Data(_, stat) | Body::Stat(stat) => stat,
            _ => return,
        };
        if let Request::Get { path, .. }
        | Request::Exists { path, .. }
        | Request::Set { path, .. } = request
        {
            self.versions.insert(path.clone(), stat.version);
        }
    }

    /// A new session knows of nothing.
    pub fn forget_session(&mut self) {
        (self.session, self.last_zxid, self.xid_last) = (0, 0, 0);
        self.data_watches.clear();
        self.child_watches.clear();
        self.lasting.clear();
        self.own.clear();
        self.is_closing = false;
    }
}
