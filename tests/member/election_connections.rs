//! Scripts over the election connections of one server, and whole exchanges between several.

use bytes::{Bytes, BytesMut};
use oxkeeper::member::election_connections::{
    Action, ConnectionId, ElectionConnections, Event, Input, ServerAddresses, Settings,
};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::model::Rng;
use oxkeeper::model::ServerId;
use std::collections::BTreeMap;
use support::builders::election_settings;
use support::virtual_election_net::VirtualElectionNet;

fn hello(id: i64) -> Bytes {
    let hello = Hello { id: ServerId(id), addresses: vec![(format!("zoo{id}"), 3888)] };
    hello.encode(false).into()
}

fn frame(message: &str) -> Vec<u8> {
    [&(message.len() as i32).to_be_bytes()[..], message.as_bytes()].concat()
}

fn up(to: i64) -> Action {
    Action::Report(Event::ElectionConnected { to: ServerId(to) })
}

fn down(to: i64) -> Action {
    Action::Report(Event::ElectionDisconnected { to: ServerId(to) })
}

fn unreached(to: i64) -> Action {
    Action::Report(Event::ElectionUnreached { to: ServerId(to) })
}

fn heard(from: i64, message: &'static str) -> Action {
    Action::Report(Event::Heard { from: ServerId(from), message: message.into() })
}

/// One server, and the time.
struct Server {
    machine: ElectionConnections,
    now_ms: u64,
}

impl Server {
    /// Server 3 of `peers`.
    fn new(peers: &[i64]) -> Self {
        Self::with(election_settings(3), peers)
    }

    fn with(settings: Settings, peers: &[i64]) -> Self {
        let peers: ServerAddresses =
            peers.iter().map(|&id| (ServerId(id), vec![(format!("zoo{id}"), 3888)])).collect();
        Self { machine: ElectionConnections::new(settings, peers), now_ms: 0 }
    }

    fn step(&mut self, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        self.machine.step(input, self.now_ms, &mut out);
        out
    }

    fn tick(&mut self, at_ms: u64) -> Vec<Action> {
        self.now_ms = at_ms;
        self.step(Input::Tick)
    }

    fn send(&mut self, to: i64, message: &'static str) -> Vec<Action> {
        self.step(Input::Send { to: ServerId(to), message: message.into() })
    }

    fn dial(&mut self, to: i64) -> Vec<Action> {
        self.step(Input::Dial { to: ServerId(to) })
    }

    fn accept(&mut self) -> (ConnectionId, Vec<Action>) {
        let connection = self.machine.next_connection();
        let peer = "10.0.0.9:4711".to_owned();
        (connection, self.step(Input::Accepted { connection, peer }))
    }

    /// Accepts a connection and receives `bytes` over it.
    fn accept_from(&mut self, bytes: impl AsRef<[u8]>) -> (ConnectionId, Vec<Action>) {
        let (connection, nothing) = self.accept();
        assert_eq!(nothing, []);
        (connection, self.receive(connection, bytes))
    }

    fn receive(&mut self, connection: ConnectionId, bytes: impl AsRef<[u8]>) -> Vec<Action> {
        let bytes = Bytes::copy_from_slice(bytes.as_ref());
        self.step(Input::Received { connection, bytes })
    }

    fn connect(&mut self, connection: ConnectionId) -> Vec<Action> {
        self.step(Input::Connected { connection, peer: "10.0.0.1:3888".to_owned() })
    }

    fn written(&mut self, connection: ConnectionId) -> Vec<Action> {
        self.step(Input::Written { connection })
    }

    fn fail(&mut self, connection: ConnectionId) -> Vec<Action> {
        self.step(Input::DialFailed { connection, error: "refused".to_owned() })
    }

    fn end(&mut self, connection: ConnectionId) -> Vec<Action> {
        self.step(Input::Ended { connection, error: None })
    }

    /// A connection that this server dials, until its hello is written.
    fn connected_to(&mut self, to: i64) -> ConnectionId {
        let actions = self.dial(to);
        let [Action::Dial { connection, .. }] = actions[..] else { panic!("{actions:?}") };
        assert_eq!(self.connect(connection), [write(connection, &hello(3))]);
        assert_eq!(self.written(connection), [up(to)]);
        connection
    }
}

fn write(connection: ConnectionId, bytes: &[u8]) -> Action {
    Action::Write { connection, bytes: Bytes::copy_from_slice(bytes) }
}

fn close(connection: ConnectionId) -> Action {
    Action::Close { connection }
}

fn dialed(actions: &[Action]) -> ConnectionId {
    let [Action::Dial { connection, .. }] = actions else { panic!("{actions:?}") };
    *connection
}

// rows: Q-25 Q-26
#[test]
fn newest_message_is_sent_and_the_last_one_again_over_a_new_connection() {
    let mut server = Server::new(&[1]);
    let connection = dialed(&server.send(1, "old"));
    assert_eq!(server.send(1, "new"), [], "it is being dialed");
    assert_eq!(server.connect(connection), [write(connection, &hello(3))]);
    assert_eq!(server.written(connection), [up(1), write(connection, &frame("new"))]);
    assert_eq!((server.send(1, "overtaken"), server.send(1, "newer")), (vec![], vec![]));
    assert_eq!(server.written(connection), [write(connection, &frame("newer"))]);
    assert_eq!(server.written(connection), []);
    assert_eq!(server.machine.stats.resent, 0);
    assert_eq!(server.end(connection), [down(1)]);
    // The message may have been lost with the old connection.
    let again = dialed(&server.dial(1));
    server.connect(again);
    assert_eq!(server.written(again), [up(1), write(again, &frame("newer"))]);
    assert_eq!(server.machine.stats.resent, 1);
    assert_eq!((server.written(again), server.end(again)), (vec![], vec![down(1)]));
    let third = dialed(&server.send(1, "newest"));
    server.connect(third);
    assert_eq!(server.written(third), [up(1), write(third, &frame("newest"))]);
}

// rows: Q-22 Q-23
#[test]
fn connection_from_the_larger_id_stays_and_the_smaller_id_is_dialed_back() {
    let mut server = Server::new(&[1, 5]);
    // To a server with a larger id only the hello is sent.
    let connection = dialed(&server.dial(5));
    server.connect(connection);
    assert_eq!(server.written(connection), [close(connection)]);
    let (from_five, actions) = server.accept_from(hello(5));
    assert_eq!(actions, [up(5)]);
    assert_eq!(server.dial(5), [], "there is a connection");
    // From a server with a smaller id only the hello is read.
    let (from_one, actions) = server.accept_from(hello(1));
    let addresses = vec![("zoo1".to_owned(), 3888)];
    let back = ConnectionId(from_one.0 + 1);
    let dial = Action::Dial { connection: back, to: ServerId(1), addresses, grace_ms: None };
    assert_eq!(actions, [close(from_one), dial]);
    // A second server with the same id as this one.
    let (same, actions) = server.accept_from(hello(3));
    assert_eq!(actions, [close(same)]);
    // Two observers before 3.5, with the same id on the wire: their ids are smaller than this server's, and no address of
    // theirs is known.
    let (old, actions) = server.accept_from(i64::MAX.to_be_bytes());
    assert_eq!(actions, [close(old), unreached(-1)]);
    assert_eq!(server.receive(from_five, frame("vote")), [heard(5, "vote")]);
}

#[test]
fn earlier_connection_stays_until_the_server_is_dialed_back() {
    let mut server = Server::new(&[1]);
    let first = server.connected_to(1);
    let (accepted, actions) = server.accept_from(hello(1));
    let back = ConnectionId(accepted.0 + 1);
    assert!(matches!(actions[..], [Action::Close { .. }, Action::Dial { .. }]), "{actions:?}");
    assert_eq!(server.receive(first, frame("vote")), [heard(1, "vote")]);
    server.connect(back);
    assert_eq!(server.written(back), [close(first), up(1)], "no ElectionDisconnected between them");
    assert_eq!(server.end(first), [], "it is reported no more");
    assert_eq!(server.receive(first, frame("late")), []);
    assert_eq!(server.end(back), [down(1)]);
}

// Its process runs, and a learner keeps it as its leader.
#[test]
fn dial_that_ends_in_the_handshake_has_reached_the_server() {
    let mut server = Server::new(&[1]);
    let refused = dialed(&server.dial(1));
    assert_eq!(server.fail(refused), [unreached(1)]);
    let in_tls = dialed(&server.dial(1));
    let error = "TLS: connection reset".to_owned();
    assert_eq!(server.step(Input::DialFailed { connection: in_tls, error }), []);
    let after_tls = dialed(&server.dial(1));
    server.connect(after_tls);
    assert_eq!(server.end(after_tls), []);
    let silent = dialed(&server.dial(1));
    assert_eq!(server.tick(5000), [close(silent), unreached(1)]);
}

// The server 5 ends a connection when it makes another one. With TLS the hello of the first may come last (world 3084000005553).
#[test]
fn hello_that_comes_after_that_of_a_later_connection_closes_its_own() {
    let mut server = Server::new(&[5]);
    let (early, _) = server.accept();
    let (later, actions) = server.accept_from(hello(5));
    assert_eq!((actions, server.receive(early, hello(5))), (vec![up(5)], vec![close(early)]));
    assert_eq!(server.receive(later, frame("vote")), [heard(5, "vote")]);
    let (early, _) = server.accept();
    let (last, actions) = server.accept_from(hello(5));
    assert_eq!((actions, server.end(last)), (vec![close(later), up(5)], vec![down(5)]));
    assert_eq!(server.receive(early, hello(5)), [close(early)], "also if the later one has ended");
    let (newest, actions) = server.accept_from(hello(5));
    assert_eq!((actions, server.end(newest)), (vec![up(5)], vec![down(5)]));
}

#[test]
fn server_counts_as_down_once_a_dial_fails_and_there_is_no_connection() {
    let mut server = Server::new(&[1]);
    assert_eq!(server.end(ConnectionId(77)), [], "no such connection");
    let never_up = dialed(&server.dial(1));
    assert_eq!(server.fail(never_up), [unreached(1)], "it was never up");
    let first = server.connected_to(1);
    let (_, actions) = server.accept_from(hello(1));
    let [_, Action::Dial { connection: back, .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(server.fail(back), [], "the earlier connection is still there");
    let (_, actions) = server.accept_from(hello(1));
    let [_, Action::Dial { connection: back, .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(server.end(first), [down(1)]);
    assert_eq!(server.fail(back), [unreached(1)], "that it is down is reported once");
}

#[test]
fn dial_is_given_up_at_its_deadline() {
    let mut server = Server::new(&[1, 2]);
    let silent = dialed(&server.dial(1));
    server.now_ms = 100;
    let mute = dialed(&server.dial(2));
    assert_eq!(server.connect(mute), [write(mute, &hello(3))]);
    assert_eq!(server.machine.next_deadline_ms(), Some(5000));
    assert_eq!(server.tick(4999), []);
    assert_eq!(server.tick(5000), [close(silent), unreached(1)]);
    assert_eq!(server.machine.next_deadline_ms(), Some(5100), "the hello is not written");
    assert_eq!(server.tick(5100), [close(mute)]);
    assert_eq!(server.machine.next_deadline_ms(), None);
    assert_eq!((server.connect(silent), server.written(mute)), (vec![], vec![]));
    dialed(&server.dial(1));
}

// rows: C-162
#[test]
fn accepted_connection_without_a_hello_is_closed_at_its_deadline() {
    let mut server = Server::new(&[]);
    let (silent, _) = server.accept();
    let (slow, actions) = server.accept_from([0xff; 3]);
    assert_eq!((actions, server.machine.next_deadline_ms()), (vec![], Some(500)));
    let (good, actions) = server.accept_from(hello(9));
    assert_eq!(actions, [up(9)]);
    assert_eq!(server.tick(500), [close(silent), close(slow)]);
    assert_eq!((server.machine.next_deadline_ms(), server.tick(90_000)), (None, vec![]));
    assert_eq!(server.receive(good, frame("vote")), [heard(9, "vote")]);
}

#[test]
fn bad_bytes_close_their_connection_alone() {
    let mut server = Server::new(&[1]);
    let first = server.connected_to(1);
    for bad in [&(-7_i64).to_be_bytes()[..], b"GET / HTTP/1.1\r\n", &[22, 3, 1, 0, 200]] {
        let (connection, actions) = server.accept_from(bad);
        assert_eq!(actions, [close(connection)]);
        assert_eq!(server.receive(connection, hello(9)), []);
    }
    for len in [0, -1, 512 * 1024 + 1] {
        let (connection, actions) = server.accept_from(hello(9));
        assert_eq!(actions, [up(9)]);
        let bytes = i32::to_be_bytes(len);
        assert_eq!(server.receive(connection, bytes), [close(connection), down(9)]);
    }
    assert_eq!(server.receive(first, frame("vote")), [heard(1, "vote")]);
}

#[test]
fn learner_at_the_election_port_is_no_server() {
    let mut server = Server::new(&[1]);
    // The types of FOLLOWERINFO and OBSERVERINFO, and the first half of a zxid, as the id of a server before 3.5.
    for packet in [11, 16] {
        let (connection, actions) = server.accept_from(i64::to_be_bytes(packet << 32 | 7));
        assert_eq!(actions, [close(connection)]);
    }
    let mut server = Server::new(&[11 << 32]);
    assert_eq!(server.accept_from(i64::to_be_bytes(11 << 32)).1, [up(11 << 32)], "it is known");
}

#[test]
fn message_with_the_hello_is_heard_after_the_connection_is_reported() {
    let mut server = Server::new(&[]);
    let bytes = [&hello(9)[..], &frame("a"), &frame("b"), b"\0\0"].concat();
    let (connection, actions) = server.accept_from(bytes);
    assert_eq!(actions, [up(9), heard(9, "a"), heard(9, "b")]);
    let (again, actions) = server.accept_from(hello(9));
    assert_eq!(actions, [close(connection), up(9)], "the second connection replaces the first");
    assert_eq!(server.send(9, "answer"), [write(again, &frame("answer"))]);
}

#[test]
fn messages_that_came_before_the_hello_was_written_are_heard_after_it() {
    let mut server = Server::new(&[1]);
    let connection = dialed(&server.dial(1));
    server.connect(connection);
    assert_eq!(server.receive(connection, frame("early")), []);
    assert_eq!(server.written(connection), [up(1), heard(1, "early")]);
    let flooded = Server::new(&[1]).dial(1);
    let mut server = Server::new(&[1]);
    assert_eq!(server.dial(1), flooded);
    let connection = dialed(&flooded);
    server.connect(connection);
    assert_eq!(server.receive(connection, vec![0; 512 * 1024 + 5]), [close(connection)]);
}

#[test]
fn unknown_servers_and_connections_without_a_hello_are_limited() {
    let mut server = Server::new(&[500]);
    let mut connections = Vec::new();
    for id in 100..164 {
        let (connection, actions) = server.accept_from(i64::to_be_bytes(id));
        assert_eq!(actions, [up(id)]);
        connections.push(connection);
    }
    let (one_more, actions) = server.accept_from(200_i64.to_be_bytes());
    assert_eq!(actions, [close(one_more)]);
    assert_eq!(server.accept_from(500_i64.to_be_bytes()).1, [up(500)], "it is known");
    assert_eq!(server.end(connections[63]), [down(163)]);
    assert_eq!(server.accept_from(201_i64.to_be_bytes()).1, [up(201)]);
    for _ in 0..256 {
        assert_eq!(server.accept().1, []);
    }
    let (one_more, actions) = server.accept();
    assert_eq!(actions, [close(one_more)]);
    assert_eq!(server.tick(500).len(), 256);
    assert_eq!(server.accept().1, []);
}

#[test]
fn unknown_server_is_dialed_where_its_hello_says_and_forgotten_when_that_fails() {
    let mut server = Server::new(&[]);
    assert_eq!(server.send(1, "vote"), [unreached(1)], "no address of it is known");
    assert_eq!(server.step(Input::DialAll), []);
    let (_, actions) = server.accept_from(hello(1));
    let [_, Action::Dial { connection, ref addresses, .. }] = actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(addresses[..], [("zoo1".to_owned(), 3888)]);
    assert_eq!(server.send(1, "vote"), []);
    assert_eq!(server.fail(connection), [unreached(1)]);
    assert_eq!(server.dial(1), [unreached(1)], "it is forgotten, and its message too");
    let peers = [(ServerId(1), vec![("zoo1".to_owned(), 1)])].into();
    assert_eq!(server.step(Input::SetPeers(peers)), []);
    let connection = dialed(&server.step(Input::DialAll));
    server.connect(connection);
    assert_eq!(server.written(connection), [up(1)]);
}

// rows: Q-30 C-59 C-60
#[test]
fn silence_of_a_server_with_several_addresses_is_limited() {
    let settings =
        Settings { reach_timeout_ms: Some(70), multi_address: true, ..election_settings(3) };
    let mut server = Server::with(settings, &[1]);
    let several = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
    server.step(Input::SetPeers([(ServerId(1), several.clone())].into()));
    let actions = server.dial(1);
    let connection = dialed(&actions);
    let dial = Action::Dial { connection, to: ServerId(1), addresses: several, grace_ms: Some(70) };
    assert_eq!(actions, [dial]);
    server.connect(connection);
    let limit = Action::LimitSilence { connection, to: ServerId(1), timeout_ms: 70 };
    assert_eq!(server.written(connection), [limit, up(1)]);
}

#[test]
fn members_that_were_not_heard_are_listed_with_the_reason() {
    let mut server = Server::new(&[1, 2, 3]);
    let missing = |server: &Server| {
        let reach = server.machine.reach();
        (reach.heard(), reach.missing())
    };
    let silent = "1 at zoo1:3888: no answer yet; 2 at zoo2:3888: no answer yet";
    assert_eq!(missing(&server), ("no other server".to_owned(), silent.to_owned()));
    let connection = dialed(&server.dial(1));
    server.fail(connection);
    let connection = server.connected_to(2);
    server.written(connection);
    // As a server that refuses this one: it has accepted the connection, and ends it without a message.
    let refused = "1 at zoo1:3888: refused";
    let none = "no other server".to_owned();
    let silent = format!("{refused}; 2 at zoo2:3888: no answer yet");
    assert_eq!(missing(&server), (none.clone(), silent));
    server.receive(connection, frame("vote"));
    assert_eq!(missing(&server), ("2".to_owned(), refused.to_owned()));
    server.end(connection);
    let ended = format!("{refused}; 2 at zoo2:3888: closed by the peer");
    assert_eq!(missing(&server), (none.clone(), ended.clone()));
    let connection = server.connected_to(2);
    server.written(connection);
    assert_eq!(missing(&server), (none, ended));
}

// rows: C-28 Q-29 C-163
#[test]
fn address_that_cannot_be_bound_is_reported_and_left_when_the_server_moves() {
    let mut server = Server::with(Settings { bind_tries_max: 1, ..election_settings(3) }, &[1]);
    let actions = server.step(Input::Start);
    let [Action::Listen { listener, ref place }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(place.to_string(), "zoo3:3888");
    let failed = Input::ListenFailed { listener, error: "in use".to_owned() };
    let deaf = Event::BindFailed { place: "zoo3:3888".to_owned(), error: "in use".to_owned() };
    assert_eq!(server.step(failed), [Action::Report(deaf)]);
    assert_eq!(server.machine.next_deadline_ms(), Some(1000));
    let actions = server.tick(1000);
    let [Action::Listen { listener, .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(server.step(Input::Listening { listener }), []);
    let actions = server.step(Input::MoveTo(vec![("new".to_owned(), 4000)]));
    let [Action::StopListening { listener: left }, Action::Listen { ref place, .. }] = actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!((left, place.to_string()), (listener, "new:4000".to_owned()));
    // The next hello names the new address.
    let connection = dialed(&server.dial(1));
    let actions = server.connect(connection);
    let [Action::Write { ref bytes, .. }] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(Hello::parse(bytes).unwrap().unwrap().0.addresses, [("new".to_owned(), 4000)]);
}

/// The last message in each direction, once `rest_ms` have passed.
fn hear(net: &mut VirtualElectionNet, rest_ms: u64, heard: &mut BTreeMap<(i64, i64), Bytes>) {
    let until_ms = net.now_ms() + rest_ms;
    while let Some((to, event)) = net.next_report(until_ms) {
        if let Event::Heard { from, message } = event {
            heard.insert((from.0, to), message);
        }
    }
}

#[test]
fn servers_that_dial_each_other_at_once_end_with_one_connection_each_and_the_last_votes() {
    let pairs = [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)];
    for seed in 0..300 {
        let mut net = VirtualElectionNet::new(seed, 3, 100);
        [1, 2, 3].into_iter().for_each(|id| net.start(id));
        let (mut rng, mut heard) = (Rng::seeded(seed), BTreeMap::new());
        for round in 0..3 {
            for (from, to) in pairs {
                net.send(from, to, Bytes::from(format!("vote {round} of {from}")));
                if seed % 2 == 1 {
                    hear(&mut net, rng.below(20), &mut heard);
                }
            }
            if seed % 2 == 0 {
                hear(&mut net, 10_000, &mut heard);
            }
        }
        hear(&mut net, 10_000, &mut heard);
        assert!(net.is_settled(), "seed {seed}: they dial each other for ever");
        for (from, to) in pairs {
            let vote = Bytes::from(format!("vote 2 of {from}"));
            assert_eq!(heard.get(&(from, to)), Some(&vote), "seed {seed}, {from} to {to}");
        }
        [1, 2, 3].into_iter().for_each(|id| net.dial_all(id));
        assert!(net.is_settled(), "seed {seed}: all are connected");
        assert_eq!(net.connections(), 3, "seed {seed}");
    }
}

#[test]
fn election_bytes_in_any_pieces_have_the_same_effect() {
    let script = [&hello(9)[..], &frame("a"), &frame("bc"), &0_i32.to_be_bytes()].concat();
    let mut whole = Server::new(&[]);
    let (_, expected) = whole.accept_from(&script);
    assert_eq!(expected.len(), 5, "up, two messages, close, down: {expected:?}");
    for step in 1..script.len() {
        let mut server = Server::new(&[]);
        let (connection, _) = server.accept();
        let pieces = BytesMut::from(&script[..]).freeze();
        let actions = pieces.chunks(step).flat_map(|piece| server.receive(connection, piece));
        assert_eq!(actions.collect::<Vec<_>>(), expected, "pieces of {step} bytes");
    }
}
