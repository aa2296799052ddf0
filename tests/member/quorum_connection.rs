//! Bytes of a learner connection, in and out of its machine.

use bytes::{Bytes, BytesMut};
use oxkeeper::member::quorum_connection::*;
use oxkeeper::member::sasl_exchange::{
    ConnectionKind, NoSasl, SASL_BYTES_MAX, SaslExchange, SaslExchanges, SaslProgress,
};
use oxkeeper::member::sim_exchange::SimExchanges;
use oxkeeper::model::{Epoch, Zxid};
use oxkeeper::tree::Options;
use oxkeeper::tree::load::Loader;
use oxkeeper::zab::{LearnerConnectionId, Packet, PacketError, SIGNATURE};
use support::trees::tree_stream;

const SNAP_ZXID: Zxid = Zxid::new(Epoch(1), 7);

/// Number of znodes of a tree in such a stream, those included that every tree has.
pub fn count(znodes: usize) -> usize {
    let mut loader = Loader::new(Options::default());
    assert!(loader.take(&tree_stream(znodes)).unwrap().ended);
    loader.finish(SNAP_ZXID).unwrap().node_count()
}

fn sealed_tree(znodes: usize) -> Vec<u8> {
    let snap = Packet::Snap { zxid: SNAP_ZXID }.to_bytes();
    [&snap[..], &tree_stream(znodes), b"\0\0\0\x0a", SIGNATURE].concat()
}

fn proposal(counter: u32) -> Packet {
    Packet::Proposal { zxid: Zxid::new(Epoch(1), counter), entry: Bytes::from(vec![7; 36]) }
}

fn accepted() -> QuorumConnection {
    QuorumConnection::accepted(LearnerConnectionId(1), Box::new(NoSasl), 0)
}

fn dialed() -> QuorumConnection {
    QuorumConnection::dialed(1, Box::new(NoSasl), Options::default())
}

/// One line for each packet and tree, batches of packets in brackets.
fn text_of(events: Vec<QuorumEvent>) -> String {
    let of = |event| match event {
        QuorumEvent::Packets(packets) => {
            let names: Vec<&str> = packets.iter().map(Packet::name).collect();
            format!("[{}]", names.join(" "))
        }
        QuorumEvent::Tree { zxid, tree } => {
            assert_eq!(zxid, SNAP_ZXID);
            format!("tree of {}", tree.node_count())
        }
        QuorumEvent::Progress => "progress".to_owned(),
    };
    events.into_iter().map(of).collect::<Vec<_>>().join(" ")
}

fn received(connection: &mut QuorumConnection, bytes: &[u8]) -> Result<String, QuorumError> {
    let mut events = Vec::new();
    connection.receive(bytes, 0, &mut events).map(|()| text_of(events))
}

// rows: Q-53
#[test]
fn packets_before_snap_come_before_its_tree_however_the_bytes_are_cut() {
    let bytes = [
        &Packet::Diff { zxid: SNAP_ZXID }.to_bytes()[..],
        &proposal(1).to_bytes(),
        &sealed_tree(50),
        &Packet::UpToDate.to_bytes(),
        &sealed_tree(3),
        &proposal(2).to_bytes(),
    ]
    .concat();
    let (first, second) = (count(50), count(3));
    let whole = format!("[DIFF PROPOSAL] tree of {first} [UPTODATE] tree of {second} [PROPOSAL]");
    assert_eq!(received(&mut dialed(), &bytes).unwrap(), whole);
    for len in [1, 2, 13, 100, 4096] {
        let (mut connection, mut events) = (dialed(), Vec::new());
        for part in bytes.chunks(len) {
            connection.receive(part, 0, &mut events).unwrap();
        }
        let cut = text_of(events).replace("] [", " ");
        assert_eq!(cut, whole, "in parts of {len}");
        assert!(!connection.is_in_tree());
        connection.end().unwrap();
    }
}

#[test]
fn progress_of_a_tree_is_reported_once_a_second() {
    let (mut connection, bytes) = (dialed(), sealed_tree(100));
    let mut times = Vec::new();
    for (number, part) in bytes.chunks(bytes.len() / 40).enumerate() {
        let (mut events, now_ms) = (Vec::new(), number as u64 * 90);
        connection.receive(part, now_ms, &mut events).unwrap();
        match &events[..] {
            [QuorumEvent::Progress] => times.push(now_ms),
            [] => assert!(connection.is_in_tree()),
            [QuorumEvent::Tree { .. }] => assert!(!connection.is_in_tree()),
            _ => panic!("{}", text_of(events)),
        }
    }
    assert_eq!(times, [1080, 2160, 3240]);
}

#[test]
fn other_protocols_are_recognised() {
    for (bytes, word) in [
        (&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03abcdefghi"[..], "TLS"),
        (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "HTTP"),
        (
            b"\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\x02\0\0\0\x09a:1:2:3:4",
            "dials this quorum port for an election",
        ),
        (b"\x5f\x24\x35\x01\x35\x01\xed\xcc\0\0\0\0\0\0\0\0", "enableSasl=true here"),
        (b"\0\0\x12\x34\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "packet of unknown type 4660"),
        (
            b"lsnp",
            "packet of unknown type 1819504240: the bytes look like the word \"lsnp\"; clients",
        ),
        (b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0", "45: is it a client? Clients use clientPort"),
    ] {
        let mut connection = accepted();
        let error = received(&mut connection, bytes).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert!(!connection.has_spoken());
        // Too few bytes to be refused as a packet: the protocol is recognised when the time for a hello is over.
        let mut connection = accepted();
        received(&mut connection, &bytes[..4]).ok();
        let error = connection.check_deadline(HELLO_WITHIN_MS).unwrap_err().to_string();
        assert!(error.contains(word) || error == "no FOLLOWERINFO or OBSERVERINFO came", "{error}");
    }
}

#[test]
fn packets_before_an_invalid_one_are_processed() {
    let bytes = [&proposal(1).to_bytes()[..], b"\0\0\x12\x34\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"];
    let mut events = Vec::new();
    let error = dialed().receive(&bytes.concat(), 0, &mut events).unwrap_err();
    assert!(matches!(error, QuorumError::Packet(PacketError::Kind(0x1234))), "{error}");
    assert_eq!(text_of(events), "[PROPOSAL]");
}

#[test]
fn learner_without_a_hello_is_refused_after_ten_seconds() {
    let (mut connection, hello) = (accepted(), proposal(1).to_bytes());
    let receive = |connection: &mut QuorumConnection, bytes: &[u8], now_ms| {
        connection.receive(bytes, now_ms, &mut Vec::new()).unwrap();
        connection.deadline_ms()
    };
    assert_eq!(receive(&mut connection, b"", 5), Some(10_000));
    assert_eq!(receive(&mut connection, &hello[..9], 9_000), Some(10_000), "bytes do not move it");
    connection.check_deadline(9_999).unwrap();
    assert!(matches!(connection.check_deadline(10_000), Err(QuorumError::NoHello)));
    assert_eq!(receive(&mut connection, &hello[9..], 9_999), None);
    connection.check_deadline(u64::MAX).unwrap();
    assert_eq!(receive(&mut dialed(), b"", 5), None, "a leader has no deadline");
}

/// The head of a packet whose length field claims `data_len` bytes of data.
fn head(kind: i32, data_len: usize) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &[0; 8], &(data_len as i32).to_be_bytes()].concat()
}

#[test]
fn packet_above_the_limit_is_refused_by_its_length_alone() {
    const PROPOSAL: i32 = 2;
    let refused = |connection: &mut QuorumConnection, len| {
        received(connection, &head(PROPOSAL, len)).is_err()
    };
    // Before the hello little is kept; after it, as much as Java's readers take.
    assert!(refused(&mut accepted(), HELLO_BYTES_MAX + 1));
    assert!(!refused(&mut accepted(), HELLO_BYTES_MAX));
    let greeted = || {
        let mut connection = accepted();
        received(&mut connection, &proposal(1).to_bytes()).unwrap();
        connection
    };
    let javas = 2 * 0xf_ffff;
    for connection in [greeted, dialed] {
        assert!(!refused(&mut connection(), javas) && refused(&mut connection(), javas + 1));
        let mut wide = connection().with_entries_of(4 * javas);
        assert!(!refused(&mut wide, 4 * javas) && refused(&mut connection(), 4 * javas));
    }
    let mut connection = greeted();
    received(&mut connection, &head(PROPOSAL, javas)).unwrap();
    received(&mut connection, &[0; 1000]).unwrap();
    assert_eq!(connection.unfinished_bytes(), 1016);
}

#[test]
fn identities_of_a_packet_are_bounded_together() {
    let (mut connection, long) = (dialed(), 2_000_000_usize);
    let mut bytes = [head(5, 0), 100_i32.to_be_bytes().to_vec()].concat();
    for _ in 0..4 {
        bytes.extend((long as i32).to_be_bytes());
        bytes.resize(bytes.len() + long, b'x');
        assert!(received(&mut connection, &bytes).is_ok());
        bytes.clear();
    }
    let error = received(&mut connection, &(long as i32).to_be_bytes()).unwrap_err();
    assert!(matches!(error, QuorumError::Packet(PacketError::Long { .. })), "{error}");
}

#[test]
fn invalid_trees_are_refused() {
    let bytes = sealed_tree(9);
    let refused = received(&mut accepted(), &bytes).unwrap_err();
    assert!(matches!(refused, QuorumError::UnexpectedTree), "a learner sends none: {refused}");
    let mut connection = dialed();
    received(&mut connection, &bytes[..bytes.len() / 2]).unwrap();
    assert!(matches!(connection.end(), Err(QuorumError::EndedInTree)));
    let mut connection = dialed();
    received(&mut connection, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(connection.end(), Err(QuorumError::EndedBeforeSignature)));
    let mut spoilt = bytes.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    let refused = received(&mut dialed(), &spoilt).unwrap_err();
    assert!(matches!(refused, QuorumError::NoSignature), "{refused}");
    // A znode whose parent is missing.
    let mut orphan = sealed_tree(0);
    let end = orphan.len() - 5 - 4 - SIGNATURE.len();
    orphan.truncate(end);
    orphan.extend_from_slice(b"\0\0\0\x04/a/b\0\0\0\0");
    orphan.extend_from_slice(&(-1i64).to_be_bytes());
    orphan.extend_from_slice(&[0; 60]);
    let refused = received(&mut dialed(), &orphan).unwrap_err();
    assert!(matches!(refused, QuorumError::Tree(_)), "{refused}");
}

/// A transaction that is kept must not keep more bytes than came with it, nor the buffer of a tree.
// rows: Q-53
#[test]
fn kept_packet_keeps_no_larger_buffer_than_its_bytes() {
    let (mut connection, mut events) = (dialed(), Vec::new());
    connection.receive(&sealed_tree(20_000), 0, &mut events).unwrap();
    assert_eq!(text_of(std::mem::take(&mut events)), format!("tree of {}", count(20_000)));
    for counter in 0..100 {
        connection.receive(&proposal(counter).to_bytes(), 0, &mut events).unwrap();
    }
    let sizes = events.into_iter().map(|event| {
        let QuorumEvent::Packets(mut packets) = event else { panic!("{}", text_of(vec![event])) };
        let Some(Packet::Proposal { entry, .. }) = packets.pop() else { panic!("{packets:?}") };
        entry.try_into_mut().ok().map(|whole| whole.capacity())
    });
    let sizes: Vec<usize> = sizes.flatten().collect();
    assert!(50 < sizes.len() && sizes.iter().all(|&size| size < 4096), "{sizes:?}");
}

#[test]
fn exchange_comes_before_the_first_packet() {
    let kind = ConnectionKind::Learner;
    let exchange = SimExchanges.dialed(kind, &[("a".to_owned(), 1)]);
    let mut connection = QuorumConnection::dialed(1, exchange, Options::default());
    assert_eq!(received(&mut connection, b"").unwrap(), "");
    assert_eq!((connection.take_output(), connection.is_ready()), (b"hello?".to_vec(), false));
    let error = received(&mut connection, b"whom").unwrap_err();
    assert!(matches!(&error, QuorumError::Exchange(why) if why.contains("which?")), "{error}");
    let mut connection =
        QuorumConnection::accepted(LearnerConnectionId(1), SimExchanges.accepted(kind, "here"), 0);
    assert_eq!(received(&mut connection, b"hell").unwrap(), "");
    assert!(!connection.is_ready() && connection.deadline_ms().is_some());
    assert!(connection.take_output().is_empty());
    assert_eq!(received(&mut connection, b"o?learn").unwrap(), "");
    assert_eq!((connection.take_output(), connection.is_ready()), (b"which?".to_vec(), false));
    // Bytes after the SASL exchange's end belong to the connection's own protocol.
    let bytes = [b"er", &proposal(1).to_bytes()[..]].concat();
    assert_eq!(received(&mut connection, &bytes).unwrap(), "[PROPOSAL]");
    assert_eq!((connection.take_output(), connection.is_ready()), (b"enter".to_vec(), true));
}

/// A SASL exchange that never has enough.
struct Endless;

impl SaslExchange for Endless {
    fn step(
        &mut self,
        _input: &mut BytesMut,
        _output: &mut Vec<u8>,
    ) -> Result<SaslProgress, String> {
        Ok(SaslProgress::NotYet)
    }
}

#[test]
fn exchange_that_takes_too_long_or_too_many_bytes_ends_the_connection() {
    let mut connection = QuorumConnection::dialed(1, Box::new(Endless), Options::default());
    assert_eq!(connection.deadline_ms(), None, "it is not connected yet");
    connection.receive(&[], 5000, &mut Vec::new()).unwrap();
    connection.receive(b"x", 14_000, &mut Vec::new()).unwrap();
    assert_eq!(connection.deadline_ms(), Some(15_000));
    let error = connection.check_deadline(15_000).unwrap_err().to_string();
    assert_eq!(error, "the SASL exchange takes too long");
    let error = received(&mut connection, &[0; SASL_BYTES_MAX]).unwrap_err().to_string();
    assert_eq!(error, "65537 bytes came in the SASL exchange");
}
