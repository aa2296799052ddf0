//! One server without sockets, files or clocks: a connection's machine, the replica, and a log that keeps what it gets.

use jute::proto::{MultiHeader, ReplyHeader, RequestHeader};
use jute::{Encode, Reader, put_frame};
use oxkeeper::admin::Word;
use oxkeeper::client::{Hello, Welcome};
use oxkeeper::model::{SessionId, Zxid};
use oxkeeper::replica::{Action, Input, Replica, Settings, TICK_MS};
use oxkeeper::request::{Conn, Connection, Conns, Limits, Need, Shared};
use oxkeeper::tree::freeze::Frozen;
use oxkeeper::tree::{Options, State, Tree};
use std::sync::Arc;

pub const WALL_MS: i64 = 1_700_000_000_000;
pub const SETTINGS: Settings = Settings {
    tick_time_ms: 2000,
    first_session: 77,
    snap_count: 100_000,
    snap_size_bytes: 0,
    sessionless_timeout_ms: 60_000,
    container_check_interval_ms: 1000,
    container_max_per_minute: 600,
    container_max_never_used_ms: 0,
    seed: 1,
    ..Settings::DEFAULT
};

pub struct World {
    pub shared: Arc<Shared>,
    pub replica: Replica,
    client: Connection,
    pub wall_ms: i64,
    /// Entries of the log, in order.
    pub log: Vec<(Zxid, Vec<u8>)>,
    /// After how many entries the log was told to roll.
    pub rolls: Vec<usize>,
    /// Zxids of the snapshots that were begun.
    /// The one under way.
    frozen: Option<Frozen>,
    pub snapshots: Vec<Zxid>,
    /// While set, the log's disk takes its time.
    pub disk_hangs: bool,
    /// Why the connection was closed.
    pub closed: Option<String>,
    /// Of the connection that speaks.
    pub session: i64,
    xid: i32,
}

impl World {
    /// A fresh server with one client that has a session.
    pub fn new(settings: Settings, extended_types: bool) -> Self {
        let tree =
            Tree::new(Options { seed: 1, digest: true, extended_types, ..Options::default() });
        let limits = Limits {
            frame_max: 1 << 20,
            min_session_timeout_ms: 4000,
            max_session_timeout_ms: 600_000,
            outstanding_max: 1000,
            words: Word::ALL
                .iter()
                .map(|word| *word.name().as_bytes().first_chunk().expect("four letters"))
                .collect(),
            ..Limits::default()
        };
        let shared = Arc::new(Shared {
            state: State::new(tree, 1),
            conns: Conns::default(),
            throttle: Default::default(),
            limits,
            clock_ms: Default::default(),
            at_rest: Default::default(),
            is_read_only: Default::default(),
        });
        let replica = Replica::standalone(shared.clone(), settings, 0);
        let client = open(&shared);
        let mut world = Self {
            shared,
            replica,
            client,
            wall_ms: WALL_MS,
            log: Vec::new(),
            frozen: None,
            rolls: Vec::new(),
            snapshots: Vec::new(),
            disk_hangs: false,
            closed: None,
            session: 0,
            xid: 0,
        };
        world.hello(0);
        world
    }

    /// Asks for a session, 0 for a new one.
    fn hello(&mut self, session_id: i64) {
        let secret = oxkeeper::request::password(SessionId(session_id));
        let mut hello = Vec::new();
        Hello { session_id, timeout_ms: 600_000, password: secret.to_vec(), ..Hello::default() }
            .put(&mut hello);
        let answer = self.exchange(&hello);
        self.session = Welcome::parse(&answer[4..]).expect("a welcome").session_id;
        assert!(session_id == 0 || session_id == self.session);
    }

    /// From here on another connection speaks; the one that did is returned, still open.
    pub fn connect(&mut self, session_id: i64) -> Connection {
        let new = open(&self.shared);
        let old = std::mem::replace(&mut self.client, new);
        self.hello(session_id);
        old
    }

    /// An earlier connection speaks again; the one that did is returned, still open.
    pub fn speak(&mut self, client: Connection) -> Connection {
        std::mem::replace(&mut self.client, client)
    }

    /// The first bytes of one more connection, and what it needs after them.
    pub fn greet(&mut self, bytes: &[u8]) -> Need {
        self.client = open(&self.shared);
        self.client.advance(bytes, 1).1
    }

    /// The connection that speaks ends without a word.
    pub fn hang_up(&mut self) {
        self.client.end();
        for command in std::mem::take(&mut self.client.commands) {
            self.step(Input::Command { command, wall_ms: self.wall_ms });
        }
    }

    /// Sends bytes, right or wrong, and returns what came back. What is no whole frame is forgotten.
    pub fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut at = 0;
        loop {
            let (taken, need) = self.client.advance(&bytes[at..], 1);
            at += taken;
            let commands = std::mem::take(&mut self.client.commands);
            let idle = taken == 0 && commands.is_empty();
            for command in commands {
                self.step(Input::Command { command, wall_ms: self.wall_ms });
            }
            if let Need::Close(reason) = need {
                self.closed = Some(reason);
                break;
            }
            if idle && need != Need::Turn {
                break;
            }
        }
        self.received()
    }

    /// What is there for the client by now.
    pub fn received(&mut self) -> Vec<u8> {
        self.client.collect();
        let unsent = std::mem::take(&mut self.client.unsent);
        let (mut all, mut from) = (Vec::new(), 0);
        for (at, piece) in unsent.shared {
            all.extend_from_slice(&unsent.bytes[from..at]);
            all.extend_from_slice(&piece);
            from = at;
        }
        all.extend_from_slice(&unsent.bytes[from..]);
        all
    }

    fn step(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.replica.step(input, &mut actions);
        self.perform(actions);
        if !self.disk_hangs {
            self.flush();
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Append { zxid, entry } => self.log.push((zxid, entry.to_vec())),
                Action::Roll => self.rolls.push(self.log.len()),
                Action::Snapshot(frozen) => {
                    self.snapshots.push(frozen.zxid);
                    self.frozen = Some(frozen);
                }
                Action::Wake(_) => {} // Who waits is looked at anyway.
                Action::Stop(reason) => panic!("the replica stopped: {reason}"),
                Action::Install(_)
                | Action::SendTree { .. }
                | Action::Rebuild
                | Action::Peer(_) => {
                    panic!("a server that is alone has no peers")
                }
            }
        }
    }

    /// The disk has everything.
    pub fn flush(&mut self) {
        let Some(&(through, _)) = self.log.last() else { return };
        let mut actions = Vec::new();
        self.replica.step(Input::Flushed { through, now_us: 2 }, &mut actions);
        self.perform(actions);
    }

    /// The snapshot under way is in place.
    pub fn end_snapshot(&mut self) {
        let frozen = self.frozen.take().expect("a snapshot is under way");
        self.step(Input::SnapshotEnded(frozen));
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.wall_ms += TICK_MS as i64;
            self.step(Input::Tick { wall_ms: self.wall_ms });
        }
    }

    /// Sends one request after the other without waiting, and returns what came back.
    pub fn send(&mut self, requests: &[(i32, Vec<u8>)]) -> Vec<(ReplyHeader, Vec<u8>)> {
        let mut bytes = Vec::new();
        for (kind, body) in requests {
            self.xid += 1;
            put_frame(&mut bytes, |to| {
                RequestHeader { xid: self.xid, kind: *kind }.encode(to);
                to.extend_from_slice(body);
            });
        }
        let answers = self.exchange(&bytes);
        replies(&answers)
    }

    /// Sends one request and returns its answer.
    pub fn ask(&mut self, kind: i32, body: Vec<u8>) -> (ReplyHeader, Vec<u8>) {
        let mut replies = self.send(&[(kind, body)]);
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    pub fn exists(&self, path: &str) -> bool {
        self.shared.state.tree.read().find(path).is_some()
    }

    pub fn last_zxid(&self) -> i64 {
        self.shared.state.tree.read().last_zxid().to_wire()
    }
}

fn open(shared: &Arc<Shared>) -> Connection {
    let peer = "127.0.0.1:5000".parse().expect("an address");
    let conn = shared.conns.add(|id| Conn::new(id, peer, 0));
    Connection::new(conn, shared.clone())
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.replica.stats.digest_mismatches, 0, "each digest was foretold");
        }
    }
}

pub fn replies(mut bytes: &[u8]) -> Vec<(ReplyHeader, Vec<u8>)> {
    let mut replies = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, behind) = rest.split_at(i32::from_be_bytes(*head) as usize);
        let mut from = Reader::new(frame);
        let header = from.read().expect("a reply header");
        replies.push((header, from.rest().to_vec()));
        bytes = behind;
    }
    replies
}

/// The body of a multi or multiRead.
pub fn parts(parts: &[(i32, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, part) in parts {
        MultiHeader { kind: *kind, done: false, err: -1 }.encode(&mut body);
        body.extend_from_slice(part);
    }
    MultiHeader { kind: -1, done: true, err: -1 }.encode(&mut body);
    body
}
