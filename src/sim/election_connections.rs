//! Election connections: performs what `member::election_connections` decides, as `net::election`.

use super::network::{Chunk, Holder, ProcessId};
use super::plan::{MS, Micros};
use super::process::server_at;
use super::world::World;
use crate::member;
use crate::member::election_connections::{Action, ConnectionId, Event, Input};

/// A dial that does not get through is tried again after so long.
const RETRY_US: Micros = 50 * MS;

impl World {
    /// Gives the machine an input, and performs its actions.
    pub fn step_election_connections(&mut self, at: ProcessId, input: Input) {
        let now_us = self.now_us;
        let Some(process) = self.process(at) else { return };
        let (now_ms, began_us) = (process.own_us(now_us) / MS, process.began_us);
        let connections = &mut process.election_connections;
        let (mut actions, resent) = (Vec::new(), connections.machine.stats.resent);
        connections.machine.step(input, now_ms, &mut actions);
        let is_again = resent < connections.machine.stats.resent;
        let deadline_ms = connections.machine.next_deadline_ms();
        let before_ms = std::mem::replace(&mut connections.deadline_ms, deadline_ms);
        if let Some(deadline_ms) = deadline_ms.filter(|_| deadline_ms != before_ms) {
            let at_us = began_us + deadline_ms * MS;
            self.do_at(at_us, move |world| world.report_to_election(at, Input::Tick));
        }
        if is_again {
            self.trace.count("votes said twice");
        }
        actions.into_iter().for_each(|action| self.perform_for_election(at, action));
    }

    fn report_to_election(&mut self, at: ProcessId, input: Input) {
        if self.is_stalled(at.server) {
            return self.do_soon(move |world| world.report_to_election(at, input));
        }
        self.step_election_connections(at, input);
    }

    fn perform_for_election(&mut self, at: ProcessId, action: Action) {
        let Some(process) = self.process(at) else { return };
        let connections = &mut process.election_connections;
        let input = match action {
            Action::Dial { connection, addresses, .. } => {
                connections.dialing.insert(connection);
                if let Some(to) = server_at(&addresses) {
                    self.do_within(100, 3000, move |world| world.dial_election(at, connection, to));
                }
                return;
            }
            Action::Write { connection, bytes } => {
                if let Some(&end) = connections.ends.get(&connection) {
                    self.send(end, bytes);
                }
                let written = Input::Written { connection };
                return self.do_within(10, 300, move |world| world.report_to_election(at, written));
            }
            Action::Close { connection } => {
                connections.dialing.remove(&connection);
                if let Some(end) = connections.ends.remove(&connection) {
                    self.close(end);
                }
                return;
            }
            Action::Report(Event::ElectionConnected { to }) => {
                member::Input::ElectionConnected { to }
            }
            Action::Report(Event::ElectionDisconnected { to }) => {
                member::Input::ElectionDisconnected { to }
            }
            Action::Report(Event::Heard { from, message }) => {
                member::Input::Notification { from, message }
            }
            // Every server always listens, and has one address.
            Action::Listen { .. }
            | Action::StopListening { .. }
            | Action::LimitSilence { .. }
            | Action::Report(Event::Deaf { .. }) => return,
        };
        self.come_in(at, input);
    }

    /// A dial gets through, is refused, or waits as long as one of the two does not reach the other.
    fn dial_election(&mut self, at: ProcessId, connection: ConnectionId, to: usize) {
        let is_reached = self.net.reaches(at.server, to);
        let Some(process) = self.process(at) else { return };
        if !process.election_connections.dialing.contains(&connection) {
            return;
        }
        if !is_reached {
            let retry = move |world: &mut Self| world.dial_election(at, connection, to);
            return self.do_within(RETRY_US / 2, RETRY_US, retry);
        }
        process.election_connections.dialing.remove(&connection);
        let there = self.process_id(to);
        let Some(acceptor) = self.process(there) else {
            let error = "refused".to_owned();
            return self.step_election_connections(at, Input::DialFailed { connection, error });
        };
        let accepted = acceptor.election_connections.machine.next_connection();
        let end = self.net.connect(
            (at.server, Holder::ElectionConnection(at, connection)),
            (to, Holder::ElectionConnection(there, accepted)),
        );
        for (at, connection, end) in [(at, connection, end), (there, accepted, end.other())] {
            if let Some(process) = self.process(at) {
                process.election_connections.ends.insert(connection, end);
            }
        }
        let peer = at.server.to_string();
        self.step_election_connections(there, Input::Accepted { connection: accepted, peer });
        self.step_election_connections(at, Input::Connected { connection, peer: to.to_string() });
    }

    pub fn election_connection_receives(
        &mut self,
        at: ProcessId,
        connection: ConnectionId,
        chunk: Chunk,
    ) {
        let Some(process) = self.process(at) else { return };
        let input = match chunk {
            Chunk::Bytes(bytes) => Input::Received { connection, bytes },
            Chunk::End => {
                process.election_connections.ends.remove(&connection);
                Input::Ended { connection, error: None }
            }
        };
        self.step_election_connections(at, input);
    }
}
