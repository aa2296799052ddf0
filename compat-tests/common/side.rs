//! One server and the clients of a script that are connected to it.
//!
//! [`Side::send`] sends a step and [`Side::collect`] receives its outcome, so that two servers work at the same time.
//! After the replies every open connection is pinged: a connection is FIFO, so once the ping is
//! answered, every event the step caused has been received, and the comparison needs no timeout for events.

use super::decode::{self, Naming};
use super::naming::{self, Sessions, Zxids};
use super::script::{Line, Op, SLOTS, Seen, Step};
use jute::proto::ReplyHeader;
use oxkeeper::client::{
    ClientError, ConnectRequest, ConnectResponse, Incoming, Wire, op as code, put_request, xid,
};
use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A server that sends nothing for this long is reported as silent. It is long, as no test waits that long for a server that answers.
const SILENCE: Duration = Duration::from_secs(30);

/// What every client saw in one step, line by line.
pub type Outcome = [Vec<String>; SLOTS];

/// What the server still has to send on a connection.
enum Owed {
    ConnectResponse {
        slot: usize,
        asked_id: i64,
    },
    Reply(Op),
    /// Nothing: the server has to close the connection.
    End,
}

#[derive(Clone)]
struct Session {
    id: i64,
    password: Vec<u8>,
}

#[derive(Default)]
struct Slot {
    wire: Option<Wire>,
    /// The same session's previous connection, which the server must close.
    taken_over: Option<Wire>,
    session: Option<Session>,
    owed: VecDeque<Owed>,
    /// The server must close the connection: its reply or the client's frame says so.
    ending: bool,
    next_xid: i32,
    last_zxid: i64,
    zxids: Zxids,
    seen: Vec<Seeing>,
}

/// One line and, for an event, the zxid it carries.
struct Seeing {
    line: String,
    event_zxid: Option<i64>,
}

#[derive(Default)]
pub struct Counts {
    pub events: u64,
    /// How many replies had each error code.
    pub errors: std::collections::BTreeMap<i32, u64>,
}

pub struct Side {
    addr: SocketAddr,
    slots: [Slot; SLOTS],
    sessions: Sessions,
    /// Zxids of closeSession: such a transaction deletes many nodes, in no order that the protocol promises (G-06).
    closes: HashSet<i64>,
    /// Every session that the script opened.
    opened: Vec<Session>,
    /// The zxid in `srvr` before a session was left to expire.
    expiring: Option<String>,
    pub counts: Counts,
}

impl Side {
    pub fn new(addr: SocketAddr, racy: bool) -> Self {
        let mut side = Self {
            addr,
            slots: Default::default(),
            sessions: Sessions::default(),
            closes: HashSet::new(),
            opened: Vec::new(),
            expiring: None,
            counts: Counts::default(),
        };
        for slot in side.slots.iter_mut().filter(|_| racy) {
            slot.zxids = Zxids::renamed();
        }
        side
    }

    /// Sends a whole step without waiting for replies.
    pub fn send(&mut self, step: &Step) {
        let mut out: [Vec<u8>; SLOTS] = Default::default();
        for line in step {
            self.put(line.slot, &line.op, &mut out[line.slot]);
        }
        for (slot, bytes) in self.slots.iter_mut().zip(&out) {
            slot.send(bytes);
        }
    }

    fn put(&mut self, at: usize, op: &Op, out: &mut Vec<u8>) {
        let slot = &mut self.slots[at];
        let last = slot.last_zxid;
        match op {
            Op::Connect { timeout_ms, zxid, flag } => {
                let hello = ConnectRequest {
                    last_zxid_seen: zxid.resolve(last),
                    timeout_ms: *timeout_ms,
                    read_only: *flag,
                    session_id: 0,
                    password: vec![0; 16],
                };
                slot.open(self.addr, at, &hello, out);
            }
            Op::Reconnect { timeout_ms, zxid, flag, right_password, takeover } => {
                let Some(session) = &slot.session else { return slot.note("no session yet") };
                let mut password = session.password.clone();
                if !right_password {
                    password.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                let hello = ConnectRequest {
                    last_zxid_seen: zxid.resolve(last),
                    timeout_ms: *timeout_ms,
                    read_only: *flag,
                    session_id: session.id,
                    password,
                };
                let old = slot.wire.take().filter(|_| *takeover);
                slot.open(self.addr, at, &hello, out);
                slot.taken_over = old;
            }
            _ if slot.wire.is_none() => slot.note("not connected"),
            Op::Drop => slot.disconnect(),
            Op::Expire => {
                slot.disconnect();
                self.expiring = Some(self.zxid());
            }
            Op::Frame { body } => {
                jute::put_frame(out, |to| to.extend_from_slice(body));
                slot.ending = true;
            }
            _ => {
                let kind = op.code().expect("all that is left is requests");
                let xid = op.fixed_xid().unwrap_or_else(|| {
                    slot.next_xid += 1;
                    slot.next_xid
                });
                put_request(out, xid, kind, |to| op.put_body(to, last));
                slot.owed.push_back(Owed::Reply(op.clone()));
            }
        }
    }

    /// Receives all replies and events that a step caused, including events on idle connections.
    pub fn collect(&mut self) -> Outcome {
        self.drain();
        self.see_expiry();
        self.slots.iter_mut().for_each(Slot::see_old_one_end);
        let mut ping = Vec::new();
        put_request(&mut ping, xid::PING, code::PING, |_| ());
        for slot in self.slots.iter_mut().filter(|slot| slot.wire.is_some()) {
            // Whether a ping is answered before the server closes the connection is timing, so none is sent.
            if slot.ending {
                slot.owed.push_back(Owed::End);
            } else {
                slot.owed.push_back(Owed::Reply(Op::Bare { code: code::PING }));
                slot.send(&ping);
            }
        }
        self.drain();
        let closes = &self.closes;
        self.slots.each_mut().map(|slot| slot.take_lines(closes))
    }

    /// Waits for the closeSession transaction of an expiring session: until the server has a new zxid.
    fn see_expiry(&mut self) {
        let Some(before) = self.expiring.take() else { return };
        let start = Instant::now();
        loop {
            let now = self.zxid();
            if now != before {
                let digits = now.trim_start_matches("0x");
                self.closes.extend(i64::from_str_radix(digits, 16));
                return;
            }
            if start.elapsed() > SILENCE {
                return self.slots[0].note("a session did not expire");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The zxid in the answer to `srvr`, or an empty text.
    fn zxid(&self) -> String {
        let answer = oxkeeper::client::word(self.addr, "srvr", SILENCE).unwrap_or_default();
        let line = answer.lines().find_map(|line| line.strip_prefix("Zxid: "));
        line.unwrap_or_default().to_owned()
    }

    fn drain(&mut self) {
        for at in 0..SLOTS {
            while !self.slots[at].owed.is_empty() {
                self.receive(at);
            }
        }
    }

    /// Receives one frame, or the end of the connection.
    fn receive(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        let Some(wire) = &mut slot.wire else { return slot.owed.clear() };
        let frame = match wire.receive(SILENCE) {
            Ok(frame) => frame,
            Err(error) => {
                slot.disconnect();
                return match error {
                    ClientError::Closed => slot.note("closed by the server"),
                    other => slot.note(&other.to_string()),
                };
            }
        };
        if let Some(Owed::ConnectResponse { slot: name, asked_id }) = slot.owed.front() {
            let (name, asked_id) = (*name, *asked_id);
            slot.owed.pop_front();
            return self.welcome(at, name, asked_id, &frame);
        }
        match Incoming::parse(&frame) {
            Ok(Incoming::Event { header, event }) => {
                self.counts.events += 1;
                let line = decode::event(header, &event, &mut slot.zxids);
                slot.seen.push(Seeing { line, event_zxid: Some(header.zxid) });
            }
            Ok(Incoming::Reply { header, body }) => {
                let Some(Owed::Reply(op)) = slot.owed.pop_front() else {
                    return slot.note("a reply to nothing");
                };
                *self.counts.errors.entry(header.err).or_default() += 1;
                slot.last_zxid = slot.last_zxid.max(header.zxid);
                if matches!(op, Op::Close) {
                    self.closes.insert(header.zxid);
                }
                slot.ending |= ends_connection(&op, header);
                let mut names = Naming { sessions: &self.sessions, zxids: &mut slot.zxids };
                let line = decode::reply(&op, header, body, &mut names);
                slot.seen.push(Seeing { line, event_zxid: None });
            }
            Err(error) => slot.note(&format!("undecodable frame ({error})")),
        }
    }

    fn welcome(&mut self, at: usize, name: usize, asked_id: i64, frame: &[u8]) {
        let slot = &mut self.slots[at];
        let welcome = match ConnectResponse::parse(frame) {
            Ok(welcome) => welcome,
            Err(error) => return slot.note(&format!("undecodable welcome ({error})")),
        };
        let ConnectResponse { protocol_version, timeout_ms, session_id: id, password, read_only } =
            welcome;
        if asked_id == 0 && id != 0 {
            self.sessions.add(id, name);
        }
        let of_server = if id == 0 { 0 } else { id >> 56 };
        let known_password = match &password {
            zeros if zeros.iter().all(|byte| *byte == 0) => "zeros",
            right if *right == naming::password(id) => "java",
            _ => "other",
        };
        let line = format!(
            "welcome version={protocol_version} timeout={timeout_ms} session={} server={of_server} \
             password={}x{known_password} flag={read_only:?} len={}",
            self.sessions.name(id),
            password.len(),
            frame.len(),
        );
        slot.ending = id == 0;
        if id != 0 {
            let session = Session { id, password };
            if asked_id == 0 {
                self.opened.push(session.clone());
            }
            slot.session = Some(session);
        }
        slot.seen.push(Seeing { line, event_zxid: None });
    }

    /// Closes all sessions, so that no ephemeral or watch outlives its script.
    pub fn close_all(&mut self) {
        self.abandon();
        for session in std::mem::take(&mut self.opened) {
            // A session that is closed already is answered as expired, and takes no zxid.
            self.slots[0].session = Some(session);
            let (flag, zxid) = (Some(false), Seen::Zxid(0));
            let (right_password, takeover) = (true, false);
            let back = Op::Reconnect { timeout_ms: 0, zxid, flag, right_password, takeover };
            for op in [back, Op::Close] {
                self.send(&vec![Line { slot: 0, op }]);
                self.collect();
            }
        }
    }

    /// Closes all sockets without closing the sessions.
    pub fn abandon(&mut self) {
        self.slots.iter_mut().for_each(Slot::disconnect);
    }

    /// Directs later connections to another server, which knows the sessions too.
    pub fn move_to(&mut self, addr: SocketAddr) {
        self.abandon();
        self.addr = addr;
    }
}

/// closeSession, failed auth, unknown opcode: the server closes the connection after its reply.
fn ends_connection(op: &Op, header: ReplyHeader) -> bool {
    matches!(op, Op::Close) || header.err == -115 || (header.err == -6 && header.zxid == -1)
}

impl Slot {
    fn note(&mut self, line: &str) {
        self.seen.push(Seeing { line: line.into(), event_zxid: None });
    }

    fn disconnect(&mut self) {
        self.wire = None;
        self.ending = false;
        self.owed.clear();
    }

    fn open(&mut self, addr: SocketAddr, at: usize, hello: &ConnectRequest, out: &mut Vec<u8>) {
        self.disconnect();
        out.clear();
        match Wire::open(addr, SILENCE) {
            Ok(wire) => self.wire = Some(wire),
            Err(error) => return self.note(&format!("no connection: {error}")),
        }
        self.next_xid = 0;
        self.owed.push_back(Owed::ConnectResponse { slot: at, asked_id: hello.session_id });
        hello.put(out);
    }

    fn see_old_one_end(&mut self) {
        let Some(mut old) = self.taken_over.take() else { return };
        match old.receive(SILENCE) {
            Err(ClientError::Closed) => self.note("the old connection is closed"),
            Err(error) => self.note(&format!("the old connection: {error}")),
            Ok(frame) => {
                self.note(&format!("the old connection got {}", super::text::quote(&frame)))
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        // A failure to send shows again when the reply is awaited, after everything that still arrived.
        if let (false, Some(wire)) = (bytes.is_empty(), &mut self.wire) {
            let _ = wire.send(bytes);
        }
    }

    /// The lines received since the last call; runs of events of one closeSession are sorted.
    fn take_lines(&mut self, closes: &HashSet<i64>) -> Vec<String> {
        let mut seen = std::mem::take(&mut self.seen);
        let runs = seen.chunk_by_mut(|a, b| a.event_zxid == b.event_zxid);
        for run in runs.filter(|run| run[0].event_zxid.is_some_and(|zxid| closes.contains(&zxid))) {
            run.sort_by(|a, b| a.line.cmp(&b.line));
        }
        seen.into_iter().map(|seeing| seeing.line).collect()
    }
}
