//! Learner connections on the simulated network: as `server::peers` and `net::quorum`.

use super::check::Seen;
use super::network::{Chunk, End, PipeId, Port};
use super::plan::{MS, Micros};
use super::server::{TICK_TIME_MS, tree_options};
use super::world::{Event, Of, World};
use crate::member::awaiting_hello::AwaitingHello;
use crate::member::dial::{AttemptError, Dial, DialStep, Patience};
use crate::member::opening::NoOpening;
use crate::member::quorum_connection::{QuorumConnection, QuorumEvent};
use crate::member::quorum_outbox::{Next, OutboxEvent, QuorumOutbox, TreeToSend};
use crate::member::{Action, Input, QuorumPeer, election_connections};
use crate::tree::freeze::Frozen;
use crate::zab::{LearnerConnectionId, Packet};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a leader is called, as zoo.cfg would say it.
const PATIENCE: Patience = Patience {
    silence: Duration::from_millis(5 * TICK_TIME_MS),
    refusals: Duration::from_millis(300),
    others: None,
};
/// An attempt that finds nothing of the other machine tries again within this.
const SILENT_RETRY_US: Micros = 20 * MS;

/// One end of a learner connection.
pub struct Connection {
    /// `None`: it is not made yet.
    pipe: Option<PipeId>,
    receiving: QuorumConnection,
    outbox: QuorumOutbox,
}

impl Connection {
    fn new(pipe: Option<PipeId>, receiving: QuorumConnection) -> Self {
        Self { pipe, receiving, outbox: QuorumOutbox::default() }
    }
}

/// The leader, as its learner reaches it.
pub struct Leader {
    pub dial: u64,
    to: usize,
    dialing: Dial,
    connection: Connection,
}

#[derive(Default)]
pub struct QuorumConnections {
    learners: BTreeMap<LearnerConnectionId, Connection>,
    awaiting_hello: AwaitingHello<()>,
    next_connection: u64,
    pub leader: Option<Leader>,
}

impl QuorumConnections {
    fn leader_mut(&mut self, dial: u64) -> Option<&mut Leader> {
        self.leader.as_mut().filter(|leader| leader.dial == dial)
    }

    fn get(&mut self, peer: QuorumPeer) -> Option<&mut Connection> {
        match peer {
            QuorumPeer::Learner(connection) => self.learners.get_mut(&connection),
            QuorumPeer::Leader { dial } => Some(&mut self.leader_mut(dial)?.connection),
        }
    }

    fn peer_at(&self, pipe: PipeId, end: End) -> Option<QuorumPeer> {
        let is_at = |connection: &Connection| connection.pipe == Some(pipe);
        match end {
            End::Called => {
                let found = self.learners.iter().find(|(_, connection)| is_at(connection));
                found.map(|(&connection, _)| QuorumPeer::Learner(connection))
            }
            End::Caller => {
                let leader = self.leader.as_ref().filter(|leader| is_at(&leader.connection));
                leader.map(|leader| QuorumPeer::Leader { dial: leader.dial })
            }
        }
    }
}

/// The server that has these addresses: hosts are named `host<server>`.
pub fn server_at(addresses: &[(String, u16)]) -> Option<usize> {
    addresses.first()?.0.strip_prefix("host")?.parse().ok()
}

const fn end_of(peer: QuorumPeer) -> End {
    match peer {
        QuorumPeer::Learner(_) => End::Called,
        QuorumPeer::Leader { .. } => End::Caller,
    }
}

impl World {
    /// Performs an action that concerns other servers.
    pub fn perform_for_connections(&mut self, of: Of, action: Action) {
        let server = of.server;
        match action {
            Action::SendToLearner { connection, bytes } => {
                self.see_packets(server, &bytes, false);
                self.put(of, QuorumPeer::Learner(connection), bytes);
            }
            Action::SendTree { connection, frozen, .. } => self.send_tree(of, connection, frozen),
            Action::CloseLearner { connection } => {
                self.give_up(of, QuorumPeer::Learner(connection))
            }
            Action::DialLeader { dial, addresses } => self.call(of, dial, &addresses),
            Action::SendToLeader { bytes } => {
                self.see_packets(server, &bytes, true);
                let Some(process) = self.process(of) else { return };
                let Some(dial) = process.quorum.leader.as_ref().map(|leader| leader.dial) else {
                    return;
                };
                self.put(of, QuorumPeer::Leader { dial }, bytes);
            }
            Action::CloseLeader => self.hang_up(of),
            Action::SendNotification { to, message } => {
                self.step_wires(of, election_connections::Input::Send { to, message });
            }
            Action::DialElectionPorts => {
                self.step_wires(of, election_connections::Input::DialAll);
            }
            Action::DialElectionPort { to } => {
                self.step_wires(of, election_connections::Input::Dial { to });
            }
            Action::SetElectionAddresses(addresses) => {
                self.step_wires(of, election_connections::Input::SetPeers(addresses));
            }
            // Every server listens everywhere here; the rest is the driver's.
            _ => {}
        }
    }

    fn see_packets(&mut self, server: usize, bytes: &Bytes, goes_up: bool) {
        let durable = self.servers[server].durable;
        let told = self.servers[server].process.as_ref().map(|process| process.told);
        let Some(told) = told else { return };
        let mut bytes = BytesMut::from(&bytes[..]);
        while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
            self.note(server, || {
                let to = if goes_up { "leader" } else { "learner" };
                format!("> to {to} {}", super::driver::short(&format!("{packet:x?}")))
            });
            let packet = &packet;
            self.see(&if goes_up {
                Seen::ToLeader { server, packet, durable, told }
            } else {
                Seen::ToLearner { server, packet, durable }
            });
        }
    }

    pub fn come_in(&mut self, of: Of, incoming: Input) {
        if let Some(process) = self.process(of) {
            process.incoming.push_back(incoming);
            self.wake_driver(of);
        }
    }

    fn put(&mut self, of: Of, peer: QuorumPeer, bytes: Bytes) {
        let Some(process) = self.process(of) else { return };
        let Some(connection) = process.quorum.get(peer) else { return };
        if !connection.outbox.put(vec![bytes]) {
            return self.give_up(of, peer);
        }
        self.send_queued(of, peer);
    }

    pub fn send_tree(&mut self, of: Of, connection: LearnerConnectionId, frozen: Frozen) {
        self.note(of.server, || format!("> tree {} to {connection:?}", frozen.zxid));
        let (peer, now_ms) = (QuorumPeer::Learner(connection), self.now_us / MS);
        let Some(process) = self.process(of) else { return };
        let tree = TreeToSend { shared: process.shared.clone(), frozen, learner: None };
        let mut events = Vec::new();
        match process.quorum.get(peer) {
            Some(connection) => connection.outbox.put_tree(tree, now_ms, &mut events),
            None => events.push(OutboxEvent::TreeEnded(frozen)),
        }
        self.take_sent(of, peer, events);
        self.send_queued(of, peer);
    }

    /// Sends what the outbox gives; pieces of a tree take their time.
    fn send_queued(&mut self, of: Of, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        loop {
            let Some(process) = self.process(of) else { return };
            let Some(connection) = process.quorum.get(peer) else { return };
            let Some(pipe) = connection.pipe else { return };
            if connection.outbox.is_in_tree() {
                return; // Its next piece has been asked for.
            }
            match connection.outbox.next(now_ms) {
                Next::Nothing | Next::Piece(_) => return,
                Next::Bytes(all) => {
                    let begins_tree = connection.outbox.is_in_tree();
                    all.into_iter().for_each(|bytes| self.send(pipe, end_of(peer), bytes));
                    if begins_tree {
                        return self.ask_within(50, 6000, Event::TreePiece(of, peer));
                    }
                }
            }
        }
    }

    /// The next piece of a tree goes to a learner.
    pub fn send_piece(&mut self, of: Of, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let Some(process) = self.process(of) else { return };
        let Some(connection) = process.quorum.get(peer) else { return };
        let Some(pipe) = connection.pipe else { return };
        let Next::Piece(tree) = connection.outbox.next(now_ms) else { return };
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        let piece = tree.piece(&mut bytes);
        let piece = (piece, bytes.len());
        let taken = connection.outbox.take_piece(piece, &mut bytes, now_ms, &mut events);
        let is_in_tree = connection.outbox.is_in_tree();
        self.take_sent(of, peer, events);
        if taken.is_err() {
            return self.give_up(of, peer);
        }
        self.send(pipe, end_of(peer), bytes.into());
        if is_in_tree {
            self.ask_within(20, 2000, Event::TreePiece(of, peer));
        } else {
            self.send_queued(of, peer);
        }
    }

    fn take_sent(&mut self, of: Of, peer: QuorumPeer, events: Vec<OutboxEvent>) {
        for event in events {
            match event {
                OutboxEvent::Progress => self.take_received(of, peer, QuorumEvent::Progress),
                OutboxEvent::TreeEnded(frozen) => {
                    self.ask_within(10, 100, Event::Report(of, Input::TreeSent(frozen)));
                }
            }
        }
    }

    /// Closes a connection, and says so.
    fn give_up(&mut self, of: Of, peer: QuorumPeer) {
        let Some(process) = self.process(of) else { return };
        if let Some(pipe) = process.quorum.get(peer).and_then(|connection| connection.pipe) {
            self.close(pipe, end_of(peer));
        }
        self.lose_connection(of, peer);
    }

    /// A connection is no more. The leader's is forgotten once what came over it has been taken up.
    fn lose_connection(&mut self, of: Of, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let mut events = Vec::new();
        let Some(process) = self.process(of) else { return };
        if let Some(connection) = process.quorum.get(peer) {
            connection.outbox.close(now_ms, &mut events);
        }
        if let QuorumPeer::Learner(connection) = peer {
            process.quorum.awaiting_hello.remove(connection);
            process.quorum.learners.remove(&connection);
        }
        self.take_sent(of, peer, events);
        self.come_in(of, Input::Disconnected { from: peer, why: "ended".to_owned() });
    }

    fn hang_up(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        if let Some(leader) = process.quorum.leader.take()
            && let Some(pipe) = leader.connection.pipe
        {
            self.close(pipe, End::Caller);
        }
    }

    fn call(&mut self, of: Of, dial: u64, addresses: &[(String, u16)]) {
        self.hang_up(of);
        let now_ms = self.now_us / MS;
        let options = tree_options(self.climate().seed ^ of.server as u64);
        let Some(to) = server_at(addresses) else {
            let (from, why) = (QuorumPeer::Leader { dial }, "no address".to_owned());
            return self.come_in(of, Input::Disconnected { from, why });
        };
        let Some(process) = self.process(of) else { return };
        let dialing = Dial::new(vec![format!("server {to}")], PATIENCE, now_ms);
        let receiving = QuorumConnection::dialed(dial, Box::new(NoOpening), options, now_ms);
        let connection = Connection::new(None, receiving);
        process.quorum.leader = Some(Leader { dial, to, dialing, connection });
        self.ask_within(50, 1000, Event::Dial { of, dial });
    }

    /// Does what a call of the leader is to do next.
    pub fn dial(&mut self, of: Of, dial: u64) {
        let now_ms = self.now_us / MS;
        loop {
            let Some(process) = self.process(of) else { return };
            let Some(leader) = process.quorum.leader_mut(dial) else { return };
            if leader.connection.pipe.is_some() {
                return;
            }
            match leader.dialing.next(now_ms) {
                DialStep::Attempt { address, until_ms } => {
                    let attempt = Event::DialAnswer { of, dial, address, until_ms };
                    let is_slow = self.rng.one_in(30);
                    let longest_us = if is_slow { 200 * MS } else { 2 * MS };
                    self.ask_within(50, longest_us, attempt);
                }
                DialStep::Wait { until_ms: Some(until_ms) } => {
                    return self.ask(until_ms * MS, Event::Dial { of, dial });
                }
                DialStep::Wait { until_ms: None } => return,
                DialStep::GiveUp(error) => {
                    self.note(of.server, || format!("* leader: {error}"));
                    return self.give_up(of, QuorumPeer::Leader { dial });
                }
            }
        }
    }

    /// What became of an attempt, if anything yet.
    pub fn dial_answer(&mut self, of: Of, dial: u64, (address, until_ms): (usize, u64)) {
        let (now_ms, now_us) = (self.now_us / MS, self.now_us);
        let Some(process) = self.process(of) else { return };
        let Some(leader) = process.quorum.leader_mut(dial) else { return };
        let to = leader.to;
        let is_there = self.net.reaches(of.server, to);
        let error = match self.servers[to].process {
            _ if until_ms <= now_ms => AttemptError::Silent,
            Some(_) if is_there => return self.reach(of, to, dial),
            None if is_there => AttemptError::Refused("refused".to_owned()),
            _ => {
                let at_us = (now_us + self.rng.below(SILENT_RETRY_US)).min(until_ms * MS);
                return self.ask(at_us, Event::DialAnswer { of, dial, address, until_ms });
            }
        };
        let Some(process) = self.process(of) else { return };
        let Some(leader) = process.quorum.leader_mut(dial) else { return };
        leader.dialing.attempt_failed(address, error, now_ms);
        self.dial(of, dial);
    }

    fn reach(&mut self, of: Of, to: usize, dial: u64) {
        let now_ms = self.now_us / MS;
        let pipe = self.net.connect(of.server, to, Port::Quorum { dial });
        let there = self.of(to);
        if let Some(process) = self.process(there) {
            process.quorum.next_connection += 1;
            let connection = LearnerConnectionId(process.quorum.next_connection);
            let oldest = process.quorum.awaiting_hello.admit(connection, ());
            let receiving = QuorumConnection::accepted(connection, Box::new(NoOpening), now_ms);
            process.quorum.learners.insert(connection, Connection::new(Some(pipe), receiving));
            if let Some((oldest, ())) = oldest {
                self.give_up(there, QuorumPeer::Learner(oldest));
            }
            self.come_in(there, Input::LearnerConnected { connection });
            self.receive(there, QuorumPeer::Learner(connection), &[]);
            self.check_hello(there, connection);
        }
        let Some(process) = self.process(of) else { return };
        let peer = QuorumPeer::Leader { dial };
        let Some(connection) = process.quorum.get(peer) else { return };
        connection.pipe = Some(pipe);
        self.receive(of, peer, &[]);
    }

    /// A learner must have sent its hello by now, or has until later.
    pub fn check_hello(&mut self, of: Of, connection: LearnerConnectionId) {
        let (peer, now_ms) = (QuorumPeer::Learner(connection), self.now_us / MS);
        let Some(process) = self.process(of) else { return };
        let Some(held) = process.quorum.get(peer) else { return };
        if let Err(error) = held.receiving.check_deadline(now_ms) {
            self.note(of.server, || format!("* {connection:?}: {error}"));
            return self.give_up(of, peer);
        }
        if let Some(deadline_ms) = held.receiving.deadline_ms() {
            self.ask(deadline_ms * MS, Event::HelloDue(of, connection));
        }
    }

    /// From a learner, or from the leader.
    pub fn on_quorum_chunk(&mut self, of: Of, pipe: PipeId, end: End, chunk: Chunk) {
        let Some(process) = self.process(of) else { return };
        let Some(peer) = process.quorum.peer_at(pipe, end) else { return };
        match chunk {
            Chunk::Bytes(bytes) => self.receive(of, peer, &bytes),
            Chunk::End => self.lose_connection(of, peer),
        }
    }

    fn receive(&mut self, of: Of, peer: QuorumPeer, bytes: &[u8]) {
        let now_ms = self.now_us / MS;
        let Some(process) = self.process(of) else { return };
        let Some(connection) = process.quorum.get(peer) else { return };
        let mut events = Vec::new();
        let received = connection.receiving.receive(bytes, now_ms, &mut events);
        connection.outbox.put_opening(&connection.receiving.take_output());
        if connection.receiving.is_opened() {
            connection.outbox.open();
        }
        if let QuorumPeer::Learner(id) = peer
            && connection.receiving.has_spoken()
        {
            process.quorum.awaiting_hello.remove(id);
        }
        events.into_iter().for_each(|event| self.take_received(of, peer, event));
        match received {
            Ok(()) => self.send_queued(of, peer),
            Err(error) => self.fail("panic", format!("{} hears {error}", of.server)),
        }
    }

    fn take_received(&mut self, of: Of, from: QuorumPeer, event: QuorumEvent) {
        let input = match (from, event) {
            (_, QuorumEvent::Packets(packets)) => Input::Packets { from, packets },
            (_, QuorumEvent::Progress) => Input::Progress { from },
            (QuorumPeer::Leader { dial }, QuorumEvent::Tree { zxid, tree }) => {
                Input::LeaderTree { dial, zxid, tree }
            }
            // A learner sends none.
            (QuorumPeer::Learner(_), QuorumEvent::Tree { .. }) => return,
        };
        self.come_in(of, input);
    }
}
