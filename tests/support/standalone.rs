//! One standalone server without sockets, files or clocks: a client connection's machine, the replica, and a log in memory.

use super::builders::limits;
use super::client::open;
use super::disk::Entry;
use super::replica::ReplicaOnDisk;
use super::requests::drain;
use jute::proto::{MultiHeader, ReplyHeader, RequestHeader};
use jute::{Encode, Reader, put_frame};
use oxkeeper::admin::Word;
use oxkeeper::client::{ConnectRequest, ConnectResponse};
use oxkeeper::model::SessionId;
use oxkeeper::replica::{Input, Settings, TICK_MS};
use oxkeeper::request::{ClientCommand, Connection, Limits, Need};
use oxkeeper::tree::{Options, Tree};

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

/// The client's address.
const ADDRESS: &str = "127.0.0.1";

pub struct Standalone {
    pub server: ReplicaOnDisk,
    client: Connection,
    /// While set, the disk of the log does nothing.
    pub disk_hangs: bool,
    /// Why the connection was closed.
    pub closed: Option<String>,
    /// The session of the current connection.
    pub session: i64,
    xid: i32,
}

impl Standalone {
    /// A fresh server with one client that has a session.
    pub fn new(settings: Settings, extended_types: bool) -> Self {
        let tree =
            Tree::new(Options { seed: 1, digest: true, extended_types, ..Options::default() });
        let limits = Limits {
            frame_max: 1 << 20,
            max_session_timeout_ms: 600_000,
            words: Word::ALL
                .iter()
                .map(|word| *word.name().as_bytes().first_chunk().expect("four letters"))
                .collect(),
            ..limits()
        };
        let server = ReplicaOnDisk::standalone(tree, limits, settings);
        let client = open(&server.shared, ADDRESS, 0);
        let (disk_hangs, closed, session, xid) = (false, None, 0, 0);
        let mut world = Self { server, client, disk_hangs, closed, session, xid };
        world.hello(0);
        world
    }

    /// Asks for a session, 0 for a new one.
    fn hello(&mut self, session_id: i64) {
        let secret = oxkeeper::request::password(SessionId(session_id));
        let mut hello = Vec::new();
        ConnectRequest {
            session_id,
            timeout_ms: 600_000,
            password: secret.to_vec(),
            ..ConnectRequest::default()
        }
        .put(&mut hello);
        let answer = self.exchange(&hello);
        self.session = ConnectResponse::parse(&answer[4..]).expect("a welcome").session_id;
        assert!(session_id == 0 || session_id == self.session);
    }

    /// Makes a new connection the current one; the earlier one is returned, still open.
    pub fn connect(&mut self, session_id: i64) -> Connection {
        let new = open(&self.server.shared, ADDRESS, 0);
        let old = std::mem::replace(&mut self.client, new);
        self.hello(session_id);
        old
    }

    /// Makes an earlier connection the current one again; the one before is returned, still open.
    pub fn speak(&mut self, client: Connection) -> Connection {
        std::mem::replace(&mut self.client, client)
    }

    /// Sends the first bytes of a new connection; returns what the connection needs after them.
    pub fn greet(&mut self, bytes: &[u8]) -> Need {
        self.client = open(&self.server.shared, ADDRESS, 0);
        self.client.advance(bytes, 1).1
    }

    /// The current connection ends without closeSession.
    pub fn hang_up(&mut self) {
        self.client.end();
        for command in std::mem::take(&mut self.client.commands) {
            self.command(command);
        }
    }

    /// Sends bytes, valid or not, and returns what came back. An unfinished frame is forgotten.
    pub fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut at = 0;
        loop {
            let (taken, need) = self.client.advance(&bytes[at..], 1);
            at += taken;
            let commands = std::mem::take(&mut self.client.commands);
            let idle = taken == 0 && commands.is_empty();
            for command in commands {
                self.command(command);
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

    /// The bytes that are there for the client by now.
    pub fn received(&mut self) -> Vec<u8> {
        self.client.collect();
        drain(&mut self.client.unsent)
    }

    fn command(&mut self, command: ClientCommand) {
        self.server.command(command);
        self.go_on();
    }

    fn go_on(&mut self) {
        while !self.disk_hangs && self.server.flush() {}
    }

    /// The disk flushes everything.
    pub fn flush(&mut self) {
        while self.server.flush() {}
    }

    /// Entries of the log that are on disk, in order.
    pub fn log(&self) -> &[Entry] {
        &self.server.disk.log
    }

    pub fn take_log(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.server.disk.log)
    }

    /// The snapshot under way is in place.
    pub fn end_snapshot(&mut self) {
        let frozen = self.server.frozen.last().expect("a snapshot is under way");
        self.server.step(Input::SnapshotEnded(*frozen));
        self.go_on();
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.server.tick();
            self.go_on();
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
        self.server.shared.state.tree.read().find(path).is_some()
    }

    pub fn last_zxid(&self) -> i64 {
        self.server.shared.state.tree.read().last_zxid().to_wire()
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.server.replica.stats.digest_mismatches, 0, "each digest was predicted");
        }
    }
}

/// The replies in these bytes, each as its header and its body.
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
