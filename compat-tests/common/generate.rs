//! Random scripts: which clients there are, when they connect and disconnect, and which requests are pipelined.

use super::choices::{Chooser, Limits};
use super::rng::Choose;
use super::script::{Acl, Line, Op, SLOTS, Script, Seen};
use oxkeeper::client::op as code;
use oxkeeper::model::Rng;

/// Shape of a script.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// One operation at a time over all clients.
    Lockstep,
    /// Batches of one client; the others watch.
    Pipelined,
    /// Batches of several clients at the same time, each below a node of its own.
    Racy,
}

/// The state of a client's connection and session, as the generator expects it.
#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    New,
    Open,
    /// The socket is closed; the session may still exist.
    Dropped,
    /// The session is closed; a reconnect must be refused.
    Closed,
}

pub struct Generator {
    choose: Chooser,
    states: [State; SLOTS],
    root: String,
}

/// The node below which a script creates its nodes.
pub fn root(number: usize) -> String {
    format!("/s{number}")
}

impl Generator {
    pub fn new(seed: u64, limits: Limits) -> Self {
        let rng = Rng::seeded(seed);
        let choose = Chooser {
            rng,
            limits,
            base: String::new(),
            recent: Vec::new(),
            pipelined: false,
            quota: false,
            alone: false,
        };
        Self { choose, states: [State::New; SLOTS], root: String::new() }
    }

    /// Script `number` of a run, about `ops` operations long.
    pub fn script(&mut self, number: usize, mode: Mode, ops: usize) -> Script {
        self.root = root(number);
        self.states = [State::New; SLOTS];
        let asked = self.choose.limits.only;
        self.choose.quota = mode == Mode::Lockstep && asked.is_empty();
        let mut script = Script::default();
        let mut prelude = vec![self.connect(), self.make(self.root.clone())];
        self.states[0] = State::Open;
        let clients = if mode == Mode::Lockstep { 1 } else { 2 + self.choose.rng.pick(SLOTS - 1) };
        for slot in 1..clients {
            prelude.push(Op::Connect {
                timeout_ms: 300_000,
                zxid: Seen::Zxid(0),
                flag: Some(false),
            });
            self.states[slot] = State::Open;
        }
        for (at, op) in prelude.into_iter().enumerate() {
            script.steps.push(vec![Line { slot: at.saturating_sub(1), op }]);
        }
        if self.choose.quota && self.choose.limits.stage > 1 && self.choose.rng.chance(30) {
            let ops = self.chooser(self.root.clone(), false, false).quota_nodes();
            script.steps.extend(ops.into_iter().map(|op| vec![Line { slot: 0, op }]));
        }
        if mode == Mode::Racy {
            for slot in 0..clients {
                let op = self.make(format!("{}/c{slot}", self.root));
                script.steps.push(vec![Line { slot, op }]);
            }
        }
        while script.lines() < ops {
            let step = match mode {
                Mode::Lockstep => vec![self.line()],
                Mode::Pipelined => self.batch_of_one(clients),
                Mode::Racy => self.batch_of_many(clients),
            };
            script.steps.push(step);
        }
        script
    }

    /// Script `number`: `times` sessions expire one after the other, while another client watches their ephemerals.
    // rows: P-20 P-21 G-06
    pub fn expiries(&mut self, number: usize, times: usize) -> Script {
        self.root = root(number);
        self.choose.quota = false;
        let connect =
            |timeout_ms| Op::Connect { timeout_ms, zxid: Seen::Zxid(0), flag: Some(false) };
        let mut lines = vec![(0, connect(300_000)), (0, self.make(self.root.clone()))];
        for _ in 0..times {
            // The timeout is long enough for a slow machine to send all requests that follow.
            lines.push((1, connect(MORTAL_MS)));
            for at in 0..12 {
                let chooser = self.chooser(self.root.clone(), false, false);
                lines.push((at % 2, chooser.request()));
                if at % 3 == 0 {
                    lines.push((1, chooser.ephemeral()));
                }
            }
            let path = Some(self.root.clone().into());
            lines.push((0, Op::Read { code: code::GET_CHILDREN, path: path.clone(), watch: true }));
            lines.push((0, Op::Watch { code: code::ADD_WATCH, path, kind: 1 }));
            lines.push((1, Op::Expire));
            lines.push((1, self.take_over()));
        }
        let steps = lines.into_iter().map(|(slot, op)| vec![Line { slot, op }]).collect();
        Script { steps }
    }

    fn make(&mut self, path: String) -> Op {
        let acl = Acl { perms: 31, scheme: Some(b"world".into()), id: Some(b"anyone".into()) };
        let path = Some(path.into());
        Op::Create { code: code::CREATE, path, data: None, acl: Some(vec![acl]), flags: 0 }
    }

    fn chooser(&mut self, base: String, pipelined: bool, alone: bool) -> &mut Chooser {
        if self.choose.base != base {
            self.choose.recent.clear();
        }
        self.choose.base = base;
        self.choose.pipelined = pipelined;
        self.choose.alone = alone;
        &mut self.choose
    }

    // rows: P-10 P-11 P-14 P-15 P-16
    fn connect(&mut self) -> Op {
        let timeout_ms = *self.choose.rng.choose(&[300_000, 400_000, 0, -5, i32::MAX]);
        let flag = *self.choose.rng.weighted(&[(8, Some(false)), (3, None), (1, Some(true))]);
        Op::Connect { timeout_ms, zxid: Seen::Zxid(0), flag }
    }

    // rows: P-13 P-17 P-18 P-77 G-10
    fn reconnect(&mut self) -> Op {
        let zxid = *self.choose.rng.weighted(&[
            (4, Seen::Zxid(0)),
            (8, Seen::Last),
            (1, Seen::Zxid(i64::MAX)),
        ]);
        let flag = *self.choose.rng.weighted(&[(8, Some(false)), (3, None), (1, Some(true))]);
        let right_password = !self.choose.rng.chance(10);
        Op::Reconnect { timeout_ms: 400_000, zxid, flag, right_password, takeover: false }
    }

    // rows: P-18 P-77
    fn take_over(&mut self) -> Op {
        // With the right password only: Java also closes the old connection for a wrong password, which we don't copy.
        let (zxid, flag) = (Seen::Last, Some(false));
        Op::Reconnect { timeout_ms: 400_000, zxid, flag, right_password: true, takeover: true }
    }

    fn line(&mut self) -> Line {
        let slot = *self.choose.rng.weighted(&[(50, 0), (25, 1), (15, 2), (10, 3)]);
        let op = match self.states[slot] {
            State::New => self.connect(),
            State::Closed if self.choose.rng.chance(70) => self.connect(),
            State::Closed | State::Dropped => self.reconnect(),
            State::Open => self.open_op(),
        };
        self.states[slot] = match &op {
            Op::Connect { .. } => State::Open,
            Op::Reconnect { right_password: false, .. } => State::Dropped,
            Op::Reconnect { zxid: Seen::Zxid(i64::MAX), .. } => State::Dropped,
            // After a close the reconnect is refused, and the next operation just finds no connection.
            Op::Reconnect { .. } if self.states[slot] == State::Closed => State::New,
            Op::Reconnect { .. } => State::Open,
            Op::Close => State::Closed,
            Op::Drop | Op::Frame { .. } => State::Dropped,
            Op::Auth { scheme, .. } if scheme.as_deref() != Some(b"digest") => State::Dropped,
            Op::Raw { code, .. } if UNKNOWN.contains(code) => State::Dropped,
            _ => State::Open,
        };
        Line { slot, op }
    }

    fn open_op(&mut self) -> Op {
        match self.choose.rng.pick(200) {
            0..3 => Op::Close,
            3..7 => Op::Drop,
            7..10 => self.reconnect(),
            10..13 => self.take_over(),
            13 => self.unknown(),
            14 => self.frame(),
            _ => self.chooser(self.root.clone(), false, false).request(),
        }
    }

    // rows: P-60h P-35 P-51
    fn unknown(&mut self) -> Op {
        let mut body = Vec::new();
        jute::put_buffer(&mut body, self.root.as_bytes());
        Op::Raw { code: *self.choose.rng.choose(&UNKNOWN), body }
    }

    // rows: P-01
    fn frame(&mut self) -> Op {
        let bodies: [&[u8]; 3] = [b"", b"\0", b"\0\0\0\x01\0\0"];
        Op::Frame { body: self.choose.rng.choose(&bodies).to_vec() }
    }

    // rows: P-26 P-29 P-33 P-83 G-02 G-07
    fn batch_of_one(&mut self, clients: usize) -> Vec<Line> {
        // Between batches the watching clients set new watches, and write a little themselves.
        if self.choose.rng.chance(50) {
            let slot = self.choose.rng.pick(clients);
            let op = self.chooser(self.root.clone(), false, false).request();
            return vec![Line { slot, op }];
        }
        if self.states[0] == State::Closed {
            self.states[0] = State::Open;
            return vec![Line { slot: 0, op: self.connect() }];
        }
        let len = 5 + self.choose.rng.pick(46);
        let chooser = self.chooser(self.root.clone(), true, false);
        let mut lines: Vec<_> = (0..len).map(|_| Line { slot: 0, op: chooser.request() }).collect();
        if self.choose.rng.chance(4) {
            let at = self.choose.rng.pick(len);
            lines[at].op = self.close();
            // Requests after a close: Java answers -112, -12 or nothing, and takes zxids or not, depending on timing.
            lines.truncate(at + 1);
        }
        lines
    }

    // rows: P-60f G-06
    fn close(&mut self) -> Op {
        self.states[0] = State::Closed;
        Op::Close
    }

    fn batch_of_many(&mut self, clients: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for slot in 0..clients {
            let base = format!("{}/c{slot}", self.root);
            let len = 5 + self.choose.rng.pick(46);
            let chooser = self.chooser(base, true, true);
            lines.extend((0..len).map(|_| Line { slot, op: chooser.request() }));
        }
        lines
    }
}

/// Timeout of the sessions that expire.
const MORTAL_MS: i32 = 5000;

/// Opcodes that no server accepts from a client: 0 is a notification, 13 (check) exists in multi only.
const UNKNOWN: [i32; 5] = [0, 10, code::CHECK, 23, 999];
