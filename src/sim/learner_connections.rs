//! Learner connections: performs what `member` decides about them, as `server::peers` and `net::quorum` do.

use super::check::Seen;
use super::network::{Chunk, EndId, Holder, ProcessId};
use super::plan::{MS, Micros};
use super::process::SimLearnerConnection;
use super::world::World;
use crate::member::quorum_connection::QuorumEvent;
use crate::member::quorum_outbox::{Next, OutboxEvent, QUEUED_BYTES_MAX, TreeToSend, cost};
use crate::member::{Action, Input, QuorumPeer};
use crate::tree::freeze::Frozen;
use bytes::{Bytes, BytesMut};

/// The task of a connection that was closed is scheduled within this time.
const CLOSED_LATE_MAX_MS: u64 = 1500;
/// After one read in this many, the task is scheduled late: within [`LATE_READ_MAX_MS`].
const LATE_READ_ONE_IN: u64 = 200;
const LATE_READ_MAX_MS: u64 = 300;

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
            Action::CloseLearner { connection } => self.close_connection(at, learner(connection)),
            Action::DialLeader { dial, addresses, is_needed } => {
                self.dial_leader(at, dial, &addresses, is_needed);
            }
            Action::SendToLeader { bytes } => {
                let process = self.process(at);
                let dial = process.and_then(|process| process.learner_connections.leader_dial);
                if let Some(dial) = dial {
                    self.put(at, QuorumPeer::Leader { dial }, bytes);
                }
            }
            Action::CloseLeader => {
                self.look_for_kept_leader(at);
                self.close_leader(at);
            }
            // A simulated server always listens at all its addresses for other servers.
            Action::ListenForLearners(_) | Action::SetMembers(_) => {}
            Action::MoveClientPort(place) => self.move_client_port(at, place),
            // The driver performs these itself.
            Action::Log(_)
            | Action::Wake(_)
            | Action::WriteSnapshot(_)
            | Action::DiscardSnapshot(_)
            | Action::Answer { .. }
            | Action::LoadTree
            | Action::ReadLog { .. }
            | Action::ChangeConfigFiles(_)
            | Action::Election(_)
            | Action::End(_) => {}
        }
    }

    pub fn learner_connection(
        &mut self,
        at: ProcessId,
        peer: QuorumPeer,
    ) -> Option<&mut SimLearnerConnection> {
        self.process(at)?.learner_connections.all.get_mut(&peer)
    }

    /// Queues bytes for a peer; they are sent at the end of the driver's turn.
    fn put(&mut self, at: ProcessId, peer: QuorumPeer, bytes: Bytes) {
        let bytes = self.say_as_java(at, peer, bytes);
        self.see_packets(at, peer, &bytes);
        if let Some(connection) = self.learner_connection(at, peer) {
            connection.unsent.push(bytes);
        }
    }

    /// Sends what the driver's turn has queued.
    pub fn flush_learner_connections(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let all = process.learner_connections.all.iter();
        let touched = all.filter(|(_, connection)| !connection.unsent.is_empty());
        let touched: Vec<QuorumPeer> = touched.map(|(&peer, _)| peer).collect();
        touched.into_iter().for_each(|peer| self.flush(at, peer));
    }

    fn flush(&mut self, at: ProcessId, peer: QuorumPeer) {
        let limit = self.climate().small_buffers.unwrap_or(QUEUED_BYTES_MAX);
        let Some(connection) = self.learner_connection(at, peer) else { return };
        let mut bytes = std::mem::take(&mut connection.unsent);
        if bytes.is_empty() {
            return;
        }
        self.order_as_java(at, peer, &mut bytes);
        let batch = bytes.iter().map(cost).sum();
        let Some(connection) = self.learner_connection(at, peer) else { return };
        if !connection.outbox.put(bytes) {
            self.trace.count("disconnected with too many unsent bytes");
            return self.close_connection(at, peer);
        }
        if !connection.is_closed {
            let unsent = connection.outbox.unsent();
            self.see(&Seen::Queued { server: at.server, unsent, limit, batch });
        }
        self.send_queued(at, peer);
    }

    fn send_tree(&mut self, at: ProcessId, peer: QuorumPeer, frozen: Frozen) {
        self.note(at.server, || format!("> tree {} to {peer:?}", frozen.zxid));
        self.flush(at, peer);
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

    /// Sends what the outbox gives and the socket takes, up to a tree, whose pieces take their time.
    fn send_queued(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        while self.can_send(at, peer) {
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

    /// Whether the task of a connection is scheduled and its socket takes bytes.
    fn can_send(&mut self, at: ProcessId, peer: QuorumPeer) -> bool {
        let (now_us, room) = (self.now_us, self.climate().small_buffers);
        let Some(connection) = self.servers[at.server].connection(at, peer) else { return false };
        let unread = connection.end.map_or(0, |end| self.net.unread(end));
        connection.is_blocked = room.is_some_and(|room| room <= unread);
        !connection.is_blocked && connection.sleeps_until_us <= now_us
    }

    /// Goes on after the other end has read, or when the task is scheduled again.
    fn go_on_sending(&mut self, at: ProcessId, peer: QuorumPeer) {
        match self.learner_connection(at, peer) {
            Some(connection) if connection.outbox.is_in_tree() => self.send_piece(at, peer),
            _ => self.send_queued(at, peer),
        }
    }

    /// Sends the next piece of a tree to a learner.
    fn send_piece(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        if !self.can_send(at, peer) {
            return;
        }
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
                false => self.report(at, sent),
            }
        }
    }

    /// The driver closes a connection: its handle is dropped, after what was queued in this turn. The connection's task ends when it is
    /// scheduled next, and before that reads what has come until then.
    pub fn close_connection(&mut self, at: ProcessId, peer: QuorumPeer) {
        let is_late = self.climate().late_tasks && self.rng.one_in(2);
        let for_us = if is_late { self.rng.range(1, CLOSED_LATE_MAX_MS) * MS } else { 0 };
        let now_us = self.now_us;
        self.flush(at, peer);
        let Some(connection) = self.learner_connection(at, peer) else { return };
        if std::mem::replace(&mut connection.is_closed, true) {
            return;
        }
        if connection.dialing.is_some() {
            return self.give_up(at, peer);
        }
        self.sleep_until(at, peer, now_us + for_us);
        if !self.sleeps(at, peer) {
            self.give_up(at, peer);
        }
    }

    /// The task of a connection is scheduled again.
    fn wake_connection(&mut self, at: ProcessId, peer: QuorumPeer) {
        if self.is_stalled(at.server) {
            return self.do_soon(move |world| world.wake_connection(at, peer));
        }
        let Some(connection) = self.learner_connection(at, peer) else { return };
        let (end, is_closed) = (connection.end, connection.is_closed);
        if self.sleeps(at, peer) {
            return;
        }
        if let Some(end) = end
            && let Some(chunk) = self.net.arrive(self.now_us, end)
        {
            if is_closed && matches!(chunk, Chunk::Bytes(_)) {
                self.trace.count("read after the close");
            }
            self.learner_connection_reads(at, peer, end, chunk);
        }
        self.go_on_sending(at, peer);
        if is_closed {
            self.give_up(at, peer);
        }
    }

    /// The tasks of a server's learner connections are not scheduled for this time.
    pub fn starve_tasks(&mut self, server: usize, for_us: Micros) {
        self.trace.count("tasks starved");
        let (at, until_us) = (self.process_id(server), self.now_us + for_us);
        let Some(process) = self.process(at) else { return };
        let peers: Vec<QuorumPeer> = process.learner_connections.all.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.sleep_until(at, peer, until_us));
    }

    fn sleep_until(&mut self, at: ProcessId, peer: QuorumPeer, until_us: Micros) {
        if let Some(connection) = self.learner_connection(at, peer)
            && connection.sleeps_until_us < until_us
        {
            connection.sleeps_until_us = until_us;
            self.do_at(until_us, move |world| world.wake_connection(at, peer));
        }
    }

    /// Whether the task of a connection is not scheduled now.
    pub fn sleeps(&mut self, at: ProcessId, peer: QuorumPeer) -> bool {
        let now_us = self.now_us;
        let connection = self.learner_connection(at, peer);
        connection.is_some_and(|connection| now_us < connection.sleeps_until_us)
    }

    /// Ends a connection, and reports that to the driver.
    pub fn give_up(&mut self, at: ProcessId, peer: QuorumPeer) {
        let connection = self.learner_connection(at, peer);
        if let Some(end) = connection.and_then(|connection| connection.end) {
            self.close(end);
        }
        self.lose_connection(at, peer);
    }

    /// Removes a connection that has ended, and reports that to the driver.
    fn lose_connection(&mut self, at: ProcessId, peer: QuorumPeer) {
        let now_ms = self.now_us / MS;
        let mut events = Vec::new();
        let Some(process) = self.process(at) else { return };
        let Some(mut connection) = process.learner_connections.all.remove(&peer) else { return };
        connection.outbox.close(now_ms, &mut events);
        if connection.end.is_some() && !connection.receiving.is_ready() {
            self.trace.count("SASL exchanges broken off");
        }
        self.take_sent(at, peer, events);
        self.report(at, Input::Disconnected { from: peer, why: "ended".to_owned() });
    }

    pub fn close_leader(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        process.learner_connections.late_acks.clear();
        if let Some(dial) = process.learner_connections.leader_dial.take() {
            self.close_connection(at, QuorumPeer::Leader { dial });
        }
    }

    /// Ends a connection whose peer has not sent its first packet by the deadline; before the deadline, looks again then.
    pub fn check_hello(&mut self, at: ProcessId, peer: QuorumPeer) {
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

    /// A connection's task reads: all that has come meanwhile is one read.
    pub fn learner_connection_reads(
        &mut self,
        at: ProcessId,
        peer: QuorumPeer,
        end: EndId,
        first: Chunk,
    ) {
        let (mut read, mut chunks, mut next) = (BytesMut::new(), 0, Some(first));
        while let Some(Chunk::Bytes(bytes)) = &next {
            read.extend_from_slice(bytes);
            chunks += 1;
            next = self.net.arrive(self.now_us, end);
        }
        if chunks > 1 {
            self.trace.count("chunks read together");
        }
        if chunks > 0 {
            self.receive(at, peer, &read);
            self.wake_other_end(end);
        }
        if next.is_some() {
            let connection = self.learner_connection(at, peer);
            let ended = connection.map_or(Ok(()), |connection| connection.receiving.end());
            if let Err(error) = ended {
                self.note(at.server, || format!("* {peer:?}: {error}"));
                self.trace.count("connections ended within a tree");
            }
            return self.lose_connection(at, peer);
        }
        if self.climate().late_tasks && !self.is_healing && self.rng.one_in(LATE_READ_ONE_IN) {
            let until_us = self.now_us + self.rng.range(1, LATE_READ_MAX_MS) * MS;
            self.sleep_until(at, peer, until_us);
        }
    }

    /// The other end may go on sending, once it learns that this one has read.
    fn wake_other_end(&mut self, end: EndId) {
        if let Some(Holder::LearnerConnection(at, peer)) = self.net.holder(end.other())
            && let Some(connection) = self.learner_connection(at, peer)
            && std::mem::take(&mut connection.is_blocked)
        {
            let latency_us = self.climate().latency_us;
            self.do_within(latency_us / 2, latency_us * 2, move |world| {
                world.go_on_sending(at, peer);
            });
        }
    }

    pub fn receive(&mut self, at: ProcessId, peer: QuorumPeer, bytes: &[u8]) {
        let now_ms = self.now_us / MS;
        let Some(connection) = self.learner_connection(at, peer) else { return };
        let mut events = Vec::new();
        let was_ready = connection.receiving.is_ready();
        let received = connection.receiving.receive(bytes, now_ms, &mut events);
        connection.outbox.put_sasl(&connection.receiving.take_output());
        if connection.receiving.is_ready() {
            connection.outbox.release();
        }
        let is_ready_now = !was_ready && connection.receiving.is_ready();
        if is_ready_now && !bytes.is_empty() {
            self.trace.count("SASL exchanges completed");
        }
        events.into_iter().for_each(|event| self.take_received(at, peer, event));
        match received {
            Ok(()) => self.send_queued(at, peer),
            Err(error) => self.fail("panic", format!("{} receives {error}", at.server)),
        }
    }

    fn take_received(&mut self, at: ProcessId, from: QuorumPeer, event: QuorumEvent) {
        if let Some(input) = Input::received(from, event) {
            self.report(at, input);
        }
    }
}
