//! A server without sockets, threads or a disk: connection machines and a replica, moved by hand.
//!
//! [`World::say`] hands bytes to a connection and lets everything happen that follows; [`World::heard`] returns what the
//! client received, one line each. The log, and commands on their way to the replica, can be held, to look at the state in
//! between.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use oxkeeper::client::ConnectRequest;
use oxkeeper::replica::{Settings, TICK_MS};
use oxkeeper::request::{ClientCommand, Limits};
use oxkeeper::tree::{Options, Tree};

use support::builders::{self, FIRST_SESSION};
use support::client::{ClientConnection, open};
use support::configured::parts;
use support::replica::ReplicaOnDisk;
use support::requests::{hello, hello_again, hello_bytes};

/// The limits of [`builders::limits`], and two four-letter words.
pub fn limits() -> Limits {
    Limits { words: vec![*b"ruok", *b"mntr"], ..builders::limits() }
}

/// A connection of the world, by the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Client(usize);

pub struct World {
    pub server: ReplicaOnDisk,
    clients: Vec<ClientConnection>,
    /// Commands that connections have handed over and the replica has not been given.
    commands: VecDeque<ClientCommand>,
    commands_held: bool,
    log_held: bool,
}

impl World {
    pub fn new() -> Self {
        Self::limited(limits())
    }

    pub fn limited(limits: Limits) -> Self {
        Self::of(Options::default(), limits, builders::settings())
    }

    /// A server configured by a zoo.cfg with a tickTime of 2000.
    ///
    /// * `lines`: the rest of the file. `flags`: the JVM flags of start scripts.
    pub fn configured(lines: &str, flags: &str) -> Self {
        let parts = parts(&format!("tickTime=2000\n{lines}"), flags);
        let limits = Limits { words: limits().words, ..parts.limits };
        let settings = Settings { first_session: FIRST_SESSION, ..parts.replica };
        Self::of(parts.tree, limits, settings)
    }

    fn of(options: Options, limits: Limits, settings: Settings) -> Self {
        Self {
            server: ReplicaOnDisk::standalone(Tree::new(options), limits, settings),
            clients: Vec::new(),
            commands: VecDeque::new(),
            commands_held: false,
            log_held: false,
        }
    }

    /// A connection that has sent nothing yet.
    pub fn connect(&mut self) -> Client {
        self.connect_from("10.0.0.1")
    }

    pub fn connect_from(&mut self, address: &str) -> Client {
        self.clients.push(ClientConnection::new(open(&self.server.shared, address, 0)));
        Client(self.clients.len() - 1)
    }

    /// A connection with a session of its own.
    pub fn client(&mut self) -> Client {
        self.client_from("10.0.0.1")
    }

    pub fn client_from(&mut self, address: &str) -> Client {
        let client = self.connect_from(address);
        self.greet(client, &hello());
        let response = self.heard(client);
        assert!(response.len() == 1 && response[0].starts_with("session"), "{response:?}");
        client
    }

    /// A connection that reconnects with a session; the answer is in [`World::heard`].
    pub fn client_again(&mut self, session: i64) -> Client {
        let client = self.connect();
        self.greet(client, &hello_again(session));
        client
    }

    pub fn greet(&mut self, client: Client, hello: &ConnectRequest) {
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
        self[client].push(bytes);
    }

    /// What the client has received since the last call.
    pub fn heard(&mut self, client: Client) -> Vec<String> {
        self[client].heard()
    }

    /// The client's socket is closed.
    pub fn leave(&mut self, client: Client) {
        let left = self[client].leave();
        self.commands.extend(left);
        self.run();
    }

    /// Whether the client reads what it is sent.
    pub fn set_fetches(&mut self, client: Client, fetches: bool) {
        self[client].fetches = fetches;
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
        self.server.command(command);
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
            self.server.tick();
            self.run();
        }
    }

    /// Moves everything until nothing moves.
    pub fn run(&mut self) {
        loop {
            let mut moved = false;
            for at in 0..self.clients.len() {
                moved |= self.clients[at].turn(self.server.now_us());
                self.commands.extend(self.clients[at].take_commands());
            }
            while !self.commands_held
                && let Some(command) = self.commands.pop_front()
            {
                moved = true;
                self.server.command(command);
            }
            moved |= !self.log_held && self.server.flush();
            if !moved {
                return;
            }
        }
    }
}

impl Index<Client> for World {
    type Output = ClientConnection;

    fn index(&self, client: Client) -> &ClientConnection {
        &self.clients[client.0]
    }
}

impl IndexMut<Client> for World {
    fn index_mut(&mut self, client: Client) -> &mut ClientConnection {
        &mut self.clients[client.0]
    }
}
