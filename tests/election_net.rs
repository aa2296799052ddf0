//! Election connections over real sockets: which server dials, which messages are sent, and what a bad peer can't do.

use bytes::Bytes;
use common::ports::free_ports;
use oxkeeper::member::election_connections::{Event, ServerAddresses, Settings};
use oxkeeper::member::sasl_exchange::NoSasl;
use oxkeeper::member::sim_exchange::SimExchanges;
use oxkeeper::model::ServerId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use support::election_net::{ElectionNet, Inbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// A bound against hanging.
const LONG: Duration = Duration::from_secs(20);

fn settings(me: i64, port: u16) -> Settings {
    Settings {
        me: ServerId(me),
        addresses: vec![("127.0.0.1".into(), port)],
        on_all_addresses: false,
        multi_address: false,
        connect_timeout_ms: LONG.as_millis() as u64,
        reach_timeout_ms: None,
        hello_timeout_ms: 500,
        bind_tries_max: 3,
        exchanges: Arc::new(NoSasl),
    }
}

fn peers(of: &[(i64, u16)]) -> ServerAddresses {
    of.iter().map(|&(id, port)| (ServerId(id), vec![("127.0.0.1".to_owned(), port)])).collect()
}

struct Server {
    net: ElectionNet,
    inbox: Inbox,
    port: u16,
}

/// Starts a server, and waits until it listens.
async fn start(me: i64, port: u16, all: &ServerAddresses) -> Server {
    start_with(settings(me, port), port, all).await
}

async fn start_with(settings: Settings, port: u16, all: &ServerAddresses) -> Server {
    let (net, inbox) = ElectionNet::start(settings, all.clone());
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    Server { net, inbox, port }
}

impl Server {
    /// The next event; dials that came before the other server ran are passed over.
    async fn next(&self) -> Event {
        loop {
            let event = timeout(LONG, self.inbox.take()).await.expect("an event");
            if !matches!(event, Event::ElectionUnreached { .. }) {
                return event;
            }
        }
    }

    /// The next message; events of connections before it are skipped.
    async fn heard(&self) -> (i64, Vec<u8>) {
        loop {
            if let Event::Heard { from, message } = self.next().await {
                return (from.0, message.to_vec());
            }
        }
    }

    fn send(&self, to: i64, message: &'static str) {
        self.net.send(ServerId(to), Bytes::from_static(message.as_bytes()));
    }
}

fn up(to: i64) -> Event {
    Event::ElectionConnected { to: ServerId(to) }
}

fn down(to: i64) -> Event {
    Event::ElectionDisconnected { to: ServerId(to) }
}

fn hello(id: i64, address: &str) -> Vec<u8> {
    let len = (address.len() as i32).to_be_bytes();
    [&(-65536_i64).to_be_bytes()[..], &id.to_be_bytes(), &len, address.as_bytes()].concat()
}

fn frame(message: &str) -> Vec<u8> {
    [&(message.len() as i32).to_be_bytes()[..], message.as_bytes()].concat()
}

async fn read_exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut read = vec![0; len];
    timeout(LONG, stream.read_exact(&mut read)).await.expect("in time").expect("so many bytes");
    read
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    timeout(LONG, stream.read_to_end(&mut rest)).await.expect("closed in time").is_ok()
        && rest.is_empty()
}

#[tokio::test]
async fn votes_are_exchanged_after_an_exchange_that_both_ends_use() {
    let [a, b] = free_ports();
    let all = peers(&[(1, a), (2, b)]);
    let exchange = |me, port| Settings { exchanges: Arc::new(SimExchanges), ..settings(me, port) };
    let one = start_with(exchange(1, a), a, &all).await;
    let two = start_with(exchange(2, b), b, &all).await;
    one.send(2, "a vote");
    assert_eq!(two.heard().await, (1, b"a vote".to_vec()));
    two.send(1, "an answer");
    assert_eq!(one.heard().await, (2, b"an answer".to_vec()));
    // A server without the SASL exchange begins with its hello.
    let mut other = TcpStream::connect(("127.0.0.1", b)).await.unwrap();
    other.write_all(&(-65536_i64).to_be_bytes()).await.unwrap();
    assert!(is_closed(&mut other).await);
}

// rows: Q-23 Q-24 Q-26
#[tokio::test]
async fn server_with_the_larger_id_dials_whichever_sends_first() {
    for first in [1, 2] {
        let [a, b] = free_ports();
        let all = peers(&[(1, a), (2, b)]);
        let (one, two) = (start(1, a, &all).await, start(2, b, &all).await);
        let (begins, other) = if first == 1 { (&one, &two) } else { (&two, &one) };
        begins.send(3 - first, "a vote");
        assert_eq!(other.heard().await, (first, b"a vote".to_vec()));
        assert_eq!(begins.next().await, up(3 - first));
        other.send(first, "an answer");
        assert_eq!(begins.heard().await, (3 - first, b"an answer".to_vec()));
        // A new process at the other end gets the last message again.
        let port = other.port;
        let all = if first == 1 { peers(&[(1, a)]) } else { peers(&[(2, b)]) };
        let (id, other) = if first == 1 { (2, two) } else { (1, one) };
        other.net.close().await;
        let begins_again = start(id, port, &all).await;
        begins_again.send(first, "back");
        assert_eq!(begins_again.heard().await, (first, b"a vote".to_vec()));
    }
}

#[tokio::test]
async fn election_connections_end_with_the_peer_and_are_made_again() {
    let [a, b] = free_ports();
    let all = peers(&[(1, a), (2, b)]);
    let (one, two) = (start(1, a, &all).await, start(2, b, &all).await);
    two.net.dial_all();
    assert_eq!((one.next().await, two.next().await), (up(2), up(1)));
    two.net.close().await;
    assert_eq!(one.next().await, down(2));
    // While the peer is down a dial fails, and the dialing server goes on.
    one.net.dial(ServerId(2));
    let two = start(2, b, &all).await;
    one.net.dial(ServerId(2));
    assert_eq!((one.next().await, two.next().await), (up(2), up(1)));
    // A server does not dial a peer that it is connected to.
    one.net.dial_all();
    two.net.dial_all();
    one.send(2, "vote");
    assert_eq!(two.next().await, Event::Heard { from: ServerId(1), message: "vote".into() });
}

#[tokio::test]
async fn zk_2930_silent_peer_does_not_delay_votes_to_others() {
    let [a, b] = free_ports();
    // This address accepts no connection, and its listen backlog is full.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let silent = socket.local_addr().unwrap().as_socket().unwrap();
    let _first = std::net::TcpStream::connect(silent).unwrap();
    let all = peers(&[(1, a), (2, b), (-3, silent.port()), (-4, silent.port())]);
    let (one, two) = (start(1, a, &all).await, start(2, b, &all).await);
    for round in 0..20 {
        for other in [-3, -4, 2] {
            one.send(other, "vote");
        }
        let heard = timeout(Duration::from_millis(400), two.heard());
        assert_eq!(
            heard.await.expect("long before dials of silent peers time out").0,
            1,
            "round {round}"
        );
    }
    timeout(LONG, one.net.close()).await.expect("close must not wait for silent peers");
}

/// An address that does not answer: its listen backlog is full.
async fn silent_place() -> (tokio::net::TcpListener, Vec<TcpStream>, u16) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.3:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut callers = Vec::new();
    while let Ok(called) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        callers.push(called.unwrap());
    }
    (listener, callers, address.port())
}

// rows: Q-30 C-59 C-60
#[tokio::test]
async fn server_with_several_addresses_is_dialed_at_the_reachable_one() {
    let [a, b] = free_ports();
    let (_queue, _callers, dead) = silent_place().await;
    let places = |port| vec![("127.0.0.3".to_owned(), dead), ("127.0.0.2".to_owned(), port)];
    let all: ServerAddresses = [(ServerId(1), places(a)), (ServerId(2), places(b))].into();
    let started = |me, port| {
        let several = Settings {
            addresses: vec![("127.0.0.2".to_owned(), port)],
            multi_address: true,
            reach_timeout_ms: Some(100),
            ..settings(me, port)
        };
        ElectionNet::start(several, all.clone())
    };
    // While the peer is down, a dial must not wait for the silent address: the next dial would come twenty seconds later.
    let (one, heard_by_one) = started(1, a);
    one.send(ServerId(2), Bytes::from_static(b"a vote"));
    sleep(Duration::from_millis(500)).await;
    let (two, heard_by_two) = started(2, b);
    let began = tokio::time::Instant::now();
    let message = loop {
        one.dial_all();
        match timeout(Duration::from_millis(200), heard_by_two.take()).await {
            Ok(Event::Heard { from, message }) => break (from.0, message.to_vec()),
            Ok(_) | Err(_) => assert!(began.elapsed() < LONG / 2, "not connected"),
        }
    };
    assert_eq!(message, (1, b"a vote".to_vec()));
    let unreached = Event::ElectionUnreached { to: ServerId(2) };
    assert_eq!(heard_by_one.take().await, unreached, "it was down");
    while heard_by_one.take().await != up(2) {}
    two.close().await;
}

// rows: C-28 Q-30
#[tokio::test]
async fn election_port_on_all_addresses_is_bound_once() {
    let [port] = free_ports();
    let every = Settings {
        addresses: vec![("127.0.0.2".to_owned(), port), ("127.0.0.3".to_owned(), port)],
        on_all_addresses: true,
        bind_tries_max: 1,
        ..settings(1, port)
    };
    let (net, inbox) = ElectionNet::start(every, ServerAddresses::new());
    for host in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        while TcpStream::connect((host, port)).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    }
    let deaf = timeout(Duration::from_millis(200), inbox.take()).await;
    assert!(deaf.is_err(), "{deaf:?}");
    net.close().await;
}

// rows: Q-20 Q-21
#[tokio::test]
async fn hellos_of_other_releases_are_understood() {
    let [port] = free_ports();
    let server = start(3, port, &peers(&[])).await;
    // A dialer with a larger id and several addresses, which sends its first message with the hello.
    let mut newer = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let text = "[::1]:7|10.1.1.1:8";
    let len = (text.len() as i32).to_be_bytes();
    let hello = [&(-65535_i64).to_be_bytes()[..], &9_i64.to_be_bytes(), &len, text.as_bytes()];
    newer.write_all(&[hello.concat(), frame("vote")].concat()).await.unwrap();
    assert_eq!(server.next().await, up(9));
    assert_eq!(server.heard().await, (9, b"vote".to_vec()));
    server.send(9, "answer");
    assert_eq!(read_exactly(&mut newer, 10).await, frame("answer"));
    // Before 3.5 the hello was just the id.
    let mut older = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    older.write_all(&[&8_i64.to_be_bytes()[..], &frame("old")].concat()).await.unwrap();
    assert_eq!(server.heard().await, (8, b"old".to_vec()));
    // A second connection from the same server replaces the first.
    let mut again = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    again.write_all(&[&9_i64.to_be_bytes()[..], &frame("again")].concat()).await.unwrap();
    assert!(is_closed(&mut newer).await);
    assert_eq!((server.next().await, server.heard().await), (up(9), (9, b"again".to_vec())));
    assert_eq!(read_exactly(&mut again, 10).await, frame("answer"), "sent again");
}

// rows: Q-23
#[tokio::test]
async fn dialer_with_a_smaller_id_is_dialed_back_at_the_address_in_its_hello() {
    let [port] = free_ports();
    let server = start(3, port, &peers(&[])).await;
    let smaller = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = smaller.local_addr().unwrap().to_string();
    let mut calls = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    calls.write_all(&hello(2, &address)).await.unwrap();
    assert!(is_closed(&mut calls).await);
    let (mut called, _) = timeout(LONG, smaller.accept()).await.expect("dialed back").unwrap();
    let own = format!("127.0.0.1:{port}");
    assert_eq!(read_exactly(&mut called, 20 + own.len()).await, hello(3, &own));
    called.write_all(&frame("vote")).await.unwrap();
    assert_eq!((server.next().await, server.heard().await), (up(2), (2, b"vote".to_vec())));
}

// rows: C-162
#[tokio::test]
async fn bad_hellos_close_the_connection_and_others_are_served() {
    let [port] = free_ports();
    let server = start(3, port, &peers(&[])).await;
    let too_long = (512 * 1024 + 1_i32).to_be_bytes();
    let bad: [Vec<u8>; 7] = [
        (-7_i64).to_be_bytes().to_vec(),
        hello(9, "no-port"),
        hello(9, ":1"),
        b"GET / HTTP/1.1\r\n\r\n".map(|byte| byte | 0x80).to_vec(),
        hello(3, "127.0.0.1:1"),
        [&9_i64.to_be_bytes()[..], &0_i32.to_be_bytes()].concat(),
        [&9_i64.to_be_bytes()[..], &too_long].concat(),
    ];
    for bytes in bad {
        let mut caller = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        caller.write_all(&bytes).await.unwrap();
        // With unread bytes at the server, the connection may also end by a reset.
        let mut rest = Vec::new();
        let _ = timeout(LONG, caller.read_to_end(&mut rest)).await.expect("closed in time");
        assert_eq!(rest, b"", "{bytes:?}");
    }
    // A connection without a whole hello is closed after hello_timeout_ms.
    let mut silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    silent.write_all(&[0xff; 3]).await.unwrap();
    assert!(is_closed(&mut silent).await);
    let mut good = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    good.write_all(&[&9_i64.to_be_bytes()[..], &frame("vote")].concat()).await.unwrap();
    assert_eq!(server.heard().await, (9, b"vote".to_vec()));
}

#[tokio::test]
async fn connections_from_unknown_server_ids_are_limited() {
    let [port] = free_ports();
    let server = start(3, port, &peers(&[(500, 1)])).await;
    let mut callers = Vec::new();
    for id in 100..164_i64 {
        let mut caller = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        caller.write_all(&id.to_be_bytes()).await.unwrap();
        assert_eq!(server.next().await, up(id));
        callers.push(caller);
    }
    let mut one_more = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    one_more.write_all(&200_i64.to_be_bytes()).await.unwrap();
    assert!(is_closed(&mut one_more).await);
    let mut known = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    known.write_all(&500_i64.to_be_bytes()).await.unwrap();
    assert_eq!(server.next().await, up(500));
    drop(callers.pop());
    assert_eq!(server.next().await, down(163));
    let mut instead = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    instead.write_all(&201_i64.to_be_bytes()).await.unwrap();
    assert_eq!(server.next().await, up(201));
}

// rows: Q-29 C-163
#[tokio::test]
async fn zk_3320_binding_the_election_port_is_retried_for_ever() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = Settings { bind_tries_max: 2, ..settings(3, port) };
    let (_net, inbox) = ElectionNet::start(settings, peers(&[]));
    let event = timeout(LONG, inbox.take()).await.expect("an event after two failures");
    let Event::BindFailed { place, error } = event else { panic!("{event:?}") };
    assert_eq!(place, format!("127.0.0.1:{port}"));
    assert!(error.contains("free the port"), "{error}");
    drop(taken);
    let connect = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, connect).await.expect("listens once the port is free");
}
