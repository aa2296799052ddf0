//! SASL between servers: packets, both ends by hand, and the connections of an election with it.

use bytes::{Bytes, BytesMut};
use oxkeeper::auth::digest_md5::Accounts;
use oxkeeper::auth::sasl::Refusal;
use oxkeeper::auth::server_principal::MemberHosts;
use oxkeeper::member::auth_packet::{AuthPacket, AuthPacketError, AuthStatus, TOKEN_BYTES_MAX};
use oxkeeper::member::election_connection::{ConnectionError, ElectionConnection, Received};
use oxkeeper::member::election_connections::{
    Action, ConnectionId, ElectionConnections, Event, Input, Settings,
};
use oxkeeper::member::election_hello::Hello;
use oxkeeper::member::quorum_connection::QuorumConnection;
use oxkeeper::member::quorum_sasl::{
    Acceptors, Answer, DigestAcceptors, DigestInitiators, Exchange, Initiators, QuorumSaslExchanges,
};
use oxkeeper::member::sasl_exchange::SaslProgress::{Done, NotYet, Working};
use oxkeeper::member::sasl_exchange::{ConnectionKind, SaslExchange, SaslExchanges};
use oxkeeper::member::sasl_exchange::{SaslProgress, Work};
use oxkeeper::member::sim_exchange::digest_exchanges;
use oxkeeper::model::{Secret, ServerId};
use oxkeeper::zab::LearnerConnectionId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use support::builders::election_settings;

const KIND: ConnectionKind = ConnectionKind::Learner;

fn packet(status: i32, token: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = vec![0x5f, 0x24, 0x35, 0x01, 0x35, 0x01, 0xed, 0xcc];
    bytes.extend(status.to_be_bytes());
    bytes.extend(token.map_or(-1, |token| token.len() as i32).to_be_bytes());
    bytes.extend(token.unwrap_or_default());
    bytes
}

fn there() -> Vec<(String, u16)> {
    vec![("there".to_owned(), 1)]
}

fn accepting(exchanges: &QuorumSaslExchanges) -> Box<dyn SaslExchange> {
    exchanges.accepted(KIND, "here")
}

/// One step with these bytes: how far the SASL exchange is, and what it says.
fn step(exchange: &mut dyn SaslExchange, bytes: &[u8]) -> (Result<SaslProgress, String>, Vec<u8>) {
    let (mut input, mut output) = (BytesMut::from(bytes), Vec::new());
    let opened = exchange.step(&mut input, &mut output);
    (opened, output)
}

/// A step that is not the last one.
fn go_on(exchange: &mut dyn SaslExchange, bytes: &[u8]) {
    assert_eq!(step(exchange, bytes).0, Ok(NotYet));
}

/// Users and passwords of the accepting end, and what the dialing end has.
fn exchanges(
    users: &[(&str, &str)],
    user: &str,
    password: &str,
    is_required: bool,
) -> QuorumSaslExchanges {
    let secret = |text: &str| Arc::new(Secret::new(text.as_bytes().to_vec()));
    let users: Vec<_> = users.iter().map(|(u, p)| ((*u).to_owned(), secret(p))).collect();
    let accounts = Arc::new(Accounts::of_servers(&users));
    let acceptors = Arc::new(DigestAcceptors { accounts, nonces: Arc::new(|| [7; 30]) });
    let initiators = Arc::new(DigestInitiators {
        user: user.to_owned(),
        password: secret(password),
        nonces: Arc::new(|| [9; 30]),
    });
    QuorumSaslExchanges { acceptors, initiators: Some(initiators), is_required }
}

/// Carries the bytes of both ends until neither says anything; how each end has ended.
fn exchange(exchanges: &QuorumSaslExchanges) -> [Result<SaslProgress, String>; 2] {
    let mut ends = [exchanges.dialed(KIND, &there()), accepting(exchanges)];
    let mut unread = [BytesMut::new(), BytesMut::new()];
    let mut ended = [Ok(NotYet), Ok(NotYet)];
    for _ in 0..10 {
        for at in 0..2 {
            let mut said = Vec::new();
            if ended[at] == Ok(NotYet) {
                ended[at] = ends[at].step(&mut unread[at], &mut said);
            }
            unread[1 - at].extend_from_slice(&said);
        }
    }
    ended
}

// rows: Q-110
#[test]
fn packets_are_read_and_written_as_java_writes_them() {
    for (status, code) in
        [(AuthStatus::InProgress, 0), (AuthStatus::Success, 1), (AuthStatus::Error, -1)]
    {
        for token in [None, Some(&b""[..]), Some(&b"a token"[..])] {
            let mut bytes = Vec::new();
            AuthPacket::put(status, token, &mut bytes);
            assert_eq!(bytes, packet(code, token));
            for cut in 0..bytes.len() {
                let mut part = BytesMut::from(&bytes[..cut]);
                assert_eq!(AuthPacket::take(&mut part), Ok(None), "{cut}");
            }
            let mut input = BytesMut::from(&[&bytes[..], b"more"].concat()[..]);
            let read = AuthPacket { status, token: token.map(<[u8]>::to_vec) };
            assert_eq!(AuthPacket::take(&mut input), Ok(Some(read)));
            assert_eq!(&input[..], b"more");
        }
    }
}

#[test]
fn bytes_that_are_no_packet_are_refused_before_their_length_counts() {
    let error = |bytes: &[u8]| AuthPacket::take(&mut BytesMut::from(bytes)).unwrap_err();
    assert_eq!(error(b"\x5f\x24x"), AuthPacketError::Magic);
    assert_eq!(error(&packet(2, None)), AuthPacketError::Status(2));
    for len in [-2, i32::MIN, TOKEN_BYTES_MAX as i32 + 1, i32::MAX] {
        let mut bytes = packet(0, None);
        bytes[12..16].copy_from_slice(&len.to_be_bytes());
        assert_eq!(error(&bytes), AuthPacketError::Length(len));
    }
}

// rows: Q-113 Q-114
#[test]
fn two_servers_with_one_password_authenticate_each_other() {
    let both = exchanges(&[("a", "1"), ("member", "secret")], "member", "secret", true);
    assert_eq!(exchange(&both), [Ok(Done), Ok(Done)]);
    let mut connection = QuorumConnection::accepted(LearnerConnectionId(1), accepting(&both), 0);
    let mut dialing = both.dialed(KIND, &there());
    let mut said = step(&mut *dialing, b"").1;
    assert_eq!(said, packet(0, Some(b"")));
    for _ in 0..2 {
        // Byte by byte: the outcome does not depend on how bytes are cut.
        said.iter().for_each(|byte| connection.receive(&[*byte], 0, &mut Vec::new()).unwrap());
        said = step(&mut *dialing, &connection.take_output()).1;
    }
    assert!(connection.is_ready());
}

// rows: Q-28 Q-111
#[test]
fn peer_without_sasl_passes_unless_it_is_required_and_keeps_its_bytes() {
    for first in [&b"\0\0\0\x0b"[..], b"\x5f\x25", b"\0"] {
        let mut exchange = accepting(&digest_exchanges(false));
        let (mut input, mut output) = (BytesMut::from(first), Vec::new());
        assert_eq!(exchange.step(&mut input, &mut output), Ok(Done));
        assert_eq!((&input[..], output.len()), (first, 0));
        let (opened, said) = step(&mut *accepting(&digest_exchanges(true)), first);
        assert!(opened.unwrap_err().contains("quorum.auth.serverRequireSasl"));
        assert!(said.is_empty());
    }
}

/// What became of a SASL exchange whose bytes come in these pieces: how far it is, what it has sent, and what it leaves to the connection.
fn outcome(
    exchanges: &QuorumSaslExchanges,
    pieces: &[&[u8]],
) -> (Result<SaslProgress, String>, Vec<u8>, Vec<u8>) {
    let mut exchange = accepting(exchanges);
    let (mut input, mut output) = (BytesMut::new(), Vec::new());
    let mut opened = exchange.step(&mut input, &mut output);
    for piece in pieces {
        input.extend_from_slice(piece);
        if opened == Ok(NotYet) {
            opened = exchange.step(&mut input, &mut output);
        }
    }
    // The input counts only for a connection that goes on.
    let left = if opened.is_ok() { input.to_vec() } else { Vec::new() };
    (opened, output, left)
}

/// What a learner connection says of these pieces, and what it answers.
fn judged(exchanges: &QuorumSaslExchanges, pieces: &[&[u8]]) -> (Option<String>, Vec<u8>) {
    let exchange = accepting(exchanges);
    let mut connection = QuorumConnection::accepted(LearnerConnectionId(1), exchange, 0);
    let received = pieces.iter().map(|piece| connection.receive(piece, 0, &mut Vec::new()));
    let error = received.filter_map(Result::err).map(|error| error.to_string()).next();
    (error, connection.take_output())
}

// Found by fuzz target `hello`: 5f 00 in two pieces was refused.
// rows: Q-111
#[test]
fn outcome_of_an_exchange_does_not_depend_on_how_its_bytes_are_cut() {
    let magic = &packet(0, None)[..8];
    let token = packet(0, Some(b"a token"));
    let mut all: Vec<Vec<u8>> = vec![
        b"\x5f".to_vec(),
        b"\x5f\x00".to_vec(),
        b"\x5f\x25".to_vec(),
        b"\0\0\0\x0b".to_vec(),
        magic[..7].to_vec(),
        magic.to_vec(),
        [magic, &[9; 8]].concat(),
        [packet(0, Some(b"")), token.clone()].concat(),
        [packet(0, None), b"more".to_vec()].concat(),
    ];
    // The magic up to some byte, and then others.
    all.extend((0..8).map(|len| [&magic[..len], &[0; 16]].concat()));
    for bytes in all {
        for is_required in [false, true] {
            // Made anew for each outcome, so that nonces are the same.
            let exchanges = || digest_exchanges(is_required);
            let whole = outcome(&exchanges(), &[&bytes]);
            let said = judged(&exchanges(), &[&bytes]);
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(outcome(&exchanges(), &each), whole, "{bytes:x?}");
            assert_eq!(judged(&exchanges(), &each), said, "{bytes:x?}");
            for cut in 1..bytes.len() {
                let (front, back) = bytes.split_at(cut);
                assert_eq!(outcome(&exchanges(), &[front, back]), whole, "{bytes:x?} cut at {cut}");
                assert_eq!(judged(&exchanges(), &[front, back]), said, "{bytes:x?} cut at {cut}");
            }
            // A part of the magic is no silence.
            let mut exchange = accepting(&exchanges());
            assert_eq!(exchange.accepts_silent_peer(), !is_required);
            let is_unfinished = step(&mut *exchange, &bytes).0 == Ok(NotYet);
            assert!(!is_unfinished || !exchange.accepts_silent_peer(), "{bytes:x?}");
        }
    }
}

// rows: Q-114
#[test]
fn server_that_need_not_authenticate_says_nothing_when_it_dials() {
    let plain = QuorumSaslExchanges { initiators: None, ..digest_exchanges(true) };
    let (opened, said) = step(&mut *plain.dialed(KIND, &there()), b"");
    assert_eq!((opened, said), (Ok(Done), Vec::new()));
}

// rows: Q-113
#[test]
fn wrong_password_unknown_user_and_no_user_are_refused_if_sasl_is_required() {
    for (user, password) in [("member", "wrong"), ("other", "secret"), ("", "")] {
        let mut exchanges = exchanges(&[("member", "secret")], user, password, true);
        let [dialed, accepted] = exchange(&exchanges);
        assert!(dialed.unwrap_err().contains("refused SASL"));
        assert!(accepted.unwrap_err().starts_with("SASL failed: "));
        // Java keeps the connection too.
        exchanges.is_required = false;
        let [dialed, accepted] = exchange(&exchanges);
        assert!(dialed.is_err());
        assert_eq!(accepted, Ok(Done));
    }
}

#[test]
fn replayed_exchange_is_refused() {
    // The same factory, so the second exchange has another nonce.
    let exchanges = digest_exchanges(true);
    let mut dialing = exchanges.dialed(KIND, &there());
    let mut first = accepting(&exchanges);
    let hello = step(&mut *dialing, b"").1;
    let response = step(&mut *dialing, &step(&mut *first, &hello).1).1;
    assert_eq!(step(&mut *first, &response).0, Ok(Done));
    let mut second = accepting(&exchanges);
    go_on(&mut *second, &hello);
    let (opened, said) = step(&mut *second, &response);
    assert!(opened.unwrap_err().contains("nonce"));
    assert_eq!(said, packet(-1, Some(b"")));
}

#[test]
fn magic_and_then_rubbish_ends_the_connection_whatever_is_required() {
    for is_required in [false, true] {
        let exchanges = digest_exchanges(is_required);
        let rubbish = [packet(0, Some(b"")), b"rubbish, not magic".to_vec()].concat();
        let (opened, said) = step(&mut *accepting(&exchanges), &rubbish);
        assert!(opened.is_err());
        assert_eq!(said[8..12], 0_i32.to_be_bytes(), "the challenge was sent");
        let (opened, _) =
            step(&mut *accepting(&exchanges), &[&packet(0, None)[..8], &[9; 8]].concat());
        assert!(opened.is_err());
        let (opened, _) = step(&mut *accepting(&exchanges), &packet(0, None));
        assert_eq!(opened.is_err(), is_required, "a null token fails as a wrong one");
    }
}

/// An end that answers as a function says, at once or as work.
struct Fake {
    answer: fn(&[u8]) -> Result<Answer, Refusal>,
    works: bool,
    said: Option<Result<Answer, Refusal>>,
    is_done: Arc<AtomicBool>,
}

impl Exchange for Fake {
    fn put(&mut self, token: Vec<u8>) -> Option<Work> {
        self.said = Some((self.answer)(&token));
        let is_done = self.is_done.clone();
        is_done.store(!self.works, Ordering::Relaxed);
        self.works.then(|| Work::new(move || is_done.store(true, Ordering::Relaxed)))
    }

    fn take(&mut self) -> Option<Result<Answer, Refusal>> {
        if self.is_done.load(Ordering::Relaxed) { self.said.take() } else { None }
    }
}

#[derive(Clone)]
struct Fakes(fn(&[u8]) -> Result<Answer, Refusal>, bool);

impl Acceptors for Fakes {
    fn begin(&self) -> Box<dyn Exchange> {
        let (answer, works) = (self.0, self.1);
        Box::new(Fake { answer, works, said: None, is_done: Arc::default() })
    }
}

impl Initiators for Fakes {
    fn begin(&self, host: &str) -> Box<dyn Exchange> {
        assert_eq!(host, "there");
        Acceptors::begin(self)
    }

    fn speaks_first(&self) -> bool {
        true
    }
}

fn fakes(
    answer: fn(&[u8]) -> Result<Answer, Refusal>,
    works: bool,
    is_required: bool,
) -> QuorumSaslExchanges {
    let fakes = Arc::new(Fakes(answer, works));
    QuorumSaslExchanges { acceptors: fakes.clone(), initiators: Some(fakes), is_required }
}

/// In Java a peer that goes on for ever is let in after its sixth token.
// rows: Q-113
#[test]
fn sixth_token_of_an_unfinished_exchange_closes_the_connection_even_if_sasl_is_not_required() {
    let endless = |_: &[u8]| Ok(Answer { token: Some(b"on".to_vec()), complete: None });
    for is_required in [false, true] {
        let mut exchange = accepting(&fakes(endless, false, is_required));
        for _ in 0..5 {
            let (opened, said) = step(&mut *exchange, &packet(0, Some(b"x")));
            assert_eq!((opened, said), (Ok(NotYet), packet(0, Some(b"on"))));
        }
        let (opened, said) = step(&mut *exchange, &packet(0, Some(b"x")));
        assert_eq!(said, packet(-1, Some(b"on")));
        assert!(opened.unwrap_err().contains("5 challenges"));
    }
}

/// Takes each token for the name that it proves: a principal, as with Kerberos.
#[derive(Default)]
struct Principals(Mutex<Arc<MemberHosts>>);

impl Acceptors for Principals {
    fn begin(&self) -> Box<dyn Exchange> {
        let answer = |token: &[u8]| {
            let name = String::from_utf8(token.to_vec()).unwrap();
            Ok(Answer { token: None, complete: Some(name) })
        };
        Box::new(Fake { answer, works: false, said: None, is_done: Arc::default() })
    }

    fn set_hosts(&self, hosts: MemberHosts) {
        *self.0.lock().unwrap() = Arc::new(hosts);
    }

    fn hosts(&self) -> Option<Arc<MemberHosts>> {
        Some(self.0.lock().unwrap().clone())
    }
}

/// In Java the hosts are those of the members when the server started.
// rows: Q-113
#[test]
fn hosts_of_the_members_at_the_end_of_an_exchange_count() {
    let zoo1 = packet(0, Some(b"zk/zoo1@R"));
    for is_required in [false, true] {
        let acceptors = Arc::new(Principals::default());
        let exchanges = QuorumSaslExchanges { acceptors, initiators: None, is_required };
        let refused = |exchange: &mut dyn SaslExchange, bytes: &[u8]| {
            let (opened, said) = step(exchange, bytes);
            assert_eq!(said, packet(-1, Some(b"")));
            // As in Java, a server that need not authenticate stays connected.
            match opened {
                Ok(opened) => assert!(opened == Done && !is_required),
                Err(reason) => {
                    assert!(is_required && reason.starts_with("SASL failed"), "{reason}")
                }
            }
        };
        refused(&mut *accepting(&exchanges), &zoo1);
        let mut begun = accepting(&exchanges);
        exchanges.set_hosts(["zoo1".to_owned()].into());
        assert_eq!(step(&mut *begun, &zoo1), (Ok(Done), packet(1, None)));
        for name in ["zk/zoo2@R", "zk@R", "zoo1@R"] {
            refused(&mut *accepting(&exchanges), &packet(0, Some(name.as_bytes())));
        }
        let mut begun = accepting(&exchanges);
        exchanges.set_hosts(["zoo2".to_owned()].into());
        refused(&mut *begun, &zoo1);
    }
}

fn counted(token: &[u8]) -> Result<Answer, Refusal> {
    let next = token.first().map_or(0, |at| at + 1);
    let complete = (next >= 3).then(|| "somebody".to_owned());
    Ok(Answer { token: (next < 4).then(|| vec![next]), complete })
}

#[test]
fn work_is_handed_out_and_the_step_after_it_finds_the_answer() {
    let exchanges = fakes(counted, true, true);
    let mut exchange = accepting(&exchanges);
    let (opened, said) = step(&mut *exchange, &packet(0, Some(&[1])));
    let Ok(Working(work)) = opened else { panic!("{opened:?}") };
    assert_eq!(step(&mut *exchange, b"").0, Ok(NotYet), "the work is not done");
    work.run();
    let (opened, more) = step(&mut *exchange, b"");
    assert_eq!((opened, said.len(), more), (Ok(NotYet), 0, packet(0, Some(&[2]))));
    let Working(work) = step(&mut *exchange, &packet(0, Some(&[2]))).0.unwrap() else {
        panic!("no work")
    };
    work.run();
    assert_eq!(step(&mut *exchange, b""), (Ok(Done), packet(1, Some(&[3]))));
}

#[test]
fn dialing_end_believes_a_success_only_when_its_own_exchange_is_complete() {
    let dial = || fakes(counted, false, true).dialed(KIND, &there());
    let mut exchange = dial();
    assert_eq!(step(&mut *exchange, b""), (Ok(NotYet), packet(0, Some(&[0]))));
    assert_eq!(step(&mut *exchange, &packet(0, Some(&[2]))).1, packet(0, Some(&[3])));
    assert_eq!(step(&mut *exchange, &packet(1, None)).0, Ok(Done));
    // Success before the dialing end is done, a token after that, and no SASL at all.
    let mut exchange = dial();
    go_on(&mut *exchange, b"");
    assert!(step(&mut *exchange, &packet(1, Some(&[1]))).0.unwrap_err().contains("too early"));
    let mut exchange = dial();
    go_on(&mut *exchange, b"");
    go_on(&mut *exchange, &packet(0, Some(&[2])));
    assert!(step(&mut *exchange, &packet(0, Some(&[3]))).0.unwrap_err().contains("after its end"));
    let mut exchange = dial();
    go_on(&mut *exchange, b"");
    assert!(step(&mut *exchange, b"HTTP/1.1 400").0.unwrap_err().contains("enableSasl"));
}

fn hello(id: i64) -> Vec<u8> {
    Hello { id: ServerId(id), addresses: vec![(format!("zoo{id}"), 3888)] }.encode(false)
}

// rows: Q-112
#[test]
fn election_connections_authenticate_after_the_hello_and_before_messages() {
    let exchanges = digest_exchanges(true);
    let kind = ConnectionKind::Election;
    let mut dialed = ElectionConnection::dialed(exchanges.dialed(kind, &there()), hello(3), 70);
    let mut accepted = ElectionConnection::accepted(exchanges.accepted(kind, "here"), 50);
    dialed.connected(90);
    let first = dialed.take_output().unwrap();
    assert_eq!(first, [hello(3), packet(0, Some(b""))].concat());
    accepted.receive(&first);
    assert_eq!(accepted.next_received(), Ok(None), "the hello counts once it is proved");
    dialed.written();
    dialed.receive(&accepted.take_output().unwrap());
    accepted.written();
    accepted.receive(&dialed.take_output().unwrap());
    dialed.written();
    assert_eq!(accepted.next_received(), Ok(None), "the other end is sent the error first");
    dialed.receive(&accepted.take_output().unwrap());
    accepted.written();
    assert!(matches!(accepted.next_received(), Ok(Some(Received::Hello(_)))));
    assert!(accepted.has_room() && dialed.has_room());
}

#[test]
fn peer_gets_the_refusal_of_sasl_before_its_connection_is_closed() {
    let wrong = exchanges(&[("member", "secret")], "member", "wrong", true);
    let mut accepted =
        ElectionConnection::accepted(wrong.accepted(ConnectionKind::Election, "here"), 50);
    let mut dialing = wrong.dialed(ConnectionKind::Election, &there());
    accepted.receive(&[hello(3), step(&mut *dialing, b"").1].concat());
    assert_eq!(accepted.next_received(), Ok(None));
    let response = step(&mut *dialing, &accepted.take_output().unwrap()).1;
    accepted.written();
    accepted.receive(&response);
    assert_eq!(accepted.next_received(), Ok(None));
    assert_eq!(accepted.take_output().unwrap(), packet(-1, Some(b"")));
    accepted.receive(b"more is not read");
    assert_eq!((accepted.unfinished_bytes(), accepted.deadline_ms()), (0, Some(50)));
    assert!(matches!(accepted.refusal(), Some(ConnectionError::Exchange(_))));
    let learner = QuorumConnection::accepted(LearnerConnectionId(1), accepting(&wrong), 0);
    let (mut learner, mut dialing) = (learner, wrong.dialed(KIND, &there()));
    let mut said = step(&mut *dialing, b"").1;
    for _ in 0..2 {
        learner.receive(&said, 0, &mut Vec::new()).unwrap();
        let answer = learner.take_output();
        if answer == packet(-1, Some(b"")) {
            break;
        }
        said = step(&mut *dialing, &answer).1;
    }
    assert!(learner.end().unwrap_err().to_string().contains("wrong password"));
    assert!(learner.check_deadline(10_000).is_err() && !learner.is_ready());
}

/// Server 2 of three.
fn server_2(exchanges: QuorumSaslExchanges) -> ElectionConnections {
    let exchanges = Arc::new(exchanges);
    let settings = Settings { exchanges, ..election_settings(2) };
    let peers = [1, 3].map(|id| (ServerId(id), vec![(format!("zoo{id}"), 3888)]));
    ElectionConnections::new(settings, peers.into())
}

fn step_all(server: &mut ElectionConnections, inputs: Vec<Input>, now_ms: u64) -> Vec<Action> {
    let mut out = Vec::new();
    inputs.into_iter().for_each(|input| server.step(input, now_ms, &mut out));
    out
}

/// A server whose ticket is at hand sends both before the other end reads.
// rows: Q-28 Q-113
#[test]
fn token_that_comes_with_the_hello_is_worked_on() {
    let mut server = server_2(fakes(counted, true, true));
    let connection = server.next_connection();
    let bytes = [hello(3), packet(0, Some(&[2]))].concat();
    let out = step_all(&mut server, from(connection, bytes), 0);
    let [Action::Work { connection: of, work }] = &out[..] else { panic!("{out:?}") };
    assert_eq!(*of, connection);
    work.run();
    let out = step_all(&mut server, vec![Input::WorkDone { connection }], 1);
    let done = packet(1, Some(&[3]));
    assert_eq!(out, [Action::Write { connection, bytes: done.into() }]);
}

fn from(connection: ConnectionId, bytes: Vec<u8>) -> Vec<Input> {
    let peer = "there".to_owned();
    vec![
        Input::Accepted { connection, peer },
        Input::Received { connection, bytes: Bytes::from(bytes) },
    ]
}

/// A server without SASL and with the smaller id sends its hello, and ends the connection: it is to be dialed.
// rows: Q-28 Q-112
#[test]
fn server_without_sasl_and_with_the_smaller_id_is_dialed_back_unless_sasl_is_required() {
    for is_required in [false, true] {
        let mut server = server_2(digest_exchanges(is_required));
        let connection = server.next_connection();
        assert_eq!(step_all(&mut server, from(connection, hello(1)), 0), []);
        let out = step_all(&mut server, vec![Input::Ended { connection, error: None }], 1);
        let dials = out.iter().any(|action| matches!(action, Action::Dial { to, .. } if to.0 == 1));
        assert_eq!(dials, !is_required, "{out:?}");
    }
}

#[test]
fn server_without_sasl_and_with_the_larger_id_stays_once_it_speaks_or_at_the_deadline() {
    let up = Action::Report(Event::ElectionConnected { to: ServerId(3) });
    let mut server = server_2(digest_exchanges(false));
    let connection = server.next_connection();
    assert_eq!(step_all(&mut server, from(connection, hello(3)), 0), []);
    let bytes = Bytes::from_static(b"\0\0\0\x01x");
    let out = step_all(&mut server, vec![Input::Received { connection, bytes }], 1);
    assert_eq!(out[0], up);
    let mut server = server_2(digest_exchanges(false));
    let connection = server.next_connection();
    step_all(&mut server, from(connection, hello(3)), 0);
    let deadline_ms = server.next_deadline_ms().unwrap();
    assert_eq!(step_all(&mut server, vec![Input::Tick], deadline_ms), [up]);
    let mut server = server_2(digest_exchanges(true));
    let connection = server.next_connection();
    step_all(&mut server, from(connection, hello(3)), 0);
    let out = step_all(&mut server, vec![Input::Tick], deadline_ms);
    assert_eq!(out, [Action::Close { connection }]);
}

#[test]
fn server_that_dials_one_with_a_larger_id_authenticates_and_then_closes() {
    let exchanges = digest_exchanges(true);
    let mut server = server_2(digest_exchanges(true));
    let out = step_all(&mut server, vec![Input::Dial { to: ServerId(3) }], 0);
    let Action::Dial { connection, .. } = out[0] else { panic!("{out:?}") };
    let peer = "there".to_owned();
    let mut inputs = vec![Input::Connected { connection, peer }];
    let mut acceptor = exchanges.accepted(ConnectionKind::Election, "here");
    let mut hello_len = hello(2).len();
    for _ in 0..2 {
        let out = step_all(&mut server, std::mem::take(&mut inputs), 0);
        let Action::Write { bytes, .. } = &out[0] else { panic!("{out:?}") };
        let said = step(&mut *acceptor, &bytes[std::mem::take(&mut hello_len)..]).1;
        inputs.push(Input::Written { connection });
        inputs.push(Input::Received { connection, bytes: said.into() });
    }
    assert_eq!(step_all(&mut server, inputs, 0), [Action::Close { connection }]);
}
