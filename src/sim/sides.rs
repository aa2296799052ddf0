//! Clients' connections as their server has them: what `net::client` does with one.

use super::network::{Chunk, End, PipeId, Port};
use super::server::Side;
use super::world::{Event, Of, World};
use crate::model::sync::Ordering;
use crate::request::{Conn, Connection, Need, Outgoing};
use std::task::Waker;

impl World {
    /// A client calls a server; `None`: nobody is there.
    pub fn accept(&mut self, node: usize, server: usize) -> Option<PipeId> {
        if !self.net.reaches(node, server) {
            return None;
        }
        let of = self.of(server);
        self.process(of)?;
        let pipe = self.net.connect(node, server, Port::Client);
        let process = self.process(of)?;
        let now_ms = process.shared.clock_ms.load(Ordering::Relaxed);
        let peer = ([10, 0, 0, node as u8], 1000).into();
        let conn = process.shared.conns.add(|id| Conn::new(id, peer, now_ms));
        let machine = Connection::new(conn, process.shared.clone());
        let side = Side { machine, input: Vec::new(), need: Need::Bytes(1), is_due: false };
        process.sides.insert(pipe, side);
        Some(pipe)
    }

    pub fn side_hears(&mut self, of: Of, pipe: PipeId, chunk: Chunk) {
        let Some(process) = self.process(of) else { return };
        let Some(side) = process.sides.get_mut(&pipe) else { return };
        match chunk {
            Chunk::Bytes(bytes) => {
                side.input.extend_from_slice(&bytes);
                self.wake_side(of, pipe);
            }
            Chunk::End => self.end_side(of, pipe),
        }
    }

    fn wake_side(&mut self, of: Of, pipe: PipeId) {
        let Some(process) = self.process(of) else { return };
        let Some(side) = process.sides.get_mut(&pipe) else { return };
        if !std::mem::replace(&mut side.is_due, true) {
            self.ask_within(0, 200, Event::Side(of, pipe));
        }
    }

    /// Wakes the tasks of connections that others have something for.
    pub fn look_at_sides(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let waits = |side: &Side| side.machine.wait(Waker::noop()) && side.need != Need::Turn;
        let woken: Vec<PipeId> = process
            .sides
            .iter()
            .filter(|(_, side)| !side.is_due && !waits(side))
            .map(|(&pipe, _)| pipe)
            .collect();
        woken.into_iter().for_each(|pipe| self.wake_side(of, pipe));
    }

    pub fn turn_side(&mut self, of: Of, pipe: PipeId) {
        if self.now_us < self.servers[of.server].stalled_us {
            return self.ask_later(Event::Side(of, pipe));
        }
        let now_us = self.now_us;
        let Some(process) = self.process(of) else { return };
        let own_us = process.own_us(now_us);
        let Some(side) = process.sides.get_mut(&pipe) else { return };
        side.is_due = false;
        let (taken, need) = side.machine.advance(&side.input, own_us);
        side.input.drain(..taken);
        side.need = need.clone();
        let commands = std::mem::take(&mut side.machine.commands);
        let bytes = take_out(&mut side.machine.unsent);
        let is_over = matches!(need, Need::Close(_) | Need::Word(_));
        let goes_on = need == Need::Turn || taken > 0 && !is_over;
        let has_commands = !commands.is_empty();
        process.commands.extend(commands);
        if has_commands {
            self.wake_driver(of);
        }
        if !bytes.is_empty() {
            self.send(pipe, End::Called, bytes.into());
        }
        if is_over {
            self.note(of.server, || format!("* closes a client's connection: {need:?}"));
            self.end_side(of, pipe);
        } else if goes_on {
            self.wake_side(of, pipe);
        }
    }

    fn end_side(&mut self, of: Of, pipe: PipeId) {
        let Some(process) = self.process(of) else { return };
        let Some(mut side) = process.sides.remove(&pipe) else { return };
        side.machine.end();
        process.commands.append(&mut side.machine.commands.drain(..).collect());
        self.close(pipe, End::Called);
        self.wake_driver(of);
    }
}

/// Large data stands beside the bytes it belongs between.
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
