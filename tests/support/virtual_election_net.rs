//! Election connections of several servers without sockets: the machine that ships at each server, and a network between them in
//! virtual time. A seed chooses delays; a test chooses which servers run, and which are cut off from each other.

use super::builders::election_settings;
use bytes::Bytes;
use oxkeeper::member::election_connections::{
    Action, ConnectionId, ElectionConnections, Event, Input, ServerAddresses,
};
use oxkeeper::model::{Rng, ServerId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A server's end of a connection.
type End = (i64, ConnectionId);

/// What arrives at an end of a connection.
enum Arrival {
    /// The end's dial connects to this server, or fails.
    Dial(i64),
    Input(Input),
}

/// One direction of a connection: where the bytes that an end sends go.
struct Direction {
    to: End,
    /// When the last of it arrives; later bytes don't overtake it.
    last_ms: u64,
}

pub struct VirtualElectionNet {
    now_ms: u64,
    rng: Rng,
    delay_max_ms: u64,
    addresses: ServerAddresses,
    /// The election connections of each running server, by its id.
    machines: BTreeMap<i64, ElectionConnections>,
    /// Both ends of each connection.
    directions: BTreeMap<End, Direction>,
    /// The smaller id first.
    cuts: BTreeSet<(i64, i64)>,
    /// By time, and by the order of what was asked.
    due: BTreeMap<(u64, u64), (End, Arrival)>,
    next_due: u64,
    reports: VecDeque<(i64, Event)>,
}

impl VirtualElectionNet {
    /// Servers 1 to `servers`, which are not running yet.
    ///
    /// * `delay_max_ms`: for a dial, and for what is sent, which take at least 1 ms.
    pub fn new(seed: u64, servers: i64, delay_max_ms: u64) -> Self {
        let address = |id: i64| (ServerId(id), election_settings(id).addresses);
        Self {
            now_ms: 0,
            rng: Rng::new(seed, 1),
            delay_max_ms,
            addresses: (1..=servers).map(address).collect(),
            machines: BTreeMap::new(),
            directions: BTreeMap::new(),
            cuts: BTreeSet::new(),
            due: BTreeMap::new(),
            next_due: 0,
            reports: VecDeque::new(),
        }
    }

    /// Starts a server that is not running.
    pub fn start(&mut self, id: i64) {
        let machine = ElectionConnections::new(election_settings(id), self.addresses.clone());
        let before = self.machines.insert(id, machine);
        assert!(before.is_none(), "server {id} runs");
    }

    /// Ends a server's process. The others notice at once.
    pub fn kill(&mut self, id: i64) {
        self.machines.remove(&id);
        let others: Vec<i64> = self.machines.keys().copied().collect();
        others.into_iter().for_each(|other| self.disconnect(id, other));
        self.due.retain(|_, ((at, _), _)| *at != id);
        self.reports.retain(|(at, _)| *at != id);
    }

    /// Breaks the connections between two servers, with all that is on its way. Both notice at once.
    pub fn disconnect(&mut self, a: i64, b: i64) {
        let between = |(end, direction): &(&End, &Direction)| end.0 == a && direction.to.0 == b;
        let broken = self.directions.iter().filter(between);
        let broken: Vec<[End; 2]> = broken.map(|(&end, direction)| [end, direction.to]).collect();
        for ends in broken {
            self.part(ends[0]);
            self.due.retain(|_, (end, _)| !ends.contains(end));
            for (at, connection) in ends {
                self.step(at, Input::Ended { connection, error: Some("reset".to_owned()) });
            }
        }
    }

    /// Breaks the connections between two servers, and fails dials, until [`Self::mend`].
    pub fn cut(&mut self, a: i64, b: i64) {
        self.disconnect(a, b);
        self.cuts.insert((a.min(b), a.max(b)));
    }

    pub fn mend(&mut self, a: i64, b: i64) {
        self.cuts.remove(&(a.min(b), a.max(b)));
    }

    pub fn mend_all(&mut self) {
        self.cuts.clear();
    }

    pub fn is_cut(&self, a: i64, b: i64) -> bool {
        self.cuts.contains(&(a.min(b), a.max(b)))
    }

    pub fn send(&mut self, from: i64, to: i64, message: Bytes) {
        self.step(from, Input::Send { to: ServerId(to), message });
    }

    pub fn dial_all(&mut self, at: i64) {
        self.step(at, Input::DialAll);
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.directions.len() / 2
    }

    /// Whether nothing is on its way and no machine waits for a deadline.
    pub fn is_settled(&self) -> bool {
        self.due.is_empty() && self.next_deadline().is_none()
    }

    pub const fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The next report, with the server that reports it; `None`: there is no report until `until_ms`, to which the clock is set.
    pub fn next_report(&mut self, until_ms: u64) -> Option<(i64, Event)> {
        while self.reports.is_empty() {
            let arrival_ms = self.due.first_key_value().map(|(&(at_ms, _), _)| at_ms);
            let deadline = self.next_deadline();
            let next_ms = arrival_ms.into_iter().chain(deadline.map(|(at_ms, _)| at_ms)).min();
            let Some(next_ms) = next_ms.filter(|next_ms| *next_ms <= until_ms) else {
                self.now_ms = until_ms;
                return None;
            };
            self.now_ms = next_ms;
            match (arrival_ms, deadline) {
                (Some(at_ms), _) if at_ms == next_ms => self.arrive(),
                (_, Some((_, id))) => self.step(id, Input::Tick),
                (_, None) => unreachable!("one of the two is next"),
            }
        }
        self.reports.pop_front()
    }

    /// The next deadline of a machine, and its server.
    fn next_deadline(&self) -> Option<(u64, i64)> {
        let of = |(&id, machine): (&i64, &ElectionConnections)| {
            machine.next_deadline_ms().map(|at_ms| (at_ms, id))
        };
        self.machines.iter().filter_map(of).min()
    }

    fn arrive(&mut self) {
        let (_, ((at, connection), arrival)) = self.due.pop_first().expect("something is due");
        match arrival {
            Arrival::Dial(to) => self.connect((at, connection), to),
            Arrival::Input(input) => self.step(at, input),
        }
    }

    fn step(&mut self, at: i64, input: Input) {
        let Some(machine) = self.machines.get_mut(&at) else { return };
        let mut actions = Vec::new();
        machine.step(input, self.now_ms, &mut actions);
        for action in actions {
            self.perform(at, action);
        }
    }

    fn perform(&mut self, at: i64, action: Action) {
        match action {
            Action::Dial { connection, to, .. } => {
                let at_ms = self.now_ms + self.delay_ms();
                self.put(at_ms, (at, connection), Arrival::Dial(to.0));
            }
            Action::Write { connection, bytes } => {
                let end = (at, connection);
                self.transmit(end, |connection| Input::Received { connection, bytes });
                let written_ms = self.now_ms + self.delay_ms() - 1;
                self.put(written_ms, end, Arrival::Input(Input::Written { connection }));
            }
            Action::Close { connection } => {
                let end = (at, connection);
                self.transmit(end, |connection| Input::Ended { connection, error: None });
                self.part(end);
                self.due.retain(|_, (at, _)| *at != end);
            }
            Action::Report(event) => self.reports.push_back((at, event)),
            // Every server always listens, and has one address.
            Action::Listen { .. }
            | Action::StopListening { .. }
            | Action::LimitSilence { .. }
            | Action::Work { .. } => {}
        }
    }

    fn connect(&mut self, dialing: End, to: i64) {
        let machine = self.machines.get_mut(&to);
        let accepted = machine.map(ElectionConnections::next_connection);
        let Some(accepted) = accepted.filter(|_| !self.is_cut(dialing.0, to)) else {
            let failed = Input::DialFailed { connection: dialing.1, error: "refused".to_owned() };
            return self.step(dialing.0, failed);
        };
        let accepting = (to, accepted);
        self.directions.insert(dialing, Direction { to: accepting, last_ms: 0 });
        self.directions.insert(accepting, Direction { to: dialing, last_ms: 0 });
        let peer = dialing.0.to_string();
        self.transmit(dialing, |connection| Input::Accepted { connection, peer });
        let peer = to.to_string();
        self.transmit(accepting, |connection| Input::Connected { connection, peer });
    }

    /// Removes a connection: nothing more is sent over it.
    fn part(&mut self, end: End) {
        if let Some(direction) = self.directions.remove(&end) {
            self.directions.remove(&direction.to);
        }
    }

    /// Lets an input arrive at the other end of a connection, after those before it.
    fn transmit(&mut self, from: End, input: impl FnOnce(ConnectionId) -> Input) {
        let at_ms = self.now_ms + self.delay_ms();
        let Some(direction) = self.directions.get_mut(&from) else { return };
        direction.last_ms = direction.last_ms.max(at_ms);
        let (to, at_ms) = (direction.to, direction.last_ms);
        self.put(at_ms, to, Arrival::Input(input(to.1)));
    }

    fn put(&mut self, at_ms: u64, end: End, arrival: Arrival) {
        self.due.insert((at_ms, self.next_due), (end, arrival));
        self.next_due += 1;
    }

    const fn delay_ms(&mut self) -> u64 {
        self.rng.range(1, self.delay_max_ms)
    }
}
