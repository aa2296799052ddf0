//! Election connections over the virtual network: performs what `member::election_connections` decides, as `net::election`.

use super::network::{Chunk, End, PipeId, Port};
use super::peers::server_at;
use super::plan::{MS, Micros};
use super::world::{Event, Of, World};
use crate::member::election_connections::{
    Action, ConnectionId, ElectionConnections, Event as Report, Input, Settings,
};
use crate::member::{self, election_addresses};
use crate::model::{ServerId, View};
use std::collections::{BTreeMap, BTreeSet};

const CONNECT_TIMEOUT_MS: u64 = 1000;
const HELLO_TIMEOUT_MS: u64 = 200;
/// A dial that does not get through is tried again after so long.
const RETRY_US: Micros = 50 * MS;

/// The machine, and what it calls the connections.
pub struct Wires {
    machine: ElectionConnections,
    pipes: BTreeMap<ConnectionId, PipeId>,
    dialing: BTreeSet<ConnectionId>,
    /// Its next deadline that a [`Input::Tick`] was asked for.
    deadline_ms: Option<u64>,
}

impl Wires {
    pub fn new(me: ServerId, view: &View) -> Self {
        let settings = Settings {
            me,
            addresses: vec![(format!("host{}", me.0), 3888)],
            on_all_addresses: false,
            multi_address: false,
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            hello_timeout_ms: HELLO_TIMEOUT_MS,
            reach_timeout_ms: None,
            bind_tries_max: 0,
        };
        let machine = ElectionConnections::new(settings, election_addresses(view, me));
        Self { machine, pipes: BTreeMap::new(), dialing: BTreeSet::new(), deadline_ms: None }
    }

    fn connection_of(&self, pipe: PipeId) -> Option<ConnectionId> {
        self.pipes.iter().find(|(_, of)| **of == pipe).map(|(&connection, _)| connection)
    }
}

impl World {
    /// Gives the machine an input, and does what it says.
    pub fn step_wires(&mut self, of: Of, input: Input) {
        let now_us = self.now_us;
        let Some(process) = self.process(of) else { return };
        let (now_ms, began_us) = (process.own_us(now_us) / MS, process.began_us);
        let wires = &mut process.wires;
        let (mut actions, resent) = (Vec::new(), wires.machine.stats.resent);
        wires.machine.step(input, now_ms, &mut actions);
        let is_again = resent < wires.machine.stats.resent;
        let deadline_ms = wires.machine.next_deadline_ms();
        let is_new = std::mem::replace(&mut wires.deadline_ms, deadline_ms) != deadline_ms;
        if let Some(deadline_ms) = deadline_ms.filter(|_| is_new) {
            self.ask(began_us + deadline_ms * MS, Event::Wires(of, Input::Tick));
        }
        if is_again {
            self.trace.count("votes said twice");
        }
        actions.into_iter().for_each(|action| self.perform_for_wires(of, action));
    }

    fn perform_for_wires(&mut self, of: Of, action: Action) {
        let Some(process) = self.process(of) else { return };
        match action {
            Action::Dial { connection, addresses, .. } => {
                process.wires.dialing.insert(connection);
                let Some(to) = server_at(&addresses) else { return };
                self.ask_within(100, 3000, Event::DialWire { of, connection, to });
            }
            Action::Write { connection, bytes } => {
                let pipe = process.wires.pipes.get(&connection).copied();
                pipe.into_iter().for_each(|pipe| self.send_from(pipe, of.server, bytes.clone()));
                self.ask_within(10, 300, Event::Wires(of, Input::Written { connection }));
            }
            Action::Close { connection } => {
                process.wires.dialing.remove(&connection);
                if let Some(pipe) = process.wires.pipes.remove(&connection)
                    && let Some(end) = self.end_at(pipe, of.server)
                {
                    self.close(pipe, end);
                }
            }
            Action::Report(Report::ElectionConnected { to }) => {
                self.come_in(of, member::Input::ElectionConnected { to });
            }
            Action::Report(Report::ElectionDisconnected { to }) => {
                self.come_in(of, member::Input::ElectionDisconnected { to });
            }
            Action::Report(Report::Heard { from, message }) => {
                self.come_in(of, member::Input::Notification { from, message });
            }
            // Every server always listens, and has one address.
            Action::Listen { .. }
            | Action::StopListening { .. }
            | Action::LimitSilence { .. }
            | Action::Report(Report::Deaf { .. }) => {}
        }
    }

    fn end_at(&self, pipe: PipeId, server: usize) -> Option<End> {
        let pipe = self.net.pipes.get(&pipe)?;
        Some(if pipe.caller == server { End::Caller } else { End::Called })
    }

    fn send_from(&mut self, pipe: PipeId, server: usize, bytes: bytes::Bytes) {
        if let Some(end) = self.end_at(pipe, server) {
            self.send(pipe, end, bytes);
        }
    }

    /// A dial gets through, is refused, or waits as long as one of the two does not reach the other.
    pub fn dial_wire(&mut self, of: Of, connection: ConnectionId, to: usize) {
        let Some(process) = self.process(of) else { return };
        if !process.wires.dialing.contains(&connection) {
            return;
        }
        if !self.net.reaches(of.server, to) {
            return self.ask_within(RETRY_US / 2, RETRY_US, Event::DialWire { of, connection, to });
        }
        let Some(process) = self.process(of) else { return };
        process.wires.dialing.remove(&connection);
        let there = self.of(to);
        let Some(callee) = self.process(there) else {
            let error = "refused".to_owned();
            return self.step_wires(of, Input::DialFailed { connection, error });
        };
        let accepted = callee.wires.machine.next_connection();
        let pipe = self.net.connect(of.server, to, Port::Election);
        for (of, connection) in [(of, connection), (there, accepted)] {
            if let Some(process) = self.process(of) {
                process.wires.pipes.insert(connection, pipe);
            }
        }
        let peer = of.server.to_string();
        self.step_wires(there, Input::Accepted { connection: accepted, peer });
        self.step_wires(of, Input::Connected { connection, peer: to.to_string() });
    }

    pub fn wire_hears(&mut self, of: Of, pipe: PipeId, chunk: Chunk) {
        let Some(process) = self.process(of) else { return };
        let Some(connection) = process.wires.connection_of(pipe) else { return };
        let input = match chunk {
            Chunk::Bytes(bytes) => Input::Received { connection, bytes },
            Chunk::End => {
                process.wires.pipes.remove(&connection);
                Input::Ended { connection, error: None }
            }
        };
        self.step_wires(of, input);
    }
}
