//! One connection's share of the work as a pure state machine: which request is next, when it is due, how long each took.
//!
//! All times are microseconds since the run began. A run is warm-up, then the measured time; a request that is sent in the
//! measured time counts, whenever its answer comes.
//!
//! With a rate, each request has a time at which it is due, whatever happened to earlier ones. A request that is sent late
//! because the window is full, or because this machine was busy, is measured from when it was due: a server that stands
//! still for a second is charged with all requests that clients would have sent meanwhile.

use super::mix::{Mix, Op};
use super::znodes::{Znodes, is_folder, put_body};
use crate::client::{Incoming, put_request};
use crate::model::{Rng, op, xid};
use jute::DecodeError;
use std::collections::VecDeque;

/// A request that is due sooner than this is sent now: timers are no finer, and early is better than late.
const EARLY_US: u64 = 1000;

/// The settings that all loads of a run share.
#[derive(Debug)]
pub struct Plan {
    pub mix: Mix,
    pub znodes: Znodes,
    pub value: Vec<u8>,
    /// Requests of one connection that may wait for their answers.
    pub in_flight: usize,
    pub warm_up_us: u64,
    /// Microseconds between requests of one connection; `None`: as fast as the answers come.
    pub interval_us: Option<f64>,
    /// A connection that has sent nothing for so long sends a ping.
    pub ping_us: u64,
}

/// An answer to one operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Done {
    pub op: Op,
    pub took_us: u64,
    /// It was sent in the measured time.
    pub counts: bool,
    /// The answer's error code.
    pub code: i32,
}

/// Why a server's bytes can't be an answer.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum LoadError {
    #[error("undecodable answer")]
    Decode(#[from] DecodeError),
    #[error(
        "answer to request {got} out of order, {} was expected",
        expected.map_or("none".to_owned(), |xid| xid.to_string())
    )]
    Order { got: i32, expected: Option<i32> },
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    xid: i32,
    op: Op,
    since_us: u64,
}

/// The state machine of one connection.
pub struct ConnectionLoad {
    plan: std::sync::Arc<Plan>,
    number: u32,
    random: Rng,
    in_flight: VecDeque<Sent>,
    last_xid: i32,
    /// Creates sent, and how many of their znodes deletes were sent for (or are folders).
    created: u64,
    deleted: u64,
    due_us: f64,
    sent_us: u64,
    path: String,
    /// Bytes to send, in order.
    pub out: Vec<u8>,
}

impl ConnectionLoad {
    /// * `number`: of the connection, of `of` connections. Their due times interleave.
    pub fn new(plan: std::sync::Arc<Plan>, number: u32, of: u32, seed: u64) -> Self {
        let phase = f64::from(number) / f64::from(of.max(1));
        Self {
            due_us: plan.interval_us.unwrap_or(0.0) * phase,
            plan,
            number,
            random: Rng::new(seed, u64::from(number)),
            in_flight: VecDeque::new(),
            last_xid: 0,
            created: 0,
            deleted: 0,
            sent_us: 0,
            path: String::new(),
            out: Vec::new(),
        }
    }

    /// Puts as many requests into `out` as may be sent now; none from `end_us` on.
    pub fn fill(&mut self, now_us: u64, end_us: u64) {
        while self.in_flight.len() < self.plan.in_flight && now_us < end_us {
            let since_us = match self.plan.interval_us {
                None => now_us,
                Some(interval_us) => {
                    let due_us = self.due_us as u64;
                    if now_us + EARLY_US < due_us || end_us <= due_us {
                        break;
                    }
                    self.due_us += interval_us;
                    due_us.min(now_us)
                }
            };
            self.ask(since_us);
            self.sent_us = now_us;
        }
        if self.sent_us + self.plan.ping_us <= now_us {
            put_request(&mut self.out, xid::PING, op::PING, |_| ());
            self.sent_us = now_us;
        }
    }

    fn ask(&mut self, since_us: u64) {
        self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
        let plan = &*self.plan;
        let mut op = plan.mix.pick(self.random.next());
        if op == Op::Delete && is_folder(self.deleted) {
            self.deleted += u64::from(self.deleted < self.created);
        }
        if op == Op::Delete && self.deleted == self.created {
            op = Op::Create;
        }
        match op {
            Op::Create => {
                plan.znodes.created(&mut self.path, self.number, self.created);
                self.created += 1;
            }
            Op::Delete => {
                plan.znodes.created(&mut self.path, self.number, self.deleted);
                self.deleted += 1;
            }
            Op::List | Op::Get | Op::Exists | Op::Set => {
                let random = u128::from(self.random.next());
                let key = ((random * u128::from(plan.znodes.keys)) >> 64) as u64;
                if op == Op::List {
                    plan.znodes.folder(&mut self.path, key);
                } else {
                    plan.znodes.key(&mut self.path, key);
                }
            }
        }
        let path = &self.path;
        put_request(&mut self.out, self.last_xid, op.kind(), |to| {
            put_body(to, op.kind(), path, &plan.value);
        });
        self.in_flight.push_back(Sent { xid: self.last_xid, op, since_us });
    }

    /// Takes one frame of the server; `None` if it answers no operation.
    ///
    /// # Errors
    /// [`LoadError`] when it can't be the next frame of a ZooKeeper server.
    pub fn take(&mut self, frame: &[u8], now_us: u64) -> Result<Option<Done>, LoadError> {
        let Incoming::Reply { header, .. } = Incoming::parse(frame)? else { return Ok(None) };
        if header.xid == xid::PING {
            return Ok(None);
        }
        let expected = self.in_flight.front().map(|sent| sent.xid);
        let sent = self.in_flight.pop_front_if(|sent| sent.xid == header.xid);
        let sent = sent.ok_or(LoadError::Order { got: header.xid, expected })?;
        let took_us = now_us.saturating_sub(sent.since_us);
        let counts = self.plan.warm_up_us <= sent.since_us;
        Ok(Some(Done { op: sent.op, took_us, counts, code: header.err }))
    }

    /// The connection was lost: forgets the operations under way and returns how many they were.
    pub fn lose(&mut self) -> u64 {
        self.out.clear();
        self.in_flight.drain(..).count() as u64
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// When [`Self::fill`] has something to do even if no answer comes.
    pub fn wake_us(&self) -> u64 {
        let ping_us = self.sent_us + self.plan.ping_us;
        let is_full = self.plan.in_flight <= self.in_flight.len();
        if self.plan.interval_us.is_none() || is_full {
            return ping_us;
        }
        ping_us.min((self.due_us as u64).saturating_sub(EARLY_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jute::proto::{GetDataRequest, ReplyHeader, RequestHeader};
    use jute::{Encode, Reader};
    use std::sync::Arc;

    fn load(mix: &str, in_flight: usize, interval_us: Option<f64>) -> ConnectionLoad {
        let plan = Plan {
            mix: mix.parse().unwrap(),
            znodes: Znodes { root: "/b".into(), keys: 100 },
            value: vec![7; 3],
            in_flight,
            warm_up_us: 1000,
            interval_us,
            ping_us: 10_000_000,
        };
        ConnectionLoad::new(Arc::new(plan), 0, 1, 1)
    }

    /// Takes all requests out: xid, operation, path.
    fn asked(load: &mut ConnectionLoad) -> Vec<(i32, i32, String)> {
        let out = std::mem::take(&mut load.out);
        let mut rest = &out[..];
        let mut asked = Vec::new();
        while let Some(head) = rest.first_chunk::<4>() {
            let end = 4 + u32::from_be_bytes(*head) as usize;
            let mut from = Reader::new(&rest[4..end]);
            let header: RequestHeader = from.read().unwrap();
            let path = if header.kind == op::PING {
                String::new()
            } else {
                from.read::<GetDataRequest<'_>>().unwrap().path.unwrap().into_owned()
            };
            asked.push((header.xid, header.kind, path));
            rest = &rest[end..];
        }
        asked
    }

    fn answer(load: &mut ConnectionLoad, xid: i32, err: i32, now_us: u64) -> Option<Done> {
        let mut frame = Vec::new();
        ReplyHeader { xid, zxid: 1, err }.encode(&mut frame);
        load.take(&frame, now_us).unwrap()
    }

    #[test]
    fn lane_keeps_its_window_full() {
        let mut load = load("get", 3, None);
        load.fill(500, 9000);
        let first = asked(&mut load);
        assert_eq!(
            first.iter().map(|(xid, kind, _)| (*xid, *kind)).collect::<Vec<_>>(),
            [(1, op::GET_DATA), (2, op::GET_DATA), (3, op::GET_DATA)]
        );
        assert!(first[0].2.starts_with("/b/keys0/k"));
        let done = answer(&mut load, 1, 0, 740).unwrap();
        assert_eq!(done, Done { op: Op::Get, took_us: 240, counts: false, code: 0 });
        load.fill(1000, 9000);
        assert_eq!(asked(&mut load).len(), 1);
        for (xid, counts) in [(2, false), (3, false), (4, true)] {
            assert_eq!(answer(&mut load, xid, -4, 1001).unwrap().counts, counts);
        }
        assert!(load.is_idle());
        load.fill(9000, 9000);
        assert!(load.is_idle());
    }

    #[test]
    fn answers_out_of_order_are_refused() {
        let mut load = load("get", 2, None);
        load.fill(0, 9000);
        let mut frame = Vec::new();
        ReplyHeader { xid: 2, zxid: 1, err: 0 }.encode(&mut frame);
        assert_eq!(load.take(&frame, 5), Err(LoadError::Order { got: 2, expected: Some(1) }));
        assert!(matches!(load.take(&frame[..9], 5), Err(LoadError::Decode(_))));
        assert_eq!(load.lose(), 2);
        assert_eq!(load.take(&frame, 5), Err(LoadError::Order { got: 2, expected: None }));
    }

    #[test]
    fn late_requests_count_from_when_they_were_due() {
        // One request each 2 ms; the window has room for one.
        let mut load = load("get", 1, Some(2000.0));
        load.fill(0, 50_000);
        assert_eq!(asked(&mut load).len(), 1);
        assert_eq!(load.wake_us(), 10_000_000, "an answer has to come first");
        // The server stands still until 9 ms, while the requests of 2, 4, 6, 8 ms become due.
        assert_eq!(answer(&mut load, 1, 0, 9000).unwrap().took_us, 9000);
        for (xid, took_us) in [(2, 7000), (3, 5000), (4, 3000), (5, 1000)] {
            load.fill(9000, 50_000);
            assert_eq!(answer(&mut load, xid, 0, 9000).unwrap().took_us, took_us);
        }
        asked(&mut load);
        // The next is due at 10 ms: near enough to go now, and then measured from now.
        assert_eq!(load.wake_us(), 9000);
        load.fill(9000, 50_000);
        assert_eq!(answer(&mut load, 6, 0, 9100).unwrap().took_us, 100);
        load.fill(9100, 50_000);
        assert!(load.is_idle());
        assert_eq!(load.wake_us(), 11_000);
    }

    #[test]
    fn delete_without_a_created_znode_creates_one() {
        let mut load = load("delete", 1, None);
        let mut seen = Vec::new();
        for at in 0..6 {
            load.fill(at, 9000);
            let (xid, kind, path) = asked(&mut load).remove(0);
            answer(&mut load, xid, 0, at);
            seen.push((kind, path));
        }
        let expected = [
            (op::CREATE, "/b/made0/f0"),
            (op::CREATE, "/b/made0/f0/n1"),
            (op::DELETE, "/b/made0/f0/n1"),
            (op::CREATE, "/b/made0/f0/n2"),
            (op::DELETE, "/b/made0/f0/n2"),
            (op::CREATE, "/b/made0/f0/n3"),
        ];
        assert_eq!(seen, expected.map(|(kind, path)| (kind, path.to_owned())));
    }

    #[test]
    fn idle_connection_sends_a_ping() {
        let mut load = load("get", 1, Some(60e6));
        load.fill(0, u64::MAX);
        asked(&mut load);
        assert_eq!(load.wake_us(), 10_000_000);
        load.fill(10_000_000, u64::MAX);
        assert_eq!(asked(&mut load), [(xid::PING, op::PING, String::new())]);
        assert_eq!(answer(&mut load, xid::PING, 0, 10_000_100), None);
        assert!(!load.is_idle());
    }
}
