//! A server without sockets, threads or a disk: connection machines and a replica, moved by hand.
//!
//! [`World::say`] hands bytes to a connection and lets everything happen that follows; [`World::heard`] gives what came
//! back, one line each. The log and the way of commands to the replica can be held, to look at what is in between.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

use oxkeeper::client::Hello;
use oxkeeper::model::Zxid;
use oxkeeper::model::sync::{Arc, Ordering};
use oxkeeper::replica::{Action, Input, Replica, TICK_MS};
use oxkeeper::request::{ClientCommand, Conn, Connection, Counts, Limits, Need, Shared};
use oxkeeper::tree::{Options, Tree};

use super::parts;
pub use super::parts::{FIRST_SESSION, FRAME_MAX, TICK_TIME_MS, replica};
use super::wire::{Ear, drain, hello, hello_again, hello_bytes};

/// Those of [`parts::limits`], and two words.
pub fn limits() -> Limits {
    Limits { words: vec![*b"ruok", *b"mntr"], ..parts::limits() }
}

/// A connection of the world, by the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Client(usize);

struct Side {
    /// `None` once the client has left.
    machine: Option<Connection>,
    /// Sent by the client and not taken by the machine.
    input: Vec<u8>,
    need: Need,
    /// The client takes what it is sent.
    fetches: bool,
    ear: Ear,
    lines: Vec<String>,
    turns: usize,
}

pub struct World {
    pub shared: Arc<Shared>,
    pub replica: Replica,
    sides: Vec<Side>,
    /// Handed over by the connections and not given to the replica.
    commands: VecDeque<ClientCommand>,
    commands_held: bool,
    /// Appended and not flushed.
    unflushed: Option<Zxid>,
    log_held: bool,
    wall_ms: i64,
}

impl World {
    pub fn new() -> Self {
        Self::limited(limits())
    }

    pub fn limited(limits: Limits) -> Self {
        let shared = parts::shared(Tree::new(Options::default()), limits);
        let replica = replica(&shared);
        Self {
            shared,
            replica,
            sides: Vec::new(),
            commands: VecDeque::new(),
            commands_held: false,
            unflushed: None,
            log_held: false,
            wall_ms: 1_700_000_000_000,
        }
    }

    /// A connection that has said nothing yet.
    pub fn connect(&mut self) -> Client {
        self.connect_from("10.0.0.1")
    }

    pub fn connect_from(&mut self, address: &str) -> Client {
        let peer = SocketAddr::new(address.parse().expect("an address"), 1000);
        let conn = self.shared.conns.add(|id| Conn::new(id, peer, 0));
        self.sides.push(Side {
            machine: Some(Connection::new(conn, self.shared.clone())),
            input: Vec::new(),
            need: Need::Bytes(1),
            fetches: true,
            ear: Ear::default(),
            lines: Vec::new(),
            turns: 0,
        });
        Client(self.sides.len() - 1)
    }

    /// A connection with a session of its own.
    pub fn client(&mut self) -> Client {
        self.client_from("10.0.0.1")
    }

    pub fn client_from(&mut self, address: &str) -> Client {
        let client = self.connect_from(address);
        self.greet(client, &hello());
        let welcome = self.heard(client);
        assert!(welcome.len() == 1 && welcome[0].starts_with("session"), "{welcome:?}");
        client
    }

    /// A connection that takes a session over; what it is told comes with [`World::heard`].
    pub fn client_again(&mut self, session: i64) -> Client {
        let client = self.connect();
        self.greet(client, &hello_again(session));
        client
    }

    pub fn greet(&mut self, client: Client, hello: &Hello) {
        self.push(client, &hello_bytes(hello));
        self.run();
    }

    /// Sends requests together and lets everything happen.
    #[track_caller]
    pub fn say<const N: usize>(&mut self, client: Client, requests: [Vec<u8>; N]) {
        self.push(client, &requests.concat());
        self.run();
    }

    /// Sends bytes without letting anything happen yet.
    pub fn push(&mut self, client: Client, bytes: &[u8]) {
        self.expect_answers_to(client, bytes);
        self.push_quietly(client, bytes);
    }

    /// Lets the client know how to read the answers to these requests.
    pub fn expect_answers_to(&mut self, client: Client, requests: &[u8]) {
        self.sides[client.0].ear.asked(requests);
    }

    /// Sends bytes that need not be whole frames.
    pub fn push_quietly(&mut self, client: Client, bytes: &[u8]) {
        self.sides[client.0].input.extend_from_slice(bytes);
    }

    /// What the client was sent since it was last asked.
    pub fn heard(&mut self, client: Client) -> Vec<String> {
        std::mem::take(&mut self.sides[client.0].lines)
    }

    /// The client's socket is gone.
    pub fn leave(&mut self, client: Client) {
        if let Some(mut machine) = self.sides[client.0].machine.take() {
            machine.end();
            self.commands.append(&mut machine.commands.drain(..).collect());
        }
        self.run();
    }

    /// Whether the client takes what it is sent.
    pub fn set_fetches(&mut self, client: Client, fetches: bool) {
        self.sides[client.0].fetches = fetches;
        self.run();
    }

    /// Keeps the log from flushing; `false` flushes what it has.
    pub fn hold_log(&mut self, held: bool) {
        self.log_held = held;
        self.run();
    }

    /// Keeps commands from the replica; `false` lets them go there.
    pub fn hold_commands(&mut self, held: bool) {
        self.commands_held = held;
        self.run();
    }

    /// Commands that are held.
    pub fn commands_held(&self) -> usize {
        self.commands.len()
    }

    /// Gives the first of them to the replica.
    pub fn one_command(&mut self) {
        let command = self.commands.pop_front().expect("a command is held");
        self.step(Input::Command { command, wall_ms: self.wall_ms });
        self.run();
    }

    /// Gives the command that was held last to the replica before the others.
    pub fn last_command_first(&mut self) {
        let last = self.commands.pop_back().expect("a command is held");
        self.commands.push_front(last);
    }

    /// Lets virtual time pass.
    pub fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.wall_ms += TICK_MS as i64;
            self.step(Input::Tick { wall_ms: self.wall_ms });
            self.run();
        }
    }

    pub fn need(&self, client: Client) -> Need {
        self.sides[client.0].need.clone()
    }

    /// What the machine counted since it began.
    pub fn counts(&self, client: Client) -> Counts {
        self.machine(client).counts
    }

    /// Large frames refused since this was last asked, whoever sent them.
    pub fn large_refused(&self, client: Client) -> u64 {
        self.machine(client).take_large_refused()
    }

    fn machine(&self, client: Client) -> &Connection {
        self.sides[client.0].machine.as_ref().expect("the client is there")
    }

    /// Bytes that lie in the machine because the client does not fetch them.
    pub fn unsent(&self, client: Client) -> usize {
        self.sides[client.0].machine.as_ref().map_or(0, |machine| machine.unsent.len())
    }

    /// Bytes that the machine has not taken.
    pub fn unread(&self, client: Client) -> usize {
        self.sides[client.0].input.len()
    }

    pub fn turns(&self, client: Client) -> usize {
        self.sides[client.0].turns
    }

    /// The connection's place in the table of connections, which is used again once it is gone.
    pub fn number(&self, client: Client) -> u32 {
        self.sides[client.0].machine.as_ref().expect("the client is there").conn().id.0
    }

    /// Moves everything until nothing moves.
    pub fn run(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..self.sides.len() {
                moved |= self.turn(at);
            }
            while !self.commands_held
                && let Some(command) = self.commands.pop_front()
            {
                moved = true;
                self.step(Input::Command { command, wall_ms: self.wall_ms });
            }
            if !self.log_held
                && let Some(through) = self.unflushed.take()
            {
                moved = true;
                self.step(Input::Flushed { through, now_us: 1 });
            }
            if !moved {
                return;
            }
        }
    }

    fn step(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.replica.step(input, &mut actions);
        for action in actions {
            match action {
                Action::Append { zxid, .. } => self.unflushed = Some(zxid),
                Action::Wake(waker) => waker.wake(),
                Action::Roll | Action::Snapshot(_) => {}
                Action::Stop(reason) => panic!("the replica stopped: {reason}"),
                Action::Install(_)
                | Action::SendTree { .. }
                | Action::Rebuild
                | Action::Peer(_) => {
                    panic!("a server that is alone has no peers")
                }
            }
        }
    }

    /// One turn of a connection, as `net` gives it. `true`: something changed.
    fn turn(&mut self, at: usize) -> bool {
        let side = &mut self.sides[at];
        let Some(machine) = &mut side.machine else { return false };
        let has_news = !machine.wait(Waker::noop());
        let may_go = match side.need {
            Need::Bytes(_) => !side.input.is_empty(),
            Need::Turn => true,
            Need::Room => machine.unsent.is_empty(),
            Need::Answer | Need::Relief => false,
            Need::Word(_) | Need::Close(_) => return false,
        };
        if !may_go && !has_news && (machine.unsent.is_empty() || !side.fetches) {
            return false;
        }
        let before = (side.input.len(), side.need.clone(), machine.unsent.len());
        let (taken, need) =
            machine.advance(&side.input, 1 + self.shared.clock_ms.load(Ordering::Relaxed) * 1000);
        side.turns += 1;
        side.input.drain(..taken);
        side.need = need;
        self.commands.extend(machine.commands.drain(..));
        let after = (side.input.len(), side.need.clone(), machine.unsent.len());
        let fetched = side.fetches && !machine.unsent.is_empty();
        if fetched {
            let bytes = drain(&mut machine.unsent);
            for said in side.ear.hear(&bytes) {
                side.lines.push(side.ear.line(&said));
            }
        }
        match &side.need {
            Need::Word(word) => side.lines.push(format!("word {}", word.escape_ascii())),
            Need::Close(reason) if reason.is_empty() => side.lines.push("closed".to_owned()),
            Need::Close(reason) => side.lines.push(format!("closed: {reason}")),
            _ => {}
        }
        before != after || has_news || fetched
    }
}
