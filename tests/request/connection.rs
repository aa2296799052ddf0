//! A connection and its parts without a replica: first bytes, the outbox, statistics.

use bytes::Bytes;
use jute::proto::ReplyHeader;
use oxkeeper::model::{SessionId, op};
use oxkeeper::request::foreign::Foreign;
use oxkeeper::request::{
    Answered, ClientHandle, ConnStats, Connection, Counts, FrameKind, Limits, Need, Outgoing,
    Shared, password,
};
use oxkeeper::tree::{Options, Tree};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use support::builders;
use support::requests::{hello, hello_bytes};

fn connection(frame_max: usize) -> Connection {
    connection_of(&shared(frame_max))
}

fn connection_of(shared: &Arc<Shared>) -> Connection {
    let peer = ([127, 0, 0, 1], 1).into();
    Connection::new(shared.conns.add(|id| ClientHandle::new(id, peer, 0)), shared.clone())
}

fn shared(frame_max: usize) -> Arc<Shared> {
    let limits = Limits {
        words: vec![*b"ruok"],
        frame_max,
        min_session_timeout_ms: 1,
        max_session_timeout_ms: 1000,
        outstanding_max: 10,
        ..Limits::default()
    };
    builders::shared(Tree::new(Options::default()), limits)
}

/// No role is served, and connect requests are held until 500 ms.
fn shared_in_an_election() -> Arc<Shared> {
    let shared = shared(1000);
    shared.at_rest.store(true, Ordering::Relaxed);
    shared.connects_held_until_ms.store(500, Ordering::Relaxed);
    shared
}

#[test]
fn a_connect_request_waits_for_an_election_that_has_just_begun() {
    let connect = hello_bytes(&hello());
    let shared = shared_in_an_election();
    let (mut served, mut late) = (connection_of(&shared), connection_of(&shared));
    for machine in [&mut served, &mut late] {
        assert_eq!(machine.advance(&connect, 499_000), (0, Need::Answer));
        assert!(machine.commands.is_empty() && machine.wait(Waker::noop()));
    }
    let mut word = connection_of(&shared);
    assert_eq!(word.advance(b"ruok", 0), (0, Need::Word(*b"ruok")), "it is no connect request");
    assert_eq!(late.advance(&connect, 500_000), (0, Need::Close(String::new())), "no leader");
    shared.at_rest.store(false, Ordering::Relaxed);
    assert!(!served.wait(Waker::noop()), "it has a turn");
    assert_eq!(served.advance(&connect, 499_500), (connect.len(), Need::Answer));
    assert_eq!((served.commands.len(), served.counts.received), (1, 1));
}

#[test]
fn connect_request_is_not_held_with_more_than_10_000_connections() {
    let connect = hello_bytes(&hello());
    let shared = shared_in_an_election();
    let mut others: Vec<Connection> = (1..10_000).map(|_| connection_of(&shared)).collect();
    let mut last = connection_of(&shared);
    assert_eq!(last.advance(&connect, 0), (0, Need::Answer), "the 10,000th connection is held");
    let mut excess = connection_of(&shared);
    assert_eq!(excess.advance(&connect, 0), (0, Need::Close(String::new())), "no leader");
    assert_eq!(last.advance(&connect, 0), (0, Need::Close(String::new())), "it is one too many");
    shared.conns.remove(excess.conn().id);
    assert_eq!(others[0].advance(&connect, 0), (0, Need::Answer), "there are 10,000 again");
}

#[test]
fn http_and_tls_clients_are_answered_in_their_protocol_and_closed() {
    for (bytes, answer, about) in [
        (&b"GET /ruok HTTP/1.1\r\n"[..], &b"HTTP/1.1 400 "[..], "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n", b"HTTP/1.1 400 ", "an HTTP request"),
        (&[22, 3, 1, 2, 0, 1, 0, 1], &[21, 3, 3, 0, 2, 2, 40], "a TLS handshake"),
    ] {
        // Whatever length frames may have later: a connect request is short.
        for frame_max in [1000, i32::MAX as usize] {
            let mut machine = connection(frame_max);
            let (_, need) = machine.advance(bytes, 0);
            assert!(matches!(&need, Need::Close(reason) if reason.starts_with(about)), "{need:?}");
            assert!(machine.unsent.bytes.starts_with(answer), "{bytes:?}");
            assert_eq!(machine.counts, Counts::default(), "it is no packet");
        }
        assert_eq!(connection(1000).advance(&bytes[..3], 0), (0, Need::Bytes(1)), "too few bytes");
    }
}

#[test]
fn connect_request_is_read_when_more_bytes_follow() {
    let mut connect = vec![0, 0, 0, 29];
    connect.extend([0; 29]);
    for (bytes, expected) in [
        (&connect[..10], (0, Need::Bytes(23))),
        (&[&connect[..], &[7; 90]].concat(), (33, Need::Answer)),
    ] {
        assert_eq!(connection(1000).advance(bytes, 0), expected);
    }
}

#[test]
fn http_answer_has_the_right_content_length() {
    let text = str::from_utf8(Foreign::Http.answer()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
}

#[test]
fn only_http_and_tls_are_recognised() {
    for line in [
        "GET / HTTP/1.1",
        "HEAD /",
        "POST /",
        "PUT /",
        "DELETE /",
        "CONNECT a:1",
        "OPTIONS *",
        "TRACE /",
        "PATCH /",
        "PRI * HTTP/2.0",
    ] {
        let head = line.as_bytes().first_chunk().unwrap();
        assert_eq!(Foreign::recognise(*head), Some(Foreign::Http), "{line}");
    }
    assert_eq!(Foreign::recognise([22, 3, 1, 2]), Some(Foreign::Tls));
    for head in [*b"ruok", [0, 0, 0, 45], [22, 2, 0, 0], [128, 46, 1, 3]] {
        assert_eq!(Foreign::recognise(head), None, "{head:?}");
    }
}

#[test]
fn shared_pieces_keep_their_place() {
    let mut a = Outgoing::default();
    let header = ReplyHeader { xid: 1, zxid: 2, err: 0 };
    let built = a.frame(FrameKind::Answer, header, |out| {
        out.bytes.push(1);
        out.share(Bytes::from_static(b"xyz"));
        out.bytes.push(2);
        Ok(())
    });
    assert_eq!(built, Ok(()));
    assert_eq!((&a.bytes[..4], &a.bytes[20..], a.len()), (&[0, 0, 0, 21][..], &[1, 2][..], 25));
    let mut b = Outgoing::default();
    b.bytes.push(9);
    b.append(&mut a);
    assert_eq!((b.shared[0].0, b.len()), (22, 26));
    assert!(a.is_empty());
}

#[test]
fn connection_figures_show_the_last_answer_until_reset() {
    let stats = ConnStats::default();
    let fresh = stats.figures();
    assert_eq!((fresh.last_op, fresh.last_xid, fresh.last_zxid), (0, None, -1));
    let get =
        Answered { op: op::GET_DATA, xid: 7, zxid: 9, count: 2, began_us: 3_000, ended_us: 7_999 };
    stats.note(get);
    stats.note(Answered { op: op::PING, xid: -2, count: 1, began_us: 7_000, ..get });
    let figures = stats.figures();
    assert_eq!((figures.last_op, figures.last_xid, figures.last_zxid), (op::PING, Some(7), 9));
    assert_eq!((figures.last_answer_ms, figures.last_latency_ms), (7, 0));
    let latencies = (figures.min_latency_ms, figures.avg_latency_ms, figures.max_latency_ms);
    assert_eq!(latencies, (0, 2, 4));
    stats.add_received(3);
    stats.reset();
    assert_eq!(stats.figures(), fresh);
}

#[test]
fn password_differs_by_session() {
    assert_ne!(password(SessionId(1)), password(SessionId(2)));
}
