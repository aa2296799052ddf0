//! Connections: bytes in order, each connection at its own pace, until one end closes it or it breaks.
//!
//! Nothing is lost on a connection that stays open, as with TCP: bytes that are cut off wait. A machine that stands still
//! and a cut that is healed show as delay; loss shows as a connection that broke.

use super::plan::{MS, Micros};
use crate::member::QuorumPeer;
use crate::member::election_connections::ConnectionId;
use crate::model::Rng;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// A machine: the servers first, then the clients.
pub type Node = usize;

/// A process of a server. Work scheduled for one process never reaches the next one of the same server.
#[derive(Clone, Copy, Debug)]
pub struct ProcessId {
    pub server: usize,
    pub number: u64,
}

/// One end of a connection; the end that dialed is even.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct EndId(u64);

impl EndId {
    pub const fn other(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// What an end of a connection belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Holder {
    Client(usize),
    /// A server's end of a client connection.
    ClientConnection(ProcessId),
    LearnerConnection(ProcessId, QuorumPeer),
    ElectionConnection(ProcessId, ConnectionId),
}

#[derive(Clone, Debug)]
pub enum Chunk {
    Bytes(Bytes),
    /// The other end has closed.
    End,
}

/// Where an end of a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Attached {
    pub node: Node,
    pub holder: Holder,
}

struct End {
    node: Node,
    /// Where the other end is.
    peer: Node,
    holder: Holder,
    incoming: VecDeque<(Micros, Chunk)>,
    last_us: Micros,
    /// A chunk is due and a cut keeps it from arriving.
    waits: bool,
}

/// When a chunk will arrive, and at which end.
pub type Due = (Micros, EndId);

#[derive(Default)]
pub struct Network {
    /// The ends that are open.
    ends: BTreeMap<EndId, End>,
    connections: u64,
    /// How many faults keep bytes from passing from one node to another.
    cuts: BTreeMap<(Node, Node), u32>,
    /// Until when much is lost between two nodes, the smaller first.
    lossy: BTreeMap<(Node, Node), Micros>,
    /// Number of chunks that were sent again because they were lost.
    pub lost: u64,
    /// Number of chunks that were on their way when their connection broke.
    pub broken_off: u64,
    latency_us: Micros,
    rng: Rng,
}

impl Network {
    pub fn new(seed: u64, latency_us: Micros) -> Self {
        Self { latency_us, rng: Rng::new(seed, 3), ..Self::default() }
    }

    /// Until `until_us` much of what these two nodes send each other is lost, and sent again.
    pub fn lose_much(&mut self, one: Node, other: Node, until_us: Micros) {
        self.lossy.insert((one.min(other), one.max(other)), until_us);
    }

    /// How long a chunk takes that is sent now.
    fn delay_between(&mut self, now_us: Micros, one: Node, other: Node) -> Micros {
        let until_us = self.lossy.get(&(one.min(other), one.max(other)));
        if until_us.is_some_and(|&until_us| now_us < until_us) && self.rng.one_in(3) {
            self.lost += 1;
            // Each time it is sent again after a longer pause.
            return self.rng.range(20, 300) * MS;
        }
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

    /// Whether a connection can be made.
    pub fn reaches(&self, from: Node, to: Node) -> bool {
        !self.cuts.contains_key(&(from, to)) && !self.cuts.contains_key(&(to, from))
    }

    /// Where the other end of a connection is.
    pub fn peer(&self, end: EndId) -> Option<Node> {
        self.ends.get(&end).map(|end| end.peer)
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn holder(&self, end: EndId) -> Option<Holder> {
        self.ends.get(&end).map(|end| end.holder)
    }

    /// Makes a connection; gives the end of the node that dialed.
    pub fn connect(&mut self, dialing: Attached, accepting: Attached) -> EndId {
        let id = EndId(2 * self.connections);
        self.connections += 1;
        let ends = [(id, dialing, accepting.node), (id.other(), accepting, dialing.node)];
        for (id, Attached { node, holder }, peer) in ends {
            let incoming = VecDeque::new();
            self.ends.insert(id, End { node, peer, holder, incoming, last_us: 0, waits: false });
        }
        id
    }

    /// Sends from one end to the other; `None`: one of them is closed.
    pub fn send(&mut self, now_us: Micros, from: EndId, bytes: Bytes) -> Option<Due> {
        self.ends.get(&from)?;
        self.put(now_us, from.other(), Chunk::Bytes(bytes))
    }

    /// Number of bytes that this end has sent and the other end has not read.
    pub fn unread(&self, from: EndId) -> usize {
        let incoming = self.ends.get(&from.other()).map(|end| &end.incoming);
        let len = |(_, chunk): &(Micros, Chunk)| match chunk {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::End => 0,
        };
        incoming.map_or(0, |incoming| incoming.iter().map(len).sum())
    }

    /// Closes one end; bytes that it had sent still arrive.
    pub fn close(&mut self, now_us: Micros, from: EndId) -> Option<Due> {
        self.ends.remove(&from)?;
        self.put(now_us, from.other(), Chunk::End)
    }

    fn put(&mut self, now_us: Micros, to: EndId, chunk: Chunk) -> Option<Due> {
        let &End { node, peer, .. } = self.ends.get(&to)?;
        let delay_us = self.delay_between(now_us, node, peer);
        let end = self.ends.get_mut(&to)?;
        end.last_us = end.last_us.max(now_us + delay_us);
        end.incoming.push_back((end.last_us, chunk));
        Some((end.last_us, to))
    }

    /// The chunk that arrives at this end now, if any. An end that receives the other end's close is closed.
    pub fn arrive(&mut self, now_us: Micros, to: EndId) -> Option<Chunk> {
        let end = self.ends.get_mut(&to)?;
        let is_cut = self.cuts.contains_key(&(end.peer, end.node));
        let (at_us, _) = end.incoming.front()?;
        if is_cut || now_us < *at_us {
            end.waits |= is_cut;
            return None;
        }
        let (_, chunk) = end.incoming.pop_front()?;
        if matches!(chunk, Chunk::End) {
            self.ends.remove(&to);
        }
        Some(chunk)
    }

    /// A machine's process is gone: some of the bytes it had sent are still on their way.
    pub fn die(&mut self, now_us: Micros, node: Node) -> Vec<Due> {
        self.ends.retain(|_, end| end.node != node);
        let others = self.ends_where(|end| end.peer == node);
        others.into_iter().filter_map(|id| self.lose(now_us, id)).collect()
    }

    /// All connections between two nodes break.
    pub fn break_between(&mut self, now_us: Micros, one: Node, other: Node) -> Vec<Due> {
        self.break_some_between(now_us, one, other, |_| true)
    }

    /// The connections between two nodes break whose ends belong to such holders.
    pub fn break_some_between(
        &mut self,
        now_us: Micros,
        one: Node,
        other: Node,
        breaks: impl Fn(Holder) -> bool,
    ) -> Vec<Due> {
        let broken = self.ends_where(|end| {
            let nodes = (end.node, end.peer);
            (nodes == (one, other) || nodes == (other, one)) && breaks(end.holder)
        });
        broken.into_iter().filter_map(|id| self.lose(now_us, id)).collect()
    }

    fn ends_where(&self, is_wanted: impl Fn(&End) -> bool) -> Vec<EndId> {
        self.ends.iter().filter(|(_, end)| is_wanted(end)).map(|(&id, _)| id).collect()
    }

    /// Drops the last of the chunks that are on their way to this end, or all that could not pass, and tells it that the
    /// connection is gone.
    fn lose(&mut self, now_us: Micros, to: EndId) -> Option<Due> {
        let end = self.ends.get_mut(&to)?;
        let is_cut = self.cuts.contains_key(&(end.peer, end.node));
        let kept = if is_cut { 0 } else { self.rng.pick(end.incoming.len() + 1) };
        self.broken_off += (end.incoming.len() - kept) as u64;
        end.incoming.truncate(kept);
        end.last_us = end.incoming.back().map_or(now_us, |(at_us, _)| *at_us);
        self.put(now_us, to, Chunk::End)
    }

    pub fn cut(&mut self, from: Node, to: Node) {
        if from != to {
            *self.cuts.entry((from, to)).or_default() += 1;
        }
    }

    /// Ends one of the faults that cut a node off from another; gives what can arrive again.
    pub fn mend(&mut self, now_us: Micros, from: Node, to: Node) -> Vec<Due> {
        let Some(count) = self.cuts.get_mut(&(from, to)) else { return Vec::new() };
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        self.cuts.remove(&(from, to));
        self.resume(now_us)
    }

    /// Ends all cuts and losses; gives what can arrive again.
    pub fn mend_all(&mut self, now_us: Micros) -> Vec<Due> {
        self.cuts.clear();
        self.lossy.clear();
        self.resume(now_us)
    }

    /// Gives all that waits and can pass now.
    fn resume(&mut self, now_us: Micros) -> Vec<Due> {
        let mut due = Vec::new();
        for (&id, end) in &mut self.ends {
            if !end.waits || self.cuts.contains_key(&(end.peer, end.node)) {
                continue;
            }
            end.waits = false;
            // What is due later arrives by its own time.
            let late = end.incoming.iter_mut().take_while(|(at_us, _)| *at_us <= now_us);
            for (number, (at_us, _)) in late.enumerate() {
                *at_us = now_us + number as u64;
                due.push((*at_us, id));
                end.last_us = end.last_us.max(*at_us);
            }
        }
        due
    }
}
