//! Tree and store alone, for txns that no request leads to: what a leader, or Java's log, may hold.

use std::collections::VecDeque;

use bytes::Bytes;
use jute::txn::{CheckVersionTxn, TxnDigest, TxnHeader};
use jute::{Encode, Ustring, put_buffer, put_i32};
use oxkeeper::model::{Code, Epoch, OPEN_ACL, Zxid, op};
use oxkeeper::store::{Command, Event, Recovered};
use oxkeeper::tree::Tree;
use oxkeeper::tree::digest::DIGEST_VERSION;
use oxkeeper::tree::txn::{CreateKind, Entry, write};

use super::history::History;
use super::model::Model;
use crate::Script;
use oxkeeper::model::Rng;
use support::store::{LogThread, ServerDisk, Snapshot};

const READ_ACL: &[u8] = b"\0\0\0\x01\0\0\0\x01\0\0\0\x05world\0\0\0\x06anyone";

pub struct Raw<'d> {
    place: &'d ServerDisk,
    log: LogThread,
    snapshot: Option<Snapshot<'d>>,
    /// Snapshots that are in place.
    pub snapshots: u32,
    tree: Tree,
    /// Entries that were sent to the log and are not applied.
    waiting: VecDeque<(i64, Bytes)>,
    since_roll: u64,
    snap_count: u64,
    batch_max: usize,
}

impl<'d> Raw<'d> {
    pub fn start(
        place: &'d ServerDisk,
        tree: Tree,
        recovered: &Recovered,
        script: &Script,
    ) -> Self {
        let mut server = Self {
            place,
            log: place.log_thread(script.log, recovered.last),
            snapshot: None,
            snapshots: 0,
            tree,
            waiting: VecDeque::new(),
            since_roll: 0,
            snap_count: script.snap_count,
            batch_max: script.batch_max,
        };
        server.freeze();
        while server.snapshot.is_some() {
            server.piece();
        }
        server
    }

    fn freeze(&mut self) {
        if let Some(frozen) = self.tree.freeze() {
            self.snapshot = Some(self.place.snapshot(frozen));
        }
    }

    fn piece(&mut self) {
        let Some(snapshot) = &mut self.snapshot else { return };
        if snapshot.piece(&self.tree)
            && let Some(snapshot) = self.snapshot.take()
        {
            let frozen = snapshot.frozen;
            let place = Command::Place { draft: snapshot.draft(), replaces: false };
            let snapshots = &mut self.snapshots;
            self.log.run(vec![place], |_, event| match event {
                Event::Placed { .. } => *snapshots += 1,
                event => panic!("{event:?}"),
            });
            self.tree.thaw(frozen);
        }
    }

    pub fn step(&mut self, rng: &mut Rng, history: &mut History) {
        let mut batch = Vec::new();
        for _ in 0..1 + rng.pick(self.batch_max) {
            let last = Zxid::from_wire(history.now.zxid).unwrap();
            // A new leader now and then.
            let zxid = match rng.one_in(80) {
                true => Zxid::new(Epoch(last.epoch().0 + 1), 1),
                false => last.next().unwrap(),
            };
            let entry = entry(zxid.to_wire(), rng, &history.now);
            history.sent(zxid.to_wire(), &entry);
            self.waiting.push_back((zxid.to_wire(), entry.clone()));
            batch.push(Command::Append { zxid, entry });
        }
        self.since_roll += batch.len() as u64;
        let roll = self.snap_count < self.since_roll;
        if roll {
            self.since_roll = 0;
            batch.push(Command::Roll);
        }
        let (tree, waiting) = (&mut self.tree, &mut self.waiting);
        self.log.run(batch, |changes, event| {
            let Event::Flushed(report) = event else { panic!("{event:?}") };
            let through = report.through.to_wire();
            while let Some((_, entry)) = waiting.pop_front_if(|(zxid, _)| *zxid <= through) {
                let entry = Entry::decode(&entry).unwrap();
                let applied = tree.apply(&entry.header, &entry.txn, &mut Vec::new());
                let refused = history.refusal(entry.header.zxid);
                assert!(refused.is_ok() || !applied.code.is_ok());
                if let Some(digest) = entry.digest {
                    assert_eq!(tree.digest() as i64, digest.tree_digest, "{entry:?}");
                }
            }
            history.answered(changes, through);
        });
        if let Some(wrong) = history.now.differs_from(&self.tree) {
            panic!("the running tree: {wrong}");
        }
        if roll {
            self.freeze();
        }
        match rng.pick(12) {
            0..6 => self.piece(),
            6 => self.log.idle(),
            7 if rng.one_in(4) => self.place.purge(),
            _ => {}
        }
    }
}

/// A log entry (D-42), most with the digest of the tree after it.
fn entry(zxid: i64, rng: &mut Rng, model: &Model) -> Bytes {
    let mut making = Making { rng, model };
    let (kind, client_id, body) = making.txn();
    let mut entry = Vec::new();
    // The transactions of one flush come within a second, also where an epoch begins.
    let time = 1_700_000_000_000 + i64::from(zxid as u32);
    TxnHeader { client_id, cxid: 1, zxid, time, kind }.encode(&mut entry);
    entry.extend_from_slice(&body);
    // A refusal has none, nor have logs from before there were digests.
    if kind != op::ERROR && !making.rng.one_in(20) {
        let mut after = model.clone();
        after.apply(&entry);
        let tree_digest = after.digest() as i64;
        TxnDigest { version: DIGEST_VERSION, tree_digest }.encode(&mut entry);
    }
    entry.into()
}

struct Making<'m> {
    rng: &'m mut Rng,
    model: &'m Model,
}

impl Making<'_> {
    /// Type, session, record.
    fn txn(&mut self) -> (i32, i64, Vec<u8>) {
        let mut body = Vec::new();
        let sessions: Vec<i64> = self.model.sessions.keys().copied().collect();
        if sessions.len() < 3 || self.rng.one_in(30) {
            put_i32(&mut body, 4000 + self.rng.pick(9000) as i32);
            return (op::CREATE_SESSION, 1 + (self.rng.next() >> 8) as i64, body);
        }
        let session = sessions[self.rng.pick(sessions.len())];
        let kind = match self.rng.pick(40) {
            0 => {
                // With its paths, or without a body as servers before 3.6 log it.
                if self.rng.one_in(2) {
                    let paths = self.model.owned_by(session);
                    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
                    write::close_session(&mut body, &paths);
                }
                op::CLOSE_SESSION
            }
            1 | 2 => {
                put_i32(&mut body, Code::BAD_VERSION.0);
                op::ERROR
            }
            3 => {
                let version = zxid_version(self.model);
                write::set_data(&mut body, "/zookeeper/config", Some(b"server.1=a:1:2"), version);
                op::RECONFIG
            }
            4..11 => {
                self.multi(session, &mut body);
                op::MULTI
            }
            _ => self.single(&mut body, self.model),
        };
        (kind, session, body)
    }

    /// Parts that build on each other, or one refused part among some.
    fn multi(&mut self, session: i64, to: &mut Vec<u8>) {
        let mut parts = Vec::new();
        let mut after = self.model.clone();
        for _ in 0..self.rng.pick(5) {
            let mut body = Vec::new();
            let kind = if self.rng.one_in(4) {
                let path: Ustring<'_> = Some("/".into());
                CheckVersionTxn { path, version: -1 }.encode(&mut body);
                op::CHECK
            } else {
                self.single(&mut body, &after)
            };
            let mut entry = Vec::new();
            TxnHeader { client_id: session, zxid: after.zxid, kind, ..TxnHeader::default() }
                .encode(&mut entry);
            entry.extend_from_slice(&body);
            after.apply(&entry);
            parts.push((kind, body));
        }
        if self.rng.one_in(4) {
            let refused = |code: Code| (op::ERROR, code.0.to_be_bytes().to_vec());
            let at = self.rng.pick(parts.len() + 1);
            parts.insert(at, refused(Code::NO_NODE));
            parts[at + 1..].fill(refused(Code::RUNTIME_INCONSISTENCY));
        }
        put_i32(to, parts.len() as i32);
        for (kind, body) in parts {
            put_i32(to, kind);
            put_buffer(to, &body);
        }
    }

    /// What may stand alone or in a multi.
    fn single(&mut self, to: &mut Vec<u8>, model: &Model) -> i32 {
        let data = match self.rng.pick(20) {
            0 => None,
            1 => Some(vec![7; 3000 + self.rng.pick(6000)]),
            _ => Some(vec![self.rng.next() as u8; self.rng.pick(80)]),
        };
        let data = data.as_deref();
        let acl = if self.rng.one_in(5) { READ_ACL } else { OPEN_ACL };
        let at = self.rng.pick(model.nodes.len());
        let (path, node) = model.nodes.iter().nth(at).expect("within");
        let usual = !path.starts_with("/zookeeper") && path.matches('/').count() < 4;
        let (path, version) = match usual {
            true => (&**path, node.stat.version),
            false => ("", model.nodes[""].stat.version),
        };
        match self.rng.pick(20) {
            0..9 => {
                let name = ["a", "b", "c", "d", "gr\u{fc}\u{df}\u{20ac}"][self.rng.pick(5)];
                // Some are there already, as in the replay over one of Java's snapshots (D-62).
                let parent = if model.nodes[path].stat.ephemeral_owner > 0 { "" } else { path };
                let child = format!("{parent}/{name}{}", self.rng.pick(4));
                let cversion = model.nodes[parent].stat.cversion + 1;
                let (op, kind) = match self.rng.pick(8) {
                    0 => (op::CREATE_CONTAINER, CreateKind::Container),
                    1 => (op::CREATE_TTL, CreateKind::Ttl(1 + self.rng.pick(9000) as i64)),
                    2 | 3 => (op::CREATE, CreateKind::Ephemeral),
                    4 => (op::CREATE2, CreateKind::Persistent),
                    _ => (op::CREATE, CreateKind::Persistent),
                };
                write::create(to, &child, data, acl, kind, cversion);
                op
            }
            9..15 => {
                write::set_data(to, path, data, version + 1);
                op::SET_DATA
            }
            15 => {
                write::set_data(to, "/nobody/there", data, 1); // D-64.
                op::SET_DATA
            }
            16 => {
                let aversion = model.nodes[path].stat.aversion + 1;
                write::set_acl(to, path, acl, aversion);
                op::SET_ACL
            }
            _ => {
                let leaf = !path.is_empty() && model.children(path).is_empty();
                // A znode that does not exist: only its parent shows the deletion (D-63).
                write::delete(to, if leaf { path } else { "/gone" });
                if self.rng.one_in(3) { op::DELETE_CONTAINER } else { op::DELETE }
            }
        }
    }
}

fn zxid_version(model: &Model) -> i32 {
    model.nodes["/zookeeper/config"].stat.version + 1
}
