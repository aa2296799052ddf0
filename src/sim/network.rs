//! Connections: bytes in order, each connection at its own pace, until somebody closes it or it breaks.
//!
//! Nothing is lost on a connection that lives, as with TCP: what is cut off waits. A machine that stands still or a cut
//! that is healed shows as delay; loss shows as a connection that broke.

use super::plan::{MS, Micros};
use super::rng::Rng;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// A machine: the servers first, the clients behind them.
pub type Node = usize;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PipeId(pub u64);

/// Which end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Who called.
    Caller,
    Called,
}

impl End {
    pub const fn other(self) -> Self {
        match self {
            Self::Caller => Self::Called,
            Self::Called => Self::Caller,
        }
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Port {
    Client,
    /// 2888: a learner calls its leader. `dial`: which of the learner's calls.
    Quorum {
        dial: u64,
    },
    /// 3888.
    Election,
}

#[derive(Clone, Debug)]
pub enum Chunk {
    Bytes(Bytes),
    /// The other end has closed.
    End,
}

/// One direction.
#[derive(Default)]
struct Lane {
    queue: VecDeque<(Micros, Chunk)>,
    last_us: Micros,
    /// Something is due and cannot pass.
    waits: bool,
}

pub struct Pipe {
    pub caller: Node,
    pub called: Node,
    pub port: Port,
    /// Towards the caller, towards the called.
    lanes: [Lane; 2],
    open: [bool; 2],
}

impl Pipe {
    pub const fn at(&self, end: End) -> Node {
        match end {
            End::Caller => self.caller,
            End::Called => self.called,
        }
    }

    pub const fn is_open(&self, end: End) -> bool {
        self.open[end as usize]
    }

    /// What goes to this end.
    const fn lane(&mut self, to: End) -> &mut Lane {
        &mut self.lanes[to as usize]
    }

    fn touches(&self, node: Node) -> bool {
        self.caller == node || self.called == node
    }
}

/// Something will arrive there then.
pub type Due = (Micros, PipeId, End);

pub struct Network {
    pub pipes: BTreeMap<PipeId, Pipe>,
    next: u64,
    /// How many faults keep bytes from passing from one node to another.
    cuts: BTreeMap<(Node, Node), u32>,
    /// Until when much is lost between two, the smaller first.
    lossy: BTreeMap<(Node, Node), Micros>,
    /// Sent again because it was lost, and on its way when its connection broke.
    pub lost: u64,
    pub broken_off: u64,
    latency_us: Micros,
    rng: Rng,
}

impl Network {
    pub const fn new(seed: u64, latency_us: Micros) -> Self {
        let rng = Rng::new(seed, 3);
        Self {
            pipes: BTreeMap::new(),
            next: 0,
            cuts: BTreeMap::new(),
            lossy: BTreeMap::new(),
            lost: 0,
            broken_off: 0,
            latency_us,
            rng,
        }
    }

    /// Until then much of what these two say is lost, and sent again.
    pub fn lose_much(&mut self, one: Node, other: Node, until_us: Micros) {
        self.lossy.insert((one.min(other), one.max(other)), until_us);
    }

    /// How long something takes that is sent now.
    fn delay_between(&mut self, now_us: Micros, (one, other): (Node, Node)) -> Micros {
        let until_us = self.lossy.get(&(one.min(other), one.max(other)));
        if until_us.is_some_and(|&until_us| now_us < until_us) && self.rng.one_in(3) {
            self.lost += 1;
            // Each time it waits longer for its turn.
            return self.rng.range(20, 300) * MS;
        }
        self.delay()
    }

    fn delay(&mut self) -> Micros {
        let base = self.rng.range(self.latency_us / 2, self.latency_us * 2);
        match self.rng.below(200) {
            0 => {
                self.lost += 1;
                base + self.rng.below(60) * MS
            }
            1..10 => base * 5,
            _ => base,
        }
    }

    pub fn is_cut(&self, from: Node, to: Node) -> bool {
        self.cuts.contains_key(&(from, to))
    }

    /// Whether a call can be made.
    pub fn reaches(&self, from: Node, to: Node) -> bool {
        !self.is_cut(from, to) && !self.is_cut(to, from)
    }

    pub fn connect(&mut self, caller: Node, called: Node, port: Port) -> PipeId {
        self.next += 1;
        let id = PipeId(self.next);
        let lanes = Default::default();
        self.pipes.insert(id, Pipe { caller, called, port, lanes, open: [true; 2] });
        id
    }

    /// Sends from one end to the other; `None`: this end is closed, or there is no such connection.
    pub fn send(&mut self, now_us: Micros, id: PipeId, from: End, bytes: Bytes) -> Option<Due> {
        self.pipes.get(&id).filter(|pipe| pipe.is_open(from))?;
        Some(self.put(now_us, id, from.other(), Chunk::Bytes(bytes)))
    }

    /// Closes one end; what it had sent still arrives.
    pub fn close(&mut self, now_us: Micros, id: PipeId, from: End) -> Option<Due> {
        let pipe = self.pipes.get_mut(&id).filter(|pipe| pipe.is_open(from))?;
        pipe.open[from as usize] = false;
        *pipe.lane(from) = Lane::default();
        if !pipe.open[from.other() as usize] {
            self.pipes.remove(&id);
            return None;
        }
        Some(self.put(now_us, id, from.other(), Chunk::End))
    }

    fn put(&mut self, now_us: Micros, id: PipeId, to: End, chunk: Chunk) -> Due {
        let ends = self.pipes.get(&id).map_or((0, 0), |pipe| (pipe.caller, pipe.called));
        let delay_us = self.delay_between(now_us, ends);
        let lane = self.pipes.get_mut(&id).expect("looked up before").lane(to);
        let at_us = lane.last_us.max(now_us + delay_us);
        lane.last_us = at_us;
        lane.queue.push_back((at_us, chunk));
        (at_us, id, to)
    }

    /// What arrives at this end now.
    pub fn arrive(&mut self, now_us: Micros, id: PipeId, to: End) -> Option<Chunk> {
        let pipe = self.pipes.get(&id)?;
        let is_cut = self.is_cut(pipe.at(to.other()), pipe.at(to));
        let lane = self.pipes.get_mut(&id)?.lane(to);
        let (at_us, _) = lane.queue.front()?;
        if is_cut || now_us < *at_us {
            lane.waits |= is_cut;
            return None;
        }
        lane.queue.pop_front().map(|(_, chunk)| chunk)
    }

    /// This end was told that the other one has gone.
    pub fn ended(&mut self, id: PipeId, end: End) {
        self.close_dead(id, end);
    }

    /// A machine's process is gone: of what it had sent, some is on its way.
    pub fn die(&mut self, now_us: Micros, node: Node) -> Vec<Due> {
        let touched: Vec<PipeId> =
            self.pipes.iter().filter(|(_, pipe)| pipe.touches(node)).map(|(&id, _)| id).collect();
        let mut due = Vec::new();
        for id in touched {
            let end = if self.pipes[&id].caller == node { End::Caller } else { End::Called };
            due.extend(self.lose(now_us, id, end.other()));
            self.close_dead(id, end);
        }
        due
    }

    /// All connections between two nodes break.
    pub fn break_between(&mut self, now_us: Micros, one: Node, other: Node) -> Vec<Due> {
        let between = |pipe: &Pipe| pipe.touches(one) && pipe.touches(other) && one != other;
        let broken: Vec<PipeId> =
            self.pipes.iter().filter(|(_, pipe)| between(pipe)).map(|(&id, _)| id).collect();
        let mut due = Vec::new();
        for id in broken {
            for to in [End::Caller, End::Called] {
                due.extend(self.lose(now_us, id, to));
            }
        }
        due
    }

    /// Drops the end of what is on its way to this end, and tells it that the connection is no more.
    fn lose(&mut self, now_us: Micros, id: PipeId, to: End) -> Option<Due> {
        let kept = self.pipes[&id].lanes[to as usize].queue.len() as u64 + 1;
        let kept = self.rng.below(kept) as usize;
        let pipe = self.pipes.get_mut(&id)?;
        if !pipe.is_open(to) {
            return None;
        }
        let lane = pipe.lane(to);
        let gone = lane.queue.len() - kept;
        lane.queue.truncate(kept);
        lane.last_us = lane.queue.back().map_or(now_us, |(at_us, _)| *at_us);
        self.broken_off += gone as u64;
        Some(self.put(now_us, id, to, Chunk::End))
    }

    fn close_dead(&mut self, id: PipeId, end: End) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        pipe.open[end as usize] = false;
        *pipe.lane(end) = Lane::default();
        if !pipe.open[end.other() as usize] {
            self.pipes.remove(&id);
        }
    }

    pub fn cut(&mut self, from: Node, to: Node) {
        if from != to {
            *self.cuts.entry((from, to)).or_default() += 1;
        }
    }

    /// One fault less; gives what can arrive again.
    pub fn mend(&mut self, now_us: Micros, from: Node, to: Node) -> Vec<Due> {
        let Some(count) = self.cuts.get_mut(&(from, to)) else { return Vec::new() };
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        self.cuts.remove(&(from, to));
        self.go_on(now_us)
    }

    /// No fault is left; gives what can arrive again.
    pub fn mend_all(&mut self, now_us: Micros) -> Vec<Due> {
        self.cuts.clear();
        self.lossy.clear();
        self.go_on(now_us)
    }

    /// Gives all that waits and can pass now.
    fn go_on(&mut self, now_us: Micros) -> Vec<Due> {
        let mut due = Vec::new();
        for (&id, pipe) in &mut self.pipes {
            for to in [End::Caller, End::Called] {
                let (from_node, to_node) = (pipe.at(to.other()), pipe.at(to));
                let lane = &mut pipe.lanes[to as usize];
                if lane.waits && !self.cuts.contains_key(&(from_node, to_node)) {
                    lane.waits = false;
                    // What is due later arrives by its own time.
                    let late = lane.queue.iter_mut().take_while(|(at_us, _)| *at_us <= now_us);
                    for (number, (at_us, _)) in late.enumerate() {
                        *at_us = now_us + number as u64;
                        due.push((*at_us, id, to));
                    }
                    let passed = lane.queue.iter().map(|(at_us, _)| *at_us).max();
                    lane.last_us = lane.last_us.max(passed.unwrap_or(0));
                }
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(network: &mut Network, id: PipeId, to: End, now_us: Micros) -> usize {
        std::iter::from_fn(|| network.arrive(now_us, id, to)).count()
    }

    #[test]
    fn what_is_cut_off_waits_and_what_breaks_is_lost() {
        let mut network = Network::new(1, 100);
        let id = network.connect(0, 1, Port::Client);
        for _ in 0..50 {
            network.send(0, id, End::Caller, Bytes::from_static(b"x")).unwrap();
        }
        network.cut(0, 1);
        network.cut(0, 1);
        assert!(!network.reaches(1, 0) && !network.is_cut(1, 0));
        assert_eq!(arrivals(&mut network, id, End::Called, MS * 1000), 0);
        assert!(network.mend(MS * 1000, 0, 1).is_empty(), "another fault keeps it cut");
        let due = network.mend(MS * 1000, 0, 1);
        assert_eq!(due.len(), 50);
        assert!(due.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(arrivals(&mut network, id, End::Called, MS * 1001), 50);
        for _ in 0..50 {
            network.send(MS * 2000, id, End::Caller, Bytes::from_static(b"x")).unwrap();
        }
        let due = network.break_between(MS * 2000, 1, 0);
        assert_eq!(due.len(), 2);
        let arrived = arrivals(&mut network, id, End::Called, MS * 3000);
        assert!((1..51).contains(&arrived), "{arrived}: some of it, and the end");
        assert!(network.close(0, id, End::Called).is_some());
        assert!(network.send(0, id, End::Called, Bytes::new()).is_none());
        assert!(network.close(0, id, End::Caller).is_none() && network.pipes.is_empty());
    }
}
