//! Connections to the election ports, and what passes over them: as `net::election`.

use super::network::{Chunk, End, PipeId, Port};
use super::world::{Event, Of, World};
use crate::member::Input;
use crate::model::ServerId;
use bytes::Bytes;

/// A connection to another server's election port.
#[derive(Default)]
pub struct Wire {
    pub pipe: Option<PipeId>,
    /// The last that was said while there was no connection.
    pub slot: Option<Bytes>,
    /// The last that was sent: said again over a new connection if there is nothing newer.
    pub last: Option<Bytes>,
    pub is_ringing: bool,
    pub is_up: bool,
}

impl World {
    pub fn say(&mut self, of: Of, to: usize, bytes: Bytes) {
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(to).or_default();
        match wire.pipe {
            Some(pipe) => {
                wire.last = Some(bytes.clone());
                self.say_over(pipe, of.server, bytes);
            }
            None => {
                wire.slot = Some(bytes);
                self.begin_ring(of, to);
            }
        }
    }

    fn say_over(&mut self, pipe: PipeId, from: usize, bytes: Bytes) {
        let Some(found) = self.net.pipes.get(&pipe) else { return };
        let end = if found.caller == from { End::Caller } else { End::Called };
        self.send(pipe, end, bytes);
    }

    pub fn begin_ring(&mut self, of: Of, to: usize) {
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(to).or_default();
        if wire.pipe.is_some() {
            return;
        }
        // A joiner that has called before says where it is only when it calls.
        if self.known_to(of).contains(&to) {
            self.ring_again(of, to);
        }
    }

    /// Whether there is a connection or not.
    fn ring_again(&mut self, of: Of, to: usize) {
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(to).or_default();
        if to == of.server || wire.is_ringing {
            return;
        }
        wire.is_ringing = true;
        self.ask_within(100, 3000, Event::Ring { of, to });
    }

    /// A call gets through, or not. The greater id keeps the connection it made; the smaller is called back.
    pub fn ring(&mut self, of: Of, to: usize) {
        let from = of.server;
        let is_there = self.net.reaches(from, to) && self.servers[to].process.is_some();
        let there = self.of(to);
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(to).or_default();
        wire.is_ringing = false;
        if !is_there {
            if wire.pipe.is_none() && std::mem::take(&mut wire.is_up) {
                self.hear_wire(of, Input::ElectionDisconnected { to: ServerId(to as i64) });
            }
            return;
        }
        if from < to {
            // It would not call if it had the connection that the other side may still believe in; unless it called while
            // that was being made. So that one stays until there is another.
            return self.ring_again(there, from);
        }
        let pipe = self.net.connect(from, to, Port::Election);
        let mut is_again = false;
        for (of, other) in [(of, to), (there, from)] {
            self.drop_wire(of, other);
            let Some(process) = self.process(of) else { continue };
            let wire = process.links.wires.entry(other).or_default();
            (wire.pipe, wire.is_up) = (Some(pipe), true);
            let slot = wire.slot.take().or_else(|| {
                is_again |= wire.last.is_some();
                wire.last.clone()
            });
            wire.last.clone_from(&slot);
            self.hear_wire(of, Input::ElectionConnected { to: ServerId(other as i64) });
            slot.into_iter().for_each(|bytes| self.say_over(pipe, of.server, bytes));
        }
        if is_again {
            self.trace.count("votes said twice");
        }
    }

    fn drop_wire(&mut self, of: Of, to: usize) {
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(to).or_default();
        if let Some(pipe) = wire.pipe.take()
            && let Some(found) = self.net.pipes.get(&pipe)
        {
            let end = if found.caller == of.server { End::Caller } else { End::Called };
            self.close(pipe, end);
        }
    }

    fn hear_wire(&mut self, of: Of, input: Input) {
        self.come_in(of, input);
    }

    pub fn wire_hears(&mut self, of: Of, pipe: PipeId, chunk: Chunk) {
        let Some(found) = self.net.pipes.get(&pipe) else { return };
        let from = if found.caller == of.server { found.called } else { found.caller };
        let id = ServerId(from as i64);
        let Some(process) = self.process(of) else { return };
        let wire = process.links.wires.entry(from).or_default();
        if wire.pipe != Some(pipe) {
            return;
        }
        match chunk {
            Chunk::Bytes(message) => {
                self.hear_wire(of, Input::Notification { from: id, message });
            }
            Chunk::End => {
                (wire.pipe, wire.is_up) = (None, false);
                self.hear_wire(of, Input::ElectionDisconnected { to: id });
            }
        }
    }
}
