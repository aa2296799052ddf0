//! A client and the server's machine for its connection, which a test drives step by step.

use super::requests::{FrameReader, drain};
use oxkeeper::model::sync::Arc;
use oxkeeper::request::{ClientCommand, ClientHandle, Connection, Need, Shared};
use std::net::SocketAddr;
use std::task::Waker;

pub struct ClientConnection {
    /// `None` once the client has left.
    machine: Option<Connection>,
    /// Sent by the client and not taken by the machine.
    pub input: Vec<u8>,
    pub need: Need,
    /// The client reads what it is sent.
    pub fetches: bool,
    ear: FrameReader,
    /// What the client was sent, one line each.
    pub lines: Vec<String>,
    pub turns: usize,
}

/// The server's machine for a new connection from `address`.
pub fn open(shared: &Arc<Shared>, address: &str, now_ms: u64) -> Connection {
    let peer = SocketAddr::new(address.parse().expect("an address"), 1000);
    let conn = shared.conns.add(|id| ClientHandle::new(id, peer, now_ms));
    Connection::new(conn, shared.clone())
}

impl ClientConnection {
    pub fn new(machine: Connection) -> Self {
        Self {
            machine: Some(machine),
            input: Vec::new(),
            need: Need::Bytes(1),
            fetches: true,
            ear: FrameReader::default(),
            lines: Vec::new(),
            turns: 0,
        }
    }

    /// # Panics
    /// if the client has left.
    pub fn machine(&self) -> &Connection {
        self.machine.as_ref().expect("the client is there")
    }

    /// The client sends whole frames.
    pub fn push(&mut self, frames: &[u8]) {
        self.expect_answers_to(frames);
        self.input.extend_from_slice(frames);
    }

    /// Lets the client know how to read the replies to these requests.
    pub fn expect_answers_to(&mut self, requests: &[u8]) {
        self.ear.asked(requests);
    }

    /// The lines of what the client was sent since the last call.
    pub fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Number of bytes that wait in the machine because the client does not read.
    pub fn unsent(&self) -> usize {
        self.machine.as_ref().map_or(0, |machine| machine.unsent.len())
    }

    /// Closes the client's socket; returns the commands that the machine still has for the replica.
    pub fn leave(&mut self) -> Vec<ClientCommand> {
        let Some(mut machine) = self.machine.take() else { return Vec::new() };
        machine.end();
        machine.commands
    }

    /// The commands that the machine has for the replica since the last call.
    pub fn take_commands(&mut self) -> Vec<ClientCommand> {
        self.machine
            .as_mut()
            .map(|machine| std::mem::take(&mut machine.commands))
            .unwrap_or_default()
    }

    /// One turn of the connection, as `net` makes it. `true`: something changed.
    pub fn turn(&mut self, now_us: u64) -> bool {
        let Some(machine) = &mut self.machine else { return false };
        let has_news = !machine.wait(Waker::noop());
        let may_go = match self.need {
            Need::Bytes(_) => !self.input.is_empty(),
            Need::Turn => true,
            Need::Room => machine.unsent.is_empty(),
            Need::Answer | Need::FewerOutstanding => false,
            Need::Word(_) | Need::Close(_) => return false,
        };
        if !may_go && !has_news && (machine.unsent.is_empty() || !self.fetches) {
            return false;
        }
        let before = (self.input.len(), self.need.clone(), machine.unsent.len());
        let (taken, need) = machine.advance(&self.input, now_us);
        self.turns += 1;
        self.input.drain(..taken);
        self.need = need;
        let after = (self.input.len(), self.need.clone(), machine.unsent.len());
        let fetched = self.fetches && !machine.unsent.is_empty();
        if fetched {
            let bytes = drain(&mut machine.unsent);
            for said in self.ear.hear(&bytes) {
                self.lines.push(self.ear.line(&said));
            }
        }
        match &self.need {
            Need::Word(word) => self.lines.push(format!("word {}", word.escape_ascii())),
            Need::Close(reason) if reason.is_empty() => self.lines.push("closed".to_owned()),
            Need::Close(reason) => self.lines.push(format!("closed: {reason}")),
            _ => {}
        }
        before != after || has_news || fetched || self.need == Need::Turn
    }
}
