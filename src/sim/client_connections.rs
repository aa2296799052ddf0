//! Client connections at their server: performs what `request::Connection` decides, as `net::client` does.

use super::network::{Attached, Chunk, EndId, Holder, ProcessId};
use super::plan::PlantedFault;
use super::process::ClientConnection;
use super::sasl::subject;
use super::world::World;
use crate::model::Identity;
use crate::request::{ClientHandle, Connection, Need, Outgoing};
use std::task::Waker;

/// Length of a ping request with the length before it.
const PING_LEN: usize = 12;

impl World {
    /// A client connects to a server; gives the client's end. `None`: no process is reached.
    pub fn accept_client(&mut self, client: usize, server: usize) -> Option<EndId> {
        let (node, at) = (self.servers.len() + client, self.process_id(server));
        if self.process(at).is_none() || !self.net.reaches(node, server) {
            return None;
        }
        if !self.is_at_client_port(at) {
            return None;
        }
        let end = self.net.connect(
            Attached { node, holder: Holder::Client(client) },
            Attached { node: server, holder: Holder::ClientConnection(at) },
        );
        let now_us = self.now_us;
        let process = self.process(at)?;
        let now_ms = process.own_us(now_us) / 1000;
        let peer = ([10, 0, 0, node as u8], 1000).into();
        let proved = process.shared.limits.schemes.of_certificate(&subject(client));
        let conn =
            process.shared.conns.add(|id| ClientHandle::new(id, peer, now_ms).identified(proved));
        let machine = Connection::new(conn, process.shared.clone());
        let connection =
            ClientConnection { machine, input: Vec::new(), need: Need::Bytes(1), is_due: false };
        process.clients.insert(end.other(), connection);
        Some(end)
    }

    /// The identities that a client has at its server. `None`: the server has closed the connection meanwhile.
    ///
    /// * `end`: the client's.
    pub fn identities_at(&mut self, end: EndId) -> Option<Vec<Identity>> {
        let Some(Holder::ClientConnection(at)) = self.net.holder(end.other()) else { return None };
        let connection = self.process(at)?.clients.get(&end.other())?;
        Some(connection.machine.conn().identities().to_vec())
    }

    pub fn client_connection_receives(&mut self, at: ProcessId, end: EndId, chunk: Chunk) {
        let Some(process) = self.process(at) else { return };
        let Some(connection) = process.clients.get_mut(&end) else { return };
        match chunk {
            Chunk::Bytes(bytes) => {
                connection.input.extend_from_slice(&bytes);
                self.wake_client_connection(at, end);
            }
            Chunk::End => self.end_client_connection(at, end),
        }
    }

    fn wake_client_connection(&mut self, at: ProcessId, end: EndId) {
        let Some(process) = self.process(at) else { return };
        let Some(connection) = process.clients.get_mut(&end) else { return };
        if !std::mem::replace(&mut connection.is_due, true) {
            self.do_within(0, 200, move |world| world.turn_client_connection(at, end));
        }
    }

    /// Wakes the tasks of connections that have something to do.
    pub fn wake_client_connections(&mut self, at: ProcessId) {
        let Some(process) = self.process(at) else { return };
        let is_woken = |connection: &ClientConnection| {
            !connection.machine.wait(Waker::noop()) || connection.need == Need::Turn
        };
        let woken = process.clients.iter().filter(|(_, found)| !found.is_due && is_woken(found));
        let woken: Vec<EndId> = woken.map(|(&end, _)| end).collect();
        woken.into_iter().for_each(|end| self.wake_client_connection(at, end));
    }

    fn turn_client_connection(&mut self, at: ProcessId, end: EndId) {
        if self.is_stalled(at.server) {
            return self.do_soon(move |world| world.turn_client_connection(at, end));
        }
        let (now_us, plant) = (self.now_us, self.climate().plant);
        let session = match self.net.holder(end.other()) {
            Some(Holder::Client(client)) if self.clients[client].is_connected_by(end.other()) => {
                Some(self.clients[client].session.id)
            }
            _ => None,
        };
        let Some(process) = self.process(at) else { return };
        let own_us = process.own_us(now_us);
        let Some(connection) = process.clients.get_mut(&end) else { return };
        connection.is_due = false;
        let is_unheard =
            plant == Some(PlantedFault::UnheardPings) && connection.input.len() == PING_LEN;
        if is_unheard {
            connection.input.clear();
        }
        let (taken, need) = connection.machine.advance(&connection.input, own_us);
        connection.input.drain(..taken);
        if let Some(session) = session.filter(|_| 0 < taken || is_unheard) {
            process.heard.insert(session, now_us);
        }
        connection.need = need.clone();
        let bytes = take_out(&mut connection.machine.unsent);
        let is_over = matches!(need, Need::Close(_) | Need::Word(_));
        let commands = process.commands.len();
        process.commands.append(&mut connection.machine.commands);
        if commands < process.commands.len() {
            self.wake_driver(at);
        }
        if !bytes.is_empty() {
            self.send(end, bytes.into());
        }
        if is_over {
            self.note(at.server, || format!("* closes a client connection: {need:?}"));
            self.end_client_connection(at, end);
        } else if need == Need::Turn || taken > 0 {
            self.wake_client_connection(at, end);
        }
    }

    fn end_client_connection(&mut self, at: ProcessId, end: EndId) {
        let Some(process) = self.process(at) else { return };
        let Some(mut connection) = process.clients.remove(&end) else { return };
        connection.machine.end();
        process.commands.append(&mut connection.machine.commands);
        self.close(end);
        self.wake_driver(at);
    }
}

/// Takes all outgoing bytes. Large data is kept apart from the bytes between which it is sent.
fn take_out(from: &mut Outgoing) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::with_capacity(from.len()), 0);
    for (place, piece) in &from.shared {
        bytes.extend_from_slice(&from.bytes[at..*place]);
        bytes.extend_from_slice(piece);
        at = *place;
    }
    bytes.extend_from_slice(&from.bytes[at..]);
    from.clear();
    bytes
}
