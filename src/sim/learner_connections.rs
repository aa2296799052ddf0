//! Learner connections: performs what `member` decides about them, as `server::peers` and `net::quorum`.

use super::check::Seen;
use super::network::{Chunk, Holder, ProcessId};
use super::plan::{MS, Micros};
use super::process::{LearnerConnection, server_at, tree_options};
use super::trace::short;
use super::world::World;
use crate::member::dial::{AttemptError, Dial, DialStep};
use crate::member::opening::ConnectionKind;
use crate::member::quorum_connection::{QuorumConnection, QuorumEvent};
use crate::member::quorum_outbox::{Next, OutboxEvent, QuorumOutbox, TreeToSend};
use crate::member::{Action, Input, QuorumPeer};
use crate::tree::freeze::Frozen;
use crate::zab::{LearnerConnectionId, Packet};
use bytes::{Bytes, BytesMut};

/// An attempt that does not reach the other machine tries again within this.
const SILENT_RETRY_US: Micros = 20 * MS;

impl World {
    pub fn perform_for_learners(&mut self, at: ProcessId, action: Action) {
        let learner = QuorumPeer::Learner;
        match action {
            Action::SendToLearner { connection, bytes } => {
                self.put(at, learner(connection), bytes);
            }
            Action::SendTree { connection, frozen, .. } => {
                self.send_tree(at, learner(connection), frozen);
            }
            Action::CloseLearner { connection } => self.give_up(at, learner(connection)),
            Action::DialLeader { dial, addresses } => self.dial_leader(at, dial, &addresses),
            Action::SendToLeader { bytes } => {
                let process = self.process(at);
                let dial = process.and_then(|process| process.learner_connections.leader_dial);
                if let Some(dial) = dial {
                    self.put(at, QuorumPeer::Leader { dial }, bytes);
                }
            }
            Action::CloseLeader => self.close_leader(at),
            // Every server listens everywhere here; the rest is the driver's.
            _ => {}
        }
    }

    fn see_packets(&mut self, at: ProcessId, peer: QuorumPeer, bytes: &Bytes) {
        let (server, durable) = (at.server, self.servers[at.server].durable);
        let Some(told) = self.process(at).map(|process| process.leader_epoch) else { return };
        let mut bytes = BytesMut::from(&bytes[..]);
        while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
            let packet = &packet;
            self.note(server, || format!("> to {peer:?} {}", short(&format!("{packet:x?}"))));
            self.see(&match peer {
                QuorumPeer::Leader { .. } => Seen::ToLeader { server, packet, durable, told },
                QuorumPeer::Learner(_) => Seen::ToLearner { server, packet, durable },
            });
        }
    }

    pub fn come_in(&mut self, at: ProcessId, incoming: Input) {
        if let Some(process) = self.process(at) {
            process.events.push(incoming);
            self.wake_driver(at);
        }
    }

    fn learner_connection(
        &mut self,
        at: ProcessId,
        peer: QuorumPeer,
    ) -> Option<&mut LearnerConnection> {
        self.process(at)?.learner_connections.all.get_mut(&peer)
    }

    fn put(&mut self, at: ProcessId, peer: QuorumPeer, bytes: Bytes) {
        self.see_packets(at, peer, &bytes);
        let Some(connection) = self.learner_connection(at, peer) else { return };
        if connection.outbox.put(vec![bytes]) {
            self.send_queued(at, peer);
        } else {
            self.give_up(at, peer);
        }
    }

    fn send_tree(&mut self, at: ProcessId, peer: QuorumPeer, frozen: Frozen) {
        self.note(at.server, || format!("> tree {} to {peer:?}", frozen.zxid));
        let now_ms = self.now_us / MS;
        let Some(process) = self.process(at) else { return };
        let tree = TreeToSend { shared: process.shared.clone(), frozen, learner: None };
        let mut events = Vec::new();
        match self.learner_connection(at, peer) {
            Some(connection) => connection.outbox.put_tree(tree, now_ms, &mut events),
            None => events.push(OutboxEvent::TreeEnded(frozen)),
        }
        self.take_sent(at, peer, events);
        self.send_queued(at, peer);
    }

    /// Sends what the outbox gives, up to a tree, whose pieces take their time.
    fn send_queued(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        loop {
            let Some(connection) = self.learner_connection(at, peer) else { return };
            let Some(end) = connection.end.filter(|_| !connection.outbox.is_in_tree()) else {
                return;
            };
            let Next::Bytes(all) = connection.outbox.next(now_ms) else { return };
            let begins_tree = connection.outbox.is_in_tree();
            all.into_iter().for_each(|bytes| self.send(end, bytes));
            if begins_tree {
                return self.do_within(50, 6000, move |world| world.send_piece(at, peer));
            }
        }
    }

    /// The next piece of a tree goes to a learner.
    fn send_piece(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let Some(connection) = self.learner_connection(at, peer) else { return };
        let Some(end) = connection.end else { return };
        let Next::Piece(tree) = connection.outbox.next(now_ms) else { return };
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        let piece = tree.piece(&mut bytes);
        let len = bytes.len();
        let taken = connection.outbox.take_piece(piece, len, &mut bytes, now_ms, &mut events);
        let is_in_tree = connection.outbox.is_in_tree();
        self.take_sent(at, peer, events);
        if taken.is_err() {
            return self.give_up(at, peer);
        }
        self.send(end, bytes.into());
        if is_in_tree {
            self.do_within(20, 2000, move |world| world.send_piece(at, peer));
        } else {
            self.send_queued(at, peer);
        }
    }

    fn take_sent(&mut self, at: ProcessId, peer: QuorumPeer, events: Vec<OutboxEvent>) {
        for event in events {
            let is_tree = matches!(event, OutboxEvent::TreeEnded(_));
            let sent = Input::sent(peer, event);
            match is_tree {
                true => self.do_within(10, 100, move |world| world.report(at, sent)),
                false => self.come_in(at, sent),
            }
        }
    }

    /// Closes a connection, and reports it.
    fn give_up(&mut self, at: ProcessId, peer: QuorumPeer) {
        let connection = self.learner_connection(at, peer);
        if let Some(end) = connection.and_then(|connection| connection.end) {
            self.close(end);
        }
        self.lose_connection(at, peer);
    }

    /// A connection is gone. The leader's is forgotten once what came over it has been taken up.
    fn lose_connection(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let mut events = Vec::new();
        if let Some(connection) = self.learner_connection(at, peer) {
            connection.outbox.close(now_ms, &mut events);
            if connection.end.is_some() && !connection.receiving.is_opened() {
                self.trace.count("exchanges broken off");
            }
        }
        if matches!(peer, QuorumPeer::Learner(_))
            && let Some(process) = self.process(at)
        {
            process.learner_connections.all.remove(&peer);
        }
        self.take_sent(at, peer, events);
        self.come_in(at, Input::Disconnected { from: peer, why: "ended".to_owned() });
    }

    fn close_leader(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let connections = &mut process.learner_connections;
        let Some(dial) = connections.leader_dial.take() else { return };
        let connection = connections.all.remove(&QuorumPeer::Leader { dial });
        if let Some(end) = connection.and_then(|connection| connection.end) {
            self.close(end);
        }
    }

    fn dial_leader(&mut self, at: ProcessId, dial: u64, addresses: &[(String, u16)]) {
        self.close_leader(at);
        let now_ms = self.now_us / MS;
        let options = tree_options(self.climate().seed ^ at.server as u64);
        let peer = QuorumPeer::Leader { dial };
        let Some(to) = server_at(addresses) else {
            let why = "no address".to_owned();
            return self.come_in(at, Input::Disconnected { from: peer, why });
        };
        let opening = self.climate().openings().dialed(ConnectionKind::Learner, addresses);
        let Some(process) = self.process(at) else { return };
        process.learner_connections.leader_dial = Some(dial);
        let patience = process.patience;
        let dialing = Some((to, Dial::new(vec![format!("server {to}")], patience, now_ms)));
        let receiving = QuorumConnection::dialed(dial, opening, options, now_ms);
        let outbox = QuorumOutbox::default();
        let connection = LearnerConnection { end: None, dialing, receiving, outbox };
        process.learner_connections.all.insert(peer, connection);
        self.do_within(50, 1000, move |world| world.go_on_dialing(at, peer));
    }

    /// Does what a dial of the leader is to do next.
    fn go_on_dialing(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        loop {
            let Some(connection) = self.learner_connection(at, peer) else { return };
            let Some((_, dialing)) = &mut connection.dialing else { return };
            match dialing.next(now_ms) {
                DialStep::Attempt { address, until_ms } => {
                    let longest_us = if self.rng.one_in(30) { 200 * MS } else { 2 * MS };
                    self.do_within(50, longest_us, move |world| {
                        world.attempt(at, peer, address, until_ms);
                    });
                }
                DialStep::Wait { until_ms: Some(until_ms) } => {
                    return self.do_at(until_ms * MS, move |world| world.go_on_dialing(at, peer));
                }
                DialStep::Wait { until_ms: None } => return,
                DialStep::GiveUp(error) => {
                    self.note(at.server, || format!("* leader: {error}"));
                    return self.give_up(at, peer);
                }
            }
        }
    }

    /// An attempt to reach the leader is answered, or not yet.
    fn attempt(&mut self, at: ProcessId, peer: QuorumPeer, address: usize, until_ms: u64) {
        let now_ms = self.now_us / MS;
        let dialing = self.learner_connection(at, peer).and_then(|found| found.dialing.as_ref());
        let Some(&(to, _)) = dialing else { return };
        let is_there = self.net.reaches(at.server, to);
        let error = match self.servers[to].process {
            _ if until_ms <= now_ms => AttemptError::Silent,
            Some(_) if is_there => return self.connect_to_leader(at, to, peer),
            None if is_there => AttemptError::Refused("refused".to_owned()),
            _ => {
                let at_us = (self.now_us + self.rng.below(SILENT_RETRY_US)).min(until_ms * MS);
                return self.do_at(at_us, move |world| world.attempt(at, peer, address, until_ms));
            }
        };
        if let Some(connection) = self.learner_connection(at, peer)
            && let Some((_, dialing)) = &mut connection.dialing
        {
            dialing.attempt_failed(address, error, now_ms);
            self.go_on_dialing(at, peer);
        }
    }

    fn connect_to_leader(&mut self, at: ProcessId, to: usize, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let there = self.process_id(to);
        let Some(process) = self.process(there) else { return };
        process.learner_connections.accepted += 1;
        let connection = LearnerConnectionId(process.learner_connections.accepted);
        let learner = QuorumPeer::Learner(connection);
        let end = self.net.connect(
            (at.server, Holder::LearnerConnection(at, peer)),
            (to, Holder::LearnerConnection(there, learner)),
        );
        let opening = self.climate().openings().accepted(ConnectionKind::Learner);
        let receiving = QuorumConnection::accepted(connection, opening, now_ms);
        let (end_there, outbox) = (Some(end.other()), QuorumOutbox::default());
        let accepted = LearnerConnection { end: end_there, dialing: None, receiving, outbox };
        let Some(process) = self.process(there) else { return };
        process.learner_connections.all.insert(learner, accepted);
        let address = format!("server {}", at.server);
        self.come_in(there, Input::LearnerConnected { connection, address });
        self.receive(there, learner, &[]);
        self.check_hello(there, learner);
        if let Some(connection) = self.learner_connection(at, peer) {
            (connection.end, connection.dialing) = (Some(end), None);
            self.receive(at, peer, &[]);
        }
    }

    /// A learner must have sent its hello by now, or has until later.
    fn check_hello(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let Some(connection) = self.learner_connection(at, peer) else { return };
        if let Err(error) = connection.receiving.check_deadline(now_ms) {
            self.note(at.server, || format!("* {peer:?}: {error}"));
            return self.give_up(at, peer);
        }
        if let Some(deadline_ms) = connection.receiving.deadline_ms() {
            self.do_at(deadline_ms * MS, move |world| world.check_hello(at, peer));
        }
    }

    pub fn learner_connection_receives(&mut self, at: ProcessId, peer: QuorumPeer, chunk: Chunk) {
        match chunk {
            Chunk::Bytes(bytes) => self.receive(at, peer, &bytes),
            Chunk::End => self.lose_connection(at, peer),
        }
    }

    fn receive(&mut self, at: ProcessId, peer: QuorumPeer, bytes: &[u8]) {
        let now_ms = self.now_us / MS;
        let Some(connection) = self.learner_connection(at, peer) else { return };
        let mut events = Vec::new();
        let was_opened = connection.receiving.is_opened();
        let received = connection.receiving.receive(bytes, now_ms, &mut events);
        connection.outbox.put_opening(&connection.receiving.take_output());
        if connection.receiving.is_opened() {
            connection.outbox.open();
        }
        let is_opened_now = !was_opened && connection.receiving.is_opened();
        if is_opened_now && !bytes.is_empty() {
            self.trace.count("exchanges before a protocol");
        }
        events.into_iter().for_each(|event| self.take_received(at, peer, event));
        match received {
            Ok(()) => self.send_queued(at, peer),
            Err(error) => self.fail("panic", format!("{} receives {error}", at.server)),
        }
    }

    fn take_received(&mut self, at: ProcessId, from: QuorumPeer, event: QuorumEvent) {
        if let Some(input) = Input::received(from, event) {
            self.come_in(at, input);
        }
    }
}
